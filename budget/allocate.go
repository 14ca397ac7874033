package budget

import (
	"errors"
	"math/big"

	"noisegate/mechanisms"
)

// Stake is one release's part in sharing out a price. Both numbers are public: they come from the query and the policy, never from data.
type Stake struct {
	// Weight says how much the release's squared error matters, relative to the others'. Positive.
	Weight *big.Rat
	// SquaredSensitivity is Δ², of L2 for Gaussian noise and of L1 for Laplace noise. Positive.
	SquaredSensitivity *big.Rat
}

// AllocateRho shares ρ among releases with Gaussian noise such that the weighted sum of their variances is least: minimise Σ
// w·σ² subject to ΣΔ²/2σ² = ρ, hence ρj ∝ √(wj)·Δj. Shares are rounded down; their sum never exceeds ρ, nor falls more than one
// unit per release below it.
func AllocateRho(rho mechanisms.PicoRho, stakes []Stake) ([]mechanisms.PicoRho, error) {
	return allocate(rho, stakes, 2)
}

// AllocateEpsilon shares ε among releases with Laplace noise such that the weighted sum of their variances is least: minimise Σ
// w·2b² subject to ΣΔ/b = ε, hence εj ∝ (wj·Δj²)^(1/3). Rounding is as in [AllocateRho].
func AllocateEpsilon(epsilon mechanisms.PicoEpsilon, stakes []Stake) ([]mechanisms.PicoEpsilon, error) {
	return allocate(epsilon, stakes, 3)
}

var errStakes = errors.New("budget: weights and sensitivities must be positive, and every share at least one unit")

// allocate shares total in proportion to the roots of weight·Δ².
func allocate[P mechanisms.PicoRho | mechanisms.PicoEpsilon](total P, stakes []Stake, degree int) ([]P, error) {
	roots := make([]*big.Int, len(stakes))
	sum := new(big.Int)
	for i, s := range stakes {
		if s.Weight == nil || s.SquaredSensitivity == nil || s.Weight.Sign() <= 0 || s.SquaredSensitivity.Sign() <= 0 {
			return nil, errStakes
		}
		roots[i] = root(new(big.Rat).Mul(s.Weight, s.SquaredSensitivity), degree)
		sum.Add(sum, roots[i])
	}
	shares := make([]P, len(stakes))
	for i, r := range roots {
		share := new(big.Int).Mul(r, big.NewInt(int64(total)))
		if share.Quo(share, sum).Sign() <= 0 {
			return nil, errStakes
		}
		shares[i] = P(share.Int64())
	}
	return shares, nil
}

// root is the root of x > 0 in units of 2⁻¹²⁸, rounded down; at least one unit.
func root(x *big.Rat, degree int) *big.Int {
	n := new(big.Int).Lsh(x.Num(), uint(fraction*degree))
	n.Quo(n, x.Denom())
	if degree == 2 {
		return atLeastOne(n.Sqrt(n))
	}
	// Newton's iteration falls from above to the root's floor: r' = (2r + n/r²)/3.
	r := new(big.Int).Lsh(big.NewInt(1), uint(n.BitLen()/3+1))
	for {
		next := new(big.Int).Quo(n, new(big.Int).Mul(r, r))
		next.Add(next, new(big.Int).Lsh(r, 1))
		if next.Quo(next, big.NewInt(3)).Cmp(r) >= 0 {
			return atLeastOne(r)
		}
		r = next
	}
}

func atLeastOne(n *big.Int) *big.Int {
	if n.Sign() == 0 {
		return n.SetInt64(1)
	}
	return n
}
