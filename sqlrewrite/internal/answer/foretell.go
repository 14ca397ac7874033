package answer

import (
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Foretold is what a row of an answer has to hold to be useful, and how many can. It is a function of text, policy and other public facts.
type Foretold struct {
	Output   string // of several, the one that the fewest rows can be useful by
	Needs    string // so much of it, in its unit, rounded up to three digits
	Of       int64  // rows that the answer has at most; 0: rows decide that
	Possible *int64 // rows that can hold so much, if all that people add is where it is needed; nil: not known, as Of or how many people
}

// Foretell foretells the use of a plan of one release whose rows are those of the answer; nil for others, and where nothing that is
// released is shown as it is. People is about how many there are, 0 where that is not known.
func Foretell(p *plan.Plan, people int64) (told *Foretold) {
	if p.Several != nil || !p.NeedsData() || !p.Query.KeepsRows() {
		return nil
	}
	share := new(big.Rat) // how many people a useful row has, at least, if they add nothing to others
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

// noiseOf is the half-width of an aggregate by which its rows are judged, known before there is data; nil: it is not.
func noiseOf(p *plan.Plan, output int) *big.Rat {
	half, e := p.Outputs[output].Column.HalfWidth, p.Query.Outputs[output].Expr
	if by, among := firstBy(p, 0); by != nil && half != nil && reads(p, e, by) {
		if w := reach(p, e, together(p, among)); w != nil && w.Cmp(half) > 0 {
			return w
		}
	}
	return half
}

// limitOf is how many rows a query shows at most; nil: all that there are.
func limitOf(q *algebra.BoundQuery) *int64 {
	if q.Post != nil {
		return q.Post.Limit
	}
	return q.Limit
}
