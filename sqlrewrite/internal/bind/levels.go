package bind

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// GROUP BY with ROLLUP, CUBE or GROUPING SETS over private rows releases each combination of its keys once, as one GROUP BY of all keys
// does. The groups of each set are added up from these cells after the noise: sums and counts are sums of those of their cells, means are
// quotients of such sums. So totals cost nothing, and answers add up. What is no sum over cells is released set by set ([oneByOne]).

// levels binds such a query.
func levels(o *algebra.Opened, q *syntax.Query, env *algebra.Environment) (*algebra.Query, error) {
	if slices.Contains(o.BlockOf, q) {
		return o.Levels, nil
	}
	if l := o.Apart[q]; l != nil {
		return l, nil
	}
	source := sourceOf(o, q, env)
	block, err := bindBlock(source)
	if err != nil {
		return nil, err
	}
	if o.OneByOne || len(o.Blocks) > 0 || separates(source.Binder, block) {
		l, err := oneByOne(o, q, env, block)
		o.Apart[q] = l
		return l, err
	}
	b := &leveled{Binder: source.Binder, block: block, rows: &algebra.Derived{}}
	o.Items++
	b.rows.Alias = nextAlias(o)
	for i, k := range block.Keys {
		b.column(o, algebra.Output{Name: k.Name, Expr: algebra.KeyRef{Index: i, Name: k.Name, T: k.X.Typ()}})
	}
	l := b.query(o)
	block.Outputs, block.Having, block.OrderBy, block.Limit, block.Offset = b.outputs, nil, nil, nil, 0
	inner := &algebra.Query{Block: true, Outputs: b.outputs}
	for _, out := range b.outputs {
		inner.Origins, inner.Sizes = append(inner.Origins, out.Expr), append(inner.Sizes, 1)
	}
	b.rows.Parts = []*algebra.Query{inner}
	block.Source.Note("summed-groups", "totals are sums of the groups that are released: they cost nothing more, and leave out what the "+
		"groups leave out")
	o.Blocks, o.BlockOf, o.Levels = []*algebra.BoundQuery{block}, []*syntax.Query{q}, l
	follow(o, l)
	return l, substituted(o, l, b.Position(q.Pos))
}

// groupingCall binds GROUPING over keys.
func groupingCall(b *algebra.Binder, s domain.Scope, n *syntax.Call, isKey func(algebra.Expr) bool) (algebra.Expr, error) {
	const most = 31 // bits of its value
	args, err := expressions(b, s, n.Args)
	if err != nil {
		return nil, err
	}
	if b.Query.Sets == nil || n.Over != nil || n.Filter != nil || len(args) == 0 || len(args) > most ||
		slices.ContainsFunc(args, func(e algebra.Expr) bool { return !isKey(e) }) {
		return nil, b.Unsupported(n, "GROUPING of this", "name keys of ROLLUP, CUBE or GROUPING SETS, in the select list, HAVING or ORDER BY")
	}
	return algebra.Aggregate{Name: syntax.Grouping, Args: args, T: catalog.Int4}, nil
}

// leveled makes the query over the cells.
type leveled struct {
	*algebra.Binder
	block   *algebra.BoundQuery
	rows    *algebra.Derived
	outputs []algebra.Output // of the block
	places  map[int]int      // of its estimators among them
}

// column makes an output of the block one of its columns.
func (b *leveled) column(o *algebra.Opened, out algebra.Output) {
	f := &algebra.Field{Column: &catalog.Column{Name: out.Name, Type: algebra.OutputType(out.Expr.Typ()), TypMod: -1, Exposed: true},
		Relation: b.rows.Alias, Printed: algebra.OutputColumn(len(b.outputs))}
	o.Origins[f], o.Sizes[f] = out.Expr, 1
	b.outputs, b.rows.Fields = append(b.outputs, out), append(b.rows.Fields, f)
}

// query is what is asked for, over the cells.
func (b *leveled) query(o *algebra.Opened) *algebra.Query {
	q := b.block
	l := &algebra.Query{From: b.rows, Grouped: true, Sets: b.Query.Sets, Limit: q.Limit, Offset: q.Offset}
	for _, at := range b.KeysAt { // no key is a constant here (separates)
		l.Keys = append(l.Keys, algebra.Column{Of: b.rows.Fields[at]})
	}
	total := func(e algebra.Expr) algebra.Expr { return b.total(o, e) }
	for _, out := range q.Outputs {
		l.Outputs = append(l.Outputs, algebra.Output{Name: out.Name, Expr: total(out.Expr)})
	}
	if q.Having != nil {
		l.Having = total(q.Having)
	}
	for _, by := range q.OrderBy {
		by.Expr = total(by.Expr)
		l.OrderBy = append(l.OrderBy, by)
	}
	return l
}

// total is an expression of the block's groups over the groups of a set.
func (b *leveled) total(o *algebra.Opened, e algebra.Expr) algebra.Expr {
	defer steps.Visit(o.Steps).Leave()
	switch e := e.(type) {
	case algebra.KeyRef:
		return algebra.Column{Of: b.rows.Fields[e.Index]}
	case algebra.EstimatorRef:
		v := b.block.Estimators[e.Index]
		if v.How == algebra.MeanOf {
			return b.mean(o, v)
		}
		if b.block.PublicTuples().Sign() == 0 { // a count is 0 then, where the sum of no released counts is NULL
			return algebra.Constant{T: v.T, Text: "0"}
		}
		return sqlprint.CastTo(b.sum(o, e.Index), v.T)
	default:
		return algebra.Map(e, func(x algebra.Expr) algebra.Expr { return b.total(o, x) })
	}
}

// adds reports whether a statistic of several groups together is the sum of theirs.
func adds(m algebra.Statistic) bool {
	return m.Kind == algebra.CountRows || m.Kind == algebra.CountValues || m.Kind == algebra.SumSteps
}

// sum adds up an estimator over the cells, in the type that PostgreSQL adds in.
func (b *leveled) sum(o *algebra.Opened, estimator int) algebra.Aggregate {
	v := b.block.Estimators[estimator]
	at, known := b.places[estimator]
	if !known {
		if b.places == nil {
			b.places = make(map[int]int)
		}
		at = len(b.outputs)
		b.places[estimator] = at
		b.column(o, algebra.Output{Name: v.Name, Expr: algebra.EstimatorRef{Index: estimator, T: v.T}})
	}
	t, _ := domain.BuiltinOf("sum").Form.Result(v.T)
	return algebra.Aggregate{Name: "sum", Args: []algebra.Expr{algebra.Column{Of: b.rows.Fields[at]}}, T: t}
}

// mean is the quotient of the sums of centred values and of their numbers, and the centre, within the bounds of the values. It is NULL
// where the number is not positive, as it is of one group.
func (b *leveled) mean(o *algebra.Opened, v algebra.Estimator) algebra.Expr {
	released := func(of int, t catalog.Type) algebra.Expr {
		v := algebra.Estimator{Name: b.block.Statistics[of].Name, T: t, Of: []int{of}}
		return b.sum(o, estimator(b.Binder, v).Index)
	}
	g := b.block.Statistics[v.Of[1]].Grid
	number := func(v *big.Rat) algebra.Expr { return algebra.NumberConstant(v, true) }
	call := func(name string, args ...algebra.Expr) algebra.Expr {
		return algebra.Call{Name: name, Args: args, T: catalog.Numeric}
	}
	rows := released(v.Of[0], catalog.Int8)
	mean := algebra.Binary{Op: syntax.Add, T: catalog.Numeric, R: number(scalar.InUnits(g.Centre(), g.Step)),
		L: algebra.Binary{Op: syntax.Divide, T: catalog.Numeric, L: released(v.Of[1], catalog.Numeric), R: rows}}
	bounded := call("greatest", call("least", mean, number(g.Value(g.Hi))), number(g.Value(g.Lo)))
	some := algebra.Binary{Op: syntax.Gt, T: catalog.Bool, L: rows, R: number(new(big.Rat))}
	return algebra.Choice{T: v.T, Arms: []algebra.Arm{{Cond: some, Result: sqlprint.CastTo(bounded, v.T)}}}
}
