package gateway

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// floor is the least that a release of protected rows costs. Noise covers what is released, but not status, time and load. Such a channel
// can leak once a question, and the floor bounds the number of questions in a budget (docs/guarantees.md).
type floor struct {
	epsilon mechanisms.PicoEpsilon
	rho     mechanisms.PicoRho // of what has no finite ε: ε²/2, which an ε-DP mechanism has at most (Bun and Steinke 2016, Proposition 1.4)
}

// defaultFloor is in force where no line of the policy that concerns the caller says otherwise.
const defaultFloor = catalog.DefaultFloor

// floorAt is the floor at an ε, rounded up.
func floorAt(epsilon mechanisms.PicoEpsilon) floor {
	square := new(big.Int).Mul(big.NewInt(int64(epsilon)), big.NewInt(int64(epsilon)))
	half := square.Add(square, big.NewInt(2*int64(mechanisms.EpsilonUnit)-1))
	return floor{epsilon, mechanisms.PicoRho(half.Div(half, big.NewInt(2*int64(mechanisms.EpsilonUnit))).Int64())}
}

// floorOf is the highest of the floors of some lines of a policy; nil lines have none.
func floorOf(lines []*catalog.Budget) (floor, error) {
	highest := mechanisms.PicoEpsilon(0)
	for _, line := range lines {
		if line == nil || line.MinEpsilon == nil {
			continue
		}
		epsilon, err := mechanisms.ParseEpsilon(line.MinEpsilon.FloatString(12))
		if err != nil {
			return floor{}, fault.Internal(err) // the policy was checked when it was applied
		}
		highest = max(highest, epsilon)
	}
	if highest == 0 {
		highest = defaultFloor
	}
	return floorAt(highest), nil
}

// reaches reports whether a release costs at least the floor: by its ε where it has one, as a price in ρ then has an ε of no less.
func (f floor) reaches(l mechanisms.Loss) bool {
	if l.Unbounded {
		return l.Rho >= f.rho
	}
	return l.Epsilon >= f.epsilon
}

// priced reports whether a price, an ε or, if that is 0, a ρ, is at least the floor. What it is split into is rounded
// down, so that its loss may be a little less.
func (f floor) priced(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) bool {
	return epsilon >= f.epsilon || epsilon == 0 && rho >= f.rho
}

// charged is what a release at a price that is high enough counts as: in ε and in ρ at least the floor. An ε that is
// split over many outputs has less ρ than that of one, and an account that adds up ρ would admit more questions than
// the floor lets it. Nothing costs nothing.
func (f floor) charged(l mechanisms.Loss) mechanisms.Loss {
	if l.IsZero() {
		return l
	}
	if l.Rho = max(l.Rho, f.rho); !l.Unbounded {
		l.Epsilon = max(l.Epsilon, f.epsilon)
	}
	return l
}

// check refuses a release below the floor; what names it.
func (f floor) check(what string, l mechanisms.Loss) error {
	if f.reaches(l) {
		return nil
	}
	return fault.BudgetUnderFloor(what, f.epsilon.String(), f.rho.String())
}

// checkSlots refuses a plan with a slot below the floor: a question may draw that slot alone.
func (f floor) checkSlots(slots []mechanisms.Slot) error {
	for _, slot := range slots {
		if slot.Epsilon < f.epsilon && slot.Rho < f.rho {
			return fault.BudgetUnderFloor("a slot of the plan", f.epsilon.String(), f.rho.String())
		}
	}
	return nil
}
