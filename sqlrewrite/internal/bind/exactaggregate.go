package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// aggregateCall is an aggregate over rows that hold nothing private (released values, public tables): PostgreSQL's own, exact.
type aggregateCall struct {
	name     string
	args     []expr
	star     bool
	distinct bool
	order    []ordering // inside the parentheses
	within   []ordering // WITHIN GROUP
	filter   expr       // nil: none
	t        catalog.Type
}

func (e aggregateCall) typ() catalog.Type { return e.t }

func (e aggregateCall) children() []expr {
	all := append([]expr(nil), e.args...)
	for _, o := range append(append([]ordering(nil), e.order...), e.within...) {
		all = append(all, o.expr)
	}
	if e.filter != nil {
		all = append(all, e.filter)
	}
	return all
}

// aggregateForm is how an aggregate's arguments and result are typed.
type aggregateForm int

const (
	countForm     aggregateForm = iota // any -> bigint
	sumForm                            // number -> as sum
	meanForm                           // number -> as avg
	extremeForm                        // what has an order -> the same
	spreadForm                         // number -> numeric or float8
	booleanForm                        // boolean -> boolean
	pairForm                           // two numbers -> float8
	pairCountForm                      // two numbers -> bigint
	joinForm                           // two texts -> text
	quantileForm                       // fraction, WITHIN GROUP (ORDER BY number) -> float8
	orderedForm                        // fraction, WITHIN GROUP (ORDER BY x) -> as x
	modeForm                           // WITHIN GROUP (ORDER BY x) -> as x
	medianForm                         // number -> float8; percentile_cont(0.5) in PostgreSQL's words
)

var exactAggregates = map[string]aggregateForm{
	"count": countForm, "sum": sumForm, "avg": meanForm, "min": extremeForm, "max": extremeForm,
	"var_pop": spreadForm, "var_samp": spreadForm, "variance": spreadForm, "stddev": spreadForm, "stddev_pop": spreadForm, "stddev_samp": spreadForm,
	"bool_and": booleanForm, "bool_or": booleanForm, "every": booleanForm,
	"corr": pairForm, "covar_pop": pairForm, "covar_samp": pairForm, "regr_slope": pairForm, "regr_intercept": pairForm, "regr_r2": pairForm,
	"regr_avgx": pairForm, "regr_avgy": pairForm, "regr_sxx": pairForm, "regr_syy": pairForm, "regr_sxy": pairForm, "regr_count": pairCountForm,
	"string_agg":      joinForm,
	"percentile_cont": quantileForm, "percentile_disc": orderedForm, "mode": modeForm, "median": medianForm,
}

func exactAggregateNames() []string {
	var names []string
	for name := range exactAggregates {
		names = append(names, name)
	}
	return names
}

// exactAggregate binds an aggregate over rows that hold nothing private.
func (b *binder) exactAggregate(s scope, n *syntax.Call) (aggregateCall, error) {
	form := exactAggregates[n.Name]
	e := aggregateCall{name: n.Name, star: n.Star, distinct: n.Distinct}
	if n.Star && (n.Name != "count" || n.Distinct) {
		return e, b.mismatch(n, n.Name+" needs an argument", "")
	}
	var err error
	if n.Filter != nil {
		if e.filter, err = b.condition(s, n.Filter); err != nil {
			return e, err
		}
	}
	if e.args, err = b.expressions(s, n.Args); err != nil {
		return e, err
	}
	bind := func(n syntax.Expr) (expr, error) { return b.expression(s, n) }
	if e.order, err = b.orderings(n.OrderBy, bind); err != nil {
		return e, err
	}
	if e.within, err = b.orderings(n.Within, bind); err != nil {
		return e, err
	}
	if err := b.typeAggregate(n, form, &e); err != nil {
		return e, err
	}
	for _, child := range e.children() {
		if holdsAggregate(child) {
			return e, b.unsupported(n, "an aggregate inside an aggregate", "compute the inner one in a subquery")
		}
	}
	return e, nil
}

// arguments is how many a form takes, and how many after WITHIN GROUP.
func (f aggregateForm) arguments(star bool) (plain, within int) {
	switch f {
	case pairForm, pairCountForm, joinForm:
		return 2, 0
	case quantileForm, orderedForm:
		return 1, 1
	case modeForm:
		return 0, 1
	case countForm, sumForm, meanForm, extremeForm, spreadForm, booleanForm, medianForm:
	}
	if star {
		return 0, 0
	}
	return 1, 0
}

// constants is the type of a string constant among the arguments.
func (f aggregateForm) constants() catalog.Type {
	switch f {
	case countForm, extremeForm, joinForm:
		return catalog.Text
	case booleanForm:
		return catalog.Bool
	case sumForm, meanForm, spreadForm, pairForm, pairCountForm, quantileForm, orderedForm, modeForm, medianForm:
	}
	return catalog.Float8
}

// typeAggregate checks the arguments of an aggregate and finds its type.
func (b *binder) typeAggregate(n *syntax.Call, form aggregateForm, e *aggregateCall) error {
	wrong := func() error { return b.mismatch(n, n.Name+" does not take these arguments", "") }
	want, within := form.arguments(n.Star)
	if len(e.args) != want || len(e.within) != within || len(e.order) > 0 && form != joinForm ||
		e.distinct && (within > 0 || len(e.order) > 0) {
		return wrong()
	}
	for i := range e.args {
		var err error
		if e.args[i], err = b.coerce(n.Args[i], e.args[i], form.constants()); err != nil {
			return err
		}
	}
	of := unknownType
	switch {
	case within > 0:
		of = e.within[0].expr.typ()
	case want > 0:
		of = e.args[0].typ()
	}
	switch form {
	case countForm:
		e.t = catalog.Int8
		return nil
	case sumForm, meanForm, spreadForm, quantileForm, medianForm:
		if !of.IsNumber() {
			return wrong()
		}
		e.t = numericOf(form, of)
	case extremeForm:
		if familyOf(of) == boolFamily || familyOf(of) == uuidFamily {
			return wrong()
		}
		e.t = of
	case orderedForm, modeForm:
		e.t = of
	case booleanForm:
		if of != catalog.Bool {
			return wrong()
		}
		e.t = catalog.Bool
	case pairForm, pairCountForm:
		if !of.IsNumber() || !e.args[1].typ().IsNumber() {
			return wrong()
		}
		if e.t = catalog.Float8; form == pairCountForm {
			e.t = catalog.Int8
		}
	case joinForm:
		if familyOf(of) != textFamily || familyOf(e.args[1].typ()) != textFamily {
			return wrong()
		}
		e.t = catalog.Text
	}
	if (form == quantileForm || form == orderedForm) && !isFraction(e.args[0]) {
		return b.unsupported(n.Args[0], "a fraction that is not a constant from 0 to 1", "write percentile_cont(0.5)")
	}
	return nil
}

func numericOf(form aggregateForm, t catalog.Type) catalog.Type {
	switch form {
	case sumForm:
		return sumType(t)
	case quantileForm, medianForm:
		return catalog.Float8
	default:
		return meanType(t)
	}
}

// isFraction reports whether an expression is a constant from 0 to 1.
func isFraction(e expr) bool {
	c, ok := e.(constant)
	v, number := parseNumber(c.text)
	return ok && !c.null && number && v.Sign() >= 0 && v.Cmp(one()) <= 0
}

// aggregate prints an aggregateCall.
func (p *printer) aggregate(e aggregateCall) {
	args := e.args
	switch e.name {
	case "median":
		p.functionName("percentile_cont")
		p.write("(")
		p.constant(constant{t: catalog.Float8, text: "0.5"})
		p.write(") WITHIN GROUP (ORDER BY ")
		p.floatKey(args[0])
		p.write(")")
	case "percentile_cont":
		p.functionName(e.name)
		p.write("(")
		p.expr(castTo(args[0], catalog.Float8))
		p.write(") WITHIN GROUP (ORDER BY ")
		p.floatKey(e.within[0].expr)
		p.write([]string{" ASC", " DESC"}[boolIndex(e.within[0].descending)], ")")
	default:
		p.functionName(e.name)
		p.write("(")
		p.aggregateArguments(e)
		p.write(")")
		if len(e.within) > 0 {
			p.write(" WITHIN GROUP (ORDER BY ")
			p.orderings(e.within)
			p.write(")")
		}
	}
	if e.filter != nil {
		p.write(" FILTER (WHERE ")
		p.expr(e.filter)
		p.write(")")
	}
}

func (p *printer) aggregateArguments(e aggregateCall) {
	if e.star {
		p.write("*")
	}
	if e.distinct {
		p.write("DISTINCT ")
	}
	for i, x := range e.args {
		p.separator(i)
		switch {
		case e.name == "percentile_disc":
			p.expr(castTo(x, catalog.Float8))
		case exactAggregates[e.name] == pairForm || exactAggregates[e.name] == pairCountForm:
			p.expr(castTo(x, catalog.Float8))
		case e.name == "min" || e.name == "max":
			p.sortKey(x)
		case e.distinct:
			p.collated(x)
		default:
			p.expr(x)
		}
	}
	if len(e.order) > 0 {
		p.write(" ORDER BY ")
		p.orderings(e.order)
	}
}

// floatKey prints a number as what percentile_cont interpolates between.
func (p *printer) floatKey(e expr) { p.expr(castTo(e, catalog.Float8)) }

func (p *printer) functionName(name string) {
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(name)
}

// castTo is e as a value of type t.
func castTo(e expr, t catalog.Type) expr {
	if e.typ() == t {
		return e
	}
	return cast{x: e, t: t}
}

// holdsAggregate reports whether an aggregate that is no window function's is part of an expression.
func holdsAggregate(e expr) bool {
	if _, ok := e.(aggregateCall); ok {
		return true
	}
	if w, ok := e.(windowCall); ok {
		for _, child := range w.children() {
			if holdsAggregate(child) {
				return true
			}
		}
		return false
	}
	for _, child := range children(e) {
		if holdsAggregate(child) {
			return true
		}
	}
	return false
}
