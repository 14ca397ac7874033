package mechanisms

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/internal/exact"
)

// given is a mechanism that draws a list of noises, for tests of what is done with them.
type given struct {
	Additive
	noises []Noise
}

func (g *given) Draw(*Sampler) Noise {
	n := g.noises[0]
	g.noises = g.noises[1:]
	return n
}

func noises(values ...int64) *given {
	g := &given{}
	for _, v := range values {
		g.noises = append(g.noises, Noise{small: v, drawn: true})
	}
	return g
}

// TestSealedVectorsDoNotLeak: no printer, logger or encoder shows a sealed vector.
func TestSealedVectorsDoNotLeak(t *testing.T) {
	vector := SealVector([]int64{secret, secret})
	holder := struct {
		Votes ExactVector
		Many  []ExactVector
	}{vector, []ExactVector{vector}}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%p", "%T"} {
		fmt.Fprintf(&shown, strings.Repeat(verb+"\n", 3), vector, &vector, holder)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("m", "votes", vector, "ptr", &vector, "holder", holder)
	}
	for _, form := range []string{"8675309", "845fed"} {
		if strings.Contains(shown.String(), form) {
			t.Errorf("a sealed vector shows %s in %s", form, shown.String())
		}
	}
	for name, encode := range map[string]func() ([]byte, error){
		"json":   func() ([]byte, error) { return json.Marshal(holder) },
		"xml":    func() ([]byte, error) { return xml.Marshal(holder) },
		"text":   vector.MarshalText,
		"binary": vector.MarshalBinary,
		"gob":    func() ([]byte, error) { return gobOf(holder) },
	} {
		if out, err := encode(); err == nil {
			t.Errorf("%s encoded a sealed vector: %q", name, out)
		}
	}
}

// TestVectorsKeepToBigIntegers: near the ends of the machine's integers, noise is added as on paper.
func TestVectorsKeepToBigIntegers(t *testing.T) {
	ends := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, value := range ends {
		for _, noise := range ends {
			want := new(big.Int).Add(big.NewInt(value), big.NewInt(noise))
			if got := ReleaseVector(nil, noises(noise), SealVector([]int64{value}))[0]; got.Cmp(want) != 0 {
				t.Errorf("%d + %d = %s", value, noise, got)
			}
			// The check: value + offset + noise against a threshold one below, at, and one above the sum.
			for d, at := range map[int64]bool{-1: true, 0: true, 1: false} {
				threshold := new(big.Int).Add(want, big.NewInt(value))
				threshold.Add(threshold, big.NewInt(d))
				if got := MaxAtLeast(nil, noises(noise), SealVector([]int64{value}), []int64{value}, threshold); got != at {
					t.Errorf("%d + %d + %d >= %s is %v", value, value, noise, threshold, got)
				}
			}
		}
	}
	huge := new(big.Int).Lsh(big.NewInt(1), 100)
	wide := &given{noises: []Noise{{big: new(big.Int).Neg(huge), drawn: true}, {big: huge, drawn: true}, {small: 5, drawn: true}}}
	if i := ArgmaxVector(nil, wide, SealVector([]int64{9, 1, 7})); i != 1 {
		t.Errorf("the largest is %d", i)
	}
}

// TestArgmaxOfVectors: of equal sums the first wins, and nothing wins among none.
func TestArgmaxOfVectors(t *testing.T) {
	for _, c := range []struct {
		values, noise []int64
		want          int
	}{
		{[]int64{1, 2, 3}, []int64{0, 0, 0}, 2},
		{[]int64{1, 2, 3}, []int64{2, 1, 0}, 0},
		{[]int64{1, 2, 3}, []int64{-9, 1, 0}, 1},
		{nil, nil, -1},
	} {
		if got := ArgmaxVector(nil, noises(c.noise...), SealVector(c.values)); got != c.want {
			t.Errorf("argmax of %v + %v is %d, want %d", c.values, c.noise, got, c.want)
		}
	}
	if MaxAtLeast(nil, noises(0), ExactVector{}, nil, big.NewInt(-1)) {
		t.Error("an empty vector reached a threshold")
	}
}

// TestSoftmaxIsTheExponentialMechanism: its draws fit p ∝ e^(γ·value) (false alarm 1e-6 each), and its loss is that of the range.
func TestSoftmaxIsTheExponentialMechanism(t *testing.T) {
	for _, c := range []struct {
		rate   *big.Rat
		values []int64
	}{
		{big.NewRat(1, 10), []int64{125, 125}},
		{big.NewRat(1, 3), []int64{7, 4, 5, 7, 0}},
		{big.NewRat(5, 1), []int64{1, 0}},
		{big.NewRat(1, 1000), []int64{-400, 900, 0}},
	} {
		m, err := NewSoftmax(SoftmaxParameters{Rate: c.rate, Range: big.NewInt(2)})
		if err != nil {
			t.Fatal(err)
		}
		weights, total := make([]float64, len(c.values)), 0.0
		for i, v := range c.values {
			weights[i] = math.Exp(exact.Float(c.rate) * float64(v))
			total += weights[i]
		}
		for i := range weights {
			weights[i] /= total
		}
		s, counts, votes := fixedSampler(t), make([]int64, len(c.values)), SealVector(c.values)
		for range 40_000 {
			counts[m.Select(s, votes)]++
		}
		fits(t, counts, weights)
	}
	m, err := NewSoftmax(SoftmaxParameters{Rate: big.NewRat(1, 20), Range: big.NewInt(2)})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Loss{Epsilon: EpsilonUnit / 10, Rho: RhoUnit / 800}); m.Loss() != want {
		t.Errorf("loss %+v, want %+v", m.Loss(), want)
	}
	for _, p := range []SoftmaxParameters{{}, {Rate: big.NewRat(1, 2)}, {Rate: new(big.Rat), Range: big.NewInt(1)},
		{Rate: big.NewRat(1, 2), Range: new(big.Int)}} {
		if _, err := NewSoftmax(p); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}

// TestPureLoss: δ stays, and ρ is that of the ε outside it.
func TestPureLoss(t *testing.T) {
	l, err := PureLoss(EpsilonUnit, 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Loss{Epsilon: EpsilonUnit, Rho: 462_117_157_261, Delta: 7}); l != want { // tanh(1/2) = 0.4621171572600...
		t.Errorf("loss %+v, want %+v", l, want)
	}
	for _, p := range []Loss{{Epsilon: -1}, {Delta: -1}, {Delta: DeltaUnit}} {
		if _, err := PureLoss(p.Epsilon, p.Delta); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}
