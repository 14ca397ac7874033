package sqlrewrite

import (
	"math/big"

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
		return v.gridValues(f, maxCombinations, 1)
	default:
		return nil, false
	}
}

// isGrid reports whether a column's values count as whole numbers, or days, between two bounds.
func isGrid(f *field) bool { return f.Bounds != nil && (f.Type.IsInteger() || f.Type == catalog.Date) }

// gridValues are the values of a column that is a grid, if there are not more than most. To look at share of them is work for one.
func (v evaluator) gridValues(f *field, most, share int64) (values []datum, ok bool) {
	s, null := v.within(f)
	if n := wholeNumbers(s); !n.IsInt64() || n.Int64() >= most || !v.spend(int(n.Int64()/share)) {
		return nil, false
	}
	values = v.listedIn(f, whole(s))
	if null {
		values = append(values, nullDatum())
	}
	return values, true
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
	values, ok := v.gridValues(f, maxKeys, share)
	if !ok {
		return key, fault.TooManyKeys(key.at, maxKeys).WithHint("narrow its values with WHERE, or group by a part of it: floor(" + f.Name + " / 1000)")
	}
	key.domain = make([]catalog.Key, len(values))
	for i, d := range values {
		key.domain[i] = keyOfDatum(d, f.Type)
	}
	o := clampedColumn(f)
	key.x = computed{written: column{of: f}, total: o.x, within: o.extent}
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

// listedIn leaves out the values that a list of WHERE rules out. What counts as a bound may be any value beyond it.
func (v evaluator) listedIn(f *field, values []datum) []datum {
	s := clampedColumn(f).extent
	for _, e := range boundConjuncts(v.where) {
		op, with, ok := comparedWith(e, f)
		if !ok || op != syntax.Eq && op != syntax.Ne {
			continue
		}
		listed := make(map[string]bool, len(with))
		for _, at := range with {
			if op == syntax.Eq {
				at = minRat(maxRat(at, s.lo), s.hi)
			}
			listed[at.RatString()] = true
		}
		kept := values[:0]
		for _, d := range values {
			beyond := d.value.Cmp(s.lo) == 0 || d.value.Cmp(s.hi) == 0
			if listed[d.value.RatString()] == (op == syntax.Eq) || op == syntax.Ne && beyond {
				kept = append(kept, d)
			}
		}
		values = kept
	}
	return values
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
