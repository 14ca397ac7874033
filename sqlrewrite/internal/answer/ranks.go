package answer

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// An answer that shows the first of many groups by a noisy number shows those with the largest noise among others: the more groups there
// are, the larger it is. How large, is known from its law and from how many groups were released.

// firstBy is the noisy number by which an answer shows the first of how many groups; nil where there is none, or all are shown. Of private
// keys it is known once so many rows were released.
func firstBy(p *plan.Plan, rows int) (by algebra.Expr, groups *big.Int) {
	by, limit := ranking(p)
	if by == nil || len(bind.ReleasesOf(p.Query, by)) == 0 {
		return nil, nil
	}
	groups = big.NewInt(int64(rows))
	if keys := ranked(p); !keys.Private() {
		groups = keys.PublicTuples()
	}
	if groups.Cmp(big.NewInt(limit)) <= 0 || groups.Cmp(big.NewInt(1)) <= 0 {
		return nil, nil
	}
	return by, groups
}

// together is the level of each of the intervals of so many groups that all hold with the level asked for.
func together(p *plan.Plan, groups *big.Int) mechanisms.Confidence {
	n, _ := new(big.Float).SetInt(groups).Float64()
	return 1 - (1-p.Options.Confidence)/mechanisms.Confidence(n)
}

// rankNotes say how far noise alone reaches among the groups of which an answer shows the first by a noisy number.
func rankNotes(p *plan.Plan, rows int) []algebra.Note {
	by, groups := firstBy(p, rows)
	if by == nil {
		return nil
	}
	w := reach(p, by, together(p, groups))
	if w == nil {
		return nil
	}
	about, _ := w.Float64()
	return []algebra.Note{{Code: "ranks", Text: fmt.Sprintf("%s: of %s groups noise alone reaches about ± %s: differences of "+
		"less than twice that may be noise alone", nameOf(p, by), groups, strconv.FormatFloat(RoundUp(about), 'f', -1, 64))}}
}

// ranked is the block of whose groups an answer shows some.
func ranked(p *plan.Plan) *algebra.BoundQuery {
	if p.Query.Reports {
		return p.Query.Blocks[0]
	}
	return p.Query
}

// ranking is what an answer is first ordered by before it is cut, over the released values of one block, and at how many rows; nil: it is
// not, or that is not told.
func ranking(p *plan.Plan) (by algebra.Expr, limit int64) {
	q, own := p.Query, ranked(p)
	if p.Several != nil && !q.Reports {
		return nil, 0
	}
	if l := q.Post; l != nil && !l.Block && l.Limit != nil && len(l.OrderBy) > 0 {
		at := slices.IndexFunc(l.Outputs, func(out algebra.Output) bool { return algebra.Identical(out.Expr, l.OrderBy[0].Expr) })
		if at < 0 || l.Stem() == nil {
			return nil, 0
		}
		return q.Outputs[at].Expr, *l.Limit
	}
	if own.Limit == nil || len(own.OrderBy) == 0 {
		return nil, 0
	}
	return own.OrderBy[0].Expr, *own.Limit
}

// reach is the half-width of the noise of an expression over one released row, at a level; nil where it is not known before there is data.
func reach(p *plan.Plan, e algebra.Expr, level mechanisms.Confidence) *big.Rat {
	if e, ok := e.(algebra.EstimatorRef); ok {
		if v := p.Query.Estimators[e.Index]; !v.Computed() {
			r := p.Releases[v.Of[0]]
			if r.Selection != nil {
				return nil
			}
			return scalar.InUnits(r.HalfWidth(level), r.Unit)
		}
	}
	ratio := ratioOf(p, e, 0)
	if ratio == nil || algebra.HasAggregate(e) {
		return nil
	}
	sum, ok := ratio.Of.Affine()
	if !ok {
		return nil
	}
	return SpreadOf(ratio.Context, sumWidth(p, sum, level))
}

// nameOf is the name of the output that an expression is; its text where none is.
func nameOf(p *plan.Plan, e algebra.Expr) string {
	for _, out := range p.Query.Outputs {
		if algebra.Identical(out.Expr, e) {
			return out.Name
		}
	}
	return sqlprint.DescribeWith(e, ranked(p))
}
