package bind

import (
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// ReleasesOf lists the releases that an expression is computed from, each once.
func ReleasesOf(q *algebra.BoundQuery, e algebra.Expr) map[int]bool {
	used := make(map[int]bool)
	for _, leaf := range LeavesOf(e) {
		if v, ok := leaf.(algebra.EstimatorRef); ok {
			for _, release := range q.Estimators[v.Index].Of {
				used[release] = true
			}
		}
	}
	return used
}

// LeavesOf lists the keys and values that an expression refers to.
func LeavesOf(e algebra.Expr) []algebra.Expr {
	switch e.(type) {
	case algebra.KeyRef, algebra.EstimatorRef, algebra.Column:
		return []algebra.Expr{e}
	}
	var all []algebra.Expr
	for _, child := range algebra.Children(e) {
		all = append(all, LeavesOf(child)...)
	}
	return all
}

// Releasing is [Statement] for callers that answer only what is released.
func Releasing(o *algebra.Opened) (*algebra.BoundQuery, error) {
	q, err := Statement(o)
	if err == nil && !q.Releases() {
		return nil, fault.Unsupported(scalar.Position(o.Text, o.Query.Pos), "a query that reads no private rows in this place",
			"ask it without a price: it is free")
	}
	return q, err
}

// Statement binds a query, once. A query over released values becomes post-processing queries around the one block that releases them.
func Statement(o *algebra.Opened) (*algebra.BoundQuery, error) {
	if o.Bound != nil {
		return o.Bound, nil
	}
	bound, err := statement(o, o.Query)
	if err != nil && o.Beside {
		again := o.Again(o.Query)
		again.OneByOne = true
		bound, err = statement(again, o.Query)
		*o = *again
	}
	for _, form := range []func(*algebra.Opened, *syntax.Query, error) *syntax.Query{lookedUp, chosenLater} {
		other := form(o, o.Query, err)
		if other == nil {
			continue
		}
		again := o.Again(other)
		if found, refused := statement(again, other); refused == nil {
			*o, bound, err = *again, found, nil
		}
	}
	err = hintAtLookup(o, o.Query, err)
	if err == nil {
		o.Bound = bound
	}
	return bound, err
}

func statement(o *algebra.Opened, query *syntax.Query) (*algebra.BoundQuery, error) {
	defer steps.Visit(o.Steps).Leave()
	switch kind := KindOf(o, query, nil); {
	case kind == algebra.OwnedRows && query.Set != nil:
		return nil, fault.Unsupported(scalar.Position(o.Text, query.Set.Pos), "a set operation over private rows that is not aggregated",
			"aggregate each side, or write SELECT count(*) FROM (... UNION ALL ...) t")
	case kind == algebra.OwnedRows, isBlock(o, query, nil) && !reshaped(query) && query.Sets == nil:
		q, err := bindAnother(o, query, nil)
		if err != nil {
			return nil, err
		}
		if len(o.Blocks) > 0 { // its outputs are computed from other releases too
			o.Blocks, o.BlockOf = append(o.Blocks, q), append(o.BlockOf, query)
			return several(o, blockQuery(o, len(o.Blocks)-1)), nil
		}
		followBlock(o, q)
		return q, nil
	}
	l, err := postOf(o, query, nil, nil)
	if err != nil {
		return nil, err
	}
	q := &algebra.BoundQuery{}
	switch len(o.Blocks) {
	case 0:
	case 1:
		q = o.Blocks[0]
	default:
		return several(o, l), nil
	}
	q.Post, q.Inner, q.Scans = l, q.Outputs, o.Scans
	q.Outputs = make([]algebra.Output, len(l.Outputs))
	for i, out := range l.Outputs {
		q.Outputs[i] = algebra.Output{Name: out.Name, Expr: l.Origins[i]}
	}
	return q, nil
}

// several is a statement with several release blocks. A value that is the one row of a block stems from it.
func several(o *algebra.Opened, l *algebra.Query) *algebra.BoundQuery {
	q := &algebra.BoundQuery{Blocks: o.Blocks, Source: o.Blocks[0].Source, Post: l, Scans: o.Scans}
	left := maxOrigins
	var followed func(algebra.Expr) algebra.Expr
	followed = func(e algebra.Expr) algebra.Expr {
		if left--; left < 0 {
			return e // its values are as they are, without an interval
		}
		s, ok := e.(algebra.Subquery)
		if ok && s.Kind == algebra.ScalarSub && s.Query.OneRow(o.Blocks) {
			return followed(s.Query.Origins[0])
		}
		return algebra.Map(e, followed)
	}
	for i, out := range l.Outputs {
		q.Outputs = append(q.Outputs, algebra.Output{Name: out.Name, Expr: followed(l.Origins[i])})
	}
	return q
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
	switch e := e.(type) {
	case algebra.Column:
		if origin, ok := o.Origins[e.Of]; ok {
			return origin
		}
		return e
	case algebra.Subquery, algebra.Either: // its values are its own; followed already
		return e
	default:
		return algebra.Map(e, func(x algebra.Expr) algebra.Expr { return substitute(o, x) })
	}
}
