package value

import (
	"math"
	"strings"
	"unicode/utf8"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Sizes. Bounds on the operands of an operation, from their ranges, from conditions on octet_length, and from the operations that compute
// them:
//
//  1. A text has as many bytes as CASE WHEN octet_length(x) <= n says, four for each of its characters, or as many as the operands of the
//     function that makes it allow. Where none of these limits a stored text, it may have 2^30: no operation over it is proven to be
//     short.
//  2. A numeric has the digits of its range before the point, and after it those that are known; a quotient those of select_div_scale
//     (numeric.c). A stored one whose type fixes none may have 131,072 and 16,383, and so may what is computed of it. CASE with the
//     conditions of tree.Short leaves 100 and 100. Wherever a longer one is named it is read whole.
//
// *Example.* left(x, 200) has 800 bytes, and 300 where x has at most 300; a · b of numbers below 100 with two digits each has 4 and 4.

// Measure bounds the size of a value.
type Measure struct {
	Kind         Kind
	constant     bool
	text         string // of a constant that was read
	read         bool
	bytes        int64
	letters      int64 // of a text: its characters
	whole, scale int64 // decimal digits of a numeric
	items        int64 // of an array
}

const (
	unknownBytes = 1024
	storedBytes  = 1 << 30
	labelBytes   = 63 // of an enum: NAMEDATALEN, without the byte that ends it
	textOfOther  = 40 // bytes of a number, a time or a uuid as text
)

// fours are the digits in base 10,000.
func (m Measure) fours() int64 { return (m.whole+3)/4 + (m.scale+3)/4 }

func (m Measure) length() int64 { return m.bytes + m.whole + m.scale }

// Shortened derives a numeric that is NULL where it is long.
func (d *Terms) Shortened(x *Value) *Value {
	v := d.Made(Numeric, shortForm, false, x)
	d.Bounded(v, x)
	v.Scale, v.Same, v.Anchors = -1, true, x.Anchors
	v.longest = places{tree.ShortDigits, tree.ShortDigits}
	return v
}

// quotientFours gives the digits in base 10,000 to which a quotient is computed, with those that round it.
func quotientFours(a, b Measure, whole bool) int64 {
	if whole {
		return (a.whole+b.scale)/4 + 3
	}
	return max(24, a.whole+b.scale+max(a.scale, b.scale))/4 + 4
}

// depthOf bounds how often one byte of a text is compared with success in a search for a pattern of LIKE (docs/sql/work.md, Lemma 17): it
// counts, for each place of a piece, the starts of the piece that can end there.
func depthOf(pattern string, folded bool) int64 {
	if folded {
		if strings.ContainsFunc(pattern, func(r rune) bool {
			low := []rune(strings.ToLower(string(r)))
			return r >= utf8.RuneSelf && (len(low) != 1 || utf8.RuneLen(low[0]) != utf8.RuneLen(r) || low[0] < utf8.RuneSelf)
		}) {
			return int64(len(pattern)) * 3 / 2
		}
		pattern = strings.ToLower(pattern)
	}
	const wild = 1 << 24
	var pieces [][]rune
	escaped := false
	for _, r := range pattern {
		last := len(pieces) - 1
		switch {
		case r == '\\' && !escaped:
			escaped = true
			continue
		case r == '%' && !escaped:
			pieces = append(pieces, nil)
		case last < 0 || r == '_' && !escaped && len(pieces[last]) == 0: // stands at the start of the text, or is skipped
		case r == '_' && !escaped:
			pieces[last] = append(pieces[last], wild)
		default:
			pieces[last] = append(pieces[last], r)
		}
		escaped = false
	}
	most := int64(0)
	for _, p := range pieces {
		most = max(most, repeats(p, func(a, b rune) bool {
			return a == b || a == wild || b == wild || a >= utf8.RuneSelf && b >= utf8.RuneSelf
		}))
	}
	return most
}

// repeats bounds the starts of a piece that can end at one of its places.
func repeats(piece []rune, equal func(a, b rune) bool) (most int64) {
	for end := 1; end <= len(piece); end++ {
		found := int64(0)
		for size := 1; size <= end; size++ {
			same := true
			for i := 0; i < size && same; i++ {
				same = equal(piece[i], piece[end-size+i])
			}
			if same {
				found++
			}
		}
		most = max(most, found)
	}
	return most
}

// needleOf does the same for a constant that strpos looks for, from its end.
func needleOf(needle string) int64 {
	var backwards []rune
	for i := len(needle) - 1; i >= 0; i-- {
		backwards = append(backwards, rune(needle[i]))
	}
	return repeats(backwards, func(a, b rune) bool { return a == b })
}

// statesOf bounds the states of a regular expression's machine: its characters, each as often as the repetitions around it say.
func statesOf(pattern string) int64 {
	var open []int64 // states before each bracket that is open
	states, last := int64(0), int64(0)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '(':
			open = append(open, states)
		case ')':
			if len(open) > 0 {
				last = states - open[len(open)-1]
				open = open[:len(open)-1]
			}
		case '[':
			if end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']'); end >= 0 {
				for i += 2 + end; i+1 < len(pattern) && pattern[i+1] == ']'; i++ {
				}
			}
			states, last = states+1, 1
		case '+':
			states += last
		case '{':
			end := strings.IndexByte(pattern[i:], '}')
			if end < 0 {
				end = 0
			}
			states += last * (repetitions(pattern[i+1:i+max(end, 1)]) - 1)
			i += end
		case '*', '?', '|', '^', '$':
		case '\\':
			i++
			states, last = states+1, 1
		default:
			if c&0xC0 != 0x80 { // the first byte of a character
				states, last = states+1, 1
			}
		}
	}
	return states + 2
}

// repetitions gives n of {m,n}, and m + 1 of {m,}.
func repetitions(text string) int64 {
	least, most, span := strings.Cut(text, ",")
	number := func(s string) int64 {
		n := int64(0)
		for _, c := range s {
			n = min(n*10+int64(c-'0'), 1<<20)
		}
		return max(n, 1)
	}
	if span && most == "" {
		return number(least) + 1
	}
	if span {
		return number(most)
	}
	return number(least)
}

// ofFirst and ofAll bound the bytes of a text by those of what it is made of.
func ofFirst(times int64) func([]Measure) int64 {
	return func(operands []Measure) int64 { return times * operands[0].bytes }
}

// replacedBytes is of replace, whose second and third operands are constants.
func replacedBytes(o []Measure) int64 {
	return Product(o[0].bytes, int64(growth(len(o[1].text), len(o[2].text))))
}

// everywhere reports whether regexp_replace may replace all matches.
func everywhere(o []Measure) bool {
	return len(o) > 3 && (!o[3].read || strings.Contains(o[3].text, "g"))
}

func rewrittenBytes(o []Measure) int64 {
	matches := int64(1)
	if everywhere(o) {
		matches = Capped(o[0].bytes, 1)
	}
	return Capped(o[0].bytes, Product(matches, o[2].bytes))
}

func ofAll(operands []Measure) (sum int64) {
	for _, o := range operands {
		if o.Kind.IsText() || o.Kind == Enum {
			sum += o.bytes
		} else {
			sum += max(textOfOther, o.whole+o.scale+2) // the sign and the point
		}
	}
	return sum
}

// Prices: an operation takes as long as its operands' sizes say, by the formulas of docs/sql/work.md, "Prices".

// What operations take, in ns.
const (
	plain     = 40 // on numbers that fit into a register, a test, a choice
	windowRow = 1500
	numberRow = 2500

	textCompared = 20 // a text with an element of an array

	readDigits = 2 * tree.ShortDigits // of a numeric, that take no time to be read
	shortTakes = 500                  // to recognise a short numeric, and to write it in one form
)

// Capped gives a + b of numbers that are not negative, or the largest number.
func Capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Product gives a * b (see [Capped]).
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

// perComparison gives the time in which LIKE compares a byte.
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

// lengths prices a call at some ns, and some more for each byte or digit of all operands.
func lengths(ns, each int64) func([]Measure) int64 {
	return func(operands []Measure) int64 { return ns + each*lengthOf(operands) }
}

func lengthOf(operands []Measure) (length int64) {
	for _, o := range operands {
		length += o.length()
	}
	return length
}

// ordinary prices a function that has no own price.
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
	return 2000 + 2*o[0].bytes + Product(o[0].letters*5+5, states)
}

// rewrites prices regexp_replace by Lemma 19 of docs/sql/work.md.
func rewrites(o []Measure) int64 {
	places := o[0].letters + 1
	states, tries, matches := int64(unknownBytes), places, int64(1)
	if everywhere(o) {
		matches = places
	}
	if o[1].read {
		states = statesOf(o[1].text)
		if tried, ok := replaceable(o[1].text); ok {
			tries = min(tries, tried)
		}
	}
	visits := Capped(Product(states, Product(places, tries+4)), Product(matches, 200+10*states))
	return Capped(2000+20*lengthOf(o), Product(5, visits))
}

// calculates prices an operator on numerics, and on other types.
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

// findsAll is of functions that look for a constant again after each place where it stands.
func findsAll(o []Measure) int64 { return Capped(finds(o), Product(20, o[0].bytes)) }
