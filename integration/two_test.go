package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bash runs lines as documentation shows them, in the stack's directory and with the binary as noisegate.
func (s *stack) bash(t *testing.T, token, lines string) (output string, code int) {
	t.Helper()
	command := s.command("version")
	if err := os.Symlink(command.Path, filepath.Join(s.dir, "noisegate")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-ec", lines)
	shell.Dir = s.dir
	shell.Env = append(command.Env, "PATH="+s.dir+":"+os.Getenv("PATH"), "NOISEGATE_URL="+s.url, "NOISEGATE_TOKEN="+token)
	out, err := shell.CombinedOutput()
	if err != nil && shell.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	return string(out), shell.ProcessState.ExitCode()
}

// TestTwoStewards does what docs/policy.md shows: two stewards make keys, the policy wants both, one signs for the other; and finds shut
// what one alone could try, with a token, with the configuration, and in the ledger.
//
// covers: A76
func TestTwoStewards(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	sam, eve := s.token(t, "sam", "steward"), s.token(t, "eve", "steward")
	s.receipt(t, s.token(t, "ana", "analyst"), 0)
	run := func(token, lines string, wantCode int, want ...string) {
		t.Helper()
		out, code := s.bash(t, token, lines)
		for _, text := range want {
			if code != wantCode || !strings.Contains(out, text) {
				t.Errorf("%s: %d\n%s\nwant %d and %q", lines, code, out, wantCode, text)
			}
		}
	}
	page := read(t, "../docs/policy.md")
	shown := func(line string) string {
		t.Helper()
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("docs/policy.md does not show %q", line)
		}
		return line
	}
	two := strings.Replace(people(ampleBudget).policy, "tables:\n", "stewards: {two_for: [public, unit, bounds, domain, cap]}\ntables:\n", 1)
	write(t, filepath.Join(s.dir, "people.yaml"), two)

	run(sam, "noisegate policy apply people.yaml", 4, "two_for wants two stewards, and the configuration names the keys of 0")
	run(sam, shown("noisegate budget key sam.key --steward sam > stewards.pub"), 0, "the private key")
	run(sam, shown("noisegate budget key eve.key --steward eve >> stewards.pub"), 0, "the private key")
	s.stop(t)
	write(t, s.config, strings.Replace(read(t, s.config), "quantum: 0s}", "quantum: 0s, steward_keys_file: stewards.pub}", 1))
	s.serve(t)
	run(sam, "noisegate policy apply people.yaml", 0, "version 2 applied")
	run(sam, "noisegate audit tail -n 5", 0, "two stewards for bounds, cap, domain, public, unit", "eve=")

	// A change of a bound. The one who signs sees what changes, and what is signed.
	write(t, filepath.Join(s.dir, "people.yaml"), strings.Replace(two, "[0, 100]", "[0, 90]", 1))
	run(sam, "noisegate policy apply people.yaml", 4, "it takes a second steward's signature (noisegate policy sign), for: bounds",
		"one steward alone does not make this change")
	run(sam, "noisegate policy apply --config noisegate.yaml people.yaml", 4, "one steward alone does not make this change")
	run(eve, shown("noisegate policy sign people.yaml --key eve.key --as eve --for sam > approval.json"), 0,
		"tables.people.columns.age.bounds", "replaces version: 2\n", "proposer: \"sam\"\napprover: \"eve\"\n")
	run(eve, "noisegate policy apply people.yaml --approval approval.json", 4, "it was signed for a change that somebody else proposes")
	run(sam, shown("noisegate policy apply people.yaml --approval approval.json"), 0, "version 3 applied")

	// With the configuration, where no token says who applies.
	write(t, filepath.Join(s.dir, "people.yaml"), strings.Replace(two, "[0, 100]", "[0, 80]", 1))
	run(sam, "noisegate policy apply people.yaml --approval approval.json", 4, "policy/signature")
	run(eve, "noisegate policy sign people.yaml --config noisegate.yaml --key eve.key --as eve --for sam > approval.json", 0, "approver")
	run("", "noisegate policy apply --config noisegate.yaml people.yaml --approval approval.json", 2, "needs --key too")
	run("", "noisegate policy apply --config noisegate.yaml people.yaml --approval approval.json --key eve.key", 4,
		"the proposer did not sign it")
	run("", shown("noisegate policy apply people.yaml --config noisegate.yaml --approval approval.json --key sam.key"), 0, "version 4 applied")

	// A cap.
	const account = "people analyst:ana"
	run(sam, "noisegate budget set "+account+" --form pure --epsilon 3 --replace", 3, "a second steward signs")
	run(sam, "noisegate budget refill "+account+" --epsilon 1 --key sam.key", 3, "a second steward signs")
	run(eve, shown("noisegate budget set "+account+" --epsilon 200000 --key eve.key --as eve --for sam > limit.json"), 0, "limit before: ",
		"limit afterwards: approx, epsilon 200000")
	run(sam, "noisegate budget set "+account+" --epsilon 300000 --signature limit.json", 3, "budget/signature")
	run(sam, shown("noisegate budget set "+account+" --epsilon 200000 --signature limit.json"), 0, "epsilon 200000")
	signs := shown("noisegate budget refill " + account + " --epsilon 1 --key eve.key --as eve --for sam > refill.json")
	run(eve, signs, 0, "noisegate refill/3\nledger: \"")
	run(sam, shown("noisegate budget refill "+account+" --epsilon 1 --signature refill.json"), 0, "epsilon 200001")
	run(sam, "noisegate budget refill "+account+" --epsilon 1 --signature refill.json", 3, "budget/signature")

	// A key that is taken out of the file is not believed after the signal, and the chain says so first.
	write(t, filepath.Join(s.dir, "both.pub"), read(t, filepath.Join(s.dir, "stewards.pub")))
	run("", "sed -n '/steward: sam/,/END/p' both.pub > stewards.pub", 0, "")
	s.exec(t, control, "REVOKE INSERT ON noisegate.entry FROM noisegate") // now the chain takes none, as in a failover
	s.hangUp(t, "they cannot be entered in the chain yet")
	s.exec(t, control, "GRANT INSERT ON noisegate.entry TO noisegate")
	const counts = "are in its chain, and count"
	for deadline := time.Now().Add(reloadPatience); !strings.Contains(s.log.String(), counts); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the keys are not in the chain within %s:\n%s", reloadPatience, s.log.String())
		}
	}
	run(sam, "noisegate audit tail -n 1", 0, "keys of stewards: sam=")
	run(eve, signs, 0, "noisegate refill/3\nledger: \"")
	run(sam, "noisegate budget refill "+account+" --epsilon 1 --signature refill.json", 3, "budget/signature")

	// What is in the chain is checked without the gateway.
	run(sam, "noisegate audit verify --steward-keys both.pub", 0, "of 1 refills 1 signed",
		"of versions of the policy and limits 3 have a second steward's signature")
	run(sam, "noisegate audit verify --steward-keys stewards.pub", 1, "the stewards who are said to have signed it did not")
	s.exec(t, control, `SET session_replication_role = replica; UPDATE noisegate.entry SET account = replace(account::text, '"approver":"eve"',
		'"approver":"sam"')::json WHERE kind = 'policy'`)
	run(sam, "noisegate audit verify --steward-keys both.pub", 1, "BROKEN")
}
