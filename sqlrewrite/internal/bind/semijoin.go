package bind

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// exists binds EXISTS. Over rows of people it is taken where a condition makes them the same person's as the row outside: then it is
// a function of that person's rows.
func exists(b *algebra.Binder, n *syntax.Exists) (algebra.Expr, error) {
	q := n.Query
	child := child(b, q, b.CTEs)
	child.Outer = b
	switch {
	case q.Set != nil:
		return nil, b.Unsupported(n, "UNION, INTERSECT or EXCEPT inside EXISTS", "write two conditions")
	case len(q.From) == 0:
		return nil, b.Unsupported(n, "EXISTS without FROM", "")
	case q.Groups() || q.Having != nil || slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }):
		return nil, b.Unsupported(n, "an aggregate inside EXISTS", "write "+"x IN (SELECT x ... GROUP BY x HAVING ...)")
	}
	if err := refuseUnstable(child, q); err != nil {
		return nil, err
	}
	if _, err := fromList(child); err != nil {
		return nil, err
	}
	if err := where(child); err != nil {
		return nil, err
	}
	for _, item := range q.Items {
		if _, star := item.Expr.(*syntax.Star); !star {
			if _, err := rowOutput(child, item.Expr); err != nil {
				return nil, err
			}
		}
	}
	r := child.Bound.Source // with what its expressions have joined
	c := stability.NewRowCap(r.Node, r, nil)
	if (r.Owned() || stability.Large(c, child.Bound.Where)) && algebra.ReadsAround(c) {
		return nil, b.Unsupported(n, "ON that reads rows around EXISTS, over rows of people or many public rows,",
			"write the condition in WHERE")
	}
	if r.Owned() {
		link, ok := linkedOutside(child, r)
		if !ok {
			return nil, unlinked(b, n, r)
		}
		c.By = link.L
		b.Bound.Shared().Caps = append(b.Bound.Shared().Caps, c)
		if !tiedByEqualities(r.Node, child.Bound.Where) {
			c.Rows, c.Where = c.Most, stability.OnlyOn(child.Bound.Where, r.Node)
		}
	}
	return algebra.Exists{Of: r, From: c, Where: child.Bound.Where}, nil
}

// tiedByEqualities reports whether all conditions on rows of an item that name rows around it are equalities, by which PostgreSQL finds
// them.
func tiedByEqualities(n algebra.FromItem, where algebra.Expr) bool {
	return !slices.ContainsFunc(algebra.BoundConjuncts(where), func(e algebra.Expr) bool {
		_, _, ok := algebra.IsEquality(e, n)
		return !ok && !algebra.ReadsOnly(e, n)
	})
}

// linkedOutside finds a condition of WHERE that makes the rows the same unit's as a row of a query around.
func linkedOutside(b *algebra.Binder, r *algebra.Relation) (unitLink, bool) {
	for at := b.Outer; at != nil; at = at.Outer {
		around := at.Bound.Source
		if around == nil || !around.Owned() {
			continue
		}
		for _, c := range algebra.Conjuncts(b.Query.Where) {
			eq, ok := c.(*syntax.Binary)
			if !ok || eq.Op != syntax.Eq {
				continue
			}
			if link, ok := linkAcross(b, eq, r, around); ok {
				b.Bound.Shared().Rely(link.relies...)
				return link, true
			}
		}
	}
	return unitLink{}, false
}

// linkAcross recognises an equality between a column of a query and one of a query around it that makes their rows one unit's.
func linkAcross(b *algebra.Binder, eq *syntax.Binary, inner, around *algebra.Relation) (unitLink, bool) {
	var fields [2]*algebra.Field
	for i, side := range []syntax.Expr{eq.L, eq.R} {
		n, ok := side.(*syntax.Column)
		if !ok {
			return unitLink{}, false
		}
		f, err := column(b, n)
		if err != nil {
			return unitLink{}, false
		}
		fields[i] = f
	}
	if around.Has(fields[0]) {
		fields[0], fields[1] = fields[1], fields[0]
	}
	if !inner.Has(fields[0]) || !around.Has(fields[1]) {
		return unitLink{}, false
	}
	return linkOf(algebra.Pair{L: fields[0], R: fields[1]}, inner, around)
}

// unlinked refuses a condition that would let one person's rows decide about another's.
func unlinked(b *algebra.Binder, n interface{ At() syntax.Pos }, r *algebra.Relation) error {
	source := b.Bound.Source
	if source == nil || source.Owner() == nil || r.Owner() == nil {
		return b.Unsupported(n, "a condition on rows of people that does not concern one person", "join on the privacy unit")
	}
	if x, y := r.Owner(), source.Owner(); x.Identifies != y.Identifies {
		return fault.UnitKinds(b.At(n), x.Name, y.Name)
	}
	inner, outer, condition := r.PartOf(r.Owner()), source.PartOf(source.Owner()), ""
	if inner != "" && outer != "" {
		condition = scalar.NameText(inner, r.UnitName()) + " = " + scalar.NameText(outer, source.UnitName())
	}
	return fault.UnitJoin(b.At(n), condition)
}

// inQuery binds (x, ...) [NOT] IN (query) where it stands for a value.
//
// Where an x that links it to a person is NULL, as where an outer join found no partner, SQL says false if the query has no rows at all
// and else unknown: that is asked of other people's rows, so it counts as unknown.
func inQuery(b *algebra.Binder, n *syntax.InQuery) (algebra.Expr, error) {
	e, linking, err := linkedRows(b, n)
	if err != nil || linking == nil {
		return e, err
	}
	return algebra.Choice{Arms: []algebra.Arm{{Cond: linking, Result: e}}, T: catalog.Bool}, nil
}

// linkedRows binds (x, ...) [NOT] IN (query), as EXISTS is. Rows that belong to nobody are not there, as everywhere, so that for the unit's
// id NOT IN meets no NULL. The condition linking, if there is one, says that what links the row outside to a person is there: only then is
// the result a function of that person's rows.
func linkedRows(b *algebra.Binder, n *syntax.InQuery) (in algebra.Expr, linking algebra.Expr, err error) {
	r, err := rows(child(b, n.Query, b.CTEs))
	if err != nil {
		return nil, nil, err
	}
	if len(n.X) != len(r.Fields) {
		return nil, nil, b.Mismatch(n, fmt.Sprintf("the query has %d columns where %d are compared", len(r.Fields), len(n.X)), "")
	}
	e := algebra.InRows{Of: r, From: r.Node, Outputs: r.Fields}
	linked, sure := !r.Owned(), !r.Owned()
	var present, links []algebra.Expr
	if o := r.Owner(); o != nil {
		present = append(present, algebra.Is{X: algebra.Column{Of: o}, What: syntax.IsNull, Not: true})
	}
	for i, side := range n.X {
		x, err := rowOutput(b, side)
		if err != nil {
			return nil, nil, err
		}
		y := r.Fields[i]
		if f := algebra.PlainField(x); f != nil {
			if link, ok := linkTo(b, f, y, r); ok {
				b.Bound.Shared().Rely(link.relies...)
				linked, sure = true, sure || onEveryRow(b, f)
				present = append(present, algebra.Is{X: algebra.Column{Of: y}, What: syntax.IsNull, Not: true})
				links = append(links, algebra.Is{X: x, What: syntax.IsNull, Not: true})
			} else if err := sameIdentity(b, side, f, y); err != nil {
				return nil, nil, err
			}
		} else if y.Identity() {
			return nil, nil, fault.UnitColumn(b.At(side), y.Name)
		}
		l, right, err := domain.Unify(b, side, syntax.Eq, side, side, x, algebra.Column{Of: y})
		if err != nil {
			return nil, nil, err
		}
		if algebra.PlainField(right) != y {
			return nil, nil, b.Unsupported(side, "this comparison with the rows of a query", "")
		}
		e.X = append(e.X, l)
	}
	if !linked {
		return nil, nil, unlinked(b, n, r)
	}
	e.Where = algebra.All(present)
	if sure {
		return e, nil, nil
	}
	return e, algebra.All(links), nil
}

// onEveryRow reports whether a field that links rows to their unit is NULL on no row that is used: it holds the unit's id, or leads to it.
func onEveryRow(b *algebra.Binder, f *algebra.Field) bool {
	for at := b; at != nil; at = at.Outer {
		if s := at.Bound.Source; s != nil && s.Has(f) {
			return slices.Contains(s.Owners, f) || s.Pending != nil && s.Pending.From == f
		}
	}
	return false
}

// linkTo finds out whether x = y makes the rows of r those of one unit with a row of the query at hand or around it.
func linkTo(b *algebra.Binder, x, y *algebra.Field, r *algebra.Relation) (unitLink, bool) {
	for at := b; at != nil; at = at.Outer {
		if s := at.Bound.Source; s != nil && s.Owned() && s.Has(x) {
			return linkOf(algebra.Pair{L: x, R: y}, s, r)
		}
	}
	return unitLink{}, false
}
