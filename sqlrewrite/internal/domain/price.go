package domain

import (
	"math"
	"slices"
	"strings"
)

// Size bounds an operand. docs/sql/work.md has the formulas of prices over sizes.
type Size struct {
	Bytes        int64   // of a text
	Letters      int64   // of a text: its characters; 0: as many as bytes
	Whole, Scale int64   // digits of a numeric before and after its point
	Text         *string // a constant text; nil: any
}

// digits are those of a numeric in base 10,000, in which PostgreSQL holds it.
func (s Size) digits() int64 { return (s.Whole+3)/4 + (s.Scale+3)/4 }

// length is the unit of linear prices: bytes of a text, decimal digits of a numeric.
func (s Size) length() int64 { return s.Bytes + s.Whole + s.Scale }

// Growth is the formula by which a price grows with the operands' sizes.
type Growth int

const (
	// Linear is PerUnit for each byte and decimal digit of each operand.
	Linear Growth = iota
	// Matched is LIKE: n(1+D) comparisons, D the depth of the pattern (like_match.c, MatchText; see [depth]).
	Matched
	// MatchedFolded is ILIKE: as [Matched], of both operands as lower() gives them (like.c, Generic_Text_IC_like).
	MatchedFolded
	// Found is strpos: n(1+D) comparisons, D the depth of the constant needle from its end; of another needle n·m (varlena.c,
	// text_position_next_internal).
	Found
	// Trimmed is btrim, ltrim, rtrim: n·set (oracle_compat.c, dotrim).
	Trimmed
	// Multiplied is a·b digits in base 10,000 (numeric.c, mul_var).
	Multiplied
	// Divided is the quotient's digits times the divisor's (numeric.c, div_var; select_div_scale says how many there are).
	Divided
	// DividedWhole is the same of a quotient without digits after its point (numeric.c, div_var of mod_var, div_trunc).
	DividedWhole
	// Bucketed is a quotient of differences: (x - low)·buckets / (high - low) (numeric.c, compute_bucket).
	Bucketed
	// Searched is a regular expression: n·states, n in characters (rege_dfa.c, miss: each of a text can lead to a set that is new).
	Searched
	// Rewritten is regexp_replace: each place of a text may be tried (regexec.c, find; see [replacing]).
	Rewritten
)

// Price bounds the time of one evaluation: ns at any value, and thousandths of ns for each unit that its formula counts.
type Price struct {
	Ns, PerUnit int64
	Grows       Growth
	PerByte     int64 // thousandths of ns for each byte or digit of each operand, beside a formula that is not linear
}

// Of is the price in ns for operands of given sizes: those that SQL writes, in its order (of IN the value and then the list).
func (p Price) Of(operands []Size) int64 {
	ns, length := p.Ns, int64(0)
	for _, o := range operands {
		length = addCapped(length, o.length())
	}
	if p.Grows == Linear {
		return addCapped(multiplyCapped(ns, int64(max(1, len(operands)-1))), thousandth(multiplyCapped(p.PerUnit, length)))
	}
	return addCapped(ns, thousandth(addCapped(multiplyCapped(p.PerUnit, p.count(operands)), multiplyCapped(p.PerByte, length))))
}

// count returns the units of a formula that is not linear.
func (p Price) count(operands []Size) int64 {
	var a, b Size
	if len(operands) > 0 {
		a = operands[0]
	}
	if len(operands) > 1 {
		b = operands[1]
	}
	switch p.Grows {
	case Matched:
		return multiplyCapped(a.Bytes, 1+depth(b, false))
	case MatchedFolded:
		return multiplyCapped(lowered(a.Bytes), 1+depth(b, true))
	case Found:
		return multiplyCapped(a.Bytes, 1+needleDepth(b))
	case Trimmed:
		return multiplyCapped(a.Bytes, max(1, b.Bytes))
	case Multiplied:
		return multiplyCapped(a.digits(), b.digits())
	case Divided:
		return multiplyCapped(quotientDigits4(a, b), b.digits())
	case DividedWhole:
		return multiplyCapped((a.Whole+b.Scale+3)/4+2, b.digits())
	case Bucketed:
		return bucketCount(operands)
	case Searched:
		return multiplyCapped(a.letters(), regexStates(b))
	case Rewritten:
		return replacing(a.letters(), b, len(operands) > 3 && (operands[3].Text == nil || strings.Contains(*operands[3].Text, "g")))
	default:
		panic("domain: a formula without a count")
	}
}

// letters are the characters of a text at most.
func (s Size) letters() int64 {
	if s.Letters > 0 {
		return min(s.Letters, s.Bytes)
	}
	return s.Bytes
}

func thousandth(n int64) int64 { return addCapped(n, 999) / 1000 }

// bucketCount is the work of width_bucket: x and both limits are subtracted, multiplied by the number of buckets and divided.
func bucketCount(operands []Size) int64 {
	var widest Size
	for _, o := range operands[:min(3, len(operands))] {
		widest.Whole, widest.Scale = max(widest.Whole, o.Whole+1), max(widest.Scale, o.Scale)
	}
	const buckets = 10 // digits of their number
	dividend := Size{Whole: widest.Whole + buckets, Scale: widest.Scale}
	return multiplyCapped(quotientDigits4(dividend, widest)+(buckets+3)/4, widest.digits())
}

// What select_div_scale asks for: significant digits, rounded up to whole digits in base 10,000 on either side, and at most so many after
// the point.
const (
	divisionDigits = 16 + 8
	mostScale      = 1000
)

// quotientDigits4 is how many digits in base 10,000 of a quotient div_var computes, with those that it rounds by.
func quotientDigits4(a, b Size) int64 {
	return (max(divisionDigits, a.Whole+b.Scale+max(a.Scale, b.Scale))+3)/4 + 3
}

// Quotient bounds the digits of a / b.
func Quotient(a, b Size) Size {
	return Size{Whole: a.Whole + b.Scale + 1, Scale: min(mostScale, max(b.Scale, divisionDigits+b.Whole+a.Scale))}
}

// lowered bounds the bytes that lower() makes of a text: letters of two bytes have other cases of three.
func lowered(bytes int64) int64 { return multiplyCapped(bytes, 3) / 2 }

// Degree is the highest power of n by which a price grows when all operands are n times as large.
func (p Price) Degree() int {
	if p.Grows == Linear {
		return 1
	}
	return 2
}

// Remedy says how a query can make an operation cheaper whose price grows faster than its operands; empty: by no other operand.
func (p Price) Remedy() string {
	switch p.Grows {
	case Matched, MatchedFolded:
		return "write a pattern whose pieces between % do not repeat their beginning"
	case Found:
		return "look for a constant needle, one whose end is not repeated in it"
	case Trimmed:
		return "trim fewer different characters"
	case Multiplied, Divided, DividedWhole, Bucketed:
		return "compute with fewer digits: cast the operands to numeric(p, s) or to double precision"
	case Searched:
		return "write a shorter regular expression, or LIKE"
	case Rewritten:
		return "replace only at the start (^), or a part of the text: left(x, 20)"
	default:
		return ""
	}
}

// Operation is an operation that has a price.
type Operation struct {
	Name string // as the table has it: "LIKE", "lower text", "* numeric", "cast numeric text"
	Price
}

// Priced are all operations that have a price, by name.
func Priced() []Operation {
	var all []Operation
	for name, p := range operatorPrices {
		all = append(all, Operation{Name: name, Price: p})
	}
	for i := range Builtins {
		for _, kind := range priceKinds {
			if p, ok := Builtins[i].Cost.Of(kind); ok {
				all = append(all, Operation{Name: Builtins[i].printed() + " " + kind, Price: p})
			}
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Operation) bool { return a.Name == b.Name })
}

// PriceNamed is the price of an operation by the name that [Priced] gives it; ok is false where it has none.
func PriceNamed(name string) (p Price, ok bool) {
	if p, ok = operatorPrices[name]; ok {
		return p, true
	}
	at := strings.LastIndexByte(name, ' ')
	if at < 0 {
		return Price{}, false
	}
	f := BuiltinOf(name[:at])
	if f == nil {
		return Price{}, false
	}
	return f.Cost.Of(name[at+1:])
}

// multiplyCapped and addCapped are of numbers that are not negative.
func multiplyCapped(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
