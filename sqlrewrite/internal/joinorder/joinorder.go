// Package joinorder writes the inner joins of a query in other orders.
//
// It knows which names the items of FROM have, and which equalities join them. It does not know which order is accepted: what binding
// refuses because of the order is bound again in these. The join of inner relations is commutative and associative, and conditions are
// tested where all their columns are known, so that the rows are the same in all of them.
package joinorder

import (
	"cmp"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Decides reports whether a refusal may follow from the order in which tables are joined.
func Decides(refusal error) bool {
	code := fault.CodeOf(refusal)
	return code == fault.CodeFanOut || code == fault.CodeUnitJoin
}

// Others are the query in the orders that begin with each relation of people: all joins of a query begin with their first one, then with
// their second one. They depend on the names in FROM alone, and not on the order in which it was written. Conditions that all branches of
// an OR have are conditions beside it. There is none where nothing of this changes the query.
func Others(count *steps.Count, q *syntax.Query, on *catalog.Snapshot) (others []*syntax.Query) {
	for driver, most := 0, 1; driver < min(most, mostOrders); driver++ {
		o := orderer{steps: count, on: on, driver: driver, people: make(map[*syntax.Query]bool)}
		other := syntax.Copy(q)
		o.within(other, nil)
		if most = o.drivers; o.changed {
			others = append(others, other)
		}
	}
	return others
}

// mostOrders bounds the orders in which one refused question is planned: one of 16 relations of people takes as long as ten of one order.
const mostOrders = 9

// orderer writes one order.
type orderer struct {
	steps   *steps.Count
	on      *catalog.Snapshot
	driver  int // each join begins with this one of its relations of people, counted around
	drivers int // the most that a join has of them
	changed bool
	people  map[*syntax.Query]bool // whether a query reads a table of people
}

// within orders the joins of all queries in a part of a statement.
func (o *orderer) within(part any, ctes *algebra.Environment) {
	syntax.Each(part, func(n any) bool {
		q, ok := n.(*syntax.Query)
		if !ok {
			return false
		}
		defer steps.Visit(o.steps).Leave()
		inner := ctes.With(q.With)
		*q = o.query(*q, inner)
		o.within(*q, inner)
		return true
	})
}

func (o *orderer) query(q syntax.Query, ctes *algebra.Environment) syntax.Query {
	q.Where = o.lifted(q.Where)
	listed := slices.ContainsFunc(q.Items, func(i syntax.Item) bool { // in the order of FROM
		star, ok := i.Expr.(*syntax.Star)
		return ok && star.Qualifier == ""
	})
	if len(q.From) == 0 || listed {
		return q
	}
	from := q.From[0]
	for _, next := range q.From[1:] {
		from = &syntax.Join{Pos: next.At(), Kind: syntax.CrossJoin, Left: from, Right: next}
	}
	q.From = []syntax.Relation{o.relation(from, q.Where, ctes)}
	return q
}

// relation orders the inner joins of an item of FROM, and those on the sides of its outer joins. What WHERE says is known to be true there.
func (o *orderer) relation(r syntax.Relation, where syntax.Expr, ctes *algebra.Environment) syntax.Relation {
	defer steps.Visit(o.steps).Leave()
	j, ok := r.(*syntax.Join)
	switch {
	case !ok:
		return r
	case !isInner(j):
		j.On = o.lifted(j.On)
		j.Left, j.Right = o.relation(j.Left, where, ctes), o.relation(j.Right, where, ctes)
		return j
	}
	c := cluster{orderer: o, ctes: ctes}
	if !c.collect(j, where) {
		return r
	}
	return c.joined(j, algebra.Conjuncts(where))
}

// isInner reports whether the sides of a join can be exchanged: each has its own names.
func isInner(j *syntax.Join) bool {
	return (j.Kind == syntax.InnerJoin || j.Kind == syntax.CrossJoin) && j.Using == nil && !j.Natural
}

// cluster are relations that inner joins join.
type cluster struct {
	*orderer
	ctes  *algebra.Environment
	items []*item
	given []syntax.Expr // the conditions of ON
	deep  bool          // a right side is a join itself
}

// item is one of them, with the names that it has.
type item struct {
	relation syntax.Relation
	tables   []named
	owned    bool
	place    int // as it was written
}

// named is a table or a query in FROM under its name.
type named struct {
	alias   string
	all     []string   // its columns
	visible []string   // those that analysts may name
	unique  [][]string // sets of columns that no two rows share
}

// has reports whether a column names one of an item's; visible, where it may name it.
func (i *item) has(c *syntax.Column, visible bool) bool {
	return slices.ContainsFunc(i.tables, func(t named) bool {
		if c.Qualifier != "" {
			return t.alias == c.Qualifier
		}
		if visible {
			return slices.Contains(t.visible, c.Name)
		}
		return slices.Contains(t.all, c.Name)
	})
}

// collect adds the relations below a join; false: their names are not known, or what ON names there could mean something else elsewhere.
func (c *cluster) collect(r syntax.Relation, where syntax.Expr) bool {
	defer steps.Visit(c.steps).Leave()
	j, ok := r.(*syntax.Join)
	if !ok || !isInner(j) {
		r = c.relation(r, where, c.ctes)
		i := &item{relation: r, place: len(c.items)}
		c.items = append(c.items, i)
		return c.describe(i, r, c.ctes)
	}
	if right, ok := j.Right.(*syntax.Join); ok && isInner(right) {
		c.deep = true
	}
	first := len(c.items)
	if !c.collect(j.Left, where) || !c.collect(j.Right, where) {
		return false
	}
	j.On = c.lifted(j.On)
	c.given = append(c.given, algebra.Conjuncts(j.On)...)
	for n := range columns(j.On) {
		here := slices.ContainsFunc(c.items[first:], func(i *item) bool { return i.has(n, true) })
		if !here {
			return false // of a query around
		}
	}
	return true
}

// columns are those that an expression names, in queries inside of it too.
func columns(e syntax.Expr) map[*syntax.Column]bool {
	all := make(map[*syntax.Column]bool)
	syntax.Each(e, func(n any) bool {
		if c, ok := n.(*syntax.Column); ok {
			all[c] = true
		}
		return false
	})
	return all
}

// describe finds the names of an item.
func (c *cluster) describe(i *item, r syntax.Relation, ctes *algebra.Environment) bool {
	switch r := r.(type) {
	case *syntax.Join:
		return c.describe(i, r.Left, ctes) && c.describe(i, r.Right, ctes)
	case *syntax.Subquery:
		if r.Lateral || r.Query == nil {
			return false
		}
		return c.describeQuery(i, r.Query, named{alias: r.Alias, all: r.Columns}, ctes)
	case *syntax.Table:
		alias := cmp.Or(r.Alias, r.Name)
		if e := ctes.Find(r); e != nil {
			return c.describeQuery(i, e.CTE.Query, named{alias: alias, all: e.CTE.Columns}, e.Outer)
		}
		t, ok := c.on.Named(r.Schema, r.Name)
		if !ok {
			return false
		}
		n := named{alias: alias, unique: t.Unique}
		for _, column := range t.Columns {
			n.all = append(n.all, column.Name)
			if column.Exposed || column.Name == t.Unit.Column {
				n.visible = append(n.visible, column.Name)
			}
		}
		if t.Unit.Kind == catalog.RowUnit {
			n.unique = append(slices.Clone(n.unique), []string{t.Unit.Column})
		}
		i.tables, i.owned = append(i.tables, n), i.owned || !t.Public
		return true
	default:
		return false
	}
}

// describeQuery adds the outputs of a query; false: one has no name that is known.
func (c *cluster) describeQuery(i *item, q *syntax.Query, n named, ctes *algebra.Environment) bool {
	renamed := n.all
	outputs := q
	for outputs.Set != nil {
		outputs = outputs.Set.Left
	}
	n.all = nil
	for _, out := range outputs.Items {
		name := out.Alias
		switch e := out.Expr.(type) {
		case *syntax.Column:
			name = cmp.Or(name, e.Name)
		case *syntax.Call:
			name = cmp.Or(name, e.Name)
		}
		if name == "" {
			return false
		}
		n.all = append(n.all, name)
	}
	if len(renamed) > len(n.all) {
		return false
	}
	copy(n.all, renamed)
	n.visible = n.all
	i.tables = append(i.tables, n)
	i.owned = i.owned || c.readsPeople(q, ctes)
	return true
}

// readsPeople reports whether a query reads a table of people.
func (o *orderer) readsPeople(q *syntax.Query, ctes *algebra.Environment) (owned bool) {
	if known, ok := o.people[q]; ok {
		return known
	}
	inner := ctes.With(q.With)
	syntax.Each(*q, func(n any) bool {
		if t, ok := n.(*syntax.Table); !ok {
			return owned
		} else if e := inner.Find(t); e != nil {
			owned = owned || o.readsPeople(e.CTE.Query, e.Outer)
		} else if found, known := o.on.Named(t.Schema, t.Name); known {
			owned = owned || !found.Public
		}
		return owned
	})
	o.people[q] = owned
	return owned
}

// joined joins the relations in their order, each with those before it. The first one is of people. Next come those that a unique key
// joins, then others of people that an equality joins, then public ones that an equality joins, then the rest.
func (c *cluster) joined(at *syntax.Join, where []syntax.Expr) syntax.Relation {
	slices.SortStableFunc(c.items, func(a, b *item) int { return cmp.Compare(a.tables[0].alias, b.tables[0].alias) })
	var drivers []*item
	for _, i := range c.items {
		if i.owned {
			drivers = append(drivers, i)
		}
	}
	if len(drivers) == 0 {
		return at
	}
	c.drivers = max(c.drivers, len(drivers))
	equalities := slices.Concat(c.given, where)
	order := []*item{drivers[c.driver%len(drivers)]}
	for len(order) < len(c.items) {
		var next *item
		best := 0
		for _, i := range c.items {
			if rank := rankOf(i, order, equalities); !slices.Contains(order, i) && (next == nil || rank < best) {
				next, best = i, rank
			}
		}
		order = append(order, next)
	}
	return c.written(at, order)
}

// rankOf says how early an item is joined with others.
func rankOf(i *item, others []*item, equalities []syntax.Expr) int {
	var linked []string // with the table's name
	for _, e := range equalities {
		for _, n := range sidesOf(e) {
			if n.own != nil && i.has(n.own, true) && slices.ContainsFunc(others, func(o *item) bool { return o.has(n.other, true) }) {
				linked = append(linked, n.own.Name)
			}
		}
	}
	unique := len(i.tables) == 1 && slices.ContainsFunc(i.tables[0].unique, func(key []string) bool {
		return !slices.ContainsFunc(key, func(column string) bool { return !slices.Contains(linked, column) })
	})
	switch {
	case unique:
		return 0
	case len(linked) == 0:
		return 3
	case i.owned:
		return 1
	default:
		return 2
	}
}

// equal are two columns that a condition equates.
type equal struct{ own, other *syntax.Column }

// sidesOf are the columns of an equality, either one first.
func sidesOf(e syntax.Expr) []equal {
	if b, ok := e.(*syntax.Binary); ok && b.Op == syntax.Eq {
		l, okL := b.L.(*syntax.Column)
		r, okR := b.R.(*syntax.Column)
		if okL && okR {
			return []equal{{l, r}, {r, l}}
		}
	}
	return nil
}

// written joins relations in an order. A condition of ON stands at the first join that has all its columns.
func (c *cluster) written(at *syntax.Join, order []*item) syntax.Relation {
	for i, item := range order {
		c.changed = c.changed || c.deep || item.place != i
	}
	left, given := order[0].relation, c.given
	for i, item := range order[1:] {
		j := &syntax.Join{Pos: at.Pos, Kind: syntax.CrossJoin, Left: left, Right: item.relation}
		var later []syntax.Expr
		for _, e := range given {
			if i+2 < len(order) && needs(e, order[i+2:]) {
				later = append(later, e)
				continue
			}
			j.Kind, j.On = syntax.InnerJoin, both(j.On, e)
		}
		given = later
		left = j
	}
	return left
}

// needs reports whether a condition names a column of one of these.
func needs(e syntax.Expr, items []*item) bool {
	for n := range columns(e) {
		if slices.ContainsFunc(items, func(i *item) bool { return i.has(n, false) }) {
			return true
		}
	}
	return false
}

// both is a condition with another one; nil is none.
func both(l, r syntax.Expr) syntax.Expr {
	if l == nil {
		return r
	}
	return &syntax.Binary{Pos: r.At(), Op: syntax.And, L: l, R: r}
}
