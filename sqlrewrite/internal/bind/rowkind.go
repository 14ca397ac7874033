package bind

import (
	"slices"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/syntax"
)

// KindOf is what the rows of a query's result are.
func KindOf(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) algebra.RowKind {
	if q == nil {
		return algebra.PublicRows
	}
	if kind, known := o.Kinds[q]; known {
		return kind
	}
	kind := fromKind(o, q, env)
	if kind == algebra.OwnedRows && q.Set == nil && isBlock(o, q, env) {
		kind = algebra.ReleasedRows
	}
	o.Kinds[q] = kind
	return kind
}

// fromKind is what the rows are that a query reads.
func fromKind(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) algebra.RowKind {
	env = env.With(q.With)
	if q.Set != nil {
		return max(KindOf(o, q.Set.Left, env), KindOf(o, q.Set.Right, env))
	}
	kind := algebra.PublicRows
	for _, r := range q.From {
		kind = max(kind, itemKind(o, r, env))
	}
	if kind == algebra.PublicRows && readsReleased(o, q, env) {
		kind = algebra.ReleasedRows
	}
	return kind
}

// readsReleased reports whether a query inside an expression of q is not over public tables alone.
func readsReleased(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) bool {
	return slices.ContainsFunc(expressionsOf(q), func(n syntax.Expr) bool { return holdsReleased(o, n, env) })
}

func holdsReleased(o *algebra.Opened, n syntax.Expr, env *algebra.Environment) bool {
	var inner *syntax.Query
	switch n := n.(type) {
	case *syntax.Scalar:
		inner = n.Query
	case *syntax.Exists:
		inner = n.Query
	case *syntax.InQuery:
		inner = n.Query
	}
	return inner != nil && KindOf(o, inner, env) != algebra.PublicRows ||
		slices.ContainsFunc(operands(n), func(n syntax.Expr) bool { return holdsReleased(o, n, env) })
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

func itemKind(o *algebra.Opened, r syntax.Relation, env *algebra.Environment) algebra.RowKind {
	switch r := r.(type) {
	case *syntax.Table:
		if e := env.Find(r); e != nil {
			return KindOf(o, e.CTE.Query, e.Outer)
		}
		if t, ok := o.Snapshot.Table(r.Schema, r.Name); ok && t.Public {
			return algebra.PublicRows
		}
		return algebra.OwnedRows
	case *syntax.Subquery:
		return KindOf(o, r.Query, env)
	case *syntax.Join:
		return max(itemKind(o, r.Left, env), itemKind(o, r.Right, env))
	default:
		return algebra.OwnedRows
	}
}

// isBlock reports whether a query over private rows releases: it aggregates, and not per privacy unit.
func isBlock(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) bool {
	if q.Set != nil || fromKind(o, q, env) != algebra.OwnedRows {
		return false
	}
	aggregates := q.Distinct && !showsUnit(o, q, env) || q.GroupBy != nil || q.Having != nil
	for _, item := range q.Items {
		aggregates = aggregates || callsAggregate(item.Expr)
	}
	for _, item := range q.OrderBy {
		aggregates = aggregates || callsAggregate(item.Expr)
	}
	return aggregates && !groupsByUnit(o, q, env)
}

// groupsByUnit reports whether a key of GROUP BY is the id of a privacy unit.
func groupsByUnit(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) bool {
	units := unitNames(o, q.From, env.With(q.With))
	return slices.ContainsFunc(q.GroupBy, func(n syntax.Expr) bool {
		c, ok := aliased(q, n).(*syntax.Column)
		return ok && slices.ContainsFunc(units, func(u syntax.Column) bool {
			return u.Name == c.Name && (c.Qualifier == "" || c.Qualifier == u.Qualifier)
		})
	})
}

// showsUnit reports whether the select list holds the id of a privacy unit as it is: then DISTINCT compares rows of one unit only.
func showsUnit(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) bool {
	units := unitNames(o, q.From, env.With(q.With))
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
func unitNames(o *algebra.Opened, from []syntax.Relation, env *algebra.Environment) []syntax.Column {
	var all []syntax.Column
	for _, r := range from {
		all = append(all, unitsOf(o, r, env)...)
	}
	return all
}

func unitsOf(o *algebra.Opened, r syntax.Relation, env *algebra.Environment) []syntax.Column {
	switch r := r.(type) {
	case *syntax.Table:
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		if e := env.Find(r); e != nil {
			return unitOutputs(o, alias, e.CTE.Columns, e.CTE.Query, e.Outer)
		}
		t, ok := o.Snapshot.Table(r.Schema, r.Name)
		if !ok || t.Unit.Kind != catalog.RowUnit && t.Unit.Kind != catalog.ColumnUnit {
			return nil
		}
		return []syntax.Column{{Qualifier: alias, Name: t.Unit.Column}}
	case *syntax.Subquery:
		return unitOutputs(o, r.Alias, r.Columns, r.Query, env)
	case *syntax.Join:
		return append(unitsOf(o, r.Left, env), unitsOf(o, r.Right, env)...)
	default:
		return nil
	}
}

// unitOutputs are the outputs of a query that are the id of a privacy unit.
func unitOutputs(o *algebra.Opened, alias string, renamed []string, q *syntax.Query, env *algebra.Environment) []syntax.Column {
	if q == nil || KindOf(o, q, env) != algebra.OwnedRows {
		return nil
	}
	env = env.With(q.With)
	if q.Set != nil {
		return unitOutputs(o, alias, renamed, q.Set.Left, env)
	}
	inner := unitNames(o, q.From, env)
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
		f := domain.BuiltinOf(c.Name)
		if f.IsAggregate() || c.Star || c.Distinct || len(c.Within) > 0 {
			return true
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
