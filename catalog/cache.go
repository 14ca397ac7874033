package catalog

import (
	"sync"
	"sync/atomic"

	"noisegate.example/internal/fault"
)

// Cache is the snapshot cache: it keeps the policies in force in memory, one per dataset, for readers that must not wait.
// Its zero value has none and is ready for use.
type Cache struct {
	datasets sync.Map // of dataset names to *atomic.Pointer[held]
}

// held is what is in force, and why it must not be used (nil: it may).
type held struct {
	revision *Revision
	stale    error
}

// Put makes a revision the one in force, unless a later one is there already.
func (h *Cache) Put(r *Revision) {
	cell, _ := h.datasets.LoadOrStore(r.Snapshot.Dataset, &atomic.Pointer[held]{})
	p := cell.(*atomic.Pointer[held])
	next := &held{revision: r}
	for {
		was := p.Load()
		if was != nil && was.revision.Snapshot.Version > r.Snapshot.Version || p.CompareAndSwap(was, next) {
			return
		}
	}
}

// Replace puts a revision (nil: none) in force instead of was. It does nothing where another one is in force meanwhile.
func (h *Cache) Replace(dataset string, was, r *Revision) {
	cell, _ := h.datasets.LoadOrStore(dataset, &atomic.Pointer[held]{})
	p := cell.(*atomic.Pointer[held])
	is := p.Load()
	if (is == nil) != (was == nil) || is != nil && is.revision != was {
		return
	}
	var next *held
	if r != nil {
		next = &held{revision: r}
	}
	p.CompareAndSwap(is, next)
}

// Mark says whether the tables of a revision still are what its policy was checked against: while stale is not nil, every
// query of the dataset gets it. A mark on a revision that is no longer in force does nothing.
func (h *Cache) Mark(r *Revision, stale error) {
	cell, ok := h.datasets.Load(r.Snapshot.Dataset)
	if !ok {
		return
	}
	p := cell.(*atomic.Pointer[held])
	if was := p.Load(); was != nil && was.revision == r {
		p.CompareAndSwap(was, &held{revision: r, stale: stale})
	}
}

// Snapshot gives the snapshot in force: policy/unknown-dataset when there is none, or what [Cache.Mark] was told.
func (h *Cache) Snapshot(dataset string) (*Snapshot, error) {
	r, err := h.Revision(dataset)
	if err != nil {
		return nil, err
	}
	return r.Snapshot, nil
}

// Revision is [Cache.Snapshot] with the policy and what it was checked against.
func (h *Cache) Revision(dataset string) (*Revision, error) {
	cell, ok := h.datasets.Load(dataset)
	if !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	is := cell.(*atomic.Pointer[held]).Load()
	if is == nil {
		return nil, fault.UnknownDataset(dataset)
	}
	return is.revision, is.stale
}
