package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"noisegate.example/internal/fault"
)

// The largest bodies of each kind of request, bytes. Votes are read as they come and are not kept ([maxVotes]).
const (
	maxLogin  = 8 << 10  // of a code to log in with
	maxBody   = 64 << 10 // of a query
	maxLarge  = 1 << 20  // of a policy file, of a batch of reports
	maxLarger = 4 << 20  // of labels: 100,000 names, or 10,000 with a student's probabilities; of a domain of 10,000 names
)

// What bodies may take in memory at a time, from their first byte until their answers are sent: all together, and those of one caller,
// whose share holds the longest body that there is. Each caller may have the body of a query whatever others take, so that they cannot
// keep anybody out. A body takes up to twelve times its length while it is decoded.
const (
	maxBodies       = 32 << 20
	maxCallerBodies = maxLarger + maxLarge
	ownBodies       = maxBody + 1
)

// bodyBudget counts the bytes of the bodies of all requests in flight; the zero value has none.
type bodyBudget struct {
	mu  sync.Mutex
	all int64
	of  map[string]int64
}

// take counts n more bytes for a caller, who gives them back later.
func (b *bodyBudget) take(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[caller]+n > maxCallerBodies:
		return fault.RequestBodiesOpen(maxCallerBodies)
	case b.all+n > maxBodies && b.of[caller]+n > ownBodies:
		return fault.RequestOverloaded(maxBodies)
	}
	if b.of == nil {
		b.of = map[string]int64{}
	}
	b.all, b.of[caller] = b.all+n, b.of[caller]+n
	return nil
}

func (b *bodyBudget) give(caller string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	if b.of[caller] -= n; b.of[caller] == 0 {
		delete(b.of, caller)
	}
}

// firstPiece is what is set aside for a body before its first byte: who announces much and sends nothing takes no more.
const firstPiece = 4 << 10

// readBody reads a body up to a limit. What it takes counts until the exchange ends.
func (x *exchange) readBody(limit int64) ([]byte, error) {
	if x.r.ContentLength > limit {
		return nil, fault.RequestTooLarge("the body", limit)
	}
	from := http.MaxBytesReader(x.w, x.r.Body, limit)
	var text []byte
	for {
		if len(text) == cap(text) {
			more := min(max(firstPiece, int64(len(text))), limit+1-int64(len(text))) // beyond the limit MaxBytesReader says so
			if err := x.bodies.take(x.who.Subject, more); err != nil {
				return nil, err
			}
			x.taken += more
			text = append(make([]byte, 0, int64(len(text))+more), text...)
		}
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case err == io.EOF:
			return text, nil
		case errors.As(err, &tooLarge):
			return nil, fault.RequestTooLarge("the body", limit)
		case err != nil:
			return nil, fault.RequestBody("broke off").WithCause(err)
		}
	}
}
