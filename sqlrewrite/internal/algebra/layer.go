package sqlrewrite

import (
	"fmt"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// layer is a query over rows that hold nothing private: released values, public tables, and what other layers make of them. It
// runs in PostgreSQL as it is written. What a layer can name is closed by its items: there is none for a table with a privacy unit.
type layer struct {
	block bool      // the rows of the release block, as its own SELECT gives them; nothing else is set
	set   *layerSet // a set operation; then only orderBy, limit and offset are the layer's own

	from     layerItem // nil: one row without columns
	where    expr
	grouped  bool // has keys or aggregates
	keys     []expr
	having   expr
	distinct bool
	on       []expr // DISTINCT ON
	orderBy  []ordering
	limit    *int64
	offset   int64

	outputs []output
	// origins are the outputs over keys and released values, as far as they can be followed through other layers; sizes are theirs.
	origins []expr
	sizes   []int
	// wrapped are the outputs as ORDER BY of a set operation or after DISTINCT names them.
	wrapped []*field
	ordinal bool // each row stems from one released row, whose number it carries
}

// layerSet is a set operation of two layers with outputs of the types of the result.
type layerSet struct {
	kind        syntax.SetKind
	all         bool
	left, right *layer
}

// layerItem is an item of a layer's FROM: [*layerScan], [*layerQuery] or [*layerJoin].
type layerItem interface{ layerItem() }

// layerScan is a public table. [opened.scan] makes the only ones.
type layerScan struct {
	table  *catalog.Table
	alias  string
	fields []*field
}

// layerQuery is another layer.
type layerQuery struct {
	layer  *layer
	alias  string
	fields []*field
}

// layerJoin joins two items.
type layerJoin struct {
	kind        syntax.JoinKind
	left, right layerItem
	on          expr // nil: CROSS JOIN
}

func (*layerScan) layerItem()  {}
func (*layerQuery) layerItem() {}
func (*layerJoin) layerItem()  {}

// layerSub is a query inside an expression of a layer: EXISTS, IN, or a value.
type layerSub struct {
	kind  subKind
	x     []expr // IN only
	layer *layer
	t     catalog.Type
}

type subKind int

const (
	scalarSub subKind = iota
	existsSub
	inSub
)

// either is what an output of a set operation stems from.
type either struct {
	l, r expr
	t    catalog.Type
}

func (e layerSub) typ() catalog.Type { return e.t }
func (e either) typ() catalog.Type   { return e.t }

// opened is what the layers of one statement share.
type opened struct {
	text     string
	snapshot *catalog.Snapshot
	kinds    map[*syntax.Query]rowKind
	block    *boundQuery   // the one release block; nil: none so far
	blockOf  *syntax.Query // what it was bound from
	items    int           // items of FROM so far: each use of a CTE is one
	scans    []*layerScan
	origins  map[*field]expr
	sizes    map[*field]int // of origins
}

func newOpened(text string, snapshot *catalog.Snapshot) *opened {
	return &opened{text: text, snapshot: snapshot, kinds: make(map[*syntax.Query]rowKind), origins: make(map[*field]expr), sizes: make(map[*field]int)}
}

// maxItems caps the items of FROM after each use of a CTE became a query of its own: a chain of CTEs that use each other twice
// would double with every link.
const maxItems = 64

// bind settles names, types and policy. A query over released values is bound as layers around the one block that releases them.
func bind(text string, query *syntax.Query, snapshot *catalog.Snapshot) (*boundQuery, error) {
	o := newOpened(text, snapshot)
	switch kind := o.kindOf(query, nil); {
	case kind == ownedRows && query.Set != nil:
		return nil, fault.Unsupported(position(text, query.Set.Pos), "a set operation over private rows that is not aggregated",
			"aggregate each side, or write SELECT count(*) FROM (... UNION ALL ...) t")
	case kind == ownedRows, kind == releasedRows && o.isBlock(query, nil) && !reshaped(query):
		return bindBlock(text, query, snapshot)
	case kind == publicRows:
		return nil, o.refusePublic(query)
	}
	l, err := o.query(query, nil, nil)
	if err != nil {
		return nil, err
	}
	q := o.block
	if q == nil {
		return nil, o.refusePublic(query)
	}
	q.layer, q.inner, q.scans = l, q.outputs, o.scans
	q.outputs = make([]output, len(l.outputs))
	for i, out := range l.outputs {
		q.outputs[i] = output{name: out.name, expr: l.origins[i]}
	}
	return q, nil
}

// refusePublic is for callers that answer only what is released.
func (o *opened) refusePublic(q *syntax.Query) error {
	return fault.Unsupported(position(o.text, q.Pos), "a query that reads no private rows in this place", "ask it without a price: it is free")
}

// keepsRows reports whether each row of the answer stems from one released row.
func (q *boundQuery) keepsRows() bool { return q.layer == nil || q.layer.ordinal }

// maxOrigins caps the sizes of the outputs of a layer once each is written out over what is released: x + x of x + x of x + x ... doubles with
// every level, and so does a text that it would make (A44).
const maxOrigins = 10_000

// substituted sets the origins of a layer's outputs.
func (o *opened) substituted(l *layer, at fault.Position) error {
	total := 0
	for _, out := range l.outputs {
		size := o.sizeOf(out.expr)
		if total += size; total > maxOrigins {
			return fault.TooComplex(at, "the outputs are computed from too many others")
		}
		l.sizes, l.origins = append(l.sizes, size), append(l.origins, o.substitute(out.expr))
	}
	return nil
}

// sizeOf is the size of an expression whose columns of other layers are replaced by what they stem from. Long constants count as several.
func (o *opened) sizeOf(e expr) int {
	switch e := e.(type) {
	case column:
		return max(1, o.sizes[e.of])
	case constant:
		return 1 + len(e.text)/100
	}
	size := 1
	for _, child := range children(e) {
		if size += o.sizeOf(child); size > maxOrigins {
			break
		}
	}
	return size
}

// substitute replaces the columns of other layers by what they stem from.
func (o *opened) substitute(e expr) expr {
	all := func(list []expr) []expr {
		out := make([]expr, len(list))
		for i, x := range list {
			out[i] = o.substitute(x)
		}
		return out
	}
	switch e := e.(type) {
	case column:
		if origin, ok := o.origins[e.of]; ok {
			return origin
		}
		return e
	case negate:
		return negate{x: o.substitute(e.x), t: e.t}
	case not:
		return not{x: o.substitute(e.x)}
	case binary:
		return binary{op: e.op, l: o.substitute(e.l), r: o.substitute(e.r), t: e.t}
	case in:
		return in{x: o.substitute(e.x), list: all(e.list), not: e.not}
	case is:
		return is{x: o.substitute(e.x), what: e.what, not: e.not}
	case distinct:
		return distinct{l: o.substitute(e.l), r: o.substitute(e.r), not: e.not}
	case like:
		out := e
		out.x = o.substitute(e.x)
		return out
	case choice:
		out := choice{t: e.t}
		for _, a := range e.arms {
			out.arms = append(out.arms, arm{cond: o.substitute(a.cond), result: o.substitute(a.result)})
		}
		if e.otherwise != nil {
			out.otherwise = o.substitute(e.otherwise)
		}
		return out
	case cast:
		return cast{x: o.substitute(e.x), t: e.t, mods: e.mods}
	case call:
		return call{name: e.name, args: all(e.args), t: e.t}
	case aggregateCall:
		return o.substituteAggregate(e, all)
	case windowCall:
		out := e
		out.function = o.substituteAggregate(e.function, all)
		out.partition, out.order = all(e.partition), o.substituteOrder(e.order)
		return out
	default:
		return e
	}
}

func (o *opened) substituteAggregate(e aggregateCall, all func([]expr) []expr) aggregateCall {
	e.args, e.order, e.within = all(e.args), o.substituteOrder(e.order), o.substituteOrder(e.within)
	if e.filter != nil {
		e.filter = o.substitute(e.filter)
	}
	return e
}

func (o *opened) substituteOrder(list []ordering) []ordering {
	out := make([]ordering, len(list))
	for i, x := range list {
		out[i] = ordering{expr: o.substitute(x.expr), descending: x.descending, nullsFirst: x.nullsFirst}
	}
	return out
}

// lines are a layer's part of the plan's text.
func (l *layer) lines(q *boundQuery) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	text := func(e expr) string { return describeWith(e, q) }
	if l.limit != nil {
		add("limit %d", *l.limit)
	}
	if l.offset > 0 {
		add("offset %d", l.offset)
	}
	if len(l.orderBy) > 0 {
		add("order by %s", orderText(l.orderBy, q))
	}
	switch {
	case l.block:
		return []string{"released"}
	case l.set != nil:
		all := ""
		if l.set.all {
			all = " all"
		}
		add("%s%s", strings.ToLower(string(l.set.kind)), all)
		out = append(out, indented(l.set.left.lines(q))...)
		return append(out, indented(l.set.right.lines(q))...)
	case l.distinct:
		add("distinct")
	case len(l.on) > 0:
		add("distinct on %s", expressionsText(l.on, q))
	}
	if l.having != nil {
		add("having %s", text(l.having))
	}
	if l.grouped {
		add("group by %s", orNothing(expressionsText(l.keys, q)))
	}
	if l.where != nil {
		add("where %s", text(l.where))
	}
	if l.from != nil {
		out = append(out, itemText(l.from, q)...)
	}
	return out
}
