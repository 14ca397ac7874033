// Package relation derives the owners of the rows of tables, joins and groups, and how many rows agree in given columns. It knows values,
// and the pinned metadata of tables. It does not know the grammar of queries, nor what a statement releases.
//
// # Map
//
// This file refers to no other, and each of these to those before it only:
//
//	pins.go    what must still hold when the statement runs
//	ranks.go   numbers of rows in bounded copies (Lemma 16)
//	scan.go    tables, their owners and unique keys
//	pairs.go   joins and equalities
//	limits.go  numbers of rows within a partition (Lemma 3)
//	rows.go    outputs, DISTINCT, UNION ALL, groups; conditions on the unit
//	work.go    how many rows one row meets (Lemma 12)
package relation

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Relation describes the rows of FROM, or of a part of it. Unit by unit they are functions of the unit's rows in the database and of public
// data (Lemma 0): each rule that makes a relation has the proof. While a query's conditions are still to come a row may belong to several
// units; a condition can make them one, and by the end of WHERE there must be one.
//
// *How many rows agree.* A part is what one item of FROM adds. Its limits bound how many of its rows agree in given columns: 1 for a
// unique key, where none of its columns is NULL; 1 for the keys of a GROUP BY, NULLs included. rows() counts the rows that agree in given
// values: a part whose limit's columns are determined adds a factor. Where the factor is 1 its row, hence all its columns, are determined
// too; where it is k there are k such rows at most, and for each of them the other parts are counted as if it were given: at most k times
// as many tuples as one of these rows has. What is determined for each of them is not for all, so a limit of the whole relation counts
// what was before. A value is determined if it is given, equal to a constant or (edges) to what is determined, or computed of what is
// determined. What is given is equal in these rows, not identical: a function of it is determined where equal values are identical
// (follows).
type Relation struct {
	Columns  []Column
	Parts    []*part
	edges    []edge
	fixed    []int // equal to constants
	Solid    map[int]bool
	Units    []*value.Unit
	Roots    []int   // columns that hold the unit, and follow from it
	whole    []limit // of rows of the whole relation
	rankings []ranking
	Domains  map[int]*big.Int // how many values a condition leaves
	Forms    []string         // conditions on the unit alone
	outer    []outerJoin
	cuts     []cut
	Tables   []string // their aliases: only their pinned columns are known

	Once     bool // public rows with groups among them, which are to be computed once for all rows that meet them
	Released int  // the number of the release, of the outermost query or of a piece, whose columns these are; 0: of none
}

// Proof has what the relations of one proof are derived from.
type Proof struct {
	*value.Terms
	On     *catalog.Snapshot
	pins   *pinBook
	stored map[int]bool         // columns that are NULL in no row of their table
	tuples map[counted]*big.Int // counts that one SELECT uses several times; nil outside of that
}

// NewProof begins a proof over the tables of a snapshot, with their pins.
func NewProof(t *value.Terms, on *catalog.Snapshot, pins []Pin) *Proof {
	return &Proof{Terms: t, On: on, pins: &pinBook{given: pins}, stored: make(map[int]bool)}
}

// Column is an output, under the alias of its item of FROM.
type Column struct {
	Table, Name string
	Value       *value.Value
}

type part struct {
	number  int // no other part has it
	limits  []limit
	ids     []int
	public  bool
	written bool          // rows of constants
	most    int64         // bounds the rows of a public table; 0: not known
	equal   map[int]int64 // and its rows that share a value
}

// limit bounds the rows that agree in all of by.
type limit struct {
	by   []int
	rows int64
	sql  bool // except for rows with NULL in one of them
}

// edge means that to is determined, and not NULL, where from is determined.
type edge struct {
	from, to int
	solid    bool // only where from is not NULL
}

// ranking bounds the different tuples of order in each partition.
type ranking struct {
	by, order []int
	places    int64
}

// Numbers gives the numbers of a relation's parts.
func (r *Relation) Numbers() []int {
	all := make([]int, len(r.Parts))
	for i, p := range r.Parts {
		all[i] = p.number
	}
	return all
}

// As gives the relation an alias.
func (r *Relation) As(alias string) *Relation {
	for i := range r.Columns {
		r.Columns[i].Table = alias
	}
	r.Tables = nil
	return r
}

// Find looks a column up; nil if there is none.
func (r *Relation) Find(table, name string) *value.Value {
	var found *value.Value
	for _, c := range r.Columns {
		if c.Name == name && (table == "" || c.Table == table) {
			if found != nil {
				refuse("a name of two columns")
			}
			found = c.Value
		}
	}
	return found
}

// Hides reports whether a name that is not among the columns may still be one of the relation: a column that is not pinned, one that every
// table has (tableoid), or an output that PostgreSQL names itself (tree.NameOf).
func (r *Relation) Hides(table string) bool {
	if table == "" {
		return len(r.Tables) > 0 || slices.ContainsFunc(r.Columns, func(c Column) bool { return c.Name == "" })
	}
	return slices.Contains(r.Tables, table) || slices.ContainsFunc(r.Columns, func(c Column) bool { return c.Table == table })
}

// Owner gives the one unit of each row; nil: the rows are public.
func (r *Relation) Owner() *value.Unit {
	var one *value.Unit
	for _, u := range r.Units {
		if one != nil && u.Find() != one {
			refuse("rows of two units")
		}
		one = u.Find()
	}
	return one
}

// Rows bounds the rows that agree in the given values, those of one unit if owned; nil: unbounded.
func (r *Relation) Rows(d *Proof, given []int, owned bool) *big.Int {
	known := make(knowledge, 16)
	for _, id := range given {
		known.add(id, r.Solid[id], false)
	}
	for _, id := range r.fixed {
		known.add(id, true, false)
	}
	if owned {
		for _, id := range r.Roots {
			known.add(id, true, false)
		}
	}
	total := big.NewInt(1)
	var whole knowledge // before a part of several rows
	left := slices.Clone(r.Parts)
	for moved := true; moved; {
		moved = r.along(d, known)
		at, factor := -1, int64(0) // the least factor first: what it determines may lessen the others
		for i, p := range left {
			if least := p.least(d, known); least >= 0 && (at < 0 || least < factor) {
				at, factor = i, least
			}
		}
		if at < 0 || factor > 1 && moved {
			continue
		}
		total.Mul(total, big.NewInt(factor))
		if factor > 1 && whole == nil {
			whole = maps.Clone(known)
		}
		for _, id := range left[at].ids {
			known.add(id, r.Solid[id], true)
		}
		left, moved = slices.Delete(slices.Clone(left), at, at+1), true
	}
	if len(left) > 0 {
		total = nil
	}
	if whole == nil {
		whole = known
	}
	for _, l := range r.whole {
		if l.holds(d, whole) && (total == nil || total.Cmp(big.NewInt(l.rows)) > 0) {
			total = big.NewInt(l.rows)
		}
	}
	return total
}

// along adds the values that the edges determine, and reports whether any is new.
func (r *Relation) along(d *Proof, known knowledge) (moved bool) {
	for _, e := range r.edges {
		if !known[e.to].solid && (known[e.from].solid || !e.solid && d.determined(e.from, known)) {
			known.add(e.to, true, false)
			moved = true
		}
	}
	return moved
}

// least gives the smallest limit that holds; -1: none does.
func (p *part) least(d *Proof, known knowledge) int64 {
	least := int64(-1)
	for _, l := range p.limits {
		if (least < 0 || l.rows < least) && l.holds(d, known) {
			least = l.rows
		}
	}
	return least
}

func (l limit) holds(d *Proof, known knowledge) bool {
	for _, id := range l.by {
		if l.sql && !known[id].solid || !l.sql && !d.determined(id, known) {
			return false
		}
	}
	return true
}

// knowledge maps the ids of known values to proven facts: each is equal to given ones, as SQL compares, and possibly more.
type knowledge map[int]fact

type fact struct {
	known bool
	solid bool // not NULL
	exact bool // not only equal, but identical: of one row
}

func (k knowledge) add(id int, solid, exact bool) {
	f := k[id]
	k[id] = fact{true, f.solid || solid, f.exact || exact}
}

// determined reports whether a value follows from known ones.
func (d *Proof) determined(id int, known knowledge) bool {
	follows, _ := d.follows(id, known)
	return follows
}

// follows reports whether a value follows from known ones, and whether it is then identical wherever they are known, or equal only: 1.0
// is equal to 1.00, and their texts and quotients are not. So functions follow from what is identical only.
func (d *Proof) follows(id int, known knowledge) (follows, exact bool) {
	defer steps.Visit(d.Steps).Leave()
	if id < 0 {
		return false, false // an aggregate: of other rows too
	}
	if f := known[id]; f.known {
		return true, f.exact || d.Identical(id)
	}
	t := d.Term(id)
	if strings.HasPrefix(t.Op, "over ") || len(t.Args) == 0 && strings.HasPrefix(t.Op, "#") {
		return false, false
	}
	for _, a := range t.Args {
		if _, identical := d.follows(a, known); !identical {
			return false, false
		}
	}
	return true, true
}

// all reports whether every value follows from known ones.
func (d *Proof) all(ids []int, known knowledge) bool {
	return !slices.ContainsFunc(ids, func(id int) bool { return !d.determined(id, known) })
}

// ofUnit gives the values that the unit decides.
func (r *Relation) ofUnit() knowledge {
	known := make(knowledge)
	for _, id := range append(slices.Clone(r.Roots), r.fixed...) {
		known.add(id, true, false)
	}
	return known
}

// Within reports whether rows of one unit that agree in ids agree in others.
func (r *Relation) Within(d *Proof, others, ids []int) bool {
	known := r.ofUnit()
	for _, id := range ids {
		known.add(id, false, false)
	}
	return d.all(others, known)
}

// Larger gives the larger number.
func Larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// NeverNull reports whether a value is stored as NOT NULL, or computed from such values alone. Only bounds on work use it.
func (d *Proof) NeverNull(v *value.Value) bool {
	return !slices.ContainsFunc(v.Nulls, func(id int) bool { return !d.stored[id] })
}

// Follow reports whether values follow from others, which are identical.
func (d *Proof) Follow(values, from []int) bool {
	known := make(knowledge)
	for _, id := range from {
		known.add(id, true, true)
	}
	return d.all(values, known)
}

// Owned are the rows of a relation, each of one unit, when all that is said of them is known.
type Owned struct {
	*Relation
	d *Proof
}

// Owned gives the rows of a relation, of which none is nobody's.
func (d *Proof) Owned(r *Relation) *Owned {
	if !slices.ContainsFunc(r.Roots, func(id int) bool { return r.Solid[id] }) {
		refuse("rows without a unit are not left out")
	}
	return &Owned{r, d}
}

// Rows bounds the rows of one unit that agree in the given values; nil: unbounded.
func (o *Owned) Rows(given ...int) *big.Int { return o.Relation.Rows(o.d, given, true) }

// Within reports whether rows of one unit that agree in ids agree in others.
func (o *Owned) Within(others []int, ids ...int) bool { return o.Relation.Within(o.d, others, ids) }

// Ranked bounds the different tuples of values among a unit's rows, by a ranking of them; nil: no ranking does.
func (o *Owned) Ranked(values []int) (least *big.Int) {
	for _, k := range o.rankings {
		known := make(knowledge)
		for _, id := range k.order {
			known.add(id, false, false)
		}
		if o.d.all(values, known) && o.Within(k.by) && (least == nil || least.Cmp(big.NewInt(k.places)) > 0) {
			least = big.NewInt(k.places)
		}
	}
	return least
}

// refuse ends a derivation.
func refuse(format string, args ...any) { tree.Refuse(format, args...) }

// cut bounds the rows of several parts that a query in FROM leaves.
type cut struct {
	parts  []*part
	limits []limit
}

// outerJoin is l LEFT JOIN r, which also has the rows of l without a partner.
type outerJoin struct {
	left  *Relation
	right []*part
	shown []int  // columns of the right side as the join has them
	on    []edge // what holds in each tuple that has a row of the right side
}

// counted names a count of tuples; see [Proof].
type counted struct {
	of    *Relation
	fixed *part
}

type pinBook struct{ given []Pin }

// Pin is a table's metadata that will hold while the statement runs.
type Pin struct {
	Schema, Table string
	OID           uint32
	Columns       []PinnedColumn
	Keys          [][]string // sets of its columns that are unique, but for rows with NULL in one of them
	MostRows      int64      // bounds the rows of the table, a public one; 0: nothing does
	Checks        []Check    // ranges that validated constraints hold columns to
}

// PinnedColumn is one column of a [Pin].
type PinnedColumn struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypMod  int32
	NotNull bool
	// MostEqual bounds how many rows of the table, a public one, have one value; 0: nothing does.
	MostEqual int64
}

// Check is a range in which the database keeps a column of a pinned table.
type Check struct {
	Column string
	Lo, Hi int64
}
