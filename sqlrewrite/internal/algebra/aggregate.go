package algebra

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Aggregate is an aggregate, or a function that exists only with OVER.
type Aggregate struct {
	Name     string     `node:"1"`
	Args     []Expr     `node:"2"`
	Star     bool       `node:"3"`
	Distinct bool       `node:"4"`
	Order    []Ordering `node:"5"`          // inside the parentheses
	Within   []Ordering `node:"6"`          // WITHIN GROUP
	Filter   Expr       `node:"7,optional"` // nil: none
	Over     *Window    `node:"8"`          // nil: one value for each group
	// Safe is set below the noise: it raises no error, and does not depend on the order of the rows, so that floats are added as
	// numerics. Above the noise, over released values and public rows, it is PostgreSQL's own.
	Safe bool         `node:"9,-"`
	T    catalog.Type `node:"10,-"`
	// Cells is its number among the aggregates and windows over released rows that are followed to the rows that each value is computed
	// from, so that there is an interval; 0: it is not followed. See [Followed].
	Cells int `node:"11,-"`
}

// X is the first argument; nil for none.
func (e Aggregate) X() Expr {
	if len(e.Args) == 0 {
		return nil
	}
	return e.Args[0]
}

// AddsFloats reports whether it adds values of floats below the noise, each within its bounds.
func (e Aggregate) AddsFloats() bool {
	return e.Safe && (e.Name == "sum" || e.Name == "avg") && scalar.IsFloat(e.X().Typ())
}

// Window is OVER (PARTITION BY owner, partition ORDER BY order frame). Which rows it sees is decided after HAVING and before DISTINCT,
// ORDER BY and LIMIT, as in PostgreSQL.
//
// Among rows of units each value is a function of the set of rows of one unit, whatever their physical order, which the rows of another
// unit may change. Rows that tie in the order are told apart by all that their query reads of them, so that only rows change places that
// are equal to it; docs/sql/relations.md proves it.
type Window struct {
	Partition []Expr     `node:"1"`
	Order     []Ordering `node:"2"`
	Frame     *Frame     `node:"3,own"` // nil: the default

	At    syntax.Expr `node:"4,-"`
	Owner *Field      `node:"5"` // the id of the unit; nil where no row is a unit's
	// Sequential: the value depends on the order of rows that tie. Others have one value for all of them.
	Sequential bool     `node:"6,-"`
	Ties       []*Field `node:"7,encoded"` // what the query reads of a row; of sequential windows
	// Key are fields by which no two rows tie. Only where a query has sequential windows in several orders: rows where one is NULL
	// have no value.
	Key []*Field `node:"8,encoded"`
}

// Frame is the frame of a window. Offsets are constants that were checked.
type Frame struct {
	Mode       syntax.FrameMode `node:"1"`
	Start, End FrameBound       `node:"2 3"`
}

type FrameBound struct {
	Kind   syntax.FrameBoundKind `node:"1"`
	Offset *Constant             `node:"2"`
}

// Given reports whether rows that tie are equal in a field anyway.
func (w *Window) Given(f *Field) bool {
	is := func(e Expr) bool { return PlainField(e) == f }
	return (OneText(Column{Of: f}) && f.Type != catalog.Char) &&
		(slices.ContainsFunc(w.Partition, is) || slices.ContainsFunc(w.Order, func(o Ordering) bool { return is(o.Expr) }))
}

// TellsApart finds the key that tells the rows of a partition apart.
func (r *Relation) TellsApart(w *Window) (RowKey, bool) {
	var given []*Field
	for _, e := range w.Partition {
		given = append(given, PlainField(e))
	}
	for _, o := range w.Order {
		given = append(given, PlainField(o.Expr))
	}
	return r.OneAmong(given)
}

// Most is how many of rows, of one unit, its frame can hold.
func (w *Window) Most(rows int64) int64 {
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
