package bind

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// windowRows is a query over one person's rows that computes with window functions: what they give and what is read beside them are the
// columns of a query in FROM, over which its outputs are ordinary ones.
type windowRows struct {
	*algebra.Binder
	inner  *projection
	fields map[*algebra.Field]*algebra.Field // of the rows, to those of the inner query
}

// computesWithWindows reports whether an output holds a window function but is none itself.
func computesWithWindows(items []syntax.Item) bool {
	return slices.ContainsFunc(items, func(i syntax.Item) bool { return slices.ContainsFunc(operands(i.Expr), callsWindow) })
}

// callsWindow reports whether an expression holds a window function. Queries inside it are their own.
func callsWindow(n syntax.Expr) bool {
	c, ok := n.(*syntax.Call)
	return ok && c.Over != nil || slices.ContainsFunc(operands(n), callsWindow)
}

// projectWindows binds such a query.
func projectWindows(b *algebra.Binder, r *algebra.Relation) (*algebra.Relation, error) {
	s := &windowRows{Binder: b, inner: newProjection(b, r), fields: map[*algebra.Field]*algebra.Field{}}
	var outputs []namedOutput
	for _, item := range b.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := starFields(b, r, star)
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				outputs = append(outputs, namedOutput{f.Name, algebra.Column{Of: s.field(f)}})
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
		return nil, tooManyOutputs(b.Position(b.Query.Pos))
	}
	if err := settleTies(b, s.inner); err != nil {
		return nil, err
	}
	rows, err := finish(b, s.inner)
	if err != nil {
		return nil, err
	}
	b.Bound.Source, b.Bound.Where = rows, nil // they are the inner query's
	p := newResult(b, rows)
	for _, o := range outputs {
		p.add(o.name, o.expr, true)
	}
	return finishRows(b, p)
}

type namedOutput struct {
	name string
	expr algebra.Expr
}

// output binds an item of the select list: the id of a unit may pass as it is.
func (s *windowRows) output(n syntax.Expr) (algebra.Expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := column(s.Binder, c)
		if err != nil {
			return nil, err
		}
		return algebra.Column{Of: s.field(f)}, nil
	}
	return settled(s.Binder, s, n)
}

// field makes a field of the rows one of the inner query.
func (s *windowRows) field(f *algebra.Field) *algebra.Field {
	if s.fields[f] == nil {
		s.fields[f] = s.inner.add(f.Name, algebra.Column{Of: f}, true)
	}
	return s.fields[f]
}

func (s *windowRows) Column(n *syntax.Column) (algebra.Expr, error) {
	f, err := column(s.Binder, n)
	switch {
	case err != nil:
		return nil, err
	case f.Identity():
		return nil, fault.UnitColumn(s.At(n), f.Name)
	default:
		return algebra.Column{Of: s.field(f)}, nil
	}
}

func (s *windowRows) Call(n *syntax.Call) (algebra.Expr, error) {
	if n.Over != nil {
		return unitWindow(s.Binder, s.inner, n, n.Name)
	}
	if f, err := domain.Function(s.Binder, n); err != nil {
		return nil, err
	} else if f.IsAggregate() {
		return nil, s.Unsupported(n, "an aggregate beside a window function", "compute one of them in a query in FROM")
	}
	return call(s.Binder, s, n)
}

// Computes is false: what is computed from windows is computed row by row, and must not fail on any.
func (*windowRows) Computes() bool { return false }
