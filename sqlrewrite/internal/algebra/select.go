package algebra

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Query is a SELECT, or a set operation of two. What its rows are is derived from what it reads ([RowsOf]): below the release block each
// belongs to a privacy unit, like those that it reads, or to nobody; above it they are released values, public rows, and what queries make
// of them, and the query runs in PostgreSQL as it is written.
type Query struct {
	Block   bool          `node:"1,encoded"` // the rows of a release block, as its own SELECT gives them; only BlockAt and Outputs are set too
	BlockAt int           `node:"2,encoded"` // which one, of a statement that has several
	Set     *SetOperation `node:"3,encoded"` // then only OrderBy, Limit and Offset are the query's own

	From     FromItem `node:"4"` // nil: one row without columns
	Where    Expr     `node:"5"` // nil: none
	Keys     []Expr   `node:"6"`
	Distinct bool     `node:"7"`
	Outputs  []Output `node:"8"` // printed as c0, c1, ...

	Of *Relation `node:"9,-"` // below the release block: what From is

	// Above it:
	Grouped bool       `node:"10,encoded"` // has keys or aggregates
	Sets    [][]int    `node:"11,encoded"` // of GROUPING SETS: the places in Keys of each set's keys; nil: one set, of all keys
	Having  Expr       `node:"12,encoded"`
	On      []Expr     `node:"13,encoded"` // DISTINCT ON
	OrderBy []Ordering `node:"15,encoded"`
	Limit   *int64     `node:"16,encoded"`
	Offset  int64      `node:"17,encoded"`
	// Origins are the outputs over keys and released values, as far as they can be followed through other queries; sizes are theirs.
	Origins []Expr `node:"18,-"`
	Sizes   []int  `node:"19,-"`
	// Wrapped are the outputs as ORDER BY of a set operation or after DISTINCT names them.
	Wrapped []*Field `node:"14,encoded,by=wrapped"`
}

// SetOperation is one of two queries with outputs of the types of the result.
type SetOperation struct {
	Kind        syntax.SetKind `node:"1"`
	All         bool           `node:"2"`
	Left, Right *Query         `node:"3 4"`
}

// Rowwise reports whether each row of a query below the release block comes of one row of what it reads, and is computed from that and
// from others of its unit.
func (q *Query) Rowwise() bool {
	return q.From != nil && len(q.Keys) == 0 && !q.Distinct && !slices.ContainsFunc(q.Results(), HasAggregate)
}

// HasAggregate reports whether an expression is computed of groups of rows.
func HasAggregate(e Expr) bool {
	return Has(e, func(x Expr) bool { _, is := x.(Aggregate); return is })
}

// Results are the expressions of the outputs.
func (q *Query) Results() []Expr {
	all := make([]Expr, len(q.Outputs))
	for i, out := range q.Outputs {
		all[i] = out.Expr
	}
	return all
}

// RowKind is what the rows of a relation are.
type RowKind int

const (
	PublicRows   RowKind = iota // of public tables alone
	ReleasedRows                // released values, perhaps with public rows beside them
	OwnedRows                   // each belongs to a privacy unit, perhaps with public or released rows beside it
)

// RowsOf is what the rows of an item of FROM are. Its leaves alone decide: the tables that it reads, and the release block.
func RowsOf(n FromItem) RowKind {
	switch n := n.(type) {
	case nil:
		return PublicRows
	case *Scan:
		if n.Table.Public {
			return PublicRows
		}
		return OwnedRows
	case *Joined:
		return max(RowsOf(n.Left), RowsOf(n.Right))
	case *RowCap:
		return RowsOf(n.Of)
	case *Derived:
		kind := PublicRows
		for _, q := range n.Parts {
			kind = max(kind, q.Rows())
		}
		return kind
	default:
		panic("sqlrewrite: relation of no kind")
	}
}

// Rows is what the rows of a query are.
func (q *Query) Rows() RowKind {
	switch {
	case q.Block:
		return ReleasedRows
	case q.Set != nil:
		return max(q.Set.Left.Rows(), q.Set.Right.Rows())
	default:
		return RowsOf(q.From)
	}
}

// KeepsRows reports whether each row stems from one released row, whose number it carries.
func (q *Query) KeepsRows() bool { return q.Block || q.Stem() != nil }

// Stem is the item of FROM that has the number of the released row that each row stems from; nil where there is none, or two.
func (q *Query) Stem() *Leaf {
	if q.Set != nil || q.Distinct || q.Grouped {
		return nil
	}
	return stemOf(q.From)
}

// stemOf is that of an item of FROM.
func stemOf(n FromItem) *Leaf {
	if d := stemItem(n); d != nil {
		return &d.Leaf
	}
	return nil
}

// Wrap gives the outputs names by which ORDER BY can order the result as a whole.
func (l *Query) Wrap() {
	for i, out := range l.Outputs {
		t := OutputType(out.Expr.Typ())
		if RawEnum(l, i) {
			t = catalog.Enum
		}
		l.Wrapped = append(l.Wrapped, &Field{Column: &catalog.Column{Name: out.Name, Type: t, TypMod: -1}, Relation: "d",
			Printed: OutputColumn(i)})
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
func RawEnum(l *Query, i int) bool {
	f := PlainField(l.Outputs[i].Expr)
	return l.Set == nil && !l.Block && f != nil && f.Type == catalog.Enum
}
