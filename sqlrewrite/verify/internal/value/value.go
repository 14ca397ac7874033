// Package value derives facts about PostgreSQL's values: their types, ranges and sizes, and those of expressions over them. It knows
// expressions, one row at a time. It does not know tables, and only passes on the owner of a row.
//
// What no rule covers is refused (tree.Refuse): a function, an overload, a range in which PostgreSQL could raise an error.
//
// # Map
//
// This file refers to no other, and each of these to those before it only:
//
//	terms.go       how values are made of others
//	constant.go    parameters, literals and columns
//	share.go       values that add up to no more than a number
//	tally.go       sums and counts, as multiples of what a row adds
//	convert.go     casts, and the types of comparisons
//	choice.go      one of several values: CASE, COALESCE, GREATEST
//	arithmetic.go  operators on numbers: when none can raise an error
//	price.go       how large operands are, and what operations take
//	rule.go        rules by the types of arguments
//	regex.go       regular expressions that compile
//	function.go    functions that cannot raise an error, by argument types and ranges
//	texts.go       LIKE, regular expressions and functions of texts
//	times.go       dates, times and intervals
//	aggregate.go   the aggregates of one unit's rows
//	table.go       all functions and operators
//	node.go        what a node of the parse tree takes, and how large its value is
package value

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Kind is PostgreSQL's type of a value, as far as rules tell types apart.
type Kind uint8

const (
	NoKind Kind = iota
	Boolean
	Int2
	Int4
	Int8
	Numeric
	Float4
	Float8
	Text
	Char
	Date
	Timestamp
	Timestamptz
	Interval
	UUID
	Enum
	Texts // text[]
)

// Value has the facts about an expression that hold in every row of its relation.
type Value struct {
	ID   int // equal ids: the same value in every row
	Kind Kind

	Constant bool   // one value for the whole statement; text is how it was written
	Null     bool   // the constant is NULL
	text     string // of a constant; "" and opaque where only the type is known
	Opaque   bool
	asked    bool // of a constant known by its type alone: the analyst chose it, or an operand of it
	size     int  // of a constant array: how many elements

	Bounds
	Collation string   // a text's, where COLLATE gives one
	untyped   bool     // a text written without a type: with character it is character
	Octets    int64    // of a text in a copy: no value is longer; 0: not known
	Numeral   bool     // of a unit, in a copy: it may only be counted (Lemma 14)
	Vague     bool     // equal values are not identical, and the order in which rows were read chooses one of them
	Nulls     []int    // sorted: the value is NULL exactly where one of these is
	Anchors   []Anchor // the row's owner
	Strict    bool     // of an anchor: NULL only where nobody owns the row
	Ident     string   // the kind of units that it identifies (D1); functions of such a value identify them too

	Sum     *Tally     // inside a group: a sum over its rows
	Summed  *Tally     // outside: the sum that it was
	Split   *Share     // its absolute value is within a share of a partition of rows
	above   *Share     // its positive part is
	Whole   bool       // in a grouping: a function of the group
	Outer   bool       // reads a row of an outer query
	Running *WindowSum // a window's sum, for histograms
	Place   *Place     // a number among the rows of a partition
	Factors *[2]Factor // it is their product, or NULL
	Cut     *Cutting   // it is the CASE of Lemma 2
}

// Bounds limit a value where it is not NULL.
type Bounds struct {
	Within  ranges.Span    // numbers; days and microseconds since 1970 of dates and times
	parts   [3]ranges.Span // of intervals: months, days, microseconds
	Digits  int            // numeric: no value has more digits after the point; -1: unknown
	Scale   int            // as many digits after the point in all values of a numeric, or one length of character; -1: unknown
	Grain   int            // floats: values are multiples of 2^-grain, or 0; -1: unknown
	Chars   int            // texts: no value has more characters; -1: unknown
	Bytes   int64          // texts: no value has more bytes; 0: unknown
	longest places         // numeric: the digits of the longest value; zero: not known
	wide    bool           // numeric: NaN, 0, or of a size from 10^-300 to 10^300
	Nonzero bool           // no value is 0
	Same    bool           // equal values are identical, bit by bit
	Checked bool           // a column that a pinned check holds to its range
}

// Anchor means that the value decides the row's owner: equal values under one name are rows of one unit.
type Anchor struct {
	Name string // "unit" and the kind, or a unique column of an owned table
	Root bool   // and the unit decides the value
	Of   *Unit
}

// Unit is one owner of the rows of a relation; joins make several one.
type Unit struct{ Into *Unit }

// Find gives the unit that this one became a part of.
func (u *Unit) Find() *Unit {
	for u.Into != nil {
		u = u.Into
	}
	return u
}

// KindName gives a kind as terms are named by it.
func KindName(k Kind) string { return strconv.Itoa(int(k)) }

// Union gives the elements of two sorted lists, sorted.
func Union(a, b []int) []int {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// IsInteger, IsFloat, IsNumber, IsTime and IsText report whether a kind is in a family.
func (k Kind) IsInteger() bool { return k == Int2 || k == Int4 || k == Int8 }
func (k Kind) IsFloat() bool   { return k == Float4 || k == Float8 }
func (k Kind) IsNumber() bool  { return k >= Int2 && k <= Float8 }
func (k Kind) IsTime() bool    { return k >= Date && k <= Timestamptz }
func (k Kind) IsText() bool    { return k == Text || k == Char }

// AlwaysSame reports whether equal values of a type are identical: not for floats (0 = -0), numeric (1.0 = 1.00), character (trailing
// blanks) and intervals (30 days = 1 month). The catalog lets texts be compared under deterministic collations only.
func AlwaysSame(k Kind) bool {
	return k != Numeric && !k.IsFloat() && k != Char && k != Interval && k != NoKind
}

// KindOf gives the kind of a column's values; NoKind for types that have none.
func KindOf(t catalog.Type) Kind { return kinds[t] }

var kinds = map[catalog.Type]Kind{catalog.Int2: Int2, catalog.Int4: Int4, catalog.Int8: Int8, catalog.Numeric: Numeric,
	catalog.Float4: Float4, catalog.Float8: Float8, catalog.Text: Text, catalog.Char: Char, catalog.Bool: Boolean, catalog.Date: Date,
	catalog.Timestamp: Timestamp, catalog.Timestamptz: Timestamptz, catalog.UUID: UUID, catalog.Enum: Enum}

// Tally lies in Each times the number of the group's rows that meet Where.
type Tally struct {
	Of     Group
	Where  []int        // sorted: conditions that every row which adds meets
	Each   ranges.Span  // what one row adds
	Digits int          // after the point; -1: unknown
	Count  bool         // each row adds 1
	Once   bool         // rows of one unit in one group add what one of them does
	Moves  *ranges.Span // of aggregates over pieces: what one unit adds to a group in all
	Share  *Share
	Row    *Value // what each row adds; nil: not known
}

// MostRows exceeds the number of rows of any group.
const MostRows = 1 << 40

// Group names the groups of one query.
type Group struct {
	Number  int
	Release bool // of rows of many units
}

// rows bounds the rows of a group: those of one unit, or all.
func (g Group) rows() int64 {
	if g.Release {
		return MostRows
	}
	return 1 << 31
}

// Share bounds the sum of values over a partition of rows.
type Share struct {
	Most      *big.Rat // of all of a partition together, in absolute value
	Partition []int
	Over      int   // only over rows where this is not NULL; -1: over all
	Of        []int // the parts of the rows
	Base      int   // the value whose multiples it bounds
}

// WindowSum is a window's sum.
type WindowSum struct {
	Upto      bool
	Added     int   // the value that it adds up
	Partition []int // of rows
	Over      int   // of Lemma 5; -1: of Lemma 2b
	Of        int   // the query
	Parts     []int // of its rows
}

// Place is row_number or dense_rank.
type Place struct {
	Dense     bool
	Partition []int
	Order     []int
	Of        []int // the parts of the rows that are numbered
	Rows      []int // the columns of these, of one part
}

// Factor is an operand of a product, with the range that it has there.
type Factor struct {
	ID     int
	Within ranges.Span
}

// Cutting describes a value that is the CASE of Lemma 2.
type Cutting struct {
	Of      *Tally // the sum that is cut
	Counter int
	Limit   *big.Rat
}

// unknownDigits stands for the digits of a numeric that nothing bounds.
const unknownDigits = 60

// places counts decimal digits before the point and after it.
type places [2]int64

// longer gives the larger count on each side of the point.
func (p places) longer(q places) places {
	for i := range p {
		p[i] = max(cmp.Or(p[i], unknownDigits), cmp.Or(q[i], unknownDigits))
	}
	return p
}

// read reports whether the text of a constant is known: values computed from constants are constants too, known by their types alone.
func (v *Value) read() bool { return v.Constant && !v.Opaque }

// Number gives a constant's number; nil for other values.
func (v *Value) Number() *big.Rat {
	if v.Constant && !v.Null && !v.Opaque && v.Within.Lo != nil && v.Within.Lo == v.Within.Hi {
		return v.Within.Lo
	}
	return nil
}

// Moved reports whether a value is an aggregate over many units already.
func (v *Value) Moved() bool { return v.Sum != nil && v.Sum.Moves != nil }

// places gives the digits after the point with which all values of a number are written; -1: not known.
func (v *Value) places() int {
	if v.Kind.IsInteger() {
		return 0
	}
	return v.Scale
}

// Counts reports whether a value is a whole number that is never negative nor NULL, within a share.
func (v *Value) Counts() bool {
	return v.Split != nil && v.Kind.IsInteger() && v.Within.Finite() && v.Within.Lo.Sign() >= 0 && len(v.Nulls) == 0
}

// unknownOr gives the larger of two bounds; -1 means unbounded.
func unknownOr(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// fits gives the range of an integer type.
func fits(k Kind) ranges.Span {
	switch k {
	case Int2:
		return ranges.Int2
	case Int4:
		return ranges.Int4
	default:
		return ranges.Int8
	}
}

// huge bounds numerics, and floats before they overflow.
var (
	huge  = ranges.Between(new(big.Rat).Neg(ranges.Ten(1000)), ranges.Ten(1000))
	large = ranges.Between(new(big.Rat).Neg(ranges.Two(1023)), ranges.Two(1023))
)

const (
	maxGrain  = 1000
	maxDigits = 900
)

// ClearTally makes a tally of an inner query an ordinary number.
func ClearTally(v *Value) *Value {
	c := *v
	c.Summed = nil
	return &c
}

// Typed gives a text without a type the type text.
func Typed(v *Value) *Value {
	c := *v
	c.untyped = false
	return &c
}

// Clear makes a value not vague, where only equality and order matter.
func Clear(v *Value) *Value {
	if v.Vague {
		c := *v
		c.Vague = false
		return &c
	}
	return v
}

// Subset reports whether all of one list is in another.
func Subset(a, b []int) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
