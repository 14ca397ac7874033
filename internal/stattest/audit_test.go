package stattest_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
)

// draws asks a mechanism n times on either dataset.
func draws(n int, ask func(unit int64) float64) stattest.Draws {
	d := stattest.Draws{With: make([]float64, n), Without: make([]float64, n)}
	for i := range n {
		d.With[i], d.Without[i] = ask(1), ask(0)
	}
	return d
}

func certify(t *testing.T, d stattest.Draws, delta float64) stattest.Certificate {
	t.Helper()
	c, err := d.Certify(delta, auditRate)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	auditRate  = stattest.FalseAlarm(0.001)
	auditDraws = 10_000
	auditRuns  = 100
)

// seeded gives the same draws in every run of the test, so that it cannot fail by bad luck.
func seeded(seed int) *mechanisms.Sampler {
	return mechanisms.NewSamplerFrom(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}))
}

func release(noise mechanisms.Noise, value int64) float64 {
	f, _ := new(big.Float).SetInt(noise.Release(mechanisms.SealInt64(value))).Float64()
	return f
}

func sound(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAuditPower is what `noisegate audit dp` can tell: for each mechanism with a claim of ε = 1 and 10,000 draws of either
// neighbour, 100 of 100 gateways that do it right pass, and 100 of 100 with half the noise are caught.
func TestAuditPower(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const claimed, delta = 1.0, 1e-3
	laplace := func(sensitivity, divisor int64) func(*mechanisms.Sampler, int64) float64 {
		m, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(sensitivity), Scale: big.NewRat(sensitivity, divisor)})
		sound(t, err)
		return func(s *mechanisms.Sampler, unit int64) float64 { return release(m.Draw(s), sensitivity*unit) }
	}
	gaussian := func(variance *big.Rat) func(*mechanisms.Sampler, int64) float64 {
		m, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: big.NewInt(1), Variance: variance})
		sound(t, err)
		return func(s *mechanisms.Sampler, unit int64) float64 { return release(m.Draw(s), unit) }
	}
	// A group is looked at where it is shown about as often as not, which the command finds by asking.
	selection := func(epsilon mechanisms.PicoEpsilon) func(*mechanisms.Sampler, int64) float64 {
		m, err := mechanisms.NewPartitionSelection(mechanisms.GroupSelectionParameters{Epsilon: epsilon,
			Delta: mechanisms.DeltaUnit / 100_000_000, L0: 1})
		sound(t, err)
		units := int64(1)
		for m.KeepProbability(units+1) <= 1/(1+math.E) {
			units++
		}
		return func(s *mechanisms.Sampler, unit int64) float64 {
			if m.Keep(s, mechanisms.SealInt64(units+unit)) {
				return 1
			}
			return math.NaN()
		}
	}
	for _, c := range []struct {
		name  string
		delta float64
		rho   float64 // claimed instead of ε
		right func(*mechanisms.Sampler, int64) float64
		wrong func(*mechanisms.Sampler, int64) float64
	}{
		{"laplace count", 0, 0, laplace(1, 1), laplace(1, 2)},
		{"laplace sum", 0, 0, laplace(100, 1), laplace(100, 2)},
		{"gaussian count", delta, 0.05, gaussian(big.NewRat(10, 1)), gaussian(big.NewRat(10, 4))}, // ρ = 1/2σ²; half of σ
		{"selection", 1e-8, 0, selection(mechanisms.EpsilonUnit), selection(2 * mechanisms.EpsilonUnit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			passed, caught := 0, 0
			for run := range auditRuns {
				s := seeded(run)
				above := func(ask func(*mechanisms.Sampler, int64) float64) bool {
					got := certify(t, draws(auditDraws, func(unit int64) float64 { return ask(s, unit) }), c.delta)
					return got.Epsilon > claimed || c.rho > 0 && got.Rho > c.rho
				}
				if !above(c.right) {
					passed++
				}
				if above(c.wrong) {
					caught++
				}
			}
			if passed != auditRuns || caught != auditRuns {
				t.Errorf("passed %d of %d that are right, caught %d of %d with half the noise", passed, auditRuns, caught, auditRuns)
			}
		})
	}
}

// TestCertifyFindsTheEvent: randomized response with ε = 1 is told from its neighbour by one answer, and the certified ε comes close
// to 1 without passing it; ρ likewise (ε·tanh(ε/2), the bound for pure DP, is met by randomized response as α goes to 1).
func TestCertifyFindsTheEvent(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	got := certify(t, draws(auditDraws, func(unit int64) float64 {
		if random.Float64() < 1/(1+math.E) {
			return float64(1 - unit)
		}
		return float64(unit)
	}), 0)
	if want := math.Tanh(0.5); got.Epsilon < 0.85 || got.Epsilon > 1 || got.Rho < 0.75*want || got.Rho > want {
		t.Errorf("certified %+v; ε is 1, ρ is %.3f", got, want)
	}
	if got.Draws != auditDraws-auditDraws/3 {
		t.Errorf("%d draws count", got.Draws)
	}
}

// TestCertifySeesGranularity: noise that comes in steps of the sensitivity gives the last digit away. No event of the form
// "at least x" shows it, and the likelihood order does.
func TestCertifySeesGranularity(t *testing.T) {
	s := seeded(1)
	m, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(1), Scale: big.NewRat(2, 1)})
	sound(t, err)
	got := certify(t, draws(auditDraws, func(unit int64) float64 { return 10*release(m.Draw(s), 0) + 3*float64(unit) }), 0)
	if got.Epsilon < 5 {
		t.Errorf("certified ε = %.2f of something that tells everything", got.Epsilon)
	}
}

// TestCertifyMissingValues: a group that is shown only if somebody is in it is told by its absence, and draws without any value
// prove nothing.
func TestCertifyMissingValues(t *testing.T) {
	got := certify(t, draws(auditDraws, func(unit int64) float64 { return 1 / float64(unit) * 0 }), 0)
	if got.Epsilon < 5 { // 0/1 is 0, 0/0 is NaN
		t.Errorf("certified ε = %.2f of something that tells everything", got.Epsilon)
	}
	if got := certify(t, draws(auditDraws, func(int64) float64 { return math.NaN() }), 0); got.Epsilon != 0 || got.Rho != 0 {
		t.Errorf("certified %+v of nothing", got)
	}
	if _, err := (stattest.Draws{With: make([]float64, 299), Without: make([]float64, 1000)}).Certify(0, auditRate); err == nil {
		t.Error("299 draws were taken as evidence")
	}
}
