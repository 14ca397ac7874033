package algebra

import (
	"slices"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// UnitWindow is OVER (PARTITION BY owner, partition ORDER BY order frame) among rows of people: each value is a function of the set of rows of
// one unit, whatever their physical order, which the rows of another unit may change. Rows that tie in the order are told apart by all that
// their query reads of them, so that only rows change places that are equal to it; docs/sql.md, section 3, proves it.
type UnitWindow struct {
	At        syntax.Expr
	Owner     *Field
	Partition []Expr
	Order     []Ordering
	Frame     *Frame // nil: the default
	// sequential: the value depends on the order of rows that tie. Others have one value for all of them.
	Sequential bool
	Ties       []*Field // what the query reads of a row; of sequential windows
	// Key are fields by which no two rows tie. Only where a query has sequential windows in several orders: rows where one is NULL have no value.
	Key []*Field
}

// Given reports whether rows that tie are equal in a field anyway.
func (w *UnitWindow) Given(f *Field) bool {
	is := func(e Expr) bool { return PlainField(e) == f }
	return (OneText(Column{Of: f}) && f.Type != catalog.Char) &&
		(slices.ContainsFunc(w.Partition, is) || slices.ContainsFunc(w.Order, func(o Ordering) bool { return is(o.Expr) }))
}

// TellsApart finds the key that tells the rows of a partition apart.
func (r *Relation) TellsApart(w *UnitWindow) (RowKey, bool) {
	var given []*Field
	for _, e := range w.Partition {
		given = append(given, PlainField(e))
	}
	for _, o := range w.Order {
		given = append(given, PlainField(o.Expr))
	}
	return r.OneAmong(given)
}

func (w *UnitWindow) children() []Expr {
	all := slices.Clone(w.Partition)
	for _, o := range w.Order {
		all = append(all, o.Expr)
	}
	return all
}

// Most is how many of rows, of one unit, its frame can hold.
func (w *UnitWindow) Most(rows int64) int64 {
	if w == nil || w.Frame == nil || w.Frame.Mode != syntax.Rows {
		return rows
	}
	places := int64(1)
	for _, end := range []struct {
		bound     FrameBound
		inward    syntax.FrameBoundKind
		unbounded syntax.FrameBoundKind
	}{{w.Frame.Start, syntax.Following, syntax.UnboundedPreceding}, {w.Frame.End, syntax.Preceding, syntax.UnboundedFollowing}} {
		switch {
		case end.bound.Kind == end.unbounded:
			return rows
		case end.bound.Offset != nil:
			k, _ := scalar.ParseNumber(end.bound.Offset.Text)
			places += k.Num().Int64() * int64(1-2*BoolIndex(end.bound.Kind == end.inward))
		}
	}
	return min(rows, max(places, 1))
}
