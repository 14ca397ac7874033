package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// perUnit binds a query that groups by the privacy unit, or by it and more: exact statistics of single people, which are rows of theirs
// like any others. They are never an answer; the release block around them bounds and adds them up.
func (b *binder) perUnit(r *relation) (*relation, error) {
	g := &grouping{binder: b, p: b.projection(r), keys: map[*field]*field{}}
	grouped := false
	for _, n := range b.query.GroupBy {
		target := b.groupTarget(n)
		e, err := b.rowOutput(target)
		if err != nil {
			return nil, err
		}
		f := plainField(e)
		if f == nil || !oneText(e) {
			return nil, b.unsupported(n, "this key of a group inside a query over rows of people", "group by plain columns whose equal values are written alike")
		}
		if g.keys[f] != nil {
			continue
		}
		grouped = grouped || slices.Contains(r.owners, f)
		g.keys[f] = g.p.add(f.Name, e, true)
		g.p.query.keys = append(g.p.query.keys, e)
	}
	if !grouped {
		return nil, fault.Unsupported(b.position(b.query.Pos), "an aggregate over the rows of many people inside another query",
			"GROUP BY "+r.unitName()+" there, or ask for its result by itself")
	}
	for _, f := range g.p.out.owners {
		f.present = true // rows without a unit are left out before they are grouped
	}
	g.p.query.where = all(slices.DeleteFunc([]expr{is{x: column{of: r.owner()}, what: syntax.IsNull, not: true}, b.bound.where}, func(e expr) bool { return e == nil }))
	return g.above(r)
}

// groupTarget is what an item of GROUP BY means: an output by its position or alias, or itself. A name is first a column.
func (b *binder) groupTarget(n syntax.Expr) syntax.Expr {
	if c, ok := n.(*syntax.Column); ok {
		if _, exists := b.visible(c.Name); exists {
			return n
		}
	}
	return aliased(b.query, n)
}

// grouping is a query with one row for each unit (and key), and the scope above its aggregates.
type grouping struct {
	*binder
	p    *projection
	keys map[*field]*field // of the rows, to the groups' fields
}

// above binds what stands above the aggregates: outputs and HAVING.
func (g *grouping) above(r *relation) (*relation, error) {
	b := g.binder
	var items []expr
	for _, item := range b.query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			return nil, b.unsupported(star, "* beside GROUP BY", "name the columns")
		}
		e, err := g.output(item.Expr)
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	var having expr
	if b.query.Having != nil {
		var err error
		if having, err = b.condition(g, b.query.Having); err != nil {
			return nil, err
		}
	}
	g.p.query.from = r.node // with what the arguments of aggregates have joined
	groups := g.p.out
	groups.maxRows, groups.maxGroups = g.bounds(r)
	groups.keys = []rowKey{{fields: slices.Clone(groups.fields[:len(g.p.query.keys)])}}
	if err := b.addLeaf(&g.p.leaf.leaf); err != nil {
		return nil, err
	}
	b.bound.where = having
	p := b.projection(groups)
	for i, item := range b.query.Items {
		p.add(itemName(item), items[i], true)
	}
	if b.query.Distinct && len(p.out.owners) == 0 {
		return nil, fault.Unsupported(b.position(b.query.Pos), "SELECT DISTINCT of statistics of single people", "leave DISTINCT out")
	}
	return b.finish(p)
}

// bounds are those of one row for each unit and key: grouped by the unit alone each has one row, else one in each of its groups.
func (g *grouping) bounds(r *relation) (rows, groups int64) {
	if len(g.p.query.keys) == len(g.p.out.owners) {
		return 1, 1
	}
	if r.maxGroups > 0 {
		return r.maxGroups, r.maxGroups
	}
	return r.maxRows, 0
}

// output binds an item of the select list.
func (g *grouping) output(n syntax.Expr) (expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := g.group(c)
		return column{of: f}, err
	}
	e, err := g.expression(g, n)
	if err != nil {
		return nil, err
	}
	return g.coerce(n, e, catalog.Text)
}

// group finds the key that a name means.
func (g *grouping) group(n *syntax.Column) (*field, error) {
	f, err := g.binder.column(n)
	if err != nil {
		return nil, err
	}
	if key := g.keys[f]; key != nil {
		return key, nil
	}
	return nil, g.mismatch(n, "column "+fault.Quote(f.Name)+" is neither a group key nor inside an aggregate", "add it to GROUP BY")
}

// column is a key as an operand.
func (g *grouping) column(n *syntax.Column) (expr, error) {
	f, err := g.group(n)
	if err != nil {
		return nil, err
	}
	if f.identity() {
		return nil, fault.UnitColumn(g.at(n), f.Name)
	}
	return column{of: f}, nil
}

// computes is false: what stands above the aggregates of single people is computed row by row, and must not fail on any.
func (*grouping) computes() bool { return false }

// call binds an aggregate over a unit's rows, or a function of groups.
func (g *grouping) call(n *syntax.Call) (expr, error) {
	f, err := g.function(n)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(unitAggregates, n.Name):
	case f.kind == aggregate || f.kind == refusedAggregate:
		return nil, g.unsupported(n, "aggregate "+n.Name+" over the rows of single people", "count, sum, avg, min, max, bool_or and bool_and are taken")
	default:
		return g.rowCall(g, n)
	}
	if len(n.OrderBy)+len(n.Within) > 0 || n.Over != nil {
		return nil, g.unsupported(n, "ORDER BY or OVER in an aggregate of single people", "")
	}
	return g.aggregateOf(n, unitAggregate{name: n.Name, distinct: n.Distinct})
}

// aggregateOf binds the argument and the filter of an aggregate.
func (g *grouping) aggregateOf(n *syntax.Call, e unitAggregate) (expr, error) {
	var err error
	if n.Filter != nil {
		if e.filter, err = g.condition(rowScope{g.binder}, n.Filter); err != nil {
			return nil, err
		}
	}
	if n.Star {
		return g.aggregated(e, n)
	}
	if len(n.Args) != 1 {
		return nil, g.mismatch(n, n.Name+" needs one argument", "")
	}
	if f, ok := g.identityOf(n.Args[0]); ok && n.Name == "count" {
		e.x = column{of: f}
	} else if e.x, err = g.expression(rowScope{g.binder}, n.Args[0]); err != nil {
		return nil, err
	}
	if e.x, err = g.coerce(n.Args[0], e.x, catalog.Text); err != nil {
		return nil, err
	}
	if e.name == "sum" || e.name == "avg" {
		if e.x, err = g.summable(n.Args[0], e.x); err != nil {
			return nil, err
		}
	}
	return g.aggregated(e, n)
}

// summable is x in a form whose sum over any rows raises no error: a column of numerics without fixed digits can hold two whose sum
// PostgreSQL cannot (A29).
func (g *grouping) summable(n syntax.Expr, x expr) (expr, error) {
	if f := plainField(x); f == nil || f.Type != catalog.Numeric {
		return x, nil
	} else if _, fixed := scale(x); fixed {
		return x, nil
	}
	o, err := g.operandOf(n, x)
	return computedOf(x, o), err
}

// unitAggregates are the aggregates that a query per unit may compute: each is a function of the set of values, in whatever order
// PostgreSQL meets them.
var unitAggregates = []string{"count", "sum", "avg", "min", "max", "bool_or", "bool_and", "every"}

// unitAggregate is an exact aggregate over the rows of one unit. It raises no error, and does not depend on the order of the rows:
// floats are added as numerics.
type unitAggregate struct {
	name     string
	x        expr       // nil: count(*)
	args     []constant // of a function that exists only with OVER, after x
	distinct bool
	filter   expr        // nil: none
	over     *unitWindow // nil: one value for the whole group
	t        catalog.Type
}

func (e unitAggregate) typ() catalog.Type { return e.t }

func (e unitAggregate) children() []expr {
	var all []expr
	for _, x := range []expr{e.x, e.filter} {
		if x != nil {
			all = append(all, x)
		}
	}
	if e.over != nil {
		all = append(all, e.over.children()...)
	}
	return all
}

// aggregated types an aggregate, makes it an output of the groups, and derives what bounds it.
func (g *grouping) aggregated(e unitAggregate, n *syntax.Call) (expr, error) {
	wrong := func() (expr, error) {
		return nil, g.mismatch(n, "there is no function "+n.Name+"("+typeName(e.x.typ())+")", "")
	}
	rows := new(big.Rat).SetInt64(e.over.most(min(g.p.of.maxRows, maxBound)))
	within := boundsOrNil(e.x)
	var bounded *catalog.Bounds
	switch e.name {
	case "count":
		e.t = catalog.Int8
		if g.p.of.maxRows > 0 {
			bounded = &catalog.Bounds{Lo: new(big.Rat), Hi: rows, Step: one()}
		}
	case "sum", "avg":
		if !e.x.typ().IsNumber() {
			return wrong()
		}
		e.t = meanType(carrierOf(e.x))
		if e.name == "sum" {
			e.t = sumType(carrierOf(e.x))
		}
		if within != nil && e.name == "avg" {
			bounded = &catalog.Bounds{Lo: within.lo, Hi: within.hi}
		}
		if within != nil && e.name == "sum" && g.p.of.maxRows > 0 {
			lo, hi := new(big.Rat).Mul(rows, within.lo), new(big.Rat).Mul(rows, within.hi)
			if within.lo.Sign() > 0 {
				lo = within.lo
			}
			if within.hi.Sign() < 0 {
				hi = within.hi
			}
			bounded = &catalog.Bounds{Lo: lo, Hi: hi, Step: within.step}
		}
	case "min", "max":
		if familyOf(e.x.typ()) == boolFamily || familyOf(e.x.typ()) == uuidFamily || e.x.typ() == catalog.Enum {
			return wrong()
		}
		e.t = carrierOf(e.x)
		if within != nil {
			bounded = &catalog.Bounds{Lo: within.lo, Hi: within.hi, Step: within.step}
		}
	default:
		if e.x.typ() != catalog.Bool {
			return wrong()
		}
		e.t = catalog.Bool
	}
	if e.addsFloats() {
		if within == nil {
			return nil, fault.MissingBounds(g.at(n.Args[0]), describe(e.x))
		}
		if reach := maxRat(new(big.Rat).Abs(within.lo), new(big.Rat).Abs(within.hi)); floor(reach).BitLen() > 900 {
			return nil, g.unsupported(n, "a sum of numbers this large", "")
		}
	}
	f := g.p.add(n.Name, e, true)
	c := *f.Column
	c.Type, c.Bounds, c.NotNull = e.t, bounded, e.name == "count"
	f.Column = &c
	f.label = describe(e)
	return column{of: f}, nil
}

func boundsOrNil(e expr) *bounds {
	if e == nil {
		return nil
	}
	return boundsOf(e)
}

// addsFloats reports whether values of floats are added.
func (e unitAggregate) addsFloats() bool {
	return e.x != nil && (e.name == "sum" || e.name == "avg") && isFloat(e.x.typ())
}

// unitAggregate prints an aggregate over the rows of one unit. Floats are clamped to their bounds and added as numerics: their sum as floats
// depends on the order in which PostgreSQL reads the rows, which another unit's may change.
func (p *printer) unitAggregate(e unitAggregate) {
	p.windowed(e, func() {
		if e.isRank() {
			p.rank(e)
		} else {
			p.ofUnit(e)
		}
	})
}

// ofUnit prints the aggregate itself.
func (p *printer) ofUnit(e unitAggregate) {
	floats := e.addsFloats() && !p.inline
	if floats {
		p.write("pg_catalog.round(")
	}
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(e.name, "(")
	if e.distinct {
		p.write("DISTINCT ")
	}
	switch {
	case e.x == nil:
		p.write("*")
	case floats:
		w, x := boundsOf(e.x), p.text(e.x)
		bound := func(v *big.Rat) string { return p.sub(func() { p.arg(decimalText(v), "double precision") }) }
		p.write(fmt.Sprintf("(CASE WHEN %[1]s < %[2]s THEN %[2]s WHEN %[1]s > %[3]s THEN %[3]s ELSE %[1]s END)::numeric", x, bound(w.lo), bound(w.hi)))
	case e.name == "min" || e.name == "max":
		p.write(p.settled(e.x, p.sub(func() { p.collated(e.x) })))
	default:
		p.collated(e.x)
	}
	p.write(")")
	if e.filter != nil {
		p.write(" FILTER (WHERE ")
		p.expr(e.filter)
		p.write(")")
	}
	p.over(e.over)
	if floats { // a smaller number than 10^-300 might be none for the cast
		p.write(", 300)::double precision")
	}
}
