package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
)

// slotsOf builds slots from counts and gaps.
func slotsOf(counts []uint64, gaps []int64) []slot {
	slots := make([]slot, len(counts))
	for i := range counts {
		slots[i] = slot{count: counts[i], gap: big.NewInt(gaps[i])}
	}
	return slots
}

// TestChooseAtEveryBoundary finds, by bisection on the first word, where the choice changes from each slot to the next: the
// boundaries are those of the exact cumulative distribution, computed to 256 bits, in the fast path and in the exact one. Nothing
// here is random; with monotone steps between boundaries, the whole map from words to slots is checked.
func TestChooseAtEveryBoundary(t *testing.T) {
	for name, c := range map[string]struct {
		rate  *big.Rat
		slots []slot
	}{
		"two equal":  {big.NewRat(1, 1), slotsOf([]uint64{1, 1}, []int64{0, 0})},
		"three":      {big.NewRat(1, 2), slotsOf([]uint64{1, 1, 1}, []int64{2, 0, 1})},
		"runs":       {big.NewRat(1, 3), slotsOf([]uint64{1000, 1, 7, 1 << 40}, []int64{20, 0, 3, 90})},
		"steep":      {big.NewRat(1, 1000), slotsOf([]uint64{1, 5, 1}, []int64{3000, 100, 0})},
		"shallow":    {big.NewRat(1, 1<<40), slotsOf([]uint64{1, 1, 1}, []int64{1 << 40, 0, 1 << 41})},
		"very steep": {big.NewRat(1<<20, 1), slotsOf([]uint64{1, 1, 2}, []int64{0, 1, 0})},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecay(c.rate)
			const precision = 256
			sums := []*big.Int{new(big.Int)}
			for i, s := range c.slots {
				lo, _ := d.exact(s.gap)(precision)
				sums = append(sums, new(big.Int).Add(sums[i], lo.Mul(lo, new(big.Int).SetUint64(s.count))))
			}
			total := sums[len(c.slots)]
			for i := 1; i < len(c.slots); i++ {
				boundary, rest := new(big.Int).QuoRem(new(big.Int).Lsh(sums[i], 64), total, new(big.Int))
				checkBoundary(t, d, c.slots, i, boundary)
				if low, high := tape(boundary.Uint64(), 0, 0), tape(boundary.Uint64(), math.MaxUint64, math.MaxUint64); rest.Sign() > 0 {
					if before, after := low.choose(d, c.slots), high.choose(d, c.slots); before >= i || after < i {
						t.Errorf("boundary %d: its own word gives slots %d to %d", i, before, after)
					}
				}
			}
		})
	}
}

// checkBoundary: words below the boundary choose slots before i, words above it i or later, in the fast path and in the exact one.
func checkBoundary(t *testing.T, d decay, slots []slot, i int, boundary *big.Int) {
	t.Helper()
	word := func(offset int64) (uint64, bool) {
		w := new(big.Int).Add(boundary, big.NewInt(offset))
		return w.Uint64(), w.IsUint64()
	}
	for _, offset := range []int64{-1 << 40, -1 << 20, -2, -1, 1, 2, 1 << 20, 1 << 40} {
		w, ok := word(offset)
		if !ok {
			continue
		}
		for _, s := range []*Sampler{tape(w, 0), tape(w, math.MaxUint64)} {
			if got := s.choose(d, slots); (got >= i) != (offset > 0) {
				t.Errorf("boundary %d, word %+d: slot %d", i, offset, got)
			}
		}
		if got, ok := chooseExact(d, slots, new(big.Int).SetUint64(w), 64); !ok || (got >= i) != (offset > 0) {
			t.Errorf("boundary %d, word %+d: the exact path gives slot %d, %v", i, offset, got, ok)
		}
	}
}

// TestDecayErrorBound compares fixed-point probabilities with their enclosures for rates and gaps of every size.
func TestDecayErrorBound(t *testing.T) {
	random := seeded()
	for range 5000 {
		rate := big.NewRat(1+random.Int64N(1<<uint(1+random.IntN(62))), 1+random.Int64N(1<<uint(1+random.IntN(62))))
		d := newDecay(rate)
		n := big.NewInt(int64(math.Exp2(random.Float64() * 62)))
		if random.IntN(3) > 0 { // near where probabilities are neither 0 nor 1
			n, _ = new(big.Float).SetFloat64(math.Ceil(math.Min(random.Float64()*40/exact.Float(rate), 1e25))).Int(n)
		}
		got := new(big.Int).SetUint64(d.approximate(n))
		lo, hi := d.exact(n)(64)
		if new(big.Int).Sub(got, lo).CmpAbs(big.NewInt(decayError)) > 0 || new(big.Int).Sub(got, hi).CmpAbs(big.NewInt(decayError)) > 0 {
			t.Fatalf("rate %s, n %s: %s, enclosure [%s, %s]", rate, n, got, lo, hi)
		}
	}
}

// TestSurvivesAtTheBoundary: within the error bound the exact probability decides.
func TestSurvivesAtTheBoundary(t *testing.T) {
	d, n := newDecay(big.NewRat(1, 10)), big.NewInt(3)
	first := first64(d.exact(n))
	for _, c := range []struct {
		words []uint64
		want  bool
	}{
		{[]uint64{0}, true},
		{[]uint64{first - decayError}, true},
		{[]uint64{first - 1}, true},
		{[]uint64{first, 0}, true},
		{[]uint64{first, math.MaxUint64}, false},
		{[]uint64{first + 1}, false},
		{[]uint64{first + decayError}, false},
		{[]uint64{math.MaxUint64}, false},
	} {
		s := tape(c.words...)
		if got := s.survives(d, n); got != c.want || !used(s) {
			t.Errorf("words %x: %v, want %v (tape used: %v)", c.words, got, c.want, used(s))
		}
	}
	for _, w := range []uint64{0, math.MaxUint64} {
		if !tape(w).survives(d, new(big.Int)) {
			t.Errorf("word %x: the best candidate did not survive", w)
		}
	}
}
