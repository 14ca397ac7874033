package sqlrewrite

import (
	"math/big"

	"noisegate/catalog"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/syntax"
)

// box turns the noise of releases into confidence intervals of outputs. An output of one release has the interval of its noise; one
// with a [core] that of the weighted sum of noises, or of the fraction ([fieller]). Any other that is computed from n releases gets each
// of them at the level 1-(1-level)/n, so that all hold at once with the level asked for (Bonferroni), and interval arithmetic over that
// box: sound, if wide.
type box struct {
	plan     *pricedPlan
	widths   map[widthKey]*big.Rat
	fiellers map[*core]*fieller
	inner    *span // of the core of the output at hand
}

type widthKey struct{ release, together int }

func newBox(p *pricedPlan) *box {
	return &box{plan: p, widths: make(map[widthKey]*big.Rat), fiellers: make(map[*core]*fieller)}
}

// span is a closed interval.
type span struct{ lo, hi *big.Rat }

func point(v *big.Rat) *span { return &span{lo: v, hi: v} }

// width is the half-width of a release's noise when n releases must hold together, in steps.
func (b *box) width(release, n int) *big.Rat {
	key := widthKey{release, n}
	w, ok := b.widths[key]
	if !ok {
		level := 1 - (1-float64(b.plan.options.Confidence))/float64(n)
		w = new(big.Rat).SetInt(b.plan.releases[release].mechanism.HalfWidth(mechanisms.Confidence(level)))
		b.widths[key] = w
	}
	return w
}

// interval is the interval of one output in one row; nil where there is none.
func (b *box) interval(e expr, f outputForm, row releasedRow, sqlType string) *Interval {
	if f.releases == 0 {
		return nil
	}
	var s *span
	if f.core == nil {
		s = b.eval(e, f.releases, row)
	} else if b.inner = b.ofCore(f.core, row); b.inner != nil {
		s = b.eval(f.core.shell, 1, row)
	}
	if s == nil {
		return nil
	}
	switch sqlType {
	case "bigint", "integer", "smallint":
		return &Interval{Lo: floor(s.lo).String(), Hi: ceil(s.hi).String()}
	default:
		return &Interval{Lo: outward(s.lo, -1), Hi: outward(s.hi, 1)}
	}
}

// ofCore is the interval of a fraction in one row, cut to what the policy's bounds allow; nil where it is unbounded.
func (b *box) ofCore(c *core, row releasedRow) *span {
	over, under := c.of.over.at(row.noisy), c.of.under.at(row.noisy)
	var s *span
	switch {
	case c.width != nil:
		centre := over.Quo(over, under)
		s = &span{lo: new(big.Rat).Sub(centre, c.width), hi: new(big.Rat).Add(centre, c.width)}
	case c.of.under.isConstant():
		return nil // a constant divisor of zero, or noise without a half-width
	case c.of.over.isConstant():
		w := b.plan.sumWidth(c.of.under.weights)
		if w != nil {
			s = quotient(point(over), &span{lo: new(big.Rat).Sub(under, w), hi: new(big.Rat).Add(under, w)})
		}
	default:
		m := b.fiellers[c]
		if m == nil {
			m = b.plan.newFieller(c.of)
			b.fiellers[c] = m
		}
		s = m.interval(over, under)
	}
	if s == nil {
		return c.of.within
	}
	return clampSpan(s, c.of.within)
}

// intervalDigits are the decimal places of an interval's ends beyond those needed for its first digit.
const intervalDigits = 6

// outward writes an end exactly where that is short, else rounded away from the interval.
func outward(v *big.Rat, direction int) string {
	if digits, exact := v.FloatPrec(); exact && digits <= intervalDigits {
		return v.FloatString(digits)
	}
	digits := intervalDigits
	for tenth := new(big.Rat).Abs(v); tenth.Cmp(big.NewRat(1, 10)) < 0 && digits < 40; digits++ {
		tenth.Mul(tenth, big.NewRat(10, 1))
	}
	scaled := new(big.Rat).Mul(v, new(big.Rat).SetInt(power10(digits)))
	n := floor(scaled)
	if direction > 0 {
		n = ceil(scaled)
	}
	return new(big.Rat).SetFrac(n, power10(digits)).FloatString(digits)
}

// eval is interval arithmetic over an expression; nil where it has no meaning (text, NULL, a division by an interval that
// holds zero, a condition).
func (b *box) eval(e expr, together int, row releasedRow) *span {
	switch e := e.(type) {
	case valueRef:
		return b.value(b.plan.query.values[e.index], together, row)
	case keyRef:
		return numberSpan(e.t, row.keys[e.index].Text, row.keys[e.index].Null)
	case constant:
		return numberSpan(e.t, e.text, e.null)
	case coreRef:
		return b.inner
	case negate:
		if x := b.eval(e.x, together, row); x != nil {
			return &span{lo: new(big.Rat).Neg(x.hi), hi: new(big.Rat).Neg(x.lo)}
		}
	case binary:
		l, r := b.eval(e.l, together, row), b.eval(e.r, together, row)
		if l != nil && r != nil && e.t != catalog.Bool {
			return combine(e, l, r)
		}
	case cast:
		if digits, ok := digitsOf(e); ok {
			return rounded(b.eval(e.x, together, row), digits)
		}
	case call:
		return b.call(e, together, row)
	case column, not, in, is, distinct, like, choice, aggregateCall, windowCall, layerSub, either:
		return nil
	}
	return nil
}

// value is the interval of a released value; selections have none.
func (b *box) value(v value, together int, row releasedRow) *span {
	around := func(release int) *span {
		centre, w := new(big.Rat).SetInt(row.noisy[release]), b.width(release, together)
		return &span{lo: new(big.Rat).Sub(centre, w), hi: new(big.Rat).Add(centre, w)}
	}
	switch {
	case v.how == arrayOf, b.plan.releases[v.of[0]].pick != nil:
		return nil
	case v.how == asReleased:
		s, unit := around(v.of[0]), b.plan.releases[v.of[0]].unit
		return &span{lo: s.lo.Mul(s.lo, unit), hi: s.hi.Mul(s.hi, unit)}
	}
	if s := b.plan.compute(v, around); s != nil {
		return s
	}
	if b.plan.compute(v, func(release int) *span { return point(new(big.Rat).SetInt(row.noisy[release])) }) == nil {
		return nil // it is NULL
	}
	return b.plan.certain(v) // a divisor may be next to nothing: only the policy's bounds are certain
}

func numberSpan(t catalog.Type, text string, null bool) *span {
	if v, ok := parseNumber(text); ok && !null && t.IsNumber() {
		return point(v)
	}
	return nil
}

// combine is interval arithmetic for one operator.
func combine(e binary, l, r *span) *span {
	switch e.op {
	case syntax.Add:
		return &span{lo: new(big.Rat).Add(l.lo, r.lo), hi: new(big.Rat).Add(l.hi, r.hi)}
	case syntax.Subtract:
		return &span{lo: new(big.Rat).Sub(l.lo, r.hi), hi: new(big.Rat).Sub(l.hi, r.lo)}
	case syntax.Multiply:
		return extremes(l, r, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) })
	case syntax.Divide:
		q := quotient(l, r)
		if q != nil && e.t.IsInteger() {
			return &span{lo: truncate(q.lo), hi: truncate(q.hi)}
		}
		return q
	default:
		return nil
	}
}

// quotient is l / r, nil when r holds zero.
func quotient(l, r *span) *span {
	if r.lo.Sign() <= 0 && r.hi.Sign() >= 0 {
		return nil
	}
	return extremes(l, r, func(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) })
}

// extremes is the hull of f at the four corners.
func extremes(l, r *span, f func(a, b *big.Rat) *big.Rat) *span {
	var s *span
	for _, a := range []*big.Rat{l.lo, l.hi} {
		for _, b := range []*big.Rat{r.lo, r.hi} {
			v := f(a, b)
			switch {
			case s == nil:
				s = point(v)
			case v.Cmp(s.lo) < 0:
				s.lo = v
			case v.Cmp(s.hi) > 0:
				s.hi = v
			}
		}
	}
	return s
}

// call is interval arithmetic for functions that rise or fall with each argument.
func (b *box) call(e call, together int, row releasedRow) *span {
	var args []*span
	for _, arg := range e.args {
		args = append(args, b.eval(arg, together, row))
	}
	if len(args) == 0 || args[0] == nil {
		return nil
	}
	x := args[0]
	switch e.name {
	case "nullif":
		return x // the output is not NULL, so it is the first argument
	case "coalesce":
		if b.plan.neverNull(e.args[0]) {
			return x
		}
		return hull(args)
	case "floor":
		return &span{lo: floor1(x.lo), hi: floor1(x.hi)}
	case "ceil", "ceiling":
		return &span{lo: ceil1(x.lo), hi: ceil1(x.hi)}
	case "round":
		return rounded(x, roundedDigits(e))
	case "abs":
		if x.lo.Sign() >= 0 {
			return x
		}
		low := new(big.Rat)
		if x.hi.Sign() < 0 {
			low.Neg(x.hi)
		}
		return &span{lo: low, hi: maxRat(new(big.Rat).Abs(x.lo), new(big.Rat).Abs(x.hi))}
	case "greatest", "least":
		s := &span{lo: x.lo, hi: x.hi}
		for _, y := range args[1:] {
			if y == nil {
				return nil
			}
			if e.name == "greatest" {
				s.lo, s.hi = maxRat(s.lo, y.lo), maxRat(s.hi, y.hi)
			} else {
				s.lo, s.hi = minRat(s.lo, y.lo), minRat(s.hi, y.hi)
			}
		}
		return s
	default:
		return nil
	}
}

// hull is the smallest span that holds all of them; nil when one is missing.
func hull(all []*span) *span {
	s := &span{lo: all[0].lo, hi: all[0].hi}
	for _, x := range all[1:] {
		if x == nil {
			return nil
		}
		s.lo, s.hi = minRat(s.lo, x.lo), maxRat(s.hi, x.hi)
	}
	return s
}

func floor1(v *big.Rat) *big.Rat { return new(big.Rat).SetInt(floor(v)) }

func ceil1(v *big.Rat) *big.Rat { return new(big.Rat).SetInt(ceil(v)) }

// truncate rounds towards zero, as PostgreSQL divides whole numbers.
func truncate(v *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(v.Num(), v.Denom()))
}

// rounded is where the numbers of a span lie after rounding to decimal places. PostgreSQL rounds halves of numeric away from zero and of
// floats to even: the ends are those of either.
func rounded(s *span, digits int) *span {
	if s == nil || digits == unrounded {
		return s
	}
	step := stepOf(digits)
	half := big.NewRat(1, 2)
	lo := new(big.Rat).Sub(new(big.Rat).Quo(s.lo, step), half)
	hi := new(big.Rat).Add(new(big.Rat).Quo(s.hi, step), half)
	return &span{lo: new(big.Rat).Mul(ceil1(lo), step), hi: new(big.Rat).Mul(floor1(hi), step)}
}

// roundTo rounds half away from zero to a number of decimal places, which may be negative.
func roundTo(v *big.Rat, digits int) *big.Rat {
	step := stepOf(digits)
	scaled := new(big.Rat).Quo(v, step)
	half := big.NewRat(int64(scaled.Sign()), 2)
	return step.Mul(truncate(scaled.Add(scaled, half)), step)
}

func maxRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

func minRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// hasInterval reports whether interval arithmetic knows an expression's form; whether a row has an interval still depends on its
// released values (a denominator that may be zero has none).
func hasInterval(e expr) bool {
	switch e := e.(type) {
	case column, not, in, is, distinct, like, choice, aggregateCall, windowCall, layerSub, either:
		return false
	case binary:
		if e.t == catalog.Bool || e.op == syntax.Modulo || e.op == syntax.Concat {
			return false
		}
	case cast:
		if _, ok := digitsOf(e); !ok {
			return false
		}
	case call:
		switch e.name {
		case "nullif":
			return hasInterval(e.args[0])
		case "coalesce", "floor", "ceil", "ceiling", "round", "abs", "greatest", "least":
		default:
			return false
		}
	case valueRef:
		return e.t.IsNumber() && !e.chosen
	case keyRef, constant:
		return e.typ().IsNumber()
	}
	for _, child := range children(e) {
		if !hasInterval(child) {
			return false
		}
	}
	return true
}

// releasesOf lists the releases that an expression is computed from, each once.
func (q *boundQuery) releasesOf(e expr) map[int]bool {
	used := make(map[int]bool)
	for _, leaf := range leavesOf(e) {
		if v, ok := leaf.(valueRef); ok {
			for _, release := range q.values[v.index].of {
				used[release] = true
			}
		}
	}
	return used
}

// leavesOf lists the keys and values that an expression refers to.
func leavesOf(e expr) []expr {
	switch e.(type) {
	case keyRef, valueRef, column:
		return []expr{e}
	}
	var all []expr
	for _, child := range children(e) {
		all = append(all, leavesOf(child)...)
	}
	return all
}
