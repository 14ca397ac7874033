package local

import (
	"errors"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/mechanisms"
)

// ErrRange says that the ends of a range are not two decimal numbers, the smaller one first.
var ErrRange = errors.New("the range must be two decimal numbers, the smaller one first")

// Range is what a number may be: from Low to High, which is above.
type Range struct{ Low, High *big.Rat }

// ParseRange reads a range. Its error is [ErrRange].
func ParseRange(low, high string) (Range, error) {
	l, lowErr := ParseNumber(low)
	h, highErr := ParseNumber(high)
	if lowErr != nil || highErr != nil || l.Cmp(h) >= 0 {
		return Range{}, ErrRange
	}
	return Range{l, h}, nil
}

// ParseNumber reads a decimal number, which may have a minus sign, exactly. Its errors are those of [mechanisms.ParseDecimal].
func ParseNumber(text string) (*big.Rat, error) {
	magnitude, negative := strings.CutPrefix(text, "-")
	x, err := mechanisms.ParseDecimal(magnitude)
	if err == nil && negative {
		x.Neg(x)
	}
	return x, err
}

// Steps is the step of [Grid] that a number is nearest to; numbers outside the range are at its ends.
func (r Range) Steps(x *big.Rat) int64 {
	part := new(big.Rat).Sub(x, r.Low)
	part.Quo(part, new(big.Rat).Sub(r.High, r.Low))
	return nearest(part.Mul(part, big.NewRat(Grid, 1)), Grid)
}

// nearest is the whole number that x is nearest to, from 0 to most.
func nearest(x *big.Rat, most int64) int64 {
	x = new(big.Rat).Add(x, big.NewRat(1, 2))
	n := new(big.Int).Div(x.Num(), x.Denom())
	switch {
	case n.Sign() < 0:
		return 0
	case n.Cmp(big.NewInt(most)) > 0:
		return most
	default:
		return n.Int64()
	}
}

// tolerance is how far from 1 the sum of probabilities may be: they come from floating point.
var tolerance = big.NewRat(1, 1000)

// Simplex puts probabilities on the grid: steps that add up to [Whole] exactly, so that two of them are at most 2·Whole apart in the
// sum of absolute differences. They are scaled to a sum of 1 and rounded down; the steps that are left go to the largest remainders.
// It returns [ErrTruth] if one is negative or their sum is not 1 within 0.001.
func Simplex(probabilities []*big.Rat) ([]int64, error) {
	sum := new(big.Rat)
	for _, p := range probabilities {
		if p.Sign() < 0 {
			return nil, ErrTruth
		}
		sum.Add(sum, p)
	}
	if off := new(big.Rat).Sub(sum, big.NewRat(1, 1)); off.Abs(off).Cmp(tolerance) > 0 {
		return nil, ErrTruth
	}
	steps, order, left := make([]int64, len(probabilities)), make([]int, len(probabilities)), int64(Whole)
	remainders := make([]*big.Rat, len(probabilities))
	for i, p := range probabilities {
		x := new(big.Rat).Quo(new(big.Rat).Mul(p, big.NewRat(Whole, 1)), sum)
		floor := new(big.Int).Div(x.Num(), x.Denom())
		steps[i], order[i], remainders[i] = floor.Int64(), i, x.Sub(x, new(big.Rat).SetInt(floor))
		left -= steps[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b].Cmp(remainders[a]) })
	for _, i := range order[:left] {
		steps[i]++
	}
	return steps, nil
}
