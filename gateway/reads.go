package gateway

import (
	"context"
	"sync"
	"time"

	"noisegate.example/budget"
)

// reader is who reads public tables of a dataset, under which version of its policy.
type reader struct {
	dataset, analyst string
	version          int64
}

// freeReads are how often public tables were read on a day, so that the journal has entries of it without having one for
// each read. An entry is written before the reads that it counts: one for the first, and then, whenever all that were
// written are used up, one for as many again. So a crash takes no read out of the journal, the sum of a day is less than
// twice what was read since the gateway started, and a day's entries of an analyst are as few as the digits of that number
// in binary, whatever they do: the journal cannot be filled by reading.
type freeReads struct {
	mu  sync.Mutex
	day string
	by  map[reader]*readCount
}

// dayOf is the day of a time, which is all of it that questions can name.
func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// readCount is guarded by its own lock, which is held while an entry is written.
type readCount struct {
	mu          sync.Mutex
	used, taken int64
}

// of finds the count of a reader on a day. Counts of the day before are forgotten.
func (f *freeReads) of(who reader, day string) *readCount {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.day != day {
		f.day, f.by = day, map[reader]*readCount{}
	}
	c := f.by[who]
	if c == nil {
		c = &readCount{}
		f.by[who] = c
	}
	return c
}

// counted counts what a question reads of public tables, once.
func (s *Service) counted(ctx context.Context, q *prepared) error {
	if q.read == nil {
		err := s.countRead(ctx, q.reader)
		q.read = &err
	}
	return *q.read
}

// countRead counts one read of public tables, in the journal before it happens. Without the ledger nothing is read.
func (s *Service) countRead(ctx context.Context, who reader) error {
	day := dayOf(s.clock.Now())
	c := s.reads.of(who, day)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == c.taken {
		more := max(1, c.taken)
		_, err := within(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.chain.RecordFreeReads(ctx, budget.FreeReads{Dataset: who.dataset, Analyst: who.analyst, Day: day,
				Version: who.version, Reads: more})
		})
		if err != nil {
			return err
		}
		c.taken += more
	}
	c.used++
	return nil
}
