package algebra

import (
	"fmt"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// Layer is a query over rows that hold nothing private: released values, public tables, and what other layers make of them. It
// runs in PostgreSQL as it is written. What a layer can name is closed by its items: there is none for a table with a privacy unit.
type Layer struct {
	Block bool      // the rows of the release block, as its own SELECT gives them; nothing else is set
	Set   *LayerSet // a set operation; then only orderBy, limit and offset are the layer's own

	From     LayerItem // nil: one row without columns
	Where    Expr
	Grouped  bool // has keys or aggregates
	Keys     []Expr
	Having   Expr
	Distinct bool
	On       []Expr // DISTINCT ON
	OrderBy  []Ordering
	Limit    *int64
	Offset   int64

	Outputs []Output
	// Origins are the outputs over keys and released values, as far as they can be followed through other layers; sizes are theirs.
	Origins []Expr
	Sizes   []int
	// Wrapped are the outputs as ORDER BY of a set operation or after DISTINCT names them.
	Wrapped []*Field
	Ordinal bool // each row stems from one released row, whose number it carries
}

// LayerSet is a set operation of two layers with outputs of the types of the result.
type LayerSet struct {
	Kind        syntax.SetKind
	All         bool
	Left, Right *Layer
}

// LayerItem is an item of a layer's FROM: [*LayerScan], [*LayerQuery] or [*LayerJoin].
type LayerItem interface{ layerItem() }

// LayerScan is a public table. [opened.scan] makes the only ones.
type LayerScan struct {
	Table  *catalog.Table
	Alias  string
	Fields []*Field
}

// LayerQuery is another layer.
type LayerQuery struct {
	Layer  *Layer
	Alias  string
	Fields []*Field
}

// LayerJoin joins two items.
type LayerJoin struct {
	Kind        syntax.JoinKind
	Left, Right LayerItem
	On          Expr // nil: CROSS JOIN
}

func (*LayerScan) layerItem()  {}
func (*LayerQuery) layerItem() {}
func (*LayerJoin) layerItem()  {}

// Wrap gives the outputs names by which ORDER BY can order the result as a whole.
func (l *Layer) Wrap() {
	for i, out := range l.Outputs {
		t := OutputType(out.Expr.Typ())
		if RawEnum(l, i) {
			t = catalog.Enum
		}
		l.Wrapped = append(l.Wrapped, &Field{Column: &catalog.Column{Name: out.Name, Type: t, TypMod: -1}, Relation: "d", Printed: OutputColumn(i)})
	}
}

// OutputColumn is the name of an output in the statement: the analyst's names need not be distinct.
func OutputColumn(i int) string { return fmt.Sprintf("c%d", i) }

// OutputType is the type of an output where it is read: an enum is text once it has left its table, unless RawEnum says otherwise.
func OutputType(t catalog.Type) catalog.Type {
	if t == catalog.Enum || t == scalar.UnknownType {
		return catalog.Text
	}
	return t
}

// RawEnum reports whether an output is an enum as it is in its table, so that it still has the order of its labels.
func RawEnum(l *Layer, i int) bool {
	f := PlainField(l.Outputs[i].Expr)
	return l.Set == nil && !l.Block && f != nil && f.Type == catalog.Enum
}
