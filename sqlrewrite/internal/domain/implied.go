package domain

import (
	"maps"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Implied is what conditions say of the values of columns and expressions, where these are not NULL, on the rows that meet the conditions.
// Bounds follow from it, and nothing else: statements clamp to them, so that a wrong one would cost rows, and no privacy.
type Implied struct {
	binder   *algebra.Binder
	at       syntax.Expr // for errors, which nobody sees
	columns  map[*algebra.Field]limits
	computed []impliedOf
	inner    map[*algebra.Field]func() *algebra.Bounds // columns of queries in FROM
	narrowed int                                       // how often something was narrower than it is without the conditions
	left     *int                                      // how many conditions are still looked at
}

// limits are those of values; nil: none.
type limits struct{ lo, hi *big.Rat }

// impliedOf has what is known of an expression that is no column.
type impliedOf struct {
	of     algebra.Expr
	within limits
}

// maxImplied caps the conditions that are looked at for one expression (A44). Those after them narrow nothing.
const maxImplied = 256

// NewImplied knows nothing yet of the rows of a query.
func NewImplied(b *algebra.Binder, at syntax.Expr) *Implied {
	left := maxImplied
	return &Implied{binder: b, at: at, columns: map[*algebra.Field]limits{}, inner: map[*algebra.Field]func() *algebra.Bounds{}, left: &left}
}

// Apart knows nothing yet of other rows of the same query.
func (k *Implied) Apart() *Implied {
	own := *k
	own.columns, own.computed = map[*algebra.Field]limits{}, nil
	return &own
}

// copied knows the same, and learns apart.
func (k *Implied) copied() *Implied {
	own := *k
	own.columns, own.computed = maps.Clone(k.columns), slices.Clone(k.computed)
	return &own
}

// Inner sets what is known of a column of a query in FROM, once it is asked for; nil: nothing. Conditions outside of that query change
// nothing of it, so that it is set once: of two columns that are computed of two columns each, level by level, each would be asked for
// twice as often at each level (A44).
func (k *Implied) Inner(f *algebra.Field, within func() *algebra.Bounds) {
	if k.inner[f] == nil {
		k.inner[f] = within
	}
}

// TakeColumns learns what other rows say of the columns of an item. Where a join has no row of the item, they are NULL; expressions over
// them need not be.
func (k *Implied) TakeColumns(from *Implied, of algebra.FromItem) {
	for f, within := range from.columns {
		if algebra.Holds(of, f) {
			k.columns[f] = k.columns[f].and(within)
		}
	}
}

// Learn learns that a condition is not false, or, where holds is not set, that it is not true: what is said of an expression says nothing
// of rows on which it is NULL, and no condition that is looked at is NULL for another reason.
func (k *Implied) Learn(e algebra.Expr, holds bool) {
	if *k.left--; *k.left < 0 {
		return
	}
	switch e := e.(type) {
	case algebra.Not:
		k.Learn(e.X, !holds)
	case algebra.Binary:
		switch {
		case e.Op != syntax.And && e.Op != syntax.Or:
			k.compare(e, holds)
		case (e.Op == syntax.And) == holds:
			k.Learn(e.L, holds)
			k.Learn(e.R, holds)
		default:
			k.either(e.L, e.R, holds)
		}
	case algebra.In:
		if e.Not != holds {
			k.among(e)
		}
	case algebra.Distinct:
		if e.Not == holds {
			k.compare(algebra.Binary{Op: syntax.Eq, L: e.L, R: e.R}, true)
		}
	case algebra.Is:
		if e.Not != holds && (e.What == syntax.IsTrue || e.What == syntax.IsFalse) {
			k.Learn(e.X, e.What == syntax.IsTrue)
		}
	}
}

// either learns what both of two conditions say, of which one holds.
func (k *Implied) either(l, r algebra.Expr, holds bool) {
	left, right := k.Apart(), k.Apart()
	left.Learn(l, holds)
	right.Learn(r, holds)
	for f, a := range left.columns {
		if b, both := right.columns[f]; both {
			k.columns[f] = k.columns[f].and(a.or(b))
		}
	}
	for _, a := range left.computed {
		for _, b := range right.computed {
			if algebra.Same(a.of, b.of) {
				k.computed = append(k.computed, impliedOf{a.of, a.within.or(b.within)})
			}
		}
	}
}

// among learns that an expression is one of a list of constants.
func (k *Implied) among(e algebra.In) {
	var all *limits
	for _, item := range e.List {
		v, ok := constantLimits(item, e.X)
		if !ok {
			return
		}
		if all != nil {
			v = all.or(v)
		}
		all = &v
	}
	if all != nil {
		k.add(e.X, *all)
	}
}

// opposite is the comparison that is false where another one is true; "": none that is looked at.
func opposite(op syntax.Operator) syntax.Operator {
	switch op {
	case syntax.Lt:
		return syntax.Ge
	case syntax.Ge:
		return syntax.Lt
	case syntax.Gt:
		return syntax.Le
	case syntax.Le:
		return syntax.Gt
	case syntax.Ne:
		return syntax.Eq
	default:
		return ""
	}
}

// compare learns from a comparison of an expression with a constant.
func (k *Implied) compare(e algebra.Binary, holds bool) {
	op, x, c := e.Op, e.L, e.R
	if !holds {
		op = opposite(op)
	}
	if algebra.IsConstant(x) {
		op, x, c = mirrored(op), c, x
	}
	v, ok := constantLimits(c, x)
	if !ok {
		return
	}
	whole := x.Typ().IsInteger() && !scalar.IsFloat(algebra.CarrierOf(c))
	switch op {
	case syntax.Lt, syntax.Le:
		v.lo = nil
		if top := scalar.Floor(v.hi); whole {
			if op == syntax.Lt && v.hi.IsInt() {
				top.Sub(top, big.NewInt(1))
			}
			v.hi = new(big.Rat).SetInt(top)
		}
	case syntax.Gt, syntax.Ge:
		v.hi = nil
		if top := scalar.Ceil(v.lo); whole {
			if op == syntax.Gt && v.lo.IsInt() {
				top.Add(top, big.NewInt(1))
			}
			v.lo = new(big.Rat).SetInt(top)
		}
	case syntax.Eq:
	default:
		return
	}
	k.add(x, v)
}

// constantLimits are those of a constant in the unit of what it is compared with. A numeric beside a float is compared as a float.
func constantLimits(c, beside algebra.Expr) (v limits, ok bool) {
	t, of := beside.Typ(), c.Typ()
	if t.IsNumber() != of.IsNumber() || t.IsTime() != of.IsTime() || !t.IsNumber() && !t.IsTime() {
		return v, false
	}
	switch c := c.(type) {
	case algebra.Constant:
		at, ok := constantValue(c, t)
		if !ok {
			return v, false
		}
		v = limits{at, at}
	case algebra.Computed:
		if c.Within == nil || !algebra.IsConstant(c) || t.IsTime() && of != t {
			return v, false
		}
		v = limits{c.Within.Lo, c.Within.Hi}
	default:
		return v, false
	}
	if floats := scalar.IsFloat(algebra.CarrierOf(beside)); floats || scalar.IsFloat(algebra.CarrierOf(c)) {
		v = limits{scalar.AsFloat(v.lo), scalar.AsFloat(v.hi)}
		if !floats { // the other side is rounded, too
			v = v.rounded(floatSlack, new(big.Rat))
		}
	}
	return v, true
}

// constantValue is a number, or a time in the unit of type t.
func constantValue(c algebra.Constant, t catalog.Type) (*big.Rat, bool) {
	switch {
	case c.Null:
		return nil, false
	case c.T.IsTime():
		at, ok := scalar.Instant(c.Text)
		return scalar.InUnit(at, t), ok
	default:
		return scalar.ParseNumber(c.Text)
	}
}

// add learns that an expression lies within limits, and what follows for that of which it is computed.
func (k *Implied) add(e algebra.Expr, in limits) {
	switch e := e.(type) {
	case algebra.Column:
		k.columns[e.Of] = k.columns[e.Of].and(in)
	case algebra.Computed:
		if e.Within == nil {
			return
		}
		// Beyond its range an expression counts as the end of that: there a limit says nothing of what it is computed from.
		if in.hi != nil && in.hi.Cmp(e.Within.Hi) >= 0 {
			in.hi = nil
		}
		if in.lo != nil && in.lo.Cmp(e.Within.Lo) <= 0 {
			in.lo = nil
		}
		if in == (limits{}) {
			return
		}
		k.computed = append(k.computed, impliedOf{e, in})
		if *k.left--; *k.left > 0 {
			k.invert(e, in)
		}
	}
}

// ranged is an expression whose range is that on the rows that meet the conditions. Only its range counts: the form is not that in which
// it is printed.
func (k *Implied) ranged(e algebra.Expr) algebra.Expr {
	switch e := e.(type) {
	case algebra.Column:
		if !e.Of.Type.IsNumber() && !e.Of.Type.IsTime() {
			return e
		}
		in := k.columns[e.Of]
		if inner := k.inner[e.Of]; inner != nil {
			if b := inner(); b != nil {
				in = in.and(limits{b.Lo, b.Hi})
			}
		}
		return k.within(e, e, clampedColumn(e.Of), in)
	case algebra.Computed:
		return k.operation(e)
	}
	return e
}

// operation is [Implied.ranged] of an operation.
func (k *Implied) operation(e algebra.Computed) algebra.Expr {
	before := k.narrowed
	var written algebra.Expr
	switch w := e.Written.(type) {
	case algebra.Choice:
		written = k.arms(w)
	case algebra.Negate, algebra.Binary, algebra.Cast, algebra.Call:
		written = algebra.Map(w, k.ranged)
	}
	var again algebra.Expr = e
	o := Operand{X: e.ErrorFree, Range: e.Within, Printed: e.Printed}
	if written != nil && k.narrowed > before {
		if form, err := errorFreeOf(k.binder, k.at, written); err == nil && tame(k.binder, k.at, form) == nil && form.Range != nil {
			again, o = ComputedOf(e.Written, form), form
		}
	}
	in := limits{}
	for _, known := range k.computed {
		if algebra.Same(known.of, e) {
			in = in.and(known.within)
		}
	}
	return k.within(e.Written, again, o, in)
}

// within is an operand within limits; plain where they are no narrower than its range, or contradict it.
func (k *Implied) within(written, plain algebra.Expr, o Operand, in limits) algebra.Expr {
	if o.Range == nil {
		return plain
	}
	lo, hi := o.Lo, o.Hi
	if in.lo != nil && in.lo.Cmp(lo) > 0 {
		lo = in.lo
	}
	if in.hi != nil && in.hi.Cmp(hi) < 0 {
		hi = in.hi
	}
	if lo.Cmp(hi) > 0 || lo == o.Lo && hi == o.Hi {
		return plain
	}
	k.narrowed++
	o.Range = o.Meet(lo, hi)
	return ComputedOf(written, o)
}

// arms are the results of CASE, each on the rows on which it is the value.
func (k *Implied) arms(e algebra.Choice) algebra.Choice {
	out, rest := algebra.Choice{T: e.T}, k.copied()
	for _, a := range e.Arms {
		own := rest.copied()
		own.Learn(a.Cond, true)
		out.Arms = append(out.Arms, algebra.Arm{Cond: a.Cond, Result: own.ranged(a.Result)})
		k.narrowed = max(k.narrowed, own.narrowed)
		if rest.Learn(a.Cond, false); *k.left < 0 {
			return e
		}
	}
	if e.Otherwise != nil {
		out.Otherwise = rest.ranged(e.Otherwise)
		k.narrowed = max(k.narrowed, rest.narrowed)
	}
	return out
}

// BoundsOf are the bounds of an expression on the rows that meet the conditions; nil: none are known.
func (k *Implied) BoundsOf(e algebra.Expr) *algebra.Bounds {
	if c, ok := e.(algebra.Constant); ok && !c.Null && c.T.IsNumber() {
		if v, ok := scalar.ParseNumber(c.Text); ok {
			return &algebra.Bounds{Lo: v, Hi: v}
		}
	}
	if c, ok := k.ranged(e).(algebra.Computed); ok {
		e = c
	}
	return algebra.BoundsOf(e)
}

// and are both limits.
func (l limits) and(o limits) limits {
	if l.lo == nil || o.lo != nil && o.lo.Cmp(l.lo) > 0 {
		l.lo = o.lo
	}
	if l.hi == nil || o.hi != nil && o.hi.Cmp(l.hi) < 0 {
		l.hi = o.hi
	}
	return l
}

// or are limits of values of which each is within one of both.
func (l limits) or(o limits) limits {
	if l.lo == nil || o.lo == nil {
		l.lo = nil
	} else {
		l.lo = scalar.MinRat(l.lo, o.lo)
	}
	if l.hi == nil || o.hi == nil {
		l.hi = nil
	} else {
		l.hi = scalar.MaxRat(l.hi, o.hi)
	}
	return l
}
