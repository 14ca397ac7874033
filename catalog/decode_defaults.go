package catalog

import "math/big"

// checkDefaults holds the defaults of a line against the line itself: a request without a price must not be refused for
// what the same line says.
func (d *decoder) checkDefaults(n *node, b Budget) {
	cost := b.DefaultCost()
	above := func(limit *big.Rat) bool {
		return limit != nil && b.DefaultEpsilon != nil && b.DefaultEpsilon.Cmp(limit) > 0
	}
	switch {
	case cost == nil && b.DefaultDelta == nil:
	case b.DefaultEpsilon != nil && b.DefaultRho != nil:
		d.problem(n.pos, "", "a budget has default_epsilon or default_rho, not both")
	case b.DefaultRho != nil && b.Form == Pure:
		d.problem(n.pos, "write default_epsilon", "a budget of form pure takes no rho")
	case above(b.Epsilon) || b.DefaultRho != nil && b.Rho != nil && b.DefaultRho.Cmp(b.Rho) > 0:
		d.problem(n.pos, "", "the default price is more than the budget has")
	case above(b.MaxEpsilonPerQuery):
		d.problem(n.pos, "", "default_epsilon is more than max_epsilon_per_query")
	case b.DefaultEpsilon != nil && b.MinEpsilon != nil && b.DefaultEpsilon.Cmp(b.MinEpsilon) < 0:
		d.problem(n.pos, "", "default_epsilon is less than min_epsilon")
	case b.DefaultDelta != nil && b.Form != "" && !b.paysDelta(b.DefaultDelta):
		d.problem(n.pos, "", "default_delta is more than the budget may spend: delta, or half of it with form approx")
	}
}

// paysDelta reports whether a line may spend a δ; see NewLimit in package budget for the half.
func (b Budget) paysDelta(delta *big.Rat) bool {
	if b.Delta == nil {
		return false
	}
	most := b.Delta
	if b.Form == Approx {
		most = new(big.Rat).Quo(b.Delta, big.NewRat(2, 1))
	}
	return delta.Cmp(most) <= 0
}

// checkDefaultsTogether holds the defaults of all lines against the dataset's, which concerns every caller.
func (d *decoder) checkDefaultsTogether(all []Budget) {
	for _, whole := range all {
		if whole.Scope != DatasetScope {
			continue
		}
		for _, b := range all {
			switch {
			case b.DefaultEpsilon == nil:
			case whole.MinEpsilon != nil && b.DefaultEpsilon.Cmp(whole.MinEpsilon) < 0:
				d.problem(b.pos, "", "default_epsilon is less than min_epsilon of the dataset")
			case whole.MaxEpsilonPerQuery != nil && b.DefaultEpsilon.Cmp(whole.MaxEpsilonPerQuery) > 0:
				d.problem(b.pos, "", "default_epsilon is more than max_epsilon_per_query of the dataset")
			}
		}
	}
}
