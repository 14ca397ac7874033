package budget

import (
	"errors"
	"maps"
	"time"
)

// remembered is what the last batch of a dataset left: enough for the next one to decide without a look at the ledger, if nobody wrote in between. That is not
// assumed: the batch is written only if the chain still ends at head (see sql/advance.sql), and every change of an account is an entry of the
// chain. Questions and keys are not remembered; that they are new is for the unique indexes to say.
type remembered struct {
	head     Head
	alone    int // batches in a row before which no other gateway wrote
	accounts map[AccountID]*tally
	seqs     []int64 // numbers that were drawn after head, in a transaction that is committed
	now      time.Time
	clock    time.Time // of the server, at some time before readAt
	readAt   time.Time // by this process's monotonic clock
}

// aloneFor is after how many batches without another gateway's in between the next is decided from memory. Where gateways take turns, deciding in vain
// would take longer than to look.
const aloneFor = 8

// trusted bounds how long time is counted on from the server's clock by this process's own.
const trusted = time.Second

// errLook says that a batch cannot be decided from memory.
var errLook = errors.New("budget: what a batch is about must be looked at")

// recall prepares a session from memory; false when it takes more than is remembered. Only requests and the ends of charges that this process
// reserved are decided so.
func (p *Postgres) recall(s *session) bool {
	p.recalls.mu.Lock()
	m := p.recalls.byDataset[s.dataset]
	delete(p.recalls.byDataset, s.dataset) // until the batch is committed it is not known what is true
	p.recalls.mu.Unlock()
	s.before = m
	if m == nil || m.alone < aloneFor || m.head != p.newest(s.dataset) || time.Since(m.readAt) > trusted || len(m.seqs) < len(s.batch) {
		return false
	}
	s.beganAt = m.now
	s.desk.now = later(m.now, m.clock.Add(time.Since(m.readAt)))
	s.head, s.seqs = m.head, m.seqs
	for _, op := range s.batch {
		named := op.accounts
		switch {
		case op.open != nil:
			named = op.open.accounts
		case op.charge == nil || op.charge.Draws != nil:
			return false
		}
		for _, id := range named {
			a := m.accounts[id]
			switch {
			case a == nil:
				return false
			case s.desk.accounts[id] == nil: // a copy: the batch may come to nothing
				again := *a
				again.defined, again.moved = false, false
				s.desk.accounts[id] = &again
			}
		}
		if op.open != nil {
			op.open.layOn(s.desk)
		}
	}
	return true
}

// admitted reports whether every operation of the session was, and wrote something. A refusal is never from memory: nothing would be written, and so
// nothing would tell that it is still true.
func (s *session) admitted() bool {
	return errors.Join(s.errors...) == nil && len(s.desk.journal) >= len(s.batch)
}

// remember keeps what a committed session left.
func (p *Postgres) remember(s *session) {
	alone := s.before != nil && s.before.head == s.began // what was known of other accounts is still true
	m := s.before
	switch {
	case len(s.desk.journal) == 0 && alone: // nothing changed
	case len(s.desk.journal) == 0 || s.clock.IsZero():
		return
	default:
		m = &remembered{head: s.head, accounts: s.desk.accounts, seqs: s.next, now: s.desk.now, clock: s.clock, readAt: s.readAt}
		if alone {
			maps.Copy(s.before.accounts, m.accounts)
			m.accounts, m.alone = s.before.accounts, s.before.alone+1
		}
	}
	p.recalls.mu.Lock()
	defer p.recalls.mu.Unlock()
	if p.recalls.byDataset == nil {
		p.recalls.byDataset = map[string]*remembered{}
	}
	p.recalls.byDataset[s.dataset] = m
}

// later is a dataset's time when it had before and a clock says now: a clock that is set back does not take it back.
func later(before, now time.Time) time.Time {
	if before.After(now) {
		now = before
	}
	return now.UTC().Truncate(time.Microsecond)
}
