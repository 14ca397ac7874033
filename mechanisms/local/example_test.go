package local

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExamplesFollowFromTheConstants reads each example as an author of a client would: with the constants and the draws alone.
func TestExamplesFollowFromTheConstants(t *testing.T) {
	for _, epsilon := range []string{"0.5", "2"} {
		for _, p := range everyProtocol(t, epsilon) {
			whole := func(name string) int64 { return constant(t, p, name).Num().Int64() }
			below := func(draw int64, name string) bool { return big.NewRat(draw, coins).Cmp(constant(t, p, name)) < 0 }
			for i, e := range p.Examples() {
				var want Report
				switch d := e.Draws; p.parameters.Mechanism {
				case KRR, OLH, Duchi:
					truth := e.Truth[0]
					switch p.parameters.Mechanism {
					case OLH:
						truth = (d[0]*truth + d[1]) % whole("prime") % whole("g")
						want, d = d[:2:2], d[2:]
					case Duchi:
						truth = int64(bit(d[0] < truth))
						d = d[1:]
					default:
					}
					if below(d[0], "uniform") {
						truth = d[1]
					}
					want = append(want, truth)
				case SUE, OUE:
					for place, draw := range d {
						if int64(place) == e.Truth[0] && below(draw, "p") || int64(place) != e.Truth[0] && below(draw, "q") {
							want = append(want, int64(place))
						}
					}
				case Piecewise:
					want = Report{e.Truth[0] + d[2]}
					if below(d[0], "uniform") {
						want = Report{d[1]}
					}
				case Laplace:
					for i, noise := range d {
						want = append(want, e.Truth[i]+noise)
					}
				default:
					t.Fatalf("%s: a protocol draws by a mechanism", p.parameters.Mechanism)
				}
				if !slices.Equal(e.Report, want) || p.Check(e.Report) != nil || !p.isTruth(e.Truth) {
					t.Errorf("%s, example %d: %+v, want the report %v", p.parameters.Mechanism, i, e, want)
				}
				if again := p.Examples()[i]; !slices.Equal(again.Report, e.Report) {
					t.Errorf("%s: example %d changes", p.parameters.Mechanism, i)
				}
			}
		}
	}
}

func TestStepsOfNumbers(t *testing.T) {
	r := Range{Low: big.NewRat(-10, 1), High: big.NewRat(30, 1)}
	for number, want := range map[string]int64{
		"-10": 0, "30": Grid, "10": Grid / 2, "-11": 0, "1e20": Grid, "-1e20": 0, "0": Grid / 4,
		"-9.99985": 0, "-9.99984": 1, // a step is 40/2¹⁷ = 0.000305
	} {
		x, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatal(number)
		}
		if got := r.Steps(x); got != want {
			t.Errorf("%s: step %d, want %d", number, got, want)
		}
	}
}

// TestSimplex: steps are no probability's but the nearest two, and add up to the whole.
func TestSimplex(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) // reproducible on purpose
	for range 2000 {
		k := 2 + random.IntN(30)
		weights, total := make([]int64, k), int64(0)
		for i := range weights {
			weights[i] = random.Int64N(1000)
			total += weights[i]
		}
		if total == 0 {
			continue
		}
		probabilities := make([]*big.Rat, k)
		for i, w := range weights {
			probabilities[i] = big.NewRat(w, total)
		}
		steps, err := Simplex(probabilities)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for i, n := range steps {
			sum += n
			off := new(big.Rat).Sub(big.NewRat(n, Whole), probabilities[i])
			if n < 0 || off.Abs(off).Cmp(big.NewRat(1, Whole)) >= 0 {
				t.Fatalf("%s is %d steps", probabilities[i], n)
			}
		}
		if sum != Whole {
			t.Fatalf("the steps of %v add up to %d", weights, sum)
		}
	}
	for name, wrong := range map[string][]*big.Rat{
		"too little": {big.NewRat(1, 2), big.NewRat(1, 4)}, "too much": {big.NewRat(1, 1), big.NewRat(1, 100)},
		"negative": {big.NewRat(3, 2), big.NewRat(-1, 2)}, "nothing": nil,
	} {
		if _, err := Simplex(wrong); !errors.Is(err, ErrTruth) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if steps, err := Simplex([]*big.Rat{big.NewRat(3334, 10_000), big.NewRat(3333, 10_000), big.NewRat(3332, 10_000)}); err != nil ||
		steps[0]+steps[1]+steps[2] != Whole {
		t.Errorf("rounded probabilities: %v, %v", steps, err)
	}
}
