package value

import (
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// kind is PostgreSQL's type of a value, as far as rules tell types apart.
type kind uint8

const (
	NoKind kind = iota
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

// value is what is known of an expression, in every row of the relation that it belongs to.
type Value struct {
	ID   int // equal ids: the same value in every row
	Kind kind

	Constant bool   // one value for the whole statement; text is how it was written
	Null     bool   // the constant is NULL
	text     string // of a constant; "" and opaque where only the type is known
	Opaque   bool
	asked    bool // of a constant of which only the type is known: whoever asks chose it, or what it is computed of
	size     int  // of a constant array: how many elements

	bounds
	Collation string   // a text's, where COLLATE gives one
	untyped   bool     // a text written without a type: beside character it is character
	Octets    int64    // of a text in a copy: no value is longer; 0: not known
	Numeral   bool     // of a unit, in a copy: nothing but how many there are may be asked of it (Lemma 14)
	Vague     bool     // equal values are not identical, and which of them it is depends on the order in which rows were read
	Nulls     []int    // sorted: the value is NULL exactly where one of these is
	Anchors   []Anchor // whose the row is
	Strict    bool     // of an anchor: NULL only where nobody owns the row
	Ident     string   // the kind of the units of which it tells one (D1); functions of such a value tell one too

	Sum     *Tally     // inside a group: a sum over its rows
	Summed  *Tally     // outside: that it was one
	Split   *Share     // its absolute value is within a share of a partition of rows
	above   *Share     // what is positive of it is
	Whole   bool       // in a grouping: a function of the group
	Outer   bool       // reads a row of an outer query
	Running *WindowSum // what a window adds up, for histograms
	Place   *Place     // a number among the rows of a partition
	Factors *[2]Factor // it is their product, or NULL
	Cut     *Cutting   // it is the CASE of Lemma 2
}

// bounds are what is known of what a value can be, unless it is NULL.
type bounds struct {
	Within  ranges.Span    // numbers; days and microseconds since 1970 of dates and times
	parts   [3]ranges.Span // of intervals: months, days, microseconds
	Digits  int            // numeric: no value has more digits after the point; -1: unknown
	Scale   int            // numeric: all values are written with as many digits after the point; bpchar: all are padded to one length; -1: unknown
	Grain   int            // floats: values are multiples of 2^-grain, or 0; -1: unknown
	Chars   int            // texts: no value has more characters; -1: unknown
	Bytes   int64          // texts: no value has more bytes; 0: unknown
	longest places         // numeric: the digits of the longest value; zero: not known
	wide    bool           // numeric: NaN, 0, or of a size from 10^-300 to 10^300
	Nonzero bool           // no value is 0
	Same    bool           // equal values are identical, bit by bit
	Checked bool           // a column that a pinned check holds to its range
}

// anchor says that the value decides whose the row is: equal values under one name are rows of one unit.
type Anchor struct {
	Name string // "unit" and the kind, or a unique column of an owned table
	Root bool   // and the unit decides the value
	Of   *Unit
}

// unit is one owner of the rows of a relation; joins make several one.
type Unit struct{ Into *Unit }

func (u *Unit) Find() *Unit {
	for u.Into != nil {
		u = u.Into
	}
	return u
}

// make is a value of a kind of which nothing else is known.
func (d *Terms) Make(k kind, id int) *Value {
	v := &Value{ID: id, Kind: k, bounds: bounds{Digits: -1, Scale: -1, Grain: -1, Chars: -1, Same: AlwaysSame(k)}}
	switch k {
	case Int2:
		v.Within = ranges.Int2
	case Int4:
		v.Within = ranges.Int4
	case Int8:
		v.Within = ranges.Int8
	default: // no range by the type
	}
	if k.IsInteger() {
		v.Digits = 0
	}
	return v
}

// apply is the value of a function that is NULL exactly where one of its arguments is.
func (d *Terms) Apply(k kind, op string, args ...*Value) *Value {
	return d.Made(k, op, true, args...)
}

// ordered are the operators and functions whose result is another under another collation.
var ordered = map[string]bool{"<": true, ">": true, "<=": true, ">=": true, "greatest": true, "least": true,
	"upper": true, "lower": true, "initcap": true, "~": true, "!~": true, "~*": true, "!~*": true, "~~": true, "!~~": true,
	"~~*": true, "!~~*": true}

// made is the value of a function of some arguments; strict: NULL exactly where one of them is.
func (d *Terms) Made(k kind, op string, strict bool, args ...*Value) *Value {
	var list [8]int
	ids := list[:0]
	constant, asked, whole, outer, ident, collation := true, false, true, false, "", ""
	for _, a := range args {
		if a.Ident != "" {
			ident = op + "(" + a.Ident + ")"
		}
		if a.Vague {
			refuse("%s of a value that stands for several that are equal but not identical", op)
		}
		if a.Collation != "" {
			if collation != "" && collation != a.Collation {
				refuse("%s of texts under two collations", op)
			}
			collation = a.Collation
		}
		ids = append(ids, a.ID)
		constant, asked, whole, outer = constant && a.Constant, asked || a.asked, whole && (a.Whole || a.Constant), outer || a.Outer
	}
	if ordered[op] && collation != "" {
		op += " under " + collation
	}
	v := d.Make(k, d.Intern(op, append([]int(nil), ids...)...))
	if k.IsText() {
		v.Collation = collation
	}
	v.Constant, v.Opaque, v.asked, v.Whole, v.Outer = constant, constant, constant && asked, whole, outer
	if k != Boolean && op != "octet_length" && !strings.HasPrefix(op, "hash") {
		v.Ident = ident
	}
	if strict {
		for _, a := range args {
			v.Nulls = Union(v.Nulls, a.Nulls)
		}
	} else {
		v.Nulls = []int{v.ID}
	}
	return v
}

// identities refuses to compare what tells a unit with anything but what tells one of the same kind: else one person could be picked by
// an id that somebody knows (D1). Numbers that change from one run to the next, the ends of ranges of units, are nobody's.
func Identities(l, r *Value) {
	nobodys := func(v *Value) bool { return v.Constant && (v.Opaque && !v.asked || v.Null) }
	if l.Ident != r.Ident && !nobodys(l) && !nobodys(r) {
		refuse("a unit's id compared with what is no id of the same kind of units")
	}
}

// mayBeNull marks what could be NULL although its arguments are not.
func (v *Value) MayBeNull() *Value { v.Nulls = []int{v.ID}; return v }

func KindName(k kind) string { return strconv.Itoa(int(k)) }

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

func (k kind) IsInteger() bool { return k == Int2 || k == Int4 || k == Int8 }
func (k kind) IsFloat() bool   { return k == Float4 || k == Float8 }
func (k kind) IsNumber() bool  { return k >= Int2 && k <= Float8 }
func (k kind) IsTime() bool    { return k >= Date && k <= Timestamptz }
func (k kind) IsText() bool    { return k == Text || k == Char }

// alwaysSame are the types of which equal values are identical: not floats (0 = -0), numeric (1.0 = 1.00), character (trailing blanks) nor
// intervals (30 days = 1 month). Texts are compared under deterministic collations only, which the catalog sees to.
func AlwaysSame(k kind) bool {
	return k != Numeric && !k.IsFloat() && k != Char && k != Interval && k != NoKind
}

// kindOf is the kind of a column's values; others than these have none.
func KindOf(t catalog.Type) kind { return kinds[t] }

var kinds = map[catalog.Type]kind{catalog.Int2: Int2, catalog.Int4: Int4, catalog.Int8: Int8, catalog.Numeric: Numeric,
	catalog.Float4: Float4, catalog.Float8: Float8, catalog.Text: Text, catalog.Char: Char, catalog.Bool: Boolean, catalog.Date: Date,
	catalog.Timestamp: Timestamp, catalog.Timestamptz: Timestamptz, catalog.UUID: UUID, catalog.Enum: Enum}
