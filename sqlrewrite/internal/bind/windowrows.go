package sqlrewrite

import (
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// windowRows is a query over one person's rows that computes with window functions: what they give and what is read beside them are the
// columns of a query in FROM, over which its outputs are ordinary ones.
type windowRows struct {
	*binder
	inner  *projection
	fields map[*field]*field // of the rows, to those of the inner query
}

// computesWithWindows reports whether an output holds a window function but is none itself.
func computesWithWindows(items []syntax.Item) bool {
	var holds func(n syntax.Expr) bool
	holds = func(n syntax.Expr) bool {
		c, ok := n.(*syntax.Call)
		return ok && c.Over != nil || slices.ContainsFunc(operands(n), holds)
	}
	return slices.ContainsFunc(items, func(i syntax.Item) bool { return slices.ContainsFunc(operands(i.Expr), holds) })
}

// projectWindows binds such a query.
func (b *binder) projectWindows(r *relation) (*relation, error) {
	s := &windowRows{binder: b, inner: b.projection(r), fields: map[*field]*field{}}
	var outputs []namedOutput
	for _, item := range b.query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := b.starFields(r, star)
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				outputs = append(outputs, namedOutput{f.Name, column{of: s.field(f)}})
			}
			continue
		}
		e, err := s.output(item.Expr)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, namedOutput{itemName(item), e})
	}
	if len(outputs) > maxOutputs {
		return nil, tooManyOutputs(b.position(b.query.Pos))
	}
	if err := b.settleTies(s.inner); err != nil {
		return nil, err
	}
	rows, err := b.finish(s.inner)
	if err != nil {
		return nil, err
	}
	b.bound.where = nil // it is the inner query's
	p := b.projection(rows)
	for _, o := range outputs {
		p.add(o.name, o.expr, true)
	}
	return b.finishRows(p)
}

type namedOutput struct {
	name string
	expr expr
}

// output binds an item of the select list: the id of a unit may pass as it is.
func (s *windowRows) output(n syntax.Expr) (expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := s.binder.column(c)
		if err != nil {
			return nil, err
		}
		return column{of: s.field(f)}, nil
	}
	e, err := s.expression(s, n)
	if err != nil {
		return nil, err
	}
	return s.coerce(n, e, catalog.Text)
}

// field makes a field of the rows one of the inner query.
func (s *windowRows) field(f *field) *field {
	if s.fields[f] == nil {
		s.fields[f] = s.inner.add(f.Name, column{of: f}, true)
	}
	return s.fields[f]
}

func (s *windowRows) column(n *syntax.Column) (expr, error) {
	f, err := s.binder.column(n)
	switch {
	case err != nil:
		return nil, err
	case f.identity():
		return nil, fault.UnitColumn(s.at(n), f.Name)
	default:
		return column{of: s.field(f)}, nil
	}
}

func (s *windowRows) call(n *syntax.Call) (expr, error) {
	if n.Over != nil {
		return s.unitWindow(s.inner, n, n.Name)
	}
	if f, err := s.function(n); err != nil {
		return nil, err
	} else if f.kind == aggregate || f.kind == refusedAggregate {
		return nil, s.unsupported(n, "an aggregate beside a window function", "compute one of them in a query in FROM")
	}
	return s.rowCall(s, n)
}

// computes is false: what is computed from windows is computed row by row, and must not fail on any.
func (*windowRows) computes() bool { return false }
