package algebra

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Binder resolves one query against one snapshot.
type Binder struct {
	Text     string
	Snapshot *catalog.Snapshot
	Zone     string        // of the session, where that is not UTC
	Whole    *syntax.Query // the statement that contains Query; nil: not known
	Query    *syntax.Query
	InFrom   bool // its outputs are read by their own names alone
	Bound    *BoundQuery
	CTEs     *Environment              // what FROM can name besides tables
	Outer    *Binder                   // of the query around, whose rows conditions here may name; nil: none
	Beside   *Relation                 // what a query under LATERAL sees; nil: nothing
	Side     *Side                     // of a join in the query around, on which a query in FROM stands
	Sources  map[*syntax.Query]*Source // of queries whose FROM is bound already, to find out what their rows are; nil: none
	// Merged are the columns of FULL JOIN USING, each of which is a value of both sides. Nil where rows belong to units: there it is one
	// side's.
	Merged map[*Field]Expr
	// Value binds a query over released rows that stands for a value among the outputs of a release block; nil: none can stand there.
	Value func(*syntax.Scalar) (Expr, error)
	// Buy binds a query over rows of units that stands for a value in a condition of a release block; nil: none can stand there. It gives
	// nil for a query that releases nothing.
	Buy   func(*syntax.Scalar) (Expr, error)
	Level *Level // nil: the query is not one set of several
	// Constants are the keys that are the same in all groups, each a test of an id for NULL, with their values.
	Constants []GroupKey
	// KeysAt are the places among the keys of what GROUP BY lists, but for constants.
	KeysAt []int
	Wide   bool // see [Opened.Wide]
}

// Level is one set of ROLLUP, CUBE or GROUPING SETS as a query of its own.
type Level struct {
	Absent []GroupKey // the keys of the other sets alone, as far as expressions name them
}

// Steps counts the steps of planning.
func (b *Binder) Steps() *steps.Count { return b.Bound.Shared().Steps }

func (b *Binder) Position(at syntax.Pos) fault.Position { return scalar.Position(b.Text, at) }

// ValueOf is what the name of a field means.
func (b *Binder) ValueOf(f *Field) Expr {
	if e, merged := b.Merged[f]; merged {
		return e
	}
	return Column{Of: f}
}

func (b *Binder) At(n interface{ At() syntax.Pos }) fault.Position { return b.Position(n.At()) }

func (b *Binder) Unsupported(n interface{ At() syntax.Pos }, what, hint string) error {
	return fault.Unsupported(b.At(n), what, hint)
}

func (b *Binder) Mismatch(n interface{ At() syntax.Pos }, message, hint string) error {
	return fault.TypeMismatch(b.At(n), message, hint)
}

// NoOperator says that an operator does not exist for its operands.
func (b *Binder) NoOperator(n syntax.Expr, op syntax.Operator, l, r Expr) error {
	hint := "both sides must be of one kind; cast one of them"
	if isText := scalar.FamilyOf(l.Typ()) == scalar.TextFamily || scalar.FamilyOf(r.Typ()) == scalar.TextFamily; isText && op == syntax.Add {
		hint = "write || between texts"
	}
	return b.Mismatch(n, fmt.Sprintf("there is no operator %s %s %s", scalar.TypeName(l.Typ()), op, scalar.TypeName(r.Typ())), hint)
}

// Opened is a statement that is being bound: what its queries share.
type Opened struct {
	Text     string
	Query    *syntax.Query
	Snapshot *catalog.Snapshot
	Steps    *steps.Count
	Zone     string      // of the session, where that is not UTC
	List     List        // without Of, keys are what policy and text give by themselves
	Load     Load        // of the release block's statement
	Wide     bool        // conditions do not narrow bounds: as it was before they did
	Bound    *BoundQuery // what the whole was bound to; nil until then
	Kinds    map[*syntax.Query]RowKind
	Sources  map[*syntax.Query]*Source
	Blocks   []*BoundQuery            // the release blocks so far
	BlockOf  []*syntax.Query          // what each was bound from
	Levels   *Query                   // over its cells, where it has ROLLUP, CUBE or GROUPING SETS
	Apart    map[*syntax.Query]*Query // what queries are whose sets of groups are released one by one
	// OneByOne releases all sets of groups one by one: totals that are sums of cells stand beside no other release.
	OneByOne bool
	Beside   bool // they would have stood there
	Items    int  // items of FROM so far: each use of a CTE is one
	Followed int  // aggregates and windows over released rows so far that are followed to these
	Scans    []*Scan
	Merged   map[*Field]Expr // of all its binders
	Origins  map[*Field]Expr
	Sizes    map[*Field]int // of origins
}

func NewOpened(text string, query *syntax.Query, snapshot *catalog.Snapshot) *Opened {
	return &Opened{Text: text, Query: query, Snapshot: snapshot, Kinds: make(map[*syntax.Query]RowKind),
		Sources: make(map[*syntax.Query]*Source), Apart: make(map[*syntax.Query]*Query),
		Merged: make(map[*Field]Expr), Origins: make(map[*Field]Expr), Sizes: make(map[*Field]int)}
}

// Again is a query of the statement, to be bound anew.
func (o *Opened) Again(query *syntax.Query) *Opened {
	again := NewOpened(o.Text, query, o.Snapshot)
	again.Zone, again.List, again.Load, again.Steps, again.Wide = o.Zone, o.List, o.Load, o.Steps, o.Wide
	return again
}

// Source is the FROM of a query over private rows once it is bound.
type Source struct {
	*Binder
	Refused error // nil: it is not
	Taken   bool  // the query's own binding has gone on from it; another use of the query is bound by itself
}

// Of is the FROM as that of another query with the same one, which goes on from it.
func (s *Source) Of(q *syntax.Query) *Source {
	s.Taken = true
	b := *s.Binder
	b.Query = q
	return &Source{Binder: &b, Refused: s.Refused}
}

// Take makes a FROM that is bound already, with what its binding has found out, that of b, which binds the same query.
func (b *Binder) Take(s *Source) error {
	s.Taken = true
	if s.Refused != nil {
		return s.Refused
	}
	b.Bound.Source = s.Bound.Source
	own, found := b.Bound.Shared(), s.Bound.Shared()
	own.Rely(found.Relied...)
	own.Count(found.Counted...)
	own.Caps = append(own.Caps, found.Caps...)
	own.KeyWork += found.KeyWork
	for _, l := range found.leaves {
		if err := b.AddLeaf(l); err != nil {
			return err
		}
	}
	return nil
}

// MaxItems caps the items of FROM after each use of a CTE became a query of its own: a chain of CTEs that use each other twice
// would double with every link.
const MaxItems = 64

// Environment are the CTEs that a query can name, the nearest first.
type Environment struct {
	CTE   *syntax.CTE
	Outer *Environment // what the CTE's own query can name
}

// With adds a query's own CTEs.
func (e *Environment) With(ctes []syntax.CTE) *Environment {
	for i := range ctes {
		e = &Environment{CTE: &ctes[i], Outer: e}
	}
	return e
}

// Find is the CTE that a table's name means; nil for none.
func (e *Environment) Find(t *syntax.Table) *Environment {
	for ; e != nil && t.Schema == ""; e = e.Outer {
		if e.CTE.Name == t.Name {
			return e
		}
	}
	return nil
}

// List is every CTE of the environment that a name can still mean, the outermost first.
func (e *Environment) List() []syntax.CTE {
	var all []syntax.CTE
	for ; e != nil; e = e.Outer {
		if !slices.ContainsFunc(all, func(c syntax.CTE) bool { return c.Name == e.CTE.Name }) {
			all = append(all, *e.CTE)
		}
	}
	slices.Reverse(all)
	return all
}
