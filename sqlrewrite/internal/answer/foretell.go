package answer

import (
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Foretold says how much a row of an answer has to hold to be useful, and how many rows can. It depends on text, policy and other public
// facts alone.
type Foretold struct {
	Output   string // of several, the one by which the fewest rows can be useful
	Needs    string // its least value in a useful row, in its unit, rounded up to three digits
	Of       int64  // rows of the answer, at most; 0: the data decide
	Possible *int64 // rows that can be useful, if people add to no other rows; nil: not known, as Of or the number of people
}

// Foretell predicts which rows of an answer can be useful. People is about how many people there are; 0: not known. It returns nil where
// the plan has several release blocks, where rows of the answer are not released rows, and where no released count or sum is shown as it
// is.
func Foretell(p *plan.Plan, people int64) (told *Foretold) {
	if p.Several != nil || !p.NeedsData() || !p.Query.KeepsRows() {
		return nil
	}
	share := new(big.Rat) // people that a useful row has, at least, if they add to no other row
	for i, f := range p.Outputs {
		half := noiseOf(p, i)
		if f.Column.Kind != plan.AggregateColumn || half == nil || half.Sign() == 0 {
			continue
		}
		r := p.Releases[p.Query.Estimators[p.Query.Outputs[i].Expr.(algebra.EstimatorRef).Index].Of[0]]
		l1, _ := p.Home(r).Bounding.Norms(r.Statistic)
		needs := new(big.Rat).Mul(half, big.NewRat(usefulPart, 1))
		if each := new(big.Rat).Quo(needs, scalar.InUnits(l1, r.Unit)); each.Cmp(share) > 0 {
			share, told = each, &Foretold{Output: f.Column.Name, Needs: strconv.FormatFloat(RoundUp(FloatOf(needs)), 'f', -1, 64)}
		}
	}
	if told == nil || p.Query.Private() {
		return told
	}
	told.Of = scalar.ClampInt64(p.Query.PublicTuples())
	if limit := limitOf(p.Query); limit != nil {
		told.Of = min(told.Of, *limit)
	}
	if people > 0 {
		possible := scalar.ClampInt64(scalar.Floor(new(big.Rat).Quo(new(big.Rat).SetInt64(people), share)))
		told.Possible = new(min(told.Of, possible))
	}
	return told
}

// noiseOf returns the half-width by which values of an aggregate are judged; nil: not known before there is data.
func noiseOf(p *plan.Plan, output int) *big.Rat {
	half, e := p.Outputs[output].Column.HalfWidth, p.Query.Outputs[output].Expr
	if by, among := firstBy(p, 0); by != nil && half != nil && reads(p, e, by) {
		if w := reach(p, e, together(p, among)); w != nil && w.Cmp(half) > 0 {
			return w
		}
	}
	return half
}

// limitOf returns how many rows a query shows at most; nil: all.
func limitOf(q *algebra.BoundQuery) *int64 {
	if q.Post != nil {
		return q.Post.Limit
	}
	return q.Limit
}
