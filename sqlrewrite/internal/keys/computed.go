package keys

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
)

// Computed asks the database which keys an expression can have, where the values of its columns can be listed: declared keys, booleans,
// whole numbers and days between bounds, granules of bounded times. A value beyond a bound counts as the bound. Where is true on every row
// that counts.
//
// Keys are in canonical order. known is false while nobody has asked; ok is false where the keys cannot be listed.
func Computed(list algebra.List, x, where algebra.Expr) (keys []catalog.Key, known, ok bool) {
	if list.Of == nil {
		return nil, true, false
	}
	l, ok := listOf(x, where)
	if !ok {
		return nil, true, false
	}
	tuples, known := list.Of(l)
	if !known {
		return []catalog.Key{}, false, true
	}
	if tuples == nil {
		return nil, true, false
	}
	for _, t := range tuples {
		keys = append(keys, t[0])
	}
	keys, ok = domain.InOrder(keys, x.Typ())
	return keys, true, ok
}

// listOf is the question for the keys of an expression.
func listOf(x, where algebra.Expr) (l algebra.KeyList, ok bool) {
	columns := domain.ColumnsOf(x)
	known := func(f *algebra.Field) bool { return slices.Contains(columns, f) }
	left := maxInlining
	if !readsOnly(x, known) || !fits(x, &left) {
		return l, false
	}
	var implied []algebra.Expr
	for _, e := range algebra.BoundConjuncts(where) {
		if e = Implied(e, known); e != nil && fits(e, &left) {
			implied = append(implied, e)
		}
	}
	l, ok = domain.KeyListOf(x, where, implied)
	return l, ok && !slices.ContainsFunc(l.Declared, func(d algebra.DeclaredKeys) bool { return !isListed(d.Of.Type) })
}

// fits reports whether an expression is printed in at most so many visits, and takes them: operands of partial operations stand several
// times, at each level (A44).
func fits(e algebra.Expr, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch e := e.(type) {
	case algebra.Computed:
		return fits(e.ErrorFree, left)
	case algebra.Guard:
		return fits(e.Clamped, left)
	default:
		return !slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return !fits(x, left) })
	}
}
