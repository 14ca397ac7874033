package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/api"
)

// as runs a command of the binary with somebody's token, and gives what it printed and its exit code.
func (s *stack) as(t *testing.T, token string, args ...string) (output string, code int) {
	t.Helper()
	cmd := s.command(args...)
	cmd.Env = append(cmd.Env, "NOISEGATE_URL="+s.url, "NOISEGATE_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// receipt asks a question and gives the receipt of its answer.
func (s *stack) receipt(t *testing.T, token string, i int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/query",
		strings.NewReader(body(t, question(i).SQL)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Noisegate-Receipt") == "" {
		t.Fatalf("%s, receipt %q", response.Status, response.Header.Get("Noisegate-Receipt"))
	}
	return response.Header.Get("Noisegate-Receipt")
}

// TestAuditVerify exports the journal of a gateway and checks it offline: chain, receipts, and each way to falsify them.
//
// covers: A70 F12 F13
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	ana, sam := s.token(t, "ana", "analyst"), s.token(t, "sam", "steward")
	var receipts strings.Builder
	for i := range 5 {
		fmt.Fprintln(&receipts, s.receipt(t, ana, i))
	}
	early := filepath.Join(s.dir, "early.ndjson")
	if out, code := s.as(t, sam, "audit", "export", "--out", early); code != 0 {
		t.Fatal(out)
	}
	fmt.Fprintln(&receipts, s.receipt(t, ana, 5))
	receiptFile := filepath.Join(s.dir, "receipts.ndjson")
	write(t, receiptFile, receipts.String())
	if out, code := s.as(t, sam, "audit", "verify"); code != 0 || !strings.Contains(out, "people: 16 entries") {
		t.Errorf("the running gateway's ledger: %d, %s", code, out)
	}
	export, code := s.as(t, sam, "audit", "export")
	if code != 0 || strings.Count(export, "\n") != 18 {
		t.Fatalf("%d, %s", code, export)
	}
	verify := func(export string, more ...string) (string, int) {
		file := filepath.Join(t.TempDir(), "export.ndjson")
		write(t, file, export)
		return s.as(t, "", append([]string{"audit", "verify", file, "--receipts", receiptFile, "--public-key",
			filepath.Join(s.dir, "receipts.pub")}, more...)...)
	}
	if out, code := verify(export); code != 0 || !strings.Contains(out, "6 receipts hold\n") {
		t.Errorf("%d, %s", code, out)
	}
	if out, code := verify(strings.Replace(export, `"epsilon":"0.1"`, `"epsilon":"0.01"`, 1)); code != 1 ||
		!strings.Contains(out, "not what was signed") {
		t.Errorf("a signed export that was changed: %d, %s", code, out)
	}
	unsigned := func(export string) string { return export[:strings.LastIndex(export[:len(export)-1], "\n")+1] }
	if export = unsigned(export); !strings.Contains(export, "ledger") {
		t.Fatal(export)
	}
	if out, code := verify(export); code != 1 || !strings.Contains(out, "not signed") {
		t.Errorf("without its signature: %d, %s", code, out)
	}
	lines := strings.SplitAfter(export, "\n")
	for name, falsified := range map[string]string{
		"an amount":           strings.Replace(export, `"epsilon":"0.1"`, `"epsilon":"0.01"`, 1),
		"a name":              strings.Replace(export, `"subject":"ana"`, `"subject":"eve"`, 1),
		"an account's limit":  strings.Replace(export, `epsilon_pico`, `epsilon_pic0`, 1),
		"a line less":         strings.Join(append(append([]string{}, lines[:6]...), lines[7:]...), ""),
		"two lines exchanged": strings.Join(append(append([]string{}, lines[:4]...), append([]string{lines[5], lines[4]}, lines[6:]...)...), ""),
		"a stored policy":     strings.Replace(export, `"applied_by":"`, `"applied_by":"e`, 1),
		"an older ledger":     unsigned(read(t, early)),
		"no end":              strings.Join(lines[:len(lines)-2], ""),
	} {
		if falsified == export {
			t.Fatalf("%s: nothing was changed", name)
		}
		if out, code := verify(falsified, "--unsigned"); code != 1 && (name != "no end" || code == 0) ||
			name != "no end" && !strings.Contains(out, "BROKEN") {
			t.Errorf("%s: %d, %s", name, code, out)
		}
	}
	s.exec(t, control, "SET session_replication_role = replica; UPDATE noisegate.policy SET document = document || ' '")
	if out, code := s.as(t, sam, "audit", "verify"); code != 1 || !strings.Contains(out, "version 1 of the policy is not as it was applied") {
		t.Errorf("an edited policy: %d, %s", code, out)
	}
	forged := strings.Replace(receipts.String(), `"head":`, `"seq":1,"head":`, 1)
	write(t, receiptFile, forged)
	if out, code := verify(export, "--unsigned"); code != 1 || !strings.Contains(out, "signature does not match") {
		t.Errorf("a forged receipt: %d, %s", code, out)
	}
}

// stop ends the gateway in an orderly way, so that it writes its anchor.
func (s *stack) stop(t *testing.T) {
	t.Helper()
	if err := s.gateway.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := <-s.exited
	s.exited <- err
	if err != nil {
		t.Fatal(err)
	}
}

// TestStewardsCommands walks through what a steward types.
func TestStewardsCommands(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	ana, sam := s.token(t, "ana", "analyst"), s.token(t, "sam", "steward")
	for i := range 3 {
		s.receipt(t, ana, i)
	}
	for _, step := range []struct {
		command string
		want    string // a pattern
	}{
		{"budget set people analyst:ana --replace --form pure --epsilon 100 --tranche-every 30d --tranche-epsilon 0.5 " +
			"--rate-epsilon 5 --rate-per 1m",
			`analyst:ana \| 60 % .* epsilon 0\.2 +\| pure epsilon 100, 0\.5 each 30d, at most 5 in 1m .*\| epsilon 100 +\| epsilon 6\.5\n` +
				`.*about 2 more counts at epsilon 0\.1, and more from`},
		{"budget refill people analyst:ana --epsilon 50 --reason second-study", `pure epsilon 150`},
		{"budget freeze people analyst:ana", `frozen by a steward`},
		{"budget thaw people analyst:ana", `about 2 more counts`},
		{"budget history people analyst:ana", `(?s)limit .*reserve .*ana .* 0\.1 .*settle.* 0\.3 .*refill .*sam.*freeze.*thaw`},
		{"budget forecast people analyst:ana", `(?s)epsilon 0\.042858 a day in the last 7 days\n.* now .*\| +2 \| used up .* at this pace the cap lasts until`},
		{"budget show people --accounts", `dataset .*approx epsilon 100000`},
		{"audit tail -n 2", `(?s)freeze.*thaw`},
	} {
		out, code := s.as(t, sam, strings.Fields(step.command)...)
		if code != 0 || !regexp.MustCompile(step.want).MatchString(out) {
			t.Errorf("%s: %d\n%s", step.command, code, out)
		}
	}
	// Below what is spent: allowed, and blocks.
	if out, code := s.as(t, sam, "budget", "set", "people", "analyst:ana", "--replace", "--form", "pure", "--epsilon", "0.2"); code != 0 {
		t.Error(out)
	}
	if p := refusal(t, api.NewClient(s.url, ana), question(10)); p.Code != "budget/exhausted" {
		t.Errorf("got %v", p)
	}
}
