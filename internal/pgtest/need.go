package pgtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ServersEnv names the environment variable that has tests start PostgreSQL under -short too: make race and make alone set
// it to 1.
const ServersEnv = "NOISEGATE_SERVERS"

// NeedServer skips a test under -short: PostgreSQL takes most of the time of all tests. What gives a database or a server
// calls it; so does a test that asks for one in another goroutine, which cannot skip the test, or starts one without this
// package.
func NeedServer(t testing.TB) {
	t.Helper()
	if testing.Short() && os.Getenv(ServersEnv) != "1" { //nolint:forbidigo // as in Missing
		t.Skip("-short: it starts PostgreSQL")
	}
}

// Need ends a test that follows a page of the documentation with programs that the page's readers have, and tests
// otherwise do without: psql, curl, Python. Where one is missing the test is skipped with the line that installs it; in
// CI, which skips nothing, it fails.
func Need(t testing.TB, install string, programs ...string) {
	t.Helper()
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		Missing(t, install, strings.Join(missing, ", "))
	}
}

// Missing is [Need] for what no look at PATH finds.
func Missing(t testing.TB, install, what string) {
	t.Helper()
	if os.Getenv("CI") != "" { //nolint:forbidigo // this package is test equipment; no product imports it
		t.Fatalf("%s is not installed: %s", what, install)
	}
	t.Skipf("%s is not installed, and only this test needs it: %s", what, install)
}

// Without ends a test of a client that many machines lack: it is skipped with the line that installs it, in CI too, where packages are
// installed as far as the machine's package manager can.
func Without(t testing.TB, install, what string) {
	t.Helper()
	t.Skipf("%s is not installed, and only this test needs it: %s", what, install)
}
