package bind

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// presence is what is asked of an expression that is counted or tested for NULL, where its value is an id, of a unit or of a unit's row, or
// NULL: whether it is there. It is a column, or CASE that chooses among such.
type presence struct {
	of   []*algebra.Field // the ids, each once
	cond algebra.Expr     // it is not NULL on the rows where this is true; nil: on all rows that are used
}

// presenceOf recognises such an expression; ok is false for all others.
func presenceOf(b *algebra.Binder, s domain.Scope, n syntax.Expr) (p presence, ok bool, err error) {
	defer steps.Visit(b.Steps()).Leave()
	switch n := n.(type) {
	case *syntax.Column:
		f, unknown := column(b, n)
		if unknown != nil || !f.Identity() {
			return p, false, nil
		}
		x, ok := inScope(s, f)
		if p.of = []*algebra.Field{f}; !f.Unit || !onEveryRow(b, f) && !f.NotNull() {
			p.cond = algebra.Is{X: x, What: syntax.IsNull, Not: true}
		}
		return p, ok, nil
	case *syntax.Literal:
		return presence{cond: lower.Boolean(false)}, n.Kind == syntax.NullLiteral, nil
	case *syntax.Case:
		return presenceOfCase(b, s, n)
	default:
		return p, false, nil
	}
}

// presenceOfCase looks at the results before it binds a condition: what is no such CASE is bound as any other.
func presenceOfCase(b *algebra.Binder, s domain.Scope, n *syntax.Case) (p presence, ok bool, err error) {
	p.cond = lower.Boolean(false)
	if n.Else != nil {
		if p, ok, err = presenceOf(b, s, n.Else); !ok || err != nil {
			return p, false, err
		}
	}
	results := make([]presence, len(n.Whens))
	for i, w := range n.Whens {
		if results[i], ok, err = presenceOf(b, s, w.Result); !ok || err != nil {
			return p, false, err
		}
		for _, f := range results[i].of {
			if !slices.Contains(p.of, f) {
				p.of = append(p.of, f)
			}
		}
	}
	for i := len(results) - 1; i >= 0 && len(p.of) > 0; i-- {
		when := n.Whens[i].Cond
		if n.Operand != nil {
			when = &syntax.Binary{Pos: when.At(), Op: syntax.Eq, L: n.Operand, R: when}
		}
		cond, err := condition(b, s, when)
		if err != nil {
			return p, false, err
		}
		p.cond = chosen(cond, results[i].cond, p.cond)
	}
	return p, len(p.of) > 0, nil
}

// chosen is true where CASE WHEN cond THEN then ELSE otherwise END is; nil is true.
func chosen(cond, then, otherwise algebra.Expr) algebra.Expr {
	switch {
	case otherwise == lower.Boolean(false):
		return both(cond, then)
	case then == nil && otherwise == nil:
		return nil
	case then == nil:
		return algebra.Binary{Op: syntax.Or, L: cond, R: otherwise, T: catalog.Bool}
	default:
		all := func(e algebra.Expr) algebra.Expr {
			if e == nil {
				return lower.Boolean(true)
			}
			return e
		}
		return algebra.Choice{Arms: []algebra.Arm{{Cond: cond, Result: all(then)}}, Otherwise: all(otherwise), T: catalog.Bool}
	}
}

// presenceTest is x IS NULL, or with not x IS NOT NULL, of a presence.
func presenceTest(b *algebra.Binder, p presence, not bool) algebra.Expr {
	switch cond := p.cond.(type) {
	case nil:
		if !not {
			b.Bound.Source.Note("ownerless", "no row that is used is without %s: such rows belong to nobody and are left out", p.of[0].Name)
		}
		return lower.Boolean(not)
	case algebra.Is:
		cond.Not = cond.Not == not
		return cond
	default:
		return algebra.Is{X: cond, What: syntax.IsTrue, Not: !not}
	}
}

// holds reports whether a condition is that an id is there which is on every row: it says nothing.
func holds(n syntax.Expr, e algebra.Expr) bool {
	_, written := n.(*syntax.Literal)
	return !written && e == lower.Boolean(true)
}

// counted is the argument of count where that asks for no more than presence: the id of a unit, or CASE. Another column is counted by its
// values.
func counted(b *algebra.Binder, n *syntax.Call) (p presence, ok bool, err error) {
	p, ok, err = presenceOf(b, rowScope{b}, oneArgument(n))
	if !ok || err != nil || len(p.of) == 0 {
		return p, false, err
	}
	if _, plain := n.Args[0].(*syntax.Column); plain {
		return p, p.of[0].Unit, nil
	}
	units := !slices.ContainsFunc(p.of, func(f *algebra.Field) bool { return !f.Unit })
	return p, !n.Distinct || units || len(p.of) == 1, nil // all ids of units that a row has are one
}
