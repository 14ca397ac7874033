package bind

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// windowFunction binds a call with OVER in a scope that holds nothing private; named are the windows of the query's WINDOW clause.
func windowFunction(b *algebra.Binder, s domain.Scope, named []syntax.NamedWindow, n *syntax.Call) (algebra.Expr, error) {
	if !domain.InCatalog(n) {
		return nil, fault.UnknownFunction(b.At(n), n.Schema+"."+n.Name, nil)
	}
	if n.Distinct || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.Unsupported(n, "DISTINCT or ORDER BY inside a window function", "")
	}
	definition, err := resolveWindow(b, named, n.Over)
	if err != nil {
		return nil, err
	}
	e, err := windowed(b, s, n)
	if err != nil {
		return nil, err
	}
	e.Over = &algebra.Window{}
	if e.Over.Partition, err = expressions(b, s, definition.PartitionBy); err != nil {
		return nil, err
	}
	e.Over.Order, err = orderings(b, definition.OrderBy, func(n syntax.Expr) (algebra.Expr, error) { return expression(b, s, n) })
	if err != nil {
		return nil, err
	}
	if e.Over.Frame, err = frame(b, definition, e.Over.Order); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(algebra.Children(e), holdsWindow) {
		return nil, b.Unsupported(n, "a window function inside a window function", "compute the inner one in a subquery")
	}
	return e, nil
}

// resolveWindow adds what stands in OVER to the named window that it refers to.
func resolveWindow(b *algebra.Binder, named []syntax.NamedWindow, w *syntax.Window) (*syntax.Window, error) {
	if w.Name == "" {
		return w, nil
	}
	var names []string
	for i, known := range named {
		names = append(names, known.Name)
		if known.Name != w.Name {
			continue
		}
		base, err := resolveWindow(b, named[:i], known.Window) // a window refers to earlier ones only
		if err != nil {
			return nil, err
		}
		merged := *base
		switch {
		case len(w.PartitionBy) > 0:
			return nil, fault.Unsupported(b.Position(w.Pos), "PARTITION BY over the named window "+fault.Quote(w.Name), "write the whole window")
		case len(w.OrderBy) > 0 && len(base.OrderBy) > 0:
			return nil, fault.Unsupported(b.Position(w.Pos), "a second ORDER BY over the named window "+fault.Quote(w.Name),
				"write the whole window")
		case len(w.OrderBy) > 0:
			merged.OrderBy = w.OrderBy
		}
		if w.Frame != nil {
			merged.Frame = w.Frame
		}
		return &merged, nil
	}
	return nil, fault.UnknownWindow(b.Position(w.Pos), w.Name, names)
}

// windowed binds the function of a window and its arguments.
func windowed(b *algebra.Binder, s domain.Scope, n *syntax.Call) (algebra.Aggregate, error) {
	f := domain.BuiltinOf(n.Name)
	switch {
	case f.IsExact() && f.Form.Ordered():
		return algebra.Aggregate{}, b.Unsupported(n, n.Name+" as a window function", "compute it in a subquery with GROUP BY")
	case f.IsExact():
		return exactAggregate(b, s, n)
	case !f.IsRank():
		return algebra.Aggregate{}, fault.UnknownFunction(b.At(n), n.Name, domain.WindowNames())
	}
	types := f.Window
	e := algebra.Aggregate{Name: n.Name, T: types.Result}
	if n.Star || n.Filter != nil || len(n.Args) < types.Least || len(n.Args) > types.Most {
		return e, b.Mismatch(n, n.Name+" does not take these arguments", "")
	}
	args, err := expressions(b, s, n.Args)
	if err != nil {
		return e, err
	}
	for i := range args {
		want := catalog.Text // of a string; everything else has its type
		if i == types.Count {
			want = catalog.Int4
		}
		if args[i], err = domain.Coerce(b, n.Args[i], args[i], want); err != nil {
			return e, err
		}
		if i == types.Count && args[i].Typ() != catalog.Int4 && args[i].Typ() != catalog.Int2 {
			return e, b.Mismatch(n.Args[i], n.Name+" needs a whole number here", "")
		}
	}
	if e.T == scalar.UnknownType {
		e.T = args[0].Typ()
	}
	if len(args) == 3 { // lag and lead: the value for rows that do not exist
		pair, t, err := domain.Common(b, []syntax.Expr{n.Args[0], n.Args[2]}, []algebra.Expr{args[0], args[2]})
		if err != nil {
			return e, err
		}
		args[0], args[2], e.T = sqlprint.CastTo(pair[0], t), sqlprint.CastTo(pair[1], t), t
	}
	e.Args = args
	return e, nil
}

// frame checks a frame as PostgreSQL would, whose error would come after the charge.
func frame(b *algebra.Binder, w *syntax.Window, order []algebra.Ordering) (*algebra.Frame, error) {
	if w.Frame == nil {
		return nil, nil
	}
	f := &algebra.Frame{Mode: w.Frame.Mode}
	var err error
	if f.Start, err = frameBound(b, w, order, w.Frame.Start); err != nil {
		return nil, err
	}
	f.End, err = frameBound(b, w, order, w.Frame.End)
	if err == nil && f.Mode == syntax.Groups && len(order) == 0 {
		err = fault.Unsupported(b.Position(w.Pos), "GROUPS without ORDER BY in a window", "add ORDER BY")
	}
	return f, err
}

func frameBound(b *algebra.Binder, w *syntax.Window, order []algebra.Ordering, bound syntax.FrameBound) (algebra.FrameBound, error) {
	out := algebra.FrameBound{Kind: bound.Kind}
	if bound.Offset == nil {
		return out, nil
	}
	if w.Frame.Mode == syntax.Range && (len(order) != 1 || !order[0].Expr.Typ().IsNumber()) {
		return out, fault.Unsupported(b.Position(w.Pos), "RANGE with an offset, but without ORDER BY one number",
			"write ROWS, or order times by extract(epoch FROM x), with an offset in seconds")
	}
	e, err := expression(b, noScope{b}, bound.Offset)
	if err != nil {
		return out, err
	}
	c, ok := e.(algebra.Constant)
	v, number := scalar.ParseNumber(c.Text)
	if !ok || c.Null || !number || v.Sign() < 0 {
		return out, b.Unsupported(bound.Offset, "a frame bound that is not a constant of at least 0",
			"write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
	}
	if w.Frame.Mode == syntax.Range {
		if c.T = order[0].Expr.Typ(); !scalar.IsOf(v, c.T) {
			return out, b.Unsupported(bound.Offset, "an offset of RANGE that is no value of type "+scalar.TypeName(c.T),
				"write another, or UNBOUNDED")
		}
	} else {
		if !v.IsInt() || !v.Num().IsInt64() {
			return out, b.Unsupported(bound.Offset, "a number of rows that is not whole", "")
		}
		c.T = catalog.Int8
	}
	out.Offset = &c
	return out, nil
}

// holdsWindow reports whether a window function is part of an expression.
func holdsWindow(e algebra.Expr) bool {
	a, ok := e.(algebra.Aggregate)
	return ok && a.Over != nil || slices.ContainsFunc(algebra.Children(e), holdsWindow)
}

// refuseWindow refuses a clause that comes before window functions.
func refuseWindow(b *algebra.Binder, n syntax.Expr, e algebra.Expr, clause string) error {
	if e != nil && holdsWindow(e) {
		return b.Unsupported(n, "a window function in "+clause,
			"compute it in a subquery and filter outside: SELECT ... FROM (SELECT ...) t WHERE ...")
	}
	return nil
}

// noScope knows no names: for constants.
type noScope struct{ *algebra.Binder }

func (s noScope) Column(n *syntax.Column) (algebra.Expr, error) {
	return nil, s.Unsupported(n, "a column in this place", "write a constant")
}

func (s noScope) Call(n *syntax.Call) (algebra.Expr, error) {
	return nil, s.Unsupported(n, "a function in this place", "write a constant")
}

func (noScope) Computes() bool { return true }
