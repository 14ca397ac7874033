package free

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Tools that look at a table first ask for its columns: SELECT * ... LIMIT 0, or WHERE 1 = 0. The answer has no rows whatever the tables
// hold, so that it says nothing about them.

// hasNoRows reports whether the text alone decides that a query has no rows. Of WHERE that holds only for rows as they are: an aggregate
// over no rows has one.
func hasNoRows(q *syntax.Query, plainRows bool) bool {
	if l, ok := q.Limit.(*syntax.Literal); ok && l.Kind == syntax.IntegerLiteral && isZeroText(l.Text) {
		return true
	}
	return plainRows && !q.Groups() && slices.ContainsFunc(algebra.Conjuncts(q.Where), neverTrue)
}

func isZeroText(text string) bool {
	v, ok := scalar.ParseNumber(text)
	return ok && v.Sign() == 0
}

// neverTrue recognises false, NULL, and comparisons of two numbers that do not hold.
func neverTrue(n syntax.Expr) bool {
	switch n := n.(type) {
	case *syntax.Literal:
		return n.Kind == syntax.NullLiteral || n.Kind == syntax.BoolLiteral && n.Text == "false"
	case *syntax.Binary:
		l, ok1 := n.L.(*syntax.Literal)
		r, ok2 := n.R.(*syntax.Literal)
		if !ok1 || !ok2 {
			return false
		}
		x, ok1 := scalar.ParseNumber(l.Text)
		y, ok2 := scalar.ParseNumber(r.Text)
		if !ok1 || !ok2 || l.Kind == syntax.StringLiteral || r.Kind == syntax.StringLiteral {
			return false
		}
		switch c := x.Cmp(y); n.Op {
		case syntax.Eq:
			return c != 0
		case syntax.Ne:
			return c == 0
		case syntax.Lt:
			return c >= 0
		case syntax.Gt:
			return c <= 0
		default:
			return false
		}
	default:
		return false
	}
}

// Shape is the plan of a query of rows as they are, without these rows; nil for all others. It is for tools that want to know the columns
// of a table whose rows are not shown.
func Shape(o *algebra.Opened) (*PublicPlan, error) {
	if kind := bind.KindOf(o, o.Query, nil); kind == algebra.OwnedRows && o.Query.Set == nil {
		return emptyPlan(o, kind)
	}
	return nil, nil
}

// emptyPlan is the plan of a query without rows: the names and types of its columns.
func emptyPlan(o *algebra.Opened, kind algebra.RowKind) (*PublicPlan, error) {
	public := &PublicPlan{lines: []string{"no rows"}}
	outputs, err := outputsOf(o, kind)
	for _, out := range outputs {
		public.columns = append(public.columns, plan.Column{Name: out.Name, Type: scalar.TypeOfOutput(out.Expr.Typ()), Kind: plan.PublicColumn})
	}
	if err == nil && len(outputs) == 0 {
		err = fault.Unsupported(scalar.Position(o.Text, o.Query.Pos), "a query without columns", "")
	}
	return public, err
}

// outputsOf binds a query for its outputs alone.
func outputsOf(o *algebra.Opened, kind algebra.RowKind) ([]algebra.Output, error) {
	if kind == algebra.OwnedRows {
		return bind.RowOutputs(o) // ORDER BY, LIMIT and OFFSET choose among rows that there are none of
	}
	q, err := bind.Statement(o)
	if err != nil {
		return nil, err
	}
	return q.Outputs, nil
}
