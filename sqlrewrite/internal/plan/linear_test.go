package plan

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/sqlrewrite/internal/scalar"
)

// drawLinear is a sum of a few runs, and its weights by release and row.
func drawLinear(t *rapid.T) (Linear, map[[2]int]int64) {
	sum, weights := Linear{Constant: new(big.Rat)}, make(map[[2]int]int64)
	for range rapid.IntRange(0, 4).Draw(t, "terms") {
		release, from := rapid.IntRange(0, 2).Draw(t, "release"), rapid.IntRange(1, 8).Draw(t, "from")
		to, w := from+rapid.IntRange(0, 4).Draw(t, "more"), rapid.Int64Range(-3, 3).Draw(t, "weight")
		one := Linear{Constant: new(big.Rat), Terms: []Weighted{{Cells{Release: release}, big.NewRat(w, 1)}}}
		if w == 0 {
			one.Terms = nil
		}
		sum = sum.Plus(one.Over([][2]int{{from, to}}))
		for row := from; row <= to; row++ {
			weights[[2]int{release, row}] += w
		}
	}
	return sum, weights
}

// A sum of runs of rows has the weights of its parts, in disjoint cells in order; the noises of a pair of sums are counted once each.
func TestLinearIsTheSumOfItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over, want := drawLinear(t)
		under, below := drawLinear(t)
		got := make(map[[2]int]int64)
		last := Cells{}
		for _, term := range over.Terms {
			if term.From > term.To || term.Release < last.Release || term.Release == last.Release && term.From <= last.To ||
				term.Weight.Sign() == 0 {
				t.Fatalf("%v after %v", term, last)
			}
			last = term.Cells
			for row := term.From; row <= term.To; row++ {
				got[[2]int{term.Release, row}] = term.Weight.Num().Int64()
			}
		}
		for cell, w := range want {
			if got[cell] != w {
				t.Fatalf("cell %v has the weight %d, want %d", cell, got[cell], w)
			}
		}
		pairs := make(map[[3]int64]int)
		for cell := range want {
			below[cell] += 0
		}
		for cell, w := range below {
			if want[cell] != 0 || w != 0 {
				pairs[[3]int64{int64(cell[0]), want[cell], w}]++
			}
		}
		for _, n := range NoisesOf(Fraction{Over: over, Under: under}) {
			key := [3]int64{int64(n.Release), n.Over.Num().Int64(), n.Under.Num().Int64()}
			if pairs[key] != n.Times {
				t.Fatalf("%v stands %d times, want %d", key, n.Times, pairs[key])
			}
			delete(pairs, key)
		}
		if len(pairs) > 0 {
			t.Fatalf("missing: %v", pairs)
		}
		value := over.Sum(func(c Cells) *big.Int { return big.NewInt(int64(c.To - c.From + 1)) })
		total := int64(0)
		for _, w := range want {
			total += w
		}
		if value.Cmp(new(big.Rat).SetInt64(total)) != 0 {
			t.Fatalf("the sum over ones is %s, want %d", value, total)
		}
	})
}

// A mean of another row has the noise of that row.
func TestFractionInRow(t *testing.T) {
	mean := Fraction{Over: Linear{Constant: new(big.Rat), Terms: []Weighted{{Cells{Release: 1}, scalar.One()}}},
		Under: Linear{Constant: new(big.Rat), Terms: []Weighted{{Cells{Release: 0}, scalar.One()}}}}
	there := mean.InRow(3)
	if c := there.Over.Terms[0].Cells; c != (Cells{1, 3, 3}) {
		t.Errorf("%v", c)
	}
	if c := there.Under.Terms[0].Cells; c != (Cells{0, 3, 3}) {
		t.Errorf("%v", c)
	}
	if _, ok := mean.OverRows([][2]int{{1, 3}}); ok {
		t.Error("a sum of fractions with noisy divisors is no fraction")
	}
}
