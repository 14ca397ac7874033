package neighbours

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/syntax"
)

// algebraMutants each lack one defence of a bound query or of its contribution bounds. The plan's claims are those of before; its
// statements are printed again, and not proven. What only a printed form defends (clamps, NULLIF, hashes, casts) is left out in its text:
// see [Mutants].
func algebraMutants() map[string]func(*plan.Plan) {
	on := func(name string) func(l, r algebra.FromItem) algebra.Expr {
		return func(l, r algebra.FromItem) algebra.Expr { return equal(fieldIn(l, name), fieldIn(r, name)) }
	}
	always := func(l, r algebra.FromItem) algebra.Expr { return algebra.Constant{T: catalog.Bool, Text: "true"} }
	named := func(name string) func(*algebra.Joined) bool {
		return func(j *algebra.Joined) bool {
			return slices.ContainsFunc(algebra.BoundConjuncts(j.On), func(e algebra.Expr) bool {
				b, ok := e.(algebra.Binary)
				return ok && algebra.PlainField(b.L) != nil && algebra.PlainField(b.L).Name == name
			})
		}
	}
	return map[string]func(*plan.Plan){
		"no cap on rows":   func(p *plan.Plan) { p.Bounding.MaxRows *= 1_000_000 },
		"no cap on groups": func(p *plan.Plan) { p.Bounding.MaxGroups *= 1000 },
		"self-join not on the unit": rejoined(func(j *algebra.Joined) bool {
			return j.Meets != nil && j.Kind == syntax.InnerJoin && readsTable(j.Left, "events") && readsTable(j.Right, "events")
		}, always),
		"child joined to another parent": rejoined(func(j *algebra.Joined) bool {
			return j.Meets != nil && j.Kind == syntax.InnerJoin && named("unit")(j)
		},
			func(l, r algebra.FromItem) algebra.Expr {
				return compare(syntax.Ge, fieldIn(r, "nn"), fieldIn(l, "nn"))
			}),
		"left join without the unit": rejoined(func(j *algebra.Joined) bool { return j.Kind == syntax.LeftJoin && j.Meets != nil }, on("k_num")),
		"path along another column":  rejoined(func(j *algebra.Joined) bool { return j.Meets == nil && !j.Semi }, on("k_num")),
		"siblings of other parents":  rejoined(func(j *algebra.Joined) bool { return j.Meets != nil && named("order_id")(j) }, on("k_num")),
		"one unit's statistics beside another's rows": rejoined(func(j *algebra.Joined) bool { return j.Meets != nil && grouped(j.Right) != nil },
			func(_, r algebra.FromItem) algebra.Expr {
				unit := grouped(r)
				return algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: unit}, R: algebra.Constant{T: unit.Type, Text: "1"}, T: catalog.Bool}
			}),
		"EXISTS not correlated on the unit": conditioned(unlinked),
		"IN over the rows of all units":     conditioned(inAll),
		"statistics per key taken for statistics per unit": func(p *plan.Plan) {
			eachQuery(p, func(d *algebra.Derived, q *algebra.Query) {
				if f := fieldIn(q.From, "n4"); len(q.Keys) > 0 && f != nil {
					q.Keys = append(q.Keys, algebra.Column{Of: f})
				}
			})
		},
		"one side of the union not owned": func(p *plan.Plan) {
			eachQuery(p, func(d *algebra.Derived, q *algebra.Query) {
				if len(d.Parts) < 2 || q != d.Parts[1] {
					return
				}
				for i, f := range d.Fields {
					if f.Unit {
						q.Outputs[i].Expr = algebra.Constant{T: f.Type, Text: "1"}
					}
				}
			})
		},
		"windows over all units": func(p *plan.Plan) {
			eachQuery(p, func(_ *algebra.Derived, q *algebra.Query) {
				for _, e := range q.Results() {
					if a, ok := e.(algebra.Aggregate); ok && a.Over != nil {
						a.Over.Owner = nil
					}
				}
			})
		},
	}
}

// rejoined joins what is such a join on another condition, where there is one.
func rejoined(is func(*algebra.Joined) bool, on func(l, r algebra.FromItem) algebra.Expr) func(*plan.Plan) {
	return func(p *plan.Plan) {
		eachItem(p.Query.Source.Node, func(n algebra.FromItem) {
			if j, ok := n.(*algebra.Joined); ok && j.On != nil && is(j) {
				if e := on(j.Left, j.Right); e != nil {
					j.On = e
				}
			}
		})
	}
}

// eachItem calls f with an item of FROM and all in it.
func eachItem(n algebra.FromItem, f func(algebra.FromItem)) {
	if n == nil {
		return
	}
	f(n)
	switch n := n.(type) {
	case *algebra.Joined:
		eachItem(n.Left, f)
		eachItem(n.Right, f)
	case *algebra.RowCap:
		eachItem(n.Of, f)
	case *algebra.Derived:
		for _, q := range n.Parts {
			eachItem(q.From, f)
		}
	}
}

// eachQuery calls f with each query in FROM and the item that it is a part of.
func eachQuery(p *plan.Plan, f func(*algebra.Derived, *algebra.Query)) {
	eachItem(p.Query.Source.Node, func(n algebra.FromItem) {
		if d, ok := n.(*algebra.Derived); ok {
			for _, q := range d.Parts {
				if q.From != nil {
					f(d, q)
				}
			}
		}
	})
}

// grouped is the unit's column of an item that is a query with rows for each unit, or several of them; nil: it is none.
func grouped(n algebra.FromItem) *algebra.Field {
	if c, ok := n.(*algebra.RowCap); ok {
		return grouped(c.Of)
	}
	d, ok := n.(*algebra.Derived)
	if !ok || len(d.Parts[0].Keys) == 0 && grouped(d.Parts[0].From) == nil {
		return nil
	}
	if i := slices.IndexFunc(d.Fields, func(f *algebra.Field) bool { return f.Unit }); i >= 0 {
		return d.Fields[i]
	}
	return nil
}

// conditioned changes the conditions of a query.
func conditioned(change func(algebra.Expr) algebra.Expr) func(*plan.Plan) {
	return func(p *plan.Plan) {
		q := p.Query
		q.Where = change(q.Where)
		for i := range q.Statistics {
			m := &q.Statistics[i]
			m.Filter, m.X = change(m.Filter), change(m.X)
		}
	}
}

// inAll puts another column in place of the unit's in the rows of IN.
func inAll(e algebra.Expr) algebra.Expr {
	if e == nil {
		return nil
	}
	if x, ok := e.(algebra.InRows); ok {
		eachItem(x.From, func(n algebra.FromItem) {
			d, ok := n.(*algebra.Derived)
			if !ok {
				return
			}
			for _, q := range d.Parts {
				for i, f := range d.Fields {
					if other := fieldIn(q.From, "nn"); f.Unit && other != nil {
						q.Outputs[i].Expr = algebra.Column{Of: other}
					}
				}
			}
		})
	}
	return algebra.Map(e, inAll)
}

// unlinked takes the equalities with the rows around out of EXISTS.
func unlinked(e algebra.Expr) algebra.Expr {
	x, ok := e.(algebra.Exists)
	if !ok {
		if e == nil {
			return nil
		}
		return algebra.Map(e, unlinked)
	}
	x.Where = algebra.All(slices.DeleteFunc(algebra.BoundConjuncts(x.Where), func(c algebra.Expr) bool {
		_, _, linked := algebra.IsEquality(c, x.From)
		return linked
	}))
	return x
}

// fieldIn is a column of an item by its name; nil for none.
func fieldIn(n algebra.FromItem, name string) *algebra.Field {
	for _, l := range algebra.LeavesIn(n) {
		for _, f := range l.Fields {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

func equal(l, r *algebra.Field) algebra.Expr { return compare(syntax.Eq, l, r) }

// compare is l op r; nil where one of them is missing.
func compare(op syntax.Operator, l, r *algebra.Field) algebra.Expr {
	if l == nil || r == nil {
		return nil
	}
	return algebra.Binary{Op: op, L: algebra.Column{Of: l}, R: algebra.Column{Of: r}, T: catalog.Bool}
}

func readsTable(n algebra.FromItem, name string) bool {
	found := false
	eachItem(n, func(n algebra.FromItem) {
		s, ok := n.(*algebra.Scan)
		found = found || ok && s.Table.Name == name
	})
	return found
}
