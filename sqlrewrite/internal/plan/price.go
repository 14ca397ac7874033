package plan

import (
	"cmp"
	"errors"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
)

// Release is one statistic with the mechanism that makes it noisy, or chooses by it.
type Release struct {
	Statistic algebra.Statistic
	PerGroup  *big.Int               // Linf; of a selection, rows that one unit has among the candidates of one group
	Mechanism mechanisms.Additive    // nil for a selection, and for a count that shows groups
	Selection *Selection             // nil for noise
	Shown     *mechanisms.ShownCount // of a count by which private keys are shown; nil for others
	Unit      *big.Rat               // one unit of the sealed integer, in the output's unit
	of        *Plan                  // of several blocks: that of its block; else nil
}

// law is what noise and selections have in common.
type law interface {
	Name() mechanisms.Name
	Loss() mechanisms.Loss // of all the groups of one unit together
	Parameters() mechanisms.Parameters
}

func (r Release) Law() law {
	switch {
	case r.Selection != nil:
		return r.Selection
	case r.Shown != nil:
		return r.Shown
	default:
		return r.Mechanism
	}
}

// HalfWidth is that of the noise, in steps; nil for a selection.
func (r Release) HalfWidth(level mechanisms.Confidence) *big.Int {
	switch {
	case r.Selection != nil:
		return nil
	case r.Shown != nil:
		return r.Shown.HalfWidth(level)
	default:
		return r.Mechanism.HalfWidth(level)
	}
}

// partitionSelection decides which private keys are shown.
type partitionSelection struct {
	Mechanism Keeper
}

// Keeper decides group by group, by the sealed number of its units.
type Keeper interface {
	law
	Keep(s *mechanisms.Sampler, units mechanisms.Exact) bool
	ShownAt(probability float64) int64
}

// price makes the mechanism of each release from its portion of the price.
func (p *Plan) price(by keysBy) error {
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
		if err := p.pricePartitionSelection(selection.Epsilon, selection.Rho); err != nil {
			return err
		}
	}
	for i, m := range p.Query.Statistics {
		r := Release{Statistic: m, PerGroup: p.Bounding.PerGroup(m), Unit: m.Unit()}
		switch {
		case p.Query.Top > 0:
			r.Selection, err = p.NewTop(r, portions[i])
		case m.Chooses():
			r.Selection, err = p.NewSelection(r, portions[i])
		default:
			r.Mechanism, err = p.mechanism(m, portions[i].Epsilon, portions[i].Rho)
		}
		if err != nil {
			return err
		}
		if r.Selection != nil {
			r.Unit = r.rows()
		}
		p.Releases = append(p.Releases, r)
	}
	if p.Query.Private() && p.Options.Mechanism == MechanismAuto && by != keysByUnits {
		p.showByCount(selection, portions, by)
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
func (p *Plan) mechanism(of algebra.Statistic, epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	l1, l2Squared := p.Bounding.Norms(of)
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
	m, err := p.Options.Noises.Laplace(parameters)
	if errors.Is(err, mechanisms.ErrTooSmall) {
		return nil, fault.PriceTooSmall(len(p.Query.Statistics))
	}
	return m, internal(err)
}

// pricePartitionSelection makes it from its share and the whole δ of the request.
func (p *Plan) pricePartitionSelection(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) error {
	if p.Options.Delta <= 0 {
		for _, k := range p.Query.Keys {
			if k.Private() {
				return fault.MissingDelta(k.At, k.Name)
			}
		}
	}
	parameters := mechanisms.GroupSelectionParameters{Epsilon: epsilon, Delta: p.Options.Delta, L0: p.Bounding.MaxGroups}
	if epsilon == 0 {
		parameters.Rho = rho
	}
	m, err := mechanisms.NewPartitionSelection(parameters)
	if err != nil {
		return fault.MechanismChoice("the price and δ are too small to ever show a private key", "offer more ε or δ").WithCause(err)
	}
	p.PartitionSelection = &partitionSelection{Mechanism: m}
	if rho == 0 && p.Options.Currency != catalog.ZCDP || p.Options.Currency == catalog.Pure || p.Options.Mechanism == MechanismLaplace {
		return nil
	}
	gaussian, err := mechanisms.NewGaussianThreshold(mechanisms.GaussianThresholdParameters{
		Rho: max(rho, m.Loss().Rho), Delta: p.Options.Delta, L0: p.Bounding.MaxGroups})
	if err == nil && gaussian.ShownAt(shownAt) < m.ShownAt(shownAt) {
		p.PartitionSelection.Mechanism = gaussian
	}
	return nil
}

// shownAt is the probability at which auto compares selections of private keys: the one that shows smaller groups is taken.
const shownAt = 0.95

// showByCount lets a count decide which private keys are shown ([mechanisms.ShownCount]), for the two portions that the selection of keys
// and the count have apart, or on an account in ρ for the ρ that the two are charged. It does so where neither the count's error nor the
// number of units that a group needs is larger then, and one of them smaller. The other releases stay what they are.
func (p *Plan) showByCount(selection Portion, portions []Portion, by keysBy) {
	for i, r := range p.Releases {
		if !p.countsGroups(i) || by == keysByOutputs && !p.showsAlone(i) {
			continue
		}
		l1, _ := p.Bounding.Norms(r.Statistic)
		parameters := mechanisms.ShownCountParameters{Delta: p.Options.Delta, PerGroup: r.PerGroup, Total: l1}
		switch {
		case selection.Epsilon == 0:
			parameters.Rho = selection.Rho + portions[i].Rho
		case p.Options.Currency == catalog.ZCDP:
			parameters.Rho = p.PartitionSelection.Mechanism.Loss().Rho + r.Mechanism.Loss().Rho
		default:
			parameters.Epsilon = selection.Epsilon + portions[i].Epsilon
		}
		m, err := mechanisms.NewShownCount(parameters)
		if err != nil {
			continue
		}
		width := m.HalfWidth(comparedAt).Cmp(r.Mechanism.HalfWidth(comparedAt))
		units := cmp.Compare(m.ShownAt(shownAt), p.PartitionSelection.Mechanism.ShownAt(shownAt))
		if width <= 0 && units <= 0 && width+units < 0 {
			p.PartitionSelection, p.Releases[i].Mechanism, p.Releases[i].Shown = nil, nil, m
			return
		}
	}
}

// countsGroups reports whether a release counts all units or rows of a group, at least one for each unit, and no mean is made of it.
func (p *Plan) countsGroups(release int) bool {
	m := p.Releases[release].Statistic
	switch {
	case m.Filter != nil:
		return false
	case m.Kind == algebra.CountRows && p.Bounding.MaxTotal > 0 && p.Bounding.MostRank == 0: // a unit's share may be none of its rows
		return false
	case m.Kind != algebra.CountUnits && m.Kind != algebra.CountRows:
		return false
	}
	for _, v := range p.Query.Estimators {
		if v.Computed() && slices.Contains(v.Of, release) {
			return false
		}
	}
	return true
}

// showsAlone reports whether outputs show a release, and those that do read nothing else. Intervals of a count are known given that its
// group is shown, and those of ratios are wider for it than those of noise of one law.
func (p *Plan) showsAlone(release int) bool {
	shown := false
	for _, o := range p.Query.Outputs {
		used := bind.ReleasesOf(p.Query, o.Expr)
		if used[release] && len(used) > 1 {
			return false
		}
		shown = shown || used[release]
	}
	return shown
}

// internal wraps the refusal of a mechanism: its parameters were checked before.
func internal(err error) error {
	if err == nil {
		return nil
	}
	return fault.Internal(err)
}
