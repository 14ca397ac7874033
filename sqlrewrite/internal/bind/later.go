package bind

import (
	"cmp"
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// A condition on rows that reads nothing of them but group keys is the same for all rows of a group. So it may choose among groups instead,
// after the noise, where it can be compared with other released values. Tools ask for the largest groups in this way:
//
//	SELECT day, k, count(*) FROM t JOIN (SELECT k AS k1 FROM t GROUP BY k ORDER BY count(*) DESC LIMIT 5) s ON k = k1 GROUP BY day, k
//	SELECT day, k, count(*) FROM t WHERE k IN (SELECT k FROM t GROUP BY k ORDER BY count(*) DESC LIMIT 5) GROUP BY day, k
//	SELECT a1, a2, a3 FROM (SELECT day, k, count(*) FROM t GROUP BY day, k) q(a1, a2, a3) WHERE a2 IN (SELECT k ... LIMIT 5)

// groupsName is the name of the groups in the query around them, and how the names of their columns begin: no column of a table has such a
// name, so that nothing that reads more of the rows finds it there.
const groupsName = "groups "

// later is a query whose conditions over released rows choose among its groups.
type later struct {
	o       *algebra.Opened
	query   *syntax.Query
	ctes    *algebra.Environment
	items   []syntax.Item // of the groups, without these conditions
	columns []string      // the names of items
	chosen  []syntax.Expr
	// named is a column of the rows under the name that it has for the query; nil: it has none.
	named func(*syntax.Column) *syntax.Column
}

// chosenLater is a query, refused for a condition over released rows, as one over its groups that means the same; nil where there is none.
// What else of the statement names the relations of these conditions is refused when the groups are bound.
func chosenLater(o *algebra.Opened, query *syntax.Query, err error) *syntax.Query {
	window := func(n syntax.Expr) bool { _, star := n.(*syntax.Star); return star || callsWindow(n) }
	if err == nil || query.GroupBy == nil || query.Sets != nil || query.Distinct || query.DistinctOn != nil ||
		slices.ContainsFunc(query.Items, func(i syntax.Item) bool { return window(i.Expr) }) || mergesColumns(query.From) {
		return nil
	}
	l := &later{o: o, query: query, ctes: (*algebra.Environment)(nil).With(query.With),
		named: func(c *syntax.Column) *syntax.Column { return c }}
	var shown []syntax.Item
	for _, item := range query.Items {
		shown = append(shown, syntax.Item{Pos: item.Pos, Expr: l.output(item), Alias: itemName(item)})
	}
	var order []syntax.OrderItem
	for _, item := range query.OrderBy {
		item.Expr = aliased(query, item.Expr)
		if _, place := item.Expr.(*syntax.Literal); place || window(item.Expr) {
			return nil
		}
		item.Expr = l.output(syntax.Item{Pos: item.Pos, Expr: item.Expr})
		order = append(order, item)
	}
	where := l.rest(query.Where)
	from := make([]syntax.Relation, len(query.From))
	for i, r := range query.From {
		from[i] = l.relation(r)
	}
	if len(l.chosen) == 0 {
		return nil
	}
	groups := &syntax.Query{Pos: query.Pos, Items: l.items, From: from, Where: where, GroupBy: query.GroupBy, Having: query.Having}
	return &syntax.Query{Pos: query.Pos, With: query.With, Items: shown, Where: conjunction(l.chosen), OrderBy: order, Limit: query.Limit,
		Offset: query.Offset,
		From:   []syntax.Relation{&syntax.Subquery{Pos: query.Pos, Query: groups, Alias: groupsName, Columns: l.columns}}}
}

// mergesColumns reports whether a join makes one column of two: a name without its table may then be neither of both.
func mergesColumns(from []syntax.Relation) (merges bool) {
	syntax.Each(from, func(n any) bool {
		j, ok := n.(*syntax.Join)
		merges = merges || ok && (j.Using != nil || j.Natural)
		return merges
	})
	return merges
}

// output is an output of the groups, as the query around them names it.
func (l *later) output(item syntax.Item) *syntax.Column {
	at := slices.IndexFunc(l.items, func(i syntax.Item) bool { return i.Expr == item.Expr })
	if at < 0 {
		at = len(l.items)
		l.items, l.columns = append(l.items, item), append(l.columns, groupsName+strconv.Itoa(at+1))
	}
	return &syntax.Column{Pos: item.Pos, Qualifier: groupsName, Name: l.columns[at]}
}

// key is the group key that a column of the rows is, as the query around the groups names it; nil: it is none.
func (l *later) key(n syntax.Expr) *syntax.Column {
	c, ok := n.(*syntax.Column)
	if !ok {
		return nil
	}
	if c = l.named(c); c == nil {
		return nil
	}
	for _, g := range l.query.GroupBy {
		for _, k := range []syntax.Expr{itemOf(l.query, g), aliased(l.query, g)} { // a wrong one is refused as no key of the groups
			if !sameName(k, c) {
				continue
			}
			if k.(*syntax.Column).Qualifier != c.Qualifier { // so that a wrong one is refused
				k = c
			}
			return l.output(syntax.Item{Pos: c.Pos, Expr: k})
		}
	}
	return nil
}

// sameName reports whether an expression is the column c where each of both is a column of the same rows. A name without its table is that
// of one column alone.
func sameName(n syntax.Expr, c *syntax.Column) bool {
	k, ok := n.(*syntax.Column)
	return ok && k.Name == c.Name && (k.Qualifier == c.Qualifier || k.Qualifier == "" || c.Qualifier == "")
}

// releases reports whether the rows of a relation are released.
func (l *later) releases(r syntax.Relation) bool {
	return itemKind(l.o, r, l.ctes) == algebra.ReleasedRows
}

// rest is a condition on rows without those of its conjuncts that choose among groups.
func (l *later) rest(where syntax.Expr) syntax.Expr {
	return conjunction(slices.DeleteFunc(algebra.Conjuncts(where), func(n syntax.Expr) bool {
		c := l.condition(n)
		if c != nil {
			l.chosen = append(l.chosen, c)
		}
		return c != nil
	}))
}

// condition is a condition on rows as one on groups; nil: it reads more of the rows, or no released ones.
func (l *later) condition(n syntax.Expr) syntax.Expr {
	defer steps.Visit(l.o.Steps).Leave()
	switch n := n.(type) {
	case *syntax.Unary:
		if x := l.condition(n.X); x != nil && n.Op == syntax.Not {
			return &syntax.Unary{Pos: n.Pos, Op: n.Op, X: x}
		}
	case *syntax.InQuery:
		if KindOf(l.o, n.Query, l.ctes) == algebra.ReleasedRows {
			return l.in(n)
		}
	case *syntax.Exists:
		q := n.Query
		if filters(q) && len(q.From) == 1 && l.releases(q.From[0]) {
			return l.exists(n)
		}
	}
	return nil
}

func (l *later) in(n *syntax.InQuery) syntax.Expr {
	in := &syntax.InQuery{Pos: n.Pos, Query: n.Query}
	for _, x := range n.X {
		k := l.key(x)
		if k == nil {
			return nil
		}
		in.X = append(in.X, k)
	}
	return in
}

// exists takes EXISTS over one relation, where all conditions are equalities of its columns and group keys.
func (l *later) exists(n *syntax.Exists) syntax.Expr {
	q := n.Query
	var equal []syntax.Expr
	for _, c := range algebra.Conjuncts(q.Where) {
		k, of := l.equality(c, q.From[0])
		if k == nil {
			return nil
		}
		equal = append(equal, &syntax.Binary{Pos: c.At(), Op: syntax.Eq, L: k, R: of})
	}
	return &syntax.Exists{Pos: n.Pos, Query: &syntax.Query{Pos: q.Pos, Items: q.Items, From: q.From, Where: conjunction(equal)}}
}

// equality is a condition that a group key is equal to a column of a relation.
func (l *later) equality(n syntax.Expr, r syntax.Relation) (k, of *syntax.Column) {
	eq, ok := n.(*syntax.Binary)
	if !ok || eq.Op != syntax.Eq {
		return nil, nil
	}
	for _, sides := range [][2]syntax.Expr{{eq.L, eq.R}, {eq.R, eq.L}} {
		own, ok1 := sides[0].(*syntax.Column)
		of, ok2 := sides[1].(*syntax.Column)
		if ok1 && ok2 && !l.belongs(own, r) && l.belongs(of, r) {
			if k := l.key(own); k != nil {
				return k, of
			}
		}
	}
	return nil, nil
}

// belongs reports whether a name is that of a column of a relation.
func (l *later) belongs(c *syntax.Column, r syntax.Relation) bool {
	name, q := l.queryOf(r)
	if q == nil || c.Qualifier != "" {
		return q != nil && c.Qualifier == name
	}
	return slices.ContainsFunc(q.Items, func(i syntax.Item) bool {
		_, star := i.Expr.(*syntax.Star)
		return star || itemName(i) == c.Name
	})
}

// filters reports whether a query computes its rows from those of FROM one by one, as far as WHERE lets them through.
func filters(q *syntax.Query) bool {
	return q.Where != nil && q.With == nil && q.Set == nil && q.DistinctOn == nil && q.Limit == nil && q.Offset == nil && !aggregates(q) &&
		!slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsWindow(i.Expr) })
}

// queryOf is the query that a relation of FROM is, and the relation's name; nil: it is none, or its columns have new names.
func (l *later) queryOf(r syntax.Relation) (name string, q *syntax.Query) {
	switch r := r.(type) {
	case *syntax.Subquery:
		if !r.Lateral && r.Columns == nil {
			return r.Alias, r.Query
		}
	case *syntax.Table:
		if e := l.ctes.Find(r); e != nil && e.CTE.Columns == nil {
			return cmp.Or(r.Alias, r.Name), e.CTE.Query
		}
	}
	return "", nil
}

// relation is a relation of FROM without what chooses among groups: conditions of queries of rows, and joins. Of a left join it is looked
// for on the left side alone, whose rows are all in the result.
func (l *later) relation(r syntax.Relation) syntax.Relation {
	defer steps.Visit(l.o.Steps).Leave()
	switch r := r.(type) {
	case *syntax.Subquery:
		if r.Lateral || r.Columns != nil || !filters(r.Query) {
			return r
		}
		named, q := l.named, r.Query
		l.named = func(c *syntax.Column) *syntax.Column { return shownAs(c, r) }
		where := l.rest(q.Where)
		l.named = named
		return &syntax.Subquery{Pos: r.Pos, Alias: r.Alias,
			Query: &syntax.Query{Pos: q.Pos, Items: q.Items, From: q.From, Where: where, OrderBy: q.OrderBy}}
	case *syntax.Join:
		if c := l.joined(r); c != nil {
			l.chosen = append(l.chosen, c)
			return l.relation(r.Left)
		}
		left, right := r.Left, r.Right
		if r.Kind == syntax.InnerJoin || r.Kind == syntax.CrossJoin || r.Kind == syntax.LeftJoin {
			left = l.relation(left)
		}
		if r.Kind == syntax.InnerJoin || r.Kind == syntax.CrossJoin {
			right = l.relation(right)
		}
		return &syntax.Join{Pos: r.Pos, Kind: r.Kind, Left: left, Right: right, On: r.On, Using: r.Using, Natural: r.Natural}
	default:
		return r
	}
}

// shownAs is a column inside a query of FROM under its name outside; nil: it has none.
func shownAs(c *syntax.Column, r *syntax.Subquery) *syntax.Column {
	for _, item := range r.Query.Items {
		switch x := item.Expr.(type) {
		case *syntax.Star:
			if x.Qualifier == "" || x.Qualifier == c.Qualifier {
				return &syntax.Column{Pos: c.Pos, Qualifier: r.Alias, Name: c.Name}
			}
		case *syntax.Column:
			if sameName(x, c) {
				return &syntax.Column{Pos: c.Pos, Qualifier: r.Alias, Name: itemName(item)}
			}
		}
	}
	return nil
}

// joined turns a join with released groups into a condition on groups, where each key of the released groups is equal to a group key. There
// is one row of each key, so that such a join repeats no row. It returns nil for other joins.
func (l *later) joined(j *syntax.Join) syntax.Expr {
	_, s := l.queryOf(j.Right)
	if j.Kind != syntax.InnerJoin || s == nil || s.GroupBy == nil || s.Sets != nil || !l.releases(j.Right) {
		return nil
	}
	var keys []syntax.Expr
	var items []syntax.Item
	left := slices.Clone(s.GroupBy)
	for _, c := range algebra.Conjuncts(j.On) {
		k, of := l.equality(c, j.Right)
		if k == nil || l.ambiguous(s) {
			return nil
		}
		at := slices.IndexFunc(s.Items, func(i syntax.Item) bool { return itemName(i) == of.Name })
		if at < 0 {
			return nil
		}
		left = slices.DeleteFunc(left, func(n syntax.Expr) bool { return isItem(s, n, s.Items[at]) })
		keys, items = append(keys, k), append(items, syntax.Item{Pos: of.Pos, Expr: of})
	}
	if len(left) > 0 {
		return nil
	}
	return &syntax.InQuery{Pos: j.Pos, X: keys, Query: &syntax.Query{Pos: j.Pos, Items: items, From: []syntax.Relation{j.Right}}}
}

// isItem reports whether an item of GROUP BY is one of the select list.
func isItem(q *syntax.Query, n syntax.Expr, item syntax.Item) bool {
	own := itemOf(q, n)
	if c, ok := own.(*syntax.Column); ok {
		return sameName(item.Expr, c)
	}
	return own == item.Expr
}

// ambiguous reports whether a name without its table, outside of the condition of a join, may be that of a column of the query joined.
func (l *later) ambiguous(s *syntax.Query) (found bool) {
	q := l.query
	syntax.Each(&syntax.Query{Items: q.Items, Where: q.Where, GroupBy: q.GroupBy, Having: q.Having, OrderBy: q.OrderBy}, func(n any) bool {
		if c, ok := n.(*syntax.Column); ok && c.Qualifier == "" {
			found = found || slices.ContainsFunc(s.Items, func(i syntax.Item) bool { return itemName(i) == c.Name })
		}
		return found
	})
	return found
}

// conjunction is AND of conditions; nil: there are none.
func conjunction(conditions []syntax.Expr) (e syntax.Expr) {
	for _, c := range conditions {
		if e == nil {
			e = c
		} else {
			e = &syntax.Binary{Pos: c.At(), Op: syntax.And, L: e, R: c}
		}
	}
	return e
}
