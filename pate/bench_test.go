package pate

import (
	"fmt"
	"testing"

	"noisegate.example/mechanisms"
)

// splitmix is the generator of the golden tables' recipes.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// invented are votes as real ensembles cast them: most queries nearly unanimous, some split.
func invented(queries, classes, teachers int) [][]uint32 {
	random, rows := splitmix(1), make([][]uint32, queries)
	for q := range rows {
		sure := []uint64{98, 95, 95, 90, 90, 80, 60, 40}[random.next()%8]
		first, second := random.next()%uint64(classes), random.next()%uint64(classes)
		rows[q] = make([]uint32, classes)
		for range teachers {
			switch r := random.next() % 100; {
			case r < sure:
				rows[q][first]++
			case r < sure+(100-sure)/2:
				rows[q][second]++
			default:
				rows[q][random.next()%uint64(classes)]++
			}
		}
	}
	return rows
}

// BenchmarkAccounting is the data-dependent accounting of a table at the reference's 298 orders (issue 6: 10,000 queries of 10 classes
// within 50 ms, one query within 100 µs).
func BenchmarkAccounting(b *testing.B) {
	for _, queries := range []int{1, 10_000} {
		for _, s := range []Settings{
			{Mode: GNMax, Sigma: "40"}, {Mode: Confident, Threshold: "200", Sigma1: "150", Sigma2: "40"}, {Mode: LNMax, NoiseScale: "20"},
		} {
			b.Run(fmt.Sprintf("%s/queries=%d", s.Mode, queries), func(b *testing.B) {
				table := tableOf(b, invented(queries, 10, 250))
				m, p := modeOf(b, table.Ensemble(), s), AnalysisParameters{Delta: 1e-5, Noise: Continuous, Orders: ReferenceOrders(), Points: 1,
					Moments: 8}
				for b.Loop() {
					if _, err := m.Analyse(table, p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkExactLocal is the exact divergence of one query at 298 orders.
func BenchmarkExactLocal(b *testing.B) {
	table := tableOf(b, invented(1, 10, 250))
	m := modeOf(b, table.Ensemble(), Settings{Mode: GNMax, Sigma: "40"})
	p := AnalysisParameters{Delta: 1e-5, Orders: ReferenceOrders(), Points: 1, Exact: true}
	for b.Loop() {
		if _, err := m.Analyse(table, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmoothSensitivity is that of a table at one order (issue 6: 10,000 queries within 1 s).
func BenchmarkSmoothSensitivity(b *testing.B) {
	table := tableOf(b, invented(10_000, 10, 250))
	s, err := modeOf(b, table.Ensemble(), Settings{Mode: GNMax, Sigma: "40"}).NewSanitiser(SanitiserParameters{Order: "14", SigmaSS: "6",
		Delta: "1e-5"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := s.measure(table, AnalysisParameters{Delta: 1e-5, Noise: Discrete}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLabel is one label, by mode and number of classes.
func BenchmarkLabel(b *testing.B) {
	for _, classes := range []int{10, 150} {
		table := tableOf(b, invented(100, classes, 250))
		for _, s := range []Settings{
			{Mode: LNMax, NoiseScale: "20"}, {Mode: GNMax, Sigma: "40"}, {Mode: Confident, Threshold: "200", Sigma1: "150", Sigma2: "40"},
			{Mode: Gumbel, Gamma: "0.035"},
		} {
			b.Run(fmt.Sprintf("%s/classes=%d", s.Mode, classes), func(b *testing.B) {
				m, sampler := modeOf(b, table.Ensemble(), s), mechanisms.NewSampler()
				for i := 0; b.Loop(); i++ {
					if _, _, err := m.Label(sampler, table.Votes(i%table.Queries()), Student{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
