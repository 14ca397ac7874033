package mechanisms

import "math"

// PicoEpsilon is pure ε in units of 10⁻¹². Charges are rounded up to it, grants down.
type PicoEpsilon int64

// PicoRho is ρ of zero-concentrated differential privacy in units of 10⁻¹². Charges are rounded up, grants down.
type PicoRho int64

// AttoDelta is δ in units of 10⁻¹⁸. Charges are rounded up, grants down.
type AttoDelta int64

// Units per 1 of each currency.
const (
	EpsilonUnit PicoEpsilon = 1_000_000_000_000
	RhoUnit     PicoRho     = 1_000_000_000_000
	DeltaUnit   AttoDelta   = 1_000_000_000_000_000_000
)

// Loss is what one release costs, in every currency at once, so that any form of budget can be charged:
// outside an event of probability Delta it is Rho-zCDP and, unless Unbounded, also pure Epsilon-DP.
//
// With a Tail, Epsilon is not pure: outside the event of probability Delta the release is (Epsilon, Tail)-DP, which follows from its ρ.
//
// The zero Loss is the loss of releasing nothing.
type Loss struct {
	Epsilon   PicoEpsilon // meaningless when Unbounded
	Unbounded bool        // no finite pure ε (Gaussian noise)
	Rho       PicoRho
	Delta     AttoDelta
	Tail      AttoDelta // 0: Epsilon, unless Unbounded, is pure
}

// Pure reports whether the release has a finite pure ε outside the event of probability Delta.
func (l Loss) Pure() bool { return !l.Unbounded && l.Tail == 0 }

// Plus is the loss of two releases together (basic composition in each currency). Sums that leave
// the range saturate at the largest value, which no budget admits.
func (l Loss) Plus(m Loss) Loss {
	return Loss{
		Epsilon:   PicoEpsilon(addSaturating(int64(l.Epsilon), int64(m.Epsilon))),
		Unbounded: l.Unbounded || m.Unbounded,
		Rho:       PicoRho(addSaturating(int64(l.Rho), int64(m.Rho))),
		Delta:     AttoDelta(addSaturating(int64(l.Delta), int64(m.Delta))),
		Tail:      AttoDelta(addSaturating(int64(l.Tail), int64(m.Tail))),
	}
}

// Times is the loss of n such releases together; n is positive.
func (l Loss) Times(n int64) Loss {
	return Loss{
		Epsilon:   PicoEpsilon(timesSaturating(int64(l.Epsilon), n)),
		Unbounded: l.Unbounded,
		Rho:       PicoRho(timesSaturating(int64(l.Rho), n)),
		Delta:     AttoDelta(timesSaturating(int64(l.Delta), n)),
		Tail:      AttoDelta(timesSaturating(int64(l.Tail), n)),
	}
}

// IsZero reports whether the loss is that of releasing nothing.
func (l Loss) IsZero() bool { return l == Loss{} }

// addSaturating adds two non-negative numbers.
func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// timesSaturating multiplies two non-negative numbers, the second positive.
func timesSaturating(a, n int64) int64 {
	if a > math.MaxInt64/n {
		return math.MaxInt64
	}
	return a * n
}
