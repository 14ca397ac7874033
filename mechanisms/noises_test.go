package mechanisms

import (
	"math/big"
	"sync"
	"testing"
)

// Noise that is remembered is noise that is made anew: the same law at the same price, also where several draw from it at once.
func TestNoisesAreThoseThatAreMade(t *testing.T) {
	var n Noises
	for round := range 2 {
		for l1 := range int64(3) {
			for epsilon := range PicoEpsilon(2 * mostNoises / 3) {
				p := LaplaceParameters{L1: big.NewInt(l1), Epsilon: epsilon * EpsilonUnit / 10}
				want, wrong := NewLaplace(p)
				got, err := n.Laplace(p)
				if (err != nil) != (wrong != nil) {
					t.Fatalf("round %d, L1 %d, ε %d/10: %v, want %v", round, l1, epsilon, err, wrong)
				}
				if err == nil && (got.Loss() != want.Loss() || got.Parameters() != want.Parameters()) {
					t.Fatalf("round %d, L1 %d, ε %d/10: %v at %v, want %v at %v", round, l1, epsilon,
						got.Parameters(), got.Loss(), want.Parameters(), want.Loss())
				}
			}
		}
	}
	if len(n.known) > mostNoises {
		t.Errorf("%d are remembered, want at most %d", len(n.known), mostNoises)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				m, err := n.Laplace(LaplaceParameters{L1: big.NewInt(1), Rho: RhoUnit / 1000})
				if err != nil {
					t.Error(err)
					return
				}
				m.Draw(fixedSampler(t))
				m.HalfWidth(0.95)
			}
		})
	}
	all.Wait()
	first, _ := n.Laplace(LaplaceParameters{L1: big.NewInt(1), Rho: RhoUnit / 1000})
	if again, _ := n.Laplace(LaplaceParameters{L1: big.NewInt(1), Rho: RhoUnit / 1000}); again != first {
		t.Error("the same price is computed twice")
	}
}
