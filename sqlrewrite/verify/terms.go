package verify

import (
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/internal/steps"
)

// Terms are the values of one proof, by how they are made.
type Terms struct {
	steps *steps.Count
	args  []any
	read  []bool // which of them the text names
	all   []term // by id: how a value is made; equal ids are equal values in every row
	ids   map[string]int
	known map[int]*value
	same  map[int]bool // whether equal values are identical
	last  int          // number that was given
}

// newTerms are those of a statement with some arguments.
func newTerms(args []any, count *steps.Count) *Terms {
	return &Terms{steps: count, args: args, read: make([]bool, len(args)), ids: make(map[string]int, 128),
		known: make(map[int]*value, 128), same: make(map[int]bool)}
}

// unread reports whether there is an argument that the text does not name.
func (d *Terms) unread() bool { return slices.Contains(d.read, false) }

// term is how the value of an id is made.
func (d *Terms) term(id int) term { return d.all[id] }

// know remembers a value that an expression has.
func (d *Terms) know(v *value) { d.known[v.id] = v }

// value is that of an id; nil: no expression had it.
func (d *Terms) value(id int) *value { return d.known[id] }

// identical reports whether equal values of an id are identical.
func (d *Terms) identical(id int) bool { return d.same[id] }

// elements is how many elements an array has, that is an argument.
func (d *Terms) elements(id int) (size int, known bool) {
	at, err := strconv.Atoi(d.all[id].op[1:])
	if err != nil || d.all[id].op[0] != '[' {
		return 0, false
	}
	list, _ := d.args[at-1].([]string)
	return len(list), true
}

// term is how a value is made of others.
type term struct {
	op   string
	args []int
}

// intern gives equal terms one id.
func (d *Terms) intern(op string, args ...int) int {
	var room [64]byte // most keys are short, and known
	key := append(room[:0], op...)
	for _, a := range args {
		key = strconv.AppendInt(append(key, 0), int64(a), 36)
	}
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	d.all = append(d.all, term{op, args})
	d.ids[string(key)] = len(d.all) - 1
	return len(d.all) - 1
}

// fresh is an id that no other value has.
func (d *Terms) fresh(args ...int) int { return d.intern("#"+strconv.Itoa(len(d.all)), args...) }

// number is one that nothing else has.
func (d *Terms) number() int { d.last++; return d.last }

// note remembers whether equal values are identical wherever a value is read.
func (d *Terms) note(v *value) {
	same, known := d.same[v.id]
	d.same[v.id] = v.same && (same || !known)
}

// behind is the value that a form of it is equal to, wherever the form is not NULL: character as text, numerics without zeros at their end,
// floats plus 0, texts of a limited length.
func (d *Terms) behind(id int) (of int, ok bool) {
	t := d.term(id)
	k := noKind
	if len(t.args) > 0 && d.known[t.args[0]] != nil {
		k = d.known[t.args[0]].kind
	}
	switch {
	case t.op == "trim_scale", t.op == shortForm, t.op == "text" && k == bpchar,
		t.op == "+" && k.isFloat() && d.term(t.args[1]).op == "="+kindName(k)+":0":
		return t.args[0], true
	case t.op == "case" && len(t.args) == 2:
		result := d.term(t.args[1])
		isResult := func(id int) bool { return id == t.args[1] || result.op == "text" && id == result.args[0] }
		if c := d.term(t.args[0]); c.op == "<=" && d.term(c.args[0]).op == "octet_length" && isResult(d.term(c.args[0]).args[0]) {
			return t.args[1], true
		}
	}
	return 0, false
}

// shorter is n of the condition octet_length(x) <= n; -1 of others.
func (d *Terms) shorter(condition, x int) int64 {
	t := d.term(condition)
	if t.op != "<=" || d.term(t.args[0]).op != "octet_length" || d.term(t.args[0]).args[0] != x {
		return -1
	}
	if n := d.known[t.args[1]].number(); n != nil && n.IsInt() && n.Num().IsInt64() {
		return n.Num().Int64()
	}
	return -1
}
