package domain

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// What a column alone gives as keys: its domain, or every whole number or day between its bounds, as far as WHERE leaves them. A bounded
// column counts as clamped here as in every computation, so that GROUP BY x is GROUP BY x + 0.

// columnValues are the values that a column counts as in an expression.
func (v evaluator) columnValues(f *algebra.Field) (values []datum, ok bool) {
	switch {
	case f.Unit:
		return nil, false
	case f.Domain() != nil:
		for _, k := range Narrow(f.Domain(), f, v.where) {
			d, ok := DatumOf(k, f.Type)
			if !ok {
				return nil, false
			}
			values = append(values, d)
		}
		if len(values) == 0 { // no row is left
			values = append(values, nullDatum())
		}
		return values, true
	case f.Type == catalog.Bool:
		values = append(values, truthDatum(false), truthDatum(true))
		if !f.NotNull() {
			values = append(values, nullDatum())
		}
		return values, true
	case IsGrid(f):
		g, ok := v.gridOf(f, maxCombinations, 1)
		return g.data(), ok
	default:
		return nil, false
	}
}

// IsGrid reports whether a column's values count as whole numbers, or days, between two bounds.
func IsGrid(f *algebra.Field) bool {
	return f.Bounds != nil && (f.Type.IsInteger() || f.Type == catalog.Date)
}

// gridValues is what WHERE leaves of the values of such a column.
type gridValues struct {
	of      *algebra.Field
	lo, hi  int64
	only    []map[int64]bool // what each list of WHERE allows
	without map[int64]bool   // what is ruled out
	null    bool
}

// gridOf reads WHERE; ok is false for a grid of more than most values. To look at share of them is work for one.
func (v evaluator) gridOf(f *algebra.Field, most, share int64) (g gridValues, ok bool) {
	s, null := v.within(f)
	if n := wholeNumbers(s); !n.IsInt64() || n.Int64() >= most || !v.spend(int(n.Int64()/share)) {
		return g, false
	}
	g = gridValues{of: f, lo: scalar.Ceil(s.Lo).Int64(), hi: scalar.Floor(s.Hi).Int64(), without: map[int64]bool{}, null: null}
	ends := clampedColumn(f).Range
	for _, e := range algebra.BoundConjuncts(v.where) {
		op, with, ok := comparedWith(e, f)
		if !ok || op != syntax.Eq && op != syntax.Ne {
			continue
		}
		listed := make(map[int64]bool, len(with))
		for _, at := range with {
			switch {
			case !at.IsInt():
			case op == syntax.Eq:
				listed[scalar.MinRat(scalar.MaxRat(at, ends.Lo), ends.Hi).Num().Int64()] = true
			case at.Cmp(ends.Lo) > 0 && at.Cmp(ends.Hi) < 0: // what counts as an end may be any value beyond it
				g.without[at.Num().Int64()] = true
			}
		}
		if op == syntax.Eq {
			g.only = append(g.only, listed)
		}
	}
	return g, true
}

// each are the whole numbers or days.
func (g gridValues) each(yield func(int64) bool) {
	for k := g.lo; k <= g.hi; k++ {
		ruledOut := g.without[k] || slices.ContainsFunc(g.only, func(listed map[int64]bool) bool { return !listed[k] })
		if !ruledOut && !yield(k) {
			return
		}
	}
}

func (g gridValues) data() (values []datum) {
	for k := range g.each {
		values = append(values, numberDatum(scalar.Number(k)))
	}
	if g.null {
		values = append(values, nullDatum())
	}
	return values
}

func (g gridValues) keys() []catalog.Key {
	keys := make([]catalog.Key, 0, g.hi-g.lo+2)
	for k := range g.each {
		text := strconv.FormatInt(k, 10)
		if g.of.Type == catalog.Date {
			text = scalar.TimeOf(scalar.Number(k), catalog.Date)
		}
		keys = append(keys, catalog.Key{Text: text})
	}
	if g.null {
		keys = append(keys, catalog.Key{Null: true})
	}
	return keys
}

func (v evaluator) spendWhole(s *scalar.Range) bool {
	n := wholeNumbers(s)
	return n.IsInt64() && n.Int64() <= MaxKeys && v.spend(int(n.Int64()))
}

// whole are the whole numbers of a value range.
func whole(s *scalar.Range) (all []datum) {
	last := scalar.Floor(s.Hi)
	for k := scalar.Ceil(s.Lo); k.Cmp(last) <= 0; k = new(big.Int).Add(k, big.NewInt(1)) {
		all = append(all, numberDatum(new(big.Rat).SetInt(k)))
	}
	return all
}

// BoundedKey makes a bounded column a public key: the domain is its grid. A plain number costs less work than one that is computed, so that
// a column may have as many keys as an answer. stem is the column that f is, as where names it.
func BoundedKey(key algebra.GroupKey, f, stem *algebra.Field, where algebra.Expr, work *int) (algebra.GroupKey, error) {
	const share = 4
	v := evaluator{builtin: BuiltinOf, where: where, work: work}
	g, ok := v.gridOf(stem, MaxKeys, share)
	if !ok {
		refused := fault.TooManyKeys(key.At, MaxKeys).WithHint("narrow its values with WHERE")
		if form := StepForm(key.X); form != "" {
			refused = refused.WithHint(refused.Hint + ", or group by whole steps of it").WithPart(form)
		}
		return key, refused
	}
	key.Domain = g.keys()
	o := clampedColumn(f)
	key.X = ComputedOf(algebra.Column{Of: f}, o)
	key.Declared = int(scalar.ClampInt64(wholeNumbers(o.Range))) + 1 + algebra.BoolIndex(!f.NotNull())
	return key, nil
}

// StepForm is a form of $1 that has few values where x lies between bounds; empty where nothing bounds it.
func StepForm(x algebra.Expr) string {
	known := algebra.BoundsOf(x)
	if known == nil {
		return ""
	}
	width, t := new(big.Rat).Sub(known.Hi, known.Lo), x.Typ()
	fits := func(step int64) bool { return width.Cmp(scalar.Number(step*maxCombinations)) < 0 }
	switch {
	case t.IsNumber() && !t.IsInteger() && width.Cmp(scalar.Number(3)) < 0: // less than that of any field of a time, which is whole
		return "floor($1 * 10) / 10"
	case t.IsNumber() && fits(1):
		return "floor($1)"
	case t.IsNumber():
		for step := int64(10); step < maxStep; step *= 10 {
			if fits(step) {
				return fmt.Sprintf("floor($1 / %d)", step)
			}
		}
	case t.IsTime() && algebra.PlainField(x) == nil:
		return "floor(extract(epoch FROM $1) / 86400)"
	case t.IsTime():
		day := int64(1)
		if t != catalog.Date {
			day = 24 * time.Hour.Microseconds()
		}
		if fits(day) {
			return "date_trunc('day', $1)"
		}
		return "date_trunc('month', $1)"
	}
	return ""
}

// maxStep bounds the steps that are named.
const maxStep = 1_000_000_000_000

// comparedWith recognises a condition on a column alone: a comparison with constants, or with a list of them. Values beyond them do not
// meet it, nor does NULL.
func comparedWith(e algebra.Expr, f *algebra.Field) (op syntax.Operator, with []*big.Rat, ok bool) {
	var x algebra.Expr
	var list []algebra.Expr
	switch e := e.(type) {
	case algebra.Binary:
		op, x, list = e.Op, e.L, []algebra.Expr{e.R}
		if algebra.PlainField(e.R) == f {
			op, x, list = mirrored(op), e.R, []algebra.Expr{e.L}
		}
		if op == syntax.And || op == syntax.Or {
			return "", nil, false
		}
	case algebra.In:
		op, x, list = syntax.Eq, e.X, e.List
		if e.Not {
			op = syntax.Ne
		}
	}
	if x == nil || algebra.PlainField(x) != f {
		return "", nil, false
	}
	for _, item := range list {
		c, isConstant := item.(algebra.Constant)
		if !isConstant || c.Null || f.Type.IsTime() && c.T != f.Type {
			return "", nil, false
		}
		d, ok := DatumOf(catalog.Key{Text: c.Text}, c.T)
		if !ok || d.Value == nil {
			return "", nil, false
		}
		with = append(with, d.Value)
	}
	return op, with, true
}

// within are the bounds of a column of whole numbers, days or microseconds, narrowed by what WHERE says of the column itself; null
// reports whether it may be NULL. Values beyond a bound count as the bound, so that a condition beyond it leaves the bound.
func (v evaluator) within(f *algebra.Field) (s *scalar.Range, null bool) {
	s = clampedColumn(f).Range
	lo, hi, null := s.Lo, s.Hi, !f.NotNull()
	least := func(at *big.Rat) { lo = scalar.MaxRat(lo, scalar.MinRat(at, s.Hi)) }
	most := func(at *big.Rat) { hi = scalar.MinRat(hi, scalar.MaxRat(at, s.Lo)) }
	for _, e := range algebra.BoundConjuncts(v.where) {
		if e, ok := e.(algebra.Is); ok && e.What == syntax.IsNull && e.Not && algebra.PlainField(e.X) == f {
			null = false
		}
		op, with, ok := comparedWith(e, f)
		if !ok {
			continue
		}
		null = false
		switch at := with[0]; op {
		case syntax.Eq:
			lowest, highest := at, at
			for _, other := range with {
				lowest, highest = scalar.MinRat(lowest, other), scalar.MaxRat(highest, other)
			}
			least(lowest)
			most(highest)
		case syntax.Ge:
			least(at)
		case syntax.Le:
			most(at)
		case syntax.Gt: // the next whole number
			least(new(big.Rat).Add(new(big.Rat).SetInt(scalar.Floor(at)), scalar.One()))
		case syntax.Lt:
			most(new(big.Rat).Sub(new(big.Rat).SetInt(scalar.Ceil(at)), scalar.One()))
		default: // <> leaves the bounds
		}
	}
	if lo.Cmp(hi) > 0 {
		hi = lo // no row is left
	}
	return &scalar.Range{Lo: lo, Hi: hi}, null
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op syntax.Operator) syntax.Operator {
	switch op {
	case syntax.Lt:
		return syntax.Gt
	case syntax.Le:
		return syntax.Ge
	case syntax.Gt:
		return syntax.Lt
	case syntax.Ge:
		return syntax.Le
	default:
		return op
	}
}
