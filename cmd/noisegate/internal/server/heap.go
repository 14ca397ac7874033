package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// spareHeap is the least that may be allocated between two garbage collections, in bytes. By itself the collector runs whenever the heap
// has doubled: the gateway's is small, and a sixth of its processor time went there.
const spareHeap = 64 << 20

// goPercent is the default of GOGC.
const goPercent = 100

// collected is let go of at once, and so cleaned up after each collection.
type collected struct{ _ *int }

// keepSpare has the collector leave spareHeap, or as much as is alive where that is more, until end is called. A limit of memory
// (GOMEMLIMIT) holds whatever is spared; GOGC is left alone where it is set.
func keepSpare() (end func()) {
	live, percent := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(percent); percent[0].Value.Uint64() != goPercent {
		return func() {}
	}
	done := make(chan struct{})
	var again func(int)
	again = func(now int) {
		select {
		case <-done:
			debug.SetGCPercent(goPercent)
			return
		default:
		}
		metrics.Read(live)
		percent := max(goPercent, int(spareHeap*100/max(live[0].Value.Uint64(), 1<<20)))
		if percent > now+now/8 || percent < now-now/8 { // setting it stops the world for a moment
			debug.SetGCPercent(percent)
			now = percent
		}
		runtime.AddCleanup(&collected{}, again, now)
	}
	again(goPercent)
	return func() { close(done) }
}
