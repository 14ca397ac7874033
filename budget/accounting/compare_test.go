package accounting

import (
	"math/big"
	"testing"

	"noisegate.example/mechanisms"
)

func TestCompare(t *testing.T) {
	laplace, err := DiscreteLaplaceEvent(big.NewInt(1), big.NewRat(10, 1))
	if err != nil {
		t.Fatal(err)
	}
	gauss, err := DiscreteGaussianEvent(big.NewInt(1), big.NewRat(100, 1))
	if err != nil {
		t.Fatal(err)
	}
	selection, err := ApproxEvent(big.NewRat(1, 10), big.NewRat(1, 1e8))
	if err != nil {
		t.Fatal(err)
	}
	const delta = mechanisms.DeltaUnit / 1e6
	for _, c := range []struct {
		name   string
		list   []Repeated
		finite string // accountants with an ε, first letters
	}{
		{"few counts", []Repeated{{laplace, 3}}, "szrp"},
		{"many counts", []Repeated{{laplace, 3000}}, "szrp"},
		{"with Gaussian noise", []Repeated{{laplace, 50}, {gauss, 50}}, "zrp"},
		{"with known ρ", []Repeated{{laplace, 50}, {event(t, ZCDPEvent, big.NewRat(1, 100)), 1}}, "zr"},
		{"with selections", []Repeated{{laplace, 50}, {selection, 5}}, "szrp"},
		{"more δ than there is", []Repeated{{selection, 101}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			totals, _ := Compare(c.list, delta)
			finite, last := "", mechanisms.PicoEpsilon(0)
			for _, total := range totals {
				if total.Finite {
					finite += string(total.Accountant[:1])
				}
				if total.Finite && total.Accountant != ByZCDP && last > 0 && total.Epsilon > last {
					t.Errorf("%s: ε %v is above a looser accountant's %v", total.Accountant, total.Epsilon, last)
				}
				if total.Finite && total.Accountant != BySum { // Σε may be above or below zCDP
					last = total.Epsilon
				}
				if total.Filter != (total.Accountant == BySum || total.Accountant == ByZCDP) {
					t.Errorf("%s is a filter: %v", total.Accountant, total.Filter)
				}
			}
			if finite != c.finite {
				t.Errorf("ε by %q, want %q", finite, c.finite)
			}
		})
	}
	// The sum is what the ledger would charge.
	if _, loss := Compare([]Repeated{{laplace, 7}, {gauss, 2}}, delta); loss.Rho != 7*4995837496+2*5000000000 || !loss.Unbounded {
		t.Errorf("loss %+v", loss)
	}
}
