// Package exact rounds exact numbers in the direction that its caller names.
//
// It knows integers and rationals. It does not know units of account, budgets or noise.
package exact

import (
	"math"
	"math/big"
)

// FloorQuo is ⌊a/b⌋ for b > 0.
func FloorQuo(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

// CeilQuo is ⌈a/b⌉ for b > 0.
func CeilQuo(a, b *big.Int) *big.Int {
	q, r := new(big.Int).DivMod(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Ceil is ⌈x⌉.
func Ceil(x *big.Rat) *big.Int { return CeilQuo(x.Num(), x.Denom()) }

// FloorUnits is ⌊x·unit⌋, or the nearest int64 to it.
func FloorUnits(x *big.Rat, unit int64) int64 {
	n, _ := Int64(FloorQuo(new(big.Int).Mul(x.Num(), big.NewInt(unit)), x.Denom()))
	return n
}

// CeilUnits is ⌈x·unit⌉, or the nearest int64 to it and false.
func CeilUnits(x *big.Rat, unit int64) (int64, bool) {
	return Int64(CeilQuo(new(big.Int).Mul(x.Num(), big.NewInt(unit)), x.Denom()))
}

// Int64 is n, or the nearest int64 to it and false.
func Int64(n *big.Int) (int64, bool) {
	switch {
	case n.IsInt64():
		return n.Int64(), true
	case n.Sign() < 0:
		return math.MinInt64, false
	default:
		return math.MaxInt64, false
	}
}

// Float is the nearest float64.
func Float(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
