package server

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

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

// LeaveRoom looks at intervals of roomLook whether processors are too few, makes room after roomAfter such looks in a row, and keeps it for
// roomKept looks.
const (
	roomLook  = 25 * time.Millisecond
	roomAfter = 8
	roomKept  = 120
)

// LeaveRoom lets more goroutines run at a time than there are processors, as many more as there are places, while at
// least as many as there are processors want to run all the time, until the context ends. Requests compute for seconds
// (a plan of 100 lines, a bound on the error), and where they hold every one of the scheduler's processors, it looks
// every 10 ms whether an answer came from a database, and an answer needs about a dozen of these. With room left, the
// operating system shares the time out, and wakes at once the goroutines that wait for a database. Where nobody computes for long, a
// scheduler with room wakes threads that find nothing to do. An operator's own GOMAXPROCS stays.
func LeaveRoom(ctx context.Context, c *config.Config) error {
	if os.Getenv("GOMAXPROCS") != "" { //nolint:forbidigo // a variable of the Go runtime, not of Noisegate
		return nil
	}
	fairness, err := c.Fairness()
	if err != nil {
		return err
	}
	r := room{processors: runtime.GOMAXPROCS(0), places: fairness.Places, set: func(n int) { runtime.GOMAXPROCS(n) }}
	go func() {
		looks := time.NewTicker(roomLook)
		defer looks.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-looks.C:
				r.look(wanting())
			}
		}
	}()
	return nil
}

// room sets how many goroutines run at a time.
type room struct {
	processors, places int
	set                func(int) // stops the world for a moment
	few                int       // looks in a row at which processors were too few
	left               int       // looks for which there is still room
}

// look takes the number of goroutines that want to run.
func (r *room) look(wanting int) {
	if r.few++; wanting < r.processors {
		r.few = 0
	}
	switch {
	case r.few >= roomAfter:
		if r.left == 0 {
			r.set(r.processors + r.places)
		}
		r.left = roomKept
	case r.left > 0:
		if r.left--; r.left == 0 {
			r.set(r.processors)
		}
	}
}

// wanting counts the goroutines that run or could run, except its caller.
func wanting() int {
	states := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(states)
	return int(states[0].Value.Uint64()+states[1].Value.Uint64()) - 1
}
