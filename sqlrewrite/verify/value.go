package verify

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
	noKind kind = iota
	boolean
	int2
	int4
	int8
	numeric
	float4
	float8
	text
	bpchar
	date
	timestamp
	timestamptz
	interval
	uuid
	enum
	texts // text[]
)

// value is what is known of an expression, in every row of the relation that it belongs to.
type value struct {
	id   int // equal ids: the same value in every row
	kind kind

	constant bool   // one value for the whole statement; text is how it was written
	null     bool   // the constant is NULL
	text     string // of a constant; "" and opaque where only the type is known
	opaque   bool
	asked    bool // of a constant of which only the type is known: whoever asks chose it, or what it is computed of
	size     int  // of a constant array: how many elements

	bounds
	collation string   // a text's, where COLLATE gives one
	untyped   bool     // a text written without a type: beside character it is character
	octets    int64    // of a text in a copy: no value is longer; 0: not known
	numeral   bool     // of a unit, in a copy: nothing but how many there are may be asked of it (Lemma 14)
	vague     bool     // equal values are not identical, and which of them it is depends on the order in which rows were read
	nulls     []int    // sorted: the value is NULL exactly where one of these is
	anchors   []anchor // whose the row is
	strict    bool     // of an anchor: NULL only where nobody owns the row
	ident     string   // the kind of the units of which it tells one (D1); functions of such a value tell one too

	terms   *tally     // inside a group: a sum over its rows
	tallied *tally     // outside: that it was one
	split   *share     // its absolute value is within a share of a partition of rows
	above   *share     // what is positive of it is
	whole   bool       // in a grouping: a function of the group
	outer   bool       // reads a row of an outer query
	partial *windowRun // what a window adds up, for histograms
	place   *placing   // a number among the rows of a partition
	factors *[2]factor // it is their product, or NULL
	cut     *cutting   // it is the CASE of Lemma 2
}

// bounds are what is known of what a value can be, unless it is NULL.
type bounds struct {
	within  ranges.Span    // numbers; days and microseconds since 1970 of dates and times
	parts   [3]ranges.Span // of intervals: months, days, microseconds
	digits  int            // numeric: no value has more digits after the point; -1: unknown
	scale   int            // numeric: all values are written with as many digits after the point; bpchar: all are padded to one length; -1: unknown
	grain   int            // floats: values are multiples of 2^-grain, or 0; -1: unknown
	chars   int            // texts: no value has more characters; -1: unknown
	bytes   int64          // texts: no value has more bytes; 0: unknown
	longest places         // numeric: the digits of the longest value; zero: not known
	wide    bool           // numeric: NaN, 0, or of a size from 10^-300 to 10^300
	nonzero bool           // no value is 0
	same    bool           // equal values are identical, bit by bit
	checked bool           // a column that a pinned check holds to its range
}

// anchor says that the value decides whose the row is: equal values under one name are rows of one unit.
type anchor struct {
	name string // "unit" and the kind, or a unique column of an owned table
	root bool   // and the unit decides the value
	of   *unit
}

// unit is one owner of the rows of a relation; joins make several one.
type unit struct{ into *unit }

func (u *unit) find() *unit {
	for u.into != nil {
		u = u.into
	}
	return u
}

// make is a value of a kind of which nothing else is known.
func (d *Terms) make(k kind, id int) *value {
	v := &value{id: id, kind: k, bounds: bounds{digits: -1, scale: -1, grain: -1, chars: -1, same: alwaysSame(k)}}
	switch k {
	case int2:
		v.within = ranges.Int2
	case int4:
		v.within = ranges.Int4
	case int8:
		v.within = ranges.Int8
	default: // no range by the type
	}
	if k.isInteger() {
		v.digits = 0
	}
	return v
}

// apply is the value of a function that is NULL exactly where one of its arguments is.
func (d *Terms) apply(k kind, op string, args ...*value) *value {
	return d.made(k, op, true, args...)
}

// ordered are the operators and functions whose result is another under another collation.
var ordered = map[string]bool{"<": true, ">": true, "<=": true, ">=": true, "greatest": true, "least": true,
	"upper": true, "lower": true, "initcap": true, "~": true, "!~": true, "~*": true, "!~*": true, "~~": true, "!~~": true,
	"~~*": true, "!~~*": true}

// made is the value of a function of some arguments; strict: NULL exactly where one of them is.
func (d *Terms) made(k kind, op string, strict bool, args ...*value) *value {
	var list [8]int
	ids := list[:0]
	constant, asked, whole, outer, ident, collation := true, false, true, false, "", ""
	for _, a := range args {
		if a.ident != "" {
			ident = op + "(" + a.ident + ")"
		}
		if a.vague {
			refuse("%s of a value that stands for several that are equal but not identical", op)
		}
		if a.collation != "" {
			if collation != "" && collation != a.collation {
				refuse("%s of texts under two collations", op)
			}
			collation = a.collation
		}
		ids = append(ids, a.id)
		constant, asked, whole, outer = constant && a.constant, asked || a.asked, whole && (a.whole || a.constant), outer || a.outer
	}
	if ordered[op] && collation != "" {
		op += " under " + collation
	}
	v := d.make(k, d.intern(op, append([]int(nil), ids...)...))
	if k.isText() {
		v.collation = collation
	}
	v.constant, v.opaque, v.asked, v.whole, v.outer = constant, constant, constant && asked, whole, outer
	if k != boolean && op != "octet_length" && !strings.HasPrefix(op, "hash") {
		v.ident = ident
	}
	if strict {
		for _, a := range args {
			v.nulls = union(v.nulls, a.nulls)
		}
	} else {
		v.nulls = []int{v.id}
	}
	return v
}

// identities refuses to compare what tells a unit with anything but what tells one of the same kind: else one person could be picked by
// an id that somebody knows (D1). Numbers that change from one run to the next, the ends of ranges of units, are nobody's.
func identities(l, r *value) {
	nobodys := func(v *value) bool { return v.constant && (v.opaque && !v.asked || v.null) }
	if l.ident != r.ident && !nobodys(l) && !nobodys(r) {
		refuse("a unit's id compared with what is no id of the same kind of units")
	}
}

// mayBeNull marks what could be NULL although its arguments are not.
func (v *value) mayBeNull() *value { v.nulls = []int{v.id}; return v }

func kindName(k kind) string { return strconv.Itoa(int(k)) }

func union(a, b []int) []int {
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

func (k kind) isInteger() bool { return k == int2 || k == int4 || k == int8 }
func (k kind) isFloat() bool   { return k == float4 || k == float8 }
func (k kind) isNumber() bool  { return k >= int2 && k <= float8 }
func (k kind) isTime() bool    { return k >= date && k <= timestamptz }
func (k kind) isText() bool    { return k == text || k == bpchar }

// alwaysSame are the types of which equal values are identical: not floats (0 = -0), numeric (1.0 = 1.00), character (trailing blanks) nor
// intervals (30 days = 1 month). Texts are compared under deterministic collations only, which the catalog sees to.
func alwaysSame(k kind) bool {
	return k != numeric && !k.isFloat() && k != bpchar && k != interval && k != noKind
}

// kindOf is the kind of a column's values; others than these have none.
func kindOf(t catalog.Type) kind { return kinds[t] }

var kinds = map[catalog.Type]kind{catalog.Int2: int2, catalog.Int4: int4, catalog.Int8: int8, catalog.Numeric: numeric,
	catalog.Float4: float4, catalog.Float8: float8, catalog.Text: text, catalog.Char: bpchar, catalog.Bool: boolean, catalog.Date: date,
	catalog.Timestamp: timestamp, catalog.Timestamptz: timestamptz, catalog.UUID: uuid, catalog.Enum: enum}
