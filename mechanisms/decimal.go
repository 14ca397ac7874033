package mechanisms

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Limits of decimal text: enough for every parameter, too little to make exact arithmetic slow.
const (
	maxDigits   = 40
	maxExponent = 30
)

// The errors of decimal text. They are about the request's own text and may be shown.
var (
	ErrNotDecimal = errors.New("not a plain decimal number such as 0.5 or 1e-9")
	ErrTooLong    = fmt.Errorf("more than %d digits, or an exponent beyond ±%d", maxDigits, maxExponent)
	ErrTooSmall   = errors.New("smaller than the smallest unit of account")
	ErrTooLarge   = errors.New("too large")
)

// ParseDecimal reads an unsigned decimal number exactly: 0.1 is 1/10. The grammar is that of JSON numbers without a sign:
// digits without superfluous zeros, an optional fraction, an optional exponent. Errors are [ErrNotDecimal] and [ErrTooLong].
func ParseDecimal(text string) (*big.Rat, error) {
	mantissa, exponentText, hasExponent := cutExponent(text)
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if !allDigits(whole) || (hasPoint && !allDigits(fraction)) || (len(whole) > 1 && whole[0] == '0') {
		return nil, ErrNotDecimal
	}
	exponent := 0
	if hasExponent {
		digits := strings.TrimLeft(exponentText, "+-")
		if len(exponentText)-len(digits) > 1 || !allDigits(digits) {
			return nil, ErrNotDecimal
		}
		e, err := strconv.Atoi(exponentText)
		if err != nil || e < -maxExponent || e > maxExponent {
			return nil, ErrTooLong
		}
		exponent = e
	}
	if len(whole)+len(fraction) > maxDigits {
		return nil, ErrTooLong
	}
	number, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return nil, ErrNotDecimal
	}
	power := exponent - len(fraction)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil)
	if power < 0 {
		return new(big.Rat).SetFrac(number, scale), nil
	}
	return new(big.Rat).SetInt(number.Mul(number, scale)), nil
}

func cutExponent(text string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

func allDigits(s string) bool {
	for _, r := range []byte(s) {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// Largest amounts that are read: sums of many of them still fit the ledger's 64 bits.
const (
	MaxEpsilon = 1_000_000 * EpsilonUnit
	MaxRho     = 1_000_000 * RhoUnit
	MaxDelta   = DeltaUnit - 1 // δ = 1 promises nothing
)

// ParseEpsilon reads an ε that is asked for or granted, rounded down to pico units: 0 up to [MaxEpsilon]. A positive
// number below one unit is [ErrTooSmall].
func ParseEpsilon(text string) (PicoEpsilon, error) {
	n, err := parseUnits(text, amounts{unit: int64(EpsilonUnit), largest: int64(MaxEpsilon)})
	return PicoEpsilon(n), err
}

// ParseRho reads a ρ as [ParseEpsilon] reads an ε.
func ParseRho(text string) (PicoRho, error) {
	n, err := parseUnits(text, amounts{unit: int64(RhoUnit), largest: int64(MaxRho)})
	return PicoRho(n), err
}

// ParseDelta reads a δ that is asked for or granted, rounded down to atto units: at least 0, below 1.
func ParseDelta(text string) (AttoDelta, error) {
	n, err := parseUnits(text, amounts{unit: int64(DeltaUnit), largest: int64(MaxDelta)})
	return AttoDelta(n), err
}

type amounts struct{ unit, largest int64 }

func parseUnits(text string, a amounts) (int64, error) {
	x, err := ParseDecimal(text)
	if err != nil {
		return 0, err
	}
	n := new(big.Int).Mul(x.Num(), big.NewInt(a.unit))
	n.Quo(n, x.Denom())
	switch {
	case n.Sign() == 0 && x.Sign() > 0:
		return 0, ErrTooSmall
	case n.Cmp(big.NewInt(a.largest)) > 0:
		return 0, ErrTooLarge
	}
	return n.Int64(), nil
}

// String is the exact amount in the fewest digits: "0.5", "1e-9".
func (e PicoEpsilon) String() string { return decimalString(int64(e), 12) }

// String is the exact amount in the fewest digits: "0.5", "1e-9".
func (r PicoRho) String() string { return decimalString(int64(r), 12) }

// String is the exact amount in the fewest digits: "0.5", "1e-9".
func (d AttoDelta) String() string { return decimalString(int64(d), 18) }

// decimalString is n/10^places in the fewest digits; below 10⁻⁶ with an exponent, as JavaScript and Go print numbers.
func decimalString(n int64, places int) string {
	sign, magnitude := "", uint64(n)
	if n < 0 {
		sign, magnitude = "-", -magnitude
	}
	digits := strconv.FormatUint(magnitude, 10)
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	if power := len(digits) - 1 - places; power < -6 {
		mantissa := significant[:1]
		if len(significant) > 1 {
			mantissa += "." + significant[1:]
		}
		return sign + mantissa + "e" + strconv.Itoa(power)
	}
	if len(digits) <= places {
		digits = strings.Repeat("0", places+1-len(digits)) + digits
	}
	whole, fraction := digits[:len(digits)-places], strings.TrimRight(digits[len(digits)-places:], "0")
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}

// Rat is the exact amount.
func (e PicoEpsilon) Rat() *big.Rat { return big.NewRat(int64(e), int64(EpsilonUnit)) }

// Rat is the exact amount.
func (r PicoRho) Rat() *big.Rat { return big.NewRat(int64(r), int64(RhoUnit)) }

// Rat is the exact amount.
func (d AttoDelta) Rat() *big.Rat { return big.NewRat(int64(d), int64(DeltaUnit)) }
