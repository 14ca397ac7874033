package sqlrewrite

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// maxExponent bounds the size of numbers in a query's text: PostgreSQL's float8 ends near 10^308.
const maxExponent = 320

// literal gives a constant the type that PostgreSQL gives it: integers the smallest that holds them, decimals numeric, strings
// and NULL none until something beside them has one.
func (b *binder) literal(n *syntax.Literal) (constant, error) {
	switch n.Kind {
	case syntax.NullLiteral:
		return constant{null: true}, nil
	case syntax.BoolLiteral:
		return constant{t: catalog.Bool, text: n.Text}, nil
	case syntax.StringLiteral:
		return constant{text: n.Text}, nil
	case syntax.IntegerLiteral, syntax.DecimalLiteral:
		v, ok := parseNumber(n.Text)
		if !ok {
			return constant{}, b.mismatch(n, "the number "+fault.Quote(n.Text)+" is out of range", "")
		}
		return numberConstant(v, n.Kind == syntax.DecimalLiteral), nil
	default:
		return constant{}, b.unsupported(n, "this literal", "")
	}
}

// numberConstant is v in PostgreSQL's canonical spelling, as an integer type unless decimal is set.
func numberConstant(v *big.Rat, decimal bool) constant {
	switch {
	case !decimal && v.IsInt() && fitsInt(v.Num(), 32):
		return constant{t: catalog.Int4, text: v.Num().String()}
	case !decimal && v.IsInt() && fitsInt(v.Num(), 64):
		return constant{t: catalog.Int8, text: v.Num().String()}
	default:
		return constant{t: catalog.Numeric, text: decimalText(v)}
	}
}

// coerce gives a constant without a type the type t, and a number beside floats the type float8. Every other expression stays
// as it is. It fails when the text is no value of t.
func (b *binder) coerce(at syntax.Expr, e expr, t catalog.Type) (expr, error) {
	c, ok := e.(constant)
	if !ok || t == unknownType {
		return e, nil
	}
	switch {
	case c.t == unknownType && c.null:
		return constant{t: t, null: true}, nil
	case c.t == unknownType:
		return b.typed(at, c.text, t)
	case isFloat(t) && c.t.IsNumber() && !c.null:
		return b.typed(at, c.text, catalog.Float8)
	case t == catalog.Timestamptz && c.t.IsTime() && !c.null:
		return b.typed(at, c.text, t) // not left to the session's time zone
	default:
		return e, nil
	}
}

// typed reads text as a value of type t and gives its canonical spelling, so that PostgreSQL cannot fail on it.
func (b *binder) typed(at syntax.Expr, text string, t catalog.Type) (constant, error) {
	var canonical string
	var ok bool
	wanted := t
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8:
		canonical, t, ok = integerText(text)
	case catalog.Numeric:
		var v *big.Rat
		if v, ok = parseNumber(text); ok {
			canonical = decimalText(v)
		}
	case catalog.Float4, catalog.Float8:
		t = catalog.Float8
		canonical, ok = floatText(text)
	case catalog.Text, catalog.Enum:
		t, canonical, ok = catalog.Text, text, true
	case catalog.Char:
		canonical, ok = strings.TrimRight(text, " "), true
	case catalog.Bool:
		canonical, ok = boolText(text)
	case catalog.Date, catalog.Timestamp, catalog.Timestamptz:
		canonical, t, ok = timeText(text, t)
	case catalog.UUID:
		canonical, ok = uuidText(text)
	case intervalType:
		canonical, ok = intervalText(text)
	default:
		return constant{}, b.unsupported(at, "a constant of this type", "")
	}
	if !ok {
		return constant{}, b.mismatch(at, fault.Quote(text)+" is not a value of type "+string(wanted), exampleOf(wanted))
	}
	return constant{t: t, text: canonical}, nil
}

// exampleOf says how values of a type are written.
func exampleOf(t catalog.Type) string {
	switch t {
	case catalog.Date:
		return "write a date as '2024-02-29'"
	case catalog.Timestamp:
		return "write a time as '2024-02-29 23:59:00'"
	case catalog.Timestamptz:
		return "write a time as '2024-02-29 23:59:00+00'; without an offset it is UTC"
	case intervalType:
		return "write an interval as '1 day' or '2 hours 30 minutes'"
	default:
		return ""
	}
}

// parseNumber reads a decimal number of PostgreSQL's syntax, exactly.
func parseNumber(text string) (*big.Rat, bool) {
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

// decimalText writes a decimal fraction exactly, without an exponent.
func decimalText(v *big.Rat) string {
	if v.IsInt() {
		return v.Num().String()
	}
	digits, exact := v.FloatPrec()
	if !exact {
		digits = maxExponent // never for numbers read by parseNumber: their denominators divide a power of ten
	}
	return v.FloatString(digits)
}

func fitsInt(v *big.Int, bits int) bool {
	return v.BitLen() < bits || (v.Sign() < 0 && v.BitLen() == bits && v.TrailingZeroBits() == uint(bits-1))
}

// integerText reads a whole number, as the integer type that holds it or numeric.
func integerText(text string) (canonical string, t catalog.Type, ok bool) {
	v, ok := parseNumber(text)
	if !ok || !v.IsInt() || strings.ContainsAny(text, ".eE") {
		return "", catalog.Int8, false
	}
	c := numberConstant(v, false)
	return c.text, c.t, true
}

// floatText rounds a number to float8 as PostgreSQL does, and refuses what overflows or underflows.
func floatText(text string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "nan":
		return "NaN", true
	case "infinity", "inf", "+infinity", "+inf":
		return "Infinity", true
	case "-infinity", "-inf":
		return "-Infinity", true
	}
	v, ok := parseNumber(text)
	if !ok {
		return "", false
	}
	if !isOf(v, catalog.Float8) {
		return "", false
	}
	f, _ := v.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64), true
}

// isOf reports whether PostgreSQL takes a number for a value of type t: a whole one within an integer's range, for a float none that
// overflows or vanishes.
func isOf(v *big.Rat, t catalog.Type) bool {
	switch t {
	case catalog.Float4:
		f, _ := v.Float32()
		return !math.IsInf(float64(f), 0) && (f == 0) == (v.Sign() == 0)
	case catalog.Float8:
		f, _ := v.Float64()
		return !math.IsInf(f, 0) && (f == 0) == (v.Sign() == 0)
	default:
		return exactly(v).fits(t) && (v.IsInt() || !t.IsInteger())
	}
}

func boolText(text string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "t", "true", "y", "yes", "on", "1":
		return "true", true
	case "f", "false", "n", "no", "off", "0":
		return "false", true
	default:
		return "", false
	}
}

// timeText reads an ISO 8601 date or time. A date stays a date beside times, as in PostgreSQL; a time without an offset is
// UTC where the type has a time zone, and offsets are dropped where it has none.
func timeText(text string, t catalog.Type) (string, catalog.Type, bool) {
	text = strings.TrimSpace(text)
	formats := []struct {
		layout string
		zoned  bool
	}{
		{"2006-01-02", false}, {"2006-01-02 15:04", false}, {"2006-01-02 15:04:05", false}, {"2006-01-02T15:04:05", false},
		{"2006-01-02 15:04:05Z07", true}, {"2006-01-02 15:04:05Z07:00", true}, {"2006-01-02T15:04:05Z07:00", true},
	}
	for _, f := range formats {
		v, err := time.Parse(f.layout, text)
		if err != nil || v.Year() < 1 {
			continue
		}
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

func uuidText(text string) (string, bool) {
	plain := strings.ReplaceAll(strings.ToLower(strings.Trim(strings.TrimSpace(text), "{}")), "-", "")
	if raw, err := hex.DecodeString(plain); err != nil || len(raw) != 16 {
		return "", false
	}
	return plain[:8] + "-" + plain[8:12] + "-" + plain[12:16] + "-" + plain[16:20] + "-" + plain[20:], true
}
