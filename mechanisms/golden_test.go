package mechanisms

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"reflect"
	"testing"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/testfiles"
)

// vector is one record of testdata/golden.json.
type vector struct {
	ID, Family      string
	Inputs, Outputs map[string]any
	RelTol          float64 `json:"rel_tol"`
}

// golden runs a test on every vector of a family. A family without vectors fails: it was misspelt.
func golden(t *testing.T, family string, test func(*testing.T, vector)) {
	t.Helper()
	ran := false
	for _, v := range readVectors(t, "testdata/golden.json") {
		if v.Family == family {
			ran = true
			t.Run(v.ID, func(t *testing.T) { test(t, v) })
		}
	}
	if !ran {
		t.Fatalf("no vectors of family %s", family)
	}
}

func readVectors(t *testing.T, path string) []vector {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

// rat reads an exact input.
func (v vector) rat(t *testing.T, name string) *big.Rat {
	t.Helper()
	switch x := v.Inputs[name].(type) {
	case string:
		return rational(t, x)
	case float64:
		return new(big.Rat).SetFloat64(x)
	default:
		t.Fatalf("%s: no input %s", v.ID, name)
		return nil
	}
}

func (v vector) input(t *testing.T, name string) float64 {
	t.Helper()
	return exact.Float(v.rat(t, name))
}

func (v vector) text(name string) string {
	s, _ := v.Inputs[name].(string)
	return s
}

func (v vector) output(t *testing.T, name string) float64 {
	t.Helper()
	x, ok := v.Outputs[name].(float64)
	if !ok {
		t.Fatalf("%s: no output %s", v.ID, name)
	}
	return x
}

func (v vector) outputs(t *testing.T, name string) []float64 { return floats(t, v.Outputs[name]) }

func (v vector) inputs(t *testing.T, name string) []float64 { return floats(t, v.Inputs[name]) }

func floats(t *testing.T, list any) []float64 {
	t.Helper()
	items, ok := list.([]any)
	if !ok {
		t.Fatalf("not a list: %v", list)
	}
	out := make([]float64, len(items))
	for i, item := range items {
		switch x := item.(type) {
		case float64:
			out[i] = x
		case string:
			out[i] = exact.Float(rational(t, x))
		}
	}
	return out
}

// close checks a value that need not be conservative (a probability, an estimate).
func (v vector) close(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > v.RelTol*math.Abs(want)+1e-300 {
		t.Errorf("%s = %.17g, want %.17g within %g", what, got, want, v.RelTol)
	}
}

// unit is the ledger's smallest ρ.
const unit = 1e-12

// charged checks a charge: never below the exact value (rounding of the vector's own float64 apart), at most one unit above.
func (v vector) charged(t *testing.T, got PicoRho, exact float64) {
	t.Helper()
	if rho := float64(got) * unit; rho < exact*(1-1e-15) || rho > exact*(1+1e-15)+unit {
		t.Errorf("charge ρ = %s, exact %.17g", got, exact)
	}
}

func TestGoldenCopyIsCurrent(t *testing.T) {
	shared := testfiles.Fetched(t, "golden/accounting.json")
	text, err := os.ReadFile(shared)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Records []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	byID := map[string]vector{}
	for _, v := range file.Records {
		byID[v.ID] = v
	}
	for _, v := range readVectors(t, "testdata/golden.json") {
		if !reflect.DeepEqual(v, byID[v.ID]) {
			t.Errorf("%s differs from %s", v.ID, shared)
		}
	}
}

func TestGoldenPMFDiscreteLaplace(t *testing.T) {
	golden(t, "pmf_discrete_laplace", func(t *testing.T, v vector) {
		scale := new(big.Rat).Inv(v.rat(t, "a"))
		law := newLaplaceLaw(scale)
		pmf, tails := v.outputs(t, "pmf"), v.outputs(t, "tail_ge_x")
		for i, x := range v.inputs(t, "x") {
			if pmf[i] > 1e-6 { // further out, the first words of the coins are not all of their probability
				v.close(t, "mass", law.mass(int64(x)), pmf[i])
			}
			v.close(t, "formula", laplaceMass(exact.Float(scale), int64(x)), pmf[i])
			if x >= 1 {
				v.close(t, "tail", laplaceTail(exact.Float(scale), x), tails[i])
			}
		}
	})
}

// mass is P(X=x) as the prepared coins have it: what is drawn, not a second formula.
func (l *laplaceLaw) mass(x int64) float64 {
	chance := func(c coin) float64 { return (float64(c.first) + 0.5) / (1 << 64) }
	if x == 0 {
		return chance(l.zero)
	}
	p := (1 - chance(l.zero)) / 2
	for i, c := range l.digit {
		if (max(x, -x)-1)>>i&1 == 1 {
			p *= chance(c)
		} else {
			p *= 1 - chance(c)
		}
	}
	return p * (1 - chance(l.carry))
}

func TestGoldenPMFDiscreteGaussian(t *testing.T) {
	golden(t, "pmf_discrete_gaussian", func(t *testing.T, v vector) {
		law := newGaussianLaw(v.rat(t, "sigma2"))
		// The law that is drawn is proposal times acceptance, normalised over the golden's own normaliser.
		want := v.outputs(t, "pmf")
		zero := law.proposal.mass(0) * law.acceptance(0)
		for i, x := range v.inputs(t, "x") {
			if want[i] < 1e-25 { // beyond the resolution of 64-bit coins
				continue
			}
			got := law.proposal.mass(int64(x)) * law.acceptance(int64(x)) / zero
			if exact := want[i] / want[0]; math.Abs(got-exact) > 1e-9*exact {
				t.Errorf("P(%g)/P(0) = %.15g, want %.15g", x, got, exact)
			}
		}
	})
}

// acceptance is the exact probability with which a proposal is accepted.
func (g *gaussianLaw) acceptance(x int64) float64 {
	lo, _ := lawExp.bounds(g.exactExponent(Noise{small: x}), 192)
	return exact.Float(new(big.Rat).SetFrac(lo, one(192)))
}

func TestGoldenMechanismZCDP(t *testing.T) {
	golden(t, "mechanism_zcdp", func(t *testing.T, v vector) {
		switch name := v.text("mechanism"); name {
		case "pure_dp_worst_case":
			v.charged(t, rhoOfPure(v.rat(t, "eps")), v.output(t, "rho_tight"))
		case "exponential_mechanism":
			v.charged(t, rhoOfBoundedRange(v.rat(t, "eps"), 1), v.output(t, "rho_cesar_rogers"))
		case "laplace":
			// Continuous noise is the limit of a fine grid: the discrete charge comes from above.
			shift := big.NewInt(1_000_000_000)
			scale := new(big.Rat).Quo(new(big.Rat).SetInt(shift), v.rat(t, "eps"))
			v.charged(t, rhoOfLaplace(shift, scale), v.output(t, "rho_tight"))
		case "discrete_laplace":
			shift := v.rat(t, "sensitivity")
			got := rhoOfLaplace(shift.Num(), new(big.Rat).Quo(shift, v.rat(t, "eps")))
			v.charged(t, got, v.output(t, "kl"))
		case "gaussian or discrete_gaussian":
			l2 := v.rat(t, "l2_sensitivity").Num()
			m, err := NewGaussian(GaussianParameters{L2Squared: new(big.Int).Mul(l2, l2), Variance: v.rat(t, "sigma2")})
			if err != nil {
				t.Fatal(err)
			}
			v.charged(t, m.Loss().Rho, v.output(t, "rho_tight"))
		default:
			t.Errorf("unknown mechanism %q", name)
		}
	})
}

// TestGoldenLedgerCharge: the very units that the ledger writes.
func TestGoldenLedgerCharge(t *testing.T) {
	golden(t, "ledger_charge", func(t *testing.T, v vector) {
		param := v.rat(t, "param")
		var got PicoRho
		switch name := v.text("mechanism"); name {
		case "gaussian": // param is σ
			m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: new(big.Rat).Mul(param, param)})
			if err != nil {
				t.Fatal(err)
			}
			got = m.Loss().Rho
		case "laplace": // param is ε of continuous noise
			shift := new(big.Int).Lsh(big.NewInt(1), 60)
			got = rhoOfLaplace(shift, new(big.Rat).Quo(new(big.Rat).SetInt(shift), param))
		case "pure":
			got = rhoOfPure(param)
		case "exponential":
			got = rhoOfBoundedRange(param, 1)
		case "zcdp":
			got = PicoRho(ceilUnits(param, int64(RhoUnit)))
		default:
			t.Fatalf("unknown mechanism %q", name)
		}
		if want := v.Outputs["charge_units"]; big.NewInt(int64(got)).String() != want {
			t.Errorf("charge %d units, want %s", got, want)
		}
	})
}

func TestGoldenCIDiscreteLaplace(t *testing.T) {
	golden(t, "ci_discrete_laplace", func(t *testing.T, v vector) {
		m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: new(big.Rat).Inv(v.rat(t, "a"))})
		if err != nil {
			t.Fatal(err)
		}
		got := m.HalfWidth(Confidence(1 - v.input(t, "alpha")))
		if float64(got.Int64()) != v.output(t, "half_width_integer") {
			t.Errorf("half width %s, want %g", got, v.output(t, "half_width_integer"))
		}
		coverage := 1 - 2*laplaceTail(exact.Float(m.scale), float64(got.Int64()+1))
		v.close(t, "coverage", coverage, v.output(t, "coverage"))
	})
}

func TestGoldenCIDiscreteGaussian(t *testing.T) {
	golden(t, "ci_discrete_gaussian", func(t *testing.T, v vector) {
		m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: v.rat(t, "sigma2")})
		if err != nil {
			t.Fatal(err)
		}
		got := m.HalfWidth(Confidence(1 - v.input(t, "alpha")))
		if float64(got.Int64()) != v.output(t, "half_width_integer") {
			t.Errorf("half width %s, want %g", got, v.output(t, "half_width_integer"))
		}
	})
}

// TestGoldenCIContinuous: on a grid of 10⁻⁶ the discrete half widths are those of continuous noise.
func TestGoldenCIContinuous(t *testing.T) {
	const grid = 1_000_000
	check := func(t *testing.T, v vector, got *big.Int) {
		want := v.output(t, "half_width")
		if width := exact.Float(new(big.Rat).SetFrac(got, big.NewInt(grid))); math.Abs(width-want) > 1.5/grid {
			t.Errorf("half width %g, want %g", width, want)
		}
	}
	golden(t, "ci_laplace", func(t *testing.T, v vector) {
		scale := new(big.Rat).Mul(v.rat(t, "scale"), big.NewRat(grid, 1))
		m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: scale})
		if err != nil {
			t.Fatal(err)
		}
		check(t, v, m.HalfWidth(Confidence(1-v.input(t, "alpha"))))
	})
	golden(t, "ci_gaussian", func(t *testing.T, v vector) {
		sigma := new(big.Rat).Mul(v.rat(t, "sigma"), big.NewRat(grid, 1))
		m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: sigma.Mul(sigma, sigma)})
		if err != nil {
			t.Fatal(err)
		}
		check(t, v, m.HalfWidth(Confidence(1-v.input(t, "alpha"))))
	})
}

func TestGoldenPartitionSelection(t *testing.T) {
	golden(t, "partition_selection_optimal", func(t *testing.T, v vector) {
		g := groupSelection(t, v.text("eps"), v.text("delta"), int64(v.input(t, "l0")))
		if want := v.output(t, "n_crossover"); float64(g.crossover) != want {
			t.Errorf("crossover %d, want %g", g.crossover, want)
		}
		if want := v.output(t, "n_half"); float64(g.ShownAt(0.5)) != want {
			t.Errorf("shown at 50%%: %d, want %g", g.ShownAt(0.5), want)
		}
		if want := v.output(t, "n_certain"); float64(g.ShownAt(1)) != want {
			t.Errorf("shown for sure at %d, want %g", g.ShownAt(1), want)
		}
		keep := v.outputs(t, "keep_probability")
		for i, n := range v.inputs(t, "n") {
			v.close(t, "π", g.KeepProbability(int64(n)), keep[i])
		}
	})
}

func groupSelection(t testing.TB, epsilon, delta string, l0 int64) *GroupSelection {
	t.Helper()
	e, err := ParseEpsilon(epsilon)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDelta(delta)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewPartitionSelection(GroupSelectionParameters{Epsilon: e, Delta: d, L0: l0})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
