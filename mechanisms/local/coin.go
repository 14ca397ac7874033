package local

import (
	"math/big"

	"noisegate.example/internal/exact"
)

// window answers one of several classes: with a chance of uniform/2⁵³ any of them, else one of the window of so many that begins at the
// truth.
//
// Guarantee: a class of the window has probability (1-u)/W + u/N, another u/N; their ratio is at most e^ε if and only if
// u >= N·x/(W + (N-W)·x), x = e^-ε. With W = 1 it is k-ary randomised response.
type window struct {
	classes uint64 // N
	width   uint64 // W
	any     uint64 // u·2⁵³, rounded up
}

const coinBits = 192

func newWindow(epsilon *big.Rat, classes, width uint64) window {
	n, w := new(big.Int).SetUint64(classes), new(big.Int).SetUint64(width)
	_, x := exact.ExpNeg(epsilon, coinBits) // u rises with x
	denominator := new(big.Int).Sub(n, w)
	denominator.Add(denominator.Mul(denominator, x), w.Lsh(w, coinBits))
	numerator := n.Mul(n, x)
	u := exact.CeilQuo(numerator.Mul(numerator, big.NewInt(coins)), denominator)
	return window{classes: classes, width: width, any: min(u.Uint64(), coins)}
}

func (w window) report(s source, truth int64) int64 {
	coin, anywhere, inside := s.uniform(coins), s.uniform(w.classes), uint64(0)
	if w.width > 1 {
		inside = s.uniform(w.width)
	}
	if coin < w.any {
		return int64(anywhere)
	}
	return truth + int64(inside)
}

// uniform is u.
func (w window) uniform() *big.Rat { return big.NewRat(int64(w.any), coins) }

// hit is the probability of a class of the window, miss that of another.
func (w window) hit() *big.Rat {
	p := new(big.Rat).Sub(big.NewRat(1, 1), w.uniform())
	return p.Add(p.Quo(p, new(big.Rat).SetFrac(new(big.Int).SetUint64(w.width), big.NewInt(1))), w.miss())
}

func (w window) miss() *big.Rat {
	return new(big.Rat).Quo(w.uniform(), new(big.Rat).SetFrac(new(big.Int).SetUint64(w.classes), big.NewInt(1)))
}
