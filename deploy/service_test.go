package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// TestServiceUnit: systemd reads every line of the unit and misses nothing in it, and finds it as closed as it can be said to be: an
// exposure of at most 2.0 of 10.
func TestServiceUnit(t *testing.T) {
	pgtest.Need(t, "apt-get install systemd", "systemd-analyze")
	text, err := os.ReadFile("noisegate.service")
	if err != nil {
		t.Fatal(err)
	}
	const program = "ExecStart=/usr/local/bin/noisegate "
	if strings.Count(string(text), program) != 1 {
		t.Fatalf("the unit does not start %q", program)
	}
	self, err := os.Executable() // systemd looks whether what is started can be
	if err != nil {
		t.Fatal(err)
	}
	analyze := func(unit string, args ...string) (string, error) {
		path := filepath.Join(t.TempDir(), "noisegate.service")
		if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", append(args, path)...).CombinedOutput()
		return string(out), err
	}
	unit := strings.Replace(string(text), program, "ExecStart="+self+" ", 1)
	verify, security := []string{"verify", "--man=no"}, []string{"security", "--offline=yes", "--no-pager", "--threshold=20"}
	if out, err := analyze(unit, verify...); err != nil || out != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := analyze(unit, security...); err != nil {
		t.Errorf("more exposed than 2.0: %v\n%s", err, out)
	}
	// Both find what they are for.
	if out, err := analyze(strings.Replace(unit, "NoNewPrivileges", "NoNewPrivilege", 1), verify...); err == nil && out == "" {
		t.Error("systemd-analyze verify does not see a misspelt line")
	}
	if _, err := analyze(strings.ReplaceAll(unit, "\nProtect", "\n#Protect"), security...); err == nil {
		t.Error("systemd-analyze security does not see that the protections are gone")
	}
}
