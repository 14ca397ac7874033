package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// unitRanks are the window functions without arguments that a query per unit may compute.
var unitRanks = []string{"rank", "dense_rank", "row_number"}

// unitWindow is OVER (PARTITION BY owner, partition ORDER BY order) among rows of people: each value is a function of the set of rows of one
// unit, whatever their physical order, which the rows of another unit may change. So rows that tie have one value, under the default
// frame, and numbers are given only where a proved key leaves no ties.
type unitWindow struct {
	owner     *field
	partition []expr
	order     []ordering
	// key are fields by which no two rows tie; rows where one is NULL have no proof, and no number. Of row_number only.
	key []*field
}

// unitWindow binds a window function over the rows of one unit and makes it an output under a name.
func (b *binder) unitWindow(p *projection, n *syntax.Call, name string) error {
	w, err := b.overUnit(p.of, n)
	if err != nil {
		return err
	}
	g := &grouping{binder: b, p: p}
	var e expr
	if slices.Contains(unitRanks, n.Name) {
		if n.Star || len(n.Args) > 0 || n.Filter != nil {
			return b.mismatch(n, n.Name+" does not take these arguments", "")
		}
		if n.Name == "row_number" {
			if w.key, err = b.withoutTies(p.of, n, w); err != nil {
				return err
			}
		}
		e, err = g.aggregated(unitAggregate{name: n.Name, over: w}, n)
	} else {
		alone := *n
		alone.Over = nil
		e, err = g.aggregateOf(&alone, unitAggregate{name: n.Name, over: w})
	}
	if err != nil {
		return err
	}
	plainField(e).Name = name // the column is the projection's own
	return nil
}

// overUnit binds the window of a call.
func (b *binder) overUnit(r *relation, n *syntax.Call) (*unitWindow, error) {
	const hint = "rank, dense_rank, row_number, count, sum, avg, min, max, bool_or and bool_and are taken"
	switch {
	case n.Schema != "" && n.Schema != "pg_catalog":
		return nil, fault.UnknownFunction(b.at(n), n.Schema+"."+n.Name, nil)
	case !slices.Contains(unitRanks, n.Name) && !slices.Contains(unitAggregates, n.Name):
		return nil, b.unsupported(n, n.Name+" over rows of people", "it depends on the order of rows that tie; "+hint)
	case n.Distinct || len(n.OrderBy)+len(n.Within) > 0:
		return nil, b.unsupported(n, "DISTINCT or ORDER BY inside a window function", "")
	case n.Over.Name != "":
		return nil, fault.Unsupported(b.position(n.Over.Pos), "a named window over rows of people", "write the window after OVER")
	case n.Over.Frame != nil:
		return nil, fault.Unsupported(b.position(n.Over.Pos), "a frame over rows of people", "it may depend on the order of rows that tie; leave it out")
	}
	w := &unitWindow{owner: r.owner()}
	linked := false
	for _, item := range n.Over.PartitionBy {
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
	var err error
	w.order, err = b.orderings(n.Over.OrderBy, func(n syntax.Expr) (expr, error) { return b.expression(rowScope{b}, n) })
	return w, err
}

// withoutTies finds the key that tells the rows of a partition apart, which the statement then relies on.
func (b *binder) withoutTies(r *relation, n *syntax.Call, w *unitWindow) ([]*field, error) {
	given := slices.Clone(r.owners)
	for _, e := range w.partition {
		given = append(given, plainField(e))
	}
	for _, o := range w.order {
		given = append(given, plainField(o.expr))
	}
	for _, k := range r.keys {
		if slices.ContainsFunc(k.fields, func(f *field) bool { return !slices.Contains(given, f) }) {
			continue
		}
		b.bound.shared().rely(k.relies...)
		return slices.DeleteFunc(slices.Clone(k.fields), func(f *field) bool { return f == r.owner() }), nil
	}
	return nil, b.unsupported(n, "row_number of rows that may tie", "add a unique column to its ORDER BY, or write rank")
}

func (w *unitWindow) children() []expr {
	all := slices.Clone(w.partition)
	for _, o := range w.order {
		all = append(all, o.expr)
	}
	return all
}

// isRank reports whether it is a function that exists only with OVER.
func (e unitAggregate) isRank() bool { return e.over != nil && slices.Contains(unitRanks, e.name) }

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
	p.write(")")
}

// rank prints a function that exists only with OVER.
func (p *printer) rank(e unitAggregate) {
	var missing []expr
	for _, f := range e.over.key {
		missing = append(missing, is{x: column{of: f}, what: syntax.IsNull, not: true})
	}
	name := e.name
	if !p.inline {
		name = "pg_catalog." + name
	}
	call := p.sub(func() {
		p.write(name, "()")
		p.over(e.over)
	})
	if len(missing) > 0 && !p.inline {
		call = fmt.Sprintf("CASE WHEN %s THEN %s END", p.text(all(missing)), call)
	}
	p.write(call)
}
