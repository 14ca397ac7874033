package server

import (
	"os"
	"runtime"
	"syscall"

	"noisegate.example/cmd/noisegate/internal/config"
)

// clientDescriptors is how many connections clients may have: half of the files that this process may have open. The
// other half is for databases, and for the anchor.
func clientDescriptors() int {
	const unlimited = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimited
	}
	return int(min(limit.Cur/2, unlimited))
}

// LeaveRoom lets more goroutines run at a time than there are processors: as many more as there are places. Requests
// compute for seconds (a plan of 100 lines, a bound on the error), and where they hold every one of the scheduler's
// processors, it looks every 10 ms whether an answer came from a database, of which an answer needs about a dozen. With
// room left, the operating system shares the time out, and wakes who waits for a database at once. An operator's own
// GOMAXPROCS stays.
func LeaveRoom(c *config.Config) error {
	if os.Getenv("GOMAXPROCS") != "" { //nolint:forbidigo // a variable of the Go runtime, not of Noisegate
		return nil
	}
	fairness, err := c.Fairness()
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + fairness.Places)
	return nil
}
