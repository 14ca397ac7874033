package machine

import (
	"encoding/json"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// MaxAhead bounds how far a server's clock may be ahead of both the newest entry and the writing process's clock.
const MaxAhead = time.Minute

// Clocks are what a dataset's time is made of: when its newest entry was written (zero: there is none), a server's clock, and the writer's
// own.
type Clocks struct{ Newest, Server, Own time.Time }

// Time is the dataset's: never before its newest entry, and, so that no clock by itself lets time run, at most [MaxAhead] after the
// writer's, unless that entry is. It reports false where the server is so far ahead of both that one of the two clocks is wrong: then
// nothing is written.
func (c Clocks) Time() (now time.Time, believed bool) {
	micro := func(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
	newest, server, most := micro(c.Newest), micro(c.Server), micro(c.Own.Add(MaxAhead))
	believed = !server.After(most) || !server.After(newest.Add(MaxAhead))
	if now = server; now.After(most) {
		now = most
	}
	if now.Before(newest) {
		now = newest
	}
	return now, believed
}

// clockRecord says from when a dataset's time goes on, as the journal keeps it.
type clockRecord struct {
	To       int64           `json:"sets_time_to_us"` // microseconds since 1970
	Reason   string          `json:"reason"`
	Approval *approvalRecord `json:"approval,omitempty"`
}

// SetBackOf reads from when a dataset's time goes on; ok is false for an entry that does not say it, or was not written at that time.
func SetBackOf(e budget.Entry) (c budget.SetBack, ok bool) {
	var r clockRecord
	if e.Kind != budget.EntryClock || !aboutNoAccount(e) || json.Unmarshal(e.AccountText, &r) != nil || r.To != e.At.UnixMicro() {
		return c, false
	}
	c = budget.SetBack{Dataset: e.Dataset, To: time.UnixMicro(r.To).UTC(), Reason: r.Reason}
	if a := r.Approval.approval(); a != nil {
		c.Mandate = &budget.Mandate{Ledger: a.Ledger, At: a.At, Key: a.Key, Signature: a.Signature, Pair: a.Pair}
	}
	return c, c.Check(e.Analyst) == nil
}

// SetBack lets a dataset's time go on from an earlier one. The machine has all its accounts, and the charges that were opened after that.
func (m *Machine) SetBack(by string, c budget.SetBack) error {
	wrong := func(clock time.Time) bool { return c.To.Sub(clock).Abs() > MaxAhead }
	switch {
	case !c.To.Before(m.Clocks.Newest):
		return fault.LedgerSetBack("its newest entry is no later")
	case wrong(m.Clocks.Server):
		return fault.LedgerSetBack("the server of the ledger has another, " + m.Clocks.Server.UTC().Format(time.RFC3339))
	case wrong(m.Clocks.Own):
		return fault.LedgerSetBack("the gateway has another, " + m.Clocks.Own.UTC().Format(time.RFC3339))
	}
	if what := c.Signed(by, len(m.InForce.TwoFor) > 0, m.InForce.Ledger); what != "" {
		return fault.LedgerSetBackSignature(what)
	}
	r := clockRecord{To: c.To.UnixMicro(), Reason: c.Reason}
	if s := c.Mandate; s != nil {
		r.Approval = approvalRecordOf(&budget.Approval{Pair: s.Pair, Ledger: s.Ledger, At: s.At, Key: s.Key, Signature: s.Signature})
	}
	var accounts []*Account
	for id, a := range m.Accounts {
		if id.Dataset == c.Dataset {
			accounts = append(accounts, a)
		}
	}
	var charges []*Charge
	for _, charge := range m.Charges {
		if charge.Dataset == c.Dataset {
			charges = append(charges, charge)
		}
	}
	CountBack(accounts, charges, c.To)
	m.Now = c.To.UTC()
	m.write(budget.Entry{Kind: budget.EntryClock, AccountText: encoded(r)}, c.Dataset, by, nil)
	return nil
}

// CountBack lets accounts count what happened after a time as happened at it: when they were opened, and the charges that were opened
// since.
func CountBack(accounts []*Account, charges []*Charge, to time.Time) {
	since := map[*Account][]mechanisms.Loss{}
	for _, c := range charges {
		if !c.Opened.After(to) {
			continue
		}
		c.Opened = to
		for _, a := range c.Accounts {
			since[a] = append(since[a], Counts(a.ID.Scope, c.Held, c.SharedHeld))
		}
	}
	for _, a := range accounts {
		if a.Opened.After(to) {
			a.Opened, a.Back = to, true
		}
		if busy := a.Limit.Rate.SetBack(a.Busy, to, since[a]); !busy.Equal(a.Busy) {
			a.Busy, a.Back = busy, true
		}
	}
}
