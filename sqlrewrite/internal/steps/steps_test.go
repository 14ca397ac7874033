package steps_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/steps"
)

func down(n *steps.Count, levels int) int {
	defer steps.Visit(n).Leave()
	if levels == 1 {
		return 1
	}
	return 1 + down(n, levels-1)
}

func TestLimits(t *testing.T) {
	deep := func(levels int) error {
		_, err := steps.Run(t.Context(), func(n *steps.Count) (int, error) { return down(n, levels), nil })
		return err
	}
	long := func(visits int) error {
		_, err := steps.Run(t.Context(), func(n *steps.Count) (int, error) {
			for range visits {
				down(n, 1)
			}
			return n.Visits(), nil
		})
		return err
	}
	chained := func(links int) error {
		_, err := steps.Run(t.Context(), func(n *steps.Count) (int, error) {
			var next func(left int)
			next = func(left int) {
				defer steps.Visit(n).Leave()
				if left > 0 {
					n.Chained(func() { next(left - 1) })
				}
			}
			next(links)
			return down(n, steps.MaxDepth), nil // each link has left
		})
		return err
	}
	for name, c := range map[string]struct {
		err     error
		refused bool
	}{
		"depth": {deep(steps.MaxDepth), false}, "one level more": {deep(steps.MaxDepth + 1), true},
		"visits": {long(steps.MaxVisits), false}, "one visit more": {long(steps.MaxVisits + 1), true},
		"a chain": {chained(10 * steps.MaxDepth), false},
	} {
		if refused := fault.CodeOf(c.err) == fault.CodeTooComplex; refused != c.refused || !refused && c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// Whoever hangs up ends planning soon, with the error of its context; another error or panic of what plans is as it was.
func TestEndings(t *testing.T) {
	gone, hangUp := context.WithCancel(t.Context())
	visits := 0
	_, err := steps.Run(gone, func(n *steps.Count) (int, error) {
		for {
			if visits++; visits == 1000 {
				hangUp()
			}
			down(n, 1)
		}
	})
	if !errors.Is(err, context.Canceled) || visits > 2000 {
		t.Errorf("%v after %d visits", err, visits)
	}
	_, err = steps.Run(t.Context(), func(n *steps.Count) (int, error) {
		for {
			down(n, 1)
		}
	})
	if fault.CodeOf(err) != fault.CodeTooComplex {
		t.Errorf("without end: %v", err)
	}
	own := errors.New("own")
	if _, err := steps.Run(t.Context(), func(*steps.Count) (int, error) { return 0, own }); !errors.Is(err, own) {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r != "own" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, _ = steps.Run(t.Context(), func(*steps.Count) (int, error) { panic("own") })
}

// What recovers from panics on the way lets an ending pass; after planning, and where nothing is planned, visits are free.
func TestPassing(t *testing.T) {
	var kept *steps.Count
	_, err := steps.Run(t.Context(), func(n *steps.Count) (int, error) {
		kept = n
		defer func() { steps.Passes(recover()) }()
		return down(n, steps.MaxDepth+1), nil
	})
	if fault.CodeOf(err) != fault.CodeTooComplex {
		t.Error(err)
	}
	for _, n := range []*steps.Count{kept, nil} {
		if levels := down(n, 2*steps.MaxDepth); levels != 2*steps.MaxDepth {
			t.Error(levels)
		}
	}
}

// A text that takes longer than a machine should is refused, and one that is planned for a proof is not.
func TestClock(t *testing.T) {
	for _, proof := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if proof {
				ctx = steps.WithoutClock(ctx)
			}
			_, err := steps.Run(ctx, func(n *steps.Count) (int, error) {
				time.Sleep(2 * steps.MaxTime)
				for range 1000 {
					down(n, 1)
				}
				return n.Visits(), nil
			})
			if refused := fault.CodeOf(err) == fault.CodeTooComplex; refused == proof || !refused && err != nil {
				t.Errorf("for a proof %v: %v", proof, err)
			}
		})
	}
}
