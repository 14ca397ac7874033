package mechanisms

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"math/bits"
)

// blockBytes is how much randomness is fetched at once: large enough to hide the cost of a system call, small enough to sit
// in a sampler's own memory.
const blockBytes = 1024

// Sampler draws exact samples from crypto/rand. It is not safe for concurrent use: each request has its own, so
// that there is no lock. Random words are wiped from memory as they are used.
//
// When randomness fails, methods that draw panic with a [*RandomnessError]: no caller could go on, and an error return on
// every coin would invite one to try. The gateway recovers it once, answers "internal", and keeps the charge.
type Sampler struct {
	source io.Reader
	next   int // offset of the first unused byte
	block  [blockBytes]byte
}

// NewSampler returns a sampler over crypto/rand.
func NewSampler() *Sampler { return &Sampler{source: rand.Reader, next: blockBytes} }

// NewSamplerFrom returns a sampler over another source. It is for tests only; internal/archtest holds that.
func NewSamplerFrom(source io.Reader) *Sampler { return &Sampler{source: source, next: blockBytes} }

// RandomnessError is what drawing panics with when the source of randomness fails.
type RandomnessError struct{ Err error }

func (e *RandomnessError) Error() string { return fmt.Sprintf("mechanisms: no randomness: %v", e.Err) }

// Unwrap gives the source's error.
func (e *RandomnessError) Unwrap() error { return e.Err }

// word is a uniform 64-bit word.
func (s *Sampler) word() uint64 {
	if s.next == blockBytes {
		s.refill()
	}
	chunk := s.block[s.next : s.next+8]
	w := binary.LittleEndian.Uint64(chunk)
	binary.LittleEndian.PutUint64(chunk, 0)
	s.next += 8
	return w
}

func (s *Sampler) refill() {
	if _, err := io.ReadFull(s.source, s.block[:]); err != nil {
		clear(s.block[:])
		panic(&RandomnessError{Err: err})
	}
	s.next = 0
}

// Uniform is a uniform integer in [0, n); n must be positive. Multiplication with exact rejection (Lemire 2019, arXiv
// 1805.10941): of the 2⁶⁴ words, those that would favour some values are drawn again.
func (s *Sampler) Uniform(n uint64) uint64 {
	hi, lo := bits.Mul64(s.word(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(s.word(), n)
		}
	}
	return hi
}

// enclosure gives ever tighter bounds of one real number: lo <= 2ⁿ·p <= hi.
type enclosure func(n uint) (lo, hi *big.Int)

// first64 is floor(2⁶⁴·p), the first word of the binary expansion of a probability (all ones for p = 1).
func first64(p enclosure) uint64 {
	for n := uint(128); ; n *= 2 {
		lo, hi := p(n)
		if first, ok := commonFirst64(lo, hi, n); ok {
			return first
		}
	}
}

// commonFirst64 is the first word of the expansion of every probability in [lo, hi]/2ⁿ, if they have it in common.
func commonFirst64(lo, hi *big.Int, n uint) (uint64, bool) {
	a, b := firstWord(lo, n), firstWord(hi, n)
	return a, a == b
}

func firstWord(p *big.Int, n uint) uint64 {
	w := new(big.Int).Rsh(p, n-64)
	if w.BitLen() > 64 {
		return ^uint64(0)
	}
	return w.Uint64()
}

// flip is a coin that shows true with probability p exactly. first must be first64(p); it decides all but one in 2⁶⁴ tosses.
func (s *Sampler) flip(first uint64, p enclosure) bool {
	w := s.word()
	if w != first {
		return w < first
	}
	return s.decide(w, p)
}

// decide says whether a uniform real in [0, 1) that begins with the 64 bits of w is below p. Further words of the uniform are
// drawn, and p enclosed more tightly, until there is no doubt. An enclosure a few units wide leaves a doubt with
// probability 2⁻⁶⁰ a word, so that this ends.
func (s *Sampler) decide(w uint64, p enclosure) bool {
	u := new(big.Int).SetUint64(w)
	for n := uint(64); ; n += 64 {
		lo, hi := p(n)
		if u.Cmp(hi) >= 0 {
			return false
		}
		if u.Cmp(lo) < 0 { // u+1 <= lo
			return true
		}
		u.Or(u.Lsh(u, 64), new(big.Int).SetUint64(s.word()))
	}
}
