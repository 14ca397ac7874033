// Package each keeps memories that questions fill, one for each analyst. What others ask neither fills nor empties what an analyst finds in
// theirs, so that its time reveals nothing of others' past. It does not know what is remembered.
package each

import "sync"

// most limits the number of analysts with a memory: those that asked last.
const most = 256

// Analyst is a T for each analyst, whose zero value is an empty memory. Its zero value is ready; it is safe for concurrent use, if T is.
type Analyst[T any] struct {
	mu    sync.Mutex
	by    map[string]*turn[T]
	turns int64
}

type turn[T any] struct {
	last int64 // when the analyst asked last
	of   *T
}

// Of returns the memory of an analyst, by subject. A new one is empty, and replaces that of the analyst who asked longest ago.
func (a *Analyst[T]) Of(subject string) *T {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns++
	known := a.by[subject]
	if known == nil {
		known = a.enter(subject)
	}
	known.last = a.turns
	return known.of
}

func (a *Analyst[T]) enter(subject string) *turn[T] {
	if len(a.by) >= most {
		longest := ""
		for name, t := range a.by {
			if longest == "" || t.last < a.by[longest].last {
				longest = name
			}
		}
		delete(a.by, longest)
	}
	if a.by == nil {
		a.by = make(map[string]*turn[T])
	}
	made := &turn[T]{of: new(T)}
	a.by[subject] = made
	return made
}
