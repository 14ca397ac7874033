package budget

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Memory is a [Ledger] that forgets: for tests, and as the reference that the PostgreSQL ledger is compared with. It gives
// no durability, so nothing that protects data may use it.
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	desk    *desk
	opened  int64   // accounts
	entries []Entry // entries[i].Seq == i+1
	heads   map[string]Head
	shared  map[ReservationID]Shared
}

// NewMemory returns an empty ledger that takes the time from clock.
func NewMemory(clock func() time.Time) *Memory {
	return &Memory{clock: clock, desk: newDesk(), heads: map[string]Head{}}
}

// at lets an operation of one dataset happen on the desk, and takes down what it wrote.
func (m *Memory) at(operation func(*desk) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.clock().UTC().Truncate(time.Microsecond); now.After(m.desk.now) {
		m.desk.now = now
	}
	err := operation(m.desk)
	for _, l := range m.desk.journal {
		for _, a := range l.about {
			if a.number == 0 {
				m.opened++
				a.number = m.opened
			}
		}
		head := m.heads[l.Dataset]
		lines := []line{l}
		m.heads[l.Dataset] = seal(head, lines, []int64{int64(len(m.entries) + 1)})
		m.entries = append(m.entries, lines[0].Entry)
	}
	m.desk.journal = nil
	return err
}

// Reserve implements [Ledger].
func (m *Memory) Reserve(_ context.Context, c Charge) (outcome Outcome, err error) {
	if err := c.check(); err != nil {
		return Outcome{}, err
	}
	c = c.inLedger()
	err = m.at(func(d *desk) (err error) {
		outcome, err = d.reserve(c)
		return err
	})
	return outcome, err
}

// Replay implements [Ledger].
func (m *Memory) Replay(_ context.Context, c Charge) (stored *Stored, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	err = m.at(func(d *desk) error {
		earlier, err := resolve(c, append(d.before(c), d.others(c)...))
		if err != nil || earlier == nil {
			return err
		}
		d.bindKey(c, d.charges[earlier.stored.ID])
		stored = earlier.stored
		return nil
	})
	return stored, err
}

// Plan implements [Ledger].
func (m *Memory) Plan(_ context.Context, analyst string, id ReservationID) (*Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.desk.charges[id].plan(analyst)
}

// Settle implements [Ledger].
func (m *Memory) Settle(_ context.Context, id ReservationID, released mechanisms.Loss, answer []byte) error {
	end, err := settling(released, answer)
	if err != nil {
		return err
	}
	return m.close(id, end)
}

// SettleApart implements [Ledger].
func (m *Memory) SettleApart(_ context.Context, id ReservationID, released Apart, answer []byte) error {
	end, err := settlingApart(released, answer)
	if err != nil {
		return err
	}
	return m.close(id, end)
}

// Void implements [Ledger].
func (m *Memory) Void(_ context.Context, id ReservationID) error { return m.close(id, voiding()) }

// Expire implements [Ledger].
func (m *Memory) Expire(_ context.Context, id ReservationID) error { return m.close(id, expiring()) }

func (m *Memory) close(id ReservationID, end ending) error {
	return m.at(func(d *desk) error {
		_, err := d.close(id, end)
		return err
	})
}

// Fail implements [Ledger].
func (m *Memory) Fail(_ context.Context, id ReservationID) error { return m.close(id, failing()) }

// Failures implements [Ledger].
func (m *Memory) Failures(_ context.Context, dataset, analyst string, within time.Duration) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, count := m.clock().Add(-within), int64(0)
	for _, e := range slices.Backward(m.entries) {
		if r, ok := resetOf(e); ok && r == (Reset{dataset, analyst}) || !e.At.After(since) {
			break
		}
		if e.Kind == EntryFail && e.Dataset == dataset && e.Analyst == analyst {
			count++
		}
	}
	return count, nil
}

// ResetFailures implements [Ledger].
func (m *Memory) ResetFailures(ctx context.Context, by string, r Reset) error {
	if err := r.check(by); err != nil {
		return err
	}
	if n, err := m.Failures(ctx, r.Dataset, r.Analyst, FailurePeriod); n == 0 || err != nil {
		return err
	}
	return m.at(func(d *desk) error {
		d.resetFailures(by, r)
		return nil
	})
}

// ExpireOlder implements [Ledger].
func (m *Memory) ExpireOlder(ctx context.Context, age time.Duration) (int, error) {
	m.mu.Lock()
	var stale []ReservationID
	for id, c := range m.desk.charges {
		if c.state == open && m.clock().Sub(c.opened) > age {
			stale = append(stale, id)
		}
	}
	m.mu.Unlock()
	slices.Sort(stale)
	for _, id := range stale {
		if err := m.Expire(ctx, id); err != nil {
			return 0, err
		}
	}
	return len(stale), nil
}

// Balances implements [Ledger].
func (m *Memory) Balances(_ context.Context, ids []AccountID) ([]Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Balance
	for _, id := range ids {
		if a := m.desk.accounts[id]; a != nil {
			all = append(all, a.balance())
		}
	}
	return all, nil
}

// DatasetBalances implements [Ledger].
func (m *Memory) DatasetBalances(_ context.Context, dataset string) ([]Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Balance
	for id, a := range m.desk.accounts {
		if id.Dataset == dataset {
			all = append(all, a.balance())
		}
	}
	slices.SortFunc(all, func(a, b Balance) int { return a.ID.compare(b.ID) })
	return all, nil
}

// SetLimit implements [Ledger].
func (m *Memory) SetLimit(_ context.Context, by string, account Account) error {
	if err := account.check(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error {
		d.setLimit(by, account)
		return nil
	})
}

// LowerLimit implements [Ledger].
func (m *Memory) LowerLimit(_ context.Context, by string, account Account) error {
	if err := account.check(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error { return d.lowerLimit(by, account) })
}

// Refill implements [Ledger].
func (m *Memory) Refill(_ context.Context, by string, r Refill) error {
	if err := r.check(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error { return d.refill(by, r) })
}

// Freeze implements [Ledger].
func (m *Memory) Freeze(_ context.Context, by string, id AccountID, frozen bool) error {
	if err := id.checkedBy(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error { return d.freeze(by, id, frozen) })
}

// Releases implements [Ledger].
func (m *Memory) Releases(_ context.Context, analyst string, before ReservationID, limit int) ([]ReleaseInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ReleaseInfo
	begun, lines := before == "", Page{Limit: limit}.lines()
	for e := range m.newest(Page{}) {
		if e.Kind == EntrySettle && e.Analyst == analyst && !begun {
			begun = e.Reservation == before
		} else if e.Kind == EntrySettle && e.Analyst == analyst && len(all) < lines {
			c := m.desk.charges[e.Reservation]
			if len(c.Registers) > 0 {
				continue
			}
			all = append(all, ReleaseInfo{ID: c.ID, Dataset: c.Dataset, Request: slices.Clone(c.Request), Loss: c.held,
				SettledAt: c.closed})
		}
	}
	return all, nil
}

// Release implements [Ledger].
func (m *Memory) Release(_ context.Context, analyst string, id ReservationID) (*Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.desk.charges[id]; c != nil && c.state == settled && c.Analyst == analyst && len(c.Registers) == 0 {
		return c.stored(), nil
	}
	return nil, fault.BudgetUnknownRelease()
}

// Entries implements [Ledger].
func (m *Memory) Entries(_ context.Context, page Page) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Entry
	for e := range m.newest(page) {
		if len(all) < page.lines() && (page.Dataset == "" || page.Dataset == e.Dataset) {
			all = append(all, e)
		}
	}
	return all, nil
}

// Head implements [Ledger].
func (m *Memory) Head(_ context.Context, dataset string) (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := m.heads[dataset]
	head.Dataset = dataset
	return head, nil
}

// Verify implements [Ledger]. Nobody but this ledger can have changed it.
func (m *Memory) Verify(_ context.Context, from Head) (Verified, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := NewChain(from)
	for _, e := range m.entries {
		if e.Dataset == from.Dataset && e.Seq > from.Seq {
			if err := chain.Add(e); err != nil {
				return chain.Verified, err
			}
		}
	}
	return chain.Verified, chain.EndsAt(Head{Dataset: from.Dataset, Seq: m.heads[from.Dataset].Seq, Hash: m.heads[from.Dataset].Hash})
}

// newest goes backwards through the entries from where the page begins.
func (m *Memory) newest(page Page) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range slices.Backward(m.entries) {
			if (page.Before == 0 || e.Seq < page.Before) && !yield(e) {
				return
			}
		}
	}
}

// Keep implements [Shares].
func (m *Memory) Keep(_ context.Context, v Shared) error {
	if err := v.check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.desk.charges[v.Charge] == nil {
		return unknownCharge(v.Charge)
	}
	if _, ok := m.shared[v.Charge]; ok {
		return usedID(v.Charge)
	}
	if m.shared == nil {
		m.shared = map[ReservationID]Shared{}
	}
	v.Vector = slices.Clone(v.Vector)
	m.shared[v.Charge] = v
	return nil
}

// Best implements [Shares].
func (m *Memory) Best(_ context.Context, dataset string, question [32]byte) (*Shared, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var best *Shared
	for id, v := range m.shared {
		c := m.desk.charges[id]
		if v.Dataset == dataset && v.Question == question && c.Dataset == dataset && (c.state == settled || c.state == expired) &&
			(best == nil || v.Rho > best.Rho || v.Rho == best.Rho && v.Charge < best.Charge) {
			v.Vector = slices.Clone(v.Vector)
			best = &v
		}
	}
	return best, nil
}

// RecordImport implements [Ledger].
func (m *Memory) RecordImport(_ context.Context, by string, i Import) error {
	if err := i.check(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error {
		d.recordImport(by, i)
		return nil
	})
}

// Settlement implements [Ledger].
func (m *Memory) Settlement(_ context.Context, id ReservationID) (Settlement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := range m.newest(Page{}) {
		if e.Kind == EntrySettle && e.Reservation == id {
			return Settlement{Head{e.Dataset, e.Seq, e.Hash}, e.At.UTC()}, nil
		}
	}
	return Settlement{}, fault.BudgetUnknownRelease()
}
