package accounting

import (
	"math"

	"noisegate.example/mechanisms"
)

// Accountant is a way to add up losses.
type Accountant string

// The accountants, from loose to tight.
const (
	BySum  Accountant = "sum"  // Σε, Σδ
	ByZCDP Accountant = "zcdp" // Σρ, converted at the end
	ByRDP  Accountant = "rdp"  // Rényi divergences of every order, converted at the best
	ByPLD  Accountant = "pld"  // the law of the sum of losses
)

// Total is what one accountant says of a list of releases.
type Total struct {
	Accountant Accountant
	Epsilon    mechanisms.PicoEpsilon // rounded up; 0 when there is none
	Delta      mechanisms.AttoDelta   // with which it holds: the comparison's, or for the sum the releases' own
	Finite     bool                   // whether there is an ε
	// Filter says whether the total also holds when each release is chosen in the light of earlier answers, so that budgets may
	// use it. The others are for lists fixed in advance.
	Filter bool
}

// Compare gives every accountant's ε of a list at δ, and the list's loss as the ledger would charge it.
func Compare(list []Repeated, delta mechanisms.AttoDelta) ([]Total, mechanisms.Loss) {
	var loss mechanisms.Loss
	for _, r := range list {
		loss = loss.Plus(times(r.Event.loss, r.Times))
	}
	sum := Total{Accountant: BySum, Delta: loss.Delta, Filter: true}
	zcdp := Total{Accountant: ByZCDP, Delta: delta, Filter: true}
	rdp, pld := Total{Accountant: ByRDP, Delta: delta}, Total{Accountant: ByPLD, Delta: delta}
	if loss.Delta <= delta && !loss.Unbounded {
		sum.Epsilon, sum.Finite = loss.Epsilon, loss.Epsilon < math.MaxInt64
	}
	if loss.Delta <= delta {
		zcdp.Epsilon, zcdp.Finite = EpsilonFor(loss.Rho, delta-loss.Delta)
	}
	rdp.Epsilon, rdp.Finite = RDPEpsilon(list, delta)
	if p, err := NewPLD(list); err == nil {
		pld.Epsilon, pld.Finite = p.Epsilon(delta)
	}
	return []Total{sum, zcdp, rdp, pld}, loss
}

// times is the loss of n equal releases, saturated like [mechanisms.Loss.Plus].
func times(loss mechanisms.Loss, n int64) mechanisms.Loss {
	var sum mechanisms.Loss
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			sum = sum.Plus(loss)
		}
		loss = loss.Plus(loss)
	}
	return sum
}
