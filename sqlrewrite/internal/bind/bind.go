package bind

import (
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// bindBlock binds a query that releases over its FROM. The order of the steps is the order in which the clauses take effect.
func bindBlock(s *algebra.Source) (*algebra.BoundQuery, error) {
	if s.Taken = true; s.Refused != nil {
		return nil, s.Refused
	}
	b := s.Binder
	groups := func(b *algebra.Binder) error { // whose keys depend on no value that is released first
		buy := b.Buy
		defer func() { b.Buy = buy }()
		b.Buy = nil
		return groupBy(b)
	}
	for _, step := range []func(*algebra.Binder) error{owner, where, groups, selectList, having, distinct, orderBy, limit} {
		if err := step(b); err != nil {
			return nil, err
		}
	}
	if err := stability.BoundWork(b); err != nil {
		return nil, err
	}
	b.Bound.Shared().NameLeaves()
	sqlprint.SettleCaps(b.Bound)
	sqlprint.NoteLongValues(b.Bound)
	return b.Bound, nil
}

// selectList binds the outputs over keys and aggregates.
func selectList(b *algebra.Binder) error {
	for _, item := range b.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			return fault.NotAggregate(b.At(star), "*")
		}
		e, err := settled(b, blockScope{b}, item.Expr)
		if err != nil {
			return err
		}
		b.Bound.Outputs = append(b.Bound.Outputs, algebra.Output{Name: itemName(item), Expr: e})
	}
	if len(b.Bound.Keys) == 0 && len(b.Bound.Estimators) == 0 && b.Query.Having == nil {
		return fault.NotAggregate(b.Position(b.Query.Items[0].Pos), "a select list without aggregates")
	}
	return nil
}

// distinct checks that DISTINCT changes nothing: the outputs hold every key (SELECT DISTINCT key is a GROUP BY, made by
// groupBy), or there is one row.
func distinct(b *algebra.Binder) error {
	if !b.Query.Distinct {
		return nil
	}
	shown := make(map[int]bool)
	for _, o := range b.Bound.Outputs {
		if k, ok := o.Expr.(algebra.KeyRef); ok {
			shown[k.Index] = true
		}
	}
	if len(shown) < len(b.Bound.Keys) {
		return fault.Unsupported(b.Position(b.Query.Pos), "SELECT DISTINCT without every group key in the select list",
			"add the group keys to the select list, or leave DISTINCT out")
	}
	return nil
}

// outputName is the name that PostgreSQL gives to an output without an alias.
func outputName(n syntax.Expr) string {
	switch n := n.(type) {
	case *syntax.Column:
		return n.Name
	case *syntax.Call:
		return n.Name
	case *syntax.Cast:
		if name := outputName(n.X); name != unnamed {
			return name
		}
		return n.Type
	case *syntax.Case:
		if n.Else != nil {
			if name := outputName(n.Else); name != unnamed {
				return name
			}
		}
		return "case"
	case *syntax.Literal:
		if n.Kind == syntax.BoolLiteral {
			return "bool"
		}
		return unnamed
	default:
		return unnamed
	}
}

// unnamed is PostgreSQL's name for an output that has none.
const unnamed = "?column?"
