package bind

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// join joins two relations. where are conditions that hold on every row that is used.
func join(b *algebra.Binder, j *joining, where []syntax.Expr) (*algebra.Relation, error) {
	n, l, r := j.n, j.L, j.R
	for _, c := range algebra.Conjuncts(n.On) {
		if p, ok := pairOf(b, c, l, r); ok {
			j.Pairs = append(j.Pairs, p)
		}
	}
	if n.Kind == syntax.InnerJoin || n.Kind == syntax.CrossJoin {
		for _, c := range where {
			if p, ok := pairOf(b, c, l, r); ok {
				j.Pairs = append(j.Pairs, p)
			}
		}
	}
	if err := own(b, j); err != nil {
		return nil, err
	}
	j.left.Absent, j.right.Absent = j.Kind == syntax.FullJoin, j.Kind == syntax.LeftJoin || j.Kind == syntax.FullJoin
	j.multiply(b.Bound.Shared())
	out, conditions := j.out, j.using
	out.Node = j.L.Node // to which values of public tables in ON are joined: the side of which every row stays
	for _, c := range algebra.Conjuncts(n.On) {
		e, err := rowCondition(b, c)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, e)
	}
	if j.Kind == syntax.FullJoin && len(conditions) > len(j.Pairs) {
		return nil, b.Unsupported(n, "a FULL JOIN on other conditions than equalities of columns", "move the others to WHERE")
	}
	right := j.R.Node
	if j.cap != nil {
		j.cap.Of, right = right, j.cap
	}
	left := b.Bound.Source.Node // with what ON has joined
	out.Node = &algebra.Joined{Kind: j.Kind, Left: left, Right: right, On: algebra.All(conditions), Meets: &j.Meeting}
	return out, nil
}

// sides begins a join: the relation of both sides, whose names ON may use, and the conditions of USING.
func sides(b *algebra.Binder, n *syntax.Join, l, r *algebra.Relation) (*joining, error) {
	if alias, twice := sharedAlias(l, r); twice {
		return nil, b.Unsupported(n, "two items of FROM with the name "+fault.Quote(alias), "give each an alias of its own")
	}
	out := &algebra.Relation{Parts: slices.Concat(l.Parts, r.Parts), Fields: slices.Concat(l.Fields, r.Fields), Table: l.Table,
		Notes: slices.Concat(l.Notes, r.Notes)}
	j := &joining{Meeting: algebra.Meeting{L: l, R: r, Kind: n.Kind}, n: n, out: out}
	if n.Natural {
		named := *n
		named.Using = commonNames(l.VisibleNames(), r.VisibleNames())
		j.n, n = &named, &named
		if n.Using == nil {
			return nil, b.Unsupported(n, "a NATURAL JOIN without a column that both sides have", "write CROSS JOIN, or JOIN ... ON")
		}
	}
	if n.Using != nil {
		var err error
		if j.Pairs, j.using, err = using(b, n, l, r, out); err != nil {
			return nil, err
		}
	}
	b.Bound.Source = out
	return j, nil
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

func sharedAlias(l, r *algebra.Relation) (string, bool) {
	for _, p := range l.Parts {
		if p.Alias != "" && slices.ContainsFunc(r.Parts, func(q algebra.FromPart) bool { return q.Alias == p.Alias }) {
			return p.Alias, true
		}
	}
	return "", false
}

// using binds USING: equalities of columns of one name, which afterwards are one column. Which side's it is makes a difference on
// rows that only one side has; of these, rows without an owner are never used.
func using(b *algebra.Binder, n *syntax.Join, l, r, out *algebra.Relation) (pairs []algebra.Pair, conditions []algebra.Expr, err error) {
	var merged []*algebra.Field
	drop := map[*algebra.Field]bool{}
	for _, name := range n.Using {
		at := &syntax.Column{Pos: n.Pos, Name: name}
		p := algebra.Pair{}
		for _, side := range []struct {
			relation *algebra.Relation
			field    **algebra.Field
		}{{l, &p.L}, {r, &p.R}} {
			found := false
			if *side.field, found, err = columnOf(b, side.relation, at); err != nil {
				return nil, nil, err
			}
			if !found {
				b.Bound.Source = side.relation
				return nil, nil, unknownColumn(b, at)
			}
		}
		if err := sameIdentity(b, at, p.L, p.R); err != nil {
			return nil, nil, err
		}
		left, right, err := domain.Unify(b, at, syntax.Eq, at, at, b.ValueOf(p.L), b.ValueOf(p.R))
		if err != nil {
			return nil, nil, err
		}
		pairs = append(pairs, p)
		conditions = append(conditions, algebra.Binary{Op: syntax.Eq, L: left, R: right, T: catalog.Bool})
		keep, lose := p.L, p.R
		if n.Kind == syntax.RightJoin || n.Kind == syntax.FullJoin && r.Owned() {
			keep, lose = lose, keep
		}
		drop[keep], drop[lose] = true, true
		if n.Kind == syntax.FullJoin && !l.Owned() && !r.Owned() {
			if keep, err = eitherSide(b, n, at, p); err != nil {
				return nil, nil, err
			}
		}
		merged = append(merged, keep)
	}
	rest := slices.DeleteFunc(slices.Clone(out.Fields), func(f *algebra.Field) bool { return drop[f] })
	out.Fields = append(merged, rest...)
	return pairs, conditions, nil
}

// eitherSide is a column of FULL JOIN USING: the left side's, and the right side's on rows that only it has.
func eitherSide(b *algebra.Binder, n *syntax.Join, at *syntax.Column, p algebra.Pair) (*algebra.Field, error) {
	if b.Merged == nil {
		return nil, b.Unsupported(n, "FULL JOIN ... USING of public tables", "write ON, and coalesce(a.x, b.x)")
	}
	both, t, err := domain.Common(b, []syntax.Expr{at, at}, []algebra.Expr{b.ValueOf(p.L), b.ValueOf(p.R)})
	f := &algebra.Field{Column: &catalog.Column{Name: at.Name, Type: t, TypMod: -1, Exposed: true}}
	b.Merged[f] = algebra.Call{Name: "coalesce", Args: both, T: t}
	return f, err
}

// pairOf recognises an equality between a column of l and one of r whose values are told apart alike.
func pairOf(b *algebra.Binder, e syntax.Expr, l, r *algebra.Relation) (algebra.Pair, bool) {
	c, ok := e.(*syntax.Binary)
	if !ok || c.Op != syntax.Eq {
		return algebra.Pair{}, false
	}
	x, okX := quiet(b, c.L)
	y, okY := quiet(b, c.R)
	if !okX || !okY {
		return algebra.Pair{}, false
	}
	if l.Has(y) {
		x, y = y, x
	}
	return algebra.Pair{L: x, R: y}, l.Has(x) && r.Has(y)
}

// quiet finds the field that an expression names in the relation at hand, if it is nothing else.
func quiet(b *algebra.Binder, e syntax.Expr) (*algebra.Field, bool) {
	n, ok := e.(*syntax.Column)
	if !ok {
		return nil, false
	}
	f, found, err := columnOf(b, b.Bound.Source, n)
	return f, found && err == nil
}

// joining is a join on its way.
type joining struct {
	algebra.Meeting // after own: l is the side that an outer join preserves, and kind is inner, left, full or cross
	n               *syntax.Join
	left, right     *algebra.Side // of L and R
	out             *algebra.Relation
	using           []algebra.Expr // the conditions of USING
	linked          bool           // both sides are owned, and a pair makes their units the same
	link            algebra.Pair
	cap             *algebra.RowCap // of the right side's rows, where several of one unit meet several; nil: none
}

// own decides who owns the rows, and which rows are left out because nobody does:
//
//	owned x public   the owned side, whatever the fan-out: what a unit has is bounded after the join
//	owned x owned    only where a condition makes both rows the same unit's
func own(b *algebra.Binder, j *joining) error {
	if j.Kind == syntax.RightJoin {
		j.swap()
		j.Kind = syntax.LeftJoin
	}
	switch {
	case !j.L.Owned() && !j.R.Owned():
		return nil
	case j.L.Owned() && j.R.Owned():
		return ownBoth(b, j)
	}
	// Rows that only the public side has belong to nobody: without them a join is less outer than it was written.
	drops := j.Kind == syntax.FullJoin || j.Kind == syntax.LeftJoin && j.R.Owned()
	if j.Kind == syntax.FullJoin {
		if j.R.Owned() {
			j.swap()
		}
		j.Kind = syntax.LeftJoin
	} else if drops {
		j.Kind = syntax.InnerJoin
	}
	owned, public := j.L, j.R
	if j.R.Owned() {
		owned, public = public, owned
	}
	if drops {
		j.out.Note("ownerless", "rows of %s without a row of %s belong to nobody and are left out", cmp.Or(public.Table, "constants"),
			owned.Table)
	}
	j.out.Owners, j.out.Pending, j.out.Table = owned.Owners, owned.Pending, owned.Table
	j.out.MaxRows, j.out.MaxGroups, j.out.MaxValues, j.out.MaxTotal = owned.MaxRows, owned.MaxGroups, owned.MaxValues, owned.MaxTotal
	return nil
}

// swap exchanges the sides.
func (j *joining) swap() {
	j.L, j.R, j.left, j.right = j.R, j.L, j.right, j.left
	for i, p := range j.Pairs {
		j.Pairs[i] = algebra.Pair{L: p.R, R: p.L}
	}
}

// ownBoth joins rows of one unit with rows of the same unit.
func ownBoth(b *algebra.Binder, j *joining) error {
	link, ok := j.findLink()
	if l, r := j.L.Owner(), j.R.Owner(); !ok && l != nil && r != nil && l.Identifies != r.Identifies {
		return fault.UnitKinds(b.At(j.n), l.Name, r.Name)
	} else if !ok {
		return fault.UnitJoin(b.At(j.n), j.missing())
	}
	j.linked, j.link = true, link.Pair
	b.Bound.Shared().Rely(link.relies...)
	l, r, out := j.L, j.R, j.out
	out.Table = l.Table
	if j.Kind == syntax.FullJoin {
		return b.Unsupported(j.n, "a FULL JOIN of two tables of people", "use LEFT JOIN from the one that counts")
	}
	if j.Kind == syntax.LeftJoin {
		var err error
		if j.L, err = stability.ReachOwner(b, l); err != nil {
			return err
		}
		out.Owners = j.L.Owners
		out.Notes = slices.Concat(j.L.Notes, r.Notes)
		return nil
	}
	out.Owners = slices.Concat(l.Owners, r.Owners)
	if len(out.Owners) == 0 {
		out.Pending = l.Pending
		if link.L == l.Pending.From && link.R != r.Pending.From {
			out.Pending = r.Pending // the rows that l leads to are here already
		}
	}
	if slices.Contains(l.Owners, link.L) && slices.Contains(r.Owners, link.R) {
		j.left.Linked, j.right.Linked = link.L, link.R
	}
	return nil
}

// unitLink is a pair that makes two rows the same unit's, and the keys that this rests on.
type unitLink struct {
	algebra.Pair
	relies []algebra.Reliance
}

// findLink finds a condition that makes both sides' rows the same unit's: their units are equal, or both refer to one row of an owned
// table, or one refers to the other.
func (j *joining) findLink() (unitLink, bool) {
	for _, p := range j.Pairs {
		if l, ok := linkOf(p, j.L, j.R); ok {
			return l, true
		}
	}
	return unitLink{}, false
}

func linkOf(p algebra.Pair, l, r *algebra.Relation) (unitLink, bool) {
	switch {
	case !algebra.SameEquality(p.L.Type, p.R.Type) || p.L.Identifies != p.R.Identifies:
		return unitLink{}, false
	case slices.Contains(l.Owners, p.L) && slices.Contains(r.Owners, p.R):
		return unitLink{Pair: p}, true
	case p.L.Anchor.Table != nil && p.L.Anchor == p.R.Anchor:
		return unitLink{p, []algebra.Reliance{{Table: p.L.Anchor.Table, Columns: []string{p.L.Anchor.Column}}}}, true
	default:
		return unitLink{}, false
	}
}

// missing is the condition that would make the two sides the same unit's.
func (j *joining) missing() string {
	name := func(r *algebra.Relation, f *algebra.Field) string { return scalar.NameText(r.PartOf(f), f.Name) }
	left, right := "", ""
	for _, side := range []struct {
		r    *algebra.Relation
		text *string
	}{{j.L, &left}, {j.R, &right}} {
		switch {
		case side.r.Owner() != nil && side.r.Has(side.r.Owner()):
			*side.text = name(side.r, side.r.Owner())
		case side.r.Pending != nil && side.r.Has(side.r.Pending.From):
			to := side.r.Pending.To
			return fmt.Sprintf("JOIN %s ON %s = %s, and join on the unit there", scalar.NameText(to.Table.Name),
				scalar.NameText(to.Table.Name, to.Column),
				name(side.r, side.r.Pending.From))
		default:
			*side.text = "the unit of " + side.r.Table
		}
	}
	return left + " = " + right
}

// multiply derives how many rows a unit may have, and which fields still tell rows apart.
func (j *joining) multiply(env *algebra.StatementFacts) {
	l, r, out := j.L, j.R, j.out
	rKey, rOne := j.atMostOne(r, func(p algebra.Pair) (*algebra.Field, *algebra.Field) { return p.R, p.L })
	lKey, lOne := j.atMostOne(l, func(p algebra.Pair) (*algebra.Field, *algebra.Field) { return p.L, p.R })
	if j.Kind == syntax.FullJoin {
		return
	}
	inherit := func(keys []algebra.RowKey, through algebra.RowKey) {
		for _, k := range keys {
			out.Keys = append(out.Keys, algebra.RowKey{Fields: k.Fields, Relies: slices.Concat(k.Relies, through.Relies)})
		}
	}
	if rOne {
		j.RKey = &rKey
		inherit(l.Keys, rKey)
	}
	if lOne && !r.Lateral {
		j.LKey = &lKey
	}
	if lOne && j.Kind != syntax.LeftJoin && !r.Lateral {
		inherit(r.Keys, lKey)
	}
	if !j.linked {
		return
	}
	switch {
	case rOne:
		env.Rely(rKey.Relies...)
		out.MaxRows, out.MaxGroups, out.MaxValues, out.MaxTotal = l.MaxRows, l.MaxGroups, l.MaxValues, l.MaxTotal
	case lOne && j.Kind == syntax.LeftJoin:
		env.Rely(lKey.Relies...)
		out.MaxRows, out.MaxGroups = stability.Bound(l.MaxRows, r.MaxRows, oneLess), stability.Bound(l.MaxGroups, r.MaxGroups, oneLess)
		out.MaxValues = r.MaxValues
	case lOne:
		env.Rely(lKey.Relies...)
		out.MaxRows, out.MaxGroups, out.MaxValues, out.MaxTotal = r.MaxRows, r.MaxGroups, r.MaxValues, r.MaxTotal
	default:
		out.MaxRows, out.MaxGroups = stability.Bound(l.MaxRows, r.MaxRows, stability.MultiplyCapped),
			stability.Bound(l.MaxGroups, r.MaxGroups, stability.MultiplyCapped)
		out.MaxValues = stability.Bound(l.MaxValues, r.MaxValues, func(l, r int64) int64 { return max(l, r) })
		j.cap = stability.NewRowCap(nil, r, j.link.R)
		j.cap.Rows = j.cap.Most
		env.Caps = append(env.Caps, j.cap)
		out.Note("multiplied-bounds", "rows of %s and %s are paired within each unit: max_rows is %d", l.Table, r.Table, out.MaxRows)
	}
}

// atMostOne finds the proof that a row of the other side meets at most one row of this one: a key whose fields are all given.
func (j *joining) atMostOne(side *algebra.Relation, fields func(algebra.Pair) (own, other *algebra.Field)) (algebra.RowKey, bool) {
	given := func(f *algebra.Field) bool {
		if j.linked && slices.Contains(side.Owners, f) {
			return true
		}
		return slices.ContainsFunc(j.Pairs, func(p algebra.Pair) bool {
			own, other := fields(p)
			return own == f && algebra.SameEquality(own.Type, other.Type)
		})
	}
	for _, k := range side.Keys {
		if !slices.ContainsFunc(k.Fields, func(f *algebra.Field) bool { return !given(f) }) {
			return k, true
		}
	}
	return algebra.RowKey{}, false
}

func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// oneLess is for left rows that stay alone beside right rows that have a partner, of which there is at least one then: a + b - 1.
func oneLess(a, b int64) int64 { return addCapped(a-1, b) }

// rowCondition binds a condition over rows. Only here, at the outermost ANDs, may the ids of units stand: in equalities that join.
func rowCondition(b *algebra.Binder, n syntax.Expr) (algebra.Expr, error) {
	defer steps.Visit(b.Steps()).Leave()
	switch c := n.(type) {
	case *syntax.Binary:
		if c.Op == syntax.And {
			l, err := rowCondition(b, c.L)
			if err != nil {
				return nil, err
			}
			r, err := rowCondition(b, c.R)
			switch {
			case holds(c.L, l):
				return r, err
			case holds(c.R, r):
				return l, err
			}
			return algebra.Binary{Op: syntax.And, L: l, R: r, T: catalog.Bool}, err
		}
		if x, y, ok, err := identities(b, c); err != nil {
			return nil, err
		} else if ok {
			l, r, err := domain.Unify(b, c, syntax.Eq, c.L, c.R, algebra.Column{Of: x}, algebra.Column{Of: y})
			return algebra.Binary{Op: syntax.Eq, L: l, R: r, T: catalog.Bool}, err
		}
	case *syntax.InQuery:
		e, _, err := linkedRows(b, c) // unknown is as good as false here, and PostgreSQL joins what is nothing but IN
		return e, err
	}
	return condition(b, rowScope{b}, n)
}

// identities recognises x = y where both identify units of one kind. Within a relation all units' ids are the same unit's; with those of a
// query around it, this is what makes them so.
func identities(b *algebra.Binder, n *syntax.Binary) (x, y *algebra.Field, ok bool, err error) {
	cx, okX := n.L.(*syntax.Column)
	cy, okY := n.R.(*syntax.Column)
	if n.Op != syntax.Eq || !okX || !okY {
		return nil, nil, false, nil
	}
	x, errX := column(b, cx)
	y, errY := column(b, cy)
	if errX != nil || errY != nil || !x.Identity() || !y.Identity() {
		return nil, nil, false, nil
	}
	return x, y, true, sameIdentity(b, n, x, y)
}

// sameIdentity refuses to compare what identifies a unit with anything but what identifies a unit of the same kind.
func sameIdentity(b *algebra.Binder, n interface{ At() syntax.Pos }, x, y *algebra.Field) error {
	switch {
	case x.Identifies == y.Identifies:
		return nil
	case x.Identifies == "":
		return fault.UnitColumn(b.At(n), y.Name)
	case y.Identifies == "":
		return fault.UnitColumn(b.At(n), x.Name)
	default:
		return fault.UnitKinds(b.At(n), x.Name, y.Name)
	}
}
