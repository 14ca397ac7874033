package pgexec_test

import (
	"syscall"
	"testing"
)

// kill ends a process of a server that this test started.
func kill(t *testing.T, process int) {
	t.Helper()
	if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
