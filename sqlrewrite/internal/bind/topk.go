package sqlrewrite

import (
	"fmt"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// asTopK is the query as a selection, if it asks for the keys of the largest groups and for nothing else of them: SELECT key ... GROUP BY
// key ORDER BY count(*) DESC LIMIT k over public keys. Nil for other queries.
//
// The selected groups are the rows of the release, in the order of their choice.
func (q *boundQuery) asTopK() *boundQuery {
	if q.private() || len(q.keys) == 0 || q.having != nil || q.limit == nil || len(q.measures) != 1 || len(q.values) != 1 || len(q.orderBy) == 0 {
		return nil
	}
	by, ok := q.orderBy[0].expr.(valueRef)
	if !ok || !q.orderBy[0].descending || q.values[by.index].computed() || q.measures[0].chooses() {
		return nil
	}
	for _, o := range q.own() {
		if len(q.releasesOf(o.expr)) > 0 {
			return nil // a number that is shown is bought: then the groups are sorted by it
		}
	}
	for _, o := range q.orderBy[1:] {
		if len(q.releasesOf(o.expr)) > 0 {
			return nil
		}
	}
	k := *q.limit + q.offset
	if *q.limit <= 0 || k <= 0 || big.NewInt(k).Cmp(q.publicTuples()) >= 0 {
		return nil // all groups: there is nothing to select
	}
	selected := *q
	selected.top, selected.orderBy, selected.limit, selected.values = k, nil, nil, nil
	selected.measures = []measure{q.measures[0]}
	selected.measures[0].name = fmt.Sprintf("first %d by %s", k, q.measures[0].name)
	return &selected
}

// newTop makes the selection of groups. A unit moves each score by at most Linf, whatever the number of groups that it is in: nothing
// needs to bound that number.
func (p *pricedPlan) newTop(r release, share portion) (*pick, error) {
	epsilon := share.epsilon
	if epsilon == 0 {
		each := mechanisms.BoundedRangeEpsilon(share.rho / mechanisms.PicoRho(p.query.top))
		epsilon = min(each, mechanisms.MaxEpsilon/mechanisms.PicoEpsilon(p.query.top)) * mechanisms.PicoEpsilon(p.query.top)
	}
	if epsilon == 0 {
		return nil, fault.PriceTooSmall(len(p.query.measures))
	}
	m, err := mechanisms.NewTopK(mechanisms.TopKParameters{K: int(p.query.top), SelectionParameters: mechanisms.SelectionParameters{
		Sensitivity: r.perGroup, Monotone: r.measure.monotone(), Epsilon: epsilon}})
	return &pick{groups: 1, top: m, mechanism: m}, internal(err)
}

// monotone reports whether a unit's rows can only raise the measure.
func (m measure) monotone() bool {
	switch m.kind {
	case countRows, countValues, countUnits, countDistinct:
		return true
	case sumSteps:
		return m.grid.lo.Sign() >= 0
	default:
		return false
	}
}

// releaseTop selects groups of the public domain by their one measure.
func (p *pricedPlan) releaseTop(s *mechanisms.Sampler, groups map[string]*group) (*releasedPlan, error) {
	var tuples [][]catalog.Key
	var scores []mechanisms.Exact
	err := p.query.eachPublicTuple(func(_ int, keys []catalog.Key) error {
		tuples = append(tuples, keys)
		score := mechanisms.Exact{}
		if g := groups[keyIdentity(keys)]; g != nil {
			score = g.exact[0]
		}
		scores = append(scores, score)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &releasedPlan{plan: p}
	for _, i := range p.releases[0].pick.top.Select(s, scores) {
		out.rows = append(out.rows, releasedRow{keys: tuples[i], noisy: []*big.Int{new(big.Int)}})
	}
	return out, nil
}

// cheaperThan reports whether selecting groups errs less than sorting them by noisy numbers: the noise that decides which of two groups
// comes first is compared at the level where mechanisms are.
func (p *pricedPlan) cheaperThan(sorted *pricedPlan) bool {
	scale, ok := new(big.Rat).SetString(p.releases[0].law().Parameters().Scale)
	if !ok {
		return false
	}
	gumbel := new(big.Rat).Mul(scale, gumbelPoint())
	return gumbel.Cmp(new(big.Rat).SetInt(sorted.releases[0].mechanism.HalfWidth(comparedAt))) < 0
}

// gumbelPoint is how far from the median 95 % of the Gumbel distribution of scale 1 lie, which peeling adds to each score.
func gumbelPoint() *big.Rat { return big.NewRat(261, 100) }
