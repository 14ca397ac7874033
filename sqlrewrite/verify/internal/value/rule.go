package value

import (
	"math/big"
	"strings"
)

// function has the rules of a function, or of an operator.
type function struct {
	overloads []overload
	bytes     func(operands []Measure) int64 // of a text that it gives, at most; nil: its rule bounds the characters
	ns        func(operands []Measure) int64 // the time of a call (price.go); nil: the ordinary price
}

// overload has the types of arguments, one letter for each, and the rule of such a call.
type overload struct {
	takes string // separated by blanks, where one rule serves several
	rule  rule
}

// rule derives the value of a call; nil: it is refused for its arguments, by a text that names only the function.
type rule func(d *Terms, name string, args ...*Value) *Value

// letters are the types of arguments: kinds, and
//
//	W  whole numbers            E  W or numeric                 N  any number
//	F  numeric or float8        T  timestamp, with zone or not  .  any type
//	K  a whole number of at most 2^30 that the statement has as a constant
//	Q  a text, and A an array of texts, that it has as a constant
var letters = map[byte][]Kind{
	'b': {Boolean}, '2': {Int2}, '4': {Int4}, 'n': {Numeric}, 'f': {Float8}, 't': {Text}, 'c': {Char}, 'd': {Date}, 's': {Timestamp},
	'z': {Timestamptz}, 'i': {Interval}, 'Q': {Text}, 'A': {Texts}, 'W': {Int2, Int4, Int8}, 'K': {Int2, Int4, Int8},
	'E': {Int2, Int4, Int8, Numeric}, 'N': {Int2, Int4, Int8, Numeric, Float4, Float8}, 'F': {Numeric, Float8}, 'T': {Timestamp, Timestamptz}}

// is reports whether a value has the type of a letter.
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

// value derives a call of a function or an operator; nil: no overload takes the arguments.
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

func suit(takes string, args []*Value) bool {
	if takes == "*" { // any number of arguments
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

// taking makes a function of one overload; or adds an overload.
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
