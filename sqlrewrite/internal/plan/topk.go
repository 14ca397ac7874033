package plan

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// NewTop makes the selection of groups for a share of the price; a share that is too small is plan/price-too-small. A unit moves each score
// by at most Linf, in however many groups it is, so that nothing has to bound their number.
func (p *Plan) NewTop(r Release, share Portion) (*Selection, error) {
	epsilon, by := share.Epsilon, p.selector(r.Statistic, share)
	if epsilon == 0 {
		each := mechanisms.SelectionEpsilon(by, share.Rho/mechanisms.PicoRho(p.Query.Top))
		epsilon = min(each, mechanisms.MaxEpsilon/mechanisms.PicoEpsilon(p.Query.Top)) * mechanisms.PicoEpsilon(p.Query.Top)
	}
	if epsilon == 0 {
		return nil, fault.PriceTooSmall(len(p.Query.Statistics))
	}
	m, err := mechanisms.NewTopK(mechanisms.TopKParameters{K: int(p.Query.Top), By: by, SelectionParameters: mechanisms.SelectionParameters{
		Sensitivity: r.PerGroup, Monotone: r.Statistic.Monotone(), Epsilon: epsilon}})
	return &Selection{groups: 1, Top: m, Mechanism: m, By: by}, internal(err)
}

// releaseTop selects groups of the public domain by their one statistic.
func (p *Plan) releaseTop(s *mechanisms.Sampler, groups map[string]*Group) (*Released, error) {
	var tuples [][]catalog.Key
	var scores []mechanisms.Exact
	err := EachPublicTuple(p.Query, func(_ int, keys []catalog.Key) error {
		tuples = append(tuples, keys)
		score := mechanisms.Exact{}
		if g := groups[scalar.KeyIdentity(keys)]; g != nil {
			score = g.exact[0]
		}
		scores = append(scores, score)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Released{Plan: p}
	for _, i := range p.Releases[0].Selection.Top.Select(s, scores) {
		out.Rows = append(out.Rows, ReleasedRow{Keys: tuples[i], Noisy: []*big.Int{new(big.Int)}})
	}
	return out, nil
}
