package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// exists is EXISTS (SELECT FROM from WHERE where). Its rows are public, or those of the unit of the row that it is a condition of.
type exists struct {
	of    *relation
	from  fromItem // a [*rowCap]
	where expr     // nil: none
}

// inRows is (x, ...) IN (SELECT outputs FROM from WHERE where), for rows like those of [exists].
type inRows struct {
	x       []expr
	outputs []*field
	of      *relation
	from    fromItem
	where   expr // nil: none
}

func (exists) typ() catalog.Type { return catalog.Bool }
func (inRows) typ() catalog.Type { return catalog.Bool }

// exists binds EXISTS. Over rows of people it is taken where a condition makes them the same person's as the row outside: then it is
// a function of that person's rows.
func (b *binder) exists(n *syntax.Exists) (expr, error) {
	q := n.Query
	child := b.child(q, b.ctes)
	child.outer = b
	switch {
	case q.Set != nil:
		return nil, b.unsupported(n, "UNION, INTERSECT or EXCEPT inside EXISTS", "write two conditions")
	case len(q.From) == 0:
		return nil, b.unsupported(n, "EXISTS without FROM", "")
	case q.GroupBy != nil || q.Having != nil || slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }):
		return nil, b.unsupported(n, "an aggregate inside EXISTS", "write "+"x IN (SELECT x ... GROUP BY x HAVING ...)")
	}
	if err := child.refuseUnstable(q); err != nil {
		return nil, err
	}
	r, err := child.fromList()
	if err != nil {
		return nil, err
	}
	if err := child.where(); err != nil {
		return nil, err
	}
	for _, item := range q.Items {
		if _, star := item.Expr.(*syntax.Star); !star {
			if _, err := child.rowOutput(item.Expr); err != nil {
				return nil, err
			}
		}
	}
	c := newRowCap(r.node, r, nil)
	if r.owned() {
		link, ok := child.linkedOutside(r)
		if !ok {
			return nil, b.unlinked(n, r)
		}
		c.by = link.l
		b.bound.shared().caps = append(b.bound.shared().caps, c)
		if !tiedByEqualities(r.node, child.bound.where) {
			c.rows, c.where = c.most, onlyOn(child.bound.where, r.node)
		}
	}
	return exists{of: r, from: c, where: child.bound.where}, nil
}

// tiedByEqualities reports whether all conditions on rows of an item that name rows around it are equalities, by which PostgreSQL finds them.
func tiedByEqualities(n fromItem, where expr) bool {
	return !slices.ContainsFunc(boundConjuncts(where), func(e expr) bool {
		_, _, ok := isEquality(e, n)
		return !ok && !readsOnly(e, n)
	})
}

// linkedOutside finds a condition of WHERE that makes the rows the same unit's as a row of a query around.
func (b *binder) linkedOutside(r *relation) (unitLink, bool) {
	for at := b.outer; at != nil; at = at.outer {
		around := at.bound.source
		if around == nil || !around.owned() {
			continue
		}
		for _, c := range conjuncts(b.query.Where) {
			eq, ok := c.(*syntax.Binary)
			if !ok || eq.Op != syntax.Eq {
				continue
			}
			if link, ok := b.linkAcross(eq, r, around); ok {
				b.bound.shared().rely(link.relies...)
				return link, true
			}
		}
	}
	return unitLink{}, false
}

// linkAcross recognises an equality between a column of a query and one of a query around it that makes their rows one unit's.
func (b *binder) linkAcross(eq *syntax.Binary, inner, around *relation) (unitLink, bool) {
	var fields [2]*field
	for i, side := range []syntax.Expr{eq.L, eq.R} {
		n, ok := side.(*syntax.Column)
		if !ok {
			return unitLink{}, false
		}
		f, err := b.column(n)
		if err != nil {
			return unitLink{}, false
		}
		fields[i] = f
	}
	if around.has(fields[0]) {
		fields[0], fields[1] = fields[1], fields[0]
	}
	if !inner.has(fields[0]) || !around.has(fields[1]) {
		return unitLink{}, false
	}
	return linkOf(pair{fields[0], fields[1]}, inner, around)
}

// unlinked refuses a condition that would let one person's rows decide about another's.
func (b *binder) unlinked(n interface{ At() syntax.Pos }, r *relation) error {
	source := b.bound.source
	if source == nil || source.owner() == nil || r.owner() == nil {
		return b.unsupported(n, "a condition on rows of people that does not concern one person", "join on the privacy unit")
	}
	return fault.UnitJoin(b.at(n), fmt.Sprintf("%s = %s", r.partOf(r.owner())+"."+r.unitName(), source.partOf(source.owner())+"."+source.unitName()))
}

// inQuery binds (x, ...) [NOT] IN (query) where it stands for a value.
//
// Where an x that links it to a person is NULL, as where an outer join found no partner, SQL says false if the query has no rows at all and else
// unknown: that is asked of other people's rows, so it counts as unknown.
func (b *binder) inQuery(n *syntax.InQuery) (expr, error) {
	e, linking, err := b.linkedRows(n)
	if err != nil || linking == nil {
		return e, err
	}
	return choice{arms: []arm{{cond: linking, result: e}}, t: catalog.Bool}, nil
}

// linkedRows binds (x, ...) [NOT] IN (query), as EXISTS is. Rows that belong to nobody are not there, as everywhere, so that for the unit's id NOT IN
// meets no NULL. The condition linking, if there is one, says that what links the row outside to a person is there: only then is the result a
// function of that person's rows.
func (b *binder) linkedRows(n *syntax.InQuery) (in expr, linking expr, err error) {
	r, err := b.child(n.Query, b.ctes).rows()
	if err != nil {
		return nil, nil, err
	}
	if len(n.X) != len(r.fields) {
		return nil, nil, b.mismatch(n, fmt.Sprintf("the query has %d columns where %d are compared", len(r.fields), len(n.X)), "")
	}
	e := inRows{of: r, from: r.node, outputs: r.fields}
	linked, sure := !r.owned(), !r.owned()
	var present, links []expr
	if o := r.owner(); o != nil {
		present = append(present, is{x: column{of: o}, what: syntax.IsNull, not: true})
	}
	for i, side := range n.X {
		x, err := b.rowOutput(side)
		if err != nil {
			return nil, nil, err
		}
		y := r.fields[i]
		if f := plainField(x); f != nil {
			if link, ok := b.linkTo(f, y, r); ok {
				b.bound.shared().rely(link.relies...)
				linked, sure = true, sure || b.onEveryRow(f)
				present = append(present, is{x: column{of: y}, what: syntax.IsNull, not: true})
				links = append(links, is{x: x, what: syntax.IsNull, not: true})
			} else if err := b.sameIdentity(side, f, y); err != nil {
				return nil, nil, err
			}
		} else if y.identity() {
			return nil, nil, fault.UnitColumn(b.at(side), y.Name)
		}
		l, right, err := b.unify(side, syntax.Eq, side, side, x, column{of: y})
		if err != nil {
			return nil, nil, err
		}
		if plainField(right) != y {
			return nil, nil, b.unsupported(side, "this comparison with the rows of a query", "")
		}
		e.x = append(e.x, l)
	}
	if !linked {
		return nil, nil, b.unlinked(n, r)
	}
	e.where = all(present)
	if sure {
		return e, nil, nil
	}
	return e, all(links), nil
}

// onEveryRow reports whether a field that links rows to their unit is NULL on no row that is used: it holds the unit's id, or leads to it.
func (b *binder) onEveryRow(f *field) bool {
	for at := b; at != nil; at = at.outer {
		if s := at.bound.source; s != nil && s.has(f) {
			return slices.Contains(s.owners, f) || s.pending != nil && s.pending.from == f
		}
	}
	return false
}

// linkTo finds out whether x = y makes the rows of r those of one unit with a row of the query at hand or around it.
func (b *binder) linkTo(x, y *field, r *relation) (unitLink, bool) {
	for at := b; at != nil; at = at.outer {
		if s := at.bound.source; s != nil && s.owned() && s.has(x) {
			return linkOf(pair{x, y}, s, r)
		}
	}
	return unitLink{}, false
}
