package value

import (
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Terms are the values of one proof, by how they are made.
type Terms struct {
	Steps *steps.Count
	args  []any
	read  []bool // which of them the text names
	all   []Term // by id: how a value is made; equal ids are equal values in every row
	ids   map[string]int
	known map[int]*Value
	same  map[int]bool // whether equal values are identical
	last  int          // number that was given
}

// newTerms are those of a statement with some arguments.
func NewTerms(args []any, count *steps.Count) *Terms {
	return &Terms{Steps: count, args: args, read: make([]bool, len(args)), ids: make(map[string]int, 128),
		known: make(map[int]*Value, 128), same: make(map[int]bool)}
}

// unread reports whether there is an argument that the text does not name.
func (d *Terms) Unread() bool { return slices.Contains(d.read, false) }

// term is how the value of an id is made.
func (d *Terms) Term(id int) Term { return d.all[id] }

// know remembers a value that an expression has.
func (d *Terms) Know(v *Value) { d.known[v.ID] = v }

// value is that of an id; nil: no expression had it.
func (d *Terms) Value(id int) *Value { return d.known[id] }

// identical reports whether equal values of an id are identical.
func (d *Terms) Identical(id int) bool { return d.same[id] }

// elements is how many elements an array has, that is an argument.
func (d *Terms) Elements(id int) (size int, known bool) {
	at, err := strconv.Atoi(d.all[id].Op[1:])
	if err != nil || d.all[id].Op[0] != '[' {
		return 0, false
	}
	list, _ := d.args[at-1].([]string)
	return len(list), true
}

// term is how a value is made of others.
type Term struct {
	Op   string
	Args []int
}

// intern gives equal terms one id.
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

// fresh is an id that no other value has.
func (d *Terms) Fresh(args ...int) int { return d.Intern("#"+strconv.Itoa(len(d.all)), args...) }

// number is one that nothing else has.
func (d *Terms) Number() int { d.last++; return d.last }

// note remembers whether equal values are identical wherever a value is read.
func (d *Terms) Note(v *Value) {
	same, known := d.same[v.ID]
	d.same[v.ID] = v.Same && (same || !known)
}

// behind is the value that a form of it is equal to, wherever the form is not NULL: character as text, numerics without zeros at their end,
// floats plus 0, texts of a limited length.
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

// shorter is n of the condition octet_length(x) <= n; -1 of others.
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
