package local

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"testing"

	"noisegate.example/mechanisms"
)

// vector is one record of testdata/golden.json.
type vector struct {
	ID, Family string
	Inputs     struct {
		Eps            string
		K, G, Classes  int
		N              float64
		TrueFrequency  string  `json:"true_frequency"`
		ReportedCounts []int64 `json:"reported_counts"`
	}
	Outputs map[string]any
	RelTol  float64 `json:"rel_tol"`
}

// golden runs a test on every vector of a family. A family without vectors fails: it was misspelt.
func golden(t *testing.T, family string, test func(*testing.T, vector)) {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, v := range vectors {
		if v.Family == family {
			ran = true
			t.Run(v.ID, func(t *testing.T) { test(t, v) })
		}
	}
	if !ran {
		t.Fatalf("no vectors of family %s", family)
	}
}

func (v vector) close(t *testing.T, name string, got float64) {
	t.Helper()
	want, ok := v.Outputs[name].(float64)
	if !ok || math.Abs(got-want) > v.RelTol*math.Abs(want) {
		t.Errorf("%s = %.17g, want %.17g within %g", name, got, want, v.RelTol)
	}
}

// of makes the protocol of a vector.
func (v vector) of(t *testing.T, kind Kind, m Mechanism, size int) *Protocol {
	t.Helper()
	return protocol(t, kind, m, v.Inputs.Eps, size)
}

func protocol(t testing.TB, kind Kind, m Mechanism, epsilon string, size int) *Protocol {
	t.Helper()
	e, err := mechanisms.ParseEpsilon(epsilon)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Parameters{Kind: kind, Mechanism: m, Epsilon: e, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// constant is a mechanism's exact parameter as a client is told it.
func constant(t testing.TB, p *Protocol, name string) *big.Rat {
	t.Helper()
	for _, c := range p.Constants() {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("%s has no %s", p.parameters.Mechanism, name)
	return nil
}

// supportOf is what a mechanism of choices estimates by.
func supportOf(t testing.TB, p *Protocol) support {
	t.Helper()
	switch s := p.scheme.(type) {
	case response:
		return s.support
	case unary:
		return s.support
	case hashed:
		return s.support
	default:
		t.Fatalf("%T is none of choices", s)
		return support{}
	}
}

func (v vector) frequency(t *testing.T) float64 {
	t.Helper()
	f, ok := new(big.Rat).SetString(v.Inputs.TrueFrequency)
	if !ok {
		t.Fatal(v.Inputs.TrueFrequency)
	}
	return float(f)
}

func TestGoldenResponse(t *testing.T) {
	golden(t, "ldp_grr", func(t *testing.T, v vector) {
		p := v.of(t, Choice, KRR, v.Inputs.K)
		v.close(t, "p", float(constant(t, p, "p")))
		v.close(t, "q", float(constant(t, p, "q")))
		v.close(t, "noise_parameter_google", float(constant(t, p, "uniform")))
		v.close(t, "var_count", supportOf(t, p).variance(v.frequency(t), v.Inputs.N))
		v.close(t, "var_count_approx_f0", supportOf(t, p).variance(0, v.Inputs.N))
	})
	golden(t, "ldp_grr_estimate", func(t *testing.T, v vector) {
		p := v.of(t, Choice, KRR, v.Inputs.K)
		tally := Tally{Cells: v.Inputs.ReportedCounts}
		for _, c := range tally.Cells {
			tally.Reports += c
		}
		estimates := p.Estimate(tally, 0.95)
		for i, want := range v.Outputs["estimates"].([]any) {
			if got := estimates[i].Value; math.Abs(got-want.(float64)) > v.RelTol*math.Abs(want.(float64)) {
				t.Errorf("estimate %d = %.17g, want %.17g", i, got, want)
			}
		}
	})
}

func TestGoldenUnary(t *testing.T) {
	for family, m := range map[string]Mechanism{"ldp_sue": SUE, "ldp_oue": OUE} {
		golden(t, family, func(t *testing.T, v vector) {
			p := v.of(t, Choice, m, 10)
			v.close(t, "p", float(constant(t, p, "p")))
			v.close(t, "q", float(constant(t, p, "q")))
			v.close(t, "var_count", supportOf(t, p).variance(v.frequency(t), v.Inputs.N))
			if m == OUE {
				v.close(t, "var_count_approx_f0", supportOf(t, p).variance(0, v.Inputs.N))
			}
		})
	}
}

func TestGoldenHashed(t *testing.T) {
	golden(t, "ldp_olh", func(t *testing.T, v vector) {
		p := v.of(t, Choice, OLH, 2000)
		if g := constant(t, p, "g"); g.Cmp(big.NewRat(int64(v.Inputs.G), 1)) != 0 {
			t.Errorf("g = %s, want %d", g, v.Inputs.G)
		}
		v.close(t, "p", float(constant(t, p, "p")))
		v.close(t, "q_effective", float(constant(t, p, "q")))
		v.close(t, "var_count_approx_f0", supportOf(t, p).variance(0, v.Inputs.N))
	})
}

// TestGoldenVector: the scale in units of a probability is exactly 2/ε.
func TestGoldenVector(t *testing.T) {
	golden(t, "ldp_softmax_laplace", func(t *testing.T, v vector) {
		p := v.of(t, Vector, Auto, v.Inputs.Classes)
		whole := constant(t, p, "grid")
		scale := new(big.Rat).Quo(constant(t, p, "scale"), whole)
		v.close(t, "scale_b", float(scale))
		sensitivity := new(big.Rat).Mul(scale, p.parameters.Epsilon.Rat())
		v.close(t, "l1_sensitivity", float(sensitivity))
		v.close(t, "actual_eps_if_scale_1_over_eps", float(sensitivity.Mul(sensitivity, p.parameters.Epsilon.Rat())))
		v.close(t, "rmse_per_coordinate", math.Sqrt(p.scheme.worst()))
	})
}
