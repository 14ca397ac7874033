package sqlrewrite

import (
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// aggregate binds an aggregate call to a value. Equal aggregates share their releases, and those that are computed from several
// releases share them with all others that need the same: nobody pays twice, and no difference of two noises cancels (A07).
func (b *binder) aggregate(n *syntax.Call) (expr, error) {
	if len(n.OrderBy) > 0 {
		return nil, b.unsupported(n, "ORDER BY inside an aggregate", "")
	}
	if n.Distinct && n.Name != "count" && n.Name != "min" && n.Name != "max" {
		return nil, b.unsupported(n, n.Name+"(DISTINCT ...)", "one row could add any value; count(DISTINCT x) is taken")
	}
	var filter expr
	if n.Filter != nil {
		f, err := b.condition(rowScope{b}, n.Filter)
		if err != nil {
			return nil, err
		}
		filter = f
	}
	v, err := b.aggregateValue(n, filter)
	if err != nil {
		return nil, err
	}
	return b.value(v), nil
}

// aggregateValue binds a call by its name.
func (b *binder) aggregateValue(n *syntax.Call, filter expr) (value, error) {
	if orderedSet(n.Name) != (len(n.Within) > 0) && n.Name != "median" {
		return value{}, b.mismatch(n, n.Name+map[bool]string{true: " needs", false: " does not take"}[orderedSet(n.Name)]+" WITHIN GROUP (ORDER BY ...)", "")
	}
	switch n.Name {
	case "count":
		return b.count(n, filter)
	case "sum", "avg":
		return b.sum(n, filter)
	case "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev":
		return b.spread(n, filter)
	case "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy":
		return b.paired(n, filter)
	case "percentile_cont", "percentile_disc", "median", "min", "max":
		return b.quantile(n, filter)
	case "mode":
		return b.mode(n, filter)
	default:
		return value{}, b.unsupported(n, "aggregate "+n.Name, "")
	}
}

// value gives the reference to v, which may have been bound before.
func (b *binder) value(v value) valueRef {
	ref := valueRef{t: v.t, chosen: b.bound.measures[v.of[0]].chooses()}
	for i, known := range b.bound.values {
		if known.sameAs(v) {
			ref.index = i
			return ref
		}
	}
	b.bound.values = append(b.bound.values, v)
	ref.index = len(b.bound.values) - 1
	return ref
}

// release gives the index of m among the releases, adding it when it is new.
func (b *binder) release(m measure) int {
	if m.kind == countValues && neverNull(m.x) {
		m.kind, m.x = countRows, nil // every row has a value
	}
	if _, one := b.bound.source.onePerUnit(); m.kind == countUnits && one {
		m.kind, m.x = countRows, nil // each row is a unit
	}
	if m.kind == sumCentred && m.grid.centre().Sign() == 0 {
		m.kind = sumSteps // the bounds are centred already
	}
	m.name = m.describe()
	for i, known := range b.bound.measures {
		if known.name == m.name && known.structure() == m.structure() {
			return i
		}
	}
	b.bound.measures = append(b.bound.measures, m)
	return len(b.bound.measures) - 1
}

// count binds count(*), count(x), count(DISTINCT unit) and count(DISTINCT x).
func (b *binder) count(n *syntax.Call, filter expr) (value, error) {
	m := measure{kind: countRows, filter: filter}
	if !n.Star {
		x, unit, err := b.countArgument(n)
		if err != nil {
			return value{}, err
		}
		switch c, isConstant := x.(constant); {
		case n.Distinct && unit:
			m.kind, m.x = countUnits, x
			if !slices.Contains(b.bound.source.owners, plainField(x)) { // of a row that an outer join may not have found
				m.filter = both(filter, present(x))
			}
		case unit:
			return value{}, fault.UnitColumn(b.at(n.Args[0]), plainField(x).Name)
		case n.Distinct:
			if m.kind, m.x = countDistinct, x; !distinguishable(x) {
				return value{}, b.unsupported(n, "count(DISTINCT "+describe(x)+")", "values of type "+typeName(x.typ())+" are not told apart")
			}
		case !isConstant || c.null:
			m.kind, m.x = countValues, x
		}
	}
	return value{name: m.describe(), t: catalog.Int8, of: []int{b.release(m)}}, nil
}

// countArgument is the argument of count, which may be the unit's id.
func (b *binder) countArgument(n *syntax.Call) (x expr, unit bool, err error) {
	if c, ok := oneArgument(n).(*syntax.Column); ok {
		f, err := b.column(c)
		if err != nil {
			return nil, false, err
		}
		return column{of: f}, f.unit, nil
	}
	x, err = b.argument(n, 0, 1)
	return x, false, err
}

func oneArgument(n *syntax.Call) syntax.Expr {
	if len(n.Args) != 1 {
		return nil
	}
	return n.Args[0]
}

// sum binds sum(x) and avg(x).
func (b *binder) sum(n *syntax.Call, filter expr) (value, error) {
	x, g, err := b.numbers(n, 0, 1)
	if err != nil {
		return value{}, err
	}
	if n.Name == "sum" {
		m := measure{kind: sumSteps, x: x, grid: g, filter: filter}
		return value{name: m.describe(), t: sumType(x.typ()), of: []int{b.release(m)}}, nil
	}
	s := b.release(measure{kind: sumCentred, x: x, grid: g, filter: filter})
	k := b.release(measure{kind: countValues, x: x, filter: filter})
	return value{name: "avg(" + describe(x) + ")" + filterText(filter), t: meanType(x.typ()), how: meanOf, of: []int{k, s}}, nil
}

// spread binds variances and standard deviations.
func (b *binder) spread(n *syntax.Call, filter expr) (value, error) {
	x, g, err := b.numbers(n, 0, 1)
	if err != nil {
		return value{}, err
	}
	how := map[string]formula{"var_pop": variancePop, "var_samp": varianceSamp, "variance": varianceSamp,
		"stddev_pop": deviationPop, "stddev_samp": deviationSamp, "stddev": deviationSamp}[n.Name]
	s := b.release(measure{kind: sumCentred, x: x, grid: g, filter: filter})
	q := b.release(measure{kind: sumProducts, x: x, grid: g, y: x, gridY: g, filter: filter})
	k := b.release(measure{kind: countValues, x: x, filter: filter})
	return value{name: n.Name + "(" + describe(x) + ")" + filterText(filter), t: meanType(x.typ()), how: how, of: []int{k, s, q}}, nil
}

// paired binds the aggregates over pairs (y, x): rows where one of the two is NULL do not count.
func (b *binder) paired(n *syntax.Call, filter expr) (value, error) {
	y, gy, err := b.numbers(n, 0, 2)
	if err != nil {
		return value{}, err
	}
	x, gx, err := b.numbers(n, 1, 2)
	if err != nil {
		return value{}, err
	}
	name := n.Name + "(" + describe(y) + ", " + describe(x) + ")" + filterText(filter)
	same := sameExpr(x, y)
	rows := measure{kind: countValues, x: x, filter: filter}
	if !same { // in one order, so that covar(x, y) and covar(y, x) are one
		first, second := x, y
		if describe(first) > describe(second) {
			first, second = second, first
		}
		filter = both(filter, both(present(first), present(second)))
		rows = measure{kind: countRows, filter: filter}
	}
	k := b.release(rows)
	if n.Name == "regr_count" {
		return value{name: name, t: catalog.Int8, of: []int{k}}, nil
	}
	if same {
		gy = gx
	}
	sum := func(g *grid) int { return b.release(measure{kind: sumCentred, x: g.x, grid: g, filter: filter}) }
	products := func(g, h *grid) int {
		if describe(g.x) > describe(h.x) {
			g, h = h, g
		}
		return b.release(measure{kind: sumProducts, x: g.x, grid: g, y: h.x, gridY: h, filter: filter})
	}
	v := value{name: name, t: catalog.Float8}
	switch n.Name {
	case "regr_avgx":
		v.how, v.of = meanOf, []int{k, sum(gx)}
	case "regr_avgy":
		v.how, v.of = meanOf, []int{k, sum(gy)}
	case "regr_sxx":
		v.how, v.of = squares, []int{k, sum(gx), products(gx, gx)}
	case "regr_syy":
		v.how, v.of = squares, []int{k, sum(gy), products(gy, gy)}
	case "regr_sxy":
		v.how, v.of = covariances, []int{k, sum(gx), sum(gy), products(gx, gy)}
	case "covar_pop", "covar_samp":
		v.how, v.of = map[string]formula{"covar_pop": covariancePop, "covar_samp": covarianceSamp}[n.Name], []int{k, sum(gx), sum(gy), products(gx, gy)}
	case "regr_slope", "regr_intercept":
		v.how = map[string]formula{"regr_slope": slope, "regr_intercept": intercept}[n.Name]
		v.of = []int{k, sum(gx), sum(gy), products(gx, gy), products(gx, gx)}
	default:
		v.how = map[string]formula{"corr": correlation, "regr_r2": determination}[n.Name]
		v.of = []int{k, sum(gx), sum(gy), products(gx, gy), products(gx, gx), products(gy, gy)}
	}
	return v, nil
}

// both is a AND b, where nil is no condition.
func both(a, b expr) expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return binary{op: syntax.And, l: a, r: b, t: catalog.Bool}
	}
}

// present is x IS NOT NULL; nil where it always holds.
func present(x expr) expr {
	if neverNull(x) {
		return nil
	}
	return is{x: x, what: syntax.IsNull, not: true}
}

// argument binds argument i of want arguments over the columns of a row.
func (b *binder) argument(n *syntax.Call, i, want int) (expr, error) {
	if n.Star || len(n.Args) != want {
		return nil, b.mismatch(n, n.Name+map[int]string{1: " needs one argument", 2: " needs two arguments"}[want], "")
	}
	return b.rowValue(n.Args[i])
}

// rowValue binds an expression over the columns of a row that an aggregate reads.
func (b *binder) rowValue(n syntax.Expr) (expr, error) {
	x, err := b.expression(rowScope{b}, n)
	if err != nil {
		return nil, err
	}
	return b.coerce(n, x, catalog.Text)
}

// numbers binds an argument that must be a number with bounds, and makes its grid.
func (b *binder) numbers(n *syntax.Call, i, want int) (expr, *grid, error) {
	x, err := b.argument(n, i, want)
	if err != nil {
		return nil, nil, err
	}
	if !x.typ().IsNumber() {
		return nil, nil, b.mismatch(n, "there is no function "+n.Name+"("+typeName(x.typ())+")", n.Name+" needs numbers")
	}
	g, err := b.gridOf(n.Args[i], x)
	return x, g, err
}

// gridOf is the grid of a bound expression over a row.
func (b *binder) gridOf(n syntax.Expr, x expr) (*grid, error) {
	if boundsOf(x) == nil {
		return nil, b.missingBounds(n, x)
	}
	return newGrid(x, b.at(n))
}

// missingBounds names a column that has no bounds, and that an aggregate or the expression in it would need.
func (b *binder) missingBounds(n syntax.Expr, x expr) error {
	for _, f := range columnsOf(x) {
		if f.Bounds == nil && (f.Type.IsNumber() || f.Type.IsTime()) {
			return fault.MissingBounds(b.at(n), f.Name)
		}
	}
	if f := plainField(x); f != nil {
		return fault.MissingBounds(b.at(n), f.Name)
	}
	return fault.UnboundedExpression(b.at(n), describe(x))
}

// neverNull reports whether an expression has a value on every row.
func neverNull(e expr) bool {
	f := plainField(e)
	return f != nil && f.NotNull
}

// sumType is the type that PostgreSQL gives to sum(x).
func sumType(t catalog.Type) catalog.Type {
	switch t {
	case catalog.Int2, catalog.Int4:
		return catalog.Int8
	case catalog.Int8:
		return catalog.Numeric
	default:
		return t
	}
}

// meanType is the type that PostgreSQL gives to avg(x).
func meanType(t catalog.Type) catalog.Type {
	if isFloat(t) {
		return catalog.Float8
	}
	return catalog.Numeric
}
