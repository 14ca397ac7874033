package bind

import (
	"maps"
	"math/big"
	"reflect"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// perUnit binds a query that groups by the privacy unit, or by it and more: exact statistics of single people, which are rows of theirs
// like any others. They are never an answer; the release block around them bounds and adds them up.
//
// A key that tells one unit (Field.Identity) stands for the unit and itself: its groups are then of one unit, whatever the data. path is
// the field by which rows that are used lead to their unit; nil: none.
func perUnit(b *algebra.Binder, r *algebra.Relation, path *algebra.Field) (*algebra.Relation, error) {
	g := &grouping{Binder: b, p: newProjection(b, r), keys: map[*algebra.Field]*algebra.Field{}}
	if b.Query.Sets != nil {
		return nil, fault.Unsupported(b.Position(b.Query.Pos), "ROLLUP, CUBE or GROUPING SETS inside a query over rows of people",
			"group by plain columns")
	}
	add := func(f *algebra.Field) {
		e := algebra.Column{Of: f}
		key := g.p.field(f.Name, e)
		key.Held = key.Held || slices.Contains(r.Owners, f) // rows without a unit are left out before they are grouped
		g.keys[f] = g.p.put(key, e, true)
		g.p.query.Keys = append(g.p.query.Keys, e)
	}
	grouped := false
	for _, n := range b.Query.GroupBy {
		f, err := g.item(n, "this key of a group inside a query over rows of people",
			"group by whole numbers, texts, dates and times, and by numerics that are rounded")
		if err != nil {
			return nil, err
		}
		if f == nil || g.keys[f] != nil {
			continue
		}
		grouped = grouped || slices.Contains(r.Owners, f)
		if tells(r, f) && (g.own == nil || g.own.Anchor.Table == nil) {
			g.own = f
		}
		add(f)
	}
	switch unit := r.Owner(); {
	case grouped:
		g.own = nil
	case g.own != nil && algebra.OneText(algebra.Column{Of: unit}):
		g.noteOwn(path)
		add(unit)
	default:
		refused := fault.Unsupported(b.Position(b.Query.Pos), "an aggregate over the rows of many people inside another query",
			"to compare groups with its value, write it among their outputs: SELECT x, count(*) / (SELECT count(*) FROM t) FROM t GROUP BY x")
		if b.Query.Groups() {
			refused = refused.WithHint("group by " + r.UnitName() + " too, or ask for its result by itself").WithPart(r.UnitText())
		}
		return nil, refused
	}
	g.p.query.Where = algebra.All(slices.DeleteFunc([]algebra.Expr{algebra.Is{X: algebra.Column{Of: r.Owner()}, What: syntax.IsNull,
		Not: true}, b.Bound.Where}, func(e algebra.Expr) bool { return e == nil }))
	return g.above(r)
}

// grouping is a query with one row for each unit (and key), and the scope above its aggregates.
type grouping struct {
	*algebra.Binder
	p        *projection
	keys     map[*algebra.Field]*algebra.Field // of the rows, to the groups' fields
	computed []computedKey
	own      *algebra.Field // the key that stands for the unit, too; nil: the unit is one
	sure     bool           // it is not NULL, and all rows with one value of it are one unit's
}

// computedKey is a key that is computed of a row.
type computedKey struct {
	of    algebra.Expr
	as    syntax.Expr // as GROUP BY or the select list has it
	field *algebra.Field
}

// item binds an item of GROUP BY: the column that it is, or nil where nothing is left to do: a constant is none, and what is computed is a
// key then. Equal keys must have one text; what and hint are the refusal of others.
func (g *grouping) item(n syntax.Expr, what, hint string) (*algebra.Field, error) {
	target, err := groupItem(g.Binder, n)
	if err != nil {
		return nil, err
	}
	e, err := rowOutput(g.Binder, target)
	if err != nil || algebra.IsConstant(e) {
		return nil, err
	}
	if !algebra.OneText(e) {
		return nil, g.Unsupported(n, what, hint)
	}
	f := algebra.PlainField(e)
	if _, known := g.repeated(target); f == nil && !known {
		key := computedKey{of: e, as: target, field: g.p.put(g.p.field(outputName(target), e), e, true)}
		g.computed = append(g.computed, key)
		g.p.query.Keys = append(g.p.query.Keys, e)
	}
	return f, nil
}

// repeated finds the computed key that an expression above the aggregates repeats.
func (g *grouping) repeated(n syntax.Expr) (algebra.Expr, bool) {
	for _, k := range g.computed {
		if reflect.TypeOf(k.as) != reflect.TypeOf(n) {
			continue
		}
		if x, err := rowValue(g.Binder, n); err == nil && algebra.Same(x, k.of) {
			return algebra.Column{Of: k.field}, true
		}
	}
	return nil, false
}

// tells reports whether a field tells one unit of the kind that a relation's rows belong to.
func tells(r *algebra.Relation, f *algebra.Field) bool {
	kind := ""
	if r.Pending != nil {
		kind = r.Pending.From.Identifies
	} else if r.Owned() {
		kind = r.Owner().Identifies
	}
	return f.Identity() && f.Identifies == kind
}

// dividesByKey reports whether SELECT DISTINCT of columns makes the groups of a key that tells one unit: the unit's id is not among them.
func dividesByKey(b *algebra.Binder, r *algebra.Relation) bool {
	if !b.Query.Distinct || !plainColumns(b) {
		return false
	}
	divides := false
	for _, item := range b.Query.Items {
		f, err := column(b, item.Expr.(*syntax.Column))
		if err != nil || slices.Contains(r.Owners, f) {
			return false
		}
		divides = divides || tells(r, f) && !f.PrivateKeys
	}
	return divides
}

// noteOwn says so where the groups may be others than those that were asked for.
func (g *grouping) noteOwn(path *algebra.Field) {
	f := g.own
	if g.sure = f.Anchor.Table != nil && (f.NotNull() || f == path); g.sure {
		g.Bound.Shared().Rely(algebra.Reliance{Table: f.Anchor.Table, Columns: []string{f.Anchor.Column}})
	} else {
		g.p.out.Note("split-groups", "rows of different people with one %s, or with none, are different groups", f.Name)
	}
}

// above binds what stands above the aggregates: outputs and HAVING.
func (g *grouping) above(r *algebra.Relation) (*algebra.Relation, error) {
	b := g.Binder
	var items []algebra.Expr
	for _, item := range b.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			return nil, b.Unsupported(star, "* beside GROUP BY", "name the columns")
		}
		e, err := g.output(item.Expr)
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	var having algebra.Expr
	if b.Query.Having != nil {
		var err error
		if having, err = condition(b, g, b.Query.Having); err != nil {
			return nil, err
		}
	}
	g.p.query.From = b.Bound.Source.Node // with what the arguments of aggregates have joined
	groups := g.p.out
	groups.MaxRows, groups.MaxGroups, groups.MaxTotal = g.bounds(r)
	groups.Keys = []algebra.RowKey{{Fields: slices.Clone(groups.Fields[:len(g.p.query.Keys)])}}
	if err := b.AddLeaf(&g.p.leaf.Leaf); err != nil {
		return nil, err
	}
	b.Bound.Source, b.Bound.Where = groups, having
	p := newResult(b, groups)
	for i, item := range b.Query.Items {
		p.add(itemName(item), items[i], true)
	}
	if b.Query.Distinct && len(p.out.Owners) == 0 {
		return nil, fault.Unsupported(b.Position(b.Query.Pos), "SELECT DISTINCT of statistics of single people", "leave DISTINCT out")
	}
	return finish(b, p)
}

// bounds are those of one row for each unit and key: grouped by the unit alone each has one row, else one in each of its groups. Of keys
// that tell the unit it has as many as it has rows in all.
func (g *grouping) bounds(r *algebra.Relation) (rows, groups, total int64) {
	rows, groups, total = r.MaxRows, r.MaxGroups, r.MaxTotal
	switch most := g.mostGroups(r); {
	case len(g.p.query.Keys) == len(g.p.out.Owners):
		return 1, 1, 0
	case most > 0:
		rows, total = most, most
		if groups == 0 || groups > most {
			groups = most
		}
	case groups > 0:
		rows = groups
	}
	if rows == 1 {
		total = 0
	}
	return rows, groups, total
}

// mostGroups bounds the groups of one unit by a key that says which unit a row is of: it has no more groups than rows. By that key alone it
// has no more than rows in the key's table, and one more where the key is NULL. 0: nothing bounds them.
func (g *grouping) mostGroups(r *algebra.Relation) int64 {
	inAll := func(rows, groups, total int64) int64 {
		if total > 0 {
			return total
		}
		return stability.Bound(rows, groups, stability.MultiplyCapped)
	}
	if g.own == nil {
		return 0
	}
	most := inAll(r.MaxRows, r.MaxGroups, r.MaxTotal)
	if t := g.own.Anchor.Table; t != nil && len(g.p.query.Keys) == 1+len(g.p.out.Owners) {
		there := inAll(t.MaxRows, t.MaxGroups, t.MaxTotal)
		if there > 0 && !g.sure {
			there = addCapped(there, 1)
		}
		if most == 0 || there > 0 && there < most {
			most = there
		}
	}
	return most
}

// output binds an item of the select list.
func (g *grouping) output(n syntax.Expr) (algebra.Expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := g.group(c)
		return algebra.Column{Of: f}, err
	}
	return settled(g.Binder, g, n)
}

// group finds the key that a name means.
func (g *grouping) group(n *syntax.Column) (*algebra.Field, error) {
	f, err := column(g.Binder, n)
	if err != nil {
		return nil, err
	}
	if key := g.keys[f]; key != nil {
		return key, nil
	}
	return nil, g.Mismatch(n, "column "+fault.Quote(f.Name)+" is neither a group key nor inside an aggregate", "add it to GROUP BY")
}

// Column is a key as an operand.
func (g *grouping) Column(n *syntax.Column) (algebra.Expr, error) {
	f, err := g.group(n)
	if err != nil {
		return nil, err
	}
	if f.Identity() {
		return nil, fault.UnitColumn(g.At(n), f.Name)
	}
	return algebra.Column{Of: f}, nil
}

// Computes is false: what stands above the aggregates of single people is computed row by row, and must not fail on any.
func (*grouping) Computes() bool { return false }

// Call binds an aggregate over a unit's rows, or a function of groups.
func (g *grouping) Call(n *syntax.Call) (algebra.Expr, error) {
	f, err := domain.Function(g.Binder, n)
	switch {
	case err != nil:
		return nil, err
	case f.IsOfUnit():
	case f.IsAggregate() && !g.p.of.Owned():
		return nil, g.refusePublic(n)
	case f.IsAggregate():
		return nil, g.Unsupported(n, "aggregate "+n.Name+" over the rows of single people",
			"count, sum, avg, min, max, bool_or and bool_and are taken")
	default:
		return call(g.Binder, g, n)
	}
	if len(n.OrderBy)+len(n.Within) > 0 || n.Over != nil {
		return nil, g.Unsupported(n, "ORDER BY or OVER in an aggregate of single people", "")
	}
	return g.aggregateOf(n, algebra.Aggregate{Name: n.Name, Distinct: n.Distinct, Safe: true}, n.Name)
}

// aggregateOf binds the argument and the filter of an aggregate.
func (g *grouping) aggregateOf(n *syntax.Call, e algebra.Aggregate, name string) (algebra.Expr, error) {
	var err error
	if n.Filter != nil {
		if e.Filter, err = condition(g.Binder, rowScope{g.Binder}, n.Filter); err != nil {
			return nil, err
		}
	}
	if n.Star && e.Name != "count" {
		return nil, g.Mismatch(n, n.Name+" needs one argument", "")
	}
	if e.Star = n.Star; n.Star {
		return g.aggregated(e, n, name)
	}
	if len(n.Args) != 1 {
		return nil, g.Mismatch(n, n.Name+" needs one argument", "")
	}
	var x algebra.Expr
	if n.Name == "count" {
		p, ids, refused := counted(g.Binder, n)
		if refused != nil {
			return nil, refused
		}
		if ids {
			e.Filter = both(e.Filter, p.cond)
			if e.Star = !n.Distinct; n.Distinct {
				e.Args = []algebra.Expr{algebra.Column{Of: p.of[0]}}
			}
			return g.aggregated(e, n, name)
		}
		x, err = countArgument(g.Binder, n)
	} else {
		x, err = rowValue(g.Binder, n.Args[0])
	}
	if err != nil {
		return nil, err
	}
	if e.Name == "sum" || e.Name == "avg" {
		if x, err = g.summable(n.Args[0], x); err != nil {
			return nil, err
		}
	}
	e.Args = []algebra.Expr{x}
	return g.aggregated(e, n, name)
}

// summable is x in a form whose sum over any rows raises no error: a column of numerics without fixed digits can hold two whose sum
// PostgreSQL cannot (A29).
func (g *grouping) summable(n syntax.Expr, x algebra.Expr) (algebra.Expr, error) {
	if f := algebra.PlainField(x); f == nil || f.Type != catalog.Numeric {
		return x, nil
	} else if _, fixed := algebra.Scale(x); fixed {
		return x, nil
	}
	o, err := domain.OperandOf(g.Binder, n, x)
	return domain.ComputedOf(x, o), err
}

// aggregated types an aggregate, makes it an output of the groups under a name, and derives what bounds it.
func (g *grouping) aggregated(e algebra.Aggregate, n *syntax.Call, name string) (algebra.Expr, error) {
	x := e.X()
	var of catalog.Type
	if x != nil {
		of = algebra.CarrierOf(x)
	}
	form := domain.BuiltinOf(e.Name).Form
	var ok bool
	if e.T, ok = form.Result(of); !ok || form == domain.ExtremeForm && x.Typ() == catalog.Enum {
		return nil, g.Mismatch(n, "there is no function "+n.Name+"("+scalar.TypeName(x.Typ())+")", "")
	}
	within := boundsOrNil(x)
	most := g.p.of.MaxRows
	if len(g.keys) > 0 && !g.p.of.Owned() {
		most = stability.RowsOfGroup(g.p.of.Node, slices.Collect(maps.Keys(g.keys)))
	}
	bounded := boundsOfAggregate(form, within, most, new(big.Rat).SetInt64(e.Over.Most(min(most, stability.MaxBound))))
	if e.AddsFloats() {
		if within == nil {
			return nil, fault.MissingBounds(g.At(n.Args[0]), sqlprint.Describe(x))
		}
		if reach := scalar.MaxRat(new(big.Rat).Abs(within.Lo), new(big.Rat).Abs(within.Hi)); scalar.Floor(reach).BitLen() > 900 {
			return nil, g.Unsupported(n, "a sum of numbers this large", "")
		}
	}
	f := g.p.field(name, e)
	f.Type, f.Bounds, f.Column.NotNull = e.T, bounded, e.Name == "count" && (e.Over == nil || !e.Over.Sequential)
	f.Public, f.Label = !g.p.of.Owned(), sqlprint.Describe(e)
	return algebra.Column{Of: g.p.put(f, e, true)}, nil
}

// publicGroups binds a query that groups public rows. The groups are public rows with different keys. Rows of people may decide in which
// order PostgreSQL reads public rows: aggregates whose value depends on this order are refused.
func publicGroups(b *algebra.Binder, r *algebra.Relation) (*algebra.Relation, error) {
	g := &grouping{Binder: b, p: newProjection(b, r), keys: map[*algebra.Field]*algebra.Field{}}
	if b.Query.Sets != nil {
		return nil, fault.Unsupported(b.Position(b.Query.Pos), "ROLLUP, CUBE or GROUPING SETS of public rows that are joined to rows of people",
			"group by plain columns")
	}
	for _, n := range b.Query.GroupBy {
		f, err := g.item(n, "this key of groups of public rows that are joined to rows of people",
			"group by columns whose equal values have one text")
		if err != nil {
			return nil, err
		}
		if f == nil || g.keys[f] != nil {
			continue
		}
		e := algebra.Column{Of: f}
		g.keys[f] = g.p.put(g.p.field(f.Name, e), e, true)
		g.p.query.Keys = append(g.p.query.Keys, e)
	}
	if len(g.p.query.Keys) == 0 {
		return nil, fault.Unsupported(b.Position(b.Query.Pos),
			"an aggregate of all rows of a public table as an item of FROM beside rows of people",
			"write it as a value, (SELECT count(*) FROM t), or group by a column and join on it")
	}
	return g.above(r)
}

// refusePublic refuses an aggregate of public rows that are joined to rows of people.
func (g *grouping) refusePublic(n *syntax.Call) error {
	what := "aggregate " + n.Name + " of public rows that are joined to rows of people"
	switch f := domain.BuiltinOf(n.Name); {
	case f.Form.Pairs():
		return g.Unsupported(n, what, n.Name+" adds floats, whose sum depends on the order in which PostgreSQL reads the rows, and one person's "+
			"rows may change that order: write it with sums of numerics, sum(x::numeric)")
	case n.Name == "string_agg" || n.Name == "array_agg":
		return g.Unsupported(n, what, "its value depends on the order in which PostgreSQL reads the rows, which one person's rows may change: "+
			"min and max have one value in any order")
	default:
		return g.Unsupported(n, what, "count, sum, avg, min, max, bool_or and bool_and are taken")
	}
}

// boundsOfAggregate are those of an aggregate of so many rows at most, whose values lie within bounds; nil: nothing is known. Without the
// policy's word on the rows of a unit sums and counts have none.
func boundsOfAggregate(form domain.AggregateForm, within *algebra.Bounds, policy int64, rows *big.Rat) *catalog.Bounds {
	switch {
	case form == domain.CountForm && policy > 0:
		return &catalog.Bounds{Lo: new(big.Rat), Hi: rows, Step: scalar.One()}
	case within == nil:
		return nil
	case form == domain.MeanForm:
		return &catalog.Bounds{Lo: within.Lo, Hi: within.Hi}
	case form == domain.ExtremeForm:
		return &catalog.Bounds{Lo: within.Lo, Hi: within.Hi, Step: within.Step}
	case form == domain.SumForm && policy > 0:
		lo, hi := new(big.Rat).Mul(rows, within.Lo), new(big.Rat).Mul(rows, within.Hi)
		if within.Lo.Sign() > 0 {
			lo = within.Lo
		}
		if within.Hi.Sign() < 0 {
			hi = within.Hi
		}
		return &catalog.Bounds{Lo: lo, Hi: hi, Step: within.Step}
	default:
		return nil
	}
}

func boundsOrNil(e algebra.Expr) *algebra.Bounds {
	if e == nil {
		return nil
	}
	return algebra.BoundsOf(e)
}
