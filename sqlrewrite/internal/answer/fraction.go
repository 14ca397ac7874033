package sqlrewrite

import (
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/syntax"
)

// linear is a weighted sum of releases, by their index and in their steps, and a constant. It is not changed once made.
type linear struct {
	weights  map[int]*big.Rat
	constant *big.Rat
}

func constantly(v *big.Rat) linear { return linear{constant: v} }

// isConstant reports whether there is no release in it.
func (a linear) isConstant() bool { return len(a.weights) == 0 }

func (a linear) plus(b linear) linear {
	sum := linear{weights: make(map[int]*big.Rat), constant: new(big.Rat).Add(a.constant, b.constant)}
	for _, part := range []linear{a, b} {
		for i, w := range part.weights {
			if sum.weights[i] == nil {
				sum.weights[i] = new(big.Rat)
			}
			sum.weights[i].Add(sum.weights[i], w)
		}
	}
	for i, w := range sum.weights {
		if w.Sign() == 0 {
			delete(sum.weights, i)
		}
	}
	return sum
}

func (a linear) scaled(factor *big.Rat) linear {
	out := linear{constant: new(big.Rat).Mul(a.constant, factor)}
	if factor.Sign() != 0 {
		out.weights = make(map[int]*big.Rat, len(a.weights))
		for i, w := range a.weights {
			out.weights[i] = new(big.Rat).Mul(w, factor)
		}
	}
	return out
}

// times is the product, where that is linear.
func (a linear) times(b linear) (linear, bool) {
	if a.isConstant() {
		return b.scaled(a.constant), true
	}
	return a.scaled(b.constant), b.isConstant()
}

func (a linear) equals(b linear) bool {
	difference := a.plus(b.scaled(big.NewRat(-1, 1)))
	return difference.isConstant() && difference.constant.Sign() == 0
}

// at is the value for noisy releases.
func (a linear) at(noisy []*big.Int) *big.Rat {
	v := new(big.Rat).Set(a.constant)
	for i, w := range a.weights {
		v.Add(v, inUnits(noisy[i], w))
	}
	return v
}

// fraction is an expression as a quotient of two weighted sums of releases: a mean, a share, a rate, and what is added to or
// multiplied with one of these. Of such an expression the interval is known exactly ([fieller]), and before there is data where the
// divisor is a constant.
type fraction struct {
	over, under linear
	within      *span // where the true value lies in any case, by the policy's bounds; nil: anywhere
}

// fraction is the form of an expression over releases and constants; ok is false for others.
func (p *pricedPlan) fraction(e expr) (f fraction, ok bool) {
	switch e := e.(type) {
	case valueRef:
		return p.valueFraction(p.query.values[e.index])
	case constant:
		v, ok := numberOf(e)
		return fraction{over: constantly(v), under: constantly(one()), within: point(v)}, ok
	case negate:
		f, ok := p.fraction(e.x)
		return f.scaled(big.NewRat(-1, 1)), ok
	case cast:
		if e.t != catalog.Numeric && !isFloat(e.t) || len(e.mods) > 0 {
			return fraction{}, false
		}
		return p.fraction(e.x)
	case call:
		if same := e.name == "nullif" || e.name == "coalesce" && p.neverNull(e.args[0]); !same || len(p.query.releasesOf(e)) > len(p.query.releasesOf(e.args[0])) {
			return fraction{}, false
		}
		return p.fraction(e.args[0])
	case binary:
		if e.op == syntax.Divide && e.t.IsInteger() {
			return fraction{}, false // it is truncated
		}
		return p.binaryFraction(e)
	default:
		return fraction{}, false
	}
}

// neverNull reports whether an expression is a release as it is.
func (p *pricedPlan) neverNull(e expr) bool {
	v, ok := e.(valueRef)
	return ok && !p.query.values[v.index].computed()
}

// valueFraction is a release, or a mean: the sum of centred values over their number, and the centre.
func (p *pricedPlan) valueFraction(v value) (fraction, bool) {
	if v.how == arrayOf || p.releases[v.of[0]].mechanism == nil {
		return fraction{}, false
	}
	release := func(i int, weight *big.Rat) linear {
		return linear{weights: map[int]*big.Rat{i: weight}, constant: new(big.Rat)}
	}
	first := v.of[0]
	switch v.how {
	case asReleased:
		return fraction{over: release(first, p.releases[first].unit), under: constantly(one())}, true
	case meanOf:
		g := p.releases[v.of[1]].measure.grid
		sum, centre := release(v.of[1], g.step), release(first, inUnits(g.centre(), g.step))
		return fraction{over: sum.plus(centre), under: release(first, one()), within: p.certain(v)}, true
	default:
		return fraction{}, false
	}
}

func (p *pricedPlan) binaryFraction(e binary) (fraction, bool) {
	l, okL := p.fraction(e.l)
	r, okR := p.fraction(e.r)
	if !okL || !okR {
		return fraction{}, false
	}
	switch e.op {
	case syntax.Add:
		return l.plus(r)
	case syntax.Subtract:
		return l.plus(r.scaled(big.NewRat(-1, 1)))
	case syntax.Multiply:
		return l.times(r)
	case syntax.Divide:
		if divisor := r.over.constant; r.over.isConstant() && r.under.isConstant() && divisor.Sign() != 0 {
			return l.scaled(new(big.Rat).Quo(r.under.constant, divisor)), true
		}
		return l.times(fraction{over: r.under, under: r.over})
	default:
		return fraction{}, false
	}
}

func (f fraction) scaled(factor *big.Rat) fraction {
	f.over = f.over.scaled(factor)
	if f.within != nil {
		f.within = extremes(f.within, point(factor), product)
	}
	return f
}

// plus is the sum of two fractions, where one divisor is a constant, or both are the same.
func (f fraction) plus(g fraction) (sum fraction, ok bool) {
	if f.within != nil && g.within != nil {
		sum.within = &span{lo: new(big.Rat).Add(f.within.lo, g.within.lo), hi: new(big.Rat).Add(f.within.hi, g.within.hi)}
	}
	if f.under.equals(g.under) {
		sum.over, sum.under = f.over.plus(g.over), f.under
		return sum, true
	}
	left, okLeft := f.over.times(g.under)
	right, okRight := g.over.times(f.under)
	under, okUnder := f.under.times(g.under)
	sum.over, sum.under = left.plus(right), under
	return sum, okLeft && okRight && okUnder
}

// times is the product of two fractions, where both of its sums stay linear.
func (f fraction) times(g fraction) (out fraction, ok bool) {
	if f.within != nil && g.within != nil {
		out.within = extremes(f.within, g.within, product)
	}
	over, okOver := f.over.times(g.over)
	under, okUnder := f.under.times(g.under)
	out.over, out.under = over, under
	return out, okOver && okUnder
}

func product(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

// affine are the weights of the releases, where the divisor is a constant that is not zero.
func (f fraction) affine() (map[int]*big.Rat, bool) {
	if !f.under.isConstant() || f.under.constant.Sign() == 0 {
		return nil, false
	}
	return f.over.scaled(new(big.Rat).Inv(f.under.constant)).weights, true
}

// numberOf is the value of a constant.
func numberOf(e expr) (*big.Rat, bool) {
	c, ok := e.(constant)
	if !ok || c.null || !c.t.IsNumber() {
		return nil, false
	}
	return parseNumber(c.text)
}

// sumWidth is the half-width of a weighted sum of releases at the requested confidence; nil: infinite.
func (p *pricedPlan) sumWidth(weights map[int]*big.Rat) *big.Rat {
	terms := p.terms(weights)
	if len(terms) == 1 {
		w := inUnits(terms[0].Noise.HalfWidth(p.options.Confidence), terms[0].Weight)
		return w.Abs(w)
	}
	return new(big.Rat).SetFloat64(mechanisms.SumHalfWidth(terms, p.options.Confidence))
}

// terms are the noise of a weighted sum, in the order of releases: the sum of floats depends on it.
func (p *pricedPlan) terms(weights map[int]*big.Rat) []mechanisms.Term {
	var terms []mechanisms.Term
	for _, i := range sortedReleases(weights) {
		terms = append(terms, mechanisms.Term{Noise: p.releases[i].mechanism, Weight: weights[i]})
	}
	return terms
}

func sortedReleases(weights map[int]*big.Rat) []int {
	var order []int
	for i, w := range weights {
		if w.Sign() != 0 {
			order = append(order, i)
		}
	}
	slices.Sort(order)
	return order
}
