package bind

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// aggregate binds an aggregate call to a value. Equal aggregates share their releases, and those that are computed from several
// releases share them with all others that need the same: nobody pays twice, and no difference of two noises cancels (A07).
func aggregate(b *algebra.Binder, n *syntax.Call) (algebra.Expr, error) {
	if len(n.OrderBy) > 0 {
		return nil, b.Unsupported(n, "ORDER BY inside an aggregate", "")
	}
	if n.Distinct && n.Name != "count" && n.Name != "min" && n.Name != "max" {
		return nil, b.Unsupported(n, n.Name+"(DISTINCT ...)", "one row could add any value; count(DISTINCT x) is taken")
	}
	var filter algebra.Expr
	if n.Filter != nil {
		f, err := condition(b, rowScope{b}, n.Filter)
		if err != nil {
			return nil, err
		}
		filter = f
	}
	v, err := aggregateEstimator(b, n, filter)
	if err != nil {
		return nil, err
	}
	return estimator(b, v), nil
}

// aggregateEstimator binds a call by its name.
func aggregateEstimator(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	if orderedSet(n.Name) != (len(n.Within) > 0) && n.Name != "median" {
		return algebra.Estimator{}, b.Mismatch(n, n.Name+map[bool]string{true: " needs", false: " does not take"}[orderedSet(n.Name)]+
			" WITHIN GROUP (ORDER BY ...)", "")
	}
	switch domain.BuiltinOf(n.Name).Form {
	case domain.CountForm:
		return count(b, n, filter)
	case domain.SumForm, domain.MeanForm:
		return sum(b, n, filter)
	case domain.SpreadForm:
		return spread(b, n, filter)
	case domain.PairForm, domain.PairCountForm:
		return paired(b, n, filter)
	case domain.QuantileForm, domain.OrderedForm, domain.MedianForm, domain.ExtremeForm:
		return quantile(b, n, filter)
	case domain.ModeForm:
		return mode(b, n, filter)
	case domain.NoForm, domain.BooleanForm, domain.JoinForm:
	}
	return algebra.Estimator{}, b.Unsupported(n, "aggregate "+n.Name, "")
}

// estimator gives the reference to v, which may have been bound before.
func estimator(b *algebra.Binder, v algebra.Estimator) algebra.EstimatorRef {
	ref := algebra.EstimatorRef{T: v.T, Chosen: b.Bound.Statistics[v.Of[0]].Chooses()}
	for i, known := range b.Bound.Estimators {
		if known.SameAs(v) {
			ref.Index = i
			return ref
		}
	}
	b.Bound.Estimators = append(b.Bound.Estimators, v)
	ref.Index = len(b.Bound.Estimators) - 1
	return ref
}

// addRelease gives the index of m among the releases, adding it when it is new.
func addRelease(b *algebra.Binder, m algebra.Statistic) int {
	if m.Kind == algebra.CountValues && sqlprint.NeverNull(m.X) {
		m.Kind, m.X = algebra.CountRows, nil // every row has a value
	}
	if _, one := b.Bound.Source.OnePerUnit(); m.Kind == algebra.CountUnits && one {
		m.Kind, m.X = algebra.CountRows, nil // each row is a unit
	}
	if m.Kind == algebra.SumCentred && m.Grid.Centre().Sign() == 0 {
		m.Kind = algebra.SumSteps // the bounds are centred already
	}
	m.Name = sqlprint.DescribeStatistic(m)
	for i, known := range b.Bound.Statistics {
		if known.Same(m) {
			return i
		}
	}
	b.Bound.Statistics = append(b.Bound.Statistics, m)
	return len(b.Bound.Statistics) - 1
}

// count binds count(*), count(x), count(unit), count(DISTINCT unit) and count(DISTINCT x).
func count(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	m := algebra.Statistic{Kind: algebra.CountRows, Filter: filter}
	p, ids, err := counted(b, n)
	switch {
	case err != nil:
		return algebra.Estimator{}, err
	case ids:
		if m.Filter = both(filter, p.cond); n.Distinct {
			m.Kind, m.X = algebra.CountDistinct, algebra.Column{Of: p.of[0]}
		}
		if n.Distinct && p.of[0].Unit {
			m.Kind = algebra.CountUnits
		}
	case !n.Star:
		x, err := countArgument(b, n)
		if err != nil {
			return algebra.Estimator{}, err
		}
		switch c, isConstant := x.(algebra.Constant); {
		case n.Distinct:
			if m.Kind, m.X = algebra.CountDistinct, x; !sqlprint.Distinguishable(x) {
				return algebra.Estimator{}, b.Unsupported(n, "count(DISTINCT "+sqlprint.Describe(x)+")",
					"values of type "+scalar.TypeName(x.Typ())+" are not told apart")
			}
		case !isConstant || c.Null:
			m.Kind, m.X = algebra.CountValues, x
		}
	}
	return algebra.Estimator{Name: sqlprint.DescribeStatistic(m), T: catalog.Int8, Of: []int{addRelease(b, m)}}, nil
}

// countArgument is the argument of count, which may be the identity of a unit's row.
func countArgument(b *algebra.Binder, n *syntax.Call) (algebra.Expr, error) {
	if f, ok := identityOf(b, oneArgument(n)); ok {
		return algebra.Column{Of: f}, nil
	}
	return argument(b, n, 0, 1)
}

func oneArgument(n *syntax.Call) syntax.Expr {
	if len(n.Args) != 1 {
		return nil
	}
	return n.Args[0]
}

// sum binds sum(x) and avg(x).
func sum(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	if one, ok := oneArgument(n).(*syntax.Literal); ok && n.Name == "sum" && one.Kind == syntax.IntegerLiteral && one.Text == "1" {
		m := algebra.Statistic{Kind: algebra.CountRows, Filter: filter} // sum(1) is count(*)
		return algebra.Estimator{Name: sqlprint.DescribeStatistic(m), T: catalog.Int8, Of: []int{addRelease(b, m)}}, nil
	}
	n, err := inSeconds(b, n)
	if err != nil {
		return algebra.Estimator{}, err
	}
	x, g, err := numbers(b, n, filter, 0, 1)
	if err != nil {
		return algebra.Estimator{}, err
	}
	if n.Name == "sum" {
		m := algebra.Statistic{Kind: algebra.SumSteps, X: x, Grid: g, Filter: filter}
		return algebra.Estimator{Name: sqlprint.DescribeStatistic(m), T: typeOf(n, x), Of: []int{addRelease(b, m)}}, nil
	}
	s := addRelease(b, algebra.Statistic{Kind: algebra.SumCentred, X: x, Grid: g, Filter: filter})
	k := addRelease(b, algebra.Statistic{Kind: algebra.CountValues, X: x, Filter: filter})
	return algebra.Estimator{Name: "avg(" + sqlprint.Describe(x) + ")" + sqlprint.FilterText(filter), T: typeOf(n, x),
		How: domain.BuiltinOf(n.Name).How, Of: []int{k, s}}, nil
}

// inSeconds makes avg and sum of an interval those of its seconds, and says so: an interval has no grid.
func inSeconds(b *algebra.Binder, n *syntax.Call) (*syntax.Call, error) {
	if n.Star || len(n.Args) != 1 {
		return n, nil // which is refused next
	}
	x, err := rowValue(b, n.Args[0])
	if err != nil || x.Typ() != scalar.IntervalType {
		return n, err
	}
	at := n.Args[0].At()
	seconds := *n
	seconds.Args = []syntax.Expr{&syntax.Call{Pos: at, Name: "extract",
		Args: []syntax.Expr{&syntax.Literal{Pos: at, Kind: syntax.StringLiteral, Text: "epoch"}, n.Args[0]}}}
	b.Bound.Source.Note("seconds", "%s of %s is a number of seconds; closer limits make it more accurate: "+
		"%s(least(greatest(extract(epoch FROM x), 0), 86400)) counts from none to a day", n.Name, sqlprint.Describe(x), n.Name)
	return &seconds, nil
}

// typeOf is the type of an aggregate of one number.
func typeOf(n *syntax.Call, x algebra.Expr) catalog.Type {
	t, _ := domain.BuiltinOf(n.Name).Form.Result(x.Typ())
	return t
}

// spread binds variances and standard deviations.
func spread(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	x, g, err := numbers(b, n, filter, 0, 1)
	if err != nil {
		return algebra.Estimator{}, err
	}
	s := addRelease(b, algebra.Statistic{Kind: algebra.SumCentred, X: x, Grid: g, Filter: filter})
	q := addRelease(b, algebra.Statistic{Kind: algebra.SumProducts, X: x, Grid: g, Y: x, GridY: g, Filter: filter})
	k := addRelease(b, algebra.Statistic{Kind: algebra.CountValues, X: x, Filter: filter})
	return algebra.Estimator{Name: n.Name + "(" + sqlprint.Describe(x) + ")" + sqlprint.FilterText(filter), T: typeOf(n, x),
		How: domain.BuiltinOf(n.Name).How, Of: []int{k, s, q}}, nil
}

// paired binds the aggregates over pairs (y, x): rows where one of the two is NULL do not count.
func paired(b *algebra.Binder, n *syntax.Call, filter algebra.Expr) (algebra.Estimator, error) {
	y, gy, err := numbers(b, n, filter, 0, 2)
	if err != nil {
		return algebra.Estimator{}, err
	}
	x, gx, err := numbers(b, n, filter, 1, 2)
	if err != nil {
		return algebra.Estimator{}, err
	}
	name := n.Name + "(" + sqlprint.Describe(y) + ", " + sqlprint.Describe(x) + ")" + sqlprint.FilterText(filter)
	same := algebra.Same(x, y)
	rows := algebra.Statistic{Kind: algebra.CountValues, X: x, Filter: filter}
	if !same { // in one order, so that covar(x, y) and covar(y, x) are one
		first, second := x, y
		if sqlprint.Describe(first) > sqlprint.Describe(second) {
			first, second = second, first
		}
		filter = both(filter, both(present(first), present(second)))
		rows = algebra.Statistic{Kind: algebra.CountRows, Filter: filter}
	}
	k := addRelease(b, rows)
	if n.Name == "regr_count" {
		return algebra.Estimator{Name: name, T: catalog.Int8, Of: []int{k}}, nil
	}
	if same {
		gy = gx
	}
	sum := func(g *algebra.Grid) int {
		return addRelease(b, algebra.Statistic{Kind: algebra.SumCentred, X: g.X, Grid: g, Filter: filter})
	}
	products := func(g, h *algebra.Grid) int {
		if sqlprint.Describe(g.X) > sqlprint.Describe(h.X) {
			g, h = h, g
		}
		return addRelease(b, algebra.Statistic{Kind: algebra.SumProducts, X: g.X, Grid: g, Y: h.X, GridY: h, Filter: filter})
	}
	v := algebra.Estimator{Name: name, T: catalog.Float8, How: domain.BuiltinOf(n.Name).How}
	switch v.How {
	case algebra.MeanOf, algebra.Squares:
		of := gx
		if n.Name == "regr_avgy" || n.Name == "regr_syy" {
			of = gy
		}
		v.Of = []int{k, sum(of)}
		if v.How == algebra.Squares {
			v.Of = append(v.Of, products(of, of))
		}
		return v, nil
	default: // of both
	}
	v.Of = []int{k, sum(gx), sum(gy), products(gx, gy)}
	switch v.How {
	case algebra.Slope, algebra.Intercept:
		v.Of = append(v.Of, products(gx, gx))
	case algebra.Correlation, algebra.Determination:
		v.Of = append(v.Of, products(gx, gx), products(gy, gy))
	default: // covariances
	}
	return v, nil
}

// both is a AND b, where nil is no condition.
func both(a, b algebra.Expr) algebra.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return algebra.Binary{Op: syntax.And, L: a, R: b, T: catalog.Bool}
	}
}

// present is x IS NOT NULL; nil where it always holds.
func present(x algebra.Expr) algebra.Expr {
	if sqlprint.NeverNull(x) {
		return nil
	}
	return algebra.Is{X: x, What: syntax.IsNull, Not: true}
}

// argument binds argument i of want arguments over the columns of a row.
func argument(b *algebra.Binder, n *syntax.Call, i, want int) (algebra.Expr, error) {
	if n.Star || len(n.Args) != want {
		return nil, b.Mismatch(n, n.Name+map[int]string{1: " needs one argument", 2: " needs two arguments"}[want], "")
	}
	return rowValue(b, n.Args[i])
}

// rowValue binds an expression over the columns of a row that an aggregate or a query around reads.
func rowValue(b *algebra.Binder, n syntax.Expr) (algebra.Expr, error) {
	groupsOfPublic := len(b.Query.GroupBy) > 0 && !b.Bound.Source.Owned()
	if groupsOfPublic || b.Bound.Shared().List.Ranged {
		rangesOf(b, n)
	}
	return settled(b, rowScope{b}, n)
}

// rangesOf bounds the columns of public tables in an expression that have no bounds yet, by the least and the largest of their values. A
// list gives these. Until it is known any bounds serve, since the query is then bound again.
func rangesOf(b *algebra.Binder, n syntax.Expr) {
	list := b.Bound.Shared().List
	c, isColumn := n.(*syntax.Column)
	if list.Of == nil || !isColumn {
		for _, x := range operands(n) {
			rangesOf(b, x)
		}
		return
	}
	f, err := column(b, c)
	if err != nil || f.Bounds != nil || !f.Type.IsNumber() {
		return
	}
	for _, l := range keys.Ends(b.Bound, f) {
		tuples, known := list.Of(l)
		within := endsOf(tuples)
		if !known {
			within = &catalog.Bounds{Lo: new(big.Rat), Hi: scalar.One()}
		}
		if within != nil {
			own := *f.Column
			own.Bounds, f.Column = within, &own
			return
		}
	}
}

// endsOf are the bounds that the least and the largest value of a column are; nil: they are not known, or no numbers. Where no row has a
// value, zero bounds them all.
func endsOf(tuples [][]catalog.Key) *catalog.Bounds {
	if len(tuples) != 1 {
		return nil
	}
	if tuples[0][0].Null {
		return &catalog.Bounds{Lo: new(big.Rat), Hi: new(big.Rat)}
	}
	lo, isLeast := scalar.ParseNumber(tuples[0][0].Text)
	hi, isLargest := scalar.ParseNumber(tuples[0][1].Text)
	if !isLeast || !isLargest {
		return nil
	}
	return &catalog.Bounds{Lo: lo, Hi: hi}
}

// numbers binds an argument that must be a number with bounds, and makes its grid on the rows that pass a filter.
func numbers(b *algebra.Binder, n *syntax.Call, filter algebra.Expr, i, want int) (algebra.Expr, *algebra.Grid, error) {
	x, err := argument(b, n, i, want)
	if err != nil {
		return nil, nil, err
	}
	if !x.Typ().IsNumber() {
		refused := fault.TypeMismatch(b.At(n), "there is no function "+n.Name+"("+scalar.TypeName(x.Typ())+")", n.Name+" needs numbers")
		if x.Typ().IsTime() {
			refused = refused.WithHint(refused.Hint + ": extract(epoch FROM x) are the seconds since 1970 of a time x").WithPart(secondsForm)
		}
		return nil, nil, refused
	}
	g, err := gridOf(b, n.Args[i], x, filter)
	return x, g, err
}

// secondsForm is a time or an interval as a number.
const secondsForm = "extract(epoch FROM $1)"

// gridOf is the grid of a bound expression over the rows that pass a filter.
func gridOf(b *algebra.Binder, n syntax.Expr, x, filter algebra.Expr) (*algebra.Grid, error) {
	within := algebra.BoundsOf(x)
	if within == nil {
		return nil, missingBounds(b, n, x)
	}
	return narrowest(b, n, x, filter, func(implied *algebra.Bounds) (*algebra.Grid, error) { return gridWith(x, within, implied, b.At(n)) })
}

// missingBounds names a column that has no bounds, and that an aggregate or the expression in it would need.
func missingBounds(b *algebra.Binder, n syntax.Expr, x algebra.Expr) error {
	for _, f := range domain.ColumnsOf(x) {
		if f.Bounds == nil && (f.Type.IsNumber() || f.Type.IsTime()) {
			return fault.MissingBounds(b.At(n), f.Name)
		}
	}
	if f := algebra.PlainField(x); f != nil {
		return fault.MissingBounds(b.At(n), f.Name)
	}
	return fault.UnboundedExpression(b.At(n), sqlprint.Describe(x))
}
