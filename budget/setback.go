package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// SetBack lets a dataset's time go on from one that has come, after a clock that was wrong wrote an entry at a time that has not. Earlier
// entries count as no later than To.
type SetBack struct {
	Dataset string
	To      time.Time // whole microseconds
	Reason  string    // for the journal
	Mandate *Mandate  // a second steward's signature, without number and lifetime; nil: nobody signed
}

// Check refuses one that lacks the dataset, the time, the reason or the steward.
func (c SetBack) Check(by string) error {
	switch {
	case by == "" || c.Dataset == "":
		return fault.Internal(errors.New("budget: setting a time back needs a dataset and a steward"))
	case c.To.IsZero() || c.To.Nanosecond()%1000 != 0:
		return fault.RequestParameter("to", "a time in whole microseconds")
	case c.Reason == "" || len(c.Reason) > maxReason || strings.ContainsRune(c.Reason, 0):
		return fault.RequestParameter("reason", fmt.Sprintf("a text of at most %d bytes", maxReason))
	}
	return nil
}

// Text gives the lines that the second steward signs. They are readable, and different for each time. It needs a mandate.
func (c SetBack) Text() []byte {
	return signedText("noisegate clock/1", slices.Concat(ledgerLine(c.Mandate.Ledger), [][2]string{
		{"dataset", quoted(c.Dataset)},
		{"time goes on from", c.To.UTC().Format(time.RFC3339Nano)},
		{"reason", quoted(c.Reason)},
	}, c.Mandate.Pair.lines(), signedAt(c.Mandate.At)))
}

// Signed says what is wrong with its signers, where it takes two stewards or one; "" for nothing. journal.StewardKeys verifies the
// signature itself.
func (c SetBack) Signed(by string, two bool, ledger string) (what string) {
	m := c.Mandate
	switch {
	case m == nil && !two:
		return ""
	case m == nil:
		return "the policy in force has changes that take two stewards, and a second one signs this as well"
	case m.Pair.problem() != "":
		return m.Pair.problem()
	case m.Pair.Proposer != by:
		return signedForAnother
	case outdated(c.To.Sub(m.At)):
		return tooOld
	}
	return OtherLedger(m.Ledger, ledger)
}

// SetBack is until when the account is busy once its time is set back: it counts each loss since then as taken at that time. It is no
// sooner than if each had been: before them the account was busy for Per at most, and no charge keeps it busy for longer than it did.
func (r Rate) SetBack(busy, to time.Time, since []mechanisms.Loss) time.Time {
	until := to.Add(r.Per)
	for _, l := range since {
		cost := r.cost(l)
		if cost > r.Per { // the rate is another than it was
			return busy
		}
		until = until.Add(cost)
	}
	if r.Per == 0 || busy.Before(until) {
		return busy
	}
	return until
}
