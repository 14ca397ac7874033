package sqlrewrite

import (
	"errors"
	"maps"
	"math/big"
	"slices"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// portion is one release's part of the price, in the currency of the price; the other amount is zero.
type portion struct {
	epsilon mechanisms.PicoEpsilon
	rho     mechanisms.PicoRho
}

// split divides the price over the selection of private keys, if there is one, and the releases, in whole pico units rounded down:
// the sum never exceeds what was asked. Without weights all portions are equal. With weights selections keep their equal
// portions, and the other releases share the rest so that the weighted sum of their variances is smallest.
func (p *pricedPlan) split() (selection portion, releases []portion, err error) {
	n := len(p.query.measures)
	if p.query.private() {
		n++
	}
	if n == 0 {
		return portion{}, nil, nil
	}
	equal := portion{p.options.Epsilon / mechanisms.PicoEpsilon(n), p.options.Rho / mechanisms.PicoRho(n)}
	if equal == (portion{}) {
		return portion{}, nil, fault.PriceTooSmall(n)
	}
	releases = slices.Repeat([]portion{equal}, len(p.query.measures))
	if p.weights == nil {
		return equal, releases, nil
	}
	rest := portion{p.options.Epsilon, p.options.Rho}
	less := func() { rest.epsilon, rest.rho = rest.epsilon-equal.epsilon, rest.rho-equal.rho }
	if p.query.private() {
		less()
	}
	var weighed []int
	for i, m := range p.query.measures {
		if m.chooses() {
			less()
		} else {
			weighed = append(weighed, i)
		}
	}
	err = p.splitByWeight(rest, weighed, releases)
	if errors.Is(err, mechanisms.ErrTooSmall) {
		return portion{}, nil, fault.PriceTooSmall(n)
	}
	return equal, releases, internal(err)
}

// splitByWeight divides by the rules of [mechanisms.AllocateRho] and [mechanisms.AllocateEpsilon]. All releases have the same L0, so
// that their L1 and their L2 sensitivities are in the proportion of Linf, taken in the unit of the output.
func (p *pricedPlan) splitByWeight(total portion, weighed []int, portions []portion) error {
	if len(weighed) == 0 {
		return nil
	}
	shares := make([]mechanisms.Share, len(weighed))
	for at, i := range weighed {
		m := p.query.measures[i]
		shares[at] = mechanisms.Share{Weight: p.weights[i], Sensitivity: inUnits(p.shape.perGroup(m), m.unit())}
	}
	if total.epsilon > 0 {
		parts, err := mechanisms.AllocateEpsilon(total.epsilon, shares)
		for at, part := range parts {
			portions[weighed[at]].epsilon = part
		}
		return err
	}
	parts, err := mechanisms.AllocateRho(total.rho, shares)
	for at, part := range parts {
		portions[weighed[at]].rho = part
	}
	return err
}

// weigh gives each release the sum of the weights of the outputs that are computed from it; nil without weights. An output that
// the request does not name weighs 1, and so does a release that only HAVING or ORDER BY reads.
func (q *boundQuery) weigh(named map[string]*big.Rat) ([]*big.Rat, error) {
	if len(named) == 0 {
		return nil, nil
	}
	weights, outputs := make([]*big.Rat, len(q.measures)), map[string]bool{}
	for _, o := range q.outputs {
		used := q.releasesOf(o.expr)
		outputs[o.name] = outputs[o.name] || len(used) > 0
		weight := named[o.name]
		if weight == nil {
			weight = one()
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
			weights[i] = one()
		}
	}
	return weights, nil
}
