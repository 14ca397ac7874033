package stability

import (
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
)

// ReachOwner adds the tables of a relation's path, up to the one that holds the unit. Each row of the relation meets at most
// one row of each, as what it refers to is unique; rows that lead nowhere are dropped, as they belong to nobody.
func ReachOwner(b *algebra.Binder, r *algebra.Relation) error {
	if r.Pending == nil {
		return nil
	}
	through := ""
	for r.Pending != nil {
		path := r.Pending
		next, err := b.ScanOf(path.To.Table, "")
		if err != nil {
			return err
		}
		to, ok := next.Parts[0].Named(path.To.Column)
		if !ok {
			return fault.Internal(algebra.ErrPath)
		}
		next.Node.(*algebra.Scan).Reached = path.To.Column
		b.Bound.Shared().Rely(algebra.Reliance{Table: path.To.Table, Columns: []string{path.To.Column}})
		r.Node = &algebra.Joined{Left: r.Node, Right: next.Node, On: algebra.Equal(path.From, to)}
		r.Owners, r.Pending = next.Owners, next.Pending
		through = next.Table
	}
	r.Note("path", "rows of %s belong to the %s of their row of %s; rows that lead nowhere are left out", r.Table, r.UnitName(), through)
	return nil
}
