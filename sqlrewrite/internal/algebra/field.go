package sqlrewrite

import (
	"math/big"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// field is a column of a relation of the query: of a table, or one that a subquery computes. Two references mean the same column
// iff they point to the same field.
type field struct {
	// Column holds what is known of its values: name, type, bounds, keys. For a computed one it is made up: it has no number, and
	// what it says was derived from the expression.
	*catalog.Column
	relation string    // the alias under which the statement knows its relation
	printed  string    // its name in the statement; "" where that is its name
	label    string    // its name for people, where its name alone would be ambiguous; "" where it is not
	table    string    // the table that it comes from, for people; "" for a computed one
	unit     bool      // holds the id of the row's privacy unit
	public   bool      // of a public table
	present  bool      // a unit's id that is NULL on no row, by what is pinned or printed
	anchor   anchor    // what it refers to, if that tells the row's privacy unit
	caps     []*rowCap // around its relation, the outermost first
}

// anchor is a unique column of an owned table. A row that holds the value of one belongs to the unit of the row of that table that holds it.
type anchor struct {
	table  *catalog.Table // nil: none
	column string
}

// sql names the field in a statement.
func (f *field) sql() string {
	name := f.printed
	if name == "" {
		name = f.Name
	}
	if f.relation == "" {
		return quoteIdent(name)
	}
	return quoteIdent(f.relation) + "." + quoteIdent(name)
}

// text names the field for people. Two fields that one condition can name have different texts.
func (f *field) text() string {
	if f.label != "" {
		return f.label
	}
	return f.Name
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

// identity reports whether a field's values tell one unit, as its id or as what leads to a row of it. The identity of a unit is a kind of value
// that no expression takes: it could be compared with a constant, or with a number of a public table, which is a constant in disguise, and so one
// person be chosen. It is passed on as it is, counted, told whether it is NULL, grouped and ordered by within one unit's rows, and joined with the
// identity of the same units ([binder.identities]).
func (f *field) identity() bool { return f.unit || f.Identifies != "" }

// identityOf finds the field that an expression names, if it is the identity of a unit and that may stand here: not the unit's own id, which is
// known wherever there is a row.
func (b *binder) identityOf(n syntax.Expr) (*field, bool) {
	c, ok := n.(*syntax.Column)
	if !ok {
		return nil, false
	}
	f, err := b.column(c)
	return f, err == nil && f.identity() && !f.unit
}

// identityIn is [binder.identityOf] in a scope.
func (b *binder) identityIn(s scope, n syntax.Expr) (expr, bool) {
	f, ok := b.identityOf(n)
	if !ok {
		return nil, false
	}
	switch s := s.(type) {
	case rowScope:
		return column{of: f}, true
	case *windowRows:
		return column{of: s.field(f)}, true
	case *grouping:
		key := s.keys[f]
		return column{of: key}, key != nil
	default:
		return nil, false
	}
}

// plainField is the field that an expression is, if it is nothing else.
func plainField(e expr) *field {
	if c, ok := e.(column); ok {
		return c.of
	}
	return nil
}
