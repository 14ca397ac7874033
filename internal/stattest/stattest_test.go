package stattest_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"noisegate.example/internal/stattest"
)

// TestEvidenceMeetsGoldenVectors holds the family audit_lower_bound of golden/accounting.json, copied to testdata.
func TestEvidenceMeetsGoldenVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/audit_lower_bound.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []struct {
		ID     string
		Inputs struct {
			HitsD      int64   `json:"hits_D"`
			HitsDPrime int64   `json:"hits_D_prime"`
			RunsEach   int64   `json:"runs_each"`
			Beta       float64 `json:"beta"`
			Delta      float64 `json:"delta"`
		}
		Outputs struct {
			PLower   float64 `json:"p_lower"`
			QUpper   float64 `json:"q_upper"`
			EpsLower float64 `json:"eps_lower"`
		}
	}
	if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		t.Run(r.ID, func(t *testing.T) {
			e := stattest.Evidence{
				On:    stattest.Trials{Hits: r.Inputs.HitsD, Draws: r.Inputs.RunsEach},
				Off:   stattest.Trials{Hits: r.Inputs.HitsDPrime, Draws: r.Inputs.RunsEach},
				Delta: r.Inputs.Delta,
			}
			rate := stattest.FalseAlarm(r.Inputs.Beta)
			p, _ := e.On.Between(rate / 2)
			_, q := e.Off.Between(rate / 2)
			near(t, "p_lower", p, r.Outputs.PLower)
			near(t, "q_upper", q, r.Outputs.QUpper)
			near(t, "eps_lower", e.EpsilonAtLeast(rate), r.Outputs.EpsLower)
		})
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-8*math.Max(math.Abs(want), 1e-12) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// TestChiSquareTellsLawsApart: a fair die passes, a die whose six is 10 % too frequent does not. The seed is fixed, so that there is
// no false alarm.
func TestChiSquareTellsLawsApart(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fair := []float64{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}
	honest, loaded := make([]int64, 6), make([]int64, 6)
	for range 100_000 {
		honest[random.IntN(6)]++
		loaded[min(5, random.IntN(61)/10)]++ // six: 11 of 61
	}
	if fit, err := stattest.ChiSquare(honest, fair); err != nil || fit.Rejects(stattest.PerTest) {
		t.Errorf("fair die: %+v, %v", fit, err)
	}
	if fit, err := stattest.ChiSquare(loaded, fair); err != nil || !fit.Rejects(stattest.PerTest) {
		t.Errorf("loaded die: %+v, %v", fit, err)
	}
}

// TestChiSquareKnownValue: statistic and tail against a table (chi-square 6.0 with 2 degrees of freedom has tail e^-3).
func TestChiSquareKnownValue(t *testing.T) {
	fit, err := stattest.ChiSquare([]int64{140, 110, 110}, []float64{1. / 3, 1. / 3, 1. / 3})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "statistic", fit.Statistic, 5)
	near(t, "p", fit.P, math.Exp(-2.5))
	if fit.Freedom != 2 {
		t.Errorf("freedom = %d, want 2", fit.Freedom)
	}
}

func TestChiSquareRefusesImpossibleValues(t *testing.T) {
	fit, err := stattest.ChiSquare([]int64{5000, 5000, 100}, []float64{0.5, 0.5, 0})
	if err != nil || !fit.Rejects(stattest.PerTest) {
		t.Errorf("100 draws of a value of probability 0: %+v, %v", fit, err)
	}
}
