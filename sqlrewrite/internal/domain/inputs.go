package domain

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Input has the values of a column over which PostgreSQL lists the keys of an expression.
type Input struct {
	Keys        []catalog.Key // its values; nil: those of the range
	First, Last int64         // whole numbers, or days since 1970-01-01
	Null        bool          // so is NULL
	AtEnd       algebra.Expr  // true for the bounds of the policy within the range, which stand for all values beyond them; nil: none is
}

// InputOf returns the values of a column of x that where leaves; ok is false where they cannot be listed, or where x distinguishes a bound
// from the values beyond it.
func InputOf(f *algebra.Field, x, where algebra.Expr) (in Input, ok bool) {
	switch {
	case f.Unit:
		return in, false
	case f.Domain() != nil:
		in.Keys = Narrow(f.Domain(), f, where)
		return in, true
	case f.Type == catalog.Bool:
		in.Keys = []catalog.Key{{Text: "false"}, {Text: "true"}}
		if !f.NotNull() {
			in.Keys = append(in.Keys, catalog.Key{Null: true})
		}
		return in, true
	case !IsGrid(f) || SeesBeyond(x, f):
		return in, false
	}
	s, null := evaluator{where: where}.within(f)
	ends := clampedColumn(f).Range
	first, last := scalar.Ceil(s.Lo), scalar.Floor(s.Hi)
	if !first.IsInt64() || !last.IsInt64() {
		return in, false
	}
	in.First, in.Last, in.Null = first.Int64(), last.Int64(), null
	for _, end := range [][2]*big.Rat{{s.Lo, ends.Lo}, {s.Hi, ends.Hi}} {
		if end[0].Cmp(end[1]) != 0 {
			continue
		}
		is := algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: ValueOf(end[1], f.Type), T: catalog.Bool}
		if in.AtEnd == nil {
			in.AtEnd = is
		} else {
			in.AtEnd = algebra.Binary{Op: syntax.Or, L: in.AtEnd, R: is, T: catalog.Bool}
		}
	}
	return in, true
}

// Values is the number of values.
func (in Input) Values() int64 {
	if in.Keys != nil {
		return int64(len(in.Keys))
	}
	n := new(big.Int).Sub(big.NewInt(in.Last), big.NewInt(in.First))
	return scalar.ClampInt64(n.Add(n, big.NewInt(int64(1+algebra.BoolIndex(in.Null)))))
}

// SeesBeyond reports whether an expression may distinguish a bound of a column from the values beyond it: it has the column as it is, not
// clamped, where it neither tests it for NULL nor compares it with constants between the bounds.
func SeesBeyond(e algebra.Expr, f *algebra.Field) bool {
	switch e := e.(type) {
	case algebra.Column:
		return e.Of == f
	case algebra.Computed:
		return SeesBeyond(e.ErrorFree, f)
	case algebra.Guard:
		return SeesBeyond(e.Clamped, f)
	case algebra.Is:
		if e.What == syntax.IsNull && algebra.PlainField(e.X) == f {
			return false
		}
	case algebra.Call:
		if algebra.Same(e, clampedColumn(f).X) {
			return false
		}
	case algebra.Binary, algebra.In:
		ends := clampedColumn(f).Range
		outside := func(at *big.Rat) bool { return at.Cmp(ends.Lo) <= 0 || at.Cmp(ends.Hi) >= 0 }
		if _, with, ok := comparedWith(e, f); ok && !slices.ContainsFunc(with, outside) {
			return false
		}
	}
	return slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return SeesBeyond(x, f) })
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
