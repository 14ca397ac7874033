package stability

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// ReachOwner is a relation with the tables of its path, up to the one that holds the unit. Each row of the relation meets at most
// one row of each, as what it refers to is unique; rows that lead nowhere are dropped, as they belong to nobody.
func ReachOwner(b *algebra.Binder, r *algebra.Relation) (*algebra.Relation, error) {
	if r.Pending == nil {
		return r, nil
	}
	out, through := *r, ""
	for out.Pending != nil {
		path := out.Pending
		next, err := b.ScanOf(path.To.Table, "", nil)
		if err != nil {
			return nil, err
		}
		to, ok := next.Parts[0].Named(path.To.Column)
		if !ok {
			return nil, fault.Internal(algebra.ErrPath)
		}
		next.Node.(*algebra.Scan).Reached = path.To.Column
		b.Bound.Shared().Rely(algebra.Reliance{Table: path.To.Table, Columns: []string{path.To.Column}})
		out.Node = &algebra.Joined{Left: out.Node, Right: next.Node, On: algebra.Equal(path.From, to)}
		out.Owners, out.Pending = next.Owners, next.Pending
		through = next.Table
	}
	out.Notes = slices.Clone(out.Notes)
	out.Note("path", "rows of %s belong to the %s of their row of %s; rows that lead nowhere are left out", out.Table, out.UnitName(), through)
	return &out, nil
}
