package sqlprint

import (
	wire "encoding/binary"
	"fmt"
	"hash"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Identity hashes strings so that no two lists of strings are confused: each is preceded by its length.
type Identity struct{ hash.Hash }

func (h Identity) Add(parts ...string) {
	for _, s := range parts {
		_ = wire.Write(h, wire.BigEndian, uint64(len(s))) // a hash never fails
		_, _ = h.Write([]byte(s))
	}
}

func (h Identity) Args(args []any) {
	for _, a := range args {
		h.Add(fmt.Sprintf("%#v", a))
	}
}

// ShownStatistic names a statistic as an analyst would have written it.
func ShownStatistic(m algebra.Statistic) string {
	name := ""
	if m.Kind == algebra.ChooseRank {
		name = map[string]string{"0": "min", "1/2": "median", "1": "max"}[m.Rank.RatString()]
	}
	if name == "" {
		return m.Name
	}
	return name + "(" + Describe(m.X) + ")" + FilterText(m.Filter)
}

// PostLines are a post-processing query's part of the plan's text.
func PostLines(l *algebra.Query, q *algebra.BoundQuery) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	text := func(e algebra.Expr) string { return DescribeWith(e, q) }
	if l.Limit != nil {
		add("limit %d", *l.Limit)
	}
	if l.Offset > 0 {
		add("offset %d", l.Offset)
	}
	if len(l.OrderBy) > 0 {
		add("order by %s", OrderText(l.OrderBy, q))
	}
	switch {
	case l.Block:
		return blockLines(l, q)
	case l.Set != nil:
		all := ""
		if l.Set.All {
			all = " all"
		}
		add("%s%s", strings.ToLower(string(l.Set.Kind)), all)
		out = append(out, scalar.Indented(PostLines(l.Set.Left, q))...)
		return append(out, scalar.Indented(PostLines(l.Set.Right, q))...)
	case l.Distinct:
		add("distinct")
	case len(l.On) > 0:
		add("distinct on %s", expressionsText(l.On, q))
	}
	if l.Having != nil {
		add("having %s", text(l.Having))
	}
	if l.Grouped {
		keys := orNothing(expressionsText(l.Keys, q))
		if l.Sets != nil {
			keys = setsText(l, q)
		}
		add("group by %s", keys)
	}
	if l.Where != nil {
		add("where %s", text(l.Where))
	}
	if l.From != nil {
		out = append(out, itemLines(l.From, q)...)
	}
	return out
}

// DescribeStatistic names the statistic as SQL over the analyst's names.
func DescribeStatistic(m algebra.Statistic) string {
	var s string
	switch m.Kind {
	case algebra.CountRows:
		s = "count(*)"
	case algebra.CountValues:
		s = "count(" + Describe(m.X) + ")"
	case algebra.CountUnits, algebra.CountDistinct:
		s = "count(DISTINCT " + Describe(m.X) + ")"
	case algebra.SumSteps:
		s = "sum(" + Describe(m.X) + ")"
	case algebra.SumCentred:
		s = "sum(" + lessText(m.Grid) + ")"
	case algebra.SumProducts:
		s = "sum((" + lessText(m.Grid) + ") * (" + lessText(m.GridY) + "))"
	case algebra.ChooseRank:
		s = "percentile(" + scalar.DecimalOrFraction(m.Rank) + ") of " + Describe(m.X)
		if m.Upper {
			s += " from above"
		}
	case algebra.ChooseMode:
		s = "mode of " + Describe(m.X)
	default:
		panic("sqlrewrite: statistic without a case in describe")
	}
	return s + FilterText(m.Filter)
}

// lessText is a grid's expression less the middle of its bounds.
func lessText(g *algebra.Grid) string {
	centre, sign := g.Value(g.Centre()), " - "
	if centre.Sign() < 0 {
		sign = " + "
	}
	text := Describe(g.X) + sign + scalar.DecimalOrFraction(centre.Abs(centre))
	if g.Coarse {
		text += " by " + scalar.DecimalOrFraction(g.Step)
	}
	return text
}

func FilterText(filter algebra.Expr) string {
	if filter == nil {
		return ""
	}
	return " FILTER (WHERE " + Describe(filter) + ")"
}

// Describe writes an expression for people, with the analyst's names and constants. Expressions that mean different things
// have different descriptions.
func Describe(e algebra.Expr) string { return DescribeWith(e, nil) }

// DescribeWith names the values of a block.
func DescribeWith(e algebra.Expr, q *algebra.BoundQuery) string {
	p := newDescriber(q)
	p.expr(e)
	return p.B.String()
}

// DescribeRows writes a query below the release block for people. Queries that mean different things have different descriptions.
func DescribeRows(d *algebra.Derived) string { return newDescriber(nil).rowQueries(d) }

// newDescriber prints for people.
func newDescriber(q *algebra.BoundQuery) *Printer {
	return newInline(func(p *Printer, e algebra.Expr) {
		switch e := e.(type) {
		case algebra.Column:
			p.write(e.Of.Text())
		case algebra.KeyRef:
			p.write(e.Name)
		case algebra.EstimatorRef:
			p.write(q.Estimators[e.Index].Name)
		case algebra.Subquery:
			p.write("(SELECT ...)")
		case algebra.Either:
			p.expr(e.L)
			p.write(" or ")
			p.expr(e.R)
		}
	}, nil)
}
