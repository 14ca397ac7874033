package gateway

import (
	"math/big"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// defaults are what a request costs that does not say so: the smallest of the lines of the policy that concern the
// caller. Zero: no line has one, and such a request is refused. The most that one query may cost is never a default.
type defaults struct {
	epsilon mechanisms.PicoEpsilon // at most one of epsilon and rho
	rho     mechanisms.PicoRho
	delta   mechanisms.AttoDelta // for queries that need one
}

// defaultsOf are the smallest defaults of some lines of a policy; nil lines have none. A ρ is compared with the ρ that
// every ε-DP mechanism has at most, ε²/2.
func defaultsOf(lines []*catalog.Budget) (d defaults, err error) {
	var least *big.Rat // ρ, of the price
	for _, line := range lines {
		if line == nil {
			continue
		}
		if of := line.DefaultCost(); of != nil && (least == nil || of.Cmp(least) < 0) {
			least, d.epsilon, d.rho = of, 0, 0
			if line.DefaultEpsilon != nil {
				d.epsilon, err = mechanisms.ParseEpsilon(line.DefaultEpsilon.FloatString(12))
			} else {
				d.rho, err = mechanisms.ParseRho(line.DefaultRho.FloatString(12))
			}
		}
		if line.DefaultDelta != nil && err == nil {
			var delta mechanisms.AttoDelta
			if delta, err = mechanisms.ParseDelta(line.DefaultDelta.FloatString(18)); d.delta == 0 || delta < d.delta {
				d.delta = delta
			}
		}
		if err != nil {
			return defaults{}, fault.Internal(err) // the policy was checked when it was applied
		}
	}
	return d, nil
}

// price gives options without a price the default one, and Gaussian noise that is priced in ε the default δ.
func (d defaults) price(o *sqlrewrite.Options, own budget.Limit) error {
	if o.Epsilon == 0 && o.Rho == 0 {
		if d.epsilon == 0 && d.rho == 0 {
			return fault.RequestNoPrice(smallPrice(own).String())
		}
		o.Epsilon, o.Rho = d.epsilon, d.rho
	}
	if o.Mechanism == sqlrewrite.MechanismGaussian && o.Epsilon > 0 && o.Delta == 0 {
		o.Delta = d.delta
	}
	return nil
}

// smallPrice is an ε of 0.1, or less where one query may not cost that much.
func smallPrice(l budget.Limit) mechanisms.PicoEpsilon {
	const small = mechanisms.EpsilonUnit / 10
	if l.PerQuery > 0 {
		return min(small, l.PerQuery)
	}
	return small
}
