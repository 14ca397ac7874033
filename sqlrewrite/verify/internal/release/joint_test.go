package release

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// No rows of a unit move columns by more than their joint bound, whichever member of each set they choose; where no factors exclude each
// other, some rows move them by just that.
func TestJointBoundsEveryChoiceOfRows(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(79, seed))
		sets := r.IntN(3)
		var factors []factor
		for id := range 2 + r.IntN(4) {
			f := factor{Factor: value.Factor{ID: id, Within: ranges.Of(-r.Int64N(4), r.Int64N(5))}}
			if sets > 0 {
				f.set, f.constant = string(rune('a'+r.IntN(sets))), "="+string(rune('x'+r.IntN(3)))
			}
			factors = append(factors, f)
		}
		rows := 1 + r.Int64N(2)
		var got products
		var j Joint
		for i := range 1 + r.IntN(5) {
			p := &product{counter: -1, rows: big.NewRat(rows, 1)}
			for k := range p.factors {
				p.factors[k] = factors[r.IntN(len(factors))]
			}
			got = append(got, p)
			j.Columns, j.Weights = append(j.Columns, i), append(j.Weights, big.NewRat(r.Int64N(4), 3))
		}
		bound, most := got.Joint(j), new(big.Rat)
		for n := range 9 << len(factors) { // all rows of the unit are equal: no others move columns by more
			chosen := map[string]string{"": "", "a": "=" + "xyz"[n%3:][:1], "b": "=" + "xyz"[n/3%3:][:1]}
			ends := make([]*big.Rat, len(factors))
			for i, f := range factors {
				if ends[i] = ranges.Zero; f.constant == chosen[f.set] {
					ends[i] = []*big.Rat{f.Within.Lo, f.Within.Hi}[n/9>>i&1]
				}
			}
			norm := new(big.Rat)
			for i, p := range got {
				d := new(big.Rat).Mul(ends[p.factors[0].ID], ends[p.factors[1].ID])
				d.Mul(d, big.NewRat(rows, 1))
				norm.Add(norm, d.Mul(d, d).Mul(d, j.Weights[i]))
			}
			most = ranges.Greater(most, norm)
		}
		if bound == nil || most.Cmp(bound) > 0 || sets == 0 && most.Cmp(bound) < 0 {
			t.Errorf("seed %d: %d sets, %v rows move columns by %v, and the bound is %v", seed, sets, rows, most, bound)
		}
	}
}
