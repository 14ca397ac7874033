package catalog

import (
	"errors"
	"sync"
	"testing"

	"noisegate.example/internal/fault"
)

func revision(dataset string, version int64) *Revision {
	return &Revision{Snapshot: &Snapshot{Dataset: dataset, Version: version}}
}

func TestCache(t *testing.T) {
	var h Cache
	if _, err := h.Snapshot("a"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Errorf("an empty cache: %v", err)
	}
	first, second := revision("a", 1), revision("a", 2)
	h.Put(second)
	h.Put(first) // comes late
	if s, err := h.Snapshot("a"); err != nil || s.Version != 2 {
		t.Errorf("got %v, %v; want the later version", s, err)
	}
	stale := errors.New("stale")
	h.Mark(first, stale) // of a version that is no longer in force
	if _, err := h.Snapshot("a"); err != nil {
		t.Errorf("a mark on an old version took force: %v", err)
	}
	h.Mark(second, stale)
	if s, err := h.Snapshot("a"); !errors.Is(err, stale) || s != nil {
		t.Errorf("got %v, %v; want the mark and no snapshot", s, err)
	}
	if r, err := h.Revision("a"); !errors.Is(err, stale) || r != second {
		t.Errorf("got %v, %v; want the revision, to be checked again, and the mark", r, err)
	}
	h.Mark(second, nil)
	if s, err := h.Snapshot("a"); err != nil || s.Version != 2 {
		t.Errorf("the mark was not taken away: %v, %v", s, err)
	}
	h.Mark(revision("b", 1), stale)
	if _, err := h.Snapshot("b"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Errorf("a mark made a dataset: %v", err)
	}
}

// A revision is replaced, also by an earlier one, where it is still the one in force.
func TestCacheReplace(t *testing.T) {
	var h Cache
	one, two := revision("a", 1), revision("a", 2)
	for i, step := range []struct{ was, is, want *Revision }{
		{nil, nil, nil}, {one, two, nil}, {nil, two, two}, {nil, one, two}, {one, one, two}, {two, one, one}, {two, nil, one}, {one, nil, nil},
	} {
		h.Replace("a", step.was, step.is)
		h.Mark(two, nil)
		if r, err := h.Revision("a"); r != step.want || (err == nil) != (r != nil) {
			t.Errorf("%d: %+v is in force, %v", i, r, err)
		}
	}
}

// TestCacheRaces: readers see versions that only rise, whatever order writers come in.
func TestCacheRaces(t *testing.T) {
	var h Cache
	var writers, readers sync.WaitGroup
	h.Put(revision("a", 1))
	for range 4 {
		readers.Go(func() {
			for last := int64(0); last < 1000; {
				s, err := h.Snapshot("a")
				if err != nil || s.Version < last {
					t.Errorf("version %v after %d: %v", s, last, err)
					return
				}
				last = s.Version
			}
		})
		writers.Go(func() {
			for v := int64(1); v <= 1000; v++ {
				h.Put(revision("a", v))
			}
		})
	}
	writers.Wait()
	readers.Wait()
}
