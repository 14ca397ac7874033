package value

import (
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// The functions and operators that are taken, by name and types of arguments. Functions and overloads that are in no table are refused: no
// rule gets arguments that its entry does not name.

// Called derives a call of a function.
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

// Operated derives the value of an operator.
func (d *Terms) Operated(op string, l, r *Value) *Value {
	v := operators[op].value(d, op, l, r)
	if v == nil {
		refuse("operator %s on these types", op)
	}
	return v
}

// functions are all but aggregates and windows.
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

	"int8xor":               taking("WW", (*Terms).scattered).priced(lengths(plain, 0)),
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
	"split_part":   taking("tQK", (*Terms).splitPart).sized(ofFirst(1)).priced(findsAll),
	"replace":      taking("tQQ", (*Terms).replace).sized(replacedBytes).priced(findsAll),

	"regexp_replace": taking("tQQ tQQQ", (*Terms).regexReplace).sized(rewrittenBytes).priced(rewrites),
	"concat":         taking("*", (*Terms).concat).sized(ofAll),

	"age":           taking("ss zz", (*Terms).age).priced(lengths(500, 0)),
	"date_bin":      taking("iss izz", (*Terms).dateBin).priced(lengths(500, 0)),
	"date_trunc":    taking("QT", (*Terms).dateTrunc).priced(lengths(500, 0)),
	"extract":       taking("Qd QT Qi", (*Terms).extract).priced(lengths(500, 0)),
	"date_part":     taking("Qd QT Qi", (*Terms).extract).priced(lengths(500, 0)),
	"to_char":       taking("TQ", (*Terms).toChar).priced(formats),
	"timezone":      taking("Qs Qz", (*Terms).inZone).priced(lengths(2000, 0)),
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
