package scalar

import (
	"math"
	"math/big"
	"strconv"

	"noisegate.example/catalog"
)

func InUnits(n *big.Int, unit *big.Rat) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt(n), unit)
}

func ClampRat(v, lo, hi *big.Rat) *big.Rat {
	switch {
	case v.Cmp(lo) < 0:
		return lo
	case v.Cmp(hi) > 0:
		return hi
	default:
		return v
	}
}

// MeanDigits are PostgreSQL's decimal places of a numeric mean.
const MeanDigits = 16

// MeanDigitsOf are the decimal places of a mean that may be small: at least eight digits from its first one on.
func MeanDigitsOf(v *big.Rat) int {
	digits := MeanDigits
	for first := new(big.Rat).Abs(v); first.Sign() > 0 && first.Cmp(big.NewRat(1, 100_000_000)) < 0; digits++ {
		first.Mul(first, big.NewRat(10, 1))
	}
	return digits
}

// UnitDigits are the decimal places that show every multiple of a unit.
func UnitDigits(unit *big.Rat) int {
	if digits, exact := unit.FloatPrec(); exact {
		return digits
	}
	return MeanDigits
}

// FormatNumber writes a number as PostgreSQL writes type t. Numbers beyond bigint stop at its ends: only noise gets there.
func FormatNumber(v *big.Rat, t catalog.Type, digits int) string {
	switch t {
	case catalog.Int8:
		lowest, highest := IntegerRange(catalog.Int8)
		return Floor(ClampRat(v, lowest, highest)).String()
	case catalog.Float8:
		f, _ := v.Float64()
		return FormatFloat(f, 64)
	case catalog.Float4:
		f, _ := v.Float64()
		return FormatFloat(f, 32)
	default:
		return v.FloatString(digits)
	}
}

// FormatFloat writes the shortest text that reads back as f, with an exponent where PostgreSQL writes one.
func FormatFloat(f float64, bits int) string {
	largest := 15 // digits before the point
	if bits == 32 {
		largest = 6
	}
	if size := math.Abs(f); f != 0 && (size < 1e-4 || size >= math.Pow10(largest)) {
		return strconv.FormatFloat(f, 'e', -1, bits)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

// StepOf is the smallest number with so many decimal places, which may be negative.
func StepOf(digits int) *big.Rat {
	step := new(big.Rat).SetInt(Power10(max(digits, -digits)))
	if digits > 0 {
		step.Inv(step)
	}
	return step
}

func One() *big.Rat { return big.NewRat(1, 1) }

func Power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func MaxInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// Floor is the largest whole number <= v.
func Floor(v *big.Rat) *big.Int {
	return new(big.Int).Div(v.Num(), v.Denom()) // Euclidean division by a positive number is floor
}

// Ceil is the smallest whole number >= v.
func Ceil(v *big.Rat) *big.Int {
	return new(big.Int).Neg(Floor(new(big.Rat).Neg(v)))
}

// DecimalOrFraction writes a number for people: exactly as a decimal where that is short, else as a fraction.
func DecimalOrFraction(v *big.Rat) string {
	if digits, exact := v.FloatPrec(); exact && digits <= 20 {
		return v.FloatString(digits)
	}
	return v.RatString()
}

// Truncate rounds towards zero, as PostgreSQL divides whole numbers.
func Truncate(v *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(v.Num(), v.Denom()))
}

// RoundTo rounds half away from zero to a number of decimal places, which may be negative.
func RoundTo(v *big.Rat, digits int) *big.Rat {
	step := StepOf(digits)
	scaled := new(big.Rat).Quo(v, step)
	half := big.NewRat(int64(scaled.Sign()), 2)
	return step.Mul(Truncate(scaled.Add(scaled, half)), step)
}

func MaxRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

func MinRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func ClampInt64(v *big.Int) int64 {
	if !v.IsInt64() {
		return math.MaxInt64
	}
	return v.Int64()
}

// IntegerRange is the range of an integer type, nil for other types.
func IntegerRange(t catalog.Type) (lowest, highest *big.Rat) {
	bits := IntegerBits(t)
	if bits == 0 {
		return nil, nil
	}
	top := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return new(big.Rat).SetInt(new(big.Int).Neg(top)), new(big.Rat).SetInt(new(big.Int).Sub(top, big.NewInt(1)))
}

// IntegerBits is the width of an integer type, 0 for other types.
func IntegerBits(t catalog.Type) uint {
	switch t {
	case catalog.Int2:
		return 16
	case catalog.Int4:
		return 32
	case catalog.Int8:
		return 64
	default:
		return 0
	}
}

// Span is a closed interval.
type Span struct{ Lo, Hi *big.Rat }

// Point is the span of one number.
func Point(v *big.Rat) *Span { return &Span{Lo: v, Hi: v} }
