package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// unionAll binds UNION ALL of rows of the same unit: the rows of a unit are those of both sides, and its bounds their sum. Other set
// operations compare rows across units.
func (b *binder) unionAll() (*relation, error) {
	q := b.query
	if q.Set.Kind != syntax.Union || !q.Set.All {
		return nil, fault.Unsupported(b.position(q.Set.Pos), string(q.Set.Kind)+" of rows of people", "only UNION ALL is taken: the others compare one person's rows with another's")
	}
	if err := b.refuseUnstable(q); err != nil {
		return nil, err
	}
	l, err := b.child(q.Set.Left, b.ctes).rows()
	if err != nil {
		return nil, err
	}
	r, err := b.child(q.Set.Right, b.ctes).rows()
	if err != nil {
		return nil, err
	}
	if l.owned() != r.owned() {
		return nil, fault.Unsupported(b.position(q.Set.Pos), "UNION ALL of rows of people and of a public table", "ask for each by itself")
	}
	if len(l.fields) != len(r.fields) {
		return nil, b.mismatch(syntaxAt(q.Set.Pos), fmt.Sprintf("the sides of UNION have %d and %d columns", len(l.fields), len(r.fields)), "")
	}
	d := &derived{}
	out := &relation{node: d, table: l.table, notes: slices.Concat(l.notes, r.notes),
		maxRows: bound(l.maxRows, r.maxRows, addCapped), maxGroups: bound(l.maxGroups, r.maxGroups, addCapped), maxValues: bound(l.maxValues, r.maxValues, addCapped)}
	var left, right []expr
	for i := range l.fields {
		f, err := b.united(q.Set, l.fields[i], r.fields[i])
		if err != nil {
			return nil, err
		}
		f.printed = fmt.Sprintf("c%d", i)
		if slices.Contains(l.owners, l.fields[i]) && slices.Contains(r.owners, r.fields[i]) {
			out.owners = append(out.owners, f)
		}
		left, right = append(left, column{of: l.fields[i]}), append(right, column{of: r.fields[i]})
		d.fields = append(d.fields, f)
	}
	out.fields = slices.Clone(d.fields)
	if lo, ro := l.owner(), r.owner(); lo != nil && len(out.owners) == 0 {
		f, err := b.united(q.Set, lo, ro)
		if err != nil {
			return nil, err
		}
		f.printed, f.unit = fmt.Sprintf("c%d", len(d.fields)), true
		d.fields, out.owners = append(d.fields, f), []*field{f}
		left, right = append(left, column{of: lo}), append(right, column{of: ro})
	}
	d.parts = []*rowQuery{{from: l.node, of: l, outputs: left}, {from: r.node, of: r, outputs: right}}
	return out, b.addLeaf(&d.leaf)
}

// united is a column of UNION ALL: what is known of both sides' values.
func (b *binder) united(set *syntax.SetOperation, l, r *field) (*field, error) {
	if l.Type != r.Type {
		return nil, b.mismatch(syntaxAt(set.Pos), fmt.Sprintf("column %s is of type %s on one side of UNION and of type %s on the other",
			fault.Quote(l.Name), typeName(l.Type), typeName(r.Type)), "cast one of them")
	}
	if l.Type == catalog.Enum && l.Enum != r.Enum { // as in PostgreSQL
		return nil, b.mismatch(syntaxAt(set.Pos), "column "+fault.Quote(l.Name)+" is of one enumerated type on one side of UNION and of another on the other",
			"cast both to text")
	}
	if l.Identifies != "" && r.Identifies != "" && l.Identifies != r.Identifies {
		return nil, fault.UnitKinds(b.position(set.Pos), l.Name, r.Name)
	}
	if l.unit != r.unit {
		return nil, b.mismatch(syntaxAt(set.Pos), "column "+fault.Quote(l.Name)+" identifies the privacy unit on one side of UNION only", "")
	}
	c := catalog.Column{Name: l.Name, Type: l.Type, Enum: l.Enum, TypMod: l.TypMod, Exposed: l.Exposed && r.Exposed, NotNull: l.NotNull && r.NotNull,
		PrivateKeys: l.PrivateKeys && r.PrivateKeys, Identifies: l.Identifies}
	if c.Type.IsText() {
		c.MaxLength = max(l.LongestText(), r.LongestText())
	}
	if c.Identifies == "" {
		c.Identifies = r.Identifies // what may identify a unit counts as if it did
	}
	if r.TypMod != l.TypMod {
		c.TypMod = -1
	}
	if l.Bounds != nil && r.Bounds != nil {
		c.Bounds = &catalog.Bounds{Lo: minRat(l.Bounds.Lo, r.Bounds.Lo), Hi: maxRat(l.Bounds.Hi, r.Bounds.Hi)}
		if l.Bounds.Step != nil && r.Bounds.Step != nil && l.Bounds.Step.Cmp(r.Bounds.Step) == 0 {
			c.Bounds.Step = l.Bounds.Step
		}
	}
	if l.Domain != nil && r.Domain != nil {
		c.Domain = slices.Clone(l.Domain)
		for _, k := range r.Domain {
			if !slices.Contains(c.Domain, k) {
				c.Domain = append(c.Domain, k)
			}
		}
		slices.SortFunc(c.Domain, func(x, y catalog.Key) int { return compareKey(c.Type, x, y) })
	}
	f := &field{Column: &c, table: l.table, unit: l.unit, present: l.present && r.present, public: l.public && r.public}
	if l.anchor == r.anchor {
		f.anchor = l.anchor
	}
	return f, nil
}
