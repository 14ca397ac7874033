package answer

import (
	"math/big"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Box turns the noise of releases into confidence intervals of outputs. An output of one release has the interval of its noise; one with a
// [plan.Ratio] that of the weighted sum of noises, or of the fraction ([Fieller]). Any other that is computed from n releases gets each of
// them at the level 1-(1-level)/n, so that all hold at once with the level asked for (Bonferroni), and interval arithmetic over that box:
// sound, if wide. The interval of a count that shows its group is the one given that the group is shown ([mechanisms.ShownCount]).
type Box struct {
	plan     *plan.Plan
	sure     mechanisms.Confidence // level of each output's interval
	rows     []plan.ReleasedRow
	sums     sums
	Widths   map[WidthKey]*big.Rat
	fiellers map[string]*Fieller
	widths   map[string]*big.Rat
	keys     map[*plan.Ratio]string
	Inner    *scalar.Span // of the ratio of the output at hand
	at       *place       // of an output that is computed from several rows
	exact    bool         // the values have no noise: intervals are points
}

// WidthKey is a release, and with how many others its interval holds together.
type WidthKey struct{ Release, Together int }

// NewBox prepares the intervals of an answer. Rows are all that were released, whatever of them is shown.
func NewBox(p *plan.Plan, rows ...plan.ReleasedRow) *Box {
	sure, _ := Level(p, len(rows))
	return &Box{plan: p, sure: sure, rows: rows, sums: make(sums), Widths: make(map[WidthKey]*big.Rat),
		fiellers: make(map[string]*Fieller), widths: make(map[string]*big.Rat), keys: make(map[*plan.Ratio]string)}
}

// width is the half-width of a release's noise when n releases must hold together, in steps.
func (b *Box) width(release, n int) *big.Rat {
	key := WidthKey{release, n}
	w, ok := b.Widths[key]
	switch {
	case b.exact:
		return new(big.Rat)
	case !ok:
		w = new(big.Rat).SetInt(b.plan.Releases[release].Mechanism.HalfWidth(b.level(n)))
		b.Widths[key] = w
	}
	return w
}

// level is that of each of n intervals that hold together.
func (b *Box) level(n int) mechanisms.Confidence {
	return 1 - (1-b.sure)/mechanisms.Confidence(n)
}

// interval is the interval of one output in one row; nil where there is none.
func (b *Box) interval(e algebra.Expr, f plan.OutputForm, at *place, sqlType string) *Interval {
	var row plan.ReleasedRow
	if at.row > 0 {
		row = b.rows[at.row-1]
	}
	var s *scalar.Span
	switch {
	case f.Releases == 0:
		return nil
	case algebra.HasAggregate(e):
		s = b.followed(e, at, row)
	case at.row == 0:
		return nil
	case f.Ratio == nil:
		s = b.Eval(e, f.Releases, row)
	default:
		if b.Inner = b.OfRatio(f.Ratio, row); b.Inner != nil {
			s = b.Eval(f.Ratio.Context, 1, row)
		}
	}
	if s == nil {
		return nil
	}
	switch sqlType {
	case "bigint", "integer", "smallint":
		return &Interval{Lo: scalar.Floor(s.Lo).String(), Hi: scalar.Ceil(s.Hi).String()}
	default:
		return &Interval{Lo: Outward(s.Lo, -1), Hi: Outward(s.Hi, 1)}
	}
}

// OfRatio is the interval of a fraction in one row, cut to what the policy's bounds allow; nil where it is unbounded.
func (b *Box) OfRatio(c *plan.Ratio, row plan.ReleasedRow) *scalar.Span {
	key, known := b.keys[c]
	if !known {
		key = formKey(c.Of)
		b.keys[c] = key
	}
	return b.fraction(c.Of, key, c.Of.Over.At(row.Noisy), c.Of.Under.At(row.Noisy), 1)
}

// fractionIn is the interval of a fraction of cells of released rows, one of so many that hold together.
func (b *Box) fractionIn(f plan.Fraction, together int) *scalar.Span {
	at := func(c plan.Cells) *big.Int { return b.sums.of(b.rows, c) }
	return b.fraction(f, formKey(f), f.Over.Sum(at), f.Under.Sum(at), together)
}

// fraction is the interval of a fraction whose two sums have these noisy values, one of so many that hold together.
func (b *Box) fraction(f plan.Fraction, key string, over, under *big.Rat, together int) *scalar.Span {
	if f.Under.IsConstant() && (f.Over.IsConstant() || f.Under.Constant.Sign() == 0) {
		return nil // a constant divisor of zero
	}
	level := b.level(together)
	key += strconv.Itoa(together)
	var s *scalar.Span
	switch {
	case f.Under.IsConstant():
		sum, _ := f.Affine()
		if w := b.widthOf(key, sum, level); w != nil {
			centre := over.Quo(over, under)
			w = new(big.Rat).Set(w)
			s = &scalar.Span{Lo: new(big.Rat).Sub(centre, w), Hi: w.Add(centre, w)}
		}
	case f.Over.IsConstant():
		if w := b.widthOf(key, f.Under, level); w != nil {
			s = plan.Quotient(scalar.Point(over), &scalar.Span{Lo: new(big.Rat).Sub(under, w), Hi: new(big.Rat).Add(under, w)})
		}
	default:
		m := b.fiellers[key]
		if m == nil {
			m = NewFieller(b.plan, f, level)
			b.fiellers[key] = m
		}
		s = m.interval(over, under)
	}
	if s == nil {
		return f.Within
	}
	return plan.ClampSpan(s, f.Within)
}

// widthOf is [sumWidth], once for each key.
func (b *Box) widthOf(key string, sum plan.Linear, level mechanisms.Confidence) *big.Rat {
	w, known := b.widths[key]
	if !known {
		w = sumWidth(b.plan, sum, level)
		b.widths[key] = w
	}
	return w
}

// intervalDigits are the decimal places of an interval's ends beyond those needed for its first digit.
const intervalDigits = 6

// Outward writes an end exactly where that is short, else rounded away from the interval.
func Outward(v *big.Rat, direction int) string {
	if digits, exact := v.FloatPrec(); exact && digits <= intervalDigits {
		return v.FloatString(digits)
	}
	digits := intervalDigits
	for tenth := new(big.Rat).Abs(v); tenth.Cmp(big.NewRat(1, 10)) < 0 && digits < 40; digits++ {
		tenth.Mul(tenth, big.NewRat(10, 1))
	}
	scaled := new(big.Rat).Mul(v, new(big.Rat).SetInt(scalar.Power10(digits)))
	n := scalar.Floor(scaled)
	if direction > 0 {
		n = scalar.Ceil(scaled)
	}
	return new(big.Rat).SetFrac(n, scalar.Power10(digits)).FloatString(digits)
}

// Eval is interval arithmetic over an expression; nil where it has no meaning (text, NULL, a division by an interval that
// holds zero, a condition).
func (b *Box) Eval(e algebra.Expr, together int, row plan.ReleasedRow) *scalar.Span {
	if b.at != nil {
		if f, ok := (follower{b.plan, b.at}).fraction(e); ok && !(f.Over.IsConstant() && f.Under.IsConstant()) {
			return b.fractionIn(f, together)
		}
	}
	switch e := e.(type) {
	case algebra.EstimatorRef:
		if row.Noisy == nil {
			return nil // a row of a group of rows
		}
		return b.value(b.plan.Query.Estimators[e.Index], together, row)
	case algebra.KeyRef:
		if row.Keys == nil {
			return nil
		}
		return numberSpan(e.T, row.Keys[e.Index].Text, row.Keys[e.Index].Null)
	case algebra.Constant:
		return numberSpan(e.T, e.Text, e.Null)
	case ratioRef:
		return b.Inner
	case algebra.Negate:
		if x := b.Eval(e.X, together, row); x != nil {
			return &scalar.Span{Lo: new(big.Rat).Neg(x.Hi), Hi: new(big.Rat).Neg(x.Lo)}
		}
	case algebra.Binary:
		l, r := b.Eval(e.L, together, row), b.Eval(e.R, together, row)
		if l != nil && r != nil && e.T != catalog.Bool {
			return combine(e, l, r)
		}
	case algebra.Cast:
		if digits, ok := digitsOf(e); ok {
			return rounded(b.Eval(e.X, together, row), digits)
		}
	case algebra.Call:
		return b.call(e, together, row)
	case algebra.Choice:
		if x := only(e); x != nil {
			return b.Eval(x, together, row)
		}
	case algebra.Column, algebra.Not, algebra.In, algebra.Is, algebra.Distinct, algebra.Like,
		algebra.Aggregate, algebra.Subquery, algebra.Either:
		return nil
	}
	return nil
}

// value is the interval of a released value; selections have none.
func (b *Box) value(v algebra.Estimator, together int, row plan.ReleasedRow) *scalar.Span {
	around := func(release int) *scalar.Span {
		if shown := b.plan.Releases[release].Shown; shown != nil && !b.exact {
			lo, hi := shown.Interval(row.Noisy[release], b.level(together))
			return &scalar.Span{Lo: new(big.Rat).SetInt(lo), Hi: new(big.Rat).SetInt(hi)}
		}
		centre, w := new(big.Rat).SetInt(row.Noisy[release]), b.width(release, together)
		return &scalar.Span{Lo: new(big.Rat).Sub(centre, w), Hi: new(big.Rat).Add(centre, w)}
	}
	switch {
	case v.How == algebra.ArrayOf, b.plan.Releases[v.Of[0]].Selection != nil:
		return nil
	case v.How == algebra.AsReleased:
		s, unit := around(v.Of[0]), b.plan.Releases[v.Of[0]].Unit
		return &scalar.Span{Lo: s.Lo.Mul(s.Lo, unit), Hi: s.Hi.Mul(s.Hi, unit)}
	}
	if s := b.plan.Compute(v, around); s != nil {
		return s
	}
	if b.plan.Compute(v, func(release int) *scalar.Span { return scalar.Point(new(big.Rat).SetInt(row.Noisy[release])) }) == nil {
		return nil // it is NULL
	}
	return b.plan.Certain(v) // a divisor may be next to nothing: only the policy's bounds are certain
}

func numberSpan(t catalog.Type, text string, null bool) *scalar.Span {
	if v, ok := scalar.ParseNumber(text); ok && !null && t.IsNumber() {
		return scalar.Point(v)
	}
	return nil
}

// combine is interval arithmetic for one operator.
func combine(e algebra.Binary, l, r *scalar.Span) *scalar.Span {
	switch e.Op {
	case syntax.Add:
		return &scalar.Span{Lo: new(big.Rat).Add(l.Lo, r.Lo), Hi: new(big.Rat).Add(l.Hi, r.Hi)}
	case syntax.Subtract:
		return &scalar.Span{Lo: new(big.Rat).Sub(l.Lo, r.Hi), Hi: new(big.Rat).Sub(l.Hi, r.Lo)}
	case syntax.Multiply:
		return plan.Extremes(l, r, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
	case syntax.Divide:
		q := plan.Quotient(l, r)
		if q != nil && e.T.IsInteger() {
			return &scalar.Span{Lo: scalar.Truncate(q.Lo), Hi: scalar.Truncate(q.Hi)}
		}
		return q
	default:
		return nil
	}
}

// call is interval arithmetic for functions that rise or fall with each argument.
func (b *Box) call(e algebra.Call, together int, row plan.ReleasedRow) *scalar.Span {
	var args []*scalar.Span
	for _, arg := range e.Args {
		args = append(args, b.Eval(arg, together, row))
	}
	if len(args) == 0 || args[0] == nil {
		return nil
	}
	f := domain.BuiltinOf(e.Name)
	switch {
	case f.Interval == nil:
		return nil
	case isFirst(b.plan, e): // the output is not NULL
		args = args[:1]
	}
	spans := make([]scalar.Span, len(args))
	for i, s := range args {
		if s == nil {
			return nil
		}
		spans[i] = *s
	}
	digits := unrounded
	if f.Moves == domain.InSteps {
		digits = roundedDigits(e)
	}
	s := f.Interval(spans, digits)
	return &s
}

// rounded is where the numbers of a span lie after a cast to so many decimal places.
func rounded(s *scalar.Span, digits int) *scalar.Span {
	if s == nil || digits == unrounded {
		return s
	}
	r := domain.RoundSpan([]scalar.Span{*s}, digits)
	return &r
}

// HasInterval reports whether interval arithmetic knows an expression's form; whether a row has an interval still depends on its
// released values (a denominator that may be zero has none).
func HasInterval(p *plan.Plan, e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.Column, algebra.Not, algebra.In, algebra.Is, algebra.Distinct, algebra.Like, algebra.Subquery:
		return false
	case algebra.Either:
		return len(e.Left) > 0 && HasInterval(p, e.L) || len(e.Right) > 0 && HasInterval(p, e.R)
	case algebra.Choice:
		x := only(e)
		return x != nil && HasInterval(p, x)
	case algebra.Aggregate:
		_, ok := (follower{p: p}).aggregate(e)
		return ok
	case algebra.Binary:
		if e.T == catalog.Bool || e.Op == syntax.Modulo || e.Op == syntax.Concat {
			return false
		}
	case algebra.Cast:
		if _, ok := digitsOf(e); !ok {
			return false
		}
	case algebra.Call:
		switch f := domain.BuiltinOf(e.Name); {
		case f.First == domain.FirstOrNull:
			return HasInterval(p, e.Args[0])
		case f.Interval == nil:
			return false
		}
	case algebra.EstimatorRef:
		return e.T.IsNumber() && !e.Chosen
	case algebra.KeyRef, algebra.Constant:
		return e.Typ().IsNumber()
	}
	for _, child := range algebra.Children(e) {
		if !HasInterval(p, child) {
			return false
		}
	}
	return true
}
