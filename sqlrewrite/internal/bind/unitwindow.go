package bind

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// unitWindow binds a window function over the rows of one unit and makes it an output under a name.
func unitWindow(b *algebra.Binder, p *projection, n *syntax.Call, name string) (algebra.Expr, error) {
	w, err := overUnit(b, p, n)
	if err != nil {
		return nil, err
	}
	if domain.BuiltinOf(n.Name).IsRank() {
		return unitRank(b, p, n, w, name)
	}
	if w.Frame != nil {
		w.Sequential = w.Frame.Mode == syntax.Rows
	}
	alone := *n
	alone.Over = nil
	g := &grouping{Binder: b, p: p}
	return g.aggregateOf(&alone, algebra.Aggregate{Name: n.Name, Over: w, Safe: true}, name)
}

// overUnit binds the window of a call. A column that leads to one unit (Field.Identity) stands for the unit and itself in PARTITION BY, as
// it does in GROUP BY.
func overUnit(b *algebra.Binder, p *projection, n *syntax.Call) (*algebra.Window, error) {
	f, r := domain.BuiltinOf(n.Name), p.of
	switch {
	case !domain.InCatalog(n):
		return nil, fault.UnknownFunction(b.At(n), n.Schema+"."+n.Name, nil)
	case !f.IsRank() && !f.IsOfUnit():
		return nil, b.Unsupported(n, n.Name+" over rows of people", "write one of "+strings.Join(domain.UnitWindowNames(), ", "))
	case n.Distinct || len(n.OrderBy)+len(n.Within) > 0:
		return nil, b.Unsupported(n, "DISTINCT or ORDER BY inside a window function", "")
	}
	definition, err := resolveWindow(b, b.Query.Windows, n.Over)
	if err != nil {
		return nil, err
	}
	w := &algebra.Window{At: n, Owner: r.Owner()}
	linked, own := false, &grouping{Binder: b, p: p}
	for _, item := range definition.PartitionBy {
		e, err := rowOutput(b, item)
		if err != nil {
			return nil, err
		}
		if f := algebra.PlainField(e); f != nil && slices.Contains(r.Owners, f) {
			linked = true
			continue
		} else if f != nil && f.Unit {
			return nil, fault.UnitColumn(b.At(item), f.Name)
		} else if f != nil && tells(r, f) {
			own.own = f
		}
		w.Partition = append(w.Partition, e)
	}
	if !linked && own.own != nil {
		own.noteOwn(nil)
	} else if !linked {
		refused := fault.Unsupported(b.Position(n.Over.Pos), "a window over the rows of many people", "one person's row would decide about "+
			"another's: release quantiles by percentile_cont, and compare with those")
		_, one := r.OnePerUnit()
		if shares := []string{"ntile", "percent_rank", "cume_dist"}; !one && !slices.Contains(shares, n.Name) {
			refused = refused.WithHint("one person's row would decide about another's: divide the window by " + r.UnitName()).WithPart(r.UnitText())
		}
		return nil, refused
	}
	if w.Order, err = orderings(b, definition.OrderBy, func(n syntax.Expr) (algebra.Expr, error) {
		if f, ok := identityOf(b, n); ok {
			return algebra.Column{Of: f}, nil
		}
		return expression(b, rowScope{b}, n)
	}); err != nil {
		return nil, err
	}
	if w.Frame, err = frame(b, definition, w.Order); err != nil {
		return nil, err
	}
	return w, checkUnitFrame(b, definition, w)
}

// maxFrame is how many rows or groups a frame may reach: PostgreSQL adds the number to a place without looking.
const maxFrame = 1 << 30

// checkUnitFrame refuses a frame on whose rows PostgreSQL could raise an error.
func checkUnitFrame(b *algebra.Binder, n *syntax.Window, w *algebra.Window) error {
	if w.Frame == nil {
		return nil
	}
	for _, bound := range []algebra.FrameBound{w.Frame.Start, w.Frame.End} {
		if bound.Offset == nil {
			continue
		}
		if w.Frame.Mode != syntax.Range {
			if v, _ := scalar.ParseNumber(bound.Offset.Text); v.Cmp(scalar.Number(maxFrame)) > 0 {
				return fault.Unsupported(b.Position(n.Pos), "a frame of this many rows", "write UNBOUNDED")
			}
			continue
		}
		if x := w.Order[0].Expr; x.Typ() == catalog.Numeric && domain.BeyondFloat(x) {
			return fault.Unsupported(b.Position(n.Pos), "RANGE with an offset from a numeric column without fixed digits",
				"write ROWS, or order by round(x, 2)")
		}
	}
	return nil
}

// unitRank binds a function that exists only with OVER: its arguments, and whether rows that tie have one value.
func unitRank(b *algebra.Binder, p *projection, n *syntax.Call, w *algebra.Window, name string) (algebra.Expr, error) {
	form := domain.BuiltinOf(n.Name).Window
	if n.Star || n.Filter != nil || len(n.Args) < form.Least || len(n.Args) > form.Most {
		return nil, b.Mismatch(n, n.Name+" does not take these arguments", "")
	}
	e := algebra.Aggregate{Name: n.Name, Over: w, Safe: true, T: form.Result}
	c := &catalog.Column{TypMod: -1, Exposed: true}
	var count int
	if form.Count >= 0 && len(n.Args) > form.Count {
		var err error
		if count, err = numberOfRows(b, n.Name, n.Args[form.Count]); err != nil {
			return nil, err
		}
		e.Args = []algebra.Expr{algebra.Constant{T: catalog.Int4, Text: strconv.Itoa(count)}}
	}
	if form.Result == scalar.UnknownType {
		x, err := rowValue(b, n.Args[0])
		if err != nil {
			return nil, err
		}
		e.Args = append([]algebra.Expr{x}, e.Args...)
		c, e.T = derivedColumn(p.facts, n.Name, x), algebra.CarrierOf(x)
		if len(n.Args) == 3 {
			err = windowDefault(b, n.Args[2], &e, c)
		}
		if c.Domain != nil && !slices.Contains(c.Domain, catalog.Key{Null: true}) { // where there is no such row
			c.Domain = append(slices.Clone(c.Domain), catalog.Key{Null: true})
		}
		if err != nil {
			return nil, err
		}
	}
	switch n.Name {
	case "percent_rank", "cume_dist":
		c.Bounds = &catalog.Bounds{Lo: new(big.Rat), Hi: scalar.One()}
	case "ntile":
		c.Bounds = places(int64(count))
	case "row_number", "rank", "dense_rank":
		c.Bounds = places(p.of.MaxRows)
	}
	w.Sequential = !slices.Contains([]string{"rank", "dense_rank", "percent_rank", "cume_dist"}, n.Name)
	if err := valueFrame(b, n, w); err != nil {
		return nil, err
	}
	c.Name, c.Type, c.NotNull = name, e.T, c.NotNull && !w.Sequential
	return algebra.Column{Of: p.put(algebra.Field{Column: c, Label: sqlprint.Describe(e)}, e, true)}, nil
}

// numberOfRows binds the argument of a window function that counts rows. Only lag and lead take one below 1.
func numberOfRows(b *algebra.Binder, function string, n syntax.Expr) (int, error) {
	k, err := expression(b, noScope{b}, n)
	if err != nil {
		return 0, err
	}
	least := 1
	if function == "lag" || function == "lead" {
		least = -maxFrame
	}
	count, whole := domain.WholeConstant(k)
	if !whole || count < least || count > maxFrame {
		return 0, b.Unsupported(n, "a number of rows in "+function+" that is not a small whole constant", "")
	}
	return count, nil
}

// places gives the bounds of a row's place among the rows, from 1; nil where their number is not bounded.
func places(rows int64) *catalog.Bounds {
	if rows <= 0 {
		return nil
	}
	return &catalog.Bounds{Lo: scalar.One(), Hi: scalar.Number(min(rows, stability.MaxBound)), Step: scalar.One()}
}

// windowDefault binds the value that lag and lead give where there is no such row: a constant of the type of the others.
func windowDefault(b *algebra.Binder, n syntax.Expr, e *algebra.Aggregate, c *catalog.Column) error {
	x, err := expression(b, noScope{b}, n)
	if err != nil {
		return err
	}
	t := e.T
	k, isConstant := x.(algebra.Constant)
	if isConstant && !k.Null {
		if x, err = domain.Coerce(b, n, k, t); err != nil {
			return err
		}
		k = x.(algebra.Constant)
	}
	v, isNumber := scalar.ParseNumber(k.Text)
	switch {
	case isConstant && k.Null:
		return nil
	case !isConstant || scalar.FamilyOf(k.T) != scalar.FamilyOf(t) || t == catalog.Enum || t.IsTime() && k.T != t ||
		t.IsNumber() && (!isNumber || !scalar.IsOf(v, t)):
		return b.Unsupported(n, "a default that is not a constant of type "+scalar.TypeName(t),
			"leave it out, and write coalesce around the result in an outer query")
	case t == catalog.Char:
		k.T = catalog.Char
	case t.IsNumber():
		k.T = t
	}
	e.Args = append(e.Args, k)
	c.TypMod, c.Domain = -1, nil
	if c.Bounds != nil {
		at, ok := domain.DatumOf(catalog.Key{Text: k.Text}, t)
		if !ok || at.Value == nil {
			c.Bounds = nil
			return nil
		}
		c.Bounds = &catalog.Bounds{Lo: scalar.MinRat(c.Bounds.Lo, at.Value), Hi: scalar.MaxRat(c.Bounds.Hi, at.Value)}
	}
	return nil
}

// valueFrame makes the frame of a function that exists only with OVER one of rows, which is what tells rows that tie apart, where that
// comes to the same. first_value looks at the frame's start, last_value at its end, nth_value at both, and the others at none.
func valueFrame(b *algebra.Binder, n *syntax.Call, w *algebra.Window) error {
	fromStart, toEnd := true, len(w.Order) == 0 // the default: up to the last row that ties
	startsBy, endsFrom := true, true            // the frame holds the row itself
	if f := w.Frame; f != nil {
		fromStart = f.Start.Kind == syntax.UnboundedPreceding || len(w.Order) == 0 && f.Mode == syntax.Range
		toEnd = f.End.Kind == syntax.UnboundedFollowing || len(w.Order) == 0 && f.Mode == syntax.Range
		startsBy, endsFrom = f.Start.Kind != syntax.Following, f.End.Kind != syntax.Preceding
	}
	switch n.Name {
	case "first_value":
		toEnd = toEnd || endsFrom
	case "last_value":
		fromStart = fromStart || startsBy
	case "nth_value":
	default:
		w.Frame = nil
		return nil
	}
	switch {
	case fromStart && toEnd:
		w.Frame = &algebra.Frame{Mode: syntax.Rows, Start: algebra.FrameBound{Kind: syntax.UnboundedPreceding},
			End: algebra.FrameBound{Kind: syntax.UnboundedFollowing}}
	case w.Frame == nil || w.Frame.Mode != syntax.Rows:
		return b.Unsupported(n, n.Name+" in a frame that ends among rows that tie",
			"write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, or another frame of ROWS")
	}
	return nil
}

// settleTies tells rows that tie apart in all windows of a query by what it reads of them. Rows that are equal in that can stand in one
// order in one window and in another in the next, unless all windows have the same order, in which PostgreSQL reads them once; or unless
// there are none, by a key.
func settleTies(b *algebra.Binder, p *projection) error {
	var all []*algebra.Window
	several := false
	for _, e := range p.query.Results() {
		if a, ok := e.(algebra.Aggregate); ok && a.Over != nil && a.Over.Sequential {
			all = append(all, a.Over)
			several = several || !all[0].SameOrder(a.Over)
		}
	}
	if len(all) == 0 {
		return nil
	}
	read := sqlprint.NewPreconditionWalk()
	read.Exprs(p.query.Results()...)
	var ties []*algebra.Field
	for _, part := range p.of.Parts {
		for _, f := range part.Fields {
			if read.Used[f] && !slices.Contains(p.of.Owners, f) {
				ties = append(ties, f)
			}
		}
	}
	for _, w := range all {
		w.Ties = slices.DeleteFunc(slices.Clone(ties), w.Given)
		if several {
			key, ok := p.of.TellsApart(w)
			if !ok {
				return b.Unsupported(w.At, "a window in another order than the one before, with rows that may tie",
					"add a unique column to each ORDER BY, or compute one of them in a query in FROM")
			}
			b.Bound.Shared().Rely(key.Relies...)
			w.Key = slices.DeleteFunc(slices.Clone(key.Fields), func(f *algebra.Field) bool { return f == w.Owner })
		}
	}
	return nil
}
