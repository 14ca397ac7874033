package relation

import (
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// A table. Each row belongs to at most one unit (**Lemma 0**, first case):
//
//  1. row: the pinned key's value is the unit;
//  2. column: the column's value is, and rows where it is NULL belong to nobody;
//  3. path: the column's value is that of a pinned unique column of an owned table, whose row with that value has the same owner; where
//     there is none, or the value is NULL, the row belongs to nobody.
//
// Neighbouring databases agree in the rows of nobody and of all other units. So a table's rows are, unit by unit, functions of the unit's
// rows. A pinned unique column c of an owned table T also names a row's owner: two rows with equal values of T.c, of T or of a table
// whose path leads to T.c, are rows of one unit. Where it is NULL it names none, as a unique key lets several rows be NULL: it names
// the unit only where it is known not to be (names). In the unit's and a path's own column NULL is nobody's (Value.Strict).
//
// *Example.* visits with the unit in person_id and a unique visit_id: a payment whose path leads to visit_id belongs to the visit's
// person, and payments that agree in visit_id are of one person.
//
// A copy of a table (ranks.go) is owned by the column in which each unit has a number; no other table may be beside it that has units.
//
// A column is as wide as its type: PostgreSQL checks what it stores. numeric(p, s) is a multiple of 10^-s below 10^(p-s), or NaN.

// Scan derives a table under an alias.
func (d *Proof) Scan(t *catalog.Table, alias string) *Relation {
	pin := d.pins.of(t)
	r := &Relation{Solid: make(map[int]bool), Tables: []string{alias}}
	p := &part{number: d.Number(), public: t.Public, most: pin.MostRows, equal: make(map[int]int64)}
	var owner *value.Unit
	if !t.Public {
		owner = &value.Unit{}
		r.Units = []*value.Unit{owner}
	}
	byName := make(map[string]*value.Value)
	for _, c := range t.Columns {
		pinned := pin.column(c)
		if pinned == nil || value.KindOf(c.Type) == value.NoKind {
			continue
		}
		v := d.Stored(c)
		pin.check(v, c.Name)
		if pinned.NotNull {
			r.Solid[v.ID], d.stored[v.ID] = true, true
		}
		if owner != nil {
			d.own(v, t, c.Name, pin, owner)
		}
		for _, a := range v.Anchors {
			if a.Root {
				r.Roots = append(r.Roots, v.ID)
			}
		}
		if t.Copy != nil && c.Type == catalog.Text && c.Name != t.Unit.Column { // longer ones are NULL there: Build has seen it
			v.Octets = c.LongestText()
		}
		d.Note(v)
		if byName[c.Name] = v; pinned.MostEqual > 0 {
			p.equal[v.ID] = pinned.MostEqual
		}
		if v.Kind == value.Enum { // a label is what its text says
			r.edges = append(r.edges, edge{d.Text(v).ID, v.ID, true})
		}
		p.ids = append(p.ids, v.ID)
		v.Numeral = t.Copy != nil && c.Name == t.Unit.Column
		r.Columns = append(r.Columns, Column{alias, c.Name, v})
	}
	for _, key := range pin.Keys {
		l := limit{rows: 1, sql: true}
		for _, name := range key {
			v := byName[name]
			if v == nil {
				refuse("a pinned key of columns that are not pinned")
			}
			l.by = append(l.by, v.ID)
		}
		p.limits = append(p.limits, l)
	}
	if t.Copy != nil {
		p.ranks(t, pin, byName, r.Solid)
	}
	r.Parts = []*part{p}
	if owner != nil {
		switch t.Unit.Kind {
		case catalog.RowUnit, catalog.ColumnUnit, catalog.PathUnit:
		default:
			refuse("a table without a unit that is not public")
		}
	}
	return r
}

// own gives a column of an owned table its anchors.
func (d *Proof) own(v *value.Value, t *catalog.Table, column string, pin *Pin, owner *value.Unit) {
	if (t.Unit.Kind == catalog.RowUnit || t.Unit.Kind == catalog.ColumnUnit) && t.Unit.Column == column {
		v.Anchors, v.Strict = append(v.Anchors, value.Anchor{Name: unitName(t), Root: true, Of: owner}), true
	}
	if t.Unit.Kind == catalog.PathUnit && t.Unit.Column == column {
		to, known := d.On.Table(t.Unit.ToSchema, t.Unit.ToTable)
		if !known || to.Public || !d.pins.of(to).unique(t.Unit.ToColumn) {
			refuse("a path to a column that is not pinned as unique")
		}
		v.Anchors, v.Strict = append(v.Anchors, value.Anchor{Name: columnName(to, t.Unit.ToColumn), Of: owner}), true
	}
	if pin.unique(column) {
		v.Anchors = append(v.Anchors, value.Anchor{Name: columnName(t, column), Of: owner})
	}
}

// unitName names the units of one kind: units of two kinds are never the same.
func unitName(t *catalog.Table) string {
	if t.Copy != nil { // a unit's number is not its id
		return "number in " + strconv.Quote(t.Name) + " of unit " + t.Unit.Of
	}
	return "unit " + t.Unit.Of
}

func columnName(t *catalog.Table, column string) string {
	return "column " + strconv.Quote(t.Schema) + strconv.Quote(t.Name) + strconv.Quote(column)
}
