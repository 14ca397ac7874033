package relation

import (
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Where all orders are tried, no order gives fewer choices; where some are left out, what is found is what one of them gives.
func TestChoicesAreOfTheBestOrder(t *testing.T) {
	exact := 0
	for seed := range uint64(400) {
		r, d := randomJoin(rand.New(rand.NewPCG(17, seed)))
		got, want := r.chosen(d, slices.Clone(r.Parts), knowledge{0: fact{known: true}}),
			everyOrder(r, d, r.Parts, knowledge{0: fact{known: true}})
		switch {
		case got == nil || want == nil || got.Cmp(want) < 0:
			t.Fatalf("seed %d: %v choices, and the best order has %v", seed, got, want)
		case got.Cmp(want) == 0:
			exact++
		case len(r.Parts) <= mostOrders:
			t.Errorf("seed %d: %v choices of %d parts, and the best order has %v", seed, got, len(r.Parts), want)
		}
	}
	t.Logf("%d of 400 are the best order's", exact)
	if exact < 300 {
		t.Errorf("%d of 400 are the best order's", exact)
	}
}

// everyOrder is the least product of all orders.
func everyOrder(r *Relation, d *Proof, left []*part, known knowledge) (best *big.Int) {
	if len(left) == 0 {
		return big.NewInt(1)
	}
	try := func(rows int64, of ...*part) {
		if rows <= 0 {
			return
		}
		given := maps.Clone(known)
		for _, p := range of {
			p.choose(given)
		}
		rest := everyOrder(r, d, slices.DeleteFunc(slices.Clone(left), func(p *part) bool { return slices.Contains(of, p) }), given)
		if rest == nil {
			return
		}
		if rest.Mul(rest, big.NewInt(rows)); best == nil || rest.Cmp(best) < 0 {
			best = rest
		}
	}
	for _, c := range r.cuts {
		if of := slices.DeleteFunc(slices.Clone(left), func(p *part) bool { return !isAmong(p, c.parts) }); len(of) > 0 {
			try((&part{limits: c.limits}).least(d, known), of...)
		}
	}
	for _, p := range left {
		try(p.choices(d, known), p)
	}
	return best
}

// randomJoin has one to six parts of a unit, 0, each limited for the unit, and maybe for a column of another part; and cuts inside of cuts.
func randomJoin(w *rand.Rand) (*Relation, *Proof) {
	r, d := &Relation{}, NewProof(value.NewTerms(nil, nil), nil, nil)
	for range 20 {
		d.Fresh()
	}
	for i := range 1 + w.IntN(6) {
		p := &part{ids: []int{2*i + 1, 2*i + 2}, limits: []limit{{by: []int{0}, rows: 1 + w.Int64N(9)}}}
		if w.IntN(2) == 0 {
			p.limits = append(p.limits, limit{by: []int{1 + w.IntN(12)}, rows: 1 + w.Int64N(3)})
		}
		r.Parts = append(r.Parts, p)
	}
	for at := 0; at+1 < len(r.Parts); {
		size := min(2+w.IntN(3), len(r.Parts)-at)
		of := r.Parts[at : at+size]
		r.cuts = append(r.cuts, cut{parts: of, limits: []limit{{by: []int{0}, rows: 2 + w.Int64N(60)}}})
		if size > 2 {
			r.cuts = append(r.cuts, cut{parts: of[:2], limits: []limit{{by: []int{0}, rows: 2 + w.Int64N(20)}}})
		}
		at += size
	}
	return r, d
}
