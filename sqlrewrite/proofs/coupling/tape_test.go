package coupling

import (
	wire "encoding/binary"
	"io"
	"math"
	"math/big"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/plan"
)

// Tape is randomness that a test decides: a [mechanisms.Sampler] over it draws the noise and makes the choices that were recorded. It
// writes the words that the samplers of mechanisms read, so that nothing between them and an answer is replaced.
//
// If a sampler reads otherwise than recorded, it draws something else, and the answers that should be equal are not: a tape cannot hide
// anything.
type Tape struct {
	words []uint64
	cost  float64 // of what was recorded last: -ln of the probability of the choice, up to what all choices have in common
}

// Sampler plays the tape from its beginning. Beyond its end it repeats one word, which no choice rejects.
func (t *Tape) Sampler() *mechanisms.Sampler { return samplerOf(t.words...) }

func samplerOf(words ...uint64) *mechanisms.Sampler { return mechanisms.NewSamplerFrom(&player{words}) }

const beyondEnd = 0x9E3779B97F4A7C15

type player struct{ left []uint64 }

// Read implements [io.Reader].
func (p *player) Read(block []byte) (int, error) {
	if len(block)%8 != 0 {
		return 0, io.ErrShortBuffer
	}
	for at := 0; at < len(block); at += 8 {
		word := uint64(beyondEnd)
		if len(p.left) > 0 {
			word, p.left = p.left[0], p.left[1:]
		}
		wire.LittleEndian.PutUint64(block[at:], word)
	}
	return len(block), nil
}

func (t *Tape) add(words ...uint64) { t.words = append(t.words, words...) }

// noise records one draw of a mechanism. A Gaussian draw is a Laplace draw of scale floor(σ)+1 that is accepted, which a coin of 0 always
// is.
func (t *Tape) noise(m mechanisms.Parameters, v *big.Int) {
	if m.Variance == "" {
		scale, _ := new(big.Rat).SetString(m.Scale)
		t.laplace(scale, v)
		return
	}
	variance, _ := new(big.Rat).SetString(m.Variance)
	root := new(big.Int).Sqrt(new(big.Int).Quo(variance.Num(), variance.Denom()))
	t.laplace(new(big.Rat).SetInt(root.Add(root, big.NewInt(1))), v)
	t.add(0)
}

// laplace records a draw of the discrete Laplace law: a word whose highest byte decides whether the noise is zero, the next whether it is
// beyond all digits, and whose last bit is the sign; then for each eight binary digits of |v|-1 a word with a byte each, below the digit's
// probability for a 1. Where that is below 1/256 a byte of 0 leaves it open, and the next word decides.
func (t *Tape) laplace(scale *big.Rat, v *big.Int) {
	const ones = 1<<64 - 1
	b, _ := scale.Float64()
	reach := new(big.Int).Mul(scale.Num(), big.NewInt(11))
	reach.Quo(reach.Add(reach, scale.Denom()).Sub(reach, big.NewInt(1)), scale.Denom())
	words := max(1, (reach.BitLen()+7)/8)
	head, zero := uint64(ones-1), math.Floor(256*math.Tanh(1/(2*b)))
	if v.Sign() == 0 {
		head &= 1<<56 - 1
	}
	if v.Sign() < 0 {
		head |= 1
	}
	t.add(head)
	if v.Sign() == 0 && zero == 0 {
		t.add(0)
	} else if v.Sign() != 0 && zero == 255 {
		t.add(ones)
	}
	digits := new(big.Int).Abs(v)
	digits.Sub(digits, big.NewInt(1))
	for i := range words {
		at := i
		if 8*words > 56 { // noise that does not fit a machine word is drawn from its highest digits down
			at = words - 1 - i
		}
		t.eight(digits, at, b)
	}
}

func (t *Tape) eight(digits *big.Int, at int, b float64) {
	word, open := uint64(0), 0
	for i := range 8 {
		if digits.Sign() < 0 || digits.Bit(8*at+i) == 0 {
			word |= 0xFF << (8 * i)
		} else if 256/(1+math.Exp(math.Ldexp(1, 8*at+i)/b)) < 1 {
			open++
		}
	}
	t.add(word)
	t.add(make([]uint64, open)...)
}

// keep records whether a group with so many units on a side is shown. Both decisions can be had of a group that is not shown for certain.
func (t *Tape) keep(m plan.Keeper, units *big.Int, shown bool) {
	if g, ok := m.(*mechanisms.GaussianThreshold); ok {
		x := new(big.Int).Sub(g.Threshold(), units)
		if !shown {
			x.Sub(x, big.NewInt(1))
		}
		t.noise(g.Parameters(), x)
		return
	}
	if shown {
		t.add(0)
	} else {
		t.add(1<<64 - 1)
	}
}

// selectionOf is a choice as a function of the words that are read for it.
type selectionOf func(words ...uint64) *big.Int

// invert finds the words w for which outcome(w), which never falls as w rises, is the target: the one in their middle, and their share of
// all.
func invert(outcome func(uint64) *big.Int, target *big.Int) (word uint64, share float64, ok bool) {
	from := searchWord(func(w uint64) bool { return outcome(w).Cmp(target) >= 0 })
	upTo := searchWord(func(w uint64) bool { return outcome(w).Cmp(target) > 0 })
	if upTo != ^uint64(0) {
		upTo--
	}
	if from > upTo || outcome(from).Cmp(target) != 0 {
		return 0, 0, false
	}
	return from + (upTo-from)/2, (float64(upTo-from) + 1) / (1 << 64), true
}

// searchWord is the first word for which a property holds that holds from some word on; the last one if none.
func searchWord(holds func(uint64) bool) uint64 {
	lo, hi := uint64(0), ^uint64(0)
	for lo < hi {
		if w := lo + (hi-lo)/2; holds(w) {
			hi = w
		} else {
			lo = w + 1
		}
	}
	return lo
}

// word records a choice by one word, after the words before.
func (t *Tape) word(choose selectionOf, before []uint64, target *big.Int) (word uint64, ok bool) {
	word, share, ok := invert(func(w uint64) *big.Int { return choose(append(before[:len(before):len(before)], w)...) }, target)
	t.cost = -math.Log(share)
	t.add(word)
	return word, ok
}

// point records the choice of a point of a grid: a word for a run of points that are equally good, and one for the point in it.
func (t *Tape) point(choose selectionOf, target *big.Int) bool {
	first := func(w uint64) *big.Int { return choose(w, 1, 1, 1) } // of the run, also where the second word decides between two runs
	beyond := searchWord(func(w uint64) bool { return first(w).Cmp(target) > 0 })
	start := first(beyond - min(beyond, 1))
	run, share, ok := invert(first, start)
	points := new(big.Int).Sub(choose(run, 1<<64-1), start)
	points.Add(points, big.NewInt(1))
	at := new(big.Int).Sub(target, start)
	if !ok || at.Sign() < 0 || at.Cmp(points) >= 0 {
		return false
	}
	t.add(run, uniform(at, points))
	count, _ := new(big.Float).SetInt(points).Float64()
	t.cost = math.Log(count) - math.Log(share)
	return true
}

// uniform is the word in the middle of those that choose one of n.
func uniform(at, n *big.Int) uint64 {
	w := new(big.Int).Lsh(at, 1)
	w.Lsh(w.Add(w, big.NewInt(1)), 63)
	return w.Quo(w, n).Uint64()
}

// alike records a choice in a group in which nobody is on either side.
func (t *Tape) alike(c *plan.Selection) {
	switch c.Selector.(type) {
	case nil:
		t.add(beyondEnd, beyondEnd)
	case *mechanisms.PermuteAndFlip:
		t.flip(new(big.Int), c.Among)
	default:
		t.add(beyondEnd)
	}
}

// flip records that permute-and-flip takes a candidate: it is the first that is visited, and its coin is 0.
func (t *Tape) flip(candidate *big.Int, among int) {
	t.add(uniform(candidate, big.NewInt(int64(among))), 0)
	t.cost = 0
}
