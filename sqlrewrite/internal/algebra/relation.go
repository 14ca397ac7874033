package algebra

import (
	"errors"
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// LabelFields gives the fields whose names are ambiguous, or all of them, a text that is not.
func (r *Relation) LabelFields(all bool) {
	count := map[string]int{}
	for _, p := range r.Parts {
		for _, f := range p.Fields {
			count[f.Name]++
		}
	}
	for _, p := range r.Parts {
		for _, f := range p.Fields {
			if all || count[f.Name] > 1 {
				f.Label = p.Alias + "." + f.Name
			}
		}
	}
}

// PartOf is the name of the part that a field belongs to.
func (r *Relation) PartOf(f *Field) string {
	for _, p := range r.Parts {
		if slices.Contains(p.Fields, f) {
			return p.Alias
		}
	}
	return ""
}

// Joined is a join as it is printed: inner, left, full (of public tables only) or cross, where on is nil.
type Joined struct {
	Kind        syntax.JoinKind `node:"1,by=join"`
	Left, Right FromItem        `node:"2 3"`
	On          Expr            `node:"4"`
	Meets       *Meeting        `node:"5,-"` // nil: each row of the left side meets one of the right at most
	Semi        bool            `node:"6,-"` // it stands for EXISTS or IN
	Public      bool            `node:"7,-"` // over large public tables
}

// Pair is an equality between a field of the left and one of the right side of a join, that holds on every row that is used.
type Pair struct{ L, R *Field }

// VisibleNames are the names of a relation's fields that exist for analysts.
func (r *Relation) VisibleNames() []string {
	var names []string
	for _, f := range r.Fields {
		if f.Exposed || f.Unit {
			names = append(names, f.Name)
		}
	}
	return names
}

func (r *Relation) Has(f *Field) bool {
	return slices.ContainsFunc(r.Parts, func(p FromPart) bool { return slices.Contains(p.Fields, f) })
}

// SameEquality reports whether the equality of the two types tells values apart as a unique key of either does. A float beside a
// numeric does not: many numerics are one float.
func SameEquality(a, b catalog.Type) bool {
	return a == b && !scalar.IsFloat(a) || a.IsInteger() && b.IsInteger()
}

// Equal is x = y.
func Equal(x, y *Field) Expr {
	return Binary{Op: syntax.Eq, L: Column{Of: x}, R: Column{Of: y}, T: catalog.Bool}
}

// All is the conjunction of conditions; nil when there are none.
func All(conditions []Expr) Expr {
	var e Expr
	for _, c := range conditions {
		if e == nil {
			e = c
		} else {
			e = Binary{Op: syntax.And, L: e, R: c, T: catalog.Bool}
		}
	}
	return e
}

// Note adds a note for the answers over a relation, once.
func (r *Relation) Note(code, format string, args ...any) {
	n := Note{Code: code, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(r.Notes, n) {
		r.Notes = append(r.Notes, n)
	}
}

// pendingPath is the way from a relation's rows to their unit that is not walked yet: where a query joins the next table itself,
// that row is the one the path leads to, and need not be read twice.
type pendingPath struct {
	From *Field // refers to the unique column to.column
	To   Anchor
}

// errPath: the catalog checks that the tables and columns of a path are there.
var ErrPath = errors.New("sqlrewrite: a path leads nowhere")

// startPath begins the path of a table whose rows reach their unit through another table's.
func (b *Binder) startPath(r *Relation, t *catalog.Table, from *Field) error {
	next, ok := b.Snapshot.Table(t.Unit.ToSchema, t.Unit.ToTable)
	if !ok {
		return fault.Internal(ErrPath)
	}
	r.Pending = &pendingPath{From: from, To: Anchor{next, t.Unit.ToColumn}}
	from.Anchor = r.Pending.To
	return nil
}

// Named finds a field by name, whether or not analysts may name it.
func (p FromPart) Named(name string) (*Field, bool) {
	for _, f := range p.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// Note tells the analyst what the answer does not say by itself; Code is stable, Text is for people.
type Note struct{ Code, Text string }

// Relation is what FROM, or a part of it, means: rows with fields, each row of at most one privacy unit. The rows of a unit are a function
// of that unit's own rows and of public tables: taking a unit out takes its rows out, and moves no other's. docs/sql/relations.md proves
// that for each way in which one is made.
type Relation struct {
	Node   FromItem
	Parts  []FromPart // what qualified names resolve to
	Fields []*Field   // what other names resolve to, in the order of *
	// Owners are fields that hold the id of the privacy unit, all of them the same one. Rows where the first is NULL belong to
	// nobody and are left out of every release.
	Owners []*Field
	// Pending is set instead of owners while the tables that lead to the unit are not part of the relation. Without both it is public.
	Pending *pendingPath
	Table   string   // the table whose rows are counted, for people
	Keys    []RowKey // sets of fields that no two rows share, as far as the catalog proves
	Lateral bool     // its rows are made anew beside each row of another relation: its keys tell them apart only there
	// MaxRows and maxGroups are the policy's: what one unit may contribute to one group, and to how many groups; 0: it does not say.
	MaxRows, MaxGroups int64
	MaxValues          int64  // how many different values of one unit one group counts; 0: as many as rows
	MaxTotal           int64  // rows of one unit in all groups together; 0: MaxRows in each of MaxGroups
	Notes              []Note // what answers over it should know
}

// FromPart is one item of FROM under the name that the query gives it.
type FromPart struct {
	Schema string // of a table that has no other name; "" for all else
	Alias  string
	Fields []*Field
}

// RowKey is a set of fields that no two rows of a relation share (rows where one is NULL apart), and what that rests on.
type RowKey struct {
	Fields []*Field
	Relies []Reliance
}

// Reliance is a unique key of a table that must still be there when the statement runs.
type Reliance struct {
	Table   *catalog.Table
	Columns []string
}

// FromItem is how a relation prints: [*Scan], [*Joined], [*Derived] or [*RowCap].
//
//nodes:23 Scan, 24 Joined, 25 Derived, 26 RowCap
type FromItem interface{ fromItem() }

// Leaf is a relation with a name in the statement.
type Leaf struct {
	Alias  string   `node:"1,-"`    // "" while it is the only one
	Name   string   `node:"2,same"` // what the query calls it, for people; "" where that is its table's name
	Fields []*Field `node:"3,same,by=declared"`
}

// Scan is a table of the protected database.
type Scan struct {
	Leaf    `node:"1"`
	Table   *catalog.Table `node:"2"`
	Reached string         `node:"3,-"` // the column by which a path from another table arrives here; empty: none does
}

// StatementFacts is what the binders of one statement share.
type StatementFacts struct {
	leaves  []*Leaf
	Relied  []Reliance
	Counted []Count   // facts of public tables that bound the statement's work
	Caps    []*RowCap // some may be none
	Steps   *steps.Count
	Once    bool // each column of a query in FROM is computed once: the question leaves no time to compute one again
	KeyWork int  // values looked at to find the keys that columns of queries in FROM can have, of domain.MaxWork (A44)
	List    List // without Of, keys are what policy and text give by themselves
}

// Joins reports whether the statement reads several relations.
func (e *StatementFacts) Joins() bool { return len(e.leaves) > 1 }

// maxLeaves caps the relations of one statement: queries of WITH are written out wherever they are named.
const maxLeaves = 64

// Rely makes a proof's keys part of what the statement requires of its tables.
func (e *StatementFacts) Rely(all ...Reliance) {
	for _, r := range all {
		known := func(k Reliance) bool { return k.Table == r.Table && slices.Equal(k.Columns, r.Columns) }
		if !slices.ContainsFunc(e.Relied, known) {
			e.Relied = append(e.Relied, r)
		}
	}
}

// NameLeaves gives every relation its name in the statement. Names of the analyst's are never printed, and two spellings of one
// question print alike.
func (e *StatementFacts) NameLeaves() {
	if len(e.leaves) < 2 {
		return
	}
	for i, l := range e.leaves {
		l.Alias = fmt.Sprintf("t%d", i+1)
		for _, f := range l.Fields {
			f.Relation = l.Alias
		}
	}
}

// Owned reports whether rows belong to privacy units.
func (r *Relation) Owned() bool { return len(r.Owners) > 0 || r.Pending != nil }

// Owner is the field by which the rows of units are told apart; nil for a public relation.
func (r *Relation) Owner() *Field {
	if len(r.Owners) == 0 {
		return nil
	}
	return r.Owners[0]
}

// UnitName names the privacy unit for people.
func (r *Relation) UnitName() string {
	if o := r.Owner(); o != nil {
		return o.Name
	}
	return "unit"
}

// UnitText is the privacy unit's id as the query can name it; empty where no column holds it.
func (r *Relation) UnitText() string {
	if r == nil {
		return ""
	}
	switch o := r.Owner(); {
	case o == nil || r.PartOf(o) == "":
		return ""
	case len(r.Parts) > 1:
		return scalar.NameText(r.PartOf(o), o.Name)
	default:
		return scalar.NameText(o.Name)
	}
}

// OnePerUnit finds the proof that no unit has two rows.
func (r *Relation) OnePerUnit() (RowKey, bool) { return r.OneAmong(nil) }

// OneAmong finds the proof that no unit has two rows that agree in the given fields, none of which is NULL.
func (r *Relation) OneAmong(given []*Field) (RowKey, bool) {
	for _, k := range r.Keys {
		if !slices.ContainsFunc(k.Fields, func(f *Field) bool { return !slices.Contains(r.Owners, f) && !slices.Contains(given, f) }) {
			return k, true
		}
	}
	return RowKey{}, false
}

// NewFromPart is a table under an alias.
func NewFromPart(t *catalog.Table, alias string, fields []*Field) FromPart {
	p := FromPart{Alias: alias, Fields: fields}
	if alias == t.Name {
		p.Schema = t.Schema
	}
	return p
}

// Is reports whether a column's name says that it is one of the part.
func (p FromPart) Is(schema, qualifier string) bool {
	return p.Alias == qualifier && (schema == "" || p.Schema == schema)
}

// ScanOf is the relation of a table under an alias, on a side of a join.
func (b *Binder) ScanOf(t *catalog.Table, alias string, side *Side) (*Relation, error) {
	s := &Scan{Table: t}
	if alias != t.Name {
		s.Name = alias
	}
	r := &Relation{Node: s, Table: t.Name, MaxRows: t.MaxRows, MaxGroups: t.MaxGroups, MaxValues: t.MaxValues, MaxTotal: t.MaxTotal}
	byName := map[string]*Field{}
	for _, c := range t.Columns {
		f := &Field{Column: c, Side: side, Table: t.Name, Public: t.Public}
		s.Fields, byName[c.Name] = append(s.Fields, f), f
	}
	for _, columns := range t.Unique {
		k := RowKey{Relies: []Reliance{{t, columns}}}
		for _, name := range columns {
			k.Fields = append(k.Fields, byName[name])
		}
		r.Keys = append(r.Keys, k)
		if len(columns) == 1 && !t.Public {
			k.Fields[0].Anchor = Anchor{t, columns[0]}
		}
	}
	switch unit := byName[t.Unit.Column]; t.Unit.Kind {
	case catalog.NoUnit:
	case catalog.RowUnit:
		unit.Unit, unit.Held = true, true // its key is pinned, and that it is not null
		r.Owners = []*Field{unit}
		r.Keys = append(r.Keys, RowKey{Fields: r.Owners, Relies: []Reliance{{t, []string{unit.Name}}}})
	case catalog.ColumnUnit:
		unit.Unit = true
		unit.Held = t.Copy != nil // where the column is pinned to be there
		r.Owners = []*Field{unit}
	case catalog.PathUnit:
		if err := b.startPath(r, t, unit); err != nil {
			return nil, err
		}
	default:
		return nil, fault.Internal(fmt.Errorf("sqlrewrite: table %s has an unknown kind of unit", t.Name))
	}
	r.Parts, r.Fields = []FromPart{NewFromPart(t, alias, s.Fields)}, s.Fields
	return r, b.AddLeaf(&s.Leaf)
}

// AddLeaf counts a relation of the statement.
func (b *Binder) AddLeaf(l *Leaf) error {
	if b.Bound.Shared().leaves = append(b.Bound.Shared().leaves, l); len(b.Bound.Shared().leaves) > maxLeaves {
		return fault.TooComplex(b.Position(b.Query.Pos), fmt.Sprintf("the query reads more than %d relations", maxLeaves))
	}
	return nil
}

// Field finds a field that analysts may name: one that is exposed, or the id of a unit.
func (p FromPart) Field(name string) (*Field, bool) {
	for _, f := range p.Fields {
		if f.Name == name {
			return f, f.Exposed || f.Unit
		}
	}
	return nil, false
}

// Shared are the facts of the whole statement.
func (q *BoundQuery) Shared() *StatementFacts {
	if q.Facts == nil {
		q.Facts = &StatementFacts{}
	}
	return q.Facts
}

// LeavesIn are the relations of an item that have names of their own.
func LeavesIn(n FromItem) []*Leaf {
	switch n := n.(type) {
	case *Scan:
		return []*Leaf{&n.Leaf}
	case *Derived:
		return []*Leaf{&n.Leaf}
	case *Joined:
		return append(LeavesIn(n.Left), LeavesIn(n.Right)...)
	case *RowCap:
		return LeavesIn(n.Of)
	default:
		panic("sqlrewrite: relation without leaves")
	}
}

// Holds reports whether a field is one of the item's rows.
func Holds(n FromItem, f *Field) bool {
	return slices.ContainsFunc(LeavesIn(n), func(l *Leaf) bool { return slices.Contains(l.Fields, f) })
}

// OfPeople reports whether both sides are rows of people: a path, a join on their units, or EXISTS.
func (n *Joined) OfPeople() bool {
	if n.Semi {
		return true
	}
	if n.Meets == nil {
		return n.On != nil
	}
	return n.Meets.L.Owned() && n.Meets.R.Owned()
}

// MeetsPublic reports whether one side is rows of people and the other one public rows.
func (n *Joined) MeetsPublic() bool {
	d, ok := n.Right.(*Derived)
	return n.Meets != nil && n.Meets.L.Owned() != n.Meets.R.Owned() && !(ok && d.Lateral)
}

// Mark is a field that is not NULL where a join that stands for EXISTS or IN found a row, or a join with public rows one of these; nil:
// none is known.
func (n *Joined) Mark() *Field {
	if d, ok := n.Right.(*Derived); ok && n.Semi {
		return d.Fields[0]
	}
	if !n.MeetsPublic() {
		return nil
	}
	public := n.Right
	if n.Meets.R.Owned() {
		public = n.Left
	}
	is := func(f *Field) bool { return f.NotNull() && f.Exposed && Holds(public, f) }
	for _, p := range n.Meets.Pairs { // it is read in any case
		for _, f := range []*Field{p.L, p.R} {
			if is(f) {
				return f
			}
		}
	}
	for _, l := range LeavesIn(public) {
		if i := slices.IndexFunc(l.Fields, is); i >= 0 {
			return l.Fields[i]
		}
	}
	return nil
}

// Derived is a query in FROM: UNION ALL of its parts, above the release block one query.
type Derived struct {
	Leaf    `node:"1"`
	Parts   []*Query `node:"2"`
	Lateral bool     `node:"3"` // its only part reads no rows but the one beside it
}
