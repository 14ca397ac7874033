package bind

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// KindOf is what the rows of a query are: those that its FROM reads, unless it releases them. A query in an expression is no row of it:
// whether one releases, binding finds out.
func KindOf(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) algebra.RowKind {
	defer steps.Visit(o.Steps).Leave()
	if q == nil {
		return algebra.PublicRows
	}
	kind, known := o.Kinds[q]
	if known {
		return kind
	}
	if inner := env.With(q.With); q.Set != nil {
		kind = max(KindOf(o, q.Set.Left, inner), KindOf(o, q.Set.Right, inner))
	} else {
		for _, r := range q.From {
			kind = max(kind, itemKind(o, r, inner))
		}
		if kind == algebra.OwnedRows && aggregates(q) && releases(sourceOf(o, q, env)) {
			kind = algebra.ReleasedRows
		}
	}
	o.Kinds[q] = kind
	return kind
}

func itemKind(o *algebra.Opened, r syntax.Relation, env *algebra.Environment) algebra.RowKind {
	defer steps.Visit(o.Steps).Leave()
	switch r := r.(type) {
	case *syntax.Table:
		if e := env.Find(r); e != nil {
			return KindOf(o, e.CTE.Query, e.Outer)
		}
		if t, ok := o.Snapshot.Named(r.Schema, r.Name); ok && t.Public {
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

// isBlock reports whether a query is what releases, not one over released rows.
func isBlock(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) bool {
	return KindOf(o, q, env) == algebra.ReleasedRows && o.Sources[q] != nil
}

// sourceOf binds FROM of a query over private rows, once.
func sourceOf(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) *algebra.Source {
	if o.Sources[q] == nil {
		b := newBinder(o, q, env)
		_, err := fromList(b)
		o.Sources[q] = &algebra.Source{Binder: b, Refused: err}
	}
	return o.Sources[q]
}

// aggregates reports whether a query makes one row of several.
func aggregates(q *syntax.Query) bool {
	return q.Distinct || q.Groups() || q.Having != nil || callsAggregates(q)
}

func callsAggregates(q *syntax.Query) bool {
	return slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) ||
		slices.ContainsFunc(q.OrderBy, func(i syntax.OrderItem) bool { return callsAggregate(i.Expr) })
}

// releases reports whether a query that aggregates private rows does so across privacy units: no key of its groups tells one, and where
// DISTINCT alone makes groups, no output is the id of one or such a key. A key that may be released is none that tells one. What was
// refused is taken for a release: it is refused as one.
func releases(s *algebra.Source) bool {
	if s.Refused != nil {
		return true
	}
	b, q := s.Binder, s.Query
	if q.Sets != nil {
		return true
	}
	field := func(n syntax.Expr) *algebra.Field {
		if c, ok := n.(*syntax.Column); ok {
			if f, err := column(b, c); err == nil {
				return f
			}
		}
		return nil
	}
	unit := func(n syntax.Expr) bool {
		f := field(n)
		return f != nil && f.Unit
	}
	shown := func(item syntax.Item) bool {
		star, ok := item.Expr.(*syntax.Star)
		if !ok {
			return unit(item.Expr)
		}
		fields, err := starFields(b, b.Bound.Source, star)
		return err == nil && slices.ContainsFunc(fields, func(f *algebra.Field) bool { return f.Unit })
	}
	if !q.Groups() && q.Having == nil && !callsAggregates(q) {
		return !slices.ContainsFunc(q.Items, shown) && !dividesByKey(b, b.Bound.Source)
	}
	return !slices.ContainsFunc(q.GroupBy, func(n syntax.Expr) bool {
		item, err := groupItem(b, n)
		if err != nil {
			return false
		}
		f := field(item)
		return f != nil && (f.Unit || tells(b.Bound.Source, f) && !f.PrivateKeys)
	})
}
