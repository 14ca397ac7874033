package sqlrewrite

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// unitWindow is OVER (PARTITION BY owner, partition ORDER BY order frame) among rows of people: each value is a function of the set of rows of
// one unit, whatever their physical order, which the rows of another unit may change. Rows that tie in the order are told apart by all that
// their query reads of them, so that only rows change places that are equal to it; docs/sql.md, section 3, proves it.
type unitWindow struct {
	at        syntax.Expr
	owner     *field
	partition []expr
	order     []ordering
	frame     *frame // nil: the default
	// sequential: the value depends on the order of rows that tie. Others have one value for all of them.
	sequential bool
	ties       []*field // what the query reads of a row; of sequential windows
	// key are fields by which no two rows tie. Only where a query has sequential windows in several orders: rows where one is NULL have no value.
	key []*field
}

// unitWindow binds a window function over the rows of one unit and makes it an output under a name.
func (b *binder) unitWindow(p *projection, n *syntax.Call, name string) (expr, error) {
	w, err := b.overUnit(p.of, n)
	if err != nil {
		return nil, err
	}
	var e expr
	if _, ranks := windowFunctions[n.Name]; ranks {
		e, err = b.unitRank(p, n, w)
	} else {
		if w.frame != nil {
			w.sequential = w.frame.mode == syntax.Rows
		}
		alone := *n
		alone.Over = nil
		g := &grouping{binder: b, p: p}
		e, err = g.aggregateOf(&alone, unitAggregate{name: n.Name, over: w})
	}
	if err != nil {
		return nil, err
	}
	c := plainField(e).Column // the projection's own
	c.Name, c.NotNull = name, c.NotNull && !w.sequential
	return e, nil
}

// overUnit binds the window of a call.
func (b *binder) overUnit(r *relation, n *syntax.Call) (*unitWindow, error) {
	_, ranks := windowFunctions[n.Name]
	switch {
	case n.Schema != "" && n.Schema != "pg_catalog":
		return nil, fault.UnknownFunction(b.at(n), n.Schema+"."+n.Name, nil)
	case !ranks && !slices.Contains(unitAggregates, n.Name):
		return nil, b.unsupported(n, n.Name+" over rows of people", "write one of "+strings.Join(slices.Concat(slices.Sorted(maps.Keys(windowFunctions)), unitAggregates), ", "))
	case n.Distinct || len(n.OrderBy)+len(n.Within) > 0:
		return nil, b.unsupported(n, "DISTINCT or ORDER BY inside a window function", "")
	}
	definition, err := b.resolveWindow(b.query.Windows, n.Over)
	if err != nil {
		return nil, err
	}
	w := &unitWindow{at: n, owner: r.owner()}
	linked := false
	for _, item := range definition.PartitionBy {
		e, err := b.rowOutput(item)
		if err != nil {
			return nil, err
		}
		if f := plainField(e); f != nil && slices.Contains(r.owners, f) {
			linked = true
			continue
		} else if f != nil && f.unit {
			return nil, fault.UnitColumn(b.at(item), f.Name)
		}
		w.partition = append(w.partition, e)
	}
	if !linked {
		return nil, fault.Unsupported(b.position(n.Over.Pos), "a window over the rows of many people",
			"one person's row would decide about another's; PARTITION BY "+r.unitName())
	}
	if w.order, err = b.orderings(definition.OrderBy, func(n syntax.Expr) (expr, error) {
		if f, ok := b.identityOf(n); ok {
			return column{of: f}, nil
		}
		return b.expression(rowScope{b}, n)
	}); err != nil {
		return nil, err
	}
	if w.frame, err = b.frame(definition, w.order); err != nil {
		return nil, err
	}
	return w, b.checkUnitFrame(definition, w)
}

// maxFrame is how many rows or groups a frame may reach: PostgreSQL adds the number to a place without looking.
const maxFrame = 1 << 30

// checkUnitFrame refuses a frame on whose rows PostgreSQL could raise an error.
func (b *binder) checkUnitFrame(n *syntax.Window, w *unitWindow) error {
	if w.frame == nil {
		return nil
	}
	for _, bound := range []frameBound{w.frame.start, w.frame.end} {
		if bound.offset == nil {
			continue
		}
		if w.frame.mode != syntax.Range {
			if v, _ := parseNumber(bound.offset.text); v.Cmp(number(maxFrame)) > 0 {
				return fault.Unsupported(b.position(n.Pos), "a frame of this many rows", "write UNBOUNDED")
			}
			continue
		}
		if x := w.order[0].expr; x.typ() == catalog.Numeric && beyondFloat(x) {
			return fault.Unsupported(b.position(n.Pos), "RANGE with an offset from a numeric column without fixed digits", "write ROWS, or order by round(x, 2)")
		}
	}
	return nil
}

// unitRank binds a function that exists only with OVER: its arguments, and whether rows that tie have one value.
func (b *binder) unitRank(p *projection, n *syntax.Call, w *unitWindow) (expr, error) {
	form := windowFunctions[n.Name]
	if n.Star || n.Filter != nil || len(n.Args) < form.least || len(n.Args) > form.most {
		return nil, b.mismatch(n, n.Name+" does not take these arguments", "")
	}
	e := unitAggregate{name: n.Name, over: w, t: form.result}
	c := &catalog.Column{TypMod: -1, Exposed: true}
	var count int
	if form.count >= 0 && len(n.Args) > form.count {
		k, err := b.expression(noScope{b}, n.Args[form.count])
		if err != nil {
			return nil, err
		}
		var whole bool
		if count, whole = wholeConstant(k); !whole || count > maxFrame || count < -maxFrame || count < 1 && n.Name != "lag" && n.Name != "lead" {
			return nil, b.unsupported(n.Args[form.count], "a number of rows in "+n.Name+" that is not a small whole constant", "")
		}
		e.args = append(e.args, constant{t: catalog.Int4, text: strconv.Itoa(count)})
	}
	if form.result == unknownType {
		var err error
		if e.x, err = b.expression(rowScope{b}, n.Args[0]); err != nil {
			return nil, err
		}
		if e.x, err = b.coerce(n.Args[0], e.x, catalog.Text); err != nil {
			return nil, err
		}
		c, e.t = p.facts.derivedColumn(n.Name, e.x), carrierOf(e.x)
		if len(n.Args) == 3 {
			err = b.windowDefault(n.Args[2], &e, c)
		}
		if c.Domain != nil && !slices.Contains(c.Domain, catalog.Key{Null: true}) { // where there is no such row
			c.Domain = append(slices.Clone(c.Domain), catalog.Key{Null: true})
		}
		if err != nil {
			return nil, err
		}
	}
	last := p.of.maxRows
	switch n.Name {
	case "percent_rank", "cume_dist":
		c.Bounds = &catalog.Bounds{Lo: new(big.Rat), Hi: one()}
	case "ntile":
		last = int64(count)
		fallthrough
	case "row_number", "rank", "dense_rank":
		if last > 0 {
			c.Bounds = &catalog.Bounds{Lo: one(), Hi: number(min(last, maxBound)), Step: one()}
		}
	}
	w.sequential = !slices.Contains([]string{"rank", "dense_rank", "percent_rank", "cume_dist"}, n.Name)
	if err := b.valueFrame(n, w); err != nil {
		return nil, err
	}
	f := p.add(n.Name, e, true)
	c.Type = e.t
	f.Column, f.label = c, describe(e)
	return column{of: f}, nil
}

// windowDefault binds the value that lag and lead give where there is no such row: a constant of the type of the others.
func (b *binder) windowDefault(n syntax.Expr, e *unitAggregate, c *catalog.Column) error {
	x, err := b.expression(noScope{b}, n)
	if err != nil {
		return err
	}
	t := e.t
	k, isConstant := x.(constant)
	if isConstant && !k.null {
		if x, err = b.coerce(n, k, t); err != nil {
			return err
		}
		k = x.(constant)
	}
	v, isNumber := parseNumber(k.text)
	switch {
	case isConstant && k.null:
		return nil
	case !isConstant || familyOf(k.t) != familyOf(t) || t == catalog.Enum || t.IsTime() && k.t != t || t.IsNumber() && (!isNumber || !isOf(v, t)):
		return b.unsupported(n, "a default that is not a constant of type "+typeName(t), "leave it out, and write coalesce around the result in an outer query")
	case t == catalog.Char:
		k.t = catalog.Char
	case t.IsNumber():
		k.t = t
	}
	e.args = append(e.args, k)
	c.TypMod, c.Domain = -1, nil
	if c.Bounds != nil {
		at, ok := datumOf(catalog.Key{Text: k.text}, t)
		if !ok || at.value == nil {
			c.Bounds = nil
			return nil
		}
		c.Bounds = &catalog.Bounds{Lo: minRat(c.Bounds.Lo, at.value), Hi: maxRat(c.Bounds.Hi, at.value)}
	}
	return nil
}

// valueFrame makes the frame of a function that exists only with OVER one of rows, which is what tells rows that tie apart, where that
// comes to the same. first_value looks at the frame's start, last_value at its end, nth_value at both, and the others at none.
func (b *binder) valueFrame(n *syntax.Call, w *unitWindow) error {
	fromStart, toEnd := true, len(w.order) == 0 // the default: up to the last row that ties
	startsBy, endsFrom := true, true            // the frame holds the row itself
	if f := w.frame; f != nil {
		fromStart = f.start.kind == syntax.UnboundedPreceding || len(w.order) == 0 && f.mode == syntax.Range
		toEnd = f.end.kind == syntax.UnboundedFollowing || len(w.order) == 0 && f.mode == syntax.Range
		startsBy, endsFrom = f.start.kind != syntax.Following, f.end.kind != syntax.Preceding
	}
	switch n.Name {
	case "first_value":
		toEnd = toEnd || endsFrom
	case "last_value":
		fromStart = fromStart || startsBy
	case "nth_value":
	default:
		w.frame = nil
		return nil
	}
	switch {
	case fromStart && toEnd:
		w.frame = &frame{mode: syntax.Rows, start: frameBound{kind: syntax.UnboundedPreceding}, end: frameBound{kind: syntax.UnboundedFollowing}}
	case w.frame == nil || w.frame.mode != syntax.Rows:
		return b.unsupported(n, n.Name+" in a frame that ends among rows that tie", "write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, or another frame of ROWS")
	}
	return nil
}

// settleTies tells rows that tie apart in all windows of a query by what it reads of them. Rows that are equal in that can stand in one order in
// one window and in another in the next, unless all windows have the same order, in which PostgreSQL reads them once; or unless there are none, by a key.
func (b *binder) settleTies(p *projection) error {
	var all []*unitWindow
	several := false
	for _, e := range p.query.outputs {
		if a, ok := e.(unitAggregate); ok && a.over != nil && a.over.sequential {
			all = append(all, a.over)
			several = several || !all[0].sameOrder(a.over)
		}
	}
	if len(all) == 0 {
		return nil
	}
	read := &pinWalk{used: map[*field]bool{}}
	read.exprs(p.query.outputs...)
	var ties []*field
	for _, part := range p.of.parts {
		for _, f := range part.fields {
			if read.used[f] && !slices.Contains(p.of.owners, f) {
				ties = append(ties, f)
			}
		}
	}
	for _, w := range all {
		w.ties = slices.DeleteFunc(slices.Clone(ties), w.given)
		if several {
			key, ok := p.of.tellsApart(w)
			if !ok {
				return b.unsupported(w.at, "a window in another order than the one before, with rows that may tie",
					"add a unique column to each ORDER BY, or compute one of them in a query in FROM")
			}
			b.bound.shared().rely(key.relies...)
			w.key = slices.DeleteFunc(slices.Clone(key.fields), func(f *field) bool { return f == w.owner })
		}
	}
	return nil
}

// given reports whether rows that tie are equal in a field anyway.
func (w *unitWindow) given(f *field) bool {
	is := func(e expr) bool { return plainField(e) == f }
	return (oneText(column{of: f}) && f.Type != catalog.Char) &&
		(slices.ContainsFunc(w.partition, is) || slices.ContainsFunc(w.order, func(o ordering) bool { return is(o.expr) }))
}

func (w *unitWindow) sameOrder(o *unitWindow) bool {
	same := func(a, b ordering) bool {
		return a.descending == b.descending && a.nullsFirst == b.nullsFirst && structureOf(a.expr) == structureOf(b.expr)
	}
	return slices.EqualFunc(w.partition, o.partition, func(a, b expr) bool { return structureOf(a) == structureOf(b) }) &&
		slices.EqualFunc(w.order, o.order, same)
}

// tellsApart finds the key that tells the rows of a partition apart.
func (r *relation) tellsApart(w *unitWindow) (rowKey, bool) {
	var given []*field
	for _, e := range w.partition {
		given = append(given, plainField(e))
	}
	for _, o := range w.order {
		given = append(given, plainField(o.expr))
	}
	return r.oneAmong(given)
}

func (w *unitWindow) children() []expr {
	all := slices.Clone(w.partition)
	for _, o := range w.order {
		all = append(all, o.expr)
	}
	return all
}

// most is how many of rows, of one unit, its frame can hold.
func (w *unitWindow) most(rows int64) int64 {
	if w == nil || w.frame == nil || w.frame.mode != syntax.Rows {
		return rows
	}
	places := int64(1)
	for _, end := range []struct {
		bound     frameBound
		inward    syntax.FrameBoundKind
		unbounded syntax.FrameBoundKind
	}{{w.frame.start, syntax.Following, syntax.UnboundedPreceding}, {w.frame.end, syntax.Preceding, syntax.UnboundedFollowing}} {
		switch {
		case end.bound.kind == end.unbounded:
			return rows
		case end.bound.offset != nil:
			k, _ := parseNumber(end.bound.offset.text)
			places += k.Num().Int64() * int64(1-2*boolIndex(end.bound.kind == end.inward))
		}
	}
	return min(rows, max(places, 1))
}

// isRank reports whether it is a function that exists only with OVER.
func (e unitAggregate) isRank() bool {
	_, ranks := windowFunctions[e.name]
	return ranks
}

// windowed prints an aggregate of a window, without a value where no key tells the row apart.
func (p *printer) windowed(e unitAggregate, call func()) {
	var present []expr
	if e.over != nil {
		for _, f := range e.over.key {
			present = append(present, is{x: column{of: f}, what: syntax.IsNull, not: true})
		}
	}
	if len(present) == 0 || p.inline {
		call()
		return
	}
	p.write("CASE WHEN ")
	p.expr(all(present))
	p.write(" THEN ")
	call()
	p.write(" END")
}

// over prints the window of an aggregate. The unit's id always comes first, whatever field named it.
func (p *printer) over(w *unitWindow) {
	if w == nil {
		return
	}
	p.write(" OVER (PARTITION BY ", p.text(column{of: w.owner}))
	for _, e := range w.partition {
		p.write(", ")
		p.collated(e)
	}
	if len(w.order) > 0 {
		p.write(" ORDER BY ")
		p.orderings(w.order)
	}
	if !p.inline {
		p.ties(w)
	}
	if w.frame != nil {
		p.write(" ")
		p.frame(w.frame)
	}
	p.write(")")
}

// ties prints what tells rows apart that tie: rows are equal in it only if no expression tells them apart.
func (p *printer) ties(w *unitWindow) {
	for i, f := range w.ties {
		switch {
		case i > 0 || len(w.order) > 0:
			p.write(", ")
		default:
			p.write(" ORDER BY ")
		}
		p.write(p.identical(f))
	}
}

// rank prints a function that exists only with OVER.
func (p *printer) rank(e unitAggregate) {
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(e.name, "(")
	if e.x != nil {
		p.write(p.asIs(e.x))
	}
	for i, arg := range e.args {
		p.separator(boolIndex(e.x != nil) + i)
		p.expr(arg)
	}
	p.write(")")
	p.over(e.over)
}
