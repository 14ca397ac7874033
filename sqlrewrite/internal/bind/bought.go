package bind

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// A condition on rows of units may compare with an aggregate of such rows: x > (SELECT avg(x) FROM t). The aggregate is a release block by
// itself, which is released first. Its noisy value is an argument of the statement that has the condition. No bound, list or text of that
// statement depends on it, so that the statement is priced and proven for all values before the charge.

// maxCounted is the largest count of rows that a statement takes as an argument. Larger ones count as this one.
var maxCounted = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 40))

// buyer gives what binds such aggregates in a release block of a statement: nil for a query that releases nothing.
func buyer(o *algebra.Opened, s *algebra.Source) func(*syntax.Scalar) (algebra.Expr, error) {
	return func(n *syntax.Scalar) (algebra.Expr, error) {
		defer steps.Visit(o.Steps).Leave()
		if KindOf(o, n.Query, s.CTEs) != algebra.ReleasedRows {
			return nil, nil
		}
		source := o.Sources[n.Query]
		switch {
		case source == nil || n.Query.Sets != nil || reshaped(n.Query):
			return nil, refuseScalar(s.Binder, n)
		case source.Refused != nil:
			return nil, source.Refused
		}
		if x := outside(n); x != nil {
			return expression(s.Binder, rowScope{s.Binder}, x)
		}
		l, err := releaseBlock(o, n.Query, s.CTEs)
		if code := fault.CodeOf(err); code == fault.CodeUnknownColumn || code == fault.CodeUnknownTable { // of the rows around it, as a rule
			return nil, refuseScalar(s.Binder, n)
		}
		if err != nil {
			return nil, err
		}
		o.Blocks[l.BlockAt].Argument = true
		return bought(s.Binder, n, o.Blocks[l.BlockAt], l.BlockAt)
	}
}

// bought is the only value of a block without groups, as an argument.
func bought(b *algebra.Binder, n *syntax.Scalar, block *algebra.BoundQuery, at int) (algebra.Expr, error) {
	if len(block.Keys) > 0 || len(block.Outputs) != 1 || block.Having != nil || block.Limit != nil || block.Offset > 0 {
		return nil, b.Unsupported(n, "a subquery over private rows as a value that is not one aggregate",
			"select one aggregate, without GROUP BY, HAVING or LIMIT: it is released first, and has one row")
	}
	ref, ok := block.Outputs[0].Expr.(algebra.EstimatorRef)
	if !ok {
		return nil, b.Unsupported(n, "a subquery over private rows as a value that computes with its aggregate",
			"select the aggregate alone, and compute with the subquery's value outside of it")
	}
	v := block.Estimators[ref.Index]
	within := rangeOf(block, v)
	if within == nil || !v.T.IsNumber() && !isMoment(v.T) {
		return nil, b.Unsupported(n, v.Name+" of private rows as a value in a condition",
			"compare with avg, min, max, a quantile, count or sum: the policy's bounds say what values these can have")
	}
	b.Bound.Bought = append(b.Bound.Bought, algebra.Purchase{Block: at, Estimator: ref.Index, Name: v.Name, Within: within})
	t := v.T
	if t == catalog.Float4 { // as what PostgreSQL computes with it
		t = catalog.Float8
	}
	return algebra.Bought{At: len(b.Bound.Bought) - 1, T: t, Label: "(" + v.Name + ", released first)", Within: within,
		MayBeNull: v.How == algebra.MeanOf}, nil
}

// isMoment reports whether values of a type are points of the calendar.
func isMoment(t catalog.Type) bool {
	return t == catalog.Date || t == catalog.Timestamp || t == catalog.Timestamptz
}

// rangeOf is where a value lies by the policy's bounds, or is moved to; nil: no bounds are known.
func rangeOf(block *algebra.BoundQuery, v algebra.Estimator) *algebra.Bounds {
	ends := func(g *algebra.Grid) *algebra.Bounds { return &algebra.Bounds{Lo: g.Value(g.Lo), Hi: g.Value(g.Hi)} }
	m := block.Statistics[v.Of[0]]
	switch {
	case v.How == algebra.MeanOf:
		return ends(block.Statistics[v.Of[1]].Grid)
	case v.How != algebra.AsReleased:
		return nil
	case m.Kind == algebra.ChooseRank:
		return ends(m.Grid)
	case m.Kind == algebra.SumSteps:
		b := ends(m.Grid)
		zero := new(big.Rat)
		lo, hi := new(big.Rat).Mul(scalar.MinRat(b.Lo, zero), maxCounted), new(big.Rat).Mul(scalar.MaxRat(b.Hi, zero), maxCounted)
		if lowest, highest := scalar.IntegerRange(v.T); lowest != nil {
			lo, hi = scalar.MaxRat(lo, lowest), scalar.MinRat(hi, highest)
		}
		return &algebra.Bounds{Lo: lo, Hi: hi}
	case m.Kind == algebra.CountRows, m.Kind == algebra.CountValues, m.Kind == algebra.CountUnits, m.Kind == algebra.CountDistinct:
		return &algebra.Bounds{Lo: new(big.Rat), Hi: maxCounted}
	default:
		return nil
	}
}

// outside moves arithmetic on the only aggregate of a query that stands for a value out of it: (SELECT 2 * avg(x) FROM t) is
// 2 * (SELECT avg(x) FROM t). nil: it is none.
func outside(n *syntax.Scalar) syntax.Expr {
	aggregates := 0
	var moved func(e syntax.Expr) syntax.Expr
	moved = func(e syntax.Expr) syntax.Expr {
		switch e := e.(type) {
		case *syntax.Literal:
			return e
		case *syntax.Unary:
			own := *e
			own.X = moved(e.X)
			return &own
		case *syntax.Binary:
			own := *e
			own.L, own.R = moved(e.L), moved(e.R)
			return &own
		case *syntax.Call:
			if !callsAggregate(e) || !domain.BuiltinOf(e.Name).IsAggregate() {
				aggregates = 2 // and so none
				return e
			}
			aggregates++
			q := *n.Query
			q.Items = []syntax.Item{{Pos: e.Pos, Expr: e}}
			return &syntax.Scalar{Pos: n.Pos, Query: &q}
		default:
			aggregates = 2
			return e
		}
	}
	if len(n.Query.Items) != 1 {
		return nil
	}
	if _, alone := n.Query.Items[0].Expr.(*syntax.Call); alone {
		return nil
	}
	if out := moved(n.Query.Items[0].Expr); aggregates == 1 {
		return out
	}
	return nil
}
