package value

import (
	"math"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Prices: an operation takes as long as its operands' sizes (sizes.go) say, by the formulas of docs/sql/work.md, "Prices".

// What operations take, in ns.
const (
	plain     = 40 // on numbers that fit into a register, a test, a choice
	windowRow = 1500
	numberRow = 2500

	textCompared = 20 // a text with an element of an array

	readDigits = 2 * tree.ShortDigits // of a numeric, that take no time to be read
	shortTakes = 500                  // to tell a short numeric, and to write it in one form
)

// Capped is a + b of numbers that are not negative, or the largest number.
func Capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Product is a * b (see [Capped]).
func Product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func thousandths(n int64) int64 { return Capped(n, 999) / 1000 }

func castTakes(a Measure, to Kind) int64 {
	switch {
	case a.Kind == to:
		return 0
	case to.IsText() && a.Kind.IsText():
		return 200 + 6*a.bytes
	case to.IsText():
		return 500 + 4*a.length()
	case a.Kind == Numeric && to.IsFloat():
		return 200 + 10*a.length()
	case to.IsNumber() && to != Numeric && a.Kind != Numeric:
		return plain
	default:
		return 500
	}
}

// perComparison is what it takes LIKE to compare a byte.
const perComparison = 7

func likeTakes(a, b Measure, folded bool) int64 {
	times := b.bytes // of a pattern that is not known
	if b.read {
		times = depthOf(b.text, folded)
	}
	if folded {
		return 1000 + 20*(a.bytes+b.bytes) + Product(a.bytes*3/2*perComparison, 1+times)
	}
	return 200 + Product(a.bytes*perComparison, 1+times)
}

func comparing(op string, a, b Measure) int64 {
	switch {
	case a.Kind.IsText() && (op == "=" || op == "<>"):
		return 200 + a.bytes + b.bytes
	case a.Kind.IsText():
		return 200 + 5*(a.bytes+b.bytes)
	case a.Kind.IsFloat() && b.Kind == Numeric || a.Kind == Numeric && b.Kind.IsFloat():
		return 400 + 10*(a.length()+b.length())
	case a.Kind == Numeric || b.Kind == Numeric:
		return 200 + (a.length()+b.length())/2
	case a.Kind == Interval:
		return 500
	default:
		return plain
	}
}

// lengths is a price of so many ns, and some for each byte or digit of all operands.
func lengths(ns, each int64) func([]Measure) int64 {
	return func(operands []Measure) int64 { return ns + each*lengthOf(operands) }
}

func lengthOf(operands []Measure) (length int64) {
	for _, o := range operands {
		length += o.length()
	}
	return length
}

// ordinary is the price of a function without one of its own.
func ordinary(operands []Measure) int64 {
	if operands[0].Kind.IsText() {
		return 200 + 5*lengthOf(operands)
	}
	return 200 + 2*lengthOf(operands)
}

func hashes(operands []Measure) int64 { return 100 + lengthOf(operands)/2 }

func looksUp(o []Measure) int64 { return 300 + Product(textCompared, o[0].items) }

func formats(o []Measure) int64 { return 1000 + 100*o[1].bytes }

func joins(o []Measure) int64 { return 200 + thousandths(200*(o[0].bytes+o[1].bytes)) }

func matches(o []Measure) int64 {
	states := int64(unknownBytes)
	if o[1].read {
		states = statesOf(o[1].text)
	}
	return 2000 + 2*o[0].bytes + Product(o[0].bytes/4*5+5, states)
}

// calculates is the price of an operator on numerics, and on what is none.
func calculates(numerics func(a, b Measure) int64) func([]Measure) int64 {
	return func(o []Measure) int64 {
		a, b := o[0], o[1]
		switch {
		case a.Kind == Interval, b.Kind == Interval, a.Kind.IsTime(), b.Kind.IsTime():
			return 500
		case a.Kind != Numeric && b.Kind != Numeric:
			return plain
		default:
			return numerics(a, b)
		}
	}
}

func adds(a, b Measure) int64 { return 200 + 2*(a.length()+b.length()) }

func multiplies(a, b Measure) int64 {
	return 500 + thousandths(500*Product(a.fours(), b.fours())) + a.length() + b.length()
}

func divides(whole bool) func(a, b Measure) int64 {
	return func(a, b Measure) int64 {
		return 500 + Product(4*quotientFours(a, b, whole), b.fours()) + a.length() + b.length()
	}
}

func divTakes(o []Measure) int64 {
	if o[0].Kind != Numeric && o[1].Kind != Numeric {
		return 100
	}
	return divides(true)(o[0], o[1])
}

func bucketsTake(operands []Measure) int64 {
	wide, numerics := Measure{whole: 11}, false
	for _, o := range operands {
		wide.whole, wide.scale, numerics = max(wide.whole, o.whole+11), max(wide.scale, o.scale), numerics || o.Kind == Numeric
	}
	if !numerics {
		return 100
	}
	return 1000 + Product(4*quotientFours(wide, wide, false), wide.fours()) + lengthOf(operands)
}

func trims(operands []Measure) int64 {
	cut := int64(1)
	if len(operands) > 1 {
		cut = max(1, operands[1].bytes)
	}
	return 500 + 2*lengthOf(operands) + Product(5*operands[0].bytes, cut)
}

func finds(o []Measure) int64 {
	depth := max(1, o[1].bytes)
	if o[1].read {
		depth = 1 + needleOf(o[1].text)
	}
	return 500 + 2*lengthOf(o) + Product(o[0].bytes, depth)
}
