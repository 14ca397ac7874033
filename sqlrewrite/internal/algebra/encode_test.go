package algebra

import (
	"bytes"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/syntax"
)

// random makes expressions over fields.
type random struct {
	*rand.Rand
	around []*Field
	tables []*catalog.Table
	query  *Query
}

func (r random) rarely() bool { return r.IntN(8) == 0 }

func (r random) inside(fields []*Field) random {
	r.around = append(slices.Clone(fields), r.around...)
	return r
}

func (r random) exprs(depth, most int) []Expr {
	all := make([]Expr, r.IntN(most))
	for i := range all {
		all[i] = r.expr(depth)
	}
	return all
}

func (r random) maybe(depth int) Expr {
	if r.IntN(2) == 0 {
		return nil
	}
	return r.expr(depth)
}

func (r random) orderings(depth int) []Ordering {
	all := make([]Ordering, r.IntN(2))
	for i := range all {
		all[i] = Ordering{Expr: r.expr(depth), Descending: r.rarely(), NullsFirst: r.rarely()}
	}
	return all
}

func (r random) constant() Constant {
	types := []catalog.Type{catalog.Int4, catalog.Int4, catalog.Numeric, catalog.Text}
	return Constant{T: types[r.IntN(4)], Text: []string{"1", "2"}[r.IntN(2)], Null: r.rarely()}
}

func (r random) fields() []*Field {
	return []*Field{{Column: &catalog.Column{Name: "x"}}, {Column: &catalog.Column{Name: "y"}}}
}

func (r random) item(depth int) (FromItem, []*Field) {
	kind := r.IntN(5)
	if depth <= 0 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		s := &Scan{Table: r.tables[r.IntN(2)]}
		s.Fields = r.fields()
		return s, s.Fields
	case 2:
		of, fields := r.item(depth - 1)
		return &RowCap{Of: of, Rows: 1, Bare: r.rarely()}, fields
	case 3:
		left, fields := r.item(depth - 1)
		right, more := r.item(depth - 1)
		fields = slices.Concat(fields, more)
		kinds := []syntax.JoinKind{syntax.InnerJoin, syntax.CrossJoin, syntax.LeftJoin, syntax.FullJoin}
		return &Joined{Kind: kinds[r.IntN(4)], Left: left, Right: right, On: r.inside(fields).maybe(depth - 1), Public: r.rarely()}, fields
	default:
		d := &Derived{Lateral: r.rarely()}
		for range 1 + r.IntN(2) {
			q := &Query{Distinct: r.rarely()}
			in := r
			if !r.rarely() {
				var fields []*Field
				q.From, fields = r.item(depth - 1)
				in = r.inside(fields)
			}
			q.Where, q.Keys, q.Outputs = in.maybe(depth-1), in.exprs(depth-1, 3), []Output{{"o", in.expr(depth - 1)}}
			d.Parts = append(d.Parts, q)
		}
		d.Fields = r.fields()
		return d, d.Fields
	}
}

func (r random) expr(depth int) Expr {
	kind := r.IntN(23)
	if depth <= 0 {
		kind %= 4
	}
	depth--
	x := func() Expr { return r.expr(depth) }
	switch kind {
	case 0:
		return Column{r.around[r.IntN(len(r.around))]}
	case 1:
		return KeyRef{Index: r.IntN(2), Name: "k"}
	case 2:
		return EstimatorRef{Index: r.IntN(2), Chosen: r.rarely()}
	case 3:
		return r.constant()
	case 4:
		return Not{x()}
	case 5:
		return Negate{X: x()}
	case 6:
		return Binary{Op: []syntax.Operator{syntax.Eq, syntax.Concat, syntax.Add, syntax.Lt}[r.IntN(4)], L: x(), R: x()}
	case 7:
		return In{X: x(), List: r.exprs(depth, 3), Not: r.rarely()}
	case 8:
		return Is{X: x(), What: []syntax.Truth{syntax.IsNull, syntax.IsTrue}[r.IntN(2)], Not: r.rarely()}
	case 9:
		return Distinct{L: x(), R: x(), Not: r.rarely()}
	case 10:
		return Like{X: x(), Pattern: r.constant(), Regex: r.rarely(), CaseInsensitive: r.rarely(), Not: r.rarely()}
	case 11:
		return Choice{Arms: []Arm{{x(), x()}, {x(), x()}}[:r.IntN(3)], Otherwise: r.maybe(depth)}
	case 12:
		return Cast{X: x(), T: catalog.Text, Mods: []int32{1, 2}[:r.IntN(2)]}
	case 13:
		return Collate{x()}
	case 14:
		return Call{Name: []string{"f", "g"}[r.IntN(2)], Args: r.exprs(depth, 3)}
	case 15:
		e := x()
		return Computed{Written: e, ErrorFree: e}
	case 16:
		return Guard{x(), x()}
	case 17:
		from, fields := r.item(depth)
		return Exists{From: from, Where: r.inside(fields).maybe(depth)}
	case 18:
		from, fields := r.item(depth)
		return InRows{X: r.exprs(depth, 3), Outputs: fields[:1], From: from, Where: r.inside(fields).maybe(depth)}
	case 19:
		a := Aggregate{Name: "f", Args: r.exprs(depth, 3), Star: r.rarely(), Distinct: r.rarely(), Order: r.orderings(depth),
			Within: r.orderings(depth), Filter: r.maybe(depth), Safe: r.rarely()}
		if r.IntN(2) == 0 {
			c := r.constant()
			a.Over = &Window{Partition: r.exprs(depth, 3), Order: r.orderings(depth),
				Frame: &Frame{Start: FrameBound{Kind: syntax.Following, Offset: []*Constant{&c, nil}[r.IntN(2)]}}}
		}
		return a
	case 20:
		return Subquery{X: r.exprs(depth, 3), Query: r.query}
	case 21:
		return Either{L: x(), R: x()}
	default:
		return Bought{At: r.IntN(2), T: catalog.Numeric, Label: "b", MayBeNull: r.rarely()}
	}
}

// near gives the same numbers for one seed, but for one of them.
type near struct {
	source *rand.PCG
	left   int
}

func (n *near) Uint64() uint64 {
	x := n.source.Uint64()
	if n.left--; n.left == 0 {
		return ^x
	}
	return x
}

// encoded is an expression over the fields of an item.
func encoded(e Expr, around FromItem) []byte {
	x := newEncoder()
	for _, l := range LeavesIn(around) {
		x.outputs(l.Fields)
	}
	x.expr(e)
	return x.out
}

// Two expressions are the same if and only if they have one encoding.
func TestEncode(t *testing.T) {
	base := random{around: []*Field{{Column: &catalog.Column{Name: "a"}}, {Column: &catalog.Column{Name: "b"}}},
		tables: []*catalog.Table{{Name: "s"}, {Name: "t"}}, query: &Query{}}
	around := &Scan{Leaf: Leaf{Fields: base.around}}
	made := func(seed uint64, changed int) Expr {
		r := base
		r.Rand = rand.New(&near{rand.NewPCG(seed, 0), changed})
		return r.expr(3)
	}
	equals := 0
	for seed := range uint64(20_000) {
		e, other := made(seed, 0), made(seed, int(seed%9))
		same, equal := Same(e, other), bytes.Equal(encoded(e, around), encoded(other, around))
		if same != equal {
			t.Fatalf("seed %d: same %t, encoded equally %t\n%#v\n%#v", seed, same, equal, e, other)
		}
		equals += BoolIndex(same)
		if again := made(seed, 0); !bytes.Equal(encoded(e, around), encoded(again, around)) {
			t.Fatalf("seed %d: one expression is encoded in two ways\n%#v", seed, e)
		}
	}
	t.Logf("%d of 20000 pairs are the same", equals)
}

// leftOut are the fields that no encoding has, and why.
var leftOut = map[string]string{
	"Bought.Label": "for people", "Bought.Within": "follows from the release", "Bought.MayBeNull": "follows from the release",
	"Aggregate.Cells": "a number for intervals", "Aggregate.Safe": "follows from the place, below or above the noise",
	"Aggregate.T": "follows from the arguments", "Binary.T": "follows from the operands", "Call.T": "follows from the arguments",
	"Choice.T": "follows from the results", "Either.T": "follows from the sides", "Negate.T": "follows from the operand",
	"Subquery.T": "follows from the query", "Computed.Written": "what runs is the error-free form",
	"Computed.Within": "follows from the error-free form", "Computed.Printed": "follows from the error-free form",
	"Guard.Clamped": "the same value, if the form is right", "Exists.Of": "what From is", "InRows.Of": "what From is",
	"Query.Of":      "what From is",
	"GroupKey.Name": "for people", "GroupKey.At": "for people", "GroupKey.Node": "for people", "GroupKey.Declared": "for people",
	"GroupKey.Unlisted": "what was released over these has another name",
	"KeyRef.Name":       "for people", "Leaf.Name": "for people", "Statistic.Name": "for people",
	"Output.Name": "encoded by EncodeOutputs, where somebody sees it", "Leaf.Alias": "a place", "Leaf.Fields": "places",
	"RowCap.Leaf":  "places",
	"Grid.Derived": "for people", "Grid.Narrowed": "for people", "Grid.Clamped": "the same value", "Joined.Meets": "what it costs",
	"Joined.Semi":   "made by lowering",
	"Joined.Public": "what it costs", "Query.Origins": "follow from the outputs", "Query.Sizes": "follow from the outputs",
	"RowCap.Bare": "Where is nil then", "RowCap.Least": "Rows is the outcome", "RowCap.Most": "Rows is the outcome",
	"Scan.Reached": "ON is there", "Window.At": "for people", "Window.Sequential": "Ties and Key are there",
}

// sample makes values without anything that is missing; a second one of the same type differs in all that is not empty.
type sample struct {
	fields [2]*Field
	deep   int
}

func (s sample) of(typ reflect.Type, second int) reflect.Value {
	v := reflect.New(typ).Elem()
	s.deep++
	switch of := v.Addr().Interface().(type) {
	case *Expr:
		*of = Column{s.fields[second]}
		return v
	case *FromItem:
		*of = &Scan{Table: &catalog.Table{Name: []string{"s", "t"}[second]}}
		return v
	case **Field:
		*of = s.fields[second]
		return v
	case **catalog.Table:
		*of = &catalog.Table{Name: []string{"s", "t"}[second]}
		return v
	case **big.Rat:
		*of = big.NewRat(1, int64(2+second))
		return v
	case **big.Int:
		*of = big.NewInt(int64(second))
		return v
	case *syntax.JoinKind:
		*of = []syntax.JoinKind{syntax.InnerJoin, syntax.LeftJoin}[second]
		return v
	}
	switch typ.Kind() {
	case reflect.Bool:
		v.SetBool(second > 0)
	case reflect.String:
		v.SetString([]string{"+", "-"}[second])
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(1 + second))
	case reflect.Slice:
		for range 1 + second {
			v = reflect.Append(v, s.of(typ.Elem(), 0))
		}
	case reflect.Pointer:
		if typ.Elem().Kind() == reflect.Struct && s.deep < 4 {
			v.Set(reflect.New(typ.Elem()))
			v.Elem().Set(s.of(typ.Elem(), second))
		} else if typ.Elem().Kind() != reflect.Struct {
			v.Set(reflect.New(typ.Elem()))
			v.Elem().Set(s.of(typ.Elem(), second))
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			if _, tagged := typ.Field(i).Tag.Lookup("node"); tagged || typ == reflect.TypeFor[catalog.Key]() {
				v.Field(i).Set(s.of(typ.Field(i).Type, second))
			}
		}
	}
	return v
}

// nodes are those that are encoded.
var nodes = []reflect.Type{
	reflect.TypeFor[Column](), reflect.TypeFor[KeyRef](), reflect.TypeFor[EstimatorRef](), reflect.TypeFor[Constant](),
	reflect.TypeFor[Not](), reflect.TypeFor[Negate](), reflect.TypeFor[Binary](), reflect.TypeFor[In](), reflect.TypeFor[Is](),
	reflect.TypeFor[Distinct](), reflect.TypeFor[Like](), reflect.TypeFor[Choice](), reflect.TypeFor[Arm](), reflect.TypeFor[Cast](),
	reflect.TypeFor[Collate](), reflect.TypeFor[Call](), reflect.TypeFor[Computed](), reflect.TypeFor[Guard](), reflect.TypeFor[Exists](),
	reflect.TypeFor[InRows](), reflect.TypeFor[Aggregate](), reflect.TypeFor[Window](), reflect.TypeFor[Frame](),
	reflect.TypeFor[FrameBound](), reflect.TypeFor[Ordering](), reflect.TypeFor[Subquery](), reflect.TypeFor[Either](),
	reflect.TypeFor[Bought](), reflect.TypeFor[Scan](),
	reflect.TypeFor[Leaf](), reflect.TypeFor[Joined](), reflect.TypeFor[Derived](), reflect.TypeFor[RowCap](), reflect.TypeFor[Query](),
	reflect.TypeFor[SetOperation](), reflect.TypeFor[Output](), reflect.TypeFor[Statistic](), reflect.TypeFor[Grid](),
	reflect.TypeFor[GroupKey](),
}

// Each field of a node is part of its encoding, but those that are left out.
func TestEachFieldIsEncoded(t *testing.T) {
	s := sample{fields: [2]*Field{{Column: &catalog.Column{Name: "a"}}, {Column: &catalog.Column{Name: "b"}}}}
	around := &Scan{Leaf: Leaf{Fields: s.fields[:]}}
	encode := func(v reflect.Value) []byte {
		x := newEncoder()
		x.outputs(around.Fields)
		switch v := v.Addr().Interface().(type) {
		case *Scan, *Joined, *Derived, *RowCap:
			x.item(v.(FromItem))
		case *Leaf:
			x.item(&Scan{Leaf: *v, Table: &catalog.Table{}})
		case *Query:
			x.query(v)
		case *Arm:
			x.expr(Choice{Arms: []Arm{*v}})
		case *Window:
			x.expr(Aggregate{Name: "f", Over: v})
		case *Frame:
			x.expr(Aggregate{Name: "f", Over: &Window{Frame: v}})
		case *FrameBound:
			x.expr(Aggregate{Name: "f", Over: &Window{Frame: &Frame{Start: *v}}})
		case *SetOperation:
			x.query(&Query{Set: v})
		case *Statistic:
			x.addStatistic(*v)
		case *Grid:
			x.addGrid(*v)
		case *GroupKey:
			x.addGroupKey(*v)
		case *Output:
			x.addOutput(*v)
		case *Ordering:
			x.addOrdering(*v)
		default:
			x.expr(reflect.ValueOf(v).Elem().Interface().(Expr))
		}
		return x.out
	}
	unused := maps.Clone(leftOut)
	for _, typ := range nodes {
		for i := range typ.NumField() {
			field := typ.Field(i)
			if field.Type == reflect.TypeFor[Leaf]() && typ != reflect.TypeFor[RowCap]() {
				continue // whose fields are tried by themselves
			}
			name := typ.Name() + "." + field.Name
			made, other := s.of(typ, 0), s.of(typ, 0)
			changed := s.of(field.Type, 1)
			if reflect.DeepEqual(changed.Interface(), made.Field(i).Interface()) && leftOut[name] == "" {
				t.Errorf("%s is not tried", name)
			}
			other.Field(i).Set(changed)
			encoded := !bytes.Equal(encode(made), encode(other))
			if _, left := leftOut[name]; encoded == left {
				t.Errorf("%s: encoded %t, left out %t", name, encoded, left)
			}
			delete(unused, name)
		}
	}
	for name := range unused {
		t.Errorf("%s is no field", name)
	}
	source, err := os.ReadFile("nodes_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, encoder := range regexp.MustCompile(`\) add(\w+)\(v`).FindAllStringSubmatch(string(source), -1) {
		if !slices.ContainsFunc(nodes, func(typ reflect.Type) bool { return typ.Name() == encoder[1] }) {
			t.Errorf("%s is not tried", encoder[1])
		}
	}
}

// A release block has no field that is neither encoded nor left out for a reason.
func TestEachFieldOfABlockIsEncoded(t *testing.T) {
	const block, outputs, cost, people = "EncodeBlock", "EncodeOutputs", "what it costs", "for people"
	for typ, fields := range map[reflect.Type]map[string]string{
		reflect.TypeFor[BoundQuery](): {"Source": block, "Where": block, "Keys": block, "Listed": block, "Statistics": block, "Top": block,
			"Within": block, "Estimators": outputs, "Outputs": outputs, "Having": outputs, "OrderBy": outputs, "Limit": outputs,
			"Offset": outputs, "Post": outputs, "Inner": outputs, "Blocks": outputs, "Facts": cost, "Pairs": cost,
			"Fan": cost, "Spare": cost, "Load": cost, "At": people, "Scans": "what Post reads",
			"Bought":   "named by their releases",
			"Argument": "the question names the blocks", "Part": "the bounding and Within are there", "Reports": "an option of the request"},
		reflect.TypeFor[Estimator](): {"How": outputs, "T": outputs, "Of": outputs, "Name": people},
		reflect.TypeFor[Relation](): {"Node": block, "Owners": block, "Parts": "names", "Fields": "names", "Pending": "nil after binding",
			"Table": people, "Keys": "the bounding is there", "Lateral": "the node is there", "MaxRows": "the bounding is there",
			"MaxGroups": "the bounding is there", "MaxValues": "the bounding is there", "MaxTotal": "the bounding is there", "Notes": people},
	} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; fields[name] == "" {
				t.Errorf("%s.%s is new: encode it", typ.Name(), name)
			}
		}
		if len(fields) != typ.NumField() {
			t.Errorf("%s has other fields", typ.Name())
		}
	}
}
