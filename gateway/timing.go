package gateway

import (
	"fmt"
	"slices"
	"time"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Where a policy puts time into the guarantee ([catalog.Timing]), whatever reads protected rows or votes is delayed at
// random and charged for the delay with what it releases. What is not charged, replays among it, is not delayed.

// timed is the delay of a charge; nil for none.
type timed struct{ *mechanisms.Delay }

// timing is the delay that questions about a snapshot's dataset have. It refuses accounts that cannot pay for it, and
// timeouts that would make failures of many answers.
func (s *Service) timing(snapshot *catalog.Snapshot, p accountSet) (*timed, error) {
	if snapshot.Delay == nil {
		return nil, nil
	}
	if slices.ContainsFunc(p.balances, func(b budget.Balance) bool {
		return !b.Limit.ReplayOnly && (b.Limit.Form == budget.Pure || b.Limit.Delta == 0)
	}) {
		return nil, fault.BudgetTiming("that costs delta, and an account that pays for the question is pure, or has none")
	}
	d := &timed{snapshot.Delay}
	if timeout := s.datasets[snapshot.Dataset].Timeout; timeout > 0 && 2*d.longest() > timeout {
		return nil, fault.BudgetTiming(fmt.Sprintf("its delay of up to %s takes more than half of the timeout", d.longest()))
	}
	return d, nil
}

// loss is what the delay costs.
func (d *timed) loss() mechanisms.Loss {
	if d == nil {
		return mechanisms.Loss{}
	}
	return d.Loss()
}

// plus adds the delay to what a charge pays for.
func (d *timed) plus(c *budget.Charge) {
	if d != nil {
		c.Loss, c.Mechanisms = c.Loss.Plus(d.Loss()), append(slices.Clip(c.Mechanisms), d.Parameters())
	}
}

// put draws the delay for a schedule. It is drawn before the charge, and so before the work.
func (d *timed) put(h *schedule) {
	if d != nil {
		h.delay = new(time.Duration(d.Draw(h.sampler)) * time.Microsecond)
	}
}

func (d *timed) average() time.Duration { return time.Duration(d.Shift()) * time.Microsecond }
func (d *timed) longest() time.Duration { return 2 * d.average() }

// note says so in answers and estimates.
func (d *timed) note(notes []api.Note) []api.Note {
	if d == nil {
		return notes
	}
	return append(notes, api.Note{Code: "timing", Text: fmt.Sprintf("the answer is delayed at random, by %s on average, so that the "+
		"time it takes is private too; that is part of the price",
		d.average().Round(time.Millisecond))})
}

// leftOf is the accounts with room for the delay in what one query may cost.
func (d *timed) leftOf(p accountSet) accountSet {
	if d == nil {
		return p
	}
	p.balances = slices.Clone(p.balances)
	l, loss := &p.balances[p.own].Limit, d.loss()
	if l.PerQuery > loss.Epsilon {
		l.PerQuery -= loss.Epsilon
	}
	if l.PerQueryRho > loss.Rho {
		l.PerQueryRho -= loss.Rho
	}
	return p
}
