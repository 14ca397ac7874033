package sqlrewrite

import (
	"math/big"
	"slices"
	"strings"

	"noisegate/catalog"
)

// value is what outputs refer to. It is computed from releases, in the same way from noisy ones and from true ones.
type value struct {
	name string // as the analyst could have written it
	t    catalog.Type
	how  formula
	of   []int // the releases that the formula reads, as indexes into boundQuery.measures
}

// formula says how a value comes from its releases. Below, s and q stand for the means of centred steps and of their squares or
// products, n for the count of the rows that they are over.
type formula int

const (
	asReleased   formula = iota // the release itself
	arrayOf                     // the array of releases
	meanOf                      // n, s
	variancePop                 // n, s, q: q - s²
	varianceSamp                // the same times n/(n-1)
	deviationPop                // the roots of these
	deviationSamp
	covariancePop  // n, s of x, s of y, q of x and y
	covarianceSamp // the same times n/(n-1)
	squares        // n, s, q: the variance times n
	covariances    // n, s of x, s of y, q of x and y: the covariance times n
	slope          // n, s of x, s of y, q of x and y, q of x: covariance over variance of x
	intercept      // the same: mean of y less slope times mean of x
	correlation    // n, s of x, s of y, q of x and y, q of x, q of y
	determination  // its square
)

func (v value) computed() bool { return v.how != asReleased }

// sameAs reports whether two values are one.
func (v value) sameAs(w value) bool { return v.how == w.how && v.t == w.t && slices.Equal(v.of, w.of) }

// text is a released value of one group, as PostgreSQL would write it.
func (p *pricedPlan) valueText(index int, row releasedRow) catalog.Key {
	v := p.query.values[index]
	switch v.how {
	case asReleased:
		return catalog.Key{Text: p.releaseText(v.of[0], v.t, row)}
	case arrayOf:
		var items []string
		for _, i := range v.of {
			items = append(items, p.releaseText(i, elementOf(v.t), row))
		}
		return catalog.Key{Text: "{" + strings.Join(items, ",") + "}"}
	default:
		s := p.compute(v, func(release int) *span { return point(new(big.Rat).SetInt(row.noisy[release])) })
		if s == nil {
			return catalog.Key{Null: true}
		}
		return catalog.Key{Text: formatNumber(s.lo, v.t, meanDigits)}
	}
}

// releaseText is one release of one group as a value of type t.
func (p *pricedPlan) releaseText(i int, t catalog.Type, row releasedRow) string {
	r := p.releases[i]
	switch m := r.measure; {
	case m.kind == chooseMode && m.among != nil:
		return m.among[row.noisy[i].Int64()].Text
	case m.chooses():
		return m.grid.text(row.noisy[i], t)
	default:
		return formatNumber(inUnits(row.noisy[i], r.unit), t, unitDigits(r.unit))
	}
}

// text writes the point i of a grid, counted from its lower end.
func (g *grid) text(i *big.Int, t catalog.Type) string {
	if g.form == timeSteps {
		return clockText(g.value(new(big.Int).Add(g.lo, i)), t)
	}
	return formatNumber(g.value(new(big.Int).Add(g.lo, i)), t, unitDigits(g.step))
}

// compute is a formula's value where its releases lie in the spans that at gives, in their own steps; nil where PostgreSQL gives NULL,
// and where interval arithmetic has no bound. For points it is a point. What the policy's bounds make impossible is cut off: doing
// so with a noisy value costs nothing.
func (p *pricedPlan) compute(v value, at func(release int) *span) *span {
	n := at(v.of[0])
	if n.lo.Cmp(one()) < 0 {
		return nil // no rows, or perhaps none
	}
	moment := func(i int) *span { return quotient(at(v.of[i]), n) }
	var out *span
	switch v.how {
	case meanOf:
		out = p.uncentred(v.of[1], moment(1))
	case variancePop, varianceSamp, deviationPop, deviationSamp, squares:
		out = p.secondMoment(v.of[2], moment(2), moment(1), moment(1))
		if v.how == varianceSamp || v.how == deviationSamp {
			out = besselled(out, n)
		}
		out = clampSpan(out, p.varianceRange(v))
		if out != nil && (v.how == deviationPop || v.how == deviationSamp) {
			out = rootOf(out)
		}
		if v.how == squares {
			out = extremes(out, n, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
		}
		return out
	case covariancePop, covarianceSamp, covariances:
		out = p.secondMoment(v.of[3], moment(3), moment(1), moment(2))
		if v.how == covarianceSamp {
			out = besselled(out, n)
		}
		if v.how == covariances {
			out = extremes(clampSpan(out, p.covarianceRange(v)), n, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
		}
	case slope, intercept, correlation, determination:
		out = p.regression(v, moment)
	default:
		panic("sqlrewrite: formula without a way to compute it")
	}
	return clampSpan(out, p.certain(v))
}

// uncentred turns the mean of centred steps into the expression's unit.
func (p *pricedPlan) uncentred(release int, s *span) *span {
	g := p.releases[release].measure.grid
	shift := func(x *big.Rat) *big.Rat {
		x = new(big.Rat).Add(x, new(big.Rat).SetInt(g.centre()))
		return x.Mul(x, g.step)
	}
	return &span{lo: shift(s.lo), hi: shift(s.hi)}
}

// secondMoment is q - s·t in the output's unit: a variance where s and t are one, else a covariance.
func (p *pricedPlan) secondMoment(release int, q, s, t *span) *span {
	m, unit := p.releases[release].measure, p.releases[release].unit
	product := extremes(s, t, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
	if m.isSquare() && s.lo.Sign() < 0 && s.hi.Sign() > 0 {
		product.lo = new(big.Rat) // a square: both factors are the same number
	}
	middle := new(big.Rat).SetInt(m.middle())
	lo := new(big.Rat).Sub(new(big.Rat).Add(q.lo, middle), product.hi)
	hi := new(big.Rat).Sub(new(big.Rat).Add(q.hi, middle), product.lo)
	return &span{lo: lo.Mul(lo, unit), hi: hi.Mul(hi, unit)}
}

// besselled multiplies by n/(n-1); nil unless n is surely above 1.
func besselled(s, n *span) *span {
	if n.lo.Cmp(one()) <= 0 {
		return nil
	}
	// n/(n-1) falls with n.
	factor := func(x *big.Rat) *big.Rat { return new(big.Rat).Quo(x, new(big.Rat).Sub(x, one())) }
	return extremes(s, &span{lo: factor(n.hi), hi: factor(n.lo)}, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
}

// regression is slope, intercept, correlation or its square; nil where the variance that it divides by may not be positive.
func (p *pricedPlan) regression(v value, moment func(int) *span) *span {
	times := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	covariance := p.secondMoment(v.of[3], moment(3), moment(1), moment(2))
	varianceX := p.secondMoment(v.of[4], moment(4), moment(1), moment(1))
	if varianceX.lo.Sign() <= 0 {
		return nil
	}
	switch v.how {
	case slope, intercept:
		s := quotient(covariance, varianceX)
		if v.how == slope {
			return s
		}
		rise := extremes(s, p.uncentred(v.of[1], moment(1)), times)
		y := p.uncentred(v.of[2], moment(2))
		return &span{lo: new(big.Rat).Sub(y.lo, rise.hi), hi: new(big.Rat).Sub(y.hi, rise.lo)}
	default:
		varianceY := p.secondMoment(v.of[5], moment(5), moment(2), moment(2))
		switch {
		case varianceY.hi.Sign() <= 0 && v.how == determination:
			return point(one()) // as PostgreSQL says of a constant
		case varianceY.lo.Sign() <= 0:
			return nil
		}
		r := quotient(covariance, rootOf(extremes(varianceX, varianceY, times)))
		r = clampSpan(r, &span{lo: big.NewRat(-1, 1), hi: one()})
		if v.how == correlation {
			return r
		}
		square := extremes(r, r, times)
		if r.lo.Sign() < 0 && r.hi.Sign() > 0 {
			square.lo = new(big.Rat)
		}
		return square
	}
}

// varianceRange is where the variance of a value can lie: values of an interval of width w have at most w²/4, and n/(n-1) is at most 2.
func (p *pricedPlan) varianceRange(v value) *span {
	g := p.releases[v.of[1]].measure.grid
	w := new(big.Rat).Sub(g.value(g.hi), g.value(g.lo))
	w.Mul(w, w)
	parts := int64(4)
	if v.how == varianceSamp || v.how == deviationSamp {
		parts = 2
	}
	return &span{lo: new(big.Rat), hi: w.Quo(w, new(big.Rat).SetInt64(parts))}
}

// covarianceRange is where the covariance of a value can lie.
func (p *pricedPlan) covarianceRange(v value) *span {
	x, y := p.releases[v.of[1]].measure.grid, p.releases[v.of[2]].measure.grid
	w := new(big.Rat).Sub(x.value(x.hi), x.value(x.lo))
	w.Mul(w, new(big.Rat).Sub(y.value(y.hi), y.value(y.lo)))
	w.Quo(w, big.NewRat(2, 1)) // a half of it at most for a population; n/(n-1) doubles it
	return &span{lo: new(big.Rat).Neg(w), hi: w}
}

// certain is where a computed value lies whatever the rows are, by the policy's bounds; nil: anywhere.
func (p *pricedPlan) certain(v value) *span {
	switch v.how {
	case meanOf:
		g := p.releases[v.of[1]].measure.grid
		return &span{lo: g.value(g.lo), hi: g.value(g.hi)}
	case variancePop, varianceSamp:
		return p.varianceRange(v)
	case deviationPop, deviationSamp:
		return rootOf(p.varianceRange(v))
	case covariancePop, covarianceSamp:
		return p.covarianceRange(v)
	case correlation:
		return &span{lo: big.NewRat(-1, 1), hi: one()}
	case determination:
		return &span{lo: new(big.Rat), hi: one()}
	case squares, covariances, slope, intercept, asReleased, arrayOf: // of which the first two grow with n
		return nil
	default:
		panic("sqlrewrite: formula without a range")
	}
}

// clampSpan moves what lies outside the limits to their nearer end.
func clampSpan(s, limits *span) *span {
	if s == nil || limits == nil {
		return s
	}
	return &span{lo: clampRat(s.lo, limits.lo, limits.hi), hi: clampRat(s.hi, limits.lo, limits.hi)}
}

// rootBits is the precision of roots.
const rootBits = 256

// rootOf is the square root of a span that is not negative: exact for squares of rationals, else rounded outward.
func rootOf(s *span) *span {
	return &span{lo: root(s.lo, big.ToNegativeInf), hi: root(s.hi, big.ToPositiveInf)}
}

func root(v *big.Rat, mode big.RoundingMode) *big.Rat {
	num, denom := new(big.Int).Sqrt(v.Num()), new(big.Int).Sqrt(v.Denom())
	if exact := new(big.Rat).SetFrac(num, denom); new(big.Rat).Mul(exact, exact).Cmp(v) == 0 {
		return exact
	}
	f := new(big.Float).SetPrec(rootBits).SetMode(mode).SetRat(v)
	r, _ := f.Sqrt(f).Rat(nil)
	return r
}

// elementOf is the type of an array's elements.
func elementOf(t catalog.Type) catalog.Type {
	return catalog.Type(strings.TrimSuffix(string(t), arraySuffix))
}

// arrayType is the type of arrays of t.
func arrayType(t catalog.Type) catalog.Type { return t + arraySuffix }

const arraySuffix = "[]"
