package gateway

import (
	"fmt"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Where a policy puts time into the guarantee ([catalog.Timing]), whatever reads protected rows or votes is delayed at
// random and charged for the delay with what it releases. What is not charged, replays among it, is not delayed.

// Delay is the delay of a charge; nil for none.
type Delay struct{ drawn *mechanisms.Delay }

// Timing is the delay that questions about a snapshot's dataset have. It refuses accounts that cannot pay for it, and
// timeouts that would make failures of many answers.
func (s *Service) Timing(snapshot *catalog.Snapshot, p Accounts) (*Delay, error) {
	if snapshot.Delay == nil {
		return nil, nil
	}
	if slices.ContainsFunc(p.balances, func(b budget.Balance) bool {
		return !b.Limit.ReplayOnly && (b.Limit.Form == budget.Pure || b.Limit.Delta == 0)
	}) {
		return nil, fault.BudgetTiming("that costs delta, and an account that pays for the question is pure, or has none")
	}
	d := &Delay{snapshot.Delay}
	if timeout := s.datasets[snapshot.Dataset].Timeout; timeout > 0 && 2*d.longest() > timeout {
		return nil, fault.BudgetTiming(fmt.Sprintf("its delay of up to %s takes more than half of the timeout", d.longest()))
	}
	return d, nil
}

// Loss is what the delay costs.
func (d *Delay) Loss() mechanisms.Loss {
	if d == nil {
		return mechanisms.Loss{}
	}
	return d.drawn.Loss()
}

// plus adds the delay to what a charge pays for.
func (d *Delay) plus(c *budget.Charge) {
	if d != nil {
		c.Loss, c.Mechanisms = c.Loss.Plus(d.Loss()), append(slices.Clip(c.Mechanisms), d.drawn.Parameters())
	}
}

// put draws the delay for a schedule. It is drawn before the charge, and so before the work.
func (d *Delay) put(h *Schedule) {
	if d != nil {
		h.delay = new(time.Duration(d.drawn.Draw(h.sampler)) * time.Microsecond)
	}
}

func (d *Delay) average() time.Duration { return time.Duration(d.drawn.Shift()) * time.Microsecond }
func (d *Delay) longest() time.Duration { return 2 * d.average() }

// Note says so in answers and estimates.
func (d *Delay) Note(notes []api.Note) []api.Note {
	if d == nil {
		return notes
	}
	return append(notes, api.Note{Code: "timing", Text: fmt.Sprintf("the answer is delayed at random, by %s on average, so that the "+
		"time it takes is private too; that is part of the price",
		d.average().Round(time.Millisecond))})
}

// leftOf is the accounts with room for the delay in what one query may cost.
func (d *Delay) leftOf(p Accounts) Accounts {
	if d == nil {
		return p
	}
	p.balances = slices.Clone(p.balances)
	l, loss := &p.balances[p.own].Limit, d.Loss()
	if l.PerQuery > loss.Epsilon {
		l.PerQuery -= loss.Epsilon
	}
	if l.PerQueryRho > loss.Rho {
		l.PerQueryRho -= loss.Rho
	}
	return p
}
