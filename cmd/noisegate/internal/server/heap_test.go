package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// While little is alive the collector spares spareHeap, while much is it doubles the heap, and in the end it is as it was.
func TestSpareHeap(t *testing.T) {
	before := debug.SetGCPercent(goPercent) // as where nobody set GOGC: make test sets it
	defer debug.SetGCPercent(before)
	gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	until := func(what string, right func(percent uint64) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			runtime.GC()
			metrics.Read(gogc)
			if right(gogc[0].Value.Uint64()) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: GOGC is %d", what, gogc[0].Value.Uint64())
			}
			time.Sleep(time.Millisecond)
		}
	}
	end := keepSpare()
	until("little is alive", func(percent uint64) bool { return percent > 150 })
	much := make([]byte, 2*spareHeap)
	until("much is alive", func(percent uint64) bool { return percent == 100 })
	runtime.KeepAlive(much)
	until("little is alive again", func(percent uint64) bool { return percent > 150 })
	end()
	until("it has ended", func(percent uint64) bool { return percent == 100 })
}
