package sqlrewrite

import (
	"fmt"
	"math"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// joined is a join as it is printed: inner, left, full (of public tables only) or cross, where on is nil.
type joined struct {
	kind        syntax.JoinKind
	left, right fromItem
	on          expr
	meets       *meeting // nil: each row of the left side meets one of the right at most
	semi        bool     // it stands for EXISTS or IN
	public      bool     // over large public tables
}

func (*joined) fromItem() {}

// pair is an equality between a field of the left and one of the right side of a join, that holds on every row that is used.
type pair struct{ l, r *field }

// join joins two relations. where are conditions that hold on every row that is used.
func (b *binder) join(n *syntax.Join, l, r *relation, where []syntax.Expr) (*relation, error) {
	if alias, twice := sharedAlias(l, r); twice {
		return nil, b.unsupported(n, "two items of FROM with the name "+fault.Quote(alias), "give each an alias of its own")
	}
	out := &relation{parts: slices.Concat(l.parts, r.parts), fields: slices.Concat(l.fields, r.fields), table: l.table, notes: slices.Concat(l.notes, r.notes)}
	var pairs []pair
	var conditions []expr
	if n.Natural {
		named := *n
		named.Using = commonNames(l.visibleNames(), r.visibleNames())
		n = &named
		if n.Using == nil {
			return nil, b.unsupported(n, "a NATURAL JOIN without a column that both sides have", "write CROSS JOIN, or JOIN ... ON")
		}
	}
	if n.Using != nil {
		var err error
		if pairs, conditions, err = b.using(n, l, r, out); err != nil {
			return nil, err
		}
	}
	b.bound.source = out
	for _, c := range conjuncts(n.On) {
		if p, ok := b.pairOf(c, l, r); ok {
			pairs = append(pairs, p)
		}
	}
	if n.Kind == syntax.InnerJoin || n.Kind == syntax.CrossJoin {
		for _, c := range where {
			if p, ok := b.pairOf(c, l, r); ok {
				pairs = append(pairs, p)
			}
		}
	}
	j := joining{meeting: meeting{l: l, r: r, kind: n.Kind, pairs: pairs}, n: n, out: out}
	if err := b.own(&j); err != nil {
		return nil, err
	}
	j.multiply(b.bound.shared())
	out.node = j.l.node // to which values of public tables in ON are joined: the side of which every row stays
	for _, c := range conjuncts(n.On) {
		e, err := b.rowCondition(c)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, e)
	}
	if j.kind == syntax.FullJoin && len(conditions) > len(pairs) {
		return nil, b.unsupported(n, "a FULL JOIN on other conditions than equalities of columns", "move the others to WHERE")
	}
	right := j.r.node
	if j.cap != nil {
		j.cap.of, right = right, j.cap
	}
	out.node = &joined{kind: j.kind, left: out.node, right: right, on: all(conditions), meets: &j.meeting}
	return out, nil
}

// visibleNames are the names of a relation's fields that exist for analysts.
func (r *relation) visibleNames() []string {
	var names []string
	for _, f := range r.fields {
		if f.Exposed || f.unit {
			names = append(names, f.Name)
		}
	}
	return names
}

// commonNames are the columns of a NATURAL JOIN.
func commonNames(left, right []string) []string {
	var common []string
	for _, name := range left {
		if slices.Contains(right, name) && !slices.Contains(common, name) {
			common = append(common, name)
		}
	}
	return common
}

func sharedAlias(l, r *relation) (string, bool) {
	for _, p := range l.parts {
		if p.alias != "" && slices.ContainsFunc(r.parts, func(q fromPart) bool { return q.alias == p.alias }) {
			return p.alias, true
		}
	}
	return "", false
}

// using binds USING: equalities of columns of one name, which afterwards are one column. Which side's it is makes a difference on
// rows that only one side has; of these, rows without an owner are never used.
func (b *binder) using(n *syntax.Join, l, r, out *relation) (pairs []pair, conditions []expr, err error) {
	var merged []*field
	drop := map[*field]bool{}
	for _, name := range n.Using {
		at := &syntax.Column{Pos: n.Pos, Name: name}
		p := pair{}
		for _, side := range []struct {
			relation *relation
			field    **field
		}{{l, &p.l}, {r, &p.r}} {
			found := false
			if *side.field, found, err = b.columnOf(side.relation, at); err != nil {
				return nil, nil, err
			}
			if !found {
				b.bound.source = side.relation
				return nil, nil, b.unknownColumn(at)
			}
		}
		if err := b.sameIdentity(at, p.l, p.r); err != nil {
			return nil, nil, err
		}
		left, right, err := b.unify(at, syntax.Eq, at, at, column{of: p.l}, column{of: p.r})
		if err != nil {
			return nil, nil, err
		}
		pairs = append(pairs, p)
		conditions = append(conditions, binary{op: syntax.Eq, l: left, r: right, t: catalog.Bool})
		keep, lose := p.l, p.r
		if n.Kind == syntax.RightJoin || n.Kind == syntax.FullJoin && r.owned() {
			keep, lose = lose, keep
		}
		if n.Kind == syntax.FullJoin && !l.owned() && !r.owned() {
			return nil, nil, b.unsupported(n, "FULL JOIN ... USING of public tables", "write ON, and coalesce(a.x, b.x)")
		}
		merged, drop[keep], drop[lose] = append(merged, keep), true, true
	}
	rest := slices.DeleteFunc(slices.Clone(out.fields), func(f *field) bool { return drop[f] })
	out.fields = append(merged, rest...)
	return pairs, conditions, nil
}

// pairOf recognises an equality between a column of l and one of r whose values are told apart alike.
func (b *binder) pairOf(e syntax.Expr, l, r *relation) (pair, bool) {
	c, ok := e.(*syntax.Binary)
	if !ok || c.Op != syntax.Eq {
		return pair{}, false
	}
	x, okX := b.quiet(c.L)
	y, okY := b.quiet(c.R)
	if !okX || !okY {
		return pair{}, false
	}
	if l.has(y) {
		x, y = y, x
	}
	return pair{x, y}, l.has(x) && r.has(y)
}

// quiet finds the field that an expression names in the relation at hand, if it is nothing else.
func (b *binder) quiet(e syntax.Expr) (*field, bool) {
	n, ok := e.(*syntax.Column)
	if !ok {
		return nil, false
	}
	f, found, err := b.columnOf(b.bound.source, n)
	return f, found && err == nil
}

func (r *relation) has(f *field) bool {
	return slices.ContainsFunc(r.parts, func(p fromPart) bool { return slices.Contains(p.fields, f) })
}

// sameEquality reports whether the equality of the two types tells values apart as a unique key of either does. A float beside a
// numeric does not: many numerics are one float.
func sameEquality(a, b catalog.Type) bool {
	return a == b && !isFloat(a) || a.IsInteger() && b.IsInteger()
}

// joining is a join on its way.
type joining struct {
	meeting // after own: l is the side that an outer join preserves, and kind is inner, left, full or cross
	n       *syntax.Join
	out     *relation
	linked  bool // both sides are owned, and a pair makes their units the same
	link    pair
	cap     *rowCap // of the right side's rows, where several of one unit meet several; nil: none
}

// own decides who owns the rows, and which rows are left out because nobody does:
//
//	owned x public   the owned side, whatever the fan-out: what a unit has is bounded after the join
//	owned x owned    only where a condition makes both rows the same unit's
func (b *binder) own(j *joining) error {
	if j.kind == syntax.RightJoin {
		j.swap()
		j.kind = syntax.LeftJoin
	}
	switch {
	case !j.l.owned() && !j.r.owned():
		j.nullable()
		return nil
	case j.l.owned() && j.r.owned():
		return b.ownBoth(j)
	}
	// Rows that only the public side has belong to nobody: without them a join is less outer than it was written.
	drops := j.kind == syntax.FullJoin || j.kind == syntax.LeftJoin && j.r.owned()
	if j.kind == syntax.FullJoin {
		if j.r.owned() {
			j.swap()
		}
		j.kind = syntax.LeftJoin
	} else if drops {
		j.kind = syntax.InnerJoin
	}
	owned, public := j.l, j.r
	if j.r.owned() {
		owned, public = public, owned
	}
	if drops {
		j.out.note("ownerless", "rows of %s without a row of %s belong to nobody and are left out", public.table, owned.table)
	}
	j.out.owners, j.out.pending, j.out.table = owned.owners, owned.pending, owned.table
	j.out.maxRows, j.out.maxGroups, j.out.maxValues = owned.maxRows, owned.maxGroups, owned.maxValues
	j.nullable()
	return nil
}

// swap exchanges the sides.
func (j *joining) swap() {
	j.l, j.r = j.r, j.l
	for i, p := range j.pairs {
		j.pairs[i] = pair{p.r, p.l}
	}
}

// ownBoth joins rows of one unit with rows of the same unit.
func (b *binder) ownBoth(j *joining) error {
	link, ok := j.findLink()
	if !ok {
		return fault.UnitJoin(b.at(j.n), j.missing())
	}
	j.linked, j.link = true, link.pair
	b.bound.shared().rely(link.relies...)
	l, r, out := j.l, j.r, j.out
	out.table = l.table
	if j.kind == syntax.FullJoin {
		return b.unsupported(j.n, "a FULL JOIN of two tables of people", "use LEFT JOIN from the one that counts")
	}
	if j.kind == syntax.LeftJoin {
		if err := b.reachOwner(l); err != nil {
			return err
		}
		out.owners = l.owners
		out.notes = slices.Concat(l.notes, r.notes)
		j.nullable()
		return nil
	}
	out.owners = slices.Concat(l.owners, r.owners)
	if len(out.owners) == 0 {
		out.pending = l.pending
		if link.l == l.pending.from && link.r != r.pending.from {
			out.pending = r.pending // the rows that l leads to are here already
		}
	}
	if slices.Contains(l.owners, link.l) && slices.Contains(r.owners, link.r) {
		link.l.present, link.r.present = true, true // NULL equals nothing
	}
	return nil
}

// unitLink is a pair that makes two rows the same unit's, and the keys that this rests on.
type unitLink struct {
	pair
	relies []reliance
}

// findLink finds a condition that makes both sides' rows the same unit's: their units are equal, or both refer to one row of an owned
// table, or one refers to the other.
func (j *joining) findLink() (unitLink, bool) {
	for _, p := range j.pairs {
		if l, ok := linkOf(p, j.l, j.r); ok {
			return l, true
		}
	}
	return unitLink{}, false
}

func linkOf(p pair, l, r *relation) (unitLink, bool) {
	switch {
	case !sameEquality(p.l.Type, p.r.Type) || p.l.Identifies != p.r.Identifies:
		return unitLink{}, false
	case slices.Contains(l.owners, p.l) && slices.Contains(r.owners, p.r):
		return unitLink{pair: p}, true
	case p.l.anchor.table != nil && p.l.anchor == p.r.anchor:
		return unitLink{p, []reliance{{p.l.anchor.table, []string{p.l.anchor.column}}}}, true
	default:
		return unitLink{}, false
	}
}

// missing is the condition that would make the two sides the same unit's.
func (j *joining) missing() string {
	name := func(r *relation, f *field) string { return r.partOf(f) + "." + f.Name }
	left, right := "", ""
	for _, side := range []struct {
		r    *relation
		text *string
	}{{j.l, &left}, {j.r, &right}} {
		switch {
		case side.r.owner() != nil && side.r.has(side.r.owner()):
			*side.text = name(side.r, side.r.owner())
		case side.r.pending != nil && side.r.has(side.r.pending.from):
			to := side.r.pending.to
			return fmt.Sprintf("JOIN %s ON %s.%s = %s, and join on the unit there", to.table.Name, to.table.Name, to.column, name(side.r, side.r.pending.from))
		default:
			*side.text = "the unit of " + side.r.table
		}
	}
	return left + " = " + right
}

// nullable marks what an outer join may leave NULL. NULL is then one of the public keys.
func (j *joining) nullable() {
	var sides []*relation
	if j.kind == syntax.LeftJoin || j.kind == syntax.FullJoin {
		sides = append(sides, j.r)
	}
	if j.kind == syntax.FullJoin {
		sides = append(sides, j.l)
	}
	for _, side := range sides {
		for _, p := range side.parts {
			for _, f := range p.fields {
				c := *f.Column
				c.NotNull, f.present = false, false
				if c.Domain != nil && !slices.Contains(c.Domain, catalog.Key{Null: true}) {
					c.Domain = append(slices.Clone(c.Domain), catalog.Key{Null: true})
				}
				f.Column = &c
			}
		}
	}
}

// multiply derives how many rows a unit may have, and which fields still tell rows apart.
func (j *joining) multiply(env *statementFacts) {
	l, r, out := j.l, j.r, j.out
	rKey, rOne := j.atMostOne(r, func(p pair) (*field, *field) { return p.r, p.l })
	lKey, lOne := j.atMostOne(l, func(p pair) (*field, *field) { return p.l, p.r })
	if j.kind == syntax.FullJoin {
		return
	}
	inherit := func(keys []rowKey, through rowKey) {
		for _, k := range keys {
			out.keys = append(out.keys, rowKey{k.fields, slices.Concat(k.relies, through.relies)})
		}
	}
	if rOne {
		j.rKey = &rKey
		inherit(l.keys, rKey)
	}
	if lOne && !r.lateral {
		j.lKey = &lKey
	}
	if lOne && j.kind != syntax.LeftJoin && !r.lateral {
		inherit(r.keys, lKey)
	}
	if !j.linked {
		return
	}
	switch {
	case rOne:
		env.rely(rKey.relies...)
		out.maxRows, out.maxGroups, out.maxValues = l.maxRows, l.maxGroups, l.maxValues
	case lOne && j.kind == syntax.LeftJoin:
		env.rely(lKey.relies...)
		out.maxRows, out.maxGroups = bound(l.maxRows, r.maxRows, oneLess), bound(l.maxGroups, r.maxGroups, oneLess)
		out.maxValues = r.maxValues
	case lOne:
		env.rely(lKey.relies...)
		out.maxRows, out.maxGroups, out.maxValues = r.maxRows, r.maxGroups, r.maxValues
	default:
		out.maxRows, out.maxGroups = bound(l.maxRows, r.maxRows, multiplyCapped), bound(l.maxGroups, r.maxGroups, multiplyCapped)
		out.maxValues = bound(l.maxValues, r.maxValues, func(l, r int64) int64 { return max(l, r) })
		j.cap = newRowCap(nil, r, j.link.r)
		j.cap.rows = j.cap.most
		env.caps = append(env.caps, j.cap)
		out.note("multiplied-bounds", "rows of %s and %s are paired within each unit: max_rows is %d", l.table, r.table, out.maxRows)
	}
}

// atMostOne finds the proof that a row of the other side meets at most one row of this one: a key whose fields are all given.
func (j *joining) atMostOne(side *relation, fields func(pair) (own, other *field)) (rowKey, bool) {
	given := func(f *field) bool {
		if j.linked && slices.Contains(side.owners, f) {
			return true
		}
		return slices.ContainsFunc(j.pairs, func(p pair) bool {
			own, other := fields(p)
			return own == f && sameEquality(own.Type, other.Type)
		})
	}
	for _, k := range side.keys {
		if !slices.ContainsFunc(k.fields, func(f *field) bool { return !given(f) }) {
			return k, true
		}
	}
	return rowKey{}, false
}

// bound combines two bounds of the policy; 0, which is none, stays none.
func bound(a, b int64, combine func(a, b int64) int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return combine(a, b)
}

func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// oneLess is for left rows that stay alone beside right rows that have a partner, of which there is at least one then: a + b - 1.
func oneLess(a, b int64) int64 { return addCapped(a-1, b) }

func multiplyCapped(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// rowCondition binds a condition over rows. Only here, at the outermost ANDs, may the ids of units stand: in equalities that join.
func (b *binder) rowCondition(n syntax.Expr) (expr, error) {
	switch c := n.(type) {
	case *syntax.Binary:
		if c.Op == syntax.And {
			l, err := b.rowCondition(c.L)
			if err != nil {
				return nil, err
			}
			r, err := b.rowCondition(c.R)
			return binary{op: syntax.And, l: l, r: r, t: catalog.Bool}, err
		}
		if x, y, ok, err := b.identities(c); err != nil {
			return nil, err
		} else if ok {
			l, r, err := b.unify(c, syntax.Eq, c.L, c.R, column{of: x}, column{of: y})
			return binary{op: syntax.Eq, l: l, r: r, t: catalog.Bool}, err
		}
	case *syntax.InQuery:
		e, _, err := b.linkedRows(c) // unknown is as good as false here, and PostgreSQL joins what is nothing but IN
		return e, err
	}
	return b.condition(rowScope{b}, n)
}

// identities recognises x = y where both identify units of one kind. Within a relation all units' ids are the same unit's; with those of a query
// around it, this is what makes them so.
func (b *binder) identities(n *syntax.Binary) (x, y *field, ok bool, err error) {
	cx, okX := n.L.(*syntax.Column)
	cy, okY := n.R.(*syntax.Column)
	if n.Op != syntax.Eq || !okX || !okY {
		return nil, nil, false, nil
	}
	x, errX := b.column(cx)
	y, errY := b.column(cy)
	if errX != nil || errY != nil || !x.identity() || !y.identity() {
		return nil, nil, false, nil
	}
	return x, y, true, b.sameIdentity(n, x, y)
}

// sameIdentity refuses to compare what identifies a unit with anything but what identifies a unit of the same kind.
func (b *binder) sameIdentity(n interface{ At() syntax.Pos }, x, y *field) error {
	switch {
	case x.Identifies == y.Identifies:
		return nil
	case x.Identifies == "":
		return fault.UnitColumn(b.at(n), y.Name)
	case y.Identifies == "":
		return fault.UnitColumn(b.at(n), x.Name)
	default:
		return fault.UnitKinds(b.at(n), x.Name, y.Name)
	}
}

// equal is x = y.
func equal(x, y *field) expr {
	return binary{op: syntax.Eq, l: column{of: x}, r: column{of: y}, t: catalog.Bool}
}

// all is the conjunction of conditions; nil when there are none.
func all(conditions []expr) expr {
	var e expr
	for _, c := range conditions {
		if e == nil {
			e = c
		} else {
			e = binary{op: syntax.And, l: e, r: c, t: catalog.Bool}
		}
	}
	return e
}

// note adds a note for the answers over a relation, once.
func (r *relation) note(code, format string, args ...any) {
	n := Note{Code: code, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}
