package mechanisms

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
)

// tape plays back words, then fails: a sampler that asks for more than a test foresaw is a finding.
func tape(words ...uint64) *Sampler {
	s := &Sampler{source: iotest.ErrReader(errors.New("end of tape")), next: blockBytes - 8*len(words)}
	for i, w := range words {
		binary.LittleEndian.PutUint64(s.block[s.next+8*i:], w)
	}
	return s
}

// used says that all of a tape was read.
func used(s *Sampler) bool { return s.next == blockBytes }

// seeded gives reproducible pseudo-random parameters (never noise).
func seeded() *rand.Rand { return rand.New(rand.NewPCG(20, 26)) }

func rational(t testing.TB, text string) *big.Rat {
	t.Helper()
	x, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("not a rational: %s", text)
	}
	return x
}

// TestRandomnessFailureStopsTheDraw: no value is made up when the source fails, and the panic is the documented one.
//
// covers: F18
func TestRandomnessFailureStopsTheDraw(t *testing.T) {
	broken := errors.New("no entropy")
	noise, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Epsilon: EpsilonUnit})
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]*Sampler{
		"at once":      NewSamplerFrom(iotest.ErrReader(broken)),
		"in the block": NewSamplerFrom(iotest.DataErrReader(bytes.NewReader(make([]byte, 100)))),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, ok := recover().(*RandomnessError); !ok {
					t.Error("the draw did not stop with a *RandomnessError")
				}
			}()
			noise.Draw(source)
		})
	}
}

func TestUsedWordsAreWiped(t *testing.T) {
	s := fixedSampler(t)
	for range blockBytes/8 - 1 {
		s.word()
	}
	if !bytes.Equal(s.block[:s.next], make([]byte, s.next)) {
		t.Error("used random words are still in memory")
	}
	if bytes.Equal(s.block[s.next:], make([]byte, 8)) {
		t.Error("an unused random word is zero (false alarm 2⁻⁶⁴)")
	}
}

// TestUniformIsExact: floor(w·n/2⁶⁴), except that words which would favour a value are drawn again.
func TestUniformIsExact(t *testing.T) {
	const n = 3 // 2⁶⁴ mod 3 = 1: one word, 0, is rejected
	for _, c := range []struct {
		words []uint64
		want  uint64
	}{
		{[]uint64{1}, 0},
		{[]uint64{0, 1 << 63}, 1},
		{[]uint64{0x5555555555555555}, 0},
		{[]uint64{0x5555555555555556}, 1},
		{[]uint64{math.MaxUint64}, 2},
	} {
		s := tape(c.words...)
		if got := s.Uniform(n); got != c.want || !used(s) {
			t.Errorf("words %x: %d, want %d", c.words, got, c.want)
		}
	}
}

// TestFlipComparesEveryBit: a coin of probability 1/3 = 0.5555…₁₆ against words equal to its expansion, one bit lower and one higher,
// at the first, the second and the third word.
func TestFlipComparesEveryBit(t *testing.T) {
	const fives = 0x5555555555555555
	third := func(n uint) (lo, hi *big.Int) {
		return fixed(big.NewRat(1, 3), n, exact.FloorQuo), fixed(big.NewRat(1, 3), n, exact.CeilQuo)
	}
	first := first64(third)
	if first != fives {
		t.Fatalf("first word of 1/3 = %x", first)
	}
	for _, c := range []struct {
		words []uint64
		want  bool
	}{
		{[]uint64{fives - 1}, true},
		{[]uint64{fives + 1}, false},
		{[]uint64{fives, fives - 1}, true},
		{[]uint64{fives, fives + 1}, false},
		{[]uint64{fives, fives, 0}, true},
		{[]uint64{fives, fives, math.MaxUint64}, false},
	} {
		s := tape(c.words...)
		if got := s.flip(first, third); got != c.want || !used(s) {
			t.Errorf("words %x: %v, want %v (tape used: %v)", c.words, got, c.want, used(s))
		}
	}
}

// TestFlipOfCertainty: e^-0 is 1 whatever the words are.
func TestFlipOfCertainty(t *testing.T) {
	certain := lawExp.at(new(big.Rat))
	first := first64(certain)
	for _, w := range []uint64{0, 1 << 63, math.MaxUint64} {
		if !tape(w).flip(first, certain) {
			t.Errorf("word %x: a coin of probability 1 showed false", w)
		}
	}
}

// fits fails the test if counts were not drawn from the law; false alarm 1e-6.
func fits(t *testing.T, counts []int64, probabilities []float64) {
	t.Helper()
	fit, err := stattest.ChiSquare(counts, probabilities)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Rejects(stattest.PerTest) {
		t.Errorf("not the law: %+v\ncounts %v", fit, counts)
	}
}

// fixedSampler draws the same noise in each run of a test.
func fixedSampler(t testing.TB) *Sampler {
	return NewSamplerFrom(randomtest.Source(t.Name()))
}
