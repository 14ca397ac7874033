package pgledger

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
)

// known is each dataset's accounts by the entries alone, from what this process verified on. Each look at the ledger compares what it loads
// with that, so that the first charge that an edited balance or limit would serve finds it, and not only the next verification. Decisions
// from the cache need no comparison: they write what they know over an edit.
type known struct {
	mu        sync.Mutex
	byDataset map[string]*following
}

// following is what is known of one dataset. Its lock is held while entries are read: only that dataset waits.
type following struct {
	mu sync.Mutex
	is *journal.Followed // nil: nothing is known
}

// of is what is known of a dataset.
func (k *known) of(dataset string) *following {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byDataset == nil {
		k.byDataset = map[string]*following{}
	}
	if k.byDataset[dataset] == nil {
		k.byDataset[dataset] = &following{}
	}
	return k.byDataset[dataset]
}

// verified takes over a state that was verified, if it is newer.
func (k *known) verified(s journal.Replayed) {
	f := k.of(s.Head.Dataset)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == nil || f.is.State.Head.Seq < s.Head.Seq {
		f.is = journal.Follow(s.Clone())
	}
}

// drawn is how many slots of plans were drawn up to an entry; 0: nothing is known.
func (k *known) drawn(dataset string) (followed int64, drawn map[budget.ReservationID]int) {
	f := k.of(dataset)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == nil {
		return 0, nil
	}
	drawn = map[budget.ReservationID]int{}
	for id, p := range f.is.State.Plans {
		if p.Drawn > 0 {
			drawn[id] = p.Drawn
		}
	}
	return f.is.State.Head.Seq, drawn
}

// wrote follows entries that are committed, unless they must not be told: then it gives the error. Both are one step for [known.drawn].
// Those that do not follow upon what is known are read when it is next looked.
func (k *known) wrote(began budget.Head, lines []machine.Line, acknowledge func() error) error {
	f := k.of(began.Dataset)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := acknowledge(); err != nil || f.is == nil || f.is.State.Head != began {
		return err
	}
	for i := range lines {
		if what := f.is.Add(lines[i].Entry); what != "" {
			f.is = nil // the next verification says what is wrong
			break
		}
	}
	return nil
}

// forget drops a dataset that lost entries, until it is verified again.
func (k *known) forget(dataset string) {
	f := k.of(dataset)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.is = nil
}

// agrees compares what a transaction loaded with what is known, once entries that others wrote are followed.
func (p *Ledger) agrees(ctx context.Context, s *transaction) error {
	f := p.known.of(s.dataset)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == nil {
		return nil
	}
	if f.is.State.Head != s.head {
		if err := p.acknowledge(s); err != nil { // what is followed is looked for on another server as well
			return err
		}
		if err := p.catchUp(ctx, s, f.is); err != nil {
			return err
		}
	}
	if what := f.is.Agrees(s.machine.Accounts, s.named()); what != "" {
		return p.stop(&journal.BrokenError{Dataset: s.dataset, What: what})
	}
	return nil
}

// catchUp reads the entries that were written since, in the transaction that has the dataset's lock.
func (p *Ledger) catchUp(ctx context.Context, s *transaction, f *journal.Followed) error {
	rows, err := s.conn.Query(ctx, sqlChain, s.dataset, f.State.Head.Seq)
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, scanChained)
	if err != nil {
		return err
	}
	chain := journal.NewChain(f.State.Head)
	for _, e := range entries {
		if err := chain.Add(e); err != nil {
			return p.stopped(err)
		}
		if what := f.Add(e); what != "" {
			return p.stop(&journal.BrokenError{Dataset: s.dataset, Seq: e.Seq, What: what})
		}
	}
	return p.stopped(chain.EndsAt(s.head))
}

// stop notes that a dataset's ledger is broken.
func (p *Ledger) stop(broken *journal.BrokenError) error {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return p.heads.breaks(broken)
}

// stopped is [Ledger.stop] of an error of a chain; nil for none.
func (p *Ledger) stopped(err error) error {
	var broken *journal.BrokenError
	if errors.As(err, &broken) {
		return p.stop(broken)
	}
	return err
}

// named are the accounts that the operations name.
func (s *transaction) named() (all []budget.AccountID) {
	for _, op := range s.batch {
		all = append(all, op.accounts...)
		if op.open != nil {
			all = append(all, op.open.accounts...)
		}
	}
	return all
}
