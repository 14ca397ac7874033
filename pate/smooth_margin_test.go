package pate

import (
	"math"
	"testing"
)

// TestRaisedEpsilonKeepsItsSensitivity enumerates the histograms of one query: what is published, the divergence and a
// multiple of its smooth sensitivity, changes by at most that multiple's bound towards every neighbour, and the bound
// is as smooth as the theorem asks.
//
// covers: L7
func TestRaisedEpsilonKeepsItsSensitivity(t *testing.T) {
	table := tableOf(t, invented(20, 10, 250))
	mode := modeOf(t, table.Ensemble(), Settings{Mode: GNMax, Sigma: "40"})
	raised, tried := 0, 0
	for _, p := range []SanitiserParameters{{Order: "14", SigmaSS: "3", Delta: "1e-5"},
		{Order: "14", Beta: "0.0329", SigmaSS: "6.23", Delta: "1e-5"},
		{Order: "3", SigmaSS: "4", Delta: "1e-5"}, {Order: "8", SigmaSS: "8", Delta: "1e-5"}, {Order: "8", SigmaSS: "30", Delta: "1e-5"}} {
		s, err := mode.NewSanitiser(p)
		if err != nil {
			t.Fatal(err)
		}
		z, c, confidence := s.margin()
		if slack := upperQuantile * s.sigma * math.Expm1(s.beta); (slack < 1) != (confidence == 0.95) ||
			(z == 0) != (confidence == 0.5) || c < 1 {
			t.Errorf("%+v: z %g, c %g, confidence %g", p, z, c, confidence)
		}
		if z > 0 {
			raised++
		}
		for _, e := range []struct {
			classes, teachers int
			sigma             float64
		}{{2, 60, 40}, {3, 24, 40}, {4, 12, 40}, {2, 60, 7.3}, {3, 24, 6}} {
			sensitivity := newGNMaxSensitivity(e.sigma, s.order, e.classes)
			if c5, c6 := sensitivity.conditions(); !c5 || !c6 {
				continue // no theorem
			}
			tried++
			walk := newWalker(sensitivity, e.sigma, int64(e.teachers), Discrete)
			tables := histograms(e.classes, e.teachers)
			published, smooth := make([]float64, len(tables)), make([]float64, len(tables))
			for i, counts := range tables {
				sums := make([]float64, e.teachers+1)
				cost := walk.addTo(sums, counts, 1)
				smooth[i] = discountedMax(s.beta, sums)
				published[i] = cost + z*s.sigma*c*smooth[i]
			}
			for a := range tables {
				for b := range tables {
					if movedVotes(tables[a], tables[b]) != 1 {
						continue
					}
					if step := math.Abs(published[a] - published[b]); step > c*smooth[a]*(1+1e-9)+1e-12 {
						t.Fatalf("%+v, %+v: from %v to %v it changes by %g, bound %g", p, e, tables[a], tables[b], step, c*smooth[a])
					}
					if smooth[a] > smooth[b]*math.Exp(s.beta)*(1+1e-9)+1e-12 {
						t.Fatalf("%+v, %+v: bound %g at %v, %g at %v", p, e, smooth[a], tables[a], smooth[b], tables[b])
					}
				}
			}
		}
	}
	if raised < 3 || tried < 10 {
		t.Errorf("%d of the parameters leave room, %d cases", raised, tried)
	}
}

// TestPublishedEpsilonIsAnUpperBound: of 4,000 draws 19 in 20 are at least the number without its noise, within six
// standard errors (false alarm 1e-9).
//
// covers: L7
func TestPublishedEpsilonIsAnUpperBound(t *testing.T) {
	s, exact, smooth := sanitised(t)
	const draws = 4000
	sampler, above := fixedSampler(t), 0
	for range draws {
		got, err := s.draw(sampler, exact, smooth)
		if err != nil || got.Confidence != 0.95 || got.Epsilon < tight(s.cost, s.order, s.delta) {
			t.Fatalf("%+v, %v", got, err)
		}
		if got.Epsilon >= tight(exact+s.cost, s.order, s.delta) {
			above++
		}
	}
	if least := 0.95*draws - 6*math.Sqrt(draws*0.95*0.05); float64(above) < least {
		t.Errorf("%d of %d are upper bounds", above, draws)
	}
}
