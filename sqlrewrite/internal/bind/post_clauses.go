package bind

import (
	"errors"
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// postBinder resolves one SELECT after the noise.
type postBinder struct {
	*algebra.Binder
	open  *algebra.Opened
	query *algebra.Query
}

// postOf binds a query whose rows are public or released. Outer is the query around it, whose columns an expression inside may name; nil
// for none.
func postOf(o *algebra.Opened, q *syntax.Query, env *algebra.Environment, outer *algebra.Binder) (*algebra.Query, error) {
	defer steps.Visit(o.Steps).Leave()
	switch kind := KindOf(o, q, env); {
	case kind == algebra.OwnedRows:
		return nil, fault.Unsupported(scalar.Position(o.Text, q.Pos), "a query over private rows, without an aggregate, in this place",
			"aggregate them: only released values can stand here")
	case kind == algebra.ReleasedRows && isBlock(o, q, env):
		if reshaped(q) {
			return reshape(o, q, env, outer)
		}
		if q.Sets != nil {
			return levels(o, q, env)
		}
		return releaseBlock(o, q, env)
	}
	lb := &postBinder{Binder: newBinder(o, q, env), open: o, query: &algebra.Query{}}
	lb.Outer, lb.Merged = outer, o.Merged
	if q.Set != nil {
		return lb.set()
	}
	for _, step := range []func() error{lb.items, lb.filter, lb.group, lb.outputs, lb.groupFilter, lb.covered, lb.unique, lb.order, lb.cut} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if lb.query.Rows() == algebra.OwnedRows {
		return nil, fault.Internal(errOwned)
	}
	follow(lb.open, lb.query)
	return lb.query, substituted(o, lb.query, lb.Position(q.Pos))
}

// errOwned: no query after the noise reads rows of units, whatever was said of what it reads before it was bound.
var errOwned = errors.New("sqlrewrite: a post-processing query reads private rows")

// releaseBlock binds the one query that reads private rows.
func releaseBlock(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) (*algebra.Query, error) {
	at := slices.Index(o.BlockOf, q)
	if at < 0 {
		block, err := bindAnother(o, q, env)
		if err != nil {
			return nil, err
		}
		at = len(o.Blocks)
		o.Blocks, o.BlockOf = append(o.Blocks, block), append(o.BlockOf, q)
		followBlock(o, block)
	}
	return blockQuery(o, at), nil
}

// blockQuery is the query whose rows are those of a block.
func blockQuery(o *algebra.Opened, at int) *algebra.Query {
	l := &algebra.Query{Block: true, BlockAt: at, Outputs: o.Blocks[at].Outputs}
	keys, estimators := algebra.Offsets(o.Blocks, at)
	for _, out := range l.Outputs {
		l.Origins, l.Sizes = append(l.Origins, algebra.Shifted(out.Expr, keys, estimators)), append(l.Sizes, sizeOf(o, out.Expr))
	}
	return l
}

// maxBlocks caps the releases of one statement: each has its share of the price.
const maxBlocks = 8

// bindAnother binds the next release block of a statement. Among its outputs, queries over other releases can stand for values.
func bindAnother(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) (*algebra.BoundQuery, error) {
	at := scalar.Position(o.Text, q.Pos)
	s := sourceOf(o, q, env)
	if s.Refused == nil {
		s.Value = func(n *syntax.Scalar) (algebra.Expr, error) {
			if KindOf(o, n.Query, s.CTEs) != algebra.ReleasedRows {
				return nil, refuseScalar(s.Binder, n)
			}
			l, err := postOf(o, n.Query, s.CTEs, nil)
			if err != nil {
				return nil, err
			}
			return scalarOf(s.Binder, n, l)
		}
		s.Buy = buyer(o, s)
	}
	block, err := bindBlock(s)
	switch {
	case err != nil:
		return nil, err
	case o.Levels != nil:
		o.Beside = true
		return nil, fault.Unsupported(at, "a second query over private rows beside totals that are sums of groups", "")
	case len(o.Blocks) >= maxBlocks:
		return nil, fault.TooComplex(at, fmt.Sprintf("the statement has more than %d queries over private rows", maxBlocks))
	}
	return block, nil
}

// reshaped reports whether DISTINCT or DISTINCT ON drops rows of a release: then it is a query of its own.
func reshaped(q *syntax.Query) bool {
	if !q.Distinct || !q.Groups() {
		return q.DistinctOn != nil
	}
	if q.Sets != nil {
		return true // rows of two sets may be equal
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
func reshape(o *algebra.Opened, q *syntax.Query, env *algebra.Environment, around *algebra.Binder) (*algebra.Query, error) {
	inner := *q
	inner.Distinct, inner.DistinctOn, inner.OrderBy, inner.Limit, inner.Offset = false, nil, nil, nil, nil
	o.Sources[&inner] = o.Sources[q].Of(&inner)
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
			return nil, fault.Unsupported(scalar.Position(o.Text, n.At()), "an expression that DISTINCT is ordered by",
				"name an output or its position")
		}
	}
	return postOf(o, outer, env, around)
}

// postScope is what names mean inside a post-processing query.
type postScope struct {
	*postBinder
	aggregates bool // where they may stand: the select list, HAVING, ORDER BY
}

func (postScope) Computes() bool { return true }

func (s postScope) Column(n *syntax.Column) (algebra.Expr, error) {
	f, err := column(s.Binder, n)
	if err != nil {
		return nil, err
	}
	return s.ValueOf(f), nil
}

func (s postScope) Call(n *syntax.Call) (algebra.Expr, error) {
	if n.Name == syntax.Grouping {
		return groupingCall(s.Binder, s, n, func(e algebra.Expr) bool {
			return s.aggregates && slices.ContainsFunc(s.query.Keys, func(key algebra.Expr) bool { return algebra.Identical(key, e) })
		})
	}
	if n.Over != nil {
		return windowFunction(s.Binder, s, s.Query.Windows, n)
	}
	if f := domain.BuiltinOf(n.Name); f.IsExact() && domain.InCatalog(n) {
		if !s.aggregates {
			return nil, s.Unsupported(n, "an aggregate in this place", "use HAVING, or compute it in a subquery")
		}
		return exactAggregate(s.Binder, postScope{postBinder: s.postBinder}, n)
	}
	f, err := domain.Function(s.Binder, n)
	if err != nil {
		return nil, err
	}
	if f.Kind == domain.RefusedAggregate {
		return nil, s.Unsupported(n, "aggregate "+n.Name, f.Hint)
	}
	return call(s.Binder, s, n)
}

// subquery binds a query inside an expression. It may name columns of the queries around it.
func (s postScope) subquery(n syntax.Expr) (algebra.Expr, error) {
	switch n := n.(type) {
	case *syntax.Scalar:
		l, err := s.inside(n, n.Query)
		if err != nil {
			return nil, err
		}
		return scalarOf(s.Binder, n, l)
	case *syntax.Exists:
		l, err := s.inside(n, n.Query)
		return algebra.Subquery{Kind: algebra.ExistsSub, Query: l, T: catalog.Bool}, err
	case *syntax.InQuery:
		l, err := s.inside(n, n.Query)
		if err != nil {
			return nil, err
		}
		sub := algebra.Subquery{Kind: algebra.InSub, Query: l, T: catalog.Bool}
		if len(l.Outputs) != len(n.X) {
			return nil, s.Unsupported(n, "IN with another number of columns than its query has", "")
		}
		for i, x := range n.X {
			e, err := expression(s.Binder, s, x)
			if err != nil {
				return nil, err
			}
			out := algebra.Column{Of: &algebra.Field{Column: &catalog.Column{Type: algebra.OutputType(l.Outputs[i].Expr.Typ()), TypMod: -1}}}
			if e, _, err = domain.Unify(s.Binder, n, syntax.Eq, x, x, e, out); err != nil {
				return nil, err
			}
			sub.X = append(sub.X, e)
		}
		return sub, nil
	default:
		return nil, s.Unsupported(n, "this expression", "")
	}
}

// scalarOf is a query that stands for a value.
func scalarOf(b *algebra.Binder, n *syntax.Scalar, l *algebra.Query) (algebra.Expr, error) {
	if len(l.Outputs) != 1 {
		return nil, b.Unsupported(n, "a query of several columns as a value", "select one column")
	}
	return algebra.Subquery{Kind: algebra.ScalarSub, Query: l, T: algebra.OutputType(l.Outputs[0].Expr.Typ())}, nil
}

func (s postScope) inside(at syntax.Expr, q *syntax.Query) (*algebra.Query, error) {
	if KindOf(s.open, q, s.CTEs) == algebra.OwnedRows {
		return nil, fault.Unsupported(s.At(at), "a query over private rows inside an expression",
			"ask for its result first and write that as a constant")
	}
	return postOf(s.open, q, s.CTEs, s.Binder)
}

func (lb *postBinder) filter() (err error) {
	lb.query.Where, err = filter(lb.Binder, postScope{postBinder: lb}, lb.Query.Where, "WHERE")
	return err
}

// group binds GROUP BY.
func (lb *postBinder) group() error {
	lb.query.Sets = lb.Query.Sets
	for _, n := range lb.Query.GroupBy {
		target, err := groupItem(lb.Binder, n)
		if err != nil {
			return err
		}
		e, err := settled(lb.Binder, postScope{postBinder: lb}, target)
		if err != nil {
			return err
		}
		if err := refuseWindow(lb.Binder, n, e, "GROUP BY"); err != nil {
			return err
		}
		lb.query.Keys = append(lb.query.Keys, e)
	}
	return nil
}

// overPrivate reports whether an item of FROM has rows of a release whose groups are not all shown.
func (lb *postBinder) overPrivate(n algebra.FromItem) bool {
	switch n := n.(type) {
	case *algebra.Joined:
		return lb.overPrivate(n.Left) || lb.overPrivate(n.Right)
	case *algebra.Derived:
		l := n.Parts[0]
		for l.Set != nil {
			if lb.overPrivate(&algebra.Derived{Parts: []*algebra.Query{l.Set.Left}}) {
				return true
			}
			l = l.Set.Right
		}
		if l.Block {
			return lb.open.Blocks[l.BlockAt].Private()
		}
		return lb.overPrivate(l.From)
	default:
		return false
	}
}

// outputs binds the select list; * stands for the columns of FROM.
func (lb *postBinder) outputs() error {
	l := lb.query
	for _, item := range lb.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			if err := lb.star(star); err != nil {
				return err
			}
			continue
		}
		if len(l.Outputs) > maxOutputs {
			return tooManyOutputs(lb.At(item.Expr))
		}
		e, err := settled(lb.Binder, postScope{lb, true}, item.Expr)
		if err != nil {
			return err
		}
		l.Outputs = append(l.Outputs, algebra.Output{Name: itemName(item), Expr: e})
	}
	l.Grouped = lb.Query.Groups() || lb.Query.Having != nil || slices.ContainsFunc(l.Results(), holdsAggregate) ||
		slices.ContainsFunc(lb.Query.OrderBy, func(i syntax.OrderItem) bool { return callsAggregate(i.Expr) })
	return nil
}

// maxOutputs caps the columns of one SELECT, as PostgreSQL does: * of * of * would double them with every level.
const maxOutputs = 1600

func tooManyOutputs(at fault.Position) error {
	return fault.TooComplex(at, fmt.Sprintf("the select list has more than %d columns", maxOutputs))
}

func (lb *postBinder) star(n *syntax.Star) error {
	fields, err := starFields(lb.Binder, lb.Bound.Source, n)
	switch {
	case err != nil:
		return err
	case len(fields) == 0:
		return fault.UnknownTable(lb.At(n), n.Qualifier, nil)
	case len(lb.query.Outputs)+len(fields) > maxOutputs:
		return tooManyOutputs(lb.At(n))
	}
	for _, f := range fields {
		lb.query.Outputs = append(lb.query.Outputs, algebra.Output{Name: f.Name, Expr: lb.ValueOf(f)})
	}
	return nil
}

func (lb *postBinder) groupFilter() (err error) {
	lb.query.Having, err = filter(lb.Binder, postScope{lb, true}, lb.Query.Having, "HAVING")
	return err
}

// covered checks that what comes after GROUP BY is made of keys and aggregates, as PostgreSQL would after the charge.
func (lb *postBinder) covered() error {
	l := lb.query
	if !l.Grouped {
		return nil
	}
	if lb.overPrivate(l.From) {
		return fault.Unsupported(lb.Position(lb.Query.Pos), "an aggregate over groups of which some are left out",
			"groups of few people do not appear, so that it would not be one over all groups; group by public keys inside, or by the privacy unit")
	}
	var all []algebra.Expr
	for _, out := range l.Outputs {
		all = append(all, out.Expr)
	}
	if l.Having != nil {
		all = append(all, l.Having)
	}
	for _, e := range all {
		if err := lb.coveredExpr(e); err != nil {
			return err
		}
	}
	return nil
}

func (lb *postBinder) coveredExpr(e algebra.Expr) error {
	if slices.ContainsFunc(lb.query.Keys, func(key algebra.Expr) bool { return algebra.Identical(key, e) }) {
		return nil
	}
	switch e := e.(type) {
	case algebra.Aggregate:
		if e.Over == nil {
			return nil
		} // the function of a window is no aggregate of the group; its arguments are
	case algebra.Column:
		if lb.Bound.Source.Has(e.Of) {
			return fault.Unsupported(lb.Position(lb.Query.Pos), "column "+fault.Quote(e.Of.Name)+
				", which is neither a group key nor inside an aggregate,",
				"add it to GROUP BY").WithPart(scalar.NameText(e.Of.Name))
		}
		return nil
	}
	for _, child := range algebra.Children(e) {
		if err := lb.coveredExpr(child); err != nil {
			return err
		}
	}
	return nil
}

// unique binds DISTINCT and DISTINCT ON.
func (lb *postBinder) unique() error {
	l := lb.query
	if l.Distinct = lb.Query.Distinct; l.Distinct {
		l.Wrap()
	}
	for _, n := range lb.Query.DistinctOn {
		e, err := lb.sortExpr(n, "DISTINCT ON")
		if err != nil {
			return err
		}
		l.On = append(l.On, e)
	}
	return nil
}

// order binds ORDER BY: over the rows of FROM, but over the outputs alone after DISTINCT.
func (lb *postBinder) order() error {
	l := lb.query
	var err error
	l.OrderBy, err = orderings(lb.Binder, lb.Query.OrderBy, func(n syntax.Expr) (algebra.Expr, error) {
		e, err := lb.sortExpr(n, "ORDER BY")
		if err != nil || !l.Distinct {
			return e, err
		}
		if i := slices.IndexFunc(l.Outputs, func(out algebra.Output) bool { return algebra.Identical(out.Expr, e) }); i >= 0 {
			return algebra.Column{Of: l.Wrapped[i]}, nil
		}
		return nil, lb.Unsupported(n, "ORDER BY of something that SELECT DISTINCT does not show", "add it to the select list")
	})
	if err != nil {
		return err
	}
	return lb.orderOn()
}

// orderOn makes ORDER BY begin with the expressions of DISTINCT ON, in any order, as PostgreSQL demands; what is missing is added.
func (lb *postBinder) orderOn() error {
	l := lb.query
	var left []algebra.Expr
	place := func(e algebra.Expr) int {
		return slices.IndexFunc(left, func(on algebra.Expr) bool { return algebra.Identical(on, e) })
	}
	for _, e := range l.On {
		if place(e) < 0 {
			left = append(left, e)
		}
	}
	for _, o := range l.OrderBy {
		if len(left) == 0 {
			return nil
		}
		i := place(o.Expr)
		if i < 0 {
			return fault.Unsupported(lb.Position(lb.Query.Pos), "DISTINCT ON whose expressions are not the first of ORDER BY",
				"begin ORDER BY with them")
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, e := range left {
		l.OrderBy = append(l.OrderBy, algebra.Ordering{Expr: e})
	}
	return nil
}

// sortExpr binds an item of ORDER BY or DISTINCT ON: a position, the name of an output, or an expression.
func (lb *postBinder) sortExpr(n syntax.Expr, clause string) (algebra.Expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		return lb.outputAt(n, clause)
	case *syntax.Column:
		for _, out := range lb.query.Outputs {
			if n.Qualifier == "" && out.Name == n.Name {
				return out.Expr, nil
			}
		}
	}
	e, err := expression(lb.Binder, postScope{lb, true}, n)
	if err == nil && lb.query.Grouped {
		err = lb.coveredExpr(e)
	}
	return e, err
}

// outputAt is the output at a position that counts from 1, * expanded.
func (lb *postBinder) outputAt(n *syntax.Literal, clause string) (algebra.Expr, error) {
	stars := *lb.Query
	stars.Items = make([]syntax.Item, len(lb.query.Outputs))
	counted := *lb.Binder
	counted.Query = &stars
	if _, err := ordinal(&counted, n, clause); err != nil {
		return nil, err
	}
	i, _ := scalar.ParseNumber(n.Text)
	return lb.query.Outputs[i.Num().Int64()-1].Expr, nil
}

// cut binds LIMIT and OFFSET.
func (lb *postBinder) cut() (err error) {
	lb.query.Limit, lb.query.Offset, err = limitOffset(lb.Binder)
	return err
}

// set binds a set operation. Both sides get the type of the result, column by column.
func (lb *postBinder) set() (*algebra.Query, error) {
	set, l := lb.Query.Set, lb.query
	left, err := postOf(lb.open, set.Left, lb.CTEs, lb.Outer)
	if err != nil {
		return nil, err
	}
	right, err := postOf(lb.open, set.Right, lb.CTEs, lb.Outer)
	if err != nil {
		return nil, err
	}
	if len(left.Outputs) != len(right.Outputs) {
		return nil, fault.Unsupported(lb.Position(set.Pos), string(set.Kind)+" of queries with different numbers of columns",
			"select as many columns in each")
	}
	l.Set = &algebra.SetOperation{Kind: set.Kind, All: set.All, Left: left, Right: right}
	if err := lb.sides(set.Pos); err != nil {
		return nil, err
	}
	l.OrderBy, err = orderings(lb.Binder, lb.Query.OrderBy, func(n syntax.Expr) (algebra.Expr, error) { return lb.setOrder(n) })
	if err != nil {
		return nil, err
	}
	return l, lb.cut()
}

// sides makes the outputs of a set operation, of the types that both sides have in common.
func (lb *postBinder) sides(pos syntax.Pos) error {
	l, at := lb.query, &syntax.Column{Pos: pos}
	left, right := l.Set.Left, l.Set.Right
	for i, out := range left.Outputs {
		sides := []algebra.Expr{typed(out.Expr), typed(right.Outputs[i].Expr)}
		_, t, err := domain.Common(lb.Binder, []syntax.Expr{at, at}, sides)
		if err != nil {
			return err
		}
		l.Outputs = append(l.Outputs, algebra.Output{Name: out.Name, Expr: algebra.Column{
			Of: &algebra.Field{Column: &catalog.Column{Name: out.Name, Type: t, TypMod: -1}}}})
		l.Origins = append(l.Origins, algebra.Either{L: left.Origins[i], R: right.Origins[i], T: t,
			Left: carried(l, left), Right: carried(l, right)})
		if l.Sizes = append(l.Sizes, left.Sizes[i]+right.Sizes[i]); l.Sizes[i] > maxOrigins {
			return fault.TooComplex(lb.Position(pos), "the outputs are computed from too many others")
		}
	}
	l.Wrap()
	return nil
}

// carried are the blocks by which a row of a set operation is known to be of one of its sides.
func carried(l, side *algebra.Query) []int {
	if l.Carried(true) == nil {
		return nil
	}
	return side.Carried(true)
}

// typed is a stand-in of an output's type: constants of both sides have been read by then.
func typed(e algebra.Expr) algebra.Expr {
	return algebra.Column{Of: &algebra.Field{Column: &catalog.Column{Type: algebra.OutputType(e.Typ()), TypMod: -1}}}
}

// setOrder is what ORDER BY of a set operation may name: an output, or its position.
func (lb *postBinder) setOrder(n syntax.Expr) (algebra.Expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		e, err := lb.outputAt(n, "ORDER BY")
		for i, out := range lb.query.Outputs {
			if err == nil && out.Expr == e {
				return algebra.Column{Of: lb.query.Wrapped[i]}, nil
			}
		}
		return nil, err
	case *syntax.Column:
		for i, out := range lb.query.Outputs {
			if n.Qualifier == "" && out.Name == n.Name {
				return algebra.Column{Of: lb.query.Wrapped[i]}, nil
			}
		}
	}
	return nil, lb.Unsupported(n, "ORDER BY of an expression after "+string(lb.Query.Set.Kind), "name an output or its position")
}
