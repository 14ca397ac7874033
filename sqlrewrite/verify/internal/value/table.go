package value

import (
	"math/big"
	"strings"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// The functions and operators that are taken, by name and types of arguments. What is not in a table is refused, and so is an overload
// that is not: a rule is never asked for arguments that its entry does not name.

// function is what is known of a function, or of an operator.
type function struct {
	overloads []overload
	bytes     func(operands []Measure) int64 // of a text that it gives, at most; nil: only what its rule says of characters
	ns        func(operands []Measure) int64 // what a call takes (cost.go); nil: what is ordinary
}

// overload are the types that arguments have, one letter for each, and the value of such a call.
type overload struct {
	takes string // separated by blanks, where one rule is for several
	rule  rule
}

// rule is the value of a call; nil where it is refused for its arguments, by a text that names no more than the function.
type rule func(d *Terms, name string, args ...*Value) *Value

// letters are the types of arguments: kinds, and
//
//	W  whole numbers            E  W or numeric                 N  any number
//	F  numeric or float8        T  timestamp, with zone or not  .  any type
//	K  a whole number of at most 2^30 that the statement has as a constant
//	Q  a text, and A an array of texts, that it has as a constant
var letters = map[byte][]kind{
	'b': {Boolean}, '2': {Int2}, '4': {Int4}, 'n': {Numeric}, 'f': {Float8}, 't': {Text}, 'c': {Char}, 'd': {Date}, 's': {Timestamp},
	'z': {Timestamptz}, 'i': {Interval}, 'Q': {Text}, 'A': {Texts}, 'W': {Int2, Int4, Int8}, 'K': {Int2, Int4, Int8},
	'E': {Int2, Int4, Int8, Numeric}, 'N': {Int2, Int4, Int8, Numeric, Float4, Float8}, 'F': {Numeric, Float8}, 'T': {Timestamp, Timestamptz}}

// is reports whether a value is of a letter.
func (v *Value) is(letter byte) bool {
	if letter == '.' {
		return true
	}
	for _, k := range letters[letter] {
		if v.Kind != k {
			continue
		}
		switch n := v.Number(); letter {
		case 'K':
			return n != nil && n.Num().CmpAbs(big.NewInt(1<<30)) <= 0
		case 'Q', 'A':
			return v.read()
		default:
			return true
		}
	}
	return false
}

// value is that of a call of a function or an operator; nil where no overload takes the arguments.
func (f function) value(d *Terms, name string, args ...*Value) *Value {
	for _, o := range f.overloads {
		for takes := range strings.FieldsSeq(o.takes) {
			if suit(takes, args) {
				return o.rule(d, name, args...)
			}
		}
	}
	return nil
}

// called is the value of a call of a function.
func (d *Terms) Called(name string, args ...*Value) *Value {
	if len(args) == 0 || len(args) > 8 {
		refuse("function %s with %d arguments", name, len(args))
	}
	if v := d.linear(name, args); v != nil {
		return v
	}
	v := functions[name].value(d, name, args...)
	if v == nil {
		refuse("function %s on these types", name)
	}
	return v
}

// operated is the value of an operator.
func (d *Terms) Operated(op string, l, r *Value) *Value {
	v := operators[op].value(d, op, l, r)
	if v == nil {
		refuse("operator %s on these types", op)
	}
	return v
}

func suit(takes string, args []*Value) bool {
	if takes == "*" { // of as many as there are
		return true
	}
	if len(takes) != len(args) {
		return false
	}
	for i, v := range args {
		if !v.is(takes[i]) {
			return false
		}
	}
	return true
}

// taking is a function of one overload, and or one of another as well.
func taking(takes string, r rule) function { return function{}.or(takes, r) }

func (f function) or(takes string, r rule) function {
	f.overloads = append(f.overloads, overload{takes, r})
	return f
}

func (f function) sized(bytes func([]Measure) int64) function {
	f.bytes = bytes
	return f
}

func (f function) priced(ns func([]Measure) int64) function {
	f.ns = ns
	return f
}

// functions are those that are no aggregates and no windows.
var functions = map[string]function{
	"int2smaller": clamping(Int2, false), "int2larger": clamping(Int2, true),
	"int4smaller": clamping(Int4, false), "int4larger": clamping(Int4, true),
	"int8smaller": clamping(Int8, false), "int8larger": clamping(Int8, true),
	"numeric_smaller": clamping(Numeric, false), "numeric_larger": clamping(Numeric, true),
	"float8smaller": clamping(Float8, false), "float8larger": clamping(Float8, true),
	"date_smaller": clamping(Date, false), "date_larger": clamping(Date, true),
	"timestamp_smaller": clamping(Timestamp, false), "timestamp_larger": clamping(Timestamp, true),
	"timestamptz_smaller": clamping(Timestamptz, false), "timestamptz_larger": clamping(Timestamptz, true),
	"interval_smaller": clamping(Interval, false), "interval_larger": clamping(Interval, true),

	"hashint8extended":      taking("WW", (*Terms).hash).priced(hashes),
	"hash_numeric_extended": taking("nW", (*Terms).hash).priced(hashes),
	"hashfloat8extended":    taking("fW", (*Terms).hash).priced(hashes),
	"hashtextextended":      taking("tW", (*Terms).hash).priced(hashes),

	"abs":        taking("N", (*Terms).abs),
	"sign":       taking("F", (*Terms).sign),
	"round":      taking("F nK", rounding(ranges.Nearest(0))),
	"trunc":      taking("F nK", rounding(ranges.Whole)),
	"floor":      taking("F", rounding(ranges.Floored)),
	"ceil":       taking("F", rounding(ranges.Ceiled)),
	"ceiling":    taking("F", rounding(ranges.Ceiled)),
	"trim_scale": taking("n", (*Terms).trimScale).priced(lengths(500, 0)),

	"div":            taking("EE", (*Terms).div).priced(divTakes),
	"sqrt":           taking("f", (*Terms).sqrt),
	"exp":            taking("f", (*Terms).exp),
	"ln":             taking("f", (*Terms).logarithm),
	"log":            taking("f", (*Terms).logarithm),
	"power":          taking("ff", (*Terms).power),
	"width_bucket":   taking("fff4 nnn4", (*Terms).buckets).priced(bucketsTake),
	"array_position": taking("At", (*Terms).position).priced(looksUp),

	"octet_length": taking("t c", (*Terms).octets).priced(lengths(plain, 0)),
	"length":       taking("t", ofText(Int4, 1, 0)),
	"strpos":       taking("tt", ofText(Int4, 1, 1)).priced(finds),
	"starts_with":  taking("tt", ofText(Boolean, 0, 0)),
	"upper":        taking("t", ofText(Text, 3, 0)).sized(ofFirst(3)).priced(lengths(500, 20)), // of at most three letters for one
	"lower":        taking("t", ofText(Text, 3, 0)).sized(ofFirst(3)).priced(lengths(500, 20)),
	"initcap":      taking("t", ofText(Text, 3, 0)).sized(ofFirst(3)).priced(lengths(20_000, 50)),
	"left":         taking("tK", (*Terms).left).sized(ofFirst(1)),
	"right":        taking("tK", ofText(Text, 1, 0)).sized(ofFirst(1)),
	"substr":       taking("tK tKK", (*Terms).substr).sized(ofFirst(1)),
	"btrim":        taking("t tt", ofText(Text, 1, 0)).sized(ofFirst(1)).priced(trims),
	"ltrim":        taking("t tt", ofText(Text, 1, 0)).sized(ofFirst(1)).priced(trims),
	"rtrim":        taking("t tt", ofText(Text, 1, 0)).sized(ofFirst(1)).priced(trims),
	"concat":       taking("*", (*Terms).concat).sized(ofAll),

	"date_trunc":    taking("QT", (*Terms).dateTrunc).priced(lengths(500, 0)),
	"extract":       taking("Qd QT Qi", (*Terms).extract).priced(lengths(500, 0)),
	"date_part":     taking("Qd QT Qi", (*Terms).extract).priced(lengths(500, 0)),
	"to_char":       taking("TQ", (*Terms).toChar).priced(formats),
	"make_interval": taking("444444f", (*Terms).makeInterval).priced(lengths(500, 0)),
}

func comparison(op string) function {
	return taking("..", (*Terms).compare).priced(func(o []Measure) int64 { return comparing(op, o[0], o[1]) })
}

var pattern = taking("..", (*Terms).match).priced(matches)

// operators are those with two operands.
var operators = map[string]function{
	"=": comparison("="), "<>": comparison("<>"), "<": comparison("<"), "<=": comparison("<="), ">": comparison(">"), ">=": comparison(">="),
	"~": pattern, "!~": pattern, "~*": pattern, "!~*": pattern,
	"||": taking("..", (*Terms).join).sized(ofAll).priced(joins),
	"+": taking("NN", (*Terms).calculation).or("d2 d4", (*Terms).daysLater).or("2d 4d", turned((*Terms).daysLater)).
		or("Ti", (*Terms).timeMoved).or("iT", turned((*Terms).timeMoved)).or("ii", (*Terms).intervals).priced(calculates(adds)),
	"-": taking("NN", (*Terms).calculation).or("d2 d4", (*Terms).daysLater).or("dd", (*Terms).daysBetween).
		or("ss zz", (*Terms).timeBetween).or("Ti", (*Terms).timeMoved).or("ii", (*Terms).intervals).priced(calculates(adds)),
	"*": taking("NN", (*Terms).calculation).priced(calculates(multiplies)),
	"/": taking("NN", (*Terms).calculation).priced(calculates(divides(false))),
	"%": taking("NN", (*Terms).calculation).priced(calculates(divides(true))),
	"&": taking("WW", (*Terms).bits).priced(calculates(adds)),
}

// computation is an operator on numbers.
type computation struct {
	within  func(a, b *Value) ranges.Span
	places  func(a, b int) int // digits after the point of an exact result; nil: it is rounded
	divides bool
}

var computations = map[string]computation{
	"+": {within: func(a, b *Value) ranges.Span { return a.Within.Plus(b.Within) }, places: func(a, b int) int { return max(a, b) }},
	"-": {within: func(a, b *Value) ranges.Span { return a.Within.Minus(b.Within) }, places: func(a, b int) int { return max(a, b) }},
	"*": {within: multiplied, places: func(a, b int) int { return a + b }},
	"/": {within: quotient, divides: true},
	"%": {within: remainder, places: func(a, b int) int { return max(a, b) }, divides: true},
}
