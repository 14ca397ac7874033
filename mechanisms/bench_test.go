package mechanisms

import (
	"fmt"
	"math/big"
	"testing"
)

// Aims (issue 3): Laplace at most 250 ns and Gaussian at most 450 ns a sample, no allocation.

func BenchmarkLaplace(b *testing.B) {
	for _, scale := range []string{"1", "1000", "1099511627776", "50000000000000000000/33333333333"} {
		b.Run("scale="+scale, func(b *testing.B) {
			m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: rational(b, scale)})
			benchmarkDraw(b, m, err)
		})
	}
}

func BenchmarkGaussian(b *testing.B) {
	for _, variance := range []string{"1/2", "100", "1000000000000", "2305843009213693952"} {
		b.Run("variance="+variance, func(b *testing.B) {
			m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: rational(b, variance)})
			benchmarkDraw(b, m, err)
		})
	}
}

func benchmarkDraw(b *testing.B, m Additive, err error) {
	if err != nil {
		b.Fatal(err)
	}
	s := NewSampler()
	m.Draw(s) // prepares the law
	b.ReportAllocs()
	for b.Loop() {
		m.Draw(s)
	}
}

// BenchmarkPrepare is what a new mechanism costs before its first draw.
func BenchmarkPrepare(b *testing.B) {
	b.Run("laplace/price", func(b *testing.B) {
		for b.Loop() {
			rhoOfLaplace(big.NewInt(3), big.NewRat(300, 7))
		}
	})
	b.Run("laplace/law", func(b *testing.B) {
		for b.Loop() {
			newLaplaceLaw(big.NewRat(300, 7))
		}
	})
	b.Run("gaussian/law", func(b *testing.B) {
		for b.Loop() {
			newGaussianLaw(big.NewRat(300, 7))
		}
	})
	b.Run("selection", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewPartitionSelection(GroupSelectionParameters{Epsilon: EpsilonUnit, Delta: 1_000_000_000, L0: 1}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkKeep(b *testing.B) {
	g, err := NewPartitionSelection(GroupSelectionParameters{Epsilon: EpsilonUnit, Delta: 1_000_000_000, L0: 1})
	if err != nil {
		b.Fatal(err)
	}
	s, units := NewSampler(), SealInt64(20)
	b.ReportAllocs()
	for b.Loop() {
		g.Keep(s, units)
	}
}

func BenchmarkSelect(b *testing.B) {
	p := SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: EpsilonUnit / 10}
	exponential, flip, noisy := selectorOf[*Exponential](b, p), selectorOf[*PermuteAndFlip](b, p), selectorOf[*NoisyMax](b, p)
	for _, n := range []int{100, 10_000} {
		scores := make([]Exact, n)
		for i := range scores {
			scores[i] = SealInt64(int64(i * 7919 % n))
		}
		for _, m := range []Selector{exponential, flip, noisy} {
			b.Run(fmt.Sprintf("%s/%d", m.Name(), n), func(b *testing.B) {
				s := NewSampler()
				b.ReportAllocs()
				for b.Loop() {
					m.Select(s, scores)
				}
			})
		}
	}
}

func BenchmarkSumHalfWidth(b *testing.B) {
	for _, n := range []int{2, 50} {
		var terms []Term
		for i := range n {
			m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: big.NewRat(int64(10+i), 1)})
			if err != nil {
				b.Fatal(err)
			}
			terms = append(terms, Term{Noise: m, Weight: big.NewRat(1, 1)})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				SumHalfWidth(terms, 0.95)
			}
		})
	}
}
