package sqlrewrite

import (
	"errors"

	"noisegate/catalog"
	"noisegate/internal/fault"
)

// pendingPath is the way from a relation's rows to their unit that is not walked yet: where a query joins the next table itself,
// that row is the one the path leads to, and need not be read twice.
type pendingPath struct {
	from *field // refers to the unique column to.column
	to   anchor
}

// errPath: the catalog checks that the tables and columns of a path are there.
var errPath = errors.New("sqlrewrite: a path leads nowhere")

// startPath begins the path of a table whose rows reach their unit through another table's.
func (b *binder) startPath(r *relation, t *catalog.Table, from *field) error {
	next, ok := b.snapshot.Table(t.Unit.ToSchema, t.Unit.ToTable)
	if !ok {
		return fault.Internal(errPath)
	}
	r.pending = &pendingPath{from: from, to: anchor{next, t.Unit.ToColumn}}
	from.anchor = r.pending.to
	return nil
}

// reachOwner adds the tables of a relation's path, up to the one that holds the unit. Each row of the relation meets at most
// one row of each, as what it refers to is unique; rows that lead nowhere are dropped, as they belong to nobody.
func (b *binder) reachOwner(r *relation) error {
	if r.pending == nil {
		return nil
	}
	through := ""
	for r.pending != nil {
		path := r.pending
		next, err := b.scanOf(path.to.table, "")
		if err != nil {
			return err
		}
		to, ok := next.parts[0].named(path.to.column)
		if !ok {
			return fault.Internal(errPath)
		}
		next.node.(*scan).reached = path.to.column
		b.bound.shared().rely(reliance{path.to.table, []string{path.to.column}})
		r.node = &joined{left: r.node, right: next.node, on: equal(path.from, to)}
		r.owners, r.pending = next.owners, next.pending
		through = next.table
	}
	r.note("path", "rows of %s belong to the %s of their row of %s; rows that lead nowhere are left out", r.table, r.unitName(), through)
	return nil
}

// named finds a field by name, whether or not analysts may name it.
func (p fromPart) named(name string) (*field, bool) {
	for _, f := range p.fields {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}
