package pate

import (
	"fmt"
	"math"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
)

// TestSanitisedEpsilonIsNeverAboveTheFreeOne: over a grid of noise, δ and tables, what is sold is no larger than any ε that [Mode.Analyse]
// gives without looking at votes, and no smaller than its own cost unless it is that one.
func TestSanitisedEpsilonIsNeverAboveTheFreeOne(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	free, drawn, noGain, at := 0, 0, 0, 0
	for _, settings := range []Settings{
		{Mode: GNMax, Sigma: "10"}, {Mode: GNMax, Sigma: "40"},
		{Mode: Confident, Sigma1: "50", Sigma2: "20", Threshold: "100"},
	} {
		for _, delta := range []string{"1e-3", "1e-9"} {
			for _, p := range []SanitiserParameters{{Order: "4", SigmaSS: "6"}, {Order: "14", SigmaSS: "3"}, {Order: "2", SigmaSS: "40"}} {
				for _, queries := range []int{1, 60} {
					if at++; (at+at/2)%4 >= randomtest.Part(1, 4) { // one in four
						continue
					}
					p.Delta = delta
					table := tableOf(t, invented(queries, 10, 250))
					mode := modeOf(t, table.Ensemble(), settings)
					s, err := mode.NewSanitiser(p)
					if fault.CodeOf(err) == fault.CodePateConditions {
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					outcomes := make([]Status, queries)
					for i := range outcomes {
						if outcomes[i] = Answered; settings.Mode == Confident && i%3 == 0 {
							outcomes[i] = Rejected
						}
					}
					name := fmt.Sprintf("%+v %+v, %d queries", settings, p, queries)
					least := math.Inf(1)
					analysis, err := mode.Analyse(table, AnalysisParameters{Delta: s.delta, Outcomes: outcomes, Points: 1})
					if err != nil {
						t.Fatal(err)
					}
					for _, l := range analysis.Lines {
						if !l.Secret {
							least = min(least, l.Total())
						}
					}
					if got := s.Independent(queries, outcomes); math.Abs(got-least) > 1e-9*least {
						t.Errorf("%s: %g is free, and %g by the analysis", name, got, least)
					}
					for i := range 2 {
						got, err := s.Release(mechanisms.NewSamplerFrom(randomtest.Source(t.Name(), name, fmt.Sprint(i))), table, outcomes, nil)
						switch isFree := got.Confidence == 1; {
						case err != nil || got.Epsilon > least*(1+1e-9) || isFree && got.Epsilon < least*(1-1e-9) || !isFree && got.Epsilon < s.Least():
							t.Errorf("%s: sold %+v, free %g: %v", name, got, least, err)
						case isFree:
							free++
						default:
							drawn++
						}
					}
					if s.Least() >= least {
						noGain++
					}
				}
			}
		}
	}
	t.Logf("%d are the free one, %d have noise; of %d tables no smaller one can be had", free, drawn, noGain)
	if free == 0 || drawn == 0 || noGain == 0 {
		t.Error("that is no grid")
	}
}
