package pgledger

import (
	"errors"
	"maps"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

// cache is the state that the last batch of a dataset left: the next one is decided from it without a look at the
// ledger, if nobody wrote in between. That is not assumed: the batch is written only if the chain still ends at head
// (see sql/advance.sql), and every change of an account is an entry of the chain. Questions and keys are not cached;
// the unique indexes refuse those that are not new.
type cache struct {
	head     budget.Head
	alone    int // batches in a row before which no other gateway wrote
	accounts map[budget.AccountID]*machine.Account
	seqs     []int64       // numbers that were drawn after head's, in transactions that are committed
	newest   budget.Policy // a later one would be an entry
	raised   string        // as machine.Machine has it
	last     int64         // its LastClock
	now      time.Time
	clock    time.Time // of the server, at some time before readAt
	readAt   time.Time // by this process's monotonic clock
}

// aloneFor is the number of batches without another gateway's in between after which the next is decided from the cache. Where gateways
// take turns, deciding in vain would take longer than to look.
const aloneFor = 8

// stocked is the number of batches like the last that numbers are drawn for in advance. Two may be in flight before the first reports the
// numbers that it drew.
const stocked = 4

// trusted bounds how long time is counted on from the server's clock by this process's own.
const trusted = time.Second

// prepare gives a transaction what it may look at; false when the cache does not have it. Only requests and the ends of
// charges that this process reserved are decided so.
func (m *cache) prepare(s *transaction) bool {
	if m == nil || m.alone < aloneFor || time.Since(m.readAt) > trusted || len(m.seqs) < len(s.batch) {
		return false
	}
	s.beganAt = m.now
	clocks := machine.Clocks{Newest: m.now, Server: m.clock.Add(time.Since(m.readAt)), Own: s.own}
	if s.machine.Now, s.believed = clocks.Time(); !s.believed {
		return false
	}
	s.head, s.seqs, s.machine.Newest = m.head, m.seqs, m.newest
	s.machine.Raised, s.machine.LastClock = m.raised, m.last
	for _, op := range s.batch {
		named := op.accounts
		switch {
		case op.open != nil:
			named = op.open.accounts
		case op.charge == nil || op.draws != nil:
			return false
		}
		for _, id := range named {
			a := m.accounts[id]
			switch {
			case a == nil:
				return false
			case s.machine.Accounts[id] == nil: // a copy: the batch may come to nothing
				again := *a
				again.Defined, again.Moved = false, false
				s.machine.Accounts[id] = &again
			}
		}
		if op.open != nil {
			op.open.loadInto(s.machine)
		}
	}
	return true
}

// admitted reports whether every operation of the transaction was, and wrote something. A refusal is never from the cache:
// nothing would be written, and so nothing would tell that it is still true.
func (s *transaction) admitted() bool {
	return errors.Join(s.errors...) == nil && len(s.machine.Written) >= len(s.batch) && len(s.machine.Written) <= len(s.seqs)
}

// expect is the cache once a transaction decided from it is committed, except for what only the server's answer says.
func (m *cache) expect(s *transaction) {
	maps.Copy(m.accounts, s.machine.Accounts)
	m.head, m.seqs, m.now, m.newest = s.head, s.seqs[len(s.machine.Written):], s.machine.Now, s.machine.Newest
}

// learn adds what the server answered to a transaction that is committed.
func (m *cache) learn(s *transaction) {
	m.alone++
	m.seqs, m.clock, m.readAt = append(m.seqs, s.next...), s.clock, s.readAt
}

// forget is the cache after a transaction that did not come about as expected: where it began, so that it shows
// whether another gateway wrote.
func (m *cache) forget(began budget.Head) *cache {
	return &cache{head: began, alone: m.alone, accounts: map[budget.AccountID]*machine.Account{}}
}

// after is the cache after a transaction that looked at the ledger and is committed; m is what was before, and may be nil.
func (m *cache) after(s *transaction) *cache {
	alone := m != nil && m.head == s.began // what was known of other accounts is still true
	switch {
	case len(s.machine.Written) == 0 && alone: // nothing changed
		return m
	case len(s.machine.Written) == 0 || s.clock.IsZero():
		return nil
	case !alone:
		m = &cache{accounts: map[budget.AccountID]*machine.Account{}}
	default:
		m.alone++
	}
	maps.Copy(m.accounts, s.machine.Accounts)
	m.newest, m.raised, m.last = s.machine.Newest, s.machine.Raised, s.machine.LastClock
	m.head, m.seqs, m.now, m.clock, m.readAt = s.head, append(s.seqs[len(s.machine.Written):], s.next...), s.machine.Now, s.clock, s.readAt
	return m
}
