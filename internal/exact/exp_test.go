package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestExpNegEnclose compares enclosures at two precisions: the tighter lies inside the wider, is at most two units
// wide, and agrees with math.Exp.
func TestExpNegEnclose(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) // reproducible on purpose
	for range 2000 {
		x := big.NewRat(random.Int64N(1<<40), 1+random.Int64N(1<<uint(1+random.IntN(60))))
		n := uint(64 + random.IntN(200))
		lo, hi := ExpNeg(x, n)
		finerLo, finerHi := ExpNeg(x, n+64)
		if width := new(big.Int).Sub(hi, lo); width.Cmp(big.NewInt(2)) > 0 {
			t.Fatalf("e^-%s at %d bits is %s units wide", x, n, width)
		}
		if new(big.Int).Lsh(lo, 64).Cmp(finerLo) > 0 || new(big.Int).Lsh(hi, 64).Cmp(finerHi) < 0 {
			t.Fatalf("e^-%s: %d bits contradict %d bits", x, n, n+64)
		}
		got := Float(new(big.Rat).SetFrac(lo, power(n)))
		want := math.Exp(-Float(x))
		if math.Abs(got-want) > 1e-14*want+math.Exp2(-float64(n)+2) {
			t.Fatalf("e^-%s = %g, math.Exp says %g", x, got, want)
		}
	}
}

// TestExpNegKnownDigits: e^-1 to 60 digits (OEIS A068985).
func TestExpNegKnownDigits(t *testing.T) {
	want, ok := new(big.Rat).SetString("0.367879441171442321595523770161460867445811131031767834507836")
	lo, hi := ExpNeg(big.NewRat(1, 1), 190)
	below, above := new(big.Rat).SetFrac(lo, power(190)), new(big.Rat).SetFrac(hi, power(190))
	if !ok || below.Cmp(want) > 0 || above.Cmp(want) < 0 {
		t.Errorf("e^-1 in [%s, %s]", below.FloatString(60), above.FloatString(60))
	}
}
