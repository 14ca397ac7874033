package algebra

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// An encoding identifies a question: questions with one encoding have one answer, or one law of answers. A node is encoded as its number
// and its fields; a field as its number, the length of its value, and the value. Numbers that are compared have one spelling; operands of
// AND and OR are sorted. A column is the place of its relation in FROM, and its number there. An operation is encoded in its error-free
// form, which has the policy's bounds: they decide how values beyond them count. Guards are left out: they change no value of a correct
// form.

// EncodeBlock encodes what a release block reads, groups by and releases; laws are those of its statistics. If ordered is false, the order
// of keys and of statistics does not matter. order has the places of the keys, and of the statistics, in the order in which they are
// encoded.
func EncodeBlock(q *BoundQuery, laws []string, ordered bool) (encoded []byte, order [2][]int) {
	x := newEncoder()
	x.field(1, func() { x.item(q.Source.Node) })
	x.field(2, func() {
		for _, f := range q.Source.Owners[:min(1, len(q.Source.Owners))] {
			x.column(f)
		}
	})
	x.field(3, func() { x.expr(q.Where) })
	list := func(number uint64, n int, ordered bool, add func(int)) (places []int) {
		all := make([][]byte, n)
		for i := range n {
			all[i], places = x.apart(func() { add(i) }), append(places, i)
		}
		if !ordered {
			slices.SortStableFunc(places, func(a, b int) int { return bytes.Compare(all[a], all[b]) })
		}
		x.field(number, func() {
			for _, i := range places {
				x.parts(1, all[i:i+1])
			}
		})
		return places
	}
	order[0] = list(4, len(q.Keys), ordered, func(i int) {
		x.there(q.Keys[i].Private())
		x.addGroupKey(q.Keys[i])
	})
	selected := slices.ContainsFunc(q.Within, GroupKey.Private) // then all tuples are summed, whatever domains the others have
	list(5, len(q.Within), false, func(i int) {
		k := q.Within[i]
		if x.there(k.Private()); selected {
			k.Domain = nil
		}
		x.addGroupKey(k)
	})
	order[1] = list(6, len(q.Statistics), ordered, func(i int) {
		x.addStatistic(q.Statistics[i])
		x.field(0, func() { basic(x, laws[i]) })
	})
	x.field(7, func() { basic(x, q.Top) })
	if len(q.Listed) > 0 { // a block without lists keeps its name from before there were lists
		x.field(8, func() { x.lists(q.Listed, order[0]) })
	}
	return x.out, order
}

// lists encodes lists of tuples: columns in the order of places, the keys as they are encoded, and tuples in the order of their bytes.
func (x *encoder) lists(all []Listed, places []int) {
	lists := make([][]byte, len(all))
	for i, l := range all {
		columns := slices.Clone(l.Places)
		slices.SortFunc(columns, func(a, b int) int { return slices.Index(places, a) - slices.Index(places, b) })
		tuples := make([][]byte, len(l.Tuples))
		for j, t := range l.Tuples {
			tuples[j] = x.apart(func() {
				for _, place := range columns {
					x.field(1, func() { x.key(t[slices.Index(l.Places, place)]) })
				}
			})
		}
		slices.SortFunc(tuples, bytes.Compare)
		lists[i] = x.apart(func() {
			x.list(1, len(columns), func(j int) { basic(x, slices.Index(places, columns[j])) })
			x.field(2, func() { x.parts(1, tuples) })
		})
	}
	slices.SortFunc(lists, bytes.Compare)
	x.parts(1, lists)
}

// EncodeOutputs encodes what is computed from the released values of one or several blocks, and the names of the outputs.
func EncodeOutputs(q *BoundQuery) []byte {
	x := newEncoder()
	x.list(1, len(q.Estimators), func(i int) {
		v := q.Estimators[i]
		x.field(1, func() { basic(x, int(v.How)) })
		x.field(2, func() { basic(x, v.T) })
		x.list(3, len(v.Of), func(j int) { basic(x, v.Of[j]) })
	})
	x.list(2, len(q.Outputs), func(i int) { basic(x, q.Outputs[i].Name) })
	blocks := q.Blocks
	if blocks == nil {
		blocks = []*BoundQuery{q}
	}
	x.list(3, len(blocks), func(i int) { x.own(blocks[i]) })
	x.field(4, func() { x.query(q.Post) })
	return x.out
}

// own encodes the SELECT of a block over its released values. Outputs of queries over it follow from these.
func (x *encoder) own(q *BoundQuery) {
	outputs := q.Outputs
	if q.Post != nil {
		outputs = q.Inner
	}
	x.list(1, len(outputs), func(i int) { x.expr(outputs[i].Expr) })
	x.field(2, func() { x.expr(q.Having) })
	x.list(3, len(q.OrderBy), func(i int) { x.addOrdering(q.OrderBy[i]) })
	x.field(4, func() {
		if q.Limit != nil {
			basic(x, *q.Limit)
		}
	})
	x.field(5, func() { basic(x, q.Offset) })
}

func newEncoder() *encoder { return &encoder{out: make([]byte, 0, 1<<10), places: map[*Field]place{}} }

type encoder struct {
	out    []byte
	places map[*Field]place
	leaves int64 // number of relations that have places
}

// expr encodes an expression. Fields of relations inside it have no place afterwards.
func (x *encoder) expr(e Expr) {
	known := x.leaves
	switch e := errorFree(e).(type) {
	case Binary:
		if e.Op != syntax.And && e.Op != syntax.Or {
			x.kind(e)
			break
		}
		all := x.operands(e.Op, e.R, x.operands(e.Op, e.L, nil))
		slices.SortFunc(all, bytes.Compare)
		x.node(7)
		x.field(1, func() { basic(x, e.Op) })
		x.parts(2, all)
	case Aggregate:
		if x.kind(e); e.AddsFloats() { // clamped to their bounds
			within := BoundsOf(e.X())
			x.field(0, func() { x.rationals(within.Lo, within.Hi) })
		}
	default:
		x.kind(e)
	}
	maps.DeleteFunc(x.places, func(_ *Field, at place) bool { return at[0] >= known })
	x.leaves = known
}

// errorFree returns an expression in its error-free form, without its outermost guards.
func errorFree(e Expr) Expr {
	switch x := e.(type) {
	case Computed:
		return errorFree(x.ErrorFree)
	case Guard:
		return errorFree(x.X)
	default:
		return e
	}
}

// operands appends the encoded operands of a chain of AND or OR.
func (x *encoder) operands(of syntax.Operator, e Expr, all [][]byte) [][]byte {
	if b, ok := errorFree(e).(Binary); ok && b.Op == of {
		return x.operands(of, b.R, x.operands(of, b.L, all))
	}
	return append(all, x.apart(func() { x.expr(e) }))
}

// apart returns the bytes that add writes.
func (x *encoder) apart(add func()) []byte {
	at := len(x.out)
	add()
	value := bytes.Clone(x.out[at:])
	x.out = x.out[:at]
	return value
}

func (x *encoder) node(number uint64) { x.out = binary.AppendUvarint(x.out, number) }

func (x *encoder) count(n int) { x.node(uint64(n)) }

// there encodes whether a value follows.
func (x *encoder) there(yes bool) { x.count(BoolIndex(yes)) }

// open begins a field; close puts its length before its value.
func (x *encoder) open(number uint64) int {
	x.node(number)
	return len(x.out)
}

func (x *encoder) close(at int) {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(x.out)-at))
	x.out = slices.Insert(x.out, at, size[:n]...)
}

func (x *encoder) field(number uint64, add func()) {
	at := x.open(number)
	add()
	x.close(at)
}

// parts adds fields of one number.
func (x *encoder) parts(number uint64, all [][]byte) {
	for _, one := range all {
		x.field(number, func() { x.out = append(x.out, one...) })
	}
}

func (x *encoder) list(number uint64, n int, add func(int)) {
	x.field(number, func() {
		for i := range n {
			x.field(1, func() { add(i) })
		}
	})
}

// basic encodes a value without parts. Fields of other types do not compile.
func basic[T ~bool | ~string | ~int | ~int32 | ~int64](x *encoder, v T) { x.out = fmt.Append(x.out, v) }

// place has the number of a field's relation in FROM, and the field's number there: of a table's column, its number in the table, which
// stays when others are added; of an output of a query, its place.
type place [2]int64

// column encodes a field's place.
func (x *encoder) column(f *Field) {
	at, known := x.places[f]
	if x.there(f != nil); f == nil {
		return
	}
	if !known {
		panic("sqlrewrite: a column of no item")
	}
	x.out = binary.AppendVarint(binary.AppendVarint(x.out, at[0]), at[1])
	if f.MaxLength > 0 {
		x.out = binary.AppendVarint(x.out, f.MaxLength)
	}
}

// item encodes a relation, and gives places to its fields.
func (x *encoder) item(n FromItem) {
	if c, ok := n.(*RowCap); ok && !c.Active() { // it changes nothing
		x.item(c.Of)
		return
	}
	x.relation(n)
	switch n := n.(type) {
	case *Scan:
		x.declare(n.Fields, func(i int) int64 {
			if n := n.Fields[i].AttNum; n != 0 {
				return int64(n)
			}
			return -1 - int64(i)
		})
	case *Derived:
		x.outputs(n.Fields)
	}
}

// declare gives the fields of the next relation their places.
func (x *encoder) declare(fields []*Field, at func(int) int64) {
	for i, f := range fields {
		x.places[f] = place{x.leaves, at(i)}
	}
	x.leaves++
}

// outputs gives the outputs of a query their places. The number of a column that an output shows would not do: another output may show it,
// too.
func (x *encoder) outputs(fields []*Field) { x.declare(fields, func(i int) int64 { return int64(i) }) }

// query encodes a query. Outputs of a set operation get places of their own, and so do those that ORDER BY names after DISTINCT.
func (x *encoder) query(q *Query) {
	if x.there(q != nil); q == nil {
		return
	}
	if q.Set != nil {
		var outputs []*Field
		for _, out := range q.Outputs {
			outputs = append(outputs, PlainField(out.Expr))
		}
		x.outputs(outputs)
	}
	x.outputs(q.Wrapped)
	x.addQuery(*q)
}

// wrapped encodes an output as ORDER BY names it.
func (x *encoder) wrapped(f *Field) { basic(x, f.Type) }

func (x *encoder) table(t *catalog.Table) {
	x.field(1, func() { basic(x, t.Schema) })
	x.field(2, func() { basic(x, t.Name) })
}

func (x *encoder) key(k catalog.Key) {
	x.field(1, func() { basic(x, k.Null) })
	x.field(2, func() { basic(x, k.Text) })
}

func (x *encoder) rationals(all ...*big.Rat) {
	for _, v := range all {
		x.field(1, func() { x.rational(v) })
	}
}

func (x *encoder) rational(v *big.Rat) {
	if v != nil {
		basic(x, v.RatString())
	}
}

func (x *encoder) whole(v *big.Int) { basic(x, v.String()) }

func (x *encoder) join(k syntax.JoinKind) {
	if k != syntax.LeftJoin && k != syntax.RightJoin && k != syntax.FullJoin {
		k = syntax.InnerJoin
	}
	basic(x, k)
}

func (x *encoder) operand(of syntax.Operator, e Expr) {
	if IsComparison(of) {
		x.compared(e)
	} else {
		x.expr(e)
	}
}

// compared encodes an exact number in one spelling, whatever its type. Floats are left as they are: other types are rounded to them in
// comparisons.
func (x *encoder) compared(e Expr) {
	if c, ok := e.(Constant); ok && !c.Null && (c.T.IsInteger() || c.T == catalog.Numeric) {
		if v, finite := scalar.ParseNumber(c.Text); finite {
			e = Constant{T: catalog.Numeric, Text: v.RatString()}
		}
	}
	x.expr(e)
}
