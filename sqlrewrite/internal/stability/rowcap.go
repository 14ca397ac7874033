package sqlrewrite

import (
	"fmt"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// rowCap is an item of FROM of which each unit, or each value of another column that belongs to one unit, keeps at most some number of rows:
// those that come first in an order by a keyed hash of all that the statement reads of them. Which rows stay is a function of that unit's rows
// alone; docs/sql.md proves it.
type rowCap struct {
	leaf
	of    fromItem
	by    *field // rows with one value of it are one unit's; rows where it is NULL belong to nobody
	units bool   // by is the unit's id
	rows  int64  // so many stay; 0: it is not capped, and prints as what it is made of
	// most is what the policy says of one unit, its rows of all its groups; least is what the cap is not lowered below.
	least, most int64
	bare        bool     // conditions cost too much to be tested on every row
	where       expr     // conditions on its rows alone, which hold above too: what fails them takes no place; nil: none
	outputs     []*field // printed as c0, c1, ...
}

func (*rowCap) fromItem() {}

// leastKept is how many rows of a unit a cap keeps at least, or as many as one group counts of it: with fewer, better no answer than one of so little.
const leastKept = 4

// newRowCap makes room for a cap of a relation's rows by a field. With rows 0 it changes nothing.
func newRowCap(of fromItem, r *relation, by *field) *rowCap {
	most := r.maxRows
	if r.maxGroups > 0 {
		most = bound(r.maxRows, r.maxGroups, multiplyCapped)
	}
	return &rowCap{of: of, by: by, least: max(1, min(r.maxRows, leastKept)), most: max(1, min(most, maxBound))}
}

// active reports whether it leaves rows out.
func (c *rowCap) active() bool { return c.rows > 0 }

// narrow lowers the cap by an eighth; false if it is as low as it may be.
func (c *rowCap) narrow() bool {
	if c.rows <= c.least {
		return false
	}
	c.rows = max(c.least, c.rows-c.rows/8-1)
	return true
}

// leavesIn are the relations of an item that have names of their own.
func leavesIn(n fromItem) []*leaf {
	switch n := n.(type) {
	case *scan:
		return []*leaf{&n.leaf}
	case *derived:
		return []*leaf{&n.leaf}
	case *joined:
		return append(leavesIn(n.left), leavesIn(n.right)...)
	case *rowCap:
		return leavesIn(n.of)
	default:
		panic("sqlrewrite: relation without leaves")
	}
}

// holds reports whether a field is one of the item's rows.
func holds(n fromItem, f *field) bool {
	return slices.ContainsFunc(leavesIn(n), func(l *leaf) bool { return slices.Contains(l.fields, f) })
}

// settleCaps names the caps of a statement, and says which fields they hand on: all that anything else of it reads.
func (q *boundQuery) settleCaps() {
	caps := slices.DeleteFunc(slices.Clone(q.shared().caps), func(c *rowCap) bool { return !c.active() })
	if len(caps) == 0 {
		return
	}
	read := &pinWalk{used: map[*field]bool{}, ties: true}
	read.query(q)
	for i, c := range caps {
		c.alias = fmt.Sprintf("w%d", i+1)
		for _, l := range leavesIn(c.of) {
			for _, f := range l.fields {
				if read.used[f] || f == c.by {
					c.outputs = append(c.outputs, f)
				}
			}
		}
	}
	// An outer cap hands on what an inner one does: the outer one comes first.
	slices.SortStableFunc(caps, func(a, b *rowCap) int { return len(leavesIn(b.of)) - len(leavesIn(a.of)) })
	for _, c := range caps {
		for _, f := range c.outputs {
			f.caps = append(f.caps, c)
		}
	}
}

// rowCap prints a capped relation.
func (p *printer) rowCap(c *rowCap) string {
	if !c.active() || p.inline || p.structure != nil {
		return p.fromItem(c.of)
	}
	if p.seedArg == 0 {
		p.seedArg = p.rawArg(int64(0))
	}
	p.inside = append(p.inside, c)
	var outer, list, ties []string
	hash := fmt.Sprintf("$%d::bigint", p.seedArg)
	for i, f := range c.outputs {
		list = append(list, fmt.Sprintf("%s AS c%d", p.field(f), i))
		outer = append(outer, fmt.Sprintf("v.c%d", i))
		hash = "pg_catalog.hashtextextended(COALESCE(" + asTextSQL(p.field(f)) + ", ''), " + hash + ")"
		ties = append(ties, p.identical(f))
	}
	there := "(" + p.field(c.by) + " IS NOT NULL)"
	from, conditions, ok := p.steady(c.of, c.where, func() []string { return []string{there} })
	if !ok {
		conditions = there
		if c.where != nil {
			conditions += " AND " + p.text(c.where)
		}
	}
	place := "pg_catalog.row_number() OVER (PARTITION BY " + p.field(c.by) + " ORDER BY " + hash + ", " + strings.Join(ties, ", ") + ") AS place"
	if !ok {
		from = p.fromItem(c.of)
	}
	source := "SELECT " + strings.Join(append(list, place), ", ") + " FROM " + from + " WHERE " + conditions
	p.inside = p.inside[:len(p.inside)-1]
	limit := p.sub(func() { p.arg(fmt.Sprint(c.rows), "bigint") })
	return "(SELECT " + strings.Join(outer, ", ") + " FROM (" + source + ") AS v WHERE v.place <= " + limit + ")" + c.as()
}

// identical prints a field as a sort key in which only identical values are equal.
func (p *printer) identical(f *field) string {
	name := p.field(f)
	switch {
	case f.Type == catalog.Char: // 'a' and 'a ' are equal, and are one text
		return name + "::" + textType + " COLLATE " + byteCollation + ", pg_catalog.octet_length(" + name + ")"
	case f.Type == catalog.Text || !oneText(column{of: f}): // -0 and 0, 1.0 and 1.00, 1 day and 24 hours
		return name + "::" + textType + " COLLATE " + byteCollation
	default:
		return name
	}
}

// onlyOn are the conditions of a conjunction that look at rows of one item alone.
func onlyOn(where expr, n fromItem) expr {
	var some []expr
	for _, e := range boundConjuncts(where) {
		if readsOnly(e, n) {
			some = append(some, e)
		}
	}
	return all(some)
}

// readsOnly reports whether an expression is computed from the rows of one item, without queries of its own.
func readsOnly(e expr, n fromItem) bool {
	switch e := e.(type) {
	case nil:
		return true
	case column:
		return holds(n, e.of)
	case exists, inRows, unitAggregate:
		return false
	}
	return !slices.ContainsFunc(children(e), func(c expr) bool { return !readsOnly(c, n) })
}

// text says it in the plan.
func (c *rowCap) text() string {
	return fmt.Sprintf("at most %d rows of each %s, chosen by a keyed hash", c.rows, c.by.Name)
}

// isEquality recognises x = y between an expression of one item's rows and one of others'.
func isEquality(e expr, n fromItem) (inner, outer expr, ok bool) {
	eq, isBinary := e.(binary)
	if !isBinary || eq.op != syntax.Eq {
		return nil, nil, false
	}
	for _, side := range [][2]expr{{eq.l, eq.r}, {eq.r, eq.l}} {
		if readsOnly(side[0], n) && !isConstant(side[0]) && !reads(side[1], n) {
			return side[0], side[1], true
		}
	}
	return nil, nil, false
}

func isConstant(e expr) bool {
	switch e := e.(type) {
	case column, exists, inRows, unitAggregate:
		return false
	default:
		return !slices.ContainsFunc(children(e), func(c expr) bool { return !isConstant(c) })
	}
}

// reads reports whether an expression looks at a row of the item.
func reads(e expr, n fromItem) bool {
	switch e := e.(type) {
	case column:
		return holds(n, e.of)
	case exists:
		return true
	case inRows:
		return true
	}
	return slices.ContainsFunc(children(e), func(c expr) bool { return reads(c, n) })
}
