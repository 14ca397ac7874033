package bind

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// unionAll binds UNION ALL of rows of the same unit: the rows of a unit are those of both sides, and its bounds their sum. Other set
// operations compare rows across units.
func unionAll(b *algebra.Binder) (*algebra.Relation, error) {
	q := b.Query
	if q.Set.Kind != syntax.Union || !q.Set.All {
		return nil, fault.Unsupported(b.Position(q.Set.Pos), string(q.Set.Kind)+" of rows of people",
			"only UNION ALL is taken: the others compare one person's rows with another's")
	}
	if err := refuseUnstable(b, q); err != nil {
		return nil, err
	}
	l, err := rows(child(b, q.Set.Left, b.CTEs))
	if err != nil {
		return nil, err
	}
	r, err := rows(child(b, q.Set.Right, b.CTEs))
	if err != nil {
		return nil, err
	}
	if l.Owned() != r.Owned() {
		return nil, fault.Unsupported(b.Position(q.Set.Pos), "UNION ALL of rows of people and of a public table", "ask for each by itself")
	}
	if len(l.Fields) != len(r.Fields) {
		return nil, b.Mismatch(syntaxAt(q.Set.Pos), fmt.Sprintf("the sides of UNION have %d and %d columns", len(l.Fields), len(r.Fields)), "")
	}
	d := &algebra.Derived{}
	out := &algebra.Relation{Node: d, Table: l.Table, Notes: slices.Concat(l.Notes, r.Notes),
		MaxRows: stability.Bound(l.MaxRows, r.MaxRows, addCapped), MaxGroups: stability.Bound(l.MaxGroups, r.MaxGroups, addCapped),
		MaxValues: stability.Bound(l.MaxValues, r.MaxValues, addCapped),
		MaxTotal:  stability.Bound(l.MaxTotal, r.MaxTotal, addCapped)}
	var left, right []algebra.Output
	for i := range l.Fields {
		f, err := united(b, q.Set, l.Fields[i], r.Fields[i])
		if err != nil {
			return nil, err
		}
		f.Printed = fmt.Sprintf("c%d", i)
		if slices.Contains(l.Owners, l.Fields[i]) && slices.Contains(r.Owners, r.Fields[i]) {
			out.Owners = append(out.Owners, f)
		}
		left = append(left, algebra.Output{Name: f.Name, Expr: algebra.Column{Of: l.Fields[i]}})
		right = append(right, algebra.Output{Name: f.Name, Expr: algebra.Column{Of: r.Fields[i]}})
		d.Fields = append(d.Fields, f)
	}
	out.Fields = slices.Clone(d.Fields)
	if lo, ro := l.Owner(), r.Owner(); lo != nil && len(out.Owners) == 0 {
		f, err := united(b, q.Set, lo, ro)
		if err != nil {
			return nil, err
		}
		f.Printed, f.Unit = fmt.Sprintf("c%d", len(d.Fields)), true
		d.Fields, out.Owners = append(d.Fields, f), []*algebra.Field{f}
		left = append(left, algebra.Output{Name: f.Name, Expr: algebra.Column{Of: lo}})
		right = append(right, algebra.Output{Name: f.Name, Expr: algebra.Column{Of: ro}})
	}
	d.Parts = []*algebra.Query{{From: l.Node, Of: l, Outputs: left}, {From: r.Node, Of: r, Outputs: right}}
	return out, b.AddLeaf(&d.Leaf)
}

// refuseUnlike refuses columns of UNION ALL whose values are not of one type or of one kind of unit.
func refuseUnlike(b *algebra.Binder, set *syntax.SetOperation, l, r *algebra.Field) error {
	if l.Type != r.Type {
		return b.Mismatch(syntaxAt(set.Pos), fmt.Sprintf("column %s is of type %s on one side of UNION and of type %s on the other",
			fault.Quote(l.Name), scalar.TypeName(l.Type), scalar.TypeName(r.Type)), "cast one of them")
	}
	if l.Type == catalog.Enum && l.Enum != r.Enum { // as in PostgreSQL
		return b.Mismatch(syntaxAt(set.Pos), "column "+fault.Quote(l.Name)+
			" is of one enumerated type on one side of UNION and of another on the other",
			"cast both to text")
	}
	if l.Identifies != "" && r.Identifies != "" && l.Identifies != r.Identifies {
		return fault.UnitKinds(b.Position(set.Pos), l.Name, r.Name)
	}
	if l.Unit != r.Unit {
		return b.Mismatch(syntaxAt(set.Pos), "column "+fault.Quote(l.Name)+" identifies the privacy unit on one side of UNION only", "")
	}
	return nil
}

// united is a column of UNION ALL, with the facts that hold on both sides.
func united(b *algebra.Binder, set *syntax.SetOperation, l, r *algebra.Field) (*algebra.Field, error) {
	if err := refuseUnlike(b, set, l, r); err != nil {
		return nil, err
	}
	c := catalog.Column{Name: l.Name, Type: l.Type, Enum: l.Enum, TypMod: l.TypMod, Exposed: l.Exposed && r.Exposed,
		NotNull:     l.NotNull() && r.NotNull(),
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
		c.Bounds = &catalog.Bounds{Lo: scalar.MinRat(l.Bounds.Lo, r.Bounds.Lo), Hi: scalar.MaxRat(l.Bounds.Hi, r.Bounds.Hi)}
		if l.Bounds.Step != nil && r.Bounds.Step != nil && l.Bounds.Step.Cmp(r.Bounds.Step) == 0 {
			c.Bounds.Step = l.Bounds.Step
		}
	}
	if keys, more := l.Domain(), r.Domain(); keys != nil && more != nil {
		c.Domain = slices.Clone(keys)
		for _, k := range more {
			if !slices.Contains(c.Domain, k) {
				c.Domain = append(c.Domain, k)
			}
		}
		slices.SortFunc(c.Domain, func(x, y catalog.Key) int { return scalar.CompareKey(c.Type, x, y) })
	}
	f := &algebra.Field{Column: &c, Side: b.Side, Table: l.Table, Unit: l.Unit, Held: l.Present() && r.Present(),
		Public: l.Public && r.Public}
	if l.Anchor == r.Anchor {
		f.Anchor = l.Anchor
	}
	return f, nil
}
