package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
)

// relation is what FROM, or a part of it, means: rows with fields, each row of at most one privacy unit. The rows of a unit are
// a function of that unit's own rows and of public tables: taking a unit out takes its rows out, and moves no other's. docs/sql.md
// proves that for each way in which one is made.
type relation struct {
	node   fromItem
	parts  []fromPart // what qualified names resolve to
	fields []*field   // what other names resolve to, in the order of *
	// owners are fields that hold the id of the privacy unit, all of them the same one. Rows where the first is NULL belong to
	// nobody and are left out of every release.
	owners []*field
	// pending is set instead of owners while the tables that lead to the unit are not part of the relation. Without both it is public.
	pending *pendingPath
	table   string   // the table whose rows are counted, for people
	keys    []rowKey // sets of fields that no two rows share, as far as the catalog proves
	lateral bool     // its rows are made anew beside each row of another relation: its keys tell them apart only there
	// maxRows and maxGroups are the policy's: what one unit may contribute to one group, and to how many groups; 0: it does not say.
	maxRows, maxGroups int64
	maxValues          int64  // how many different values of one unit one group counts; 0: as many as rows
	notes              []Note // what answers over it should know
}

// fromPart is one item of FROM under the name that the query gives it.
type fromPart struct {
	alias  string
	fields []*field
}

// rowKey is a set of fields that no two rows of a relation share (rows where one is NULL apart), and what that rests on.
type rowKey struct {
	fields []*field
	relies []reliance
}

// reliance is a unique key of a table that must still be there when the statement runs.
type reliance struct {
	table   *catalog.Table
	columns []string
}

// fromItem is how a relation prints: [*scan], [*joined], [*derived] or [*rowCap].
type fromItem interface{ fromItem() }

// leaf is a relation with a name in the statement.
type leaf struct {
	alias  string // "" while it is the only one
	name   string // what the query calls it, for people; "" where that is its table's name
	fields []*field
}

// scan is a table of the protected database.
type scan struct {
	leaf
	table   *catalog.Table
	reached string // the column by which a path from another table arrives here; empty: none does
}

func (*scan) fromItem() {}

// statementFacts is what the binders of one statement share.
type statementFacts struct {
	leaves  []*leaf
	relied  []reliance
	counted []count   // facts of public tables that bound the statement's work
	caps    []*rowCap // some may be none
	keyWork int       // values looked at to find the keys that columns of queries in FROM can have, of maxWork (A44)
}

// maxLeaves caps the relations of one statement: queries of WITH are written out wherever they are named.
const maxLeaves = 64

// rely makes a proof's keys part of what the statement requires of its tables.
func (e *statementFacts) rely(all ...reliance) {
	for _, r := range all {
		known := func(k reliance) bool { return k.table == r.table && slices.Equal(k.columns, r.columns) }
		if !slices.ContainsFunc(e.relied, known) {
			e.relied = append(e.relied, r)
		}
	}
}

// nameLeaves gives every relation its name in the statement. Names of the analyst's are never printed, and two spellings of one
// question print alike.
func (e *statementFacts) nameLeaves() {
	if len(e.leaves) < 2 {
		return
	}
	for i, l := range e.leaves {
		l.alias = fmt.Sprintf("t%d", i+1)
		for _, f := range l.fields {
			f.relation = l.alias
		}
	}
}

// owned reports whether rows belong to privacy units.
func (r *relation) owned() bool { return len(r.owners) > 0 || r.pending != nil }

// owner is the field by which the rows of units are told apart; nil for a public relation.
func (r *relation) owner() *field {
	if len(r.owners) == 0 {
		return nil
	}
	return r.owners[0]
}

// unitName names the privacy unit for people.
func (r *relation) unitName() string {
	if o := r.owner(); o != nil {
		return o.Name
	}
	return "unit"
}

// onePerUnit finds the proof that no unit has two rows.
func (r *relation) onePerUnit() (rowKey, bool) { return r.oneAmong(nil) }

// oneAmong finds the proof that no unit has two rows that agree in the given fields, none of which is NULL.
func (r *relation) oneAmong(given []*field) (rowKey, bool) {
	for _, k := range r.keys {
		if !slices.ContainsFunc(k.fields, func(f *field) bool { return !slices.Contains(r.owners, f) && !slices.Contains(given, f) }) {
			return k, true
		}
	}
	return rowKey{}, false
}

// scanOf is the relation of a table under an alias.
func (b *binder) scanOf(t *catalog.Table, alias string) (*relation, error) {
	s := &scan{table: t}
	if alias != t.Name {
		s.name = alias
	}
	r := &relation{node: s, table: t.Name, maxRows: t.MaxRows, maxGroups: t.MaxGroups, maxValues: t.MaxValues}
	byName := map[string]*field{}
	for _, c := range t.Columns {
		f := &field{Column: c, table: t.Name, public: t.Public}
		s.fields, byName[c.Name] = append(s.fields, f), f
	}
	for _, columns := range t.Unique {
		k := rowKey{relies: []reliance{{t, columns}}}
		for _, name := range columns {
			k.fields = append(k.fields, byName[name])
		}
		r.keys = append(r.keys, k)
		if len(columns) == 1 && !t.Public {
			k.fields[0].anchor = anchor{t, columns[0]}
		}
	}
	switch unit := byName[t.Unit.Column]; t.Unit.Kind {
	case catalog.NoUnit:
	case catalog.RowUnit:
		unit.unit, unit.present = true, true // its key is pinned, and that it is not null
		r.owners = []*field{unit}
		r.keys = append(r.keys, rowKey{fields: r.owners, relies: []reliance{{t, []string{unit.Name}}}})
	case catalog.ColumnUnit:
		unit.unit = true
		r.owners = []*field{unit}
	case catalog.PathUnit:
		if err := b.startPath(r, t, unit); err != nil {
			return nil, err
		}
	default:
		return nil, fault.Internal(fmt.Errorf("sqlrewrite: table %s has an unknown kind of unit", t.Name))
	}
	r.parts, r.fields = []fromPart{{alias, s.fields}}, s.fields
	return r, b.addLeaf(&s.leaf)
}

// addLeaf counts a relation of the statement.
func (b *binder) addLeaf(l *leaf) error {
	if b.bound.shared().leaves = append(b.bound.shared().leaves, l); len(b.bound.shared().leaves) > maxLeaves {
		return fault.TooComplex(b.position(b.query.Pos), fmt.Sprintf("the query reads more than %d relations", maxLeaves))
	}
	return nil
}

// origin names an expression of a row with the table that it comes from, as far as there is one.
func (r *relation) origin(e expr) string {
	table := r.table
	if f := plainField(e); f != nil && f.table != "" {
		table = f.table
	}
	return fmt.Sprintf("%s.%s", table, describe(e))
}

// field finds a field that analysts may name: one that is exposed, or the id of a unit.
func (p fromPart) field(name string) (*field, bool) {
	for _, f := range p.fields {
		if f.Name == name {
			return f, f.Exposed || f.unit
		}
	}
	return nil, false
}

// indented shifts lines one level to the right.
func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// shared are the facts of the whole statement.
func (q *boundQuery) shared() *statementFacts {
	if q.facts == nil {
		q.facts = &statementFacts{}
	}
	return q.facts
}
