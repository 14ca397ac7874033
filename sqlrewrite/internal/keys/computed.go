package keys

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// Computed asks the database which keys an expression can have, where the values of its columns can be listed: declared keys, booleans,
// whole numbers and days between bounds. A value beyond a bound counts as the bound. Where is true on every row that counts.
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
	l.Keys = []algebra.Expr{x}
	ends := make(map[*algebra.Field]algebra.Expr) // true where a column has a bound of the policy, which stands for all values beyond it
	combinations := int64(1)
	for _, f := range domain.ColumnsOf(x) {
		in, ok := domain.InputOf(f, x, where)
		switch {
		case !ok || in.Values() > maxDeclared/combinations:
			return l, false
		case in.Keys != nil && !isListed(f.Type):
			return l, false
		case in.Keys != nil:
			l.Declared = append(l.Declared, algebra.DeclaredKeys{Of: f, Keys: in.Keys})
		default:
			l.Ranges = append(l.Ranges, algebra.KeyRange{Of: f, First: in.First, Last: in.Last, Null: in.Null})
		}
		combinations *= max(in.Values(), 1)
		ends[f] = in.AtEnd
	}
	known := func(f *algebra.Field) bool { _, is := ends[f]; return is }
	var conditions []algebra.Expr
	for _, e := range algebra.BoundConjuncts(where) {
		e = Implied(e, known)
		if e == nil {
			continue
		}
		for _, f := range domain.ColumnsOf(e) {
			if end := ends[f]; end != nil && domain.SeesBeyond(e, f) {
				e = algebra.Binary{Op: syntax.Or, L: e, R: end, T: catalog.Bool}
			}
		}
		conditions = append(conditions, e)
	}
	l.Where = algebra.All(conditions)
	return l, readsOnly(x, known)
}
