package sqlrewrite

import (
	"errors"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// release is one measure with the mechanism that makes it noisy, or chooses by it.
type release struct {
	measure   measure
	perGroup  *big.Int            // Linf; of a selection, rows that one unit has among the candidates of one group
	mechanism mechanisms.Additive // nil for a selection
	pick      *pick               // nil for noise
	unit      *big.Rat            // one unit of the sealed integer, in the output's unit
}

// law is what noise and selections have in common.
type law interface {
	Name() mechanisms.Name
	Loss() mechanisms.Loss // of all the groups of one unit together
	Parameters() mechanisms.Parameters
}

func (r release) law() law {
	if r.pick != nil {
		return r.pick
	}
	return r.mechanism
}

// selection decides which private keys are shown.
type selection struct {
	mechanism keeper
}

// keeper decides group by group, by the sealed number of its units.
type keeper interface {
	law
	Keep(s *mechanisms.Sampler, units mechanisms.Exact) bool
	ShownAt(probability float64) int64
}

// price makes the mechanism of each release from its portion of the price.
func (p *pricedPlan) price() error {
	if err := p.checkChoice(); err != nil {
		return err
	}
	var err error
	if p.weights, err = p.query.weigh(p.options.Weights); err != nil {
		return err
	}
	selection, portions, err := p.split()
	if err != nil {
		return err
	}
	if p.query.private() {
		if err := p.priceSelection(selection.epsilon, selection.rho); err != nil {
			return err
		}
	}
	for i, m := range p.query.measures {
		r := release{measure: m, perGroup: p.shape.perGroup(m), unit: m.unit()}
		switch {
		case p.query.top > 0:
			r.pick, err = p.newTop(r, portions[i])
		case m.chooses():
			r.pick, err = p.newPick(r, portions[i])
		default:
			r.mechanism, err = p.mechanism(r.perGroup, portions[i].epsilon, portions[i].rho)
		}
		if err != nil {
			return err
		}
		if r.pick != nil {
			r.unit = r.rows()
		}
		p.releases = append(p.releases, r)
	}
	return nil
}

// checkChoice refuses mechanisms that cannot pay in the account's currency.
func (p *pricedPlan) checkChoice() error {
	o := p.options
	switch {
	case (o.Epsilon > 0) == (o.Rho > 0):
		return fault.MechanismChoice("exactly one of epsilon and rho is the price", `give "epsilon", for example "0.5"`)
	case o.Mechanism == MechanismGaussian && o.Currency == catalog.Pure:
		return fault.MechanismChoice("gaussian noise has no pure ε, which is what this budget adds up", `ask for "laplace" or "auto"`)
	case o.Mechanism == MechanismGaussian && o.Rho == 0:
		return fault.MechanismChoice("gaussian noise for a price in ε needs a δ", `add "delta", or give the price as "rho"`)
	case o.Mechanism != MechanismAuto && o.Mechanism != MechanismLaplace && o.Mechanism != MechanismGaussian:
		return fault.MechanismChoice("there is no such mechanism", `ask for "auto", "laplace" or "gaussian"`)
	default:
		return nil
	}
}

// mechanism makes the noise of one release from its share of the price.
func (p *pricedPlan) mechanism(perGroup *big.Int, epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	l1, l2Squared := p.norms(perGroup)
	gaussian := func(rho mechanisms.PicoRho) (mechanisms.Additive, error) {
		m, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: l2Squared, Rho: rho})
		return m, internal(err)
	}
	if p.options.Mechanism == MechanismGaussian {
		return gaussian(rho)
	}
	laplace, err := p.laplace(l1, epsilon, rho)
	if err != nil {
		return nil, err
	}
	if p.options.Mechanism == MechanismLaplace || p.options.Currency == catalog.Pure || rho == 0 && p.options.Currency != catalog.ZCDP {
		return laplace, nil // what adds up is ε, or was asked to
	}
	other, err := gaussian(max(rho, laplace.Loss().Rho))
	if err != nil {
		return nil, err
	}
	if other.HalfWidth(comparedAt).Cmp(laplace.HalfWidth(comparedAt)) < 0 {
		return other, nil
	}
	return laplace, nil
}

// comparedAt is the level at which auto compares mechanisms, whatever the request's.
const comparedAt mechanisms.Confidence = 0.95

// laplace makes Laplace noise for a share in ε, or the least noise whose ρ fits into a share in ρ.
func (p *pricedPlan) laplace(l1 *big.Int, epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	parameters := mechanisms.LaplaceParameters{L1: l1, Epsilon: epsilon}
	if epsilon == 0 {
		parameters.Rho = rho
	}
	m, err := mechanisms.NewLaplace(parameters)
	if errors.Is(err, mechanisms.ErrTooSmall) {
		return nil, fault.PriceTooSmall(len(p.query.measures))
	}
	return m, internal(err)
}

// priceSelection makes the selection of private keys from its share and the whole δ of the request.
func (p *pricedPlan) priceSelection(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) error {
	if p.options.Delta <= 0 {
		for _, k := range p.query.keys {
			if k.private() {
				return fault.MissingDelta(k.at, k.name)
			}
		}
	}
	parameters := mechanisms.GroupSelectionParameters{Epsilon: epsilon, Delta: p.options.Delta, L0: p.shape.maxGroups}
	if epsilon == 0 {
		parameters.Rho = rho
	}
	m, err := mechanisms.NewPartitionSelection(parameters)
	if err != nil {
		return fault.MechanismChoice("the price and δ are too small to ever show a private key", "offer more ε or δ").WithCause(err)
	}
	p.selection = &selection{mechanism: m}
	if rho == 0 && p.options.Currency != catalog.ZCDP || p.options.Currency == catalog.Pure || p.options.Mechanism == MechanismLaplace {
		return nil
	}
	gaussian, err := mechanisms.NewGaussianThreshold(mechanisms.GaussianThresholdParameters{
		Rho: max(rho, m.Loss().Rho), Delta: p.options.Delta, L0: p.shape.maxGroups})
	if err == nil && gaussian.ShownAt(shownAt) < m.ShownAt(shownAt) {
		p.selection.mechanism = gaussian
	}
	return nil
}

// shownAt is the probability at which auto compares selections of private keys: the one that shows smaller groups is taken.
const shownAt = 0.95

// internal wraps the refusal of a mechanism: its parameters were checked before.
func internal(err error) error {
	if err == nil {
		return nil
	}
	return fault.Internal(err)
}
