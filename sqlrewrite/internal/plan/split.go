package plan

import (
	"errors"
	"maps"
	"math/big"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Portion is one release's part of the price, in the currency of the price; the other amount is zero.
type Portion struct {
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho
}

// Split divides the price over the selection of private keys, if there is one, and the releases, in whole pico units rounded down:
// the sum never exceeds what was asked. Without weights all portions are equal. With weights selections keep their equal
// portions, and the other releases share the rest so that the weighted sum of their variances is smallest.
func (p *Plan) Split() (selection Portion, releases []Portion, err error) {
	n := len(p.Query.Statistics)
	if p.Query.Private() {
		n++
	}
	if n == 0 {
		return Portion{}, nil, nil
	}
	equal := Portion{p.Options.Epsilon / mechanisms.PicoEpsilon(n), p.Options.Rho / mechanisms.PicoRho(n)}
	if equal == (Portion{}) {
		return Portion{}, nil, fault.PriceTooSmall(n)
	}
	releases = slices.Repeat([]Portion{equal}, len(p.Query.Statistics))
	if p.Weights == nil {
		return equal, releases, nil
	}
	rest := Portion{p.Options.Epsilon, p.Options.Rho}
	less := func() { rest.Epsilon, rest.Rho = rest.Epsilon-equal.Epsilon, rest.Rho-equal.Rho }
	if p.Query.Private() {
		less()
	}
	var weighed []int
	for i, m := range p.Query.Statistics {
		if m.Chooses() {
			less()
		} else {
			weighed = append(weighed, i)
		}
	}
	err = p.splitByWeight(rest, weighed, releases)
	if errors.Is(err, mechanisms.ErrTooSmall) {
		return Portion{}, nil, fault.PriceTooSmall(n)
	}
	return equal, releases, internal(err)
}

// splitByWeight divides by the rules of [mechanisms.AllocateRho] and [mechanisms.AllocateEpsilon]. Releases have the same L0 and the same
// bound on rows, so that their L1 and their L2 sensitivities are in the proportion of Linf, taken in the unit of the output; where
// max_rows_total bounds rows a count of units is apart, and the split a little from the best.
func (p *Plan) splitByWeight(total Portion, weighed []int, portions []Portion) error {
	if len(weighed) == 0 {
		return nil
	}
	shares := make([]mechanisms.Share, len(weighed))
	for at, i := range weighed {
		m := p.Query.Statistics[i]
		shares[at] = mechanisms.Share{Weight: p.Weights[i], Sensitivity: scalar.InUnits(p.Bounding.PerGroup(m), m.Unit())}
	}
	if total.Epsilon > 0 {
		parts, err := mechanisms.AllocateEpsilon(total.Epsilon, shares)
		for at, part := range parts {
			portions[weighed[at]].Epsilon = part
		}
		return err
	}
	parts, err := mechanisms.AllocateRho(total.Rho, shares)
	for at, part := range parts {
		portions[weighed[at]].Rho = part
	}
	return err
}

// weigh gives each release the sum of the weights of the outputs that are computed from it; nil without weights. An output that
// the request does not name weighs 1, and so does a release that only HAVING or ORDER BY reads.
func weigh(q *algebra.BoundQuery, named map[string]*big.Rat) ([]*big.Rat, error) {
	if len(named) == 0 {
		return nil, nil
	}
	weights, outputs := make([]*big.Rat, len(q.Statistics)), map[string]bool{}
	for _, o := range q.Outputs {
		used := bind.ReleasesOf(q, o.Expr)
		outputs[o.Name] = outputs[o.Name] || len(used) > 0
		weight := named[o.Name]
		if weight == nil {
			weight = scalar.One()
		}
		for i := range used {
			if weights[i] == nil {
				weights[i] = new(big.Rat)
			}
			weights[i].Add(weights[i], weight)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !outputs[name] {
			return nil, fault.RequestWeights("about outputs with aggregates, and " + fault.Quote(name) + " is none")
		}
	}
	for i, w := range weights {
		if w == nil {
			weights[i] = scalar.One()
		}
	}
	return weights, nil
}
