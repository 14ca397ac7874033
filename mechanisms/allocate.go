package mechanisms

import (
	"errors"
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// Share is one release's claim on a common price. Both members are public.
type Share struct {
	Weight      *big.Rat // how much the release's variance matters to the asker; positive
	Sensitivity *big.Rat // L1 for ε, L2 for ρ; positive
}

var errShare = errors.New("mechanisms: a share has a weight or a sensitivity that is not positive")

// AllocateRho splits a price in ρ among Gaussian releases so that Σ weight·variance is smallest: ρ_j ∝ sqrt(w_j)·Δ_j, because the
// variance is Δ_j²/2ρ_j. Shares are whole units, rounded down: together they never exceed the price. It returns
// [ErrTooSmall] where a share would be nothing.
func AllocateRho(total PicoRho, shares []Share) ([]PicoRho, error) {
	parts, err := allocate(int64(total), shares, func(weight, sensitivity float64) float64 { return math.Sqrt(weight) * sensitivity })
	return convert[PicoRho](parts), err
}

// AllocateEpsilon splits a price in ε among Laplace releases so that Σ weight·variance is smallest: ε_j ∝ (w_j·Δ_j²)^(1/3),
// because the variance is 2Δ_j²/ε_j². Rounding and errors are those of [AllocateRho].
func AllocateEpsilon(total PicoEpsilon, shares []Share) ([]PicoEpsilon, error) {
	parts, err := allocate(int64(total), shares, func(weight, sensitivity float64) float64 {
		return math.Cbrt(weight * sensitivity * sensitivity)
	})
	return convert[PicoEpsilon](parts), err
}

// allocate splits total in proportion to claims. Claims are floating point (they are public, and any split is sound); the split
// itself is exact, so that the parts' sum is.
func allocate(total int64, shares []Share, claim func(weight, sensitivity float64) float64) ([]int64, error) {
	claims, sum := make([]*big.Rat, len(shares)), new(big.Rat)
	for i, s := range shares {
		if s.Weight == nil || s.Sensitivity == nil || s.Weight.Sign() <= 0 || s.Sensitivity.Sign() <= 0 {
			return nil, errShare
		}
		claims[i] = new(big.Rat).SetFloat64(claim(exact.Float(s.Weight), exact.Float(s.Sensitivity)))
		if claims[i] == nil { // not finite
			return nil, ErrTooLarge
		}
		sum.Add(sum, claims[i])
	}
	parts := make([]int64, len(shares))
	for i, c := range claims {
		if c.Sign() == 0 {
			return nil, ErrTooSmall
		}
		part := c.Quo(c.Mul(c, new(big.Rat).SetInt64(total)), sum)
		if parts[i] = exact.FloorQuo(part.Num(), part.Denom()).Int64(); parts[i] <= 0 {
			return nil, ErrTooSmall
		}
	}
	return parts, nil
}

func convert[T ~int64](parts []int64) []T {
	if parts == nil {
		return nil
	}
	out := make([]T, len(parts))
	for i, p := range parts {
		out[i] = T(p)
	}
	return out
}
