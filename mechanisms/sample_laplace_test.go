package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
)

// TestCompareBytes tries every pair of bytes in every lane, among neighbours that would spoil a borrow.
func TestCompareBytes(t *testing.T) {
	for lane := range 8 {
		for _, around := range []uint64{0, math.MaxUint64} {
			for a := range uint64(256) {
				for b := range uint64(256) {
					mask := uint64(0xff) << (8 * lane)
					w, threshold := around&^mask|a<<(8*lane), ^around&^mask|b<<(8*lane)
					below, ties := compareBytes(w, threshold)
					top := uint64(0x80) << (8 * lane)
					if (below&top != 0) != (a < b) || (ties&top != 0) != (a == b) {
						t.Fatalf("lane %d: %d against %d: below %x, ties %x", lane, a, b, below, ties)
					}
				}
			}
		}
	}
}

// laplaceMass is P(X = x) of the discrete Laplace law.
func laplaceMass(scale float64, x int64) float64 {
	return math.Tanh(1/(2*scale)) * math.Exp(-math.Abs(float64(x))/scale)
}

// laplaceTail is P(X >= k) for k >= 1.
func laplaceTail(scale, k float64) float64 {
	return math.Exp(-k/scale) / (1 + math.Exp(-1/scale))
}

// TestLaplaceLawByEnumeration walks the whole decision tree of one draw for small scales: every coin can show its first byte
// below, above or equal to its probability's and, when equal, the rest below or above (the 2⁻⁶⁴ of full equality is left out).
// The leaves' weights, added up per value, are the exact law. Nothing here is random.
func TestLaplaceLawByEnumeration(t *testing.T) {
	for _, scale := range []string{"1", "2/3", "5/2", "1/10"} {
		t.Run(scale, func(t *testing.T) {
			law := newLaplaceLaw(rational(t, scale))
			if len(law.digit) != 8 {
				t.Fatalf("width %d, want 8", len(law.digit))
			}
			sums := map[int64]float64{}
			enumerateDraw(t, law, func(value int64, weight float64) { sums[value] += weight })
			b := exact.Float(law.scale)
			for x := int64(-256); x <= 256; x++ {
				if want := laplaceMass(b, x); math.Abs(sums[x]-want) > 1e-15+1e-12*want {
					t.Errorf("P(X=%d) = %.17g, want %.17g", x, sums[x], want)
				}
			}
		})
	}
}

// coinFace is one outcome of a coin: its first byte, whether the rest is asked for, and which rest.
type coinFace struct {
	lead   byte
	tie    bool
	rest   uint64
	weight float64
}

// faces are the outcomes of a coin with a positive weight, each represented by the words nearest to the probability.
func faces(first uint64) []coinFace {
	const restBits = 56
	lead, rest := byte(first>>restBits), first&(1<<restBits-1)
	all := []coinFace{
		{lead: lead - 1, weight: float64(lead) / 256},
		{lead: lead + 1, weight: float64(255-lead) / 256},
		{lead: lead, tie: true, rest: rest - 1, weight: math.Ldexp(float64(rest), -64)},
		{lead: lead, tie: true, rest: rest + 1, weight: math.Ldexp(float64(1<<restBits-1-rest), -64)},
	}
	var some []coinFace
	for _, f := range all {
		if f.weight > 0 {
			some = append(some, f)
		}
	}
	return some
}

func enumerateDraw(t *testing.T, law *laplaceLaw, leaf func(value int64, weight float64)) {
	coins := append([]coin{law.zero, law.carry}, law.digit...)
	chosen := make([]coinFace, len(coins))
	var walk func(i int, weight float64)
	walk = func(i int, weight float64) {
		if i < len(coins) {
			for _, f := range faces(coins[i].first) {
				chosen[i] = f
				walk(i+1, weight*f.weight)
			}
			return
		}
		head := uint64(chosen[0].lead)<<56 | uint64(chosen[1].lead)<<48
		var digits uint64
		for j, f := range chosen[2:] {
			digits |= uint64(f.lead) << (8 * j)
		}
		for sign := range uint64(2) {
			words := []uint64{head | sign}
			for _, f := range chosen[:2] {
				if f.tie {
					words = append(words, f.rest)
				}
			}
			words = append(words, digits)
			for _, f := range chosen[2:] {
				if f.tie {
					words = append(words, f.rest)
				}
			}
			s := tape(words...)
			value := law.draw(s)
			if !used(s) || value.big != nil {
				t.Fatalf("words %x: unused words, or a big value", words)
			}
			leaf(value.small, weight/2)
		}
	}
	walk(0, 1)
}

// TestLaplaceCarry: a magnitude beyond the digits, on a tape: the carry coin twice, then not.
func TestLaplaceCarry(t *testing.T) {
	law := newLaplaceLaw(big.NewRat(20, 1)) // width 8, carry e^-12.8
	head := uint64(255)<<56 | 0<<48         // not zero, carry undecided by its first byte, positive
	s := tape(head, law.carry.first-1, 1<<63|1<<55, 0, law.carry.first-1, law.carry.first+1)
	// The digits' word has ties only where a first byte is 0x80 or 0: none below; so the fourth word is the first flip.
	got := law.draw(s)
	if got.big != nil || got.small <= 512 || got.small > 1024 {
		t.Errorf("drew %d, want a value in (512, 1024]", got.small)
	}
}

// TestLaplaceLaw compares draws with the exact law, for scales on each path: below and above 1, with a numerator and a
// denominator beyond 64 bits, and beyond machine words. False alarm 1e-6 each.
func TestLaplaceLaw(t *testing.T) {
	for _, scale := range []string{
		"1/3", "1", "7/2", "1000", "1099511627776", "50000000000000000000/33333333333",
		"123456789012345678901234567890/987654321098765432109876543211", "36893488147419103232", "1e40",
	} {
		t.Run(scale, func(t *testing.T) {
			law, s := newLaplaceLaw(rational(t, scale)), fixedSampler(t)
			b := exact.Float(law.scale)
			// Cells: [k·step, (k+1)·step) for k in [-20, 20), the last ones open.
			const half = 20
			step := math.Max(1, math.Floor(b/4))
			tail := func(k float64) float64 { // P(X >= k)
				if k >= 1 {
					return laplaceTail(b, k)
				}
				return 1 - laplaceTail(b, 1-k)
			}
			probabilities, counts := make([]float64, 2*half), make([]int64, 2*half)
			for i := range probabilities {
				k := float64(i-half) * step
				probabilities[i] = tail(k) - tail(k+step)
			}
			probabilities[0] = 1 - tail(float64(1-half)*step)
			probabilities[2*half-1] = tail(float64(half-1) * step)
			for range 100_000 {
				cell := math.Floor(noiseFloat(law.draw(s)) / step)
				counts[int(math.Max(-half, math.Min(half-1, cell)))+half]++
			}
			fits(t, counts, probabilities)
		})
	}
}

func noiseFloat(n Noise) float64 {
	if n.big != nil {
		f, _ := new(big.Float).SetInt(n.big).Float64()
		return f
	}
	return float64(n.small)
}

// TestLaplaceTinyScale: noise of scale 10⁻⁶ (ε = 10⁶) is prepared, and is 0.
func TestLaplaceTinyScale(t *testing.T) {
	law, s := newLaplaceLaw(big.NewRat(1, 1_000_000)), fixedSampler(t)
	for range 100 {
		if n := law.draw(s); n.small != 0 || n.big != nil {
			t.Fatalf("drew %v", noiseFloat(n))
		}
	}
}
