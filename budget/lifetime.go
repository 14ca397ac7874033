package budget

import (
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/mechanisms"
)

// Lifetime is the most that the account loses in all time: what its cap promises, refills included, and never less than
// what is spent and reserved already, which a cap that was lowered does not take back. Of ρ it is the ε at [DisplayDelta].
func (b Balance) Lifetime() Promise { return b.mayLose(b.Limit) }

// WorstCase gives the most that the account's charges until a time can add up to: the tranches released by that time, and never less than
// the amounts spent and reserved already.
func (b Balance) WorstCase(until time.Time) Promise {
	return b.mayLose(b.Limit.Released(b.Opened, until))
}

func (b Balance) mayLose(limit Limit) Promise {
	promise, used := limit.Promise(), b.Used()
	if limit.Admits(used, mechanisms.Loss{}) {
		return promise
	}
	lost := lossOf(used, limit)
	return Promise{Epsilon: max(promise.Epsilon, lost.Epsilon), Delta: max(promise.Delta, lost.Delta),
		Bounded: promise.Bounded && lost.Bounded}
}

// lossOf is a loss as (ε, δ): by its ε, or by its ρ where that gives less; pure accounts know no ρ.
func lossOf(used mechanisms.Loss, limit Limit) Promise {
	byEpsilon := Promise{Epsilon: used.Epsilon, Delta: used.Delta + used.Tail, Bounded: true}
	delta := limit.ConversionDelta()
	if delta == 0 && !used.Unbounded {
		return byEpsilon
	}
	delta = max(delta, DisplayDelta)
	epsilon, bounded := accounting.EpsilonFor(used.Rho, delta)
	if !used.Unbounded && (!bounded || used.Epsilon <= epsilon) {
		return byEpsilon
	}
	return Promise{Epsilon: epsilon, Delta: used.Delta + used.Tail + delta, Bounded: bounded}
}
