package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// windowCall is f(...) OVER (...): a function of the rows of a result that holds nothing private. Which rows it sees is decided after
// HAVING and before DISTINCT, ORDER BY and LIMIT, as in PostgreSQL.
type windowCall struct {
	function  aggregateCall // or a function that exists only with OVER
	partition []expr
	order     []ordering
	frame     *frame // nil: the default
}

// frame is the frame of a window. Offsets are constants that were checked.
type frame struct {
	mode       syntax.FrameMode
	start, end frameBound
}

type frameBound struct {
	kind   syntax.FrameBoundKind
	offset *constant
}

func (e windowCall) typ() catalog.Type { return e.function.t }

func (e windowCall) children() []expr {
	all := append(children(e.function), e.partition...)
	for _, o := range e.order {
		all = append(all, o.expr)
	}
	return all
}

// windowFunction binds a call with OVER in a scope that holds nothing private; named are the windows of the query's WINDOW clause.
func (b *binder) windowFunction(s scope, named []syntax.NamedWindow, n *syntax.Call) (expr, error) {
	if n.Schema != "" && n.Schema != "pg_catalog" {
		return nil, fault.UnknownFunction(b.at(n), n.Schema+"."+n.Name, nil)
	}
	if n.Distinct || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.unsupported(n, "DISTINCT or ORDER BY inside a window function", "")
	}
	definition, err := b.resolveWindow(named, n.Over)
	if err != nil {
		return nil, err
	}
	var e windowCall
	if e.function, err = b.windowed(s, n); err != nil {
		return nil, err
	}
	if e.partition, err = b.expressions(s, definition.PartitionBy); err != nil {
		return nil, err
	}
	if e.order, err = b.orderings(definition.OrderBy, func(n syntax.Expr) (expr, error) { return b.expression(s, n) }); err != nil {
		return nil, err
	}
	if e.frame, err = b.frame(definition, e.order); err != nil {
		return nil, err
	}
	for _, child := range e.children() {
		if holdsWindow(child) {
			return nil, b.unsupported(n, "a window function inside a window function", "compute the inner one in a subquery")
		}
	}
	return e, nil
}

// resolveWindow adds what stands in OVER to the named window that it refers to.
func (b *binder) resolveWindow(named []syntax.NamedWindow, w *syntax.Window) (*syntax.Window, error) {
	if w.Name == "" {
		return w, nil
	}
	var names []string
	for i, known := range named {
		names = append(names, known.Name)
		if known.Name != w.Name {
			continue
		}
		base, err := b.resolveWindow(named[:i], known.Window) // a window refers to earlier ones only
		if err != nil {
			return nil, err
		}
		merged := *base
		switch {
		case len(w.PartitionBy) > 0:
			return nil, fault.Unsupported(b.position(w.Pos), "PARTITION BY over the named window "+fault.Quote(w.Name), "write the whole window")
		case len(w.OrderBy) > 0 && len(base.OrderBy) > 0:
			return nil, fault.Unsupported(b.position(w.Pos), "a second ORDER BY over the named window "+fault.Quote(w.Name), "write the whole window")
		case len(w.OrderBy) > 0:
			merged.OrderBy = w.OrderBy
		}
		if w.Frame != nil {
			merged.Frame = w.Frame
		}
		return &merged, nil
	}
	return nil, fault.UnknownWindow(b.position(w.Pos), w.Name, names)
}

// windowed binds the function of a window and its arguments.
func (b *binder) windowed(s scope, n *syntax.Call) (aggregateCall, error) {
	switch form, known := exactAggregates[n.Name]; {
	case known && (form == quantileForm || form == orderedForm || form == modeForm || form == medianForm):
		return aggregateCall{}, b.unsupported(n, n.Name+" as a window function", "compute it in a subquery with GROUP BY")
	case known:
		return b.exactAggregate(s, n)
	}
	types, known := windowFunctions[n.Name]
	if !known {
		return aggregateCall{}, fault.UnknownFunction(b.at(n), n.Name, windowNames())
	}
	e := aggregateCall{name: n.Name, t: types.result}
	if n.Star || n.Filter != nil || len(n.Args) < types.least || len(n.Args) > types.most {
		return e, b.mismatch(n, n.Name+" does not take these arguments", "")
	}
	args, err := b.expressions(s, n.Args)
	if err != nil {
		return e, err
	}
	for i := range args {
		want := catalog.Text // of a string; everything else has its type
		if i == types.count {
			want = catalog.Int4
		}
		if args[i], err = b.coerce(n.Args[i], args[i], want); err != nil {
			return e, err
		}
		if i == types.count && args[i].typ() != catalog.Int4 && args[i].typ() != catalog.Int2 {
			return e, b.mismatch(n.Args[i], n.Name+" needs a whole number here", "")
		}
	}
	if e.t == unknownType {
		e.t = args[0].typ()
	}
	if len(args) == 3 { // lag and lead: the value for rows that do not exist
		pair, t, err := b.common([]syntax.Expr{n.Args[0], n.Args[2]}, []expr{args[0], args[2]})
		if err != nil {
			return e, err
		}
		args[0], args[2], e.t = castTo(pair[0], t), castTo(pair[1], t), t
	}
	e.args = args
	return e, nil
}

// windowForm is what a function that exists only with OVER takes and gives.
type windowForm struct {
	least, most int          // arguments
	count       int          // which of them counts rows; -1: none
	result      catalog.Type // "": that of the first argument
}

var windowFunctions = map[string]windowForm{
	"row_number":   {0, 0, -1, catalog.Int8},
	"rank":         {0, 0, -1, catalog.Int8},
	"dense_rank":   {0, 0, -1, catalog.Int8},
	"percent_rank": {0, 0, -1, catalog.Float8},
	"cume_dist":    {0, 0, -1, catalog.Float8},
	"ntile":        {1, 1, 0, catalog.Int4},
	"lag":          {1, 3, 1, unknownType},
	"lead":         {1, 3, 1, unknownType},
	"first_value":  {1, 1, -1, unknownType},
	"last_value":   {1, 1, -1, unknownType},
	"nth_value":    {2, 2, 1, unknownType},
}

func windowNames() []string {
	names := exactAggregateNames()
	for name := range windowFunctions {
		names = append(names, name)
	}
	return names
}

// frame checks a frame as PostgreSQL would, whose error would come after the charge.
func (b *binder) frame(w *syntax.Window, order []ordering) (*frame, error) {
	if w.Frame == nil {
		return nil, nil
	}
	f := &frame{mode: w.Frame.Mode}
	var err error
	if f.start, err = b.frameBound(w, order, w.Frame.Start); err != nil {
		return nil, err
	}
	f.end, err = b.frameBound(w, order, w.Frame.End)
	if err == nil && f.mode == syntax.Groups && len(order) == 0 {
		err = fault.Unsupported(b.position(w.Pos), "GROUPS without ORDER BY in a window", "add ORDER BY")
	}
	return f, err
}

func (b *binder) frameBound(w *syntax.Window, order []ordering, bound syntax.FrameBound) (frameBound, error) {
	out := frameBound{kind: bound.Kind}
	if bound.Offset == nil {
		return out, nil
	}
	e, err := b.expression(noScope{b}, bound.Offset)
	if err != nil {
		return out, err
	}
	c, ok := e.(constant)
	v, number := parseNumber(c.text)
	if !ok || c.null || !number || v.Sign() < 0 {
		return out, b.unsupported(bound.Offset, "a frame bound that is not a constant of at least 0", "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
	}
	if w.Frame.Mode == syntax.Range {
		if len(order) != 1 || !order[0].expr.typ().IsNumber() {
			return out, fault.Unsupported(b.position(w.Pos), "RANGE with an offset, but without ORDER BY one number", "write ROWS")
		}
		if c.t = order[0].expr.typ(); !isOf(v, c.t) {
			return out, b.unsupported(bound.Offset, "an offset of RANGE that is no value of type "+typeName(c.t), "write another, or UNBOUNDED")
		}
	} else {
		if !v.IsInt() || !v.Num().IsInt64() {
			return out, b.unsupported(bound.Offset, "a number of rows that is not whole", "")
		}
		c.t = catalog.Int8
	}
	out.offset = &c
	return out, nil
}

// window prints a windowCall.
func (p *printer) window(e windowCall) {
	p.aggregate(e.function)
	p.write(" OVER (")
	space := ""
	if len(e.partition) > 0 {
		p.write("PARTITION BY ")
		for i, x := range e.partition {
			p.separator(i)
			p.collated(x)
		}
		space = " "
	}
	if len(e.order) > 0 {
		p.write(space, "ORDER BY ")
		p.orderings(e.order)
		space = " "
	}
	if e.frame != nil {
		p.write(space)
		p.frame(e.frame)
	}
	p.write(")")
}

func (p *printer) frame(f *frame) {
	p.write(string(f.mode), " BETWEEN ")
	p.frameBound(f.start)
	p.write(" AND ")
	p.frameBound(f.end)
}

func (p *printer) frameBound(b frameBound) {
	if b.offset != nil {
		p.constant(*b.offset)
		p.write(" ")
	}
	p.write(string(b.kind))
}

func (p *printer) separator(i int) {
	if i > 0 {
		p.write(", ")
	}
}

// sortKey prints what rows are ordered by: text under one collation, and enums by the order of their labels.
func (p *printer) sortKey(e expr) {
	if f := plainField(e); f != nil && f.Type == catalog.Enum && !p.inline {
		p.write(p.field(f))
		return
	}
	p.collated(e)
}

// orderings prints the items of ORDER BY.
func (p *printer) orderings(items []ordering) {
	for i, o := range items {
		p.separator(i)
		p.sortKey(o.expr)
		p.write([]string{" ASC", " DESC"}[boolIndex(o.descending)], []string{" NULLS LAST", " NULLS FIRST"}[boolIndex(o.nullsFirst)])
	}
}

// holdsWindow reports whether a window function is part of an expression.
func holdsWindow(e expr) bool {
	if _, ok := e.(windowCall); ok {
		return true
	}
	for _, child := range children(e) {
		if holdsWindow(child) {
			return true
		}
	}
	return false
}

// refuseWindow refuses a clause that comes before window functions.
func (b *binder) refuseWindow(n syntax.Expr, e expr, clause string) error {
	if e != nil && holdsWindow(e) {
		return b.unsupported(n, "a window function in "+clause, "compute it in a subquery and filter outside: SELECT ... FROM (SELECT ...) t WHERE ...")
	}
	return nil
}

// noScope knows no names: for constants.
type noScope struct{ *binder }

func (s noScope) column(n *syntax.Column) (expr, error) {
	return nil, s.unsupported(n, "a column in this place", "write a constant")
}

func (s noScope) call(n *syntax.Call) (expr, error) {
	return nil, s.unsupported(n, "a function in this place", "write a constant")
}

func (noScope) computes() bool { return true }
