package sqlrewrite

import (
	"slices"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// rowKind is what the rows of a query are. It is found before anything is bound and decides only who binds a query; whoever does
// checks every table again.
type rowKind int

const (
	publicRows   rowKind = iota // of public tables alone
	releasedRows                // released values, perhaps with public rows beside them
	ownedRows                   // each belongs to a privacy unit
)

// environment are the CTEs that a query can name, the nearest first.
type environment struct {
	cte   *syntax.CTE
	outer *environment // what the CTE's own query can name
}

// with adds a query's own CTEs.
func (e *environment) with(ctes []syntax.CTE) *environment {
	for i := range ctes {
		e = &environment{cte: &ctes[i], outer: e}
	}
	return e
}

// find is the CTE that a table's name means; nil for none.
func (e *environment) find(t *syntax.Table) *environment {
	for ; e != nil && t.Schema == ""; e = e.outer {
		if e.cte.Name == t.Name {
			return e
		}
	}
	return nil
}

// list is every CTE of the environment that a name can still mean, the outermost first.
func (e *environment) list() []syntax.CTE {
	var all []syntax.CTE
	for ; e != nil; e = e.outer {
		if !slices.ContainsFunc(all, func(c syntax.CTE) bool { return c.Name == e.cte.Name }) {
			all = append(all, *e.cte)
		}
	}
	slices.Reverse(all)
	return all
}

// kindOf is what the rows of a query's result are.
func (o *opened) kindOf(q *syntax.Query, env *environment) rowKind {
	if q == nil {
		return publicRows
	}
	if kind, known := o.kinds[q]; known {
		return kind
	}
	kind := o.fromKind(q, env)
	if kind == ownedRows && q.Set == nil && o.isBlock(q, env) {
		kind = releasedRows
	}
	o.kinds[q] = kind
	return kind
}

// fromKind is what the rows are that a query reads.
func (o *opened) fromKind(q *syntax.Query, env *environment) rowKind {
	env = env.with(q.With)
	if q.Set != nil {
		return max(o.kindOf(q.Set.Left, env), o.kindOf(q.Set.Right, env))
	}
	kind := publicRows
	for _, r := range q.From {
		kind = max(kind, o.itemKind(r, env))
	}
	if kind == publicRows && o.readsReleased(q, env) {
		kind = releasedRows
	}
	return kind
}

// readsReleased reports whether a query inside an expression of q is not over public tables alone.
func (o *opened) readsReleased(q *syntax.Query, env *environment) bool {
	return slices.ContainsFunc(expressionsOf(q), func(n syntax.Expr) bool { return o.holdsReleased(n, env) })
}

func (o *opened) holdsReleased(n syntax.Expr, env *environment) bool {
	var inner *syntax.Query
	switch n := n.(type) {
	case *syntax.Scalar:
		inner = n.Query
	case *syntax.Exists:
		inner = n.Query
	case *syntax.InQuery:
		inner = n.Query
	}
	return inner != nil && o.kindOf(inner, env) != publicRows ||
		slices.ContainsFunc(operands(n), func(n syntax.Expr) bool { return o.holdsReleased(n, env) })
}

// expressionsOf are the expressions of a query, those of its joins among them.
func expressionsOf(q *syntax.Query) []syntax.Expr {
	all := append(append([]syntax.Expr{q.Where, q.Having}, q.GroupBy...), q.DistinctOn...)
	for _, item := range q.Items {
		all = append(all, item.Expr)
	}
	for _, item := range q.OrderBy {
		all = append(all, item.Expr)
	}
	for _, w := range q.Windows {
		all = append(all, windowExpressions(w.Window)...)
	}
	var walk func(syntax.Relation)
	walk = func(r syntax.Relation) {
		if j, ok := r.(*syntax.Join); ok {
			all = append(all, j.On)
			walk(j.Left)
			walk(j.Right)
		}
	}
	for _, r := range q.From {
		walk(r)
	}
	return slices.DeleteFunc(all, func(e syntax.Expr) bool { return e == nil })
}

func windowExpressions(w *syntax.Window) []syntax.Expr {
	all := slices.Clone(w.PartitionBy)
	for _, o := range w.OrderBy {
		all = append(all, o.Expr)
	}
	return all
}

func (o *opened) itemKind(r syntax.Relation, env *environment) rowKind {
	switch r := r.(type) {
	case *syntax.Table:
		if e := env.find(r); e != nil {
			return o.kindOf(e.cte.Query, e.outer)
		}
		if t, ok := o.snapshot.Table(r.Schema, r.Name); ok && t.Public {
			return publicRows
		}
		return ownedRows
	case *syntax.Subquery:
		return o.kindOf(r.Query, env)
	case *syntax.Join:
		return max(o.itemKind(r.Left, env), o.itemKind(r.Right, env))
	default:
		return ownedRows
	}
}

// isBlock reports whether a query over private rows releases: it aggregates, and not per privacy unit.
func (o *opened) isBlock(q *syntax.Query, env *environment) bool {
	if q.Set != nil || o.fromKind(q, env) != ownedRows {
		return false
	}
	aggregates := q.Distinct && !o.showsUnit(q, env) || q.GroupBy != nil || q.Having != nil
	for _, item := range q.Items {
		aggregates = aggregates || callsAggregate(item.Expr)
	}
	for _, item := range q.OrderBy {
		aggregates = aggregates || callsAggregate(item.Expr)
	}
	return aggregates && !o.groupsByUnit(q, env)
}

// groupsByUnit reports whether a key of GROUP BY is the id of a privacy unit.
func (o *opened) groupsByUnit(q *syntax.Query, env *environment) bool {
	units := o.unitNames(q.From, env.with(q.With))
	return slices.ContainsFunc(q.GroupBy, func(n syntax.Expr) bool {
		c, ok := aliased(q, n).(*syntax.Column)
		return ok && slices.ContainsFunc(units, func(u syntax.Column) bool {
			return u.Name == c.Name && (c.Qualifier == "" || c.Qualifier == u.Qualifier)
		})
	})
}

// showsUnit reports whether the select list holds the id of a privacy unit as it is: then DISTINCT compares rows of one unit only.
func (o *opened) showsUnit(q *syntax.Query, env *environment) bool {
	units := o.unitNames(q.From, env.with(q.With))
	return slices.ContainsFunc(q.Items, func(item syntax.Item) bool {
		if star, ok := item.Expr.(*syntax.Star); ok {
			return slices.ContainsFunc(units, func(u syntax.Column) bool { return star.Qualifier == "" || star.Qualifier == u.Qualifier })
		}
		c, ok := item.Expr.(*syntax.Column)
		return ok && slices.ContainsFunc(units, func(u syntax.Column) bool {
			return u.Name == c.Name && (c.Qualifier == "" || c.Qualifier == u.Qualifier)
		})
	})
}

// aliased is the item of the select list that an item of GROUP BY or ORDER BY means by its position or its alias, or the item itself.
func aliased(q *syntax.Query, n syntax.Expr) syntax.Expr {
	switch n := n.(type) {
	case *syntax.Literal:
		if i, err := strconv.Atoi(n.Text); n.Kind == syntax.IntegerLiteral && err == nil && i >= 1 && i <= len(q.Items) {
			return q.Items[i-1].Expr
		}
	case *syntax.Column:
		for _, item := range q.Items {
			if n.Qualifier == "" && item.Alias == n.Name {
				return item.Expr
			}
		}
	}
	return n
}

// unitNames are the columns of FROM that hold the id of a privacy unit, each with the name of its relation.
func (o *opened) unitNames(from []syntax.Relation, env *environment) []syntax.Column {
	var all []syntax.Column
	for _, r := range from {
		all = append(all, o.unitsOf(r, env)...)
	}
	return all
}

func (o *opened) unitsOf(r syntax.Relation, env *environment) []syntax.Column {
	switch r := r.(type) {
	case *syntax.Table:
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		if e := env.find(r); e != nil {
			return o.unitOutputs(alias, e.cte.Columns, e.cte.Query, e.outer)
		}
		t, ok := o.snapshot.Table(r.Schema, r.Name)
		if !ok || t.Unit.Kind != catalog.RowUnit && t.Unit.Kind != catalog.ColumnUnit {
			return nil
		}
		return []syntax.Column{{Qualifier: alias, Name: t.Unit.Column}}
	case *syntax.Subquery:
		return o.unitOutputs(r.Alias, r.Columns, r.Query, env)
	case *syntax.Join:
		return append(o.unitsOf(r.Left, env), o.unitsOf(r.Right, env)...)
	default:
		return nil
	}
}

// unitOutputs are the outputs of a query that are the id of a privacy unit.
func (o *opened) unitOutputs(alias string, renamed []string, q *syntax.Query, env *environment) []syntax.Column {
	if q == nil || o.kindOf(q, env) != ownedRows {
		return nil
	}
	env = env.with(q.With)
	if q.Set != nil {
		return o.unitOutputs(alias, renamed, q.Set.Left, env)
	}
	inner := o.unitNames(q.From, env)
	var all []syntax.Column
	add := func(name string) {
		if c := (syntax.Column{Qualifier: alias, Name: name}); !slices.Contains(all, c) { // * beside * names one twice
			all = append(all, c)
		}
	}
	for i, item := range q.Items {
		switch n := item.Expr.(type) {
		case *syntax.Star:
			for _, u := range inner {
				add(u.Name)
			}
		case *syntax.Column:
			if !slices.ContainsFunc(inner, func(u syntax.Column) bool { return u.Name == n.Name }) {
				continue
			}
			name := n.Name
			if item.Alias != "" {
				name = item.Alias
			}
			if i < len(renamed) {
				name = renamed[i]
			}
			add(name)
		}
	}
	return all
}

// callsAggregate reports whether an expression holds an aggregate that is not a window function's. Queries inside it are their own.
func callsAggregate(n syntax.Expr) bool {
	if c, ok := n.(*syntax.Call); ok && c.Over == nil {
		if _, exact := exactAggregates[c.Name]; exact || c.Star || c.Distinct || len(c.Within) > 0 {
			return true
		}
		for _, f := range functions() {
			if f.name == c.Name && (f.kind == aggregate || f.kind == refusedAggregate) {
				return true
			}
		}
	}
	return slices.ContainsFunc(operands(n), callsAggregate)
}

// operands are the direct parts of an expression as it was written, queries inside it apart.
func operands(n syntax.Expr) []syntax.Expr {
	var all []syntax.Expr
	switch n := n.(type) {
	case *syntax.Unary:
		all = append(all, n.X)
	case *syntax.Binary:
		all = append(all, n.L, n.R)
	case *syntax.In:
		all = append(append(all, n.X), n.List...)
	case *syntax.InQuery:
		all = append(all, n.X...)
	case *syntax.Array:
		all = append(all, n.Items...)
	case *syntax.Between:
		all = append(all, n.X, n.Lo, n.Hi)
	case *syntax.Is:
		all = append(all, n.X)
	case *syntax.IsDistinct:
		all = append(all, n.L, n.R)
	case *syntax.Like:
		all = append(all, n.X, n.Pattern)
	case *syntax.Case:
		all = append(all, n.Operand, n.Else)
		for _, w := range n.Whens {
			all = append(all, w.Cond, w.Result)
		}
	case *syntax.Cast:
		all = append(all, n.X)
	case *syntax.Call:
		all = append(append(all, n.Args...), n.Filter)
		for _, o := range append(append([]syntax.OrderItem(nil), n.OrderBy...), n.Within...) {
			all = append(all, o.Expr)
		}
		if n.Over != nil {
			all = append(all, windowExpressions(n.Over)...)
		}
	}
	return slices.DeleteFunc(all, func(e syntax.Expr) bool { return e == nil })
}

// holdsQuery reports whether an expression is a query inside an expression.
func holdsQuery(n syntax.Expr) bool {
	switch n.(type) {
	case *syntax.Scalar, *syntax.Exists, *syntax.InQuery:
		return true
	default:
		return false
	}
}
