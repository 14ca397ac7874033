// Package steps bounds what one text can make the planner do: binding, bounding, printing and proving.
//
// It knows numbers and nothing else: not what a visit is of.
package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"noisegate.example/internal/fault"
)

// What planning one text takes at most. The largest text of the corpora takes some hundredth part of the visits; 400 levels of the largest
// functions fit in a thousandth part of the stack that Go gives a goroutine.
const (
	MaxVisits = 2_000_000
	MaxDepth  = 400
	MaxTime   = 2 * time.Second
)

// lookEvery is the number of visits between two checks whether the caller still waits.
const lookEvery = 256

// Count is the work that planning one text has taken so far. It belongs to one goroutine until planning is over; from then on, and where it
// is nil, visits are free: what was paid for is printed and answered whatever it takes. Its zero value counts visits and depth.
type Count struct {
	visits, depth int
	over          bool
	ended         func() error // why nobody waits any longer; nil: somebody does
}

// ending is the panic that ends planning.
type ending struct{ err error }

// Visit counts one visit of what works on a text, and one level until [Count.Leave]. It ends what [Run] or [Bounded] runs when there are
// too many of either, too much time has passed, or nobody waits for the result.
func Visit(n *Count) *Count {
	if n == nil || n.over {
		return n
	}
	n.visits++
	n.depth++
	switch {
	case n.visits > MaxVisits:
		panic(ending{tooComplex(fmt.Sprintf("planning it takes more than %d steps", MaxVisits))})
	case n.depth > MaxDepth:
		panic(ending{tooComplex(fmt.Sprintf("planning it goes more than %d levels deep", MaxDepth))})
	case n.visits%lookEvery == 0 && n.ended != nil:
		if err := n.ended(); err != nil {
			panic(ending{err})
		}
	}
	return n
}

// Leave ends a level.
func (n *Count) Leave() {
	if n != nil && !n.over {
		n.depth--
	}
}

// Chained runs what visits the next link of a chain: a long one, of ANDs or ORs, is one level.
func (n *Count) Chained(next func()) {
	n.Leave()
	next()
	if n != nil && !n.over {
		n.depth++
	}
}

// Visits is the number of visits so far.
func (n *Count) Visits() int { return n.visits }

var errTime = errors.New("planning takes too long")

// timeless marks a context whose planning may take any time.
type timeless struct{}

// WithoutClock gives a context in which [Run] counts steps and levels alone, and [InTime] does not end: whether a text is planned then does
// not depend on what else the machine does. It is for proofs.
func WithoutClock(ctx context.Context) context.Context {
	return context.WithValue(ctx, timeless{}, true)
}

// InTime gives a context that ends after [MaxTime].
func InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(timeless{}) != nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, MaxTime, errTime)
}

// Run plans a text within the limits: beyond them the error is sql/too-complex, and that of ctx where it ended.
func Run[T any](ctx context.Context, plan func(*Count) (T, error)) (T, error) {
	ctx, cancel := InTime(ctx)
	defer cancel()
	return Bounded(&Count{ended: func() error {
		if err := ctx.Err(); err == nil || !errors.Is(context.Cause(ctx), errTime) {
			return err
		}
		return tooComplex(fmt.Sprintf("planning it takes longer than %v", MaxTime))
	}}, plan)
}

// Bounded is [Run] with a count that nothing else has used.
func Bounded[T any](n *Count, plan func(*Count) (T, error)) (made T, err error) {
	defer func() {
		n.over = true
		switch r := recover().(type) {
		case nil:
		case ending:
			var none T
			made, err = none, r.err
		default:
			panic(r)
		}
	}()
	return plan(n)
}

// Passes panics again if the recovered r ends planning; functions that recover from panics call it.
func Passes(r any) {
	if e, ok := r.(ending); ok {
		panic(e)
	}
}

func tooComplex(why string) error {
	return fault.TooComplex(fault.Position{}, "the query is too complex: "+why)
}
