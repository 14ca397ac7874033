package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// measureKind is what a release adds up.
type measureKind int

const (
	countRows   measureKind = iota // rows that pass the filter
	countValues                    // of these, rows where the column is not NULL
	countUnits                     // privacy units that have a row that passes the filter
	sumSteps                       // the column's values in steps of its grid
	sumCentred                     // the same after subtracting the middle of the bounds from each value
)

// measure is one exact integer per group, which one release makes noisy.
type measure struct {
	kind   measureKind
	x      expr   // over columns; nil for countRows; the unit's id for countUnits
	grid   *grid  // sums only
	filter expr   // over columns; nil: none
	name   string // its description, by which equal measures are found
}

// value is what outputs refer to: one release as it is, or the mean of two.
type value struct {
	name  string // as the analyst could have written it
	t     catalog.Type
	sum   int // index into boundQuery.measures
	count int // mean: the index of its count; -1 for a release as it is
}

func (v value) isMean() bool { return v.count >= 0 }

// aggregate binds an aggregate call to a value. Equal aggregates share their releases, and a mean is made of a centred sum
// and a count that a count(x) beside it shares: nobody pays twice, and no difference of two noises cancels (A07).
func (b *binder) aggregate(n *syntax.Call) (expr, error) {
	if len(n.OrderBy) > 0 || len(n.Within) > 0 {
		return nil, b.unsupported(n, "ORDER BY inside an aggregate", "")
	}
	var filter expr
	if n.Filter != nil {
		f, err := b.condition(rowScope{b}, n.Filter)
		if err != nil {
			return nil, err
		}
		filter = f
	}
	var v value
	var err error
	switch {
	case n.Name == "count":
		v, err = b.count(n, filter)
	case n.Distinct:
		return nil, b.unsupported(n, n.Name+"(DISTINCT ...)", "only count(DISTINCT "+b.bound.source.unitName()+") is taken")
	default:
		v, err = b.sum(n, filter)
	}
	if err != nil {
		return nil, err
	}
	return b.value(v), nil
}

// value gives the reference to v, which may have been bound before.
func (b *binder) value(v value) valueRef {
	for i, known := range b.bound.values {
		if known.sum == v.sum && known.count == v.count {
			return valueRef{index: i, t: v.t}
		}
	}
	b.bound.values = append(b.bound.values, v)
	return valueRef{index: len(b.bound.values) - 1, t: v.t}
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
		if known.name == m.name {
			return i
		}
	}
	b.bound.measures = append(b.bound.measures, m)
	return len(b.bound.measures) - 1
}

// count binds count(*), count(x) and count(DISTINCT unit).
func (b *binder) count(n *syntax.Call, filter expr) (value, error) {
	m := measure{kind: countRows, filter: filter}
	if !n.Star {
		x, err := b.argument(n)
		if err != nil {
			return value{}, err
		}
		unit := plainField(x) != nil && plainField(x).unit
		switch {
		case n.Distinct && unit:
			m.kind, m.x = countUnits, x
		case n.Distinct:
			return value{}, b.unsupported(n, "count(DISTINCT "+describe(x)+")",
				"only people can be counted distinctly: count(DISTINCT "+b.bound.source.unitName()+")")
		case unit:
			return value{}, fault.UnitColumn(b.at(n.Args[0]), describe(x))
		default:
			m.kind, m.x = countValues, x
		}
	}
	return value{name: m.describe(), t: catalog.Int8, sum: b.release(m), count: -1}, nil
}

// sum binds sum(x) and avg(x).
func (b *binder) sum(n *syntax.Call, filter expr) (value, error) {
	x, err := b.argument(n)
	if err != nil {
		return value{}, err
	}
	t := x.typ()
	switch c := plainField(x); {
	case c != nil && c.unit:
		return value{}, fault.UnitColumn(b.at(n.Args[0]), c.Name)
	case !t.IsNumber():
		return value{}, b.mismatch(n, "there is no function "+n.Name+"("+typeName(t)+")", n.Name+" needs numbers")
	case boundsOf(x) == nil:
		return value{}, b.missingBounds(n.Args[0], x)
	}
	g, err := newGrid(x, b.at(n.Args[0]))
	if err != nil {
		return value{}, err
	}
	if n.Name == "sum" {
		m := measure{kind: sumSteps, x: x, grid: g, filter: filter}
		return value{name: m.describe(), t: sumType(t), sum: b.release(m), count: -1}, nil
	}
	s := b.release(measure{kind: sumCentred, x: x, grid: g, filter: filter})
	k := b.release(measure{kind: countValues, x: x, filter: filter})
	name := "avg(" + describe(x) + ")" + filterText(filter)
	return value{name: name, t: meanType(t), sum: s, count: k}, nil
}

// missingBounds names a column that has no bounds, and that an aggregate or the expression in it would need.
func (b *binder) missingBounds(n syntax.Expr, x expr) error {
	unbounded := x
	var walk func(expr)
	walk = func(e expr) {
		if f := plainField(e); f != nil && f.Bounds == nil && (f.Type.IsNumber() || f.Type.IsTime()) {
			unbounded = e
		}
		for _, child := range children(e) {
			walk(child)
		}
	}
	walk(x)
	return fault.MissingBounds(b.at(n), describe(unbounded))
}

// argument is what an aggregate is called with: an expression over a row, or the unit's id.
func (b *binder) argument(n *syntax.Call) (expr, error) {
	if n.Star || len(n.Args) != 1 {
		return nil, b.mismatch(n, n.Name+" needs one argument", "")
	}
	if c, ok := n.Args[0].(*syntax.Column); ok {
		f, err := b.column(c)
		return column{of: f}, err
	}
	x, err := b.expression(rowScope{b}, n.Args[0])
	if err != nil {
		return nil, err
	}
	return b.coerce(n.Args[0], x, catalog.Text)
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

// describe names the measure as SQL over the analyst's names; two measures are the same iff their descriptions are.
func (m measure) describe() string {
	var s string
	switch m.kind {
	case countRows:
		s = "count(*)"
	case countValues:
		s = "count(" + describe(m.x) + ")"
	case countUnits:
		s = "count(DISTINCT " + describe(m.x) + ")"
	case sumSteps:
		s = "sum(" + describe(m.x) + ")"
	case sumCentred:
		centre, sign := m.grid.value(m.grid.centre()), " - "
		if centre.Sign() < 0 {
			sign = " + "
		}
		s = "sum(" + describe(m.x) + sign + decimalOrFraction(centre.Abs(centre)) + ")"
	default:
		panic("sqlrewrite: measure without a case in describe")
	}
	return s + filterText(m.filter)
}

func filterText(filter expr) string {
	if filter == nil {
		return ""
	}
	return " FILTER (WHERE " + describe(filter) + ")"
}
