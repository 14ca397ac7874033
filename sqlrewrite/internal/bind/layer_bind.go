package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// layerBinder resolves one SELECT of a layer.
type layerBinder struct {
	*binder
	open   *opened
	env    *environment // the CTEs that it can name
	parent *layerBinder // the query around it, whose columns an expression inside may name; nil for none
	names  []layerName
	layer  *layer
	keyed  []string // the printed keys, once GROUP BY is bound
}

// query binds a query whose rows are public or released.
func (o *opened) query(q *syntax.Query, env *environment, parent *layerBinder) (*layer, error) {
	switch kind := o.kindOf(q, env); {
	case kind == ownedRows:
		return nil, fault.Unsupported(position(o.text, q.Pos), "a query over private rows, without an aggregate, in this place",
			"aggregate them: only released values can stand here")
	case kind == releasedRows && o.isBlock(q, env):
		if reshaped(q) {
			return o.reshape(q, env, parent)
		}
		return o.release(q, env)
	}
	lb := &layerBinder{binder: &binder{text: o.text, snapshot: o.snapshot, query: q, bound: &boundQuery{}}, open: o,
		env: env.with(q.With), parent: parent, layer: &layer{}}
	if q.Set != nil {
		return lb.set()
	}
	for _, step := range []func() error{lb.items, lb.filter, lb.group, lb.outputs, lb.groupFilter, lb.covered, lb.unique, lb.order, lb.cut} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return lb.layer, o.substituted(lb.layer, lb.position(q.Pos))
}

// release binds the one query that reads private rows.
func (o *opened) release(q *syntax.Query, env *environment) (*layer, error) {
	if o.block != nil && o.blockOf != q {
		return nil, fault.Unsupported(position(o.text, q.Pos), "a second query over private rows in one statement",
			"ask them one after the other, or name one in WITH and use it twice")
	}
	if o.block == nil {
		inner := *q
		inner.With = append(env.list(), q.With...)
		block, err := bindBlock(o.text, &inner, o.snapshot)
		if err != nil {
			return nil, err
		}
		o.block, o.blockOf = block, q
	}
	l := &layer{block: true, outputs: o.block.outputs, ordinal: true}
	for _, out := range l.outputs {
		l.origins, l.sizes = append(l.origins, out.expr), append(l.sizes, o.sizeOf(out.expr))
	}
	return l, nil
}

// reshaped reports whether DISTINCT or DISTINCT ON drops rows of a release: then it is a layer of its own.
func reshaped(q *syntax.Query) bool {
	if !q.Distinct || len(q.GroupBy) == 0 {
		return q.DistinctOn != nil
	}
	return slices.ContainsFunc(q.GroupBy, func(key syntax.Expr) bool {
		target := aliased(q, key)
		return !slices.ContainsFunc(q.Items, func(item syntax.Item) bool {
			l, ok1 := item.Expr.(*syntax.Column)
			r, ok2 := target.(*syntax.Column)
			return item.Expr == target || ok1 && ok2 && l.Name == r.Name
		})
	})
}

// reshape binds SELECT DISTINCT over a release as SELECT DISTINCT * FROM (the release).
func (o *opened) reshape(q *syntax.Query, env *environment, parent *layerBinder) (*layer, error) {
	inner := *q
	inner.Distinct, inner.DistinctOn, inner.OrderBy, inner.Limit, inner.Offset = false, nil, nil, nil, nil
	outer := &syntax.Query{Pos: q.Pos, Distinct: q.Distinct, DistinctOn: q.DistinctOn, OrderBy: q.OrderBy, Limit: q.Limit, Offset: q.Offset,
		Items: []syntax.Item{{Pos: q.Pos, Expr: &syntax.Star{Pos: q.Pos}}}, From: []syntax.Relation{&syntax.Subquery{Pos: q.Pos, Query: &inner}}}
	named := append([]syntax.Expr(nil), q.DistinctOn...)
	for _, item := range q.OrderBy {
		named = append(named, item.Expr)
	}
	for _, n := range named {
		switch n.(type) {
		case *syntax.Column, *syntax.Literal:
		default:
			return nil, fault.Unsupported(position(o.text, n.At()), "an expression that DISTINCT is ordered by", "name an output or its position")
		}
	}
	return o.query(outer, env, parent)
}

// layerScope is what names mean inside a layer.
type layerScope struct {
	*layerBinder
	aggregates bool // where they may stand: the select list, HAVING, ORDER BY
}

func (layerScope) computes() bool { return true }

func (s layerScope) column(n *syntax.Column) (expr, error) {
	e, err := s.lookup(s.names, n)
	for outer := s.parent; err != nil && outer != nil; outer = outer.parent {
		if found, other := outer.lookup(outer.names, n); other == nil {
			return found, nil
		}
	}
	return e, err
}

func (s layerScope) call(n *syntax.Call) (expr, error) {
	if n.Over != nil {
		return s.windowFunction(s, s.query.Windows, n)
	}
	if _, exact := exactAggregates[n.Name]; exact && (n.Schema == "" || n.Schema == "pg_catalog") {
		if !s.aggregates {
			return nil, s.unsupported(n, "an aggregate in this place", "use HAVING, or compute it in a subquery")
		}
		return s.exactAggregate(layerScope{layerBinder: s.layerBinder}, n)
	}
	f, err := s.function(n)
	if err != nil {
		return nil, err
	}
	if f.kind == refusedAggregate {
		return nil, s.unsupported(n, "aggregate "+n.Name, f.hint)
	}
	return s.postCall(s, n)
}

// subquery binds a query inside an expression. It may name columns of the queries around it.
func (s layerScope) subquery(n syntax.Expr) (expr, error) {
	switch n := n.(type) {
	case *syntax.Scalar:
		l, err := s.inside(n, n.Query)
		if err != nil {
			return nil, err
		}
		if len(l.outputs) != 1 {
			return nil, s.unsupported(n, "a query of several columns as a value", "select one column")
		}
		return layerSub{kind: scalarSub, layer: l, t: outputType(l.outputs[0].expr.typ())}, nil
	case *syntax.Exists:
		l, err := s.inside(n, n.Query)
		return layerSub{kind: existsSub, layer: l, t: catalog.Bool}, err
	case *syntax.InQuery:
		l, err := s.inside(n, n.Query)
		if err != nil {
			return nil, err
		}
		sub := layerSub{kind: inSub, layer: l, t: catalog.Bool}
		if len(l.outputs) != len(n.X) {
			return nil, s.unsupported(n, "IN with another number of columns than its query has", "")
		}
		for i, x := range n.X {
			e, err := s.expression(s, x)
			if err != nil {
				return nil, err
			}
			out := column{of: &field{Column: &catalog.Column{Type: outputType(l.outputs[i].expr.typ()), TypMod: -1}}}
			if e, _, err = s.unify(n, syntax.Eq, x, x, e, out); err != nil {
				return nil, err
			}
			sub.x = append(sub.x, e)
		}
		return sub, nil
	default:
		return nil, s.unsupported(n, "this expression", "")
	}
}

func (s layerScope) inside(at syntax.Expr, q *syntax.Query) (*layer, error) {
	if s.open.kindOf(q, s.env) == ownedRows {
		return nil, fault.Unsupported(s.at(at), "a query over private rows inside an expression",
			"ask for its result first and write that as a constant")
	}
	return s.open.query(q, s.env, s.layerBinder)
}

func (lb *layerBinder) filter() (err error) {
	if lb.query.Where == nil {
		return nil
	}
	s := layerScope{layerBinder: lb}
	if lb.layer.where, err = lb.condition(s, lb.query.Where); err != nil {
		return err
	}
	return lb.refuseWindow(lb.query.Where, lb.layer.where, "WHERE")
}

// group binds GROUP BY. As in PostgreSQL, a name is first a column and then an alias.
func (lb *layerBinder) group() error {
	for _, n := range lb.query.GroupBy {
		target := n
		if c, ok := n.(*syntax.Column); ok && c.Qualifier == "" {
			if _, err := lb.lookup(lb.names, c); fault.CodeOf(err) == fault.CodeUnknownColumn {
				target = aliased(lb.query, n)
			}
		} else if l, ok := n.(*syntax.Literal); ok {
			item, err := lb.ordinal(l, "GROUP BY")
			if err != nil {
				return err
			}
			target = item.Expr
		}
		e, err := lb.expression(layerScope{layerBinder: lb}, target)
		if err != nil {
			return err
		}
		if e, err = lb.coerce(target, e, catalog.Text); err != nil {
			return err
		}
		if err := lb.refuseWindow(n, e, "GROUP BY"); err != nil {
			return err
		}
		lb.layer.keys = append(lb.layer.keys, e)
		lb.keyed = append(lb.keyed, identityOf(e))
	}
	lb.layer.grouped = len(lb.query.GroupBy) > 0 || lb.query.Having != nil
	return nil
}

// outputs binds the select list; * stands for the columns of FROM.
func (lb *layerBinder) outputs() error {
	l := lb.layer
	for _, item := range lb.query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			if err := lb.star(star); err != nil {
				return err
			}
			continue
		}
		if len(l.outputs) > maxOutputs {
			return tooManyOutputs(lb.at(item.Expr))
		}
		e, err := lb.expression(layerScope{lb, true}, item.Expr)
		if err != nil {
			return err
		}
		if e, err = lb.coerce(item.Expr, e, catalog.Text); err != nil {
			return err
		}
		name := item.Alias
		if name == "" {
			name = outputName(item.Expr)
		}
		l.outputs = append(l.outputs, output{name: name, expr: e})
		l.grouped = l.grouped || holdsAggregate(e)
	}
	for _, item := range lb.query.OrderBy {
		l.grouped = l.grouped || callsAggregate(item.Expr)
	}
	return nil
}

// maxOutputs caps the columns of one SELECT, as PostgreSQL does: * of * of * would double them with every level.
const maxOutputs = 1600

func tooManyOutputs(at fault.Position) error {
	return fault.TooComplex(at, fmt.Sprintf("the select list has more than %d columns", maxOutputs))
}

func (lb *layerBinder) star(n *syntax.Star) error {
	before := len(lb.layer.outputs)
	for _, name := range lb.names {
		if n.Qualifier == "" && !name.merged || n.Qualifier != "" && name.relation == n.Qualifier {
			lb.layer.outputs = append(lb.layer.outputs, output{name: name.name, expr: name.e})
		}
	}
	if len(lb.layer.outputs) > maxOutputs {
		return tooManyOutputs(lb.at(n))
	}
	if len(lb.layer.outputs) == before {
		return fault.UnknownTable(lb.at(n), n.Qualifier, relationsOf(lb.names))
	}
	return nil
}

func (lb *layerBinder) groupFilter() (err error) {
	if lb.query.Having == nil {
		return nil
	}
	if lb.layer.having, err = lb.condition(layerScope{lb, true}, lb.query.Having); err != nil {
		return err
	}
	return lb.refuseWindow(lb.query.Having, lb.layer.having, "HAVING")
}

// covered checks that what comes after GROUP BY is made of keys and aggregates, as PostgreSQL would after the charge.
func (lb *layerBinder) covered() error {
	l := lb.layer
	if !l.grouped {
		return nil
	}
	l.ordinal = false
	if q := lb.open.block; q != nil && q.private() && readsBlock(l.from) {
		return fault.Unsupported(lb.position(lb.query.Pos), "an aggregate over groups of which some are left out",
			"groups of few people do not appear, so that it would not be one over all groups; group by public keys inside, or by the privacy unit")
	}
	var all []expr
	for _, out := range l.outputs {
		all = append(all, out.expr)
	}
	if l.having != nil {
		all = append(all, l.having)
	}
	for _, e := range all {
		if err := lb.coveredExpr(e); err != nil {
			return err
		}
	}
	return nil
}

func (lb *layerBinder) coveredExpr(e expr) error {
	if slices.Contains(lb.keyed, identityOf(e)) {
		return nil
	}
	switch e := e.(type) {
	case aggregateCall:
		return nil
	case column:
		if slices.ContainsFunc(lb.names, func(n layerName) bool { return n.e == e }) {
			return fault.Unsupported(lb.position(lb.query.Pos), "column "+fault.Quote(e.of.Name)+", which is neither a group key nor inside an aggregate,",
				"add it to GROUP BY")
		}
		return nil
	}
	for _, child := range children(e) {
		if w, ok := e.(windowCall); ok {
			if err := lb.coveredWindow(w); err != nil {
				return err
			}
			break
		}
		if err := lb.coveredExpr(child); err != nil {
			return err
		}
	}
	return nil
}

// coveredWindow looks into a window: its function is no aggregate of the group, its arguments are.
func (lb *layerBinder) coveredWindow(w windowCall) error {
	for _, child := range w.children() {
		if err := lb.coveredExpr(child); err != nil {
			return err
		}
	}
	return nil
}

// unique binds DISTINCT and DISTINCT ON.
func (lb *layerBinder) unique() error {
	l := lb.layer
	if l.distinct = lb.query.Distinct; l.distinct {
		l.ordinal = false
		l.wrap()
	}
	for _, n := range lb.query.DistinctOn {
		e, err := lb.sortExpr(n, "DISTINCT ON")
		if err != nil {
			return err
		}
		l.on = append(l.on, e)
	}
	return nil
}

// wrap gives the outputs names by which ORDER BY can order the result as a whole.
func (l *layer) wrap() {
	for i, out := range l.outputs {
		t := outputType(out.expr.typ())
		if rawEnum(l, i) {
			t = catalog.Enum
		}
		l.wrapped = append(l.wrapped, &field{Column: &catalog.Column{Name: out.name, Type: t, TypMod: -1}, relation: "d", printed: outputColumn(i)})
	}
}

// order binds ORDER BY: over the rows of FROM, but over the outputs alone after DISTINCT.
func (lb *layerBinder) order() error {
	l := lb.layer
	var shown []string
	for _, out := range l.outputs {
		shown = append(shown, identityOf(out.expr))
	}
	var err error
	l.orderBy, err = lb.orderings(lb.query.OrderBy, func(n syntax.Expr) (expr, error) {
		e, err := lb.sortExpr(n, "ORDER BY")
		if err != nil || !l.distinct {
			return e, err
		}
		if i := slices.Index(shown, identityOf(e)); i >= 0 {
			return column{of: l.wrapped[i]}, nil
		}
		return nil, lb.unsupported(n, "ORDER BY of something that SELECT DISTINCT does not show", "add it to the select list")
	})
	if err != nil {
		return err
	}
	return lb.orderOn()
}

// orderOn makes ORDER BY begin with the expressions of DISTINCT ON, in any order, as PostgreSQL demands; what is missing is added.
func (lb *layerBinder) orderOn() error {
	l := lb.layer
	var left []string
	for _, e := range l.on {
		if id := identityOf(e); !slices.Contains(left, id) {
			left = append(left, id)
		}
	}
	for _, o := range l.orderBy {
		if len(left) == 0 {
			return nil
		}
		i := slices.Index(left, identityOf(o.expr))
		if i < 0 {
			return fault.Unsupported(lb.position(lb.query.Pos), "DISTINCT ON whose expressions are not the first of ORDER BY", "begin ORDER BY with them")
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, e := range l.on {
		if i := slices.Index(left, identityOf(e)); i >= 0 {
			l.orderBy, left = append(l.orderBy, ordering{expr: e}), slices.Delete(left, i, i+1)
		}
	}
	return nil
}

// sortExpr binds an item of ORDER BY or DISTINCT ON: a position, the name of an output, or an expression.
func (lb *layerBinder) sortExpr(n syntax.Expr, clause string) (expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		return lb.outputAt(n, clause)
	case *syntax.Column:
		for _, out := range lb.layer.outputs {
			if n.Qualifier == "" && out.name == n.Name {
				return out.expr, nil
			}
		}
	}
	e, err := lb.expression(layerScope{lb, true}, n)
	if err == nil && lb.layer.grouped {
		err = lb.coveredExpr(e)
	}
	return e, err
}

// outputAt is the output at a position that counts from 1, * expanded.
func (lb *layerBinder) outputAt(n *syntax.Literal, clause string) (expr, error) {
	stars := *lb.query
	stars.Items = make([]syntax.Item, len(lb.layer.outputs))
	counted := *lb.binder
	counted.query = &stars
	if _, err := counted.ordinal(n, clause); err != nil {
		return nil, err
	}
	i, _ := parseNumber(n.Text)
	return lb.layer.outputs[i.Num().Int64()-1].expr, nil
}

// cut binds LIMIT and OFFSET.
func (lb *layerBinder) cut() error {
	limit, err := lb.rowCount(lb.query.Limit, "LIMIT")
	if err != nil {
		return err
	}
	lb.layer.limit = limit
	offset, err := lb.rowCount(lb.query.Offset, "OFFSET")
	if offset != nil {
		lb.layer.offset = *offset
	}
	return err
}

// set binds a set operation. Both sides get the type of the result, column by column.
func (lb *layerBinder) set() (*layer, error) {
	set, l := lb.query.Set, lb.layer
	left, err := lb.open.query(set.Left, lb.env, lb.parent)
	if err != nil {
		return nil, err
	}
	right, err := lb.open.query(set.Right, lb.env, lb.parent)
	if err != nil {
		return nil, err
	}
	if len(left.outputs) != len(right.outputs) {
		return nil, fault.Unsupported(lb.position(set.Pos), string(set.Kind)+" of queries with different numbers of columns", "select as many columns in each")
	}
	at := &syntax.Column{Pos: set.Pos}
	l.set = &layerSet{kind: set.Kind, all: set.All, left: left, right: right}
	for i, out := range left.outputs {
		sides := []expr{typed(out.expr), typed(right.outputs[i].expr)}
		_, t, err := lb.common([]syntax.Expr{at, at}, sides)
		if err != nil {
			return nil, err
		}
		l.outputs = append(l.outputs, output{name: out.name, expr: column{of: &field{Column: &catalog.Column{Name: out.name, Type: t, TypMod: -1}}}})
		l.origins = append(l.origins, either{l: left.origins[i], r: right.origins[i], t: t})
		if l.sizes = append(l.sizes, left.sizes[i]+right.sizes[i]); l.sizes[i] > maxOrigins {
			return nil, fault.TooComplex(lb.position(set.Pos), "the outputs are computed from too many others")
		}
	}
	l.wrap()
	l.orderBy, err = lb.orderings(lb.query.OrderBy, func(n syntax.Expr) (expr, error) { return lb.setOrder(n) })
	if err != nil {
		return nil, err
	}
	return l, lb.cut()
}

// typed is a stand-in of an output's type: constants of both sides have been read by then.
func typed(e expr) expr {
	return column{of: &field{Column: &catalog.Column{Type: outputType(e.typ()), TypMod: -1}}}
}

// setOrder is what ORDER BY of a set operation may name: an output, or its position.
func (lb *layerBinder) setOrder(n syntax.Expr) (expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		e, err := lb.outputAt(n, "ORDER BY")
		for i, out := range lb.layer.outputs {
			if err == nil && out.expr == e {
				return column{of: lb.layer.wrapped[i]}, nil
			}
		}
		return nil, err
	case *syntax.Column:
		for i, out := range lb.layer.outputs {
			if n.Qualifier == "" && out.name == n.Name {
				return column{of: lb.layer.wrapped[i]}, nil
			}
		}
	}
	return nil, lb.unsupported(n, "ORDER BY of an expression after "+string(lb.query.Set.Kind), "name an output or its position")
}
