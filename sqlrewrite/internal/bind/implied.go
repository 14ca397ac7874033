package bind

import (
	"math/big"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// narrowest is the grid within the bounds that the conditions of the block's rows, filter among them, imply of x; the one within the
// bounds of the policy where they imply no narrower ones, or none that makes a grid. on makes it; nil stands for the policy's bounds.
func narrowest(b *algebra.Binder, n syntax.Expr, x, filter algebra.Expr,
	on func(implied *algebra.Bounds) (*algebra.Grid, error)) (*algebra.Grid, error) {
	wide, err := on(nil)
	if b.Wide {
		return wide, err
	}
	k := domain.NewImplied(b, n)
	impliedIn(k, b.Bound.Source.Node)
	k.Learn(b.Bound.Where, true)
	k.Learn(filter, true)
	within, implied := algebra.BoundsOf(x), k.BoundsOf(x)
	if implied == nil || implied.Hi.Cmp(within.Lo) < 0 || implied.Lo.Cmp(within.Hi) > 0 {
		return wide, err
	}
	narrow, refused := on(implied)
	if refused != nil || err == nil && narrow.Lo.Cmp(wide.Lo) == 0 && narrow.Hi.Cmp(wide.Hi) == 0 && narrow.Step.Cmp(wide.Step) == 0 {
		return wide, err
	}
	narrow.Narrowed = true
	return narrow, nil
}

// impliedIn learns what the conditions in an item of FROM say of its rows: those of inner joins, and those of queries in FROM. On the side
// of an outer join that may be absent they say something of its columns only, which are NULL where it is.
func impliedIn(k *domain.Implied, n algebra.FromItem) {
	switch n := n.(type) {
	case *algebra.RowCap:
		impliedIn(k, n.Of)
	case *algebra.Joined:
		on := n.Kind != syntax.LeftJoin && n.Kind != syntax.FullJoin
		if on {
			k.Learn(n.On, true)
		}
		for _, side := range []struct {
			of     algebra.FromItem
			absent bool
		}{{n.Left, n.Kind == syntax.FullJoin}, {n.Right, !on}} {
			if !side.absent {
				impliedIn(k, side.of)
				continue
			}
			own := k.Apart()
			if impliedIn(own, side.of); n.Kind == syntax.LeftJoin {
				own.Learn(n.On, true)
			}
			k.TakeColumns(own, side.of)
		}
	case *algebra.Derived:
		for i, f := range n.Fields {
			k.Inner(f, impliedOf(k, n, i))
		}
	}
}

// impliedOf gives the bounds that the conditions in a query in FROM imply of one of its outputs, when they are asked for; nil: none.
func impliedOf(k *domain.Implied, n *algebra.Derived, output int) func() *algebra.Bounds {
	var all *algebra.Bounds
	asked := false
	return func() *algebra.Bounds {
		if asked {
			return all
		}
		asked = true
		for i, q := range n.Parts {
			if q.From == nil || output >= len(q.Outputs) || algebra.HasAggregate(q.Outputs[output].Expr) {
				all = nil
				return all
			}
			part := k.Apart()
			impliedIn(part, q.From)
			part.Learn(q.Where, true)
			switch within := part.BoundsOf(q.Outputs[output].Expr); {
			case within == nil:
				all = nil
				return all
			case i == 0:
				all = &algebra.Bounds{Lo: within.Lo, Hi: within.Hi}
			default:
				all = &algebra.Bounds{Lo: scalar.MinRat(all.Lo, within.Lo), Hi: scalar.MaxRat(all.Hi, within.Hi)}
			}
		}
		return all
	}
}

// endsOn are the first and the last multiple of a step within bounds: those of the policy moved inward, implied ones outward.
func endsOn(step *big.Rat, within, implied *algebra.Bounds) (lo, hi *big.Int) {
	lo, hi = scalar.Ceil(new(big.Rat).Quo(within.Lo, step)), scalar.Floor(new(big.Rat).Quo(within.Hi, step))
	if implied == nil {
		return lo, hi
	}
	lo = scalar.MaxInt(lo, scalar.Floor(new(big.Rat).Quo(implied.Lo, step)))
	if last := scalar.Ceil(new(big.Rat).Quo(implied.Hi, step)); last.Cmp(hi) < 0 {
		hi = last
	}
	return lo, hi
}
