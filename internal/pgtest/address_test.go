package pgtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// What a process was given no other one is, though no server listens on it, and though both look through the ports from the same one on.
func TestAddressesAreGivenOnce(t *testing.T) {
	const count, other = 10, "NOISEGATE_OTHER_PROCESS"
	given := map[string]bool{}
	for range count {
		given[pgtest.FreeAddress(t)] = true
	}
	if os.Getenv(other) != "" {
		for address := range given {
			fmt.Println(address)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAddressesAreGivenOnce$")
	cmd.Env = append(os.Environ(), other+"=1", "TMPDIR="+t.TempDir()) // as some packages do
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(out)) {
		if strings.HasPrefix(line, "127.0.0.1:") {
			given[line] = true
		}
	}
	if len(given) != 2*count {
		t.Errorf("%d addresses for two processes, want %d", len(given), 2*count)
	}
}
