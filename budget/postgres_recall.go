package budget

import (
	"errors"
	"maps"
	"time"
)

// remembered is what the last batch of a dataset left: enough for the next one to decide without a look at the ledger,
// if nobody wrote in between. That is not assumed: the batch is written only if the chain still ends at head (see
// sql/advance.sql), and every change of an account is an entry of the chain. Questions and keys are not remembered;
// that they are new is for the unique indexes to say.
type remembered struct {
	head     Head
	alone    int // batches in a row before which no other gateway wrote
	accounts map[AccountID]*tally
	seqs     []int64 // numbers that were drawn after head's, in transactions that are committed
	now      time.Time
	clock    time.Time // of the server, at some time before readAt
	readAt   time.Time // by this process's monotonic clock
}

// aloneFor is after how many batches without another gateway's in between the next is decided from memory. Where
// gateways take turns, deciding in vain would take longer than to look.
const aloneFor = 8

// stocked is for how many batches like the last there shall be numbers: two may be on their way before the first has
// told the numbers that it drew.
const stocked = 4

// trusted bounds how long time is counted on from the server's clock by this process's own.
const trusted = time.Second

// recall prepares a session from memory; false when it takes more than is remembered. Only requests and the ends of
// charges that this process reserved are decided so.
func (m *remembered) recall(s *session) bool {
	if m == nil || m.alone < aloneFor || time.Since(m.readAt) > trusted || len(m.seqs) < len(s.batch) {
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

// admitted reports whether every operation of the session was, and wrote something. A refusal is never from memory:
// nothing would be written, and so nothing would tell that it is still true.
func (s *session) admitted() bool {
	return errors.Join(s.errors...) == nil && len(s.desk.journal) >= len(s.batch) && len(s.desk.journal) <= len(s.seqs)
}

// expect is what is remembered once a session from memory is committed, but for what only the server's answer tells.
func (m *remembered) expect(s *session) {
	maps.Copy(m.accounts, s.desk.accounts)
	m.head, m.seqs, m.now = s.head, s.seqs[len(s.desk.journal):], s.desk.now
}

// learn adds what the server answered to a session that is committed.
func (m *remembered) learn(s *session) {
	m.alone++
	m.seqs, m.clock, m.readAt = append(m.seqs, s.next...), s.clock, s.readAt
}

// forget is what is remembered after a session that did not come about as expected: where it began, so that it shows
// whether another gateway wrote.
func (m *remembered) forget(began Head) *remembered {
	return &remembered{head: began, alone: m.alone, accounts: map[AccountID]*tally{}}
}

// after is what is remembered after a session that looked at the ledger and is committed; m is what was before, and may be nil.
func (m *remembered) after(s *session) *remembered {
	alone := m != nil && m.head == s.began // what was known of other accounts is still true
	switch {
	case len(s.desk.journal) == 0 && alone: // nothing changed
		return m
	case len(s.desk.journal) == 0 || s.clock.IsZero():
		return nil
	case !alone:
		m = &remembered{accounts: map[AccountID]*tally{}}
	default:
		m.alone++
	}
	maps.Copy(m.accounts, s.desk.accounts)
	m.head, m.seqs, m.now, m.clock, m.readAt = s.head, append(s.seqs[len(s.desk.journal):], s.next...), s.desk.now, s.clock, s.readAt
	return m
}

// later is a dataset's time when it had before and a clock says now: a clock that is set back does not take it back.
func later(before, now time.Time) time.Time {
	if before.After(now) {
		now = before
	}
	return now.UTC().Truncate(time.Microsecond)
}
