package algebra

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Field is a column of a relation of the query: of a table, or one that a subquery computes. Two references mean the same column
// iff they point to the same field.
type Field struct {
	// Column holds what is known of its values: name, type, bounds, keys. For a computed one it is made up: it has no number, and
	// what it says was derived from the expression.
	*catalog.Column
	Side     *Side     // of the joins in its FROM; nil: none
	Relation string    // the alias under which the statement knows its relation
	Printed  string    // its name in the statement; "" where that is its name
	Label    string    // its name for people, where its name alone would be ambiguous; "" where it is not
	Table    string    // the table that it comes from, for people; "" for a computed one
	Unit     bool      // holds the id of the row's privacy unit
	Public   bool      // of a public table
	Held     bool      // a unit's id that is NULL on no row of its relation, by what is pinned or printed; see [Field.Present]
	Anchor   Anchor    // what it refers to, if that tells the row's privacy unit
	Caps     []*RowCap // around its relation, the outermost first
}

// Side is a side of a join. Fields know on which they stand from when they are made; what a join makes of them follows from it.
type Side struct {
	Outer  *Side  // of the join around; nil: none
	Absent bool   // the join has rows without one of this side: all its fields are NULL there
	Linked *Field // the unit's id that the join's condition makes equal to one of the other side; nil: none
}

// Sides are those of a join that stands on the side s.
func (s *Side) Sides() (left, right *Side) { return &Side{Outer: s}, &Side{Outer: s} }

// Known is what is known of the field's values beside the joins around it. Where one has no row of its side, it is NULL, which is then one
// of the public keys.
func (f *Field) Known() *catalog.Column {
	for s := f.Side; s != nil; s = s.Outer {
		if s.Absent {
			c := *f.Column
			if c.Type == catalog.Bool && c.Domain == nil {
				c.Domain = []catalog.Key{{Text: "false"}, {Text: "true"}}
			}
			if c.NotNull = false; c.Domain != nil && !slices.Contains(c.Domain, catalog.Key{Null: true}) {
				c.Domain = append(slices.Clone(c.Domain), catalog.Key{Null: true})
			}
			return &c
		}
	}
	return f.Column
}

// NotNull reports whether a policy declares that the field is NULL on no row, and no join makes it so.
func (f *Field) NotNull() bool { return f.Known().NotNull }

// Domain are the field's public keys; nil: it has none.
func (f *Field) Domain() []catalog.Key { return f.Known().Domain }

// Present reports whether the field is a unit's id that is NULL on no row, by what is pinned or printed: NULL equals nothing.
func (f *Field) Present() bool {
	present := f.Held
	for s := f.Side; s != nil; s = s.Outer {
		present = (present || s.Linked == f) && !s.Absent
	}
	return present
}

// Anchor is a unique column of an owned table. A row that holds the value of one belongs to the unit of the row of that table that holds
// it.
type Anchor struct {
	Table  *catalog.Table // nil: none
	Column string
}

// SQL names the field in a statement.
func (f *Field) SQL() string {
	name := f.Printed
	if name == "" {
		name = f.Name
	}
	if f.Relation == "" {
		return scalar.QuoteIdent(name)
	}
	return scalar.QuoteIdent(f.Relation) + "." + scalar.QuoteIdent(name)
}

// Text names the field for people. Two fields that one condition can name have different texts.
func (f *Field) Text() string {
	if f.Label != "" {
		return f.Label
	}
	return f.Name
}

// Bounds are what every value of an expression that is not NULL lies between once it is printed in its error-free form; nil: nothing is
// known.
type Bounds struct {
	Lo, Hi *big.Rat
	Step   *big.Rat // all values lie on multiples of it; nil: on no known grid
}

// BoundsOf derives the bounds of an expression over a row.
func BoundsOf(e Expr) *Bounds {
	if c, ok := e.(Column); ok && c.Of.Bounds != nil {
		return &Bounds{Lo: c.Of.Bounds.Lo, Hi: c.Of.Bounds.Hi, Step: c.Of.Bounds.Step}
	}
	if c, ok := e.(Computed); ok && c.Within != nil && c.Within.Bounded() {
		return &Bounds{Lo: c.Within.Lo, Hi: c.Within.Hi}
	}
	return nil
}

// Identity reports whether a field's values tell one unit, as its id or as what leads to a row of it. The identity of a unit is a kind of
// value that no expression takes: it could be compared with a constant, or with a number of a public table, which is a constant in
// disguise, and so one person be chosen. It is passed on as it is, counted, told whether it is NULL, grouped and ordered by within one
// unit's rows, and joined with the identity of the same units ([bind.identities]).
func (f *Field) Identity() bool { return f.Unit || f.Identifies != "" }

// PlainField is the field that an expression is, if it is nothing else.
func PlainField(e Expr) *Field {
	if c, ok := e.(Column); ok {
		return c.Of
	}
	return nil
}
