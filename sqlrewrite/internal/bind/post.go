package bind

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// ReleasesOf lists the releases that an expression is computed from, each once.
func ReleasesOf(q *algebra.BoundQuery, e algebra.Expr) map[int]bool {
	used := make(map[int]bool)
	for _, leaf := range LeavesOf(e) {
		if v, ok := leaf.(algebra.ValueRef); ok {
			for _, release := range q.Values[v.Index].Of {
				used[release] = true
			}
		}
	}
	return used
}

// LeavesOf lists the keys and values that an expression refers to.
func LeavesOf(e algebra.Expr) []algebra.Expr {
	switch e.(type) {
	case algebra.KeyRef, algebra.ValueRef, algebra.Column:
		return []algebra.Expr{e}
	}
	var all []algebra.Expr
	for _, child := range algebra.Children(e) {
		all = append(all, LeavesOf(child)...)
	}
	return all
}

// Bind settles names, types and policy. A query over released values becomes post-processing queries around the
// one block that releases them.
func Bind(text string, query *syntax.Query, snapshot *catalog.Snapshot) (*algebra.BoundQuery, error) {
	o := algebra.NewOpened(text, snapshot)
	switch kind := KindOf(o, query, nil); {
	case kind == algebra.OwnedRows && query.Set != nil:
		return nil, fault.Unsupported(scalar.Position(text, query.Set.Pos), "a set operation over private rows that is not aggregated",
			"aggregate each side, or write SELECT count(*) FROM (... UNION ALL ...) t")
	case kind == algebra.OwnedRows, kind == algebra.ReleasedRows && isBlock(o, query, nil) && !reshaped(query):
		return BindBlock(text, query, snapshot)
	case kind == algebra.PublicRows:
		return nil, RefusePublic(o, query)
	}
	l, err := PostOf(o, query, nil, nil)
	if err != nil {
		return nil, err
	}
	q := o.Block
	if q == nil {
		return nil, RefusePublic(o, query)
	}
	q.Post, q.Inner, q.Scans = l, q.Outputs, o.Scans
	q.Outputs = make([]algebra.Output, len(l.Outputs))
	for i, out := range l.Outputs {
		q.Outputs[i] = algebra.Output{Name: out.Name, Expr: l.Origins[i]}
	}
	return q, nil
}

// RefusePublic is for callers that answer only what is released.
func RefusePublic(o *algebra.Opened, q *syntax.Query) error {
	return fault.Unsupported(scalar.Position(o.Text, q.Pos), "a query that reads no private rows in this place", "ask it without a price: it is free")
}

// maxOrigins caps the sizes of a query's outputs once each is written out over what is released: x + x of x + x of x + x ... doubles with
// every level, and so does a text that it would make (A44).
const maxOrigins = 10_000

// substituted sets the origins of a post-processing query's outputs.
func substituted(o *algebra.Opened, l *algebra.Query, at fault.Position) error {
	total := 0
	for _, out := range l.Outputs {
		size := sizeOf(o, out.Expr)
		if total += size; total > maxOrigins {
			return fault.TooComplex(at, "the outputs are computed from too many others")
		}
		l.Sizes, l.Origins = append(l.Sizes, size), append(l.Origins, substitute(o, out.Expr))
	}
	return nil
}

// sizeOf is the size of an expression whose columns of other queries are replaced by what they stem from. Long constants count as several.
func sizeOf(o *algebra.Opened, e algebra.Expr) int {
	switch e := e.(type) {
	case algebra.Column:
		return max(1, o.Sizes[e.Of])
	case algebra.Constant:
		return 1 + len(e.Text)/100
	}
	size := 1
	for _, child := range algebra.Children(e) {
		if size += sizeOf(o, child); size > maxOrigins {
			break
		}
	}
	return size
}

// substitute replaces the columns of other post-processing queries by what they stem from.
func substitute(o *algebra.Opened, e algebra.Expr) algebra.Expr {
	all := func(list []algebra.Expr) []algebra.Expr {
		out := make([]algebra.Expr, len(list))
		for i, x := range list {
			out[i] = substitute(o, x)
		}
		return out
	}
	switch e := e.(type) {
	case algebra.Column:
		if origin, ok := o.Origins[e.Of]; ok {
			return origin
		}
		return e
	case algebra.Negate:
		return algebra.Negate{X: substitute(o, e.X), T: e.T}
	case algebra.Not:
		return algebra.Not{X: substitute(o, e.X)}
	case algebra.Binary:
		return algebra.Binary{Op: e.Op, L: substitute(o, e.L), R: substitute(o, e.R), T: e.T}
	case algebra.In:
		return algebra.In{X: substitute(o, e.X), List: all(e.List), Not: e.Not}
	case algebra.Is:
		return algebra.Is{X: substitute(o, e.X), What: e.What, Not: e.Not}
	case algebra.Distinct:
		return algebra.Distinct{L: substitute(o, e.L), R: substitute(o, e.R), Not: e.Not}
	case algebra.Like:
		out := e
		out.X = substitute(o, e.X)
		return out
	case algebra.Choice:
		out := algebra.Choice{T: e.T}
		for _, a := range e.Arms {
			out.Arms = append(out.Arms, algebra.Arm{Cond: substitute(o, a.Cond), Result: substitute(o, a.Result)})
		}
		if e.Otherwise != nil {
			out.Otherwise = substitute(o, e.Otherwise)
		}
		return out
	case algebra.Cast:
		return algebra.Cast{X: substitute(o, e.X), T: e.T, Mods: e.Mods}
	case algebra.Call:
		return algebra.Call{Name: e.Name, Args: all(e.Args), T: e.T}
	case algebra.Aggregate:
		e.Args, e.Order, e.Within = all(e.Args), substituteOrder(o, e.Order), substituteOrder(o, e.Within)
		if e.Filter != nil {
			e.Filter = substitute(o, e.Filter)
		}
		if e.Over != nil {
			over := *e.Over
			over.Partition, over.Order = all(over.Partition), substituteOrder(o, over.Order)
			e.Over = &over
		}
		return e
	default:
		return e
	}
}

func substituteOrder(o *algebra.Opened, list []algebra.Ordering) []algebra.Ordering {
	out := make([]algebra.Ordering, len(list))
	for i, x := range list {
		out[i] = algebra.Ordering{Expr: substitute(o, x.Expr), Descending: x.Descending, NullsFirst: x.NullsFirst}
	}
	return out
}
