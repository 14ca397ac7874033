package sqlrewrite

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// maxCandidates caps the points that a quantile or a mode is chosen from: each point that has rows is a row of the statement's result.
const maxCandidates = 10_000

// orderedSet reports whether an aggregate is written with WITHIN GROUP.
func orderedSet(name string) bool {
	return name == "percentile_cont" || name == "percentile_disc" || name == "mode"
}

// quantile binds percentile_cont, percentile_disc, median, min and max: one selection for each fraction.
func (b *binder) quantile(n *syntax.Call, filter expr) (value, error) {
	item, fractions, err := b.fractions(n)
	if err != nil {
		return value{}, err
	}
	x, err := b.rowValue(item.Expr)
	if err != nil {
		return value{}, err
	}
	t := x.typ()
	switch continuous := n.Name == "percentile_cont" || n.Name == "median"; {
	case t.IsTime() && !continuous && plainField(x) != nil:
	case !t.IsNumber():
		return value{}, b.mismatch(n, "there is no function "+n.Name+" over "+typeName(t), n.Name+" needs numbers with bounds; for the most frequent value write mode() WITHIN GROUP (ORDER BY x)")
	case continuous:
		t = catalog.Float8
	}
	g, err := b.points(item.Expr, x)
	if err != nil {
		return value{}, err
	}
	v := value{name: quantileName(n, x, fractions) + filterText(filter), t: t}
	for _, f := range fractions {
		m := measure{kind: chooseRank, x: x, grid: g, filter: filter, rank: f}
		if item.Descending {
			m.rank, m.upper = new(big.Rat).Sub(one(), f), n.Name == "percentile_disc" && !f.IsInt()
		}
		v.of = append(v.of, b.release(m))
	}
	if _, list := oneArgument(n).(*syntax.Array); list {
		v.how, v.t = arrayOf, arrayType(t)
	}
	return v, nil
}

// points is the grid that a quantile of an expression is chosen from.
func (b *binder) points(n syntax.Expr, x expr) (*grid, error) {
	if x.typ().IsTime() {
		if within := boundsOf(x); within != nil {
			return timeGrid(x, within, b.at(n))
		}
		return nil, b.missingBounds(n, x)
	}
	g, err := b.gridOf(n, x)
	if err != nil {
		return nil, err
	}
	return coarser(g, maxCandidates, b.at(n))
}

// fractions are those that a call asks for, and what it orders by.
func (b *binder) fractions(n *syntax.Call) (syntax.OrderItem, []*big.Rat, error) {
	if n.Name == "min" || n.Name == "max" || n.Name == "median" {
		if n.Star || len(n.Args) != 1 || len(n.Within) > 0 {
			return syntax.OrderItem{}, nil, b.mismatch(n, n.Name+" needs one argument", "")
		}
		fraction := map[string]*big.Rat{"min": new(big.Rat), "max": one(), "median": big.NewRat(1, 2)}[n.Name]
		return syntax.OrderItem{Expr: n.Args[0]}, []*big.Rat{fraction}, nil
	}
	if n.Star || len(n.Args) != 1 || len(n.Within) != 1 {
		return syntax.OrderItem{}, nil, b.mismatch(n, n.Name+" needs one fraction and one value to order by", "write "+n.Name+"(0.5) WITHIN GROUP (ORDER BY x)")
	}
	list := []syntax.Expr{n.Args[0]}
	if array, ok := n.Args[0].(*syntax.Array); ok {
		list = array.Items
	}
	if len(list) == 0 || len(list) > maxFractions {
		return syntax.OrderItem{}, nil, b.unsupported(n.Args[0], fmt.Sprintf("a list of %d fractions", len(list)), fmt.Sprintf("ask for 1 to %d", maxFractions))
	}
	var fractions []*big.Rat
	for _, item := range list {
		l, ok := item.(*syntax.Literal)
		var f *big.Rat
		if ok {
			f, ok = parseNumber(l.Text)
		}
		if !ok || l.Kind == syntax.BoolLiteral || f.Sign() < 0 || f.Cmp(one()) > 0 || f.Denom().BitLen() > maxFractionBits {
			return syntax.OrderItem{}, nil, b.unsupported(item, "a fraction that is not a constant from 0 to 1", "write 0.5 for the median")
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
func quantileName(n *syntax.Call, x expr, fractions []*big.Rat) string {
	if len(n.Within) == 0 {
		return n.Name + "(" + describe(x) + ")"
	}
	var list []string
	for _, f := range fractions {
		list = append(list, decimalOrFraction(f))
	}
	order := map[bool]string{true: " DESC"}[n.Within[0].Descending]
	return n.Name + "(" + strings.Join(list, ", ") + ") of " + describe(x) + order
}

// mode binds mode() WITHIN GROUP (ORDER BY x): a selection from a declared domain, or from a grid of whole numbers.
func (b *binder) mode(n *syntax.Call, filter expr) (value, error) {
	if n.Star || len(n.Args) > 0 || len(n.Within) != 1 {
		return value{}, b.mismatch(n, "mode needs one value to order by", "write mode() WITHIN GROUP (ORDER BY x)")
	}
	at := n.Within[0].Expr
	x, err := b.rowValue(at)
	if err != nil {
		return value{}, err
	}
	m := measure{kind: chooseMode, x: x, filter: filter}
	switch f := plainField(x); {
	case x.typ() == catalog.Bool:
		m.among = []catalog.Key{{Text: "false"}, {Text: "true"}}
	case f != nil && f.Domain != nil && oneText(x):
		m.among = make([]catalog.Key, 0, len(f.Domain))
		for _, k := range f.Domain {
			if !k.Null {
				m.among = append(m.among, k)
			}
		}
	case x.typ().IsInteger():
		if m.grid, err = b.gridOf(at, x); err != nil {
			return value{}, err
		}
		if m.grid.points().Cmp(big.NewInt(maxCandidates)) > 0 || m.grid.form != wholeSteps {
			return value{}, b.unsupported(at, "mode over more than 10000 values", "declare a domain or narrower bounds, or group by the value and order by count(*)")
		}
	default:
		return value{}, fault.MissingKeys(b.at(at), describe(x))
	}
	if m.candidates() == 0 {
		return value{}, fault.MissingKeys(b.at(at), describe(x))
	}
	t := x.typ()
	if t == catalog.Enum || t == catalog.Char {
		t = catalog.Text
	}
	return value{name: "mode of " + describe(x) + filterText(filter), t: t, of: []int{b.release(m)}}, nil
}
