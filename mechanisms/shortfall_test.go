package mechanisms

import (
	"math"
	"math/big"
	"testing"
)

// rarer fails if an event that should have a probability of at most p was seen so often in n draws that chance alone does so with less than
// 1e-8 (Chernoff): a hundred verdicts raise a false alarm with less than 1e-6.
func rarer(t *testing.T, what string, seen, n int, p float64) {
	t.Helper()
	q := float64(seen) / float64(n)
	if q <= p {
		return
	}
	entropy := q * math.Log(q/p)
	if q < 1 {
		entropy += (1 - q) * math.Log((1-q)/(1-p))
	}
	if float64(n)*entropy > 8*math.Ln10 {
		t.Errorf("%s: %d of %d, promised at most %g", what, seen, n, p)
	}
}

const (
	shortfallDraws = 4000
	shortfallLevel = Confidence(0.95)
)

// Scores of the worst case: all candidates but the best are just farther below it than the bound says; and one that is
// not as bad, where the bound must not be far off: half of it is passed by more than one draw in fifty.
func TestShortfallHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for _, candidates := range []int{2, 20, 200} {
		for _, monotone := range []bool{false, true} {
			p := SelectionParameters{Sensitivity: big.NewInt(3), Monotone: monotone, Epsilon: EpsilonUnit / 2}
			for _, m := range []Selector{selectorOf[*Exponential](t, p), selectorOf[*PermuteAndFlip](t, p), selectorOf[*NoisyMax](t, p)} {
				g := m.Shortfall(candidates, shortfallLevel).Int64()
				worse := func(gap int64) int {
					scores := make([]float64, candidates)
					scores[candidates/2] = float64(gap)
					return shortfallDraws - int(drawn(t, m, scoresOf(scores), shortfallDraws)[candidates/2])
				}
				rarer(t, string(m.Name()), worse(g+1), shortfallDraws, 1-float64(shortfallLevel))
				if seen := worse(g / 2); seen < shortfallDraws/50 {
					t.Errorf("%s of %d: half of the bound %d is passed by %d draws only", m.Name(), candidates, g, seen)
				}
			}
		}
	}
}

func TestTopKShortfallHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const candidates = 50
	for _, k := range []int{1, 3, 10} {
		m, err := NewTopK(TopKParameters{K: k, SelectionParameters: SelectionParameters{Sensitivity: big.NewInt(1), Monotone: true,
			Epsilon: EpsilonUnit}})
		if err != nil {
			t.Fatal(err)
		}
		g := m.Shortfall(candidates, shortfallLevel).Int64()
		scores := make([]float64, candidates)
		for i := range k {
			scores[i] = float64(g + 1)
		}
		s, sealed, worse := fixedSampler(t), scoresOf(scores), 0
		for range shortfallDraws {
			for _, i := range m.Select(s, sealed) {
				if i >= k {
					worse++
					break
				}
			}
		}
		rarer(t, "top k", worse, shortfallDraws, 1-float64(shortfallLevel))
	}
}

// Rows lie where ranks beyond the bound have as many points as there can be: all at two points in the middle, with most
// of the grid on one side.
func TestRankErrorHolds(t *testing.T) {
	const grid = 5000
	for _, c := range []struct {
		fraction, offset *big.Rat
		rows             int64 // in all
	}{
		{big.NewRat(1, 2), big.NewRat(-1, 4), 4000}, {big.NewRat(9, 10), big.NewRat(-1, 20), 4000}, {new(big.Rat), big.NewRat(150, 1), 4000},
		{big.NewRat(1, 2), big.NewRat(-1, 4), 3},
	} {
		m, err := NewQuantile(QuantileParameters{Fraction: c.fraction, Offset: c.offset, Grid: grid, Rows: big.NewInt(2),
			Epsilon: EpsilonUnit / 4})
		if err != nil {
			t.Fatal(err)
		}
		most := m.RankError(shortfallLevel)
		wanted, _ := new(big.Rat).SetFrac(m.rank(big.NewInt(c.rows)), m.scale).Float64()
		// One row at the rank, then none for as many ranks as the bound says, and everything beyond: the points above are just too far off.
		bound, _ := most.Float64()
		beyond := min(int64(wanted+bound)+2, c.rows)
		tallies := []Tally{{SealInt64(0), SealInt64(int64(wanted))}, {SealInt64(1), SealInt64(beyond - int64(wanted))},
			{SealInt64(grid - 1), SealInt64(c.rows - beyond)}}
		data := m.sorted(tallies)
		s, off := fixedSampler(t), 0
		for range shortfallDraws {
			chosen := m.Select(s, tallies)
			below, upTo := int64(0), int64(0)
			for _, d := range data {
				if d.point < chosen {
					below += d.rows.Int64()
				}
				if d.point <= chosen {
					upTo += d.rows.Int64()
				}
			}
			if float64(below)-wanted > bound || wanted-float64(upTo) > bound {
				off++
			}
		}
		rarer(t, m.parameters.Fraction.String(), off, shortfallDraws, 1-float64(shortfallLevel))
		if c.rows > 100 && off == 0 {
			t.Errorf("fraction %s: no draw in %d was farther off than ±%g rows", c.fraction, shortfallDraws, bound)
		}
	}
}
