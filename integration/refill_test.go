package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignedRefills: where the configuration names keys of stewards, a steward's token alone raises no cap, a signature
// does once, and a file of the journal with the public key proves who allowed what.
func TestSignedRefills(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	ana, sam := s.token(t, "ana", "analyst"), s.token(t, "sam", "steward")
	s.receipt(t, ana, 0)
	keys := make([]string, 2)
	for i, name := range []string{"stella", "mallory"} {
		keys[i] = filepath.Join(s.dir, name+".key")
		public := s.command("budget", "key", keys[i])
		out, err := public.Output()
		if err != nil || !strings.HasPrefix(string(out), "-----BEGIN PUBLIC KEY-----\n") {
			t.Fatal(string(out), err)
		}
		write(t, keys[i]+".pub", string(out))
	}
	if info, err := os.Stat(keys[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	run := func(wantCode int, want string, args ...string) {
		t.Helper()
		if out, code := s.as(t, sam, args...); code != wantCode || !strings.Contains(out, want) {
			t.Errorf("%v: %d\n%s\nwant %d and %q", args, code, out, wantCode, want)
		}
	}
	account := []string{"people", "analyst:ana"}
	budget := func(verb string, flags ...string) []string {
		return append(append([]string{"budget", verb}, account...), flags...)
	}

	// Without keys of stewards the role is enough, and a signature is of no use.
	run(0, "pure epsilon 3", budget("set", "--form", "pure", "--epsilon", "3")...)
	run(2, "has no keys of stewards", budget("refill", "--epsilon", "1", "--key", keys[0])...)
	run(0, "pure epsilon 4", budget("refill", "--epsilon", "1")...)

	s.stop(t)
	write(t, s.config, strings.Replace(read(t, s.config), "quantum: 0s}", "quantum: 0s, steward_keys_file: "+keys[0]+".pub}", 1))
	s.serve(t)
	run(3, "budget/signature", budget("refill", "--epsilon", "1")...)
	run(3, "budget/signature", budget("refill", "--epsilon", "1", "--key", keys[1])...)
	run(3, "budget/signature", budget("set", "--form", "pure", "--epsilon", "4.5")...)
	run(0, "lifetime epsilon afterwards: 5\n", budget("refill", "--epsilon", "1", "--key", keys[0], "--reason", "the second wave")...)
	run(0, "number of the refill: 3\n", budget("refill", "--epsilon", "0.5", "--key", keys[0])...)
	run(0, "pure epsilon 2", budget("set", "--form", "pure", "--epsilon", "2")...)

	export := filepath.Join(s.dir, "export.ndjson")
	run(0, "", "audit", "export", "--out", export)
	run(0, "of 3 refills 2 signed", "audit", "verify", export, "--steward-keys", keys[0]+".pub")
	run(0, "of 3 refills 2 say that they are signed", "audit", "verify", export)
	run(1, "none of the stewards' keys signed it", "audit", "verify", export, "--steward-keys", keys[1]+".pub")
}
