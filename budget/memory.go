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

	mu       sync.Mutex
	accounts map[AccountID]*memoryAccount
	charges  map[ReservationID]*memoryCharge
	keys     map[memoryKey]memoryRequest
	asked    map[memoryQuestion]*memoryCharge // the newest charge of each question
	drawn    map[ReservationID]int            // by plan: how many of its slots
	entries  []Entry                          // entries[i].Seq == i+1
}

// NewMemory returns an empty ledger that takes the time from clock.
func NewMemory(clock func() time.Time) *Memory {
	return &Memory{
		clock:    clock,
		accounts: map[AccountID]*memoryAccount{},
		charges:  map[ReservationID]*memoryCharge{},
		keys:     map[memoryKey]memoryRequest{},
		asked:    map[memoryQuestion]*memoryCharge{},
		drawn:    map[ReservationID]int{},
	}
}

type memoryAccount struct {
	Account
	spent, reserved sums
}

func (a *memoryAccount) balance() Balance {
	return Balance{Account: a.Account, Spent: a.spent.loss(), Reserved: a.reserved.loss()}
}

// sums are losses added up. Losses without a finite ε are counted, so that voiding the last one opens the ε clause again.
type sums struct {
	added     mechanisms.Loss // Unbounded is not used
	unbounded int
}

func (s *sums) add(l mechanisms.Loss) {
	if l.Unbounded {
		s.unbounded++
	}
	s.added.Epsilon, s.added.Rho, s.added.Delta = s.added.Epsilon+l.Epsilon, s.added.Rho+l.Rho, s.added.Delta+l.Delta
}

func (s *sums) subtract(l mechanisms.Loss) {
	if l.Unbounded {
		s.unbounded--
	}
	s.added.Epsilon, s.added.Rho, s.added.Delta = s.added.Epsilon-l.Epsilon, s.added.Rho-l.Rho, s.added.Delta-l.Delta
}

func (s *sums) loss() mechanisms.Loss {
	l := s.added
	l.Unbounded = s.unbounded > 0
	return l
}

type memoryCharge struct {
	Charge
	charged        []*memoryAccount
	state          state
	held           mechanisms.Loss // what it counts as: what was reserved, then what was released
	answer         []byte
	opened, closed time.Time
}

func (c *memoryCharge) stored() *Stored {
	return &Stored{ID: c.ID, Dataset: c.Dataset, Analyst: c.Analyst, Request: slices.Clone(c.Request),
		Answer: slices.Clone(c.answer), Loss: c.held, SettledAt: c.closed}
}

func (c *memoryCharge) past() past {
	p := past{state: c.state}
	if c.state == settled {
		p.stored = c.stored()
	}
	return p
}

type memoryKey struct{ analyst, key string }

type memoryRequest struct {
	digest [32]byte
	charge *memoryCharge
}

type memoryQuestion struct {
	dataset, analyst string
	fingerprint      [32]byte
}

func questionOf(c Charge) memoryQuestion { return memoryQuestion{c.Dataset, c.Analyst, c.Fingerprint} }

// Reserve implements [Ledger].
func (m *Memory) Reserve(_ context.Context, c Charge) (Outcome, error) {
	if err := c.check(); err != nil {
		return Outcome{}, err
	}
	c = c.inLedger()
	m.mu.Lock()
	defer m.mu.Unlock()

	earlier, err := resolve(c, m.before(c))
	if err != nil {
		return Outcome{}, err
	}
	if earlier != nil {
		m.bindKey(c, m.charges[earlier.stored.ID])
		return Outcome{Replay: earlier.stored}, nil
	}
	if m.charges[c.ID] != nil {
		return Outcome{}, usedID(c.ID)
	}
	accounts, missing := m.find(c.Accounts)
	if err := refusal(balancesOf(accounts), c.Analyst, c.Loss); err != nil {
		return Outcome{}, err
	}
	if d := c.Draws; d != nil {
		plan, err := m.plan(c.Analyst, d.Plan)
		if err != nil || plan.Dataset != c.Dataset || plan.Next != d.From || d.From+d.Count > len(plan.Slots) {
			return Outcome{}, ErrSlotTaken
		}
		m.drawn[d.Plan] += d.Count
	}
	for _, a := range missing {
		m.setLimit(byPolicy, a)
	}
	for _, a := range accounts {
		a.reserved.add(c.Loss)
	}
	charge := &memoryCharge{Charge: c, charged: accounts, state: open, held: c.Loss, opened: m.clock()}
	m.charges[c.ID] = charge
	m.asked[questionOf(c)] = charge
	m.bindKey(c, charge)
	m.write(Entry{Kind: EntryReserve, Dataset: c.Dataset, Analyst: c.Analyst, Reservation: c.ID, Loss: c.Loss,
		Mechanisms: slices.Clone(c.Mechanisms)})
	return Outcome{Reserved: &Reservation{ID: c.ID}}, nil
}

// Replay implements [Ledger].
func (m *Memory) Replay(_ context.Context, c Charge) (*Stored, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	earlier, err := resolve(c, m.before(c))
	if err != nil || earlier == nil {
		return nil, err
	}
	m.bindKey(c, m.charges[earlier.stored.ID])
	return earlier.stored, nil
}

// Plan implements [Ledger].
func (m *Memory) Plan(_ context.Context, analyst string, id ReservationID) (*Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plan(analyst, id)
}

func (m *Memory) plan(analyst string, id ReservationID) (*Plan, error) {
	c := m.charges[id]
	if c == nil || c.state != settled || c.Analyst != analyst || len(c.Registers) == 0 {
		return nil, fault.PlanUnknown()
	}
	return &Plan{ID: id, Dataset: c.Dataset, Loss: c.held, Slots: slices.Clone(c.Registers), Next: m.drawn[id], RegisteredAt: c.closed}, nil
}

// before finds the earlier charges that decide about a request.
func (m *Memory) before(c Charge) []past {
	var all []past
	if named, ok := m.keys[memoryKey{c.Analyst, c.IdempotencyKey}]; ok {
		p := named.charge.past()
		p.byKey, p.digest = true, named.digest
		all = append(all, p)
	}
	if asked, ok := m.asked[questionOf(c)]; ok {
		all = append(all, asked.past())
	}
	return all
}

// bindKey makes the request's key, if it has one, stand for the charge.
func (m *Memory) bindKey(c Charge, charge *memoryCharge) {
	if c.IdempotencyKey != "" {
		m.keys[memoryKey{c.Analyst, c.IdempotencyKey}] = memoryRequest{c.RequestDigest, charge}
	}
}

// find gives the accounts that a charge names. Those that do not exist yet are made but not opened, and listed.
func (m *Memory) find(named []Account) (accounts, missing []*memoryAccount) {
	for _, n := range named {
		a := m.accounts[n.ID]
		if a == nil {
			n.Origin = FromPolicy
			a = &memoryAccount{Account: n}
			missing = append(missing, a)
		}
		accounts = append(accounts, a)
	}
	return accounts, missing
}

func balancesOf(accounts []*memoryAccount) []Balance {
	all := make([]Balance, len(accounts))
	for i, a := range accounts {
		all[i] = a.balance()
	}
	return all
}

// Settle implements [Ledger].
func (m *Memory) Settle(_ context.Context, id ReservationID, released mechanisms.Loss, answer []byte) error {
	end, err := settling(released, answer)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.charges[id]
	switch {
	case c == nil:
		return unknownCharge(id)
	case c.state != open:
		return end.again(id, c.state, c.answer)
	}
	loss := c.held
	if end.loss != nil {
		loss = *end.loss
	}
	if !within(loss, c.held) {
		return overReserved(id)
	}
	for _, a := range c.charged {
		a.reserved.subtract(c.held)
		a.spent.add(loss)
	}
	c.state, c.held, c.answer, c.closed = end.to, loss, slices.Clone(end.answer), m.clock()
	m.write(Entry{Kind: end.kind, Dataset: c.Dataset, Analyst: c.Analyst, Reservation: id, Loss: loss})
	return nil
}

// ExpireOlder implements [Ledger].
func (m *Memory) ExpireOlder(ctx context.Context, age time.Duration) (int, error) {
	m.mu.Lock()
	var stale []ReservationID
	for id, c := range m.charges {
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
		if a := m.accounts[id]; a != nil {
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
	for id, a := range m.accounts {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[account.ID]
	switch {
	case a == nil:
		m.setLimit(by, &memoryAccount{Account: account})
	case account.Origin == FromPolicy && (a.Origin == FromSteward || account.Version < a.Version):
	case a.Account == account:
	default:
		a.Account = account
		m.setLimit(by, a)
	}
	return nil
}

func (m *Memory) setLimit(by string, a *memoryAccount) {
	m.accounts[a.ID] = a
	id, limit := a.ID, a.Limit
	m.write(Entry{Kind: EntryLimit, Dataset: id.Dataset, Analyst: by, Account: &id, Limit: &limit})
}

// Releases implements [Ledger].
func (m *Memory) Releases(_ context.Context, analyst string, page Page) ([]ReleaseInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ReleaseInfo
	for e := range m.newest(page) {
		if e.Kind == EntrySettle && e.Analyst == analyst && len(all) < page.lines() {
			c := m.charges[e.Reservation]
			if len(c.Registers) > 0 {
				continue
			}
			all = append(all, ReleaseInfo{Seq: e.Seq, ID: c.ID, Dataset: c.Dataset, Request: slices.Clone(c.Request), Loss: c.held,
				SettledAt: c.closed})
		}
	}
	return all, nil
}

// Release implements [Ledger].
func (m *Memory) Release(_ context.Context, analyst string, id ReservationID) (*Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.charges[id]; c != nil && c.state == settled && c.Analyst == analyst && len(c.Registers) == 0 {
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
		if len(all) < page.lines() {
			all = append(all, e)
		}
	}
	return all, nil
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

func (m *Memory) write(e Entry) {
	e.Seq, e.At = int64(len(m.entries)+1), m.clock()
	m.entries = append(m.entries, e)
}
