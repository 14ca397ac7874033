package sqlrewrite

import (
	"math/big"
	"slices"
	"strconv"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// What a column alone gives as keys: its domain, or every whole number or day between its bounds, as far as WHERE leaves them. A bounded column
// counts as clamped here as in every computation, so that GROUP BY x is GROUP BY x + 0.

// columnValues are the values that a column counts as in an expression.
func (v evaluator) columnValues(f *field) (values []datum, ok bool) {
	switch {
	case f.unit:
		return nil, false
	case f.Domain != nil:
		for _, k := range narrow(f.Domain, f, v.where) {
			d, ok := datumOf(k, f.Type)
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
		if !f.NotNull {
			values = append(values, nullDatum())
		}
		return values, true
	case isGrid(f):
		g, ok := v.gridOf(f, maxCombinations, 1)
		return g.data(), ok
	default:
		return nil, false
	}
}

// isGrid reports whether a column's values count as whole numbers, or days, between two bounds.
func isGrid(f *field) bool { return f.Bounds != nil && (f.Type.IsInteger() || f.Type == catalog.Date) }

// gridValues is what WHERE leaves of the values of such a column.
type gridValues struct {
	of      *field
	lo, hi  int64
	only    []map[int64]bool // what each list of WHERE allows
	without map[int64]bool   // what is ruled out
	null    bool
}

// gridOf reads WHERE; ok is false for a grid of more than most values. To look at share of them is work for one.
func (v evaluator) gridOf(f *field, most, share int64) (g gridValues, ok bool) {
	s, null := v.within(f)
	if n := wholeNumbers(s); !n.IsInt64() || n.Int64() >= most || !v.spend(int(n.Int64()/share)) {
		return g, false
	}
	g = gridValues{of: f, lo: ceil(s.lo).Int64(), hi: floor(s.hi).Int64(), without: map[int64]bool{}, null: null}
	ends := clampedColumn(f).extent
	for _, e := range boundConjuncts(v.where) {
		op, with, ok := comparedWith(e, f)
		if !ok || op != syntax.Eq && op != syntax.Ne {
			continue
		}
		listed := make(map[int64]bool, len(with))
		for _, at := range with {
			switch {
			case !at.IsInt():
			case op == syntax.Eq:
				listed[minRat(maxRat(at, ends.lo), ends.hi).Num().Int64()] = true
			case at.Cmp(ends.lo) > 0 && at.Cmp(ends.hi) < 0: // what counts as an end may be any value beyond it
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

// data are the values of a grid.
func (g gridValues) data() (values []datum) {
	for k := range g.each {
		values = append(values, numberDatum(number(k)))
	}
	if g.null {
		values = append(values, nullDatum())
	}
	return values
}

// keys are the values of a grid as keys.
func (g gridValues) keys() []catalog.Key {
	keys := make([]catalog.Key, 0, g.hi-g.lo+2)
	for k := range g.each {
		text := strconv.FormatInt(k, 10)
		if g.of.Type == catalog.Date {
			text = timeOf(number(k), catalog.Date)
		}
		keys = append(keys, catalog.Key{Text: text})
	}
	if g.null {
		keys = append(keys, catalog.Key{Null: true})
	}
	return keys
}

func (v evaluator) spendWhole(s *extent) bool {
	n := wholeNumbers(s)
	return n.IsInt64() && n.Int64() <= maxKeys && v.spend(int(n.Int64()))
}

// whole are the whole numbers of an extent.
func whole(s *extent) (all []datum) {
	last := floor(s.hi)
	for k := ceil(s.lo); k.Cmp(last) <= 0; k = new(big.Int).Add(k, big.NewInt(1)) {
		all = append(all, numberDatum(new(big.Rat).SetInt(k)))
	}
	return all
}

// boundedKey makes a bounded column a public key: the domain is its grid. A plain number costs less work than one that is computed, so that
// a column may have as many keys as an answer.
func (b *binder) boundedKey(key groupKey, f *field, work *int) (groupKey, error) {
	const share = 4
	v := evaluator{where: b.bound.where, work: work}
	g, ok := v.gridOf(f, maxKeys, share)
	if !ok {
		return key, fault.TooManyKeys(key.at, maxKeys).WithHint("narrow its values with WHERE, or group by a part of it: floor(" + f.Name + " / 1000)")
	}
	key.domain = g.keys()
	o := clampedColumn(f)
	key.x = computedOf(column{of: f}, o)
	key.declared = int(clampInt64(wholeNumbers(o.extent))) + 1 + boolIndex(!f.NotNull)
	return key, nil
}

// comparedWith recognises a condition on a column alone: a comparison with constants, or with a list of them. Values beyond them do not
// meet it, nor does NULL.
func comparedWith(e expr, f *field) (op syntax.Operator, with []*big.Rat, ok bool) {
	var x expr
	var list []expr
	switch e := e.(type) {
	case binary:
		op, x, list = e.op, e.l, []expr{e.r}
		if plainField(e.r) == f {
			op, x, list = mirrored(op), e.r, []expr{e.l}
		}
		if op == syntax.And || op == syntax.Or {
			return "", nil, false
		}
	case in:
		op, x, list = syntax.Eq, e.x, e.list
		if e.not {
			op = syntax.Ne
		}
	}
	if x == nil || plainField(x) != f {
		return "", nil, false
	}
	for _, item := range list {
		c, isConstant := item.(constant)
		if !isConstant || c.null || f.Type.IsTime() && c.t != f.Type {
			return "", nil, false
		}
		d, ok := datumOf(catalog.Key{Text: c.text}, c.t)
		if !ok || d.value == nil {
			return "", nil, false
		}
		with = append(with, d.value)
	}
	return op, with, true
}

// within are the bounds of a column of whole numbers, days or microseconds, narrowed by what WHERE says of the column itself; null
// reports whether it may be NULL. Values beyond a bound count as the bound, so that a condition beyond it leaves the bound.
func (v evaluator) within(f *field) (s *extent, null bool) {
	s = clampedColumn(f).extent
	lo, hi, null := s.lo, s.hi, !f.NotNull
	least := func(at *big.Rat) { lo = maxRat(lo, minRat(at, s.hi)) }
	most := func(at *big.Rat) { hi = minRat(hi, maxRat(at, s.lo)) }
	for _, e := range boundConjuncts(v.where) {
		if e, ok := e.(is); ok && e.what == syntax.IsNull && e.not && plainField(e.x) == f {
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
				lowest, highest = minRat(lowest, other), maxRat(highest, other)
			}
			least(lowest)
			most(highest)
		case syntax.Ge:
			least(at)
		case syntax.Le:
			most(at)
		case syntax.Gt: // the next whole number
			least(new(big.Rat).Add(new(big.Rat).SetInt(floor(at)), one()))
		case syntax.Lt:
			most(new(big.Rat).Sub(new(big.Rat).SetInt(ceil(at)), one()))
		default: // <> leaves the bounds
		}
	}
	if lo.Cmp(hi) > 0 {
		hi = lo // no row is left
	}
	return &extent{lo: lo, hi: hi}, null
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
