package server

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestRoomWhileProcessorsAreFew: there is room once the processors were too few at roomAfter looks without a break, until they were not for
// roomKept looks, and the scheduler is set twice for that.
func TestRoomWhileProcessorsAreFew(t *testing.T) {
	var set []int
	r := room{processors: 4, places: 16, set: func(n int) { set = append(set, n) }}
	look := func(wanting, times int) {
		for range times {
			r.look(wanting)
		}
	}
	for range 5 {
		look(9, roomAfter-1)
		look(3, 1)
	}
	if set != nil {
		t.Errorf("set to %v while the processors were enough now and then", set)
	}
	look(4, roomAfter+3)
	look(0, roomKept-roomAfter)
	look(5, roomAfter)
	look(0, roomKept-1)
	if want := []int{20}; !slices.Equal(set, want) {
		t.Errorf("set to %v while they were too few now and then, want %v", set, want)
	}
	look(0, 5)
	if want := []int{20, 4}; !slices.Equal(set, want) {
		t.Errorf("set to %v, want %v", set, want)
	}
}

// TestWanting: goroutines that compute want to run, also where there are more of them than run at a time, and those that wait do not.
func TestWanting(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 3 * runtime.GOMAXPROCS(0)
	for range n {
		go func() {
			for ctx.Err() == nil { //nolint:revive // it computes
			}
		}()
	}
	for deadline := time.Now().Add(20 * time.Second); wanting() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines compute, and %d want to run", n, wanting())
		}
	}
	stop()
	for deadline := time.Now().Add(20 * time.Second); wanting() >= n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines want to run when none computes", wanting())
		}
	}
}
