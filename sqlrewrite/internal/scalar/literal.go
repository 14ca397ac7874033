package scalar

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/catalog"
)

// maxExponent bounds the size of numbers in a query's text: PostgreSQL's float8 ends near 10^308.
const maxExponent = 320

// ExampleOf says how values of a type are written.
func ExampleOf(t catalog.Type) string {
	switch t {
	case catalog.Date:
		return "write a date as '2024-02-29'"
	case catalog.Timestamp:
		return "write a time as '2024-02-29 23:59:00'"
	case catalog.Timestamptz:
		return "write a time as '2024-02-29 23:59:00+00'; without an offset it is UTC"
	case IntervalType:
		return "write an interval as '1 day' or '2 hours 30 minutes'"
	default:
		return ""
	}
}

// RangeOf says what values of a type count, where a text is a value of it that is out of this range; "" for every other text.
func RangeOf(text string, t catalog.Type) string {
	text = strings.ToLower(strings.TrimSpace(text))
	switch {
	case t == IntervalType:
		if _, _, _, is, within := readInterval(text); is && !within {
			return fmt.Sprintf("write an interval of at most %d months, %d days or %d hours", maxInterval/31, maxInterval, 24*maxInterval)
		}
	case IsFloat(t) && isNumber(text):
		return "write a number that double precision holds, which ends near 1e308"
	case t.IsNumber() && isNumber(text) && (!t.IsInteger() || !strings.ContainsAny(text, ".e")):
		return fmt.Sprintf("write a number of at most %d characters, with an exponent of at most %d", 2*maxExponent, maxExponent)
	case t.IsTime() && isFarTime(text):
		return "write a time of the years 1 to 9999"
	}
	return ""
}

// isFarTime reports whether a text is a time of a year before 1 or after 9999. The calendar of a year is that of another one, by 400 years.
func isFarTime(text string) bool {
	if slices.Contains([]string{"infinity", "+infinity", "-infinity"}, text) {
		return true
	}
	text, before := strings.CutSuffix(text, " bc")
	year, rest, _ := strings.Cut(text, "-")
	y, err := strconv.ParseUint(year, 10, 63)
	_, _, is := readTime(fmt.Sprintf("%d-%s", 2000+y%400, strings.ToUpper(rest)))
	return err == nil && is && y > 0 && (before || y > 9999)
}

// ParseNumber reads a decimal number of PostgreSQL's syntax, exactly.
func ParseNumber(text string) (*big.Rat, bool) {
	text = strings.TrimSpace(text)
	if len(text) > 2*maxExponent || !isNumber(text) {
		return nil, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(text[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

// isNumber reports whether text is [sign] digits [. digits] [e [sign] digits], with a digit before the exponent. big.Rat reads more:
// fractions, other bases, underscores.
func isNumber(text string) bool {
	digits := func() (n int) {
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		text = text[n:]
		return n
	}
	sign := func() {
		if text != "" && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
	}
	sign()
	mantissa := digits()
	if strings.HasPrefix(text, ".") {
		text = text[1:]
		mantissa += digits()
	}
	if mantissa == 0 || text == "" {
		return mantissa > 0
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	text = text[1:]
	sign()
	return digits() > 0 && text == ""
}

// DecimalText writes a decimal fraction exactly, without an exponent.
func DecimalText(v *big.Rat) string {
	if v.IsInt() {
		return v.Num().String()
	}
	digits, exact := v.FloatPrec()
	if !exact {
		digits = maxExponent // never for numbers read by ParseNumber: their denominators divide a power of ten
	}
	return v.FloatString(digits)
}

func FitsInt(v *big.Int, bits int) bool {
	return v.BitLen() < bits || (v.Sign() < 0 && v.BitLen() == bits && v.TrailingZeroBits() == uint(bits-1))
}

// FloatText rounds a number to float8 as PostgreSQL does, and refuses what overflows or underflows.
func FloatText(text string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "nan":
		return "NaN", true
	case "infinity", "inf", "+infinity", "+inf":
		return "Infinity", true
	case "-infinity", "-inf":
		return "-Infinity", true
	}
	v, ok := ParseNumber(text)
	if !ok {
		return "", false
	}
	if !IsOf(v, catalog.Float8) {
		return "", false
	}
	f, _ := v.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64), true
}

// IsOf reports whether PostgreSQL takes a number for a value of type t: a whole one within an integer's range, for a float none that
// overflows or vanishes.
func IsOf(v *big.Rat, t catalog.Type) bool {
	switch t {
	case catalog.Float4:
		f, _ := v.Float32()
		return !math.IsInf(float64(f), 0) && (f == 0) == (v.Sign() == 0)
	case catalog.Float8:
		f, _ := v.Float64()
		return !math.IsInf(f, 0) && (f == 0) == (v.Sign() == 0)
	default:
		return Exactly(v).Fits(t) && (v.IsInt() || !t.IsInteger())
	}
}

func BoolText(text string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "t", "true", "y", "yes", "on", "1":
		return "true", true
	case "f", "false", "n", "no", "off", "0":
		return "false", true
	default:
		return "", false
	}
}

// TimeText reads an ISO 8601 date or time. A date stays a date beside times, as in PostgreSQL; a time without an offset is
// UTC where the type has a time zone, and offsets are dropped where it has none.
func TimeText(text string, t catalog.Type) (string, catalog.Type, bool) {
	v, _, ok := readTime(text)
	if ok {
		switch t {
		case catalog.Date:
			return v.Format("2006-01-02"), t, true
		case catalog.Timestamp:
			return v.Format("2006-01-02 15:04:05.999999"), t, true
		default:
			return v.UTC().Format("2006-01-02 15:04:05.999999") + "+00", t, true
		}
	}
	return "", t, false
}

// HasOffset reports whether a text that is a time says its offset from UTC.
func HasOffset(text string) bool {
	_, zoned, ok := readTime(text)
	return ok && zoned
}

// readTime reads an ISO 8601 date or time; zoned says that it has an offset. Z and UTC, in either case, are the offset +00.
func readTime(text string) (at time.Time, zoned, ok bool) {
	text = strings.TrimSpace(text)
	upper := strings.ToUpper(text)
	local, utc := strings.CutSuffix(upper, "Z")
	if !utc {
		local, utc = strings.CutSuffix(upper, " UTC")
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, strings.TrimRight(local, " ")); err == nil && at.Year() >= 1 {
			return at, utc, true
		}
	}
	for _, layout := range []string{"2006-01-02 15:04-07", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00",
		"2006-01-02T15:04:05-07:00"} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1 {
			return at, true, true
		}
	}
	return at, false, false
}

func UuidText(text string) (string, bool) {
	plain := strings.ReplaceAll(strings.ToLower(strings.Trim(strings.TrimSpace(text), "{}")), "-", "")
	if raw, err := hex.DecodeString(plain); err != nil || len(raw) != 16 {
		return "", false
	}
	return plain[:8] + "-" + plain[8:12] + "-" + plain[12:16] + "-" + plain[16:20] + "-" + plain[20:], true
}
