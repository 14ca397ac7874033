package accounting

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/internal/exact"
	"noisegate.example/mechanisms"
)

// golden is a record of testdata/conversion.json: 25 digits, found by minimising with 40 digits over all real α.
type golden struct {
	ID, Family     string
	Inputs         struct{ Rho, Eps, Delta string }
	OutputsDecimal map[string]string `json:"outputs_decimal"`
}

func goldens(t *testing.T, family string) []golden {
	t.Helper()
	text, err := os.ReadFile("testdata/conversion.json")
	if err != nil {
		t.Fatal(err)
	}
	var all, some []golden
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		if g.Family == family {
			some = append(some, g)
		}
	}
	if len(some) < 5 {
		t.Fatalf("%d records of %s", len(some), family)
	}
	return some
}

func rational(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return r
}

// units is ⌊x·unit⌋.
func units(t testing.TB, text string, unit int64) int64 {
	return exact.FloorUnits(rational(t, text), unit)
}

// The result is never below the true minimum, and above it by at most a pico unit and a part in 10¹².
func TestEpsilonForMeetsGoldenVectors(t *testing.T) {
	for _, g := range goldens(t, "zcdp_to_eps") {
		rho := mechanisms.PicoRho(units(t, g.Inputs.Rho, int64(mechanisms.RhoUnit)))
		got, ok := EpsilonFor(rho, mechanisms.AttoDelta(units(t, g.Inputs.Delta, int64(mechanisms.DeltaUnit))))
		want := rational(t, g.OutputsDecimal["eps_tight"])
		least, _ := exact.CeilUnits(want, int64(mechanisms.EpsilonUnit))
		most := float64(least) + 1 + float64(least)*1e-12
		if !ok || int64(got) < least || float64(got) > most {
			t.Errorf("%s: got %d, want %d to %.0f", g.ID, got, least, most)
		}
	}
}

// Where the δ of a golden record is δ*(ρ, ε), the ε at that δ is the record's again. δ is rounded down to atto units, which
// asks for a little more ε; up, for a little less.
func TestEpsilonForMeetsGoldenDeltas(t *testing.T) {
	for _, g := range goldens(t, "zcdp_to_delta") {
		rho := mechanisms.PicoRho(units(t, g.Inputs.Rho, int64(mechanisms.RhoUnit)))
		down := mechanisms.AttoDelta(units(t, g.OutputsDecimal["delta_tight"], int64(mechanisms.DeltaUnit)))
		if down < 1_000_000 {
			continue // a unit of δ is too coarse to tell anything
		}
		want := units(t, g.Inputs.Eps, int64(mechanisms.EpsilonUnit))
		above, _ := EpsilonFor(rho, down)
		below, _ := EpsilonFor(rho, down+1)
		slack := 2 + int64(float64(want)*1e-9) + int64(float64(mechanisms.EpsilonUnit)/float64(down)*10)
		if int64(above) < want || int64(above) > want+slack || int64(below) > want+2 {
			t.Errorf("%s: got %d and %d around %d", g.ID, above, below, want)
		}
	}
}

// The result is never above the true maximum, and below it by at most a pico unit and a part in 10¹².
func TestRhoForMeetsGoldenVectors(t *testing.T) {
	for _, g := range goldens(t, "eps_to_rho") {
		eps := mechanisms.PicoEpsilon(units(t, g.Inputs.Eps, int64(mechanisms.EpsilonUnit)))
		got := RhoFor(eps, mechanisms.AttoDelta(units(t, g.Inputs.Delta, int64(mechanisms.DeltaUnit))))
		most := units(t, g.OutputsDecimal["rho_tight"], int64(mechanisms.RhoUnit))
		least := float64(most) - 1 - float64(most)*1e-12
		if int64(got) > most || float64(got) < least {
			t.Errorf("%s: got %d, want %.0f to %d", g.ID, got, least, most)
		}
	}
}

func anyDelta(t *rapid.T) mechanisms.AttoDelta {
	exponent := rapid.Float64Range(0.1, 18).Draw(t, "-log10 δ")
	return max(1, mechanisms.AttoDelta(float64(mechanisms.DeltaUnit)*math.Pow(10, -exponent)))
}

// Both directions are monotone, and each undoes the other up to rounding.
func TestConversionsAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delta := anyDelta(t)
		eps := mechanisms.PicoEpsilon(math.Pow(10, rapid.Float64Range(6, 18).Draw(t, "log10 pico ε")))
		rho := RhoFor(eps, delta)
		back, ok := EpsilonFor(rho, delta)
		if rho > 0 && !ok {
			t.Fatalf("RhoFor(%d, %d) = %d has no ε", eps, delta, rho)
		}
		// Each pico unit of ρ that was rounded away is worth at most dε/dρ = 2α-1 units of ε.
		if over := float64(back - eps); over > 2+float64(eps)*1e-12 {
			t.Fatalf("ε %d gives ρ %d, which gives ε %d", eps, rho, back)
		}
		more := RhoFor(eps+1+eps/1000, delta)
		if more < rho {
			t.Fatalf("RhoFor falls from %d to %d", rho, more)
		}
		if next, _ := EpsilonFor(rho+1+rho/1000, delta); next < back {
			t.Fatalf("EpsilonFor falls from %d to %d", back, next)
		}
	})
}

// Soundness does not rest on how α is found: no α gives less than what EpsilonFor found with its own, beyond rounding.
func TestNoOtherAlphaIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delta := anyDelta(t)
		rho := mechanisms.PicoRho(math.Pow(10, rapid.Float64Range(6, 16).Draw(t, "log10 pico ρ")))
		got, ok := EpsilonFor(rho, delta)
		if !ok {
			t.Fatalf("no ε for ρ %d, δ %d", rho, delta)
		}
		r, d := float64(rho)/float64(mechanisms.RhoUnit), float64(delta)/float64(mechanisms.DeltaUnit)
		x := math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "log10 (α-1)"))
		other := r*(1+x) + math.Log(x/(1+x)) - (math.Log(d)+math.Log1p(x))/x
		mine := float64(got) / float64(mechanisms.EpsilonUnit)
		if mine > max(other, 0)+1e-11+1e-9*math.Abs(other) {
			t.Fatalf("ρ %d, δ %d: got ε %g, but α-1 = %g gives %g", rho, delta, mine, x, other)
		}
	})
}

func TestConversionsAtTheEdges(t *testing.T) {
	tiny, almostOne := mechanisms.AttoDelta(1), mechanisms.DeltaUnit-1
	for _, c := range []struct {
		rho   mechanisms.PicoRho
		delta mechanisms.AttoDelta
		want  mechanisms.PicoEpsilon
		ok    bool
	}{
		{0, 0, 0, true}, {0, tiny, 0, true}, {1, 0, 0, false}, {-1, tiny, 0, false}, {1, -1, 0, false}, {1, mechanisms.DeltaUnit, 0, false},
		{math.MaxInt64, tiny, math.MaxInt64, false},
	} {
		if got, ok := EpsilonFor(c.rho, c.delta); ok != c.ok || ok && got != c.want {
			t.Errorf("EpsilonFor(%d, %d) = %d, %v", c.rho, c.delta, got, ok)
		}
	}
	if eps, ok := EpsilonFor(1, tiny); !ok || eps <= 0 || eps > 20_000_000 {
		t.Errorf("EpsilonFor(1, 1) = %d, %v", eps, ok) // about 2√(10⁻¹²·ln 10¹⁸)
	}
	for _, eps := range []mechanisms.PicoEpsilon{0, -1} {
		if rho := RhoFor(eps, tiny); rho != 0 {
			t.Errorf("RhoFor(%d, 1) = %d", eps, rho)
		}
	}
	if RhoFor(1, 0) != 0 || RhoFor(1, mechanisms.DeltaUnit) != 0 {
		t.Error("a δ outside (0, 1) gives a ρ")
	}
	largest := MaxAmount * mechanisms.EpsilonUnit
	if rho := RhoFor(largest, almostOne); rho < mechanisms.PicoRho(largest) || rho == math.MaxInt64 {
		t.Errorf("RhoFor(10⁶, 1-10⁻¹⁸) = %d", rho) // with such a δ even ρ = ε is enough
	}
}

// The enclosure holds the logarithm that math.Log gives (off by less than 10⁻¹⁵ relative) and is as tight as promised.
func TestLogarithmsAreEnclosed(t *testing.T) {
	tight := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 110))
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-100, 100).Draw(t, "ln x"))
		lo, hi := lnBounds(exactly(x))
		if width := new(big.Rat).Sub(hi, lo); width.Sign() <= 0 || width.Cmp(tight) > 0 {
			t.Fatalf("ln %g: the enclosure is %s wide", x, width.FloatString(50))
		}
		l, _ := lo.Float64()
		if math.Abs(l-math.Log(x)) > 1e-15*max(1, math.Abs(l)) {
			t.Fatalf("ln %g: got %g, want %g", x, l, math.Log(x))
		}
	})
	// 40 digits of ln 2 and ln 10.
	for x, want := range map[int64]string{2: "0.6931471805599453094172321214581765680755", 10: "2.3025850929940456840179914546843642076011"} {
		lo, hi := lnBounds(big.NewRat(x, 1))
		if w := rational(t, want); w.Cmp(lo) < 0 || w.Cmp(hi) > 0 {
			t.Errorf("ln %d = %s lies outside [%s, %s]", x, want, lo.FloatString(40), hi.FloatString(40))
		}
	}
}

func BenchmarkEpsilonFor(b *testing.B) {
	for b.Loop() {
		EpsilonFor(10_000_000_000, 1_000_000_000)
	}
}

func BenchmarkRhoFor(b *testing.B) {
	for b.Loop() {
		RhoFor(1_000_000_000_000, 1_000_000_000)
	}
}
