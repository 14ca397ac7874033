package algebra

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/syntax"
)

// BoundQuery is a query whose names and types are settled: one release block over one table, and what is computed from it. One that reads
// nobody's rows has no block: Post is the whole query, and Source is nil.
type BoundQuery struct {
	Facts      *StatementFacts
	Pairs      *big.Int // rows that one row of a unit can meet
	Fan        *big.Int // tuples that one row of a prepared copy is in at most; nil: nothing bounds them
	Spare      int64    // by how many ns each row could cost more than was found, and one unit still fit
	At         fault.Position
	Load       Load
	Source     *Relation // what is read
	Where      Expr      // over columns; nil: none
	Keys       []GroupKey
	Listed     []Listed    // tuples of keys: of their combinations no others appear
	Statistics []Statistic // the releases, each once (A07)
	Estimators []Estimator // what outputs, HAVING and ORDER BY may refer to

	Outputs []Output // of the answer, over keys and values as far as they can be followed
	Having  Expr     // over keys and values; nil: none
	OrderBy []Ordering
	Limit   *int64
	Offset  int64
	Top     int64 // so many groups are selected by their one statistic; 0: all are released

	// What is computed from the block's rows by other SELECTs; nil: nothing. having, orderBy, limit and offset are the block's own.
	Post  *Query
	Inner []Output // the outputs of the block's own SELECT under that
	Scans []*Scan  // the public tables that are read above the block

	// Blocks are the release blocks of a statement that has several, in the order in which they are bound; nil: it has one at most. Then Post
	// is over all of them, and Keys, Statistics and Estimators are theirs, one block after another; statistics of equal blocks stand once.
	Blocks []*BoundQuery

	// Bought are the values that a block takes as arguments: they are released before its statements run.
	Bought []Purchase
	// Argument: the block's value is an argument of another one, and nothing else is computed from it.
	Argument bool

	Part    Part       // of a block that counts a part of the rows of another one: which
	Within  []GroupKey // the keys of that other one, of which all groups are added up; private ones have no domain
	Reports bool       // of several blocks: those after the first count parts of it
}

// Purchase is a value of another block, which is released first. It is clamped to bounds, as a released value may be.
type Purchase struct {
	Block, Estimator int // of the statement's blocks, and of that block's estimators
	Name             string
	Within           *Bounds
}

// Load is what a statement does beside what its query says.
type Load struct {
	Runs int64 // how often it runs for one answer; 0: once
	Row  int64 // ns of each row
	Dear bool  // a row that was let through uncapped was proven to take too long
}

// Output is one column of the answer.
type Output struct {
	Name string `node:"1,-"`
	Expr Expr   `node:"2"`
}

// Ordering is one key of ORDER BY over keys and values.
type Ordering struct {
	Expr       Expr `node:"1"`
	Descending bool `node:"2"`
	NullsFirst bool `node:"3"`
}

// GroupKey is one expression of GROUP BY.
type GroupKey struct {
	X    Expr           `node:"1"`
	Name string         `node:"2,-"` // for people: the column's, or the expression as text
	At   fault.Position `node:"3,-"`
	// Domain holds the keys that appear, all of them, whatever the rows say; nil for private keys, which are selected.
	Domain []catalog.Key `node:"4,encoded"`
	Node   syntax.Expr   `node:"5,-"` // nil for a column
	// Declared is the number of keys before WHERE narrowed them.
	Declared int `node:"6,-"`
	// Unlisted are the keys before a list narrowed them; nil: none did.
	Unlisted []catalog.Key `node:"7,-"`
}

func (k GroupKey) Private() bool { return k.Domain == nil }

// Narrowed reports whether conditions of the question narrow the bounds of a statistic.
func (q *BoundQuery) Narrowed() bool {
	if slices.ContainsFunc(q.Blocks, (*BoundQuery).Narrowed) {
		return true
	}
	return slices.ContainsFunc(q.Statistics, func(m Statistic) bool {
		return m.Grid != nil && m.Grid.Narrowed || m.GridY != nil && m.GridY.Narrowed
	})
}

// PublicTuples is the number of tuples of keys that appear: the combinations of the keys' domains and of lists of tuples; 1 without keys.
// Only for blocks without private keys.
func (q *BoundQuery) PublicTuples() *big.Int {
	n := big.NewInt(1)
	for i, k := range q.Keys {
		if l, _ := q.ListOf(i); l < 0 {
			n.Mul(n, big.NewInt(int64(len(k.Domain))))
		}
	}
	for _, l := range q.Listed {
		n.Mul(n, big.NewInt(int64(len(l.Tuples))))
	}
	return n
}

// Combinations is the number of combinations of the keys' domains, which bounds the groups of a statement; 1 without keys.
func (q *BoundQuery) Combinations() *big.Int {
	n := big.NewInt(1)
	for _, k := range q.Keys {
		n.Mul(n, big.NewInt(int64(len(k.Domain))))
	}
	return n
}

// Releases reports whether the query reads rows of privacy units.
func (q *BoundQuery) Releases() bool { return q.Source != nil }

// Private reports whether any key must be selected; then the whole tuple is.
func (q *BoundQuery) Private() bool {
	for _, k := range q.Keys {
		if k.Private() {
			return true
		}
	}
	return false
}

// KeepsRows reports whether each row of the answer stems from one released row.
func (q *BoundQuery) KeepsRows() bool { return q.Post == nil || q.Post.KeepsRows() }

func BoolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Count is a fact that a statement rests on: how many rows a public table has, or how many share a value of a column.
type Count struct {
	Table  *catalog.Table
	Column string // "": rows
	Key    string // a column that is unique by itself, instead
}

// Meeting is how the rows of two sides of a join find each other.
type Meeting struct {
	L, R       *Relation
	Pairs      []Pair
	LKey, RKey *RowKey // by which a row of the other side meets at most one row of this one; nil: none
	Kind       syntax.JoinKind
}

// Count makes facts part of what the statement requires of public tables.
func (e *StatementFacts) Count(all ...Count) {
	for _, c := range all {
		if c.Key != "" {
			e.Rely(Reliance{c.Table, []string{c.Key}})
		} else if !slices.Contains(e.Counted, c) {
			e.Counted = append(e.Counted, c)
		}
	}
}
