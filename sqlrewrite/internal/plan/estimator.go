package plan

import (
	"math/big"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Quotient is l / r, nil when r holds zero.
func Quotient(l, r *scalar.Span) *scalar.Span {
	if r.Lo.Sign() <= 0 && r.Hi.Sign() >= 0 {
		return nil
	}
	return Extremes(l, r, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) })
}

// Extremes is the hull of f at the four corners.
func Extremes(l, r *scalar.Span, f func(a, b *big.Rat) *big.Rat) *scalar.Span {
	var s *scalar.Span
	for _, a := range []*big.Rat{l.Lo, l.Hi} {
		for _, b := range []*big.Rat{r.Lo, r.Hi} {
			v := f(a, b)
			switch {
			case s == nil:
				s = scalar.Point(v)
			case v.Cmp(s.Lo) < 0:
				s.Lo = v
			case v.Cmp(s.Hi) > 0:
				s.Hi = v
			}
		}
	}
	return s
}

// text is a released value of one group, as PostgreSQL would write it.
func (p *Plan) ValueText(index int, row ReleasedRow) catalog.Key {
	v := p.Query.Estimators[index]
	switch v.How {
	case algebra.AsReleased:
		return catalog.Key{Text: p.releaseText(v.Of[0], v.T, row)}
	case algebra.ArrayOf:
		var items []string
		for _, i := range v.Of {
			items = append(items, p.releaseText(i, scalar.ElementOf(v.T), row))
		}
		return catalog.Key{Text: "{" + strings.Join(items, ",") + "}"}
	default:
		s := p.Compute(v, func(release int) *scalar.Span { return scalar.Point(new(big.Rat).SetInt(row.Noisy[release])) })
		if s == nil {
			return catalog.Key{Null: true}
		}
		return catalog.Key{Text: scalar.FormatNumber(s.Lo, v.T, scalar.MeanDigitsOf(s.Lo))}
	}
}

// releaseText is one release of one group as a value of type t.
func (p *Plan) releaseText(i int, t catalog.Type, row ReleasedRow) string {
	r := p.Releases[i]
	switch m := r.Statistic; {
	case m.Kind == algebra.ChooseMode && m.Among != nil:
		return m.Among[row.Noisy[i].Int64()].Text
	case m.Chooses():
		return text(m.Grid, row.Noisy[i], t)
	default:
		return scalar.FormatNumber(scalar.InUnits(row.Noisy[i], r.Unit), t, scalar.UnitDigits(r.Unit))
	}
}

// text writes the point i of a grid, counted from its lower end.
func text(g *algebra.Grid, i *big.Int, t catalog.Type) string {
	if g.Form == algebra.TimeSteps {
		return algebra.ClockText(g.Value(new(big.Int).Add(g.Lo, i)), t)
	}
	return scalar.FormatNumber(g.Value(new(big.Int).Add(g.Lo, i)), t, scalar.UnitDigits(g.Step))
}

// Compute is a formula's value where its releases lie in the spans that at gives, in their own steps; nil where PostgreSQL gives NULL,
// and where interval arithmetic has no bound. For points it is a point. What the policy's bounds make impossible is cut off: doing
// so with a noisy value costs nothing.
func (p *Plan) Compute(v algebra.Estimator, at func(release int) *scalar.Span) *scalar.Span {
	n := at(v.Of[0])
	if n.Lo.Cmp(scalar.One()) < 0 {
		return nil // no rows, or perhaps none
	}
	moment := func(i int) *scalar.Span { return Quotient(at(v.Of[i]), n) }
	var out *scalar.Span
	switch v.How {
	case algebra.MeanOf:
		out = p.uncentred(v.Of[1], moment(1))
	case algebra.VariancePop, algebra.VarianceSamp, algebra.DeviationPop, algebra.DeviationSamp, algebra.Squares:
		out = p.secondMoment(v.Of[2], moment(2), moment(1), moment(1))
		if v.How == algebra.VarianceSamp || v.How == algebra.DeviationSamp {
			out = besselled(out, n)
		}
		out = ClampSpan(out, p.varianceRange(v))
		if out != nil && (v.How == algebra.DeviationPop || v.How == algebra.DeviationSamp) {
			out = rootOf(out)
		}
		if v.How == algebra.Squares {
			out = Extremes(out, n, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
		}
		return out
	case algebra.CovariancePop, algebra.CovarianceSamp, algebra.Covariances:
		out = p.secondMoment(v.Of[3], moment(3), moment(1), moment(2))
		if v.How == algebra.CovarianceSamp {
			out = besselled(out, n)
		}
		if v.How == algebra.Covariances {
			out = Extremes(ClampSpan(out, p.covarianceRange(v)), n, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
		}
	case algebra.Slope, algebra.Intercept, algebra.Correlation, algebra.Determination:
		out = p.regression(v, moment)
	default:
		panic("sqlrewrite: formula without a way to compute it")
	}
	return ClampSpan(out, p.Certain(v))
}

// uncentred turns the mean of centred steps into the expression's unit.
func (p *Plan) uncentred(release int, s *scalar.Span) *scalar.Span {
	g := p.Releases[release].Statistic.Grid
	shift := func(x *big.Rat) *big.Rat {
		x = new(big.Rat).Add(x, new(big.Rat).SetInt(g.Centre()))
		return x.Mul(x, g.Step)
	}
	return &scalar.Span{Lo: shift(s.Lo), Hi: shift(s.Hi)}
}

// secondMoment is q - s·t in the output's unit: a variance where s and t are one, else a covariance.
func (p *Plan) secondMoment(release int, q, s, t *scalar.Span) *scalar.Span {
	m, unit := p.Releases[release].Statistic, p.Releases[release].Unit
	product := Extremes(s, t, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
	if m.IsSquare() && s.Lo.Sign() < 0 && s.Hi.Sign() > 0 {
		product.Lo = new(big.Rat) // a square: both factors are the same number
	}
	middle := new(big.Rat).SetInt(m.Middle())
	lo := new(big.Rat).Sub(new(big.Rat).Add(q.Lo, middle), product.Hi)
	hi := new(big.Rat).Sub(new(big.Rat).Add(q.Hi, middle), product.Lo)
	return &scalar.Span{Lo: lo.Mul(lo, unit), Hi: hi.Mul(hi, unit)}
}

// besselled multiplies by n/(n-1); nil unless n is surely above 1.
func besselled(s, n *scalar.Span) *scalar.Span {
	if n.Lo.Cmp(scalar.One()) <= 0 {
		return nil
	}
	// n/(n-1) falls with n.
	factor := func(x *big.Rat) *big.Rat { return new(big.Rat).Quo(x, new(big.Rat).Sub(x, scalar.One())) }
	return Extremes(s, &scalar.Span{Lo: factor(n.Hi), Hi: factor(n.Lo)}, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
}

// regression is slope, intercept, correlation or its square; nil where the variance that it divides by may not be positive.
func (p *Plan) regression(v algebra.Estimator, moment func(int) *scalar.Span) *scalar.Span {
	times := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	covariance := p.secondMoment(v.Of[3], moment(3), moment(1), moment(2))
	varianceX := p.secondMoment(v.Of[4], moment(4), moment(1), moment(1))
	if varianceX.Lo.Sign() <= 0 {
		return nil
	}
	switch v.How {
	case algebra.Slope, algebra.Intercept:
		s := Quotient(covariance, varianceX)
		if v.How == algebra.Slope {
			return s
		}
		rise := Extremes(s, p.uncentred(v.Of[1], moment(1)), times)
		y := p.uncentred(v.Of[2], moment(2))
		return &scalar.Span{Lo: new(big.Rat).Sub(y.Lo, rise.Hi), Hi: new(big.Rat).Sub(y.Hi, rise.Lo)}
	default:
		varianceY := p.secondMoment(v.Of[5], moment(5), moment(2), moment(2))
		switch {
		case varianceY.Hi.Sign() <= 0 && v.How == algebra.Determination:
			return scalar.Point(scalar.One()) // as PostgreSQL says of a constant
		case varianceY.Lo.Sign() <= 0:
			return nil
		}
		r := Quotient(covariance, rootOf(Extremes(varianceX, varianceY, times)))
		r = ClampSpan(r, &scalar.Span{Lo: big.NewRat(-1, 1), Hi: scalar.One()})
		if v.How == algebra.Correlation {
			return r
		}
		square := Extremes(r, r, times)
		if r.Lo.Sign() < 0 && r.Hi.Sign() > 0 {
			square.Lo = new(big.Rat)
		}
		return square
	}
}

// varianceRange is where the variance of a value can lie: values of an interval of width w have at most w²/4, and n/(n-1) is at most 2.
func (p *Plan) varianceRange(v algebra.Estimator) *scalar.Span {
	g := p.Releases[v.Of[1]].Statistic.Grid
	w := new(big.Rat).Sub(g.Value(g.Hi), g.Value(g.Lo))
	w.Mul(w, w)
	parts := int64(4)
	if v.How == algebra.VarianceSamp || v.How == algebra.DeviationSamp {
		parts = 2
	}
	return &scalar.Span{Lo: new(big.Rat), Hi: w.Quo(w, new(big.Rat).SetInt64(parts))}
}

// covarianceRange is where the covariance of a value can lie.
func (p *Plan) covarianceRange(v algebra.Estimator) *scalar.Span {
	x, y := p.Releases[v.Of[1]].Statistic.Grid, p.Releases[v.Of[2]].Statistic.Grid
	w := new(big.Rat).Sub(x.Value(x.Hi), x.Value(x.Lo))
	w.Mul(w, new(big.Rat).Sub(y.Value(y.Hi), y.Value(y.Lo)))
	w.Quo(w, big.NewRat(2, 1)) // a half of it at most for a population; n/(n-1) doubles it
	return &scalar.Span{Lo: new(big.Rat).Neg(w), Hi: w}
}

// Certain is where a computed value lies whatever the rows are, by the policy's bounds; nil: anywhere.
func (p *Plan) Certain(v algebra.Estimator) *scalar.Span {
	switch v.How {
	case algebra.MeanOf:
		g := p.Releases[v.Of[1]].Statistic.Grid
		return &scalar.Span{Lo: g.Value(g.Lo), Hi: g.Value(g.Hi)}
	case algebra.VariancePop, algebra.VarianceSamp:
		return p.varianceRange(v)
	case algebra.DeviationPop, algebra.DeviationSamp:
		return rootOf(p.varianceRange(v))
	case algebra.CovariancePop, algebra.CovarianceSamp:
		return p.covarianceRange(v)
	case algebra.Correlation:
		return &scalar.Span{Lo: big.NewRat(-1, 1), Hi: scalar.One()}
	case algebra.Determination:
		return &scalar.Span{Lo: new(big.Rat), Hi: scalar.One()}
	// of which the first two grow with n
	case algebra.Squares, algebra.Covariances, algebra.Slope, algebra.Intercept, algebra.AsReleased, algebra.ArrayOf:
		return nil
	default:
		panic("sqlrewrite: formula without a range")
	}
}

// ClampSpan moves what lies outside the limits to their nearer end.
func ClampSpan(s, limits *scalar.Span) *scalar.Span {
	if s == nil || limits == nil {
		return s
	}
	return &scalar.Span{Lo: scalar.ClampRat(s.Lo, limits.Lo, limits.Hi), Hi: scalar.ClampRat(s.Hi, limits.Lo, limits.Hi)}
}

// rootBits is the precision of roots.
const rootBits = 256

// rootOf is the square root of a span that is not negative: exact for squares of rationals, else rounded outward.
func rootOf(s *scalar.Span) *scalar.Span {
	return &scalar.Span{Lo: root(s.Lo, big.ToNegativeInf), Hi: root(s.Hi, big.ToPositiveInf)}
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
