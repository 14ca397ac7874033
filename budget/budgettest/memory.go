package budgettest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Memory is a [budget.Ledger] that forgets: for tests, and as the reference that the PostgreSQL ledger is compared with. It gives
// no durability, so nothing that protects data may use it.
type Memory struct {
	clock func() time.Time // of a server
	own   func() time.Time // the writing process's clock; nil: the ledger's

	mu      sync.Mutex
	machine *machine.Machine
	opened  int64          // accounts
	entries []budget.Entry // entries[i].Seq == i+1
	heads   map[string]budget.Head
	values  map[valueKey]budget.Released
	inForce map[string]machine.InForce
}

// NewMemory returns an empty ledger that takes the time from clock.
func NewMemory(clock func() time.Time) *Memory {
	return &Memory{clock: clock, machine: machine.New(), heads: map[string]budget.Head{}, values: map[valueKey]budget.Released{},
		inForce: map[string]machine.InForce{}}
}

// NewMemoryOnServer is a ledger that takes the time from a server's clock, held against the writer's own.
func NewMemoryOnServer(server, own func() time.Time) *Memory {
	m := NewMemory(server)
	m.own = own
	return m
}

// at lets an operation of one dataset happen, and seals the entries that it wrote.
func (m *Memory) at(operation func(*machine.Machine) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	server := m.clock()
	own := server
	if m.own != nil {
		own = m.own()
	}
	now, believed := machine.Clocks{Newest: m.machine.Now, Server: server, Own: own}.Time()
	if !believed {
		return fault.LedgerClock(nil)
	}
	m.machine.Now, m.machine.Clocks = now, machine.Clocks{Server: server, Own: own}
	if n := len(m.entries); n > 0 {
		m.machine.Clocks.Newest = m.entries[n-1].At
	}
	err := operation(m.machine)
	for _, l := range m.machine.Written {
		for _, a := range l.About {
			if a.Number == 0 {
				m.opened++
				a.Number = m.opened
			}
		}
		head := m.heads[l.Dataset]
		lines := []machine.Line{l}
		m.heads[l.Dataset] = journal.Seal(head, lines, []int64{int64(len(m.entries) + 1)})
		m.entries = append(m.entries, lines[0].Entry)
	}
	m.machine.Written = nil
	return err
}

func (m *Memory) Reserve(_ context.Context, c budget.Charge) (outcome budget.Outcome, err error) {
	if err := c.Check(); err != nil {
		return budget.Outcome{}, err
	}
	c = c.InLedger()
	err = m.at(func(s *machine.Machine) (err error) {
		s.Raised = m.raisedIn(c.Dataset)
		outcome, err = s.Reserve(c)
		return err
	})
	return outcome, err
}

func (m *Memory) Replay(_ context.Context, c budget.Charge) (stored *budget.Stored, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	err = m.at(func(s *machine.Machine) (err error) {
		stored, err = s.Replay(c)
		return err
	})
	return stored, err
}

func (m *Memory) Again(ctx context.Context, a budget.Again) ([]budget.Balance, *budget.Stored, error) {
	balances, err := m.Balances(ctx, a.Accounts)
	if err != nil {
		return nil, nil, err
	}
	stored, err := m.Release(ctx, a.Analyst, a.Charge)
	switch {
	case fault.CodeOf(err) == fault.CodeBudgetUnknownRelease, err == nil && stored.Dataset != a.Dataset:
		return balances, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return balances, stored, nil
}

func (m *Memory) Plan(_ context.Context, analyst string, id budget.ReservationID) (*budget.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Charges[id].Plan(analyst)
}

func (m *Memory) Settle(_ context.Context, id budget.ReservationID, released mechanisms.Loss, answer []byte) error {
	end, err := machine.Settling(released, answer)
	if err != nil {
		return err
	}
	return m.close(id, end)
}

func (m *Memory) SettleApart(_ context.Context, id budget.ReservationID, released budget.Apart, answer []byte) error {
	end, err := machine.SettlingApart(released, answer)
	if err != nil {
		return err
	}
	return m.close(id, end)
}

func (m *Memory) Void(_ context.Context, id budget.ReservationID) error {
	return m.close(id, machine.Voiding())
}

func (m *Memory) Expire(_ context.Context, id budget.ReservationID) error {
	return m.close(id, machine.Expiring())
}

func (m *Memory) close(id budget.ReservationID, end machine.Ending) error {
	return m.at(func(s *machine.Machine) error {
		_, err := s.Close(id, end)
		return err
	})
}

func (m *Memory) Fail(_ context.Context, id budget.ReservationID) error {
	return m.close(id, machine.Failing())
}

func (m *Memory) Failures(_ context.Context, dataset, analyst string, within time.Duration) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, count := m.clock().Add(-within), int64(0)
	for _, e := range slices.Backward(m.entries) {
		if r, ok := machine.ResetOf(e); ok && r == (budget.Reset{Dataset: dataset, Analyst: analyst}) {
			break
		}
		if e.Kind == budget.EntryClock && e.Dataset == dataset && !e.At.After(since) {
			break // all before it are as old
		}
		if e.Kind == budget.EntryFail && e.Dataset == dataset && e.Analyst == analyst && e.At.After(since) {
			count++
		}
	}
	return count, nil
}

func (m *Memory) ResetFailures(ctx context.Context, by string, r budget.Reset) error {
	if err := r.Check(by); err != nil {
		return err
	}
	if n, err := m.Failures(ctx, r.Dataset, r.Analyst, budget.FailurePeriod); n == 0 || err != nil {
		return err
	}
	return m.at(func(s *machine.Machine) error {
		s.ResetFailures(by, r)
		return nil
	})
}

func (m *Memory) ExpireOlder(ctx context.Context, age time.Duration) (int, error) {
	m.mu.Lock()
	var stale []budget.ReservationID
	for id, c := range m.machine.Charges {
		if c.State == machine.Open && m.clock().Sub(c.Opened) > age {
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

func (m *Memory) Balances(_ context.Context, ids []budget.AccountID) ([]budget.Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []budget.Balance
	for _, id := range ids {
		if a := m.machine.Accounts[id]; a != nil {
			all = append(all, a.Balance())
		}
	}
	return all, nil
}

func (m *Memory) Caller(ctx context.Context, ids []budget.AccountID, dataset, analyst string,
	within time.Duration) ([]budget.Balance, int64, error) {
	balances, err := m.Balances(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	failed, err := m.Failures(ctx, dataset, analyst, within)
	return balances, failed, err
}

func (m *Memory) DatasetBalances(_ context.Context, dataset string) ([]budget.Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []budget.Balance
	for id, a := range m.machine.Accounts {
		if id.Dataset == dataset {
			all = append(all, a.Balance())
		}
	}
	slices.SortFunc(all, func(a, b budget.Balance) int { return a.ID.Compare(b.ID) })
	return all, nil
}

func (m *Memory) Enforce(_ context.Context, policy budget.Policy, account budget.Account) error {
	if err := account.Check(budget.ByPolicy); err != nil {
		return err
	}
	return m.about(account.ID.Dataset, func(s *machine.Machine) error { return s.Enforce(policy, account) })
}

func (m *Memory) SetLimit(_ context.Context, by string, account budget.Account) error {
	if err := account.Check(by); err != nil {
		return err
	}
	return m.about(account.ID.Dataset, func(s *machine.Machine) error { return s.SetLimit(by, account) })
}

func (m *Memory) ChangeLimit(_ context.Context, by string, c budget.LimitChange) error {
	if err := c.Check(by); err != nil {
		return err
	}
	return m.about(c.Account.ID.Dataset, func(s *machine.Machine) error { return s.ChangeLimit(by, c) })
}

func (m *Memory) LowerLimit(_ context.Context, by string, account budget.Account) error {
	if err := account.Check(by); err != nil {
		return err
	}
	return m.about(account.ID.Dataset, func(s *machine.Machine) error { return s.LowerLimit(by, account) })
}

func (m *Memory) Refill(_ context.Context, by string, r budget.Refill) error {
	if err := r.Check(by); err != nil {
		return err
	}
	return m.about(r.Account.Dataset, func(s *machine.Machine) error { return s.Refill(by, r) })
}

func (m *Memory) Freeze(_ context.Context, by string, id budget.AccountID, frozen bool) error {
	if err := id.CheckedBy(by); err != nil {
		return err
	}
	return m.at(func(s *machine.Machine) error { return s.Freeze(by, id, frozen) })
}

// SetBack implements [budget.Ledger]. A Memory has one time for all datasets.
func (m *Memory) SetBack(_ context.Context, by string, c budget.SetBack) error {
	if err := c.Check(by); err != nil {
		return err
	}
	return m.about(c.Dataset, func(s *machine.Machine) error { return s.SetBack(by, c) })
}

func (m *Memory) Releases(_ context.Context, analyst string, before budget.ReservationID, limit int) ([]budget.ReleaseInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []budget.ReleaseInfo
	begun, lines := before == "", budget.Page{Limit: limit}.Lines()
	for e := range m.newest(budget.Page{}) {
		if e.Kind == budget.EntrySettle && e.Analyst == analyst && !begun {
			begun = e.Reservation == before
		} else if e.Kind == budget.EntrySettle && e.Analyst == analyst && len(all) < lines {
			c := m.machine.Charges[e.Reservation]
			if len(c.Registers) > 0 {
				continue
			}
			all = append(all, budget.ReleaseInfo{ID: c.ID, Dataset: c.Dataset, Request: slices.Clone(c.Request), Loss: c.Held,
				SettledAt: c.Closed})
		}
	}
	return all, nil
}

func (m *Memory) Bought(_ context.Context, b budget.Bought) (budget.ReservationID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := range m.newest(budget.Page{}) {
		c := m.machine.Charges[e.Reservation]
		if e.Kind == budget.EntrySettle && e.Analyst == b.Analyst && len(c.Registers) == 0 && c.Dataset == b.Dataset &&
			string(c.Request) == string(b.Request) && !c.Closed.Before(b.Since) {
			return c.ID, nil
		}
	}
	return "", nil
}

func (m *Memory) Release(_ context.Context, analyst string, id budget.ReservationID) (*budget.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.machine.Charges[id]; c != nil && c.State == machine.Settled && c.Analyst == analyst && len(c.Registers) == 0 {
		return c.Stored(), nil
	}
	return nil, fault.BudgetUnknownRelease()
}

func (m *Memory) Requests(_ context.Context, ids []budget.ReservationID, bytes int) (all []json.RawMessage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for size := 0; len(all) < len(ids) && size < bytes; {
		var request json.RawMessage
		if c := m.machine.Charges[ids[len(all)]]; c != nil {
			request = slices.Clone(c.Request)
		}
		all, size = append(all, request), size+len(request)
	}
	return all, nil
}

func (m *Memory) Entries(_ context.Context, page budget.Page) ([]budget.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []budget.Entry
	entries := m.newest(page)
	if page.Forward {
		entries = m.after(page.After)
	}
	for e := range entries {
		if len(all) < page.Lines() && (page.Dataset == "" || page.Dataset == e.Dataset) {
			all = append(all, e)
		}
	}
	return all, nil
}

func (m *Memory) Head(_ context.Context, dataset string) (budget.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := m.heads[dataset]
	head.Dataset = dataset
	return head, nil
}

func (m *Memory) Check(context.Context) error { return nil }

// Verify implements [budget.Ledger]. Nobody but this ledger can have changed it.
func (m *Memory) Verify(_ context.Context, from budget.Head) (budget.Verified, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chain := journal.NewChain(from)
	for _, e := range m.entries {
		if e.Dataset == from.Dataset && e.Seq > from.Seq {
			if err := chain.Add(e); err != nil {
				return chain.Verified, err
			}
		}
	}
	return chain.Verified, chain.EndsAt(budget.Head{Dataset: from.Dataset, Seq: m.heads[from.Dataset].Seq, Hash: m.heads[from.Dataset].Hash})
}

// Tables implements [budget.Ledger], without a state: it has no tables.
func (m *Memory) Tables(_ context.Context, dataset string) (budget.Tables, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := m.heads[dataset]
	head.Dataset = dataset
	return budget.Tables{Head: head, Policies: slices.Clone(m.inForce[dataset].Rows)}, nil
}

// newest goes backwards through the entries from where the page begins.
func (m *Memory) newest(page budget.Page) iter.Seq[budget.Entry] {
	return func(yield func(budget.Entry) bool) {
		for _, e := range slices.Backward(m.entries) {
			if (page.Before == 0 || e.Seq < page.Before) && !yield(e) {
				return
			}
		}
	}
}

// after goes forwards through the entries after one.
func (m *Memory) after(seq int64) iter.Seq[budget.Entry] {
	return func(yield func(budget.Entry) bool) {
		for _, e := range m.entries {
			if e.Seq > seq && !yield(e) {
				return
			}
		}
	}
}

// valueKey is what a released value is kept by.
type valueKey struct {
	charge   budget.ReservationID
	identity [32]byte
}

func (m *Memory) KeepReleased(_ context.Context, v budget.Released) error {
	if err := v.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := valueKey{v.Charge, v.Identity}
	if m.machine.Charges[v.Charge] == nil {
		return machine.UnknownCharge(v.Charge)
	}
	if _, kept := m.values[key]; kept {
		return machine.UsedID(v.Charge)
	}
	v.Values = slices.Clone(v.Values)
	m.values[key] = v
	return nil
}

func (m *Memory) Find(ctx context.Context, l budget.Lookup) (found *budget.Earlier, err error) {
	found = &budget.Earlier{}
	if l.Accounts != nil {
		found.Balances, found.Failures, err = m.Caller(ctx, l.Accounts, l.Dataset, l.Analyst, budget.FailurePeriod)
		if err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, names := range l.Identities {
		found.Exact = append(found.Exact, m.found(l, names, func(v budget.Released) (age string, name [32]byte, ok bool) {
			return "", v.Identity, v.Rho == 0
		}))
	}
	for _, names := range l.Series {
		found.Latest = append(found.Latest, m.found(l, names, func(v budget.Released) (age string, name [32]byte, ok bool) {
			if v.Version == nil || !l.Until.IsZero() && v.Version.AsOf.After(l.Until) {
				return "", name, false
			}
			return fmt.Sprintf("%20d", math.MaxInt64-v.Version.AsOf.UnixMicro()), v.Version.Series, true
		}))
	}
	if l.Shared {
		found.Best = m.found(l, l.Questions, func(v budget.Released) (rho string, name [32]byte, ok bool) {
			return fmt.Sprintf("%20d %s", math.MaxInt64-v.Rho, v.Charge), v.Identity, v.Rho > 0
		})
	}
	return found, nil
}

// found gives the preferred release that counts as spent for good; by gives the name of each, and its first rank.
func (m *Memory) found(l budget.Lookup, names [][32]byte, by func(budget.Released) (rank string, name [32]byte, ok bool)) *budget.Found {
	var found *budget.Found
	best := "" // its age, owner, name and charge, in the order of preference
	for key, v := range m.values {
		first, name, ok := by(v)
		c, place := m.machine.Charges[key.charge], slices.Index(names, name)
		mine := c.Analyst == l.Analyst
		if !ok || place < 0 || v.Dataset != l.Dataset || c.Dataset != l.Dataset || !mine && !(l.Shared && v.Shared) ||
			c.State != machine.Settled && c.State != machine.Expired {
			continue
		}
		if rank := fmt.Sprintf("%s %t %9d %s", first, !mine, place, key.charge); found == nil || rank < best {
			v.Values = slices.Clone(v.Values)
			found, best = &budget.Found{Released: v, At: c.Closed}, rank
		}
	}
	return found
}

func (m *Memory) RecordImport(_ context.Context, by string, i budget.Import) error {
	if err := i.Check(by); err != nil {
		return err
	}
	return m.at(func(s *machine.Machine) error {
		s.RecordImport(by, i)
		return nil
	})
}

func (m *Memory) Settlement(_ context.Context, id budget.ReservationID) (budget.Settlement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := range m.newest(budget.Page{}) {
		if e.Kind == budget.EntrySettle && e.Reservation == id {
			charged := &budget.Charged{Analyst: e.Analyst, Loss: e.Loss}
			for _, a := range m.machine.Charges[id].Accounts {
				charged.Accounts = append(charged.Accounts, a.ID)
			}
			if d := m.machine.Charges[id].Draws; d != nil {
				plan := m.machine.Charges[d.Plan]
				charged.Plan = &budget.PaidPlan{ID: d.Plan, From: d.From, Count: d.Count, Loss: plan.Held}
				for _, a := range plan.Accounts {
					charged.Plan.Accounts = append(charged.Plan.Accounts, a.ID)
				}
			}
			return budget.Settlement{Head: budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}, At: e.At.UTC(), Charged: charged,
				Shared: e.Shared}, nil
		}
	}
	return budget.Settlement{}, fault.BudgetUnknownRelease()
}
