package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestRoundingEncloses compares both directions with the rational itself: floor <= x < floor+1, ceil-1 < x <= ceil.
func TestRoundingEncloses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // reproducible on purpose
	for range 10_000 {
		x := big.NewRat(random.Int64N(2000)-1000, 1+random.Int64N(30))
		floor, ceil := new(big.Rat).SetInt(FloorQuo(x.Num(), x.Denom())), new(big.Rat).SetInt(Ceil(x))
		one := big.NewRat(1, 1)
		if floor.Cmp(x) > 0 || new(big.Rat).Add(floor, one).Cmp(x) <= 0 || ceil.Cmp(x) < 0 || new(big.Rat).Sub(ceil, one).Cmp(x) >= 0 {
			t.Fatalf("%s lies between %s and %s", x, floor, ceil)
		}
		up, _ := CeilUnits(x, 7)
		if down := FloorUnits(x, 7); big.NewRat(down, 7).Cmp(x) > 0 || big.NewRat(up, 7).Cmp(x) < 0 || up-down > 1 {
			t.Fatalf("%s in sevenths lies between %d and %d", x, down, up)
		}
	}
}

func TestRoundingSaturates(t *testing.T) {
	large := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 63))
	if n, fits := CeilUnits(large, 1); fits || n != math.MaxInt64 || FloorUnits(large, 3) != math.MaxInt64 {
		t.Errorf("2^63 is %d, %t", n, fits)
	}
	small := new(big.Rat).Neg(large)
	if n, fits := CeilUnits(small, 1); !fits || n != math.MinInt64 {
		t.Errorf("-2^63 is %d, %t", n, fits)
	}
	if n, fits := CeilUnits(small, 3); fits || n != math.MinInt64 || FloorUnits(small, 3) != math.MinInt64 {
		t.Errorf("-3·2^63 is %d, %t", n, fits)
	}
}
