package keys

import (
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Inlining replaces columns of queries in FROM by the expressions that they are. It reads the queries that filter rows and compute columns,
// at any depth, and others if asked to. A query on the side of a join that may be absent stays as it is: there its columns are NULL, and
// expressions over what it reads need not be.
type Inlining struct {
	steps   *steps.Count
	all     bool // queries with groups and windows, too
	outputs map[*algebra.Field]*inlined
	left    int            // of maxInlining
	Where   []algebra.Expr // the conditions of these queries: true on every row
}

// inlined is a column of such a query.
type inlined struct {
	of   algebra.Expr // over what the query reads
	size int          // of all; 0: not known yet
	all  algebra.Expr // after inlining; nil: not known yet
}

// maxInlined caps the parts of an expression after inlining: each level could double them (A44). A column of a larger one stays as it is.
const maxInlined = 500

// maxInlining caps the visits of all expressions, in which operands of partial operations stand several times: as they were written and
// clamped. An expression that would take more stays as it is.
const maxInlining = 10_000

// Inline reads the queries in FROM of a query; if all, also those with groups, DISTINCT and windows. An output of such a query that is no
// aggregate has in each of its rows the value that its expression has in some row of what the query reads, and WHERE was true there.
func Inline(q *algebra.BoundQuery, all bool) *Inlining {
	in := &Inlining{steps: q.Shared().Steps, all: all, outputs: make(map[*algebra.Field]*inlined), left: maxInlining}
	in.item(q.Source.Node)
	return in
}

// rowsFrom returns the query that such a query in FROM is; nil for others.
func (in *Inlining) rowsFrom(n *algebra.Derived) *algebra.Query {
	if len(n.Parts) != 1 || n.Parts[0].From == nil || !in.all && !n.Parts[0].Rowwise() {
		return nil
	}
	return n.Parts[0]
}

func (in *Inlining) item(n algebra.FromItem) {
	defer steps.Visit(in.steps).Leave()
	switch n := n.(type) {
	case *algebra.RowCap:
		in.item(n.Of)
	case *algebra.Joined:
		if n.Kind != syntax.RightJoin && n.Kind != syntax.FullJoin {
			in.item(n.Left)
		}
		if n.Kind != syntax.LeftJoin && n.Kind != syntax.FullJoin && !n.Semi {
			in.item(n.Right)
		}
	case *algebra.Derived:
		q := in.rowsFrom(n)
		if q == nil {
			return
		}
		in.item(q.From)
		for i, f := range n.Fields {
			if e := q.Outputs[i].Expr; !algebra.HasAggregate(e) {
				in.outputs[f] = &inlined{of: e}
			}
		}
		in.Where = append(in.Where, in.Conditions(q.Where)...)
	}
}

// size counts the parts of an expression after inlining, up to maxInlined + 1.
func (in *Inlining) size(e algebra.Expr) int {
	defer steps.Visit(in.steps).Leave()
	total := 0
	for _, x := range algebra.Parts(e) {
		total++
		if column := in.output(x); column != nil {
			if column.size == 0 {
				column.size = in.size(column.of)
			}
			total = min(total+column.size, maxInlined+1)
		}
	}
	return total
}

// output returns what is known of an expression that is a column of a query in FROM; nil for other expressions.
func (in *Inlining) output(e algebra.Expr) *inlined {
	if f := algebra.PlainField(e); f != nil {
		return in.outputs[f]
	}
	return nil
}

// Conditions returns the conjuncts of a condition after inlining. Those that are too large are left out.
func (in *Inlining) Conditions(where algebra.Expr) (all []algebra.Expr) {
	if len(in.outputs) == 0 {
		return algebra.BoundConjuncts(where)
	}
	for _, e := range algebra.BoundConjuncts(where) {
		if in.size(e) > maxInlined {
			continue
		}
		if x := in.Of(e); in.left > 0 {
			all = append(all, x)
		}
	}
	return all
}

// Of returns an expression after inlining. What it is computed from is replaced; queries in it are not.
func (in *Inlining) Of(e algebra.Expr) algebra.Expr {
	if len(in.outputs) == 0 {
		return e
	}
	if all := in.replaced(e); in.left > 0 {
		return all
	}
	return e
}

func (in *Inlining) replaced(e algebra.Expr) algebra.Expr {
	if in.left == 0 {
		return e
	}
	in.left--
	defer steps.Visit(in.steps).Leave()
	switch e := e.(type) {
	case nil:
		return nil
	case algebra.Column:
		column := in.output(e)
		if column == nil || in.size(e) > maxInlined {
			return e
		}
		if column.all == nil {
			column.all = in.replaced(column.of)
		}
		return column.all
	case algebra.Computed:
		e.Written, e.ErrorFree = in.replaced(e.Written), in.replaced(e.ErrorFree)
		return e
	default:
		return algebra.Map(e, in.replaced)
	}
}

// Reads reports whether an expression is computed from a column of one of these queries, and not too large.
func (in *Inlining) Reads(e algebra.Expr) bool {
	return len(in.outputs) > 0 && algebra.Has(e, func(x algebra.Expr) bool { return in.output(x) != nil }) && in.size(e) <= maxInlined
}
