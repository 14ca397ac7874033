package domain

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// mostInputs caps the combinations of values over which keys are listed.
const mostInputs = 1_000_000

// KeyListOf asks for the keys of an expression over columns whose values can be listed: declared keys, booleans, whole numbers and
// days between bounds, granules of bounded times. Where is true on every row that counts, and so are implied, conditions on these
// columns alone.
//
// A bound of the policy stands for all values beyond it. ok is false for an expression that may distinguish them. A condition that may
// distinguish them keeps the bound as an input.
func KeyListOf(x, where algebra.Expr, implied []algebra.Expr) (l algebra.KeyList, ok bool) {
	l.Keys = []algebra.Expr{x}
	ends := make(map[*algebra.Field][]algebra.Expr)
	combinations := int64(1)
	for _, f := range ColumnsOf(x) {
		values := int64(0)
		if keys, declared := declaredValues(f, where); declared {
			l.Declared, values = append(l.Declared, algebra.DeclaredKeys{Of: f, Keys: keys}), int64(len(keys))
		} else if IsGrid(f) && !f.Unit && !seesBeyond(x, f) {
			s, null := evaluator{where: where}.within(f)
			ends[f] = boundsWithin(f, s)
			values = scalar.ClampInt64(wholeNumbers(s)) + 1
			l.Ranges = append(l.Ranges, algebra.KeyRange{Of: f, First: scalar.ClampInt64(scalar.Ceil(s.Lo)),
				Last: scalar.ClampInt64(scalar.Floor(s.Hi)), Null: null})
		} else if g, most, ok := granulesOf(f, x, where); ok {
			l.Granules, values = append(l.Granules, g), most
		} else {
			return l, false
		}
		if values < 0 || values > mostInputs/combinations {
			return l, false
		}
		combinations *= max(values, 1)
	}
	var conditions []algebra.Expr
	for _, e := range implied {
		if slices.ContainsFunc(l.Granules, func(g algebra.KeyGranules) bool { return slices.Contains(ColumnsOf(e), g.Of) }) {
			continue // it may be true within a granule alone
		}
		for _, f := range ColumnsOf(e) {
			if len(ends[f]) == 0 || !seesBeyond(e, f) {
				continue
			}
			for _, end := range ends[f] {
				e = algebra.Binary{Op: syntax.Or, L: e, R: end, T: catalog.Bool}
			}
		}
		conditions = append(conditions, e)
	}
	l.Where = algebra.All(conditions)
	return l, true
}

// declaredValues are the values of a column that has few, as where leaves them.
func declaredValues(f *algebra.Field, where algebra.Expr) (keys []catalog.Key, ok bool) {
	switch {
	case f.Unit:
		return nil, false
	case f.Domain() != nil:
		return Narrow(f.Domain(), f, where), true
	case f.Type == catalog.Bool:
		keys = []catalog.Key{{Text: "false"}, {Text: "true"}}
		if !f.NotNull() {
			keys = append(keys, catalog.Key{Null: true})
		}
		return keys, true
	default:
		return nil, false
	}
}

// boundsWithin are the conditions that a column has a bound of the policy, for the bounds within a range.
func boundsWithin(f *algebra.Field, s *scalar.Range) (all []algebra.Expr) {
	bounds := clampedColumn(f).Range
	for _, end := range [][2]*big.Rat{{s.Lo, bounds.Lo}, {s.Hi, bounds.Hi}} {
		if end[0].Cmp(end[1]) == 0 {
			all = append(all, algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: ValueOf(end[1], f.Type), T: catalog.Bool})
		}
	}
	return all
}

// seesBeyond reports whether an expression may distinguish a bound of a column from the values beyond it: it has the column as it is, not
// clamped, where it neither tests it for NULL nor compares it with constants between the bounds.
func seesBeyond(e algebra.Expr, f *algebra.Field) bool {
	return seesBeyondClamped(e, f, clampedColumn(f))
}

func seesBeyondClamped(e algebra.Expr, f *algebra.Field, clamped Operand) bool {
	switch e := e.(type) {
	case algebra.Column:
		return e.Of == f
	case algebra.Computed:
		return seesBeyondClamped(e.ErrorFree, f, clamped)
	case algebra.Guard:
		return seesBeyondClamped(e.Clamped, f, clamped)
	case algebra.Is:
		if e.What == syntax.IsNull && algebra.PlainField(e.X) == f {
			return false
		}
	case algebra.Call:
		if algebra.Same(e, clamped.X) {
			return false
		}
	case algebra.Binary, algebra.In:
		outside := func(at *big.Rat) bool { return at.Cmp(clamped.Lo) <= 0 || at.Cmp(clamped.Hi) >= 0 }
		if _, with, ok := comparedWith(e, f); ok && !slices.ContainsFunc(with, outside) {
			return false
		}
	}
	return slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return seesBeyondClamped(x, f, clamped) })
}

// InOrder sorts keys of type t in the order of keys; ok is false where the text of one is none of the type.
func InOrder(keys []catalog.Key, t catalog.Type) (sorted []catalog.Key, ok bool) {
	data := make(map[catalog.Key]datum, len(keys))
	for _, k := range keys {
		if data[k], ok = DatumOf(k, t); !ok {
			return nil, false
		}
	}
	sorted = append(make([]catalog.Key, 0, len(keys)), keys...)
	slices.SortFunc(sorted, func(a, b catalog.Key) int { return data[a].compare(data[b]) })
	return sorted, true
}
