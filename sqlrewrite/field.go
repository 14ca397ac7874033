package sqlrewrite

import (
	"math/big"

	"noisegate/catalog"
)

// field is a column of a relation of the query: of a table, or one that a subquery computes. Two references mean the same column
// iff they point to the same field.
type field struct {
	// Column holds what is known of its values: name, type, bounds, keys. For a computed one it is made up: it has no number, and
	// what it says was derived from the expression.
	*catalog.Column
	printed string
	relation string // the alias under which the statement knows its relation
	table    string // the table that it comes from, for people; "" for a computed one
	unit     bool   // holds the id of the privacy unit
	present  bool   // a unit's id that is NULL on no row, by what is pinned or printed
}

// sql names the field in a statement.
func (f *field) sql() string {
	name := f.Name
	if f.printed != "" {
		name = f.printed
	}
	if f.relation == "" {
		return quoteIdent(name)
	}
	return quoteIdent(f.relation) + "." + quoteIdent(name)
}

// bounds are what every value of an expression that is not NULL lies between once it is printed in its total form; nil: nothing is known.
type bounds struct {
	lo, hi *big.Rat
	step   *big.Rat // all values lie on multiples of it; nil: on no known grid
	// declared is false where the printed expression keeps the bounds by itself; where true they are a policy's for a column whose values
	// may lie elsewhere, and whoever needs them must clamp.
	declared bool
}

// boundsOf derives the bounds of an expression over a row.
func boundsOf(e expr) *bounds {
	if c, ok := e.(column); ok && c.of.Bounds != nil {
		return &bounds{lo: c.of.Bounds.Lo, hi: c.of.Bounds.Hi, step: c.of.Bounds.Step, declared: true}
	}
	if c, ok := e.(computed); ok && c.within != nil && c.within.bounded() {
		return &bounds{lo: c.within.lo, hi: c.within.hi}
	}
	return nil
}

// plainField is the field that an expression is, if it is nothing else.
func plainField(e expr) *field {
	if c, ok := e.(column); ok {
		return c.of
	}
	return nil
}
