package bind

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// orderedSet reports whether an aggregate is written with WITHIN GROUP.
func orderedSet(name string) bool {
	return name == "percentile_cont" || name == "percentile_disc" || name == "mode"
}

// quantile binds percentile_cont, percentile_disc, median, min and max: one selection for each fraction.
func quantile(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	item, fractions, err := fractions(b, n)
	if err != nil {
		return algebra.Estimator{}, err
	}
	x, err := rowValue(b, item.Expr)
	if err != nil {
		return algebra.Estimator{}, err
	}
	t := x.Typ()
	switch continuous := n.Name == "percentile_cont" || n.Name == "median"; {
	case t.IsTime() && !continuous && algebra.PlainField(x) != nil:
	case t.IsTime() && !continuous:
		return algebra.Estimator{}, b.Unsupported(n, n.Name+" of a computed time",
			"take it of the column, and compute with what is released, as in date_trunc('day', min(x))")
	case !t.IsNumber():
		return algebra.Estimator{}, b.Mismatch(n, "there is no function "+n.Name+" over "+scalar.TypeName(t),
			n.Name+" needs numbers with bounds; for the most frequent value write mode() WITHIN GROUP (ORDER BY x)")
	case continuous:
		t = catalog.Float8
	}
	g, err := points(b, item.Expr, x, filter)
	if err != nil {
		return algebra.Estimator{}, err
	}
	v := algebra.Estimator{Name: quantileName(n, x, fractions) + sqlprint.FilterText(filter), T: t}
	for _, f := range fractions {
		m := algebra.Statistic{Kind: algebra.ChooseRank, X: x, Grid: g, Filter: filter, Rank: f}
		if item.Descending {
			m.Rank, m.Upper = new(big.Rat).Sub(scalar.One(), f), n.Name == "percentile_disc" && !f.IsInt()
		}
		v.Of = append(v.Of, addRelease(b, m))
	}
	if _, list := oneArgument(n).(*syntax.Array); list {
		v.How, v.T = algebra.ArrayOf, scalar.ArrayType(t)
	}
	return v, nil
}

// points is the grid that a quantile of an expression is chosen from, on the rows that pass a filter.
func points(b *algebra.Binder, n syntax.Expr, x, filter algebra.Expr) (*algebra.Grid, error) {
	within := algebra.BoundsOf(x)
	if within == nil {
		return nil, missingBounds(b, n, x)
	}
	return narrowest(b, n, x, filter, func(implied *algebra.Bounds) (*algebra.Grid, error) {
		if x.Typ().IsTime() {
			return timeGrid(x, within, implied, b.At(n))
		}
		g, err := gridWith(x, within, implied, b.At(n))
		if err != nil {
			return nil, err
		}
		policy := within
		if implied == nil {
			policy = nil
		}
		return coarser(g, policy, sqlprint.MaxCandidates, b.At(n))
	})
}

// fractions are those that a call asks for, and what it orders by.
func fractions(b *algebra.Binder, n *syntax.Call) (syntax.OrderItem, []*big.Rat, error) {
	if n.Name == "min" || n.Name == "max" || n.Name == "median" {
		if n.Star || len(n.Args) != 1 || len(n.Within) > 0 {
			return syntax.OrderItem{}, nil, b.Mismatch(n, n.Name+" needs one argument", "")
		}
		fraction := map[string]*big.Rat{"min": new(big.Rat), "max": scalar.One(), "median": big.NewRat(1, 2)}[n.Name]
		return syntax.OrderItem{Expr: n.Args[0]}, []*big.Rat{fraction}, nil
	}
	if n.Star || len(n.Args) != 1 || len(n.Within) != 1 {
		return syntax.OrderItem{}, nil, b.Mismatch(n, n.Name+" needs one fraction and one value to order by",
			"write "+n.Name+"(0.5) WITHIN GROUP (ORDER BY x)")
	}
	list := []syntax.Expr{n.Args[0]}
	if array, ok := n.Args[0].(*syntax.Array); ok {
		list = array.Items
	}
	if len(list) == 0 || len(list) > maxFractions {
		return syntax.OrderItem{}, nil, b.Unsupported(n.Args[0], fmt.Sprintf("a list of %d fractions", len(list)),
			fmt.Sprintf("ask for 1 to %d", maxFractions))
	}
	var fractions []*big.Rat
	for _, item := range list {
		l, ok := item.(*syntax.Literal)
		var f *big.Rat
		if ok {
			f, ok = scalar.ParseNumber(l.Text)
		}
		if !ok || l.Kind == syntax.BoolLiteral || f.Sign() < 0 || f.Cmp(scalar.One()) > 0 || f.Denom().BitLen() > maxFractionBits {
			return syntax.OrderItem{}, nil, b.Unsupported(item, "a fraction that is not a constant from 0 to 1", "write 0.5 for the median")
		}
		fractions = append(fractions, f)
	}
	return n.Within[0], fractions, nil
}

const (
	maxFractions    = 100
	maxFractionBits = 40 // ranks are multiplied by the denominator
)

// quantileName is the call as the analyst could have written it.
func quantileName(n *syntax.Call, x algebra.Expr, fractions []*big.Rat) string {
	if len(n.Within) == 0 {
		return n.Name + "(" + sqlprint.Describe(x) + ")"
	}
	var list []string
	for _, f := range fractions {
		list = append(list, scalar.DecimalOrFraction(f))
	}
	order := map[bool]string{true: " DESC"}[n.Within[0].Descending]
	return n.Name + "(" + strings.Join(list, ", ") + ") of " + sqlprint.Describe(x) + order
}

// mode binds mode() WITHIN GROUP (ORDER BY x): a selection from a declared domain, or from a grid of whole numbers.
func mode(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	if n.Star || len(n.Args) > 0 || len(n.Within) != 1 {
		return algebra.Estimator{}, b.Mismatch(n, "mode needs one value to order by", "write mode() WITHIN GROUP (ORDER BY x)")
	}
	at := n.Within[0].Expr
	x, err := rowValue(b, at)
	if err != nil {
		return algebra.Estimator{}, err
	}
	m := algebra.Statistic{Kind: algebra.ChooseMode, X: x, Filter: filter}
	switch f := algebra.PlainField(x); {
	case x.Typ() == catalog.Bool:
		m.Among = []catalog.Key{{Text: "false"}, {Text: "true"}}
	case f != nil && f.Domain() != nil && algebra.OneText(x):
		m.Among = make([]catalog.Key, 0, len(f.Domain()))
		for _, k := range f.Domain() {
			if !k.Null {
				m.Among = append(m.Among, k)
			}
		}
	case x.Typ().IsInteger():
		if m.Grid, err = gridOf(b, at, x, filter); err != nil {
			return algebra.Estimator{}, err
		}
		if m.Grid.Points().Cmp(big.NewInt(sqlprint.MaxCandidates)) > 0 || m.Grid.Form != algebra.WholeSteps {
			return algebra.Estimator{}, b.Unsupported(at, "mode over more than 10000 values",
				"declare a domain or narrower bounds, or group by the value and order by count(*)")
		}
	default:
		refused := fault.MissingKeys(b.At(at), sqlprint.Describe(x))
		switch {
		case f == nil: // no policy declares keys of it
			refused = refused.WithHint("group by it, and take the first group by count")
		case f.Known().PrivateKeys:
			refused = refused.WithHint("its keys are private: group by it, and take the first group by count")
		}
		return algebra.Estimator{}, refused
	}
	if m.Candidates() == 0 {
		return algebra.Estimator{}, fault.MissingKeys(b.At(at), sqlprint.Describe(x))
	}
	t := x.Typ()
	if t == catalog.Enum || t == catalog.Char {
		t = catalog.Text
	}
	return algebra.Estimator{Name: "mode of " + sqlprint.Describe(x) + sqlprint.FilterText(filter), T: t, Of: []int{addRelease(b, m)}}, nil
}
