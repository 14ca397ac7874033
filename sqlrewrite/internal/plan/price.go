package plan

import (
	"errors"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/algebra"
)

// Release is one measure with the mechanism that makes it noisy, or chooses by it.
type Release struct {
	Measure   algebra.Measure
	PerGroup  *big.Int            // Linf; of a selection, rows that one unit has among the candidates of one group
	Mechanism mechanisms.Additive // nil for a selection
	Pick      *Pick               // nil for noise
	Unit      *big.Rat            // one unit of the sealed integer, in the output's unit
}

// law is what noise and selections have in common.
type law interface {
	Name() mechanisms.Name
	Loss() mechanisms.Loss // of all the groups of one unit together
	Parameters() mechanisms.Parameters
}

func (r Release) Law() law {
	if r.Pick != nil {
		return r.Pick
	}
	return r.Mechanism
}

// selection decides which private keys are shown.
type selection struct {
	Mechanism Keeper
}

// Keeper decides group by group, by the sealed number of its units.
type Keeper interface {
	law
	Keep(s *mechanisms.Sampler, units mechanisms.Exact) bool
	ShownAt(probability float64) int64
}

// price makes the mechanism of each release from its portion of the price.
func (p *Plan) price() error {
	if err := p.checkChoice(); err != nil {
		return err
	}
	if err := p.checkSelection(); err != nil {
		return err
	}
	var err error
	if p.Weights, err = weigh(p.Query, p.Options.Weights); err != nil {
		return err
	}
	selection, portions, err := p.Split()
	if err != nil {
		return err
	}
	if p.Query.Private() {
		if err := p.priceSelection(selection.Epsilon, selection.Rho); err != nil {
			return err
		}
	}
	for i, m := range p.Query.Measures {
		r := Release{Measure: m, PerGroup: p.Shape.PerGroup(m), Unit: m.Unit()}
		switch {
		case p.Query.Top > 0:
			r.Pick, err = p.NewTop(r, portions[i])
		case m.Chooses():
			r.Pick, err = p.NewPick(r, portions[i])
		default:
			r.Mechanism, err = p.mechanism(m, portions[i].Epsilon, portions[i].Rho)
		}
		if err != nil {
			return err
		}
		if r.Pick != nil {
			r.Unit = r.rows()
		}
		p.Releases = append(p.Releases, r)
	}
	return nil
}

// checkChoice refuses mechanisms that cannot pay in the account's currency.
func (p *Plan) checkChoice() error {
	o := p.Options
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
func (p *Plan) mechanism(of algebra.Measure, epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	l1, l2Squared := p.Shape.Norms(of)
	gaussian := func(rho mechanisms.PicoRho) (mechanisms.Additive, error) {
		m, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: l2Squared, Rho: rho})
		return m, internal(err)
	}
	if p.Options.Mechanism == MechanismGaussian {
		return gaussian(rho)
	}
	laplace, err := p.laplace(l1, epsilon, rho)
	if err != nil {
		return nil, err
	}
	if p.Options.Mechanism == MechanismLaplace || p.Options.Currency == catalog.Pure || rho == 0 && p.Options.Currency != catalog.ZCDP {
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
func (p *Plan) laplace(l1 *big.Int, epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	parameters := mechanisms.LaplaceParameters{L1: l1, Epsilon: epsilon}
	if epsilon == 0 {
		parameters.Rho = rho
	}
	m, err := mechanisms.NewLaplace(parameters)
	if errors.Is(err, mechanisms.ErrTooSmall) {
		return nil, fault.PriceTooSmall(len(p.Query.Measures))
	}
	return m, internal(err)
}

// priceSelection makes the selection of private keys from its share and the whole δ of the request.
func (p *Plan) priceSelection(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) error {
	if p.Options.Delta <= 0 {
		for _, k := range p.Query.Keys {
			if k.Private() {
				return fault.MissingDelta(k.At, k.Name)
			}
		}
	}
	parameters := mechanisms.GroupSelectionParameters{Epsilon: epsilon, Delta: p.Options.Delta, L0: p.Shape.MaxGroups}
	if epsilon == 0 {
		parameters.Rho = rho
	}
	m, err := mechanisms.NewPartitionSelection(parameters)
	if err != nil {
		return fault.MechanismChoice("the price and δ are too small to ever show a private key", "offer more ε or δ").WithCause(err)
	}
	p.Selection = &selection{Mechanism: m}
	if rho == 0 && p.Options.Currency != catalog.ZCDP || p.Options.Currency == catalog.Pure || p.Options.Mechanism == MechanismLaplace {
		return nil
	}
	gaussian, err := mechanisms.NewGaussianThreshold(mechanisms.GaussianThresholdParameters{
		Rho: max(rho, m.Loss().Rho), Delta: p.Options.Delta, L0: p.Shape.MaxGroups})
	if err == nil && gaussian.ShownAt(shownAt) < m.ShownAt(shownAt) {
		p.Selection.Mechanism = gaussian
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
