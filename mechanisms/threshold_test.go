package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"sync"
	"testing"

	"noisegate.example/internal/exact"
)

// TestSelectionRecurrence walks the definition of π in 50-digit steps and compares the closed forms with it: within float
// resolution everywhere, never above the recurrence where that decides δ (n = 1).
func TestSelectionRecurrence(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for _, c := range []struct {
		epsilon, delta string
		l0             int64
	}{
		{"1", "1e-9", 1}, {"0.1", "1e-6", 3}, {"0.001", "1e-5", 1}, {"20", "1e-12", 1}, {"1000", "1e-9", 1}, {"0.5", "0.5", 1},
		{"3", "0.999", 1}, {"1", "1e-18", 1000}, {"0.01", "0.01", 2},
	} {
		g := groupSelection(t, c.epsilon, c.delta, c.l0)
		a, d := exact.Float(g.rate), exact.Float(g.tail)
		pi := 0.0
		for n := int64(1); n <= min(g.certain+1, 20_000); n++ {
			pi = math.Min(1, math.Min(math.Exp(a)*pi+d, 1-math.Exp(-a)*(1-pi-d)))
			if got := g.KeepProbability(n); math.Abs(got-pi) > 1e-9*pi {
				t.Fatalf("%+v: π(%d) = %.15g, recurrence %.15g (crossover %d, certain %d)", c, n, got, pi, g.crossover, g.certain)
			}
		}
		if got := g.KeepProbability(1); got > d {
			t.Errorf("%+v: a single unit is shown with probability %g > δ/L0 = %g", c, got, d)
		}
	}
}

// TestSelectionIsPrivate: neighbours n and n+1 keep (a, d)-DP in both directions and for both outcomes, on the exact
// enclosures.
func TestSelectionIsPrivate(t *testing.T) {
	g := groupSelection(t, "0.7", "1e-7", 2)
	a, d := exact.Float(g.rate), exact.Float(g.tail)
	for n := int64(0); n <= g.certain; n++ {
		p, q := g.KeepProbability(n), g.KeepProbability(n+1)
		const slack = 1e-14 // of 1-p in floating point
		if q > (math.Exp(a)*p+d)*(1+slack) || 1-p > math.Exp(a)*(1-q)+d+slack || p > q {
			t.Errorf("π(%d) = %g, π(%d) = %g is not (%g, %g)-private", n, p, n+1, q, a, d)
		}
	}
}

// TestLoneUnitIsShownWithDelta: at δ = 1e-3, 200,000 draws of a group of one show about 200. More than 290 has probability
// below 1e-8 (Chernoff: e^(-200·(1.45·ln 1.45-0.45)) = 1e-8), and so have fewer than 125.
//
// covers: A08
func TestLoneUnitIsShownWithDelta(t *testing.T) {
	g, s, shown := groupSelection(t, "1", "1e-3", 1), fixedSampler(t), 0
	for range 200_000 {
		if g.Keep(s, SealInt64(1)) {
			shown++
		}
	}
	if shown > 290 || shown < 125 {
		t.Errorf("shown %d of 200,000 at δ = 1e-3", shown)
	}
}

// TestKeepMeetsItsProbability at sizes on both branches; false alarm 1e-6 each.
func TestKeepMeetsItsProbability(t *testing.T) {
	g, s := groupSelection(t, "1", "1e-5", 1), fixedSampler(t)
	for _, n := range []int64{10, 11, 12, 13, 14} {
		counts := make([]int64, 2)
		for range 50_000 {
			if g.Keep(s, SealInt64(n)) {
				counts[0]++
			} else {
				counts[1]++
			}
		}
		p := g.KeepProbability(n)
		fits(t, counts, []float64{p, 1 - p})
	}
}

// TestKeepAtTheBoundary: the word that equals π's first word is decided by the words after it.
func TestKeepAtTheBoundary(t *testing.T) {
	g := groupSelection(t, "1", "1e-5", 1)
	first := g.firstWord(7)
	for _, c := range []struct {
		words []uint64
		want  bool
	}{
		{[]uint64{first - 1}, true},
		{[]uint64{first + 1}, false},
		{[]uint64{first, 0}, true},
		{[]uint64{first, math.MaxUint64}, false},
	} {
		s := tape(c.words...)
		if got := g.Keep(s, SealInt64(7)); got != c.want || !used(s) {
			t.Errorf("words %x: %v, want %v", c.words, got, c.want)
		}
	}
}

// TestKeepOfNobodyAndEverybody: groups without units never, large groups always; one word is used in every case.
func TestKeepOfNobodyAndEverybody(t *testing.T) {
	g := groupSelection(t, "1", "1e-5", 1)
	for n, want := range map[int64]bool{-5: false, 0: false, g.certain: true, 1 << 62: true} {
		for _, w := range []uint64{0, math.MaxUint64} {
			s := tape(w)
			if got := g.Keep(s, SealInt64(n)); got != want || !used(s) {
				t.Errorf("Keep(%d) with word %x = %v, want %v", n, w, got, want)
			}
		}
	}
}

// TestCertaintyIsNotEarly: the shortcut for large groups never precedes π = 1.
func TestCertaintyIsNotEarly(t *testing.T) {
	const precision = 4096 // resolves e^-1600
	for _, epsilon := range []string{"0.01", "0.3", "1", "7", "50", "800"} {
		for _, delta := range []string{"1e-18", "1e-9", "1e-3", "0.9"} {
			g := groupSelection(t, epsilon, delta, 1)
			if lo, _ := g.probability(g.certain)(precision); lo.Cmp(one(precision)) < 0 {
				t.Errorf("ε %s, δ %s: π(%d) < 1", epsilon, delta, g.certain)
			}
		}
	}
}

// TestSelectionCharge: (ε, δ) as asked for; ρ of L0 shares of ε, rounded up.
func TestSelectionCharge(t *testing.T) {
	g := groupSelection(t, "1", "1e-9", 4)
	want := Loss{Epsilon: EpsilonUnit, Rho: 124353001772, Delta: 1_000_000_000}
	if exact := math.Tanh(0.125) * 1e12; float64(want.Rho) < exact || float64(want.Rho) > exact+1 {
		t.Fatalf("the constant of this test is off: %g", exact)
	}
	if got := g.Loss(); got != want {
		t.Errorf("loss %+v, want %+v", got, want)
	}
	if got := g.Parameters(); got.Sensitivity != "4" || got.Epsilon != "1" || got.Delta != "1e-9" {
		t.Errorf("parameters %+v", got)
	}
}

func TestSelectionRefusesBadParameters(t *testing.T) {
	for name, c := range map[string]struct {
		p    GroupSelectionParameters
		want error
	}{
		"no ε":       {GroupSelectionParameters{Epsilon: 0, Delta: 1, L0: 1}, errPrice},
		"no δ":       {GroupSelectionParameters{Epsilon: 1, Delta: 0, L0: 1}, errDelta},
		"δ = 1":      {GroupSelectionParameters{Epsilon: 1, Delta: DeltaUnit, L0: 1}, errDelta},
		"L0 = 0":     {GroupSelectionParameters{Epsilon: 1, Delta: 1, L0: 0}, errSensitivity},
		"tiny share": {GroupSelectionParameters{Epsilon: 1, Delta: 1, L0: 1 << 40}, errUnsizable},
	} {
		if _, err := NewPartitionSelection(c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestMechanismsAreShared: one mechanism serves several requests at once, each with its own sampler (meaningful with -race).
func TestMechanismsAreShared(t *testing.T) {
	laplace, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Epsilon: EpsilonUnit})
	if err != nil {
		t.Fatal(err)
	}
	gaussian, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Rho: RhoUnit})
	if err != nil {
		t.Fatal(err)
	}
	g := groupSelection(t, "1", "1e-6", 1)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			s := fixedSampler(t)
			for n := range int64(100) {
				if laplace.Draw(s).big != nil || gaussian.Draw(s).big != nil {
					t.Error("noise of scale 1 needed more than a word")
				}
				if g.Keep(s, SealInt64(n)) && n == 0 {
					t.Error("a group without units was shown")
				}
			}
		})
	}
	wait.Wait()
}
