package value

import (
	"slices"
	"strconv"
	"strings"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Terms has the values of one proof, by their terms.
type Terms struct {
	Steps *steps.Count
	Zones []string // whose files are read before the statement runs
	args  []any
	read  []bool // which of them the text names
	as    []Kind // the types with which it names those that change
	all   []Term // by id: how a value is made; equal ids are equal values in every row
	ids   map[string]int
	known map[int]*Value
	same  map[int]bool // whether equal values are identical
	last  int          // number that was given
}

// NewTerms begins the terms of a statement with these arguments.
func NewTerms(args []any, count *steps.Count) *Terms {
	return &Terms{Steps: count, args: args, read: make([]bool, len(args)), as: make([]Kind, len(args)), ids: make(map[string]int, 128),
		known: make(map[int]*Value, 128), same: make(map[int]bool)}
}

// Unread reports whether there is an argument that the text does not name.
func (d *Terms) Unread() bool { return slices.Contains(d.read, false) }

// Term gives the term of an id.
func (d *Terms) Term(id int) Term { return d.all[id] }

// Know remembers a value that an expression has.
func (d *Terms) Know(v *Value) { d.known[v.ID] = v }

// Value gives the value of an id; nil: no expression had it.
func (d *Terms) Value(id int) *Value { return d.known[id] }

// Identical reports whether equal values of an id are identical.
func (d *Terms) Identical(id int) bool { return d.same[id] }

// Elements counts the elements of an argument that is an array.
func (d *Terms) Elements(id int) (size int, known bool) {
	at, err := strconv.Atoi(d.all[id].Op[1:])
	if err != nil || d.all[id].Op[0] != '[' {
		return 0, false
	}
	list, _ := d.args[at-1].([]string)
	return len(list), true
}

// Term describes how a value is made from others.
type Term struct {
	Op   string
	Args []int
}

// Intern gives equal terms one id.
func (d *Terms) Intern(op string, args ...int) int {
	var room [64]byte // most keys are short, and known
	key := append(room[:0], op...)
	for _, a := range args {
		key = strconv.AppendInt(append(key, 0), int64(a), 36)
	}
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	d.all = append(d.all, Term{op, args})
	d.ids[string(key)] = len(d.all) - 1
	return len(d.all) - 1
}

// Fresh gives an id that no other value has.
func (d *Terms) Fresh(args ...int) int { return d.Intern("#"+strconv.Itoa(len(d.all)), args...) }

// Number gives a number that nothing else has.
func (d *Terms) Number() int { d.last++; return d.last }

// Note remembers whether equal values are identical wherever a value is read.
func (d *Terms) Note(v *Value) {
	same, known := d.same[v.ID]
	d.same[v.ID] = v.Same && (same || !known)
}

// shortForm names the term of a numeric that is NULL where it is long.
const shortForm = "short"

// Behind gives the value that a form equals wherever the form is not NULL: character as text, numerics without zeros at their end, floats
// plus 0, texts of a limited length.
func (d *Terms) Behind(id int) (of int, ok bool) {
	t := d.Term(id)
	k := NoKind
	if len(t.Args) > 0 && d.known[t.Args[0]] != nil {
		k = d.known[t.Args[0]].Kind
	}
	switch {
	case t.Op == "trim_scale", t.Op == shortForm, t.Op == "text" && k == Char,
		t.Op == "+" && k.IsFloat() && d.Term(t.Args[1]).Op == "="+KindName(k)+":0":
		return t.Args[0], true
	case t.Op == "case" && len(t.Args) == 2:
		result := d.Term(t.Args[1])
		isResult := func(id int) bool { return id == t.Args[1] || result.Op == "text" && id == result.Args[0] }
		if c := d.Term(t.Args[0]); c.Op == "<=" && d.Term(c.Args[0]).Op == "octet_length" && isResult(d.Term(c.Args[0]).Args[0]) {
			return t.Args[1], true
		}
	}
	return 0, false
}

// Shorter gives n of the condition octet_length(x) <= n; -1 for others.
func (d *Terms) Shorter(condition, x int) int64 {
	t := d.Term(condition)
	if t.Op != "<=" || d.Term(t.Args[0]).Op != "octet_length" || d.Term(t.Args[0]).Args[0] != x {
		return -1
	}
	if n := d.known[t.Args[1]].Number(); n != nil && n.IsInt() && n.Num().IsInt64() {
		return n.Num().Int64()
	}
	return -1
}

// refuse ends a derivation.
func refuse(format string, args ...any) { tree.Refuse(format, args...) }

// Make gives a value known by its kind alone.
func (d *Terms) Make(k Kind, id int) *Value {
	v := &Value{ID: id, Kind: k, Bounds: Bounds{Digits: -1, Scale: -1, Grain: -1, Chars: -1, Same: AlwaysSame(k)}}
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

// Apply derives a function that is NULL exactly where one of its arguments is.
func (d *Terms) Apply(k Kind, op string, args ...*Value) *Value {
	return d.Made(k, op, true, args...)
}

// ordered are the operators and functions whose result depends on the collation.
var ordered = map[string]bool{"<": true, ">": true, "<=": true, ">=": true, "greatest": true, "least": true,
	"upper": true, "lower": true, "initcap": true, "~": true, "!~": true, "~*": true, "!~*": true, "~~": true, "!~~": true,
	"~~*": true, "!~~*": true, "regexp_replace": true}

// Made derives a function of some arguments; strict: NULL exactly where one of them is.
func (d *Terms) Made(k Kind, op string, strict bool, args ...*Value) *Value {
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

// Always makes a value never NULL.
func (d *Terms) Always(k Kind, op string, args ...*Value) *Value {
	v := d.Apply(k, op, args...)
	v.Nulls = nil
	return v
}

// Bounded gives a value the bounds of another, which it equals wherever it is not NULL.
func (d *Terms) Bounded(v, of *Value) {
	v.Ident, v.Bounds = of.Ident, of.Bounds
}

// never makes a value always NULL.
func (v *Value) never() *Value {
	v.Within, v.Digits, v.Scale, v.Grain = ranges.Point(ranges.Zero), 0, 0, 0
	return v
}

// MayBeNull marks what could be NULL although its arguments are not.
func (v *Value) MayBeNull() *Value { v.Nulls = []int{v.ID}; return v }
