package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// This file bounds the work that the rows of one unit can cause, by facts that are public: how many rows public tables have, how many share a
// value, caps that the statement enforces, and what each expression costs at most. docs/sql.md, section 4, says what is bounded and why.

// The most that a row may cost before anything bounds how many rows its unit has, and the most that the rows of one unit may cost where
// something does: a tenth of the default quantum, which is by how much the boundary at which an answer leaves is moved.
const (
	maxRowWork  = 20_000    // ns
	maxUnitWork = 5_000_000 // ns
)

// unknownRows stands for what no public fact bounds.
const unknownRows = 1 << 40

// count is a fact that a statement rests on: how many rows a public table has, or how many share a value of a column.
type count struct {
	table  *catalog.Table
	column string // "": rows
	key    string // a column that is unique by itself, instead
}

// meeting is how the rows of two sides of a join find each other.
type meeting struct {
	l, r       *relation
	pairs      []pair
	lKey, rKey *rowKey // by which a row of the other side meets at most one row of this one; nil: none
	kind       syntax.JoinKind
}

// effort is the work that a row causes.
type effort struct {
	base  fromItem  // whose row it is; nil: of a public relation
	of    *relation // the base's
	rows  *big.Int  // so many rows come of it
	pairs *big.Int  // so many rows it meets, product by product
	cost  *big.Int  // ns
	unit  *big.Int  // rows that one unit has of the base; nil: nothing bounds them
	why   []string  // the factors of rows, for people
}

// workload bounds the work of one statement.
type workload struct {
	*binder
	facts *statementFacts
	place fault.Position
	pairs *big.Int // the most that any block meets
}

// workBlock is a query whose rows are filtered and then computed with.
type workBlock struct {
	root  *fromItem
	of    *relation
	where expr
	each  []expr // evaluated on every row that is left
	ahead int64  // ns of each row that is left beside that
	whole bool   // its rows are about to be capped: a cap on just these would be the same one again
}

// boundWork caps rows where that is needed, and refuses what one unit could make too slow.
func (b *binder) boundWork() error {
	q := b.bound
	w := &workload{binder: b, facts: q.shared(), place: b.position(b.query.Pos), pairs: big.NewInt(1)}
	var each []expr
	for _, k := range q.keys {
		each = append(each, k.x)
	}
	for _, m := range q.measures {
		each = append(each, m.filter, m.x, m.y)
	}
	ahead := int64(groupedRow)
	if _, one := q.source.onePerUnit(); one {
		ahead = flatRow
	}
	if err := w.block(workBlock{root: &q.source.node, of: q.source, where: q.where, each: each, ahead: ahead}); err != nil {
		return err
	}
	q.pairs = w.pairs
	for _, c := range q.shared().caps {
		if c.active() {
			q.source.note("capped-rows", "of each %s at most %d rows of %s are paired with others, chosen at random but the same for the whole answer; intervals do not include what is left out",
				q.source.unitName(), c.rows, tablesOf(c.of))
		}
	}
	return nil
}

// tablesOf names the tables of an item for people.
func tablesOf(n fromItem) string {
	var names []string
	for _, l := range tableList(n) {
		if !slices.Contains(names, l) {
			names = append(names, l)
		}
	}
	return strings.Join(names, " and ")
}

func tableList(n fromItem) []string {
	switch n := n.(type) {
	case *scan:
		return []string{n.table.Name}
	case *joined:
		return append(tableList(n.left), tableList(n.right)...)
	case *rowCap:
		return tableList(n.of)
	case *derived:
		var all []string
		for _, q := range n.parts {
			if q.from != nil {
				all = append(all, tableList(q.from)...)
			}
		}
		return all
	default:
		return nil
	}
}

// block makes the work of a block fit: it caps the rows that drive it, and lowers caps.
func (w *workload) block(b workBlock) error {
	for {
		pushConditions(*b.root, b.where)
		e, err := w.item(*b.root, b.of)
		if err != nil {
			return err
		}
		if e.base == nil && e.unit == nil { // public rows alone: nobody's work
			return nil
		}
		if e, err = w.above(e, b); err != nil {
			return err
		}
		total, limit := e.cost, big.NewInt(maxRowWork)
		if e.unit != nil {
			total, limit = new(big.Int).Mul(e.cost, e.unit), big.NewInt(maxUnitWork)
		}
		if total.Cmp(limit) <= 0 {
			w.met(e.pairs)
			return nil
		}
		switch {
		case e.unit == nil && (!b.whole || e.rows.Cmp(big.NewInt(1)) > 0):
			if err := w.capBase(b.root, e); err != nil {
				return err
			}
		case e.unit != nil && narrowest(*b.root, b.where, b.each):
		default:
			return w.refuse(e)
		}
	}
}

// met remembers the most rows that one row meets.
func (w *workload) met(pairs *big.Int) {
	if pairs.Cmp(w.pairs) > 0 {
		w.pairs = pairs
	}
}

// refuse spells the product out.
func (w *workload) refuse(e effort) error {
	factors := slices.Clone(e.why)
	unit := "1 row"
	switch {
	case e.unit == nil:
		unit = "each row of a unit, of which nothing bounds the number"
	case e.unit.Cmp(big.NewInt(1)) > 0:
		unit = e.unit.String() + " rows of one unit"
	}
	work, limit := e.cost, int64(maxRowWork)
	if e.unit != nil {
		work, limit = new(big.Int).Mul(e.cost, e.unit), maxUnitWork
	}
	micros := new(big.Int).Div(new(big.Int).Add(work, big.NewInt(999)), big.NewInt(1000))
	return fault.FanOut(w.place, unit, factors, micros.String(), limit/1000)
}

// above adds the conditions of a block, and what is computed of its rows. A condition on the rows that drive it alone is tested once for
// each of them, before they are joined.
func (w *workload) above(e effort, b workBlock) (effort, error) {
	cost, factor := new(big.Int).Set(e.cost), big.NewInt(1)
	add := func(x expr, rows *big.Int, top bool) error {
		c, met, err := w.expr(x, top, e)
		if err != nil {
			return err
		}
		factor.Add(factor, met)
		cost.Add(cost, c.Mul(c, rows))
		return nil
	}
	for _, x := range boundConjuncts(b.where) {
		rows := e.rows
		if e.base != nil && !isJoin(x) && readsWithin(x, e.base) {
			rows = big.NewInt(1)
		}
		if err := add(x, rows, true); err != nil {
			return e, err
		}
	}
	for _, x := range b.each {
		if err := add(x, e.rows, false); err != nil {
			return e, err
		}
	}
	e.cost = cost.Add(cost, new(big.Int).Mul(e.rows, big.NewInt(b.ahead)))
	e.pairs = new(big.Int).Mul(e.pairs, factor)
	if inside := new(big.Int).Sub(factor, big.NewInt(1)); inside.Sign() > 0 {
		e.why = append(slices.Clone(e.why), inside.String()+" in EXISTS, IN and windows")
	}
	return e, nil
}

// isJoin reports whether PostgreSQL may make a condition a join of its own, before or after others.
func isJoin(e expr) bool {
	if n, ok := e.(not); ok {
		e = n.x
	}
	return isQuery(e)
}

// readsWithin reports whether an expression is computed from the rows of some items alone, by queries of its own too.
func readsWithin(e expr, among ...fromItem) bool {
	switch e := e.(type) {
	case nil:
		return true
	case column:
		return slices.ContainsFunc(among, func(n fromItem) bool { return holds(n, e.of) })
	case exists:
		return readsWithin(e.where, append(slices.Clone(among), e.from)...)
	case unitAggregate:
		return false
	}
	return !slices.ContainsFunc(children(e), func(c expr) bool { return !readsWithin(c, among...) })
}

// item is the work of an item of FROM.
func (w *workload) item(n fromItem, r *relation) (effort, error) {
	if !r.owned() {
		return effort{}, nil // nobody's
	}
	switch n := n.(type) {
	case *scan:
		return w.fresh(n, r), nil
	case *rowCap:
		return w.capped(n, r)
	case *derived:
		return w.derived(n, r)
	case *joined:
		return w.joined(n, r)
	default:
		panic("sqlrewrite: relation without work")
	}
}

// fresh is the work of a row before anything is done with it.
func (w *workload) fresh(n fromItem, r *relation) effort {
	e := effort{base: n, of: r, rows: big.NewInt(1), pairs: big.NewInt(1), cost: big.NewInt(scanRow)}
	if key, one := r.onePerUnit(); one {
		w.facts.rely(key.relies...)
		e.unit = big.NewInt(1)
	}
	return e
}

// capped is the work of a row that a cap kept. What it took to choose it is bounded row by row.
func (w *workload) capped(n *rowCap, r *relation) (effort, error) {
	if !n.active() {
		return w.item(n.of, r)
	}
	err := w.block(workBlock{root: &n.of, of: r, where: n.where, ahead: cappedRow, whole: true})
	if err != nil && n.where != nil {
		n.bare, n.where = true, nil
		err = w.block(workBlock{root: &n.of, of: r, ahead: cappedRow, whole: true})
	}
	if err != nil {
		return effort{}, err
	}
	e := effort{base: n, of: r, rows: big.NewInt(1), pairs: big.NewInt(1), cost: big.NewInt(scanRow)}
	if n.units || slices.Contains(r.owners, n.by) {
		e.unit = big.NewInt(n.rows)
	}
	return e, nil
}

// derived is the work of a row of a query in FROM.
func (w *workload) derived(n *derived, r *relation) (effort, error) {
	if len(n.parts) == 1 && n.parts[0].plain() {
		q := n.parts[0]
		pushConditions(q.from, q.where)
		e, err := w.item(q.from, q.of)
		if err != nil {
			return e, err
		}
		return w.above(e, workBlock{where: q.where, each: q.outputs})
	}
	out := w.fresh(n, r)
	for _, q := range n.parts {
		if err := w.block(workBlock{root: &q.from, of: q.of, where: q.where, each: slices.Concat(q.keys, q.outputs), ahead: groupedRow}); err != nil {
			return out, err
		}
		if out.unit != nil {
			continue
		}
		// A row of the query stands for those that it comes from, and there may be several of each.
		e, err := w.item(q.from, q.of)
		if err != nil {
			return out, err
		}
		if e.rows.Cmp(out.rows) > 0 {
			out.rows, out.pairs, out.why = e.rows, e.pairs, e.why
		}
		if e.cost.Cmp(out.cost) > 0 {
			out.cost = e.cost
		}
	}
	return out, nil
}

// plain reports whether each row of a query comes of one row of what it reads, and is computed from that alone.
func (q *rowQuery) plain() bool {
	return q.from != nil && len(q.keys) == 0 && !q.distinct && !slices.ContainsFunc(q.outputs, hasAggregate)
}

func hasAggregate(e expr) bool {
	_, ok := e.(unitAggregate)
	return ok || slices.ContainsFunc(children(e), hasAggregate)
}

// joined is the work of a row that is joined with others.
func (w *workload) joined(n *joined, r *relation) (effort, error) {
	m := n.meets
	if m == nil { // a path, or a value of public tables: one row
		e, err := w.item(n.left, r)
		if err == nil && e.base == n.left {
			e.base = n
		}
		return e.times(big.NewInt(1), ""), err
	}
	l, err := w.item(n.left, m.l)
	if err != nil {
		return l, err
	}
	right, err := w.item(n.right, m.r)
	if err != nil {
		return right, err
	}
	var out effort
	switch {
	case !m.l.owned():
		out = right.times(w.publicFan(n.left, m.lKey, m.pairs, func(p pair) (*field, *field) { return p.l, p.r }), tablesOf(n.left))
	case !m.r.owned():
		out = l.times(w.publicFan(n.right, m.rKey, m.pairs, func(p pair) (*field, *field) { return p.r, p.l }), tablesOf(n.right))
	case m.rKey != nil:
		w.facts.rely(m.rKey.relies...)
		if out = l.times(big.NewInt(1), ""); right.unit == nil || right.base == nil {
			err = w.alone(right)
		}
	case m.lKey != nil:
		w.facts.rely(m.lKey.relies...)
		out = right.times(big.NewInt(1), "")
		switch {
		case m.kind != syntax.LeftJoin && l.unit == nil:
			err = w.alone(l)
		case m.kind != syntax.LeftJoin || right.unit == nil:
		case l.unit == nil: // rows of the left side that meet none stay, any number of them
			out.base, out.of, out.unit = l.base, l.of, nil
		default:
			out.unit = new(big.Int).Add(l.unit, right.unit)
		}
		if l.rows.Cmp(out.rows) > 0 {
			out.rows = l.rows
		}
	default:
		c, ok := n.right.(*rowCap)
		if !ok || !c.active() {
			return out, w.refuse(l)
		}
		out = l.times(big.NewInt(c.rows), tablesOf(c.of)+" of the same unit")
	}
	if err != nil {
		return out, err
	}
	for _, x := range boundConjuncts(n.on) {
		c, _, err := w.expr(x, true, out)
		if err != nil {
			return out, err
		}
		out.cost = new(big.Int).Add(out.cost, c.Mul(c, out.rows))
	}
	return out, nil
}

// alone checks the work of rows of which each meets at most one of those that the join is driven by.
func (w *workload) alone(e effort) error {
	if e.cost.Cmp(big.NewInt(maxRowWork)) > 0 {
		return w.refuse(e)
	}
	w.met(e.pairs)
	return nil
}

// times is the work when each row meets some number of others.
func (e effort) times(fan *big.Int, what string) effort {
	e.rows = new(big.Int).Mul(e.rows, fan)
	if e.rows.Sign() == 0 {
		e.rows = big.NewInt(1)
	}
	e.pairs = new(big.Int).Mul(e.pairs, fan)
	e.cost = new(big.Int).Add(e.cost, new(big.Int).Mul(e.rows, big.NewInt(pairRow)))
	if what != "" && fan.Cmp(big.NewInt(1)) > 0 {
		e.why = append(slices.Clone(e.why), fmt.Sprintf("%s of %s", fan, what))
	}
	return e
}

// publicFan is how many rows of a public item one row of the other side meets at most.
func (w *workload) publicFan(n fromItem, key *rowKey, pairs []pair, sides func(pair) (own, other *field)) *big.Int {
	if key != nil {
		w.facts.rely(key.relies...)
		return big.NewInt(1)
	}
	var best *big.Int
	var rests []count
	for _, p := range pairs {
		own, other := sides(p)
		if !sameEquality(own.Type, other.Type) {
			continue
		}
		if rows, counts := equalRows(n, own); best == nil || rows.Cmp(best) < 0 {
			best, rests = rows, counts
		}
	}
	if best == nil {
		best, rests = mostRows(n)
	}
	w.facts.count(rests...)
	return best
}

// mostRows is how many rows a public item has at most, and the facts that this rests on.
func mostRows(n fromItem) (*big.Int, []count) {
	switch n := n.(type) {
	case *scan:
		if n.table.MostRows <= 0 {
			return big.NewInt(unknownRows), nil
		}
		return big.NewInt(n.table.MostRows), []count{{table: n.table}}
	case *rowCap:
		return mostRows(n.of)
	case *joined:
		l, counts := mostRows(n.left)
		r, more := mostRows(n.right)
		product := new(big.Int).Mul(l, r)
		if n.kind == syntax.FullJoin {
			return product.Add(product, l.Add(l, r)), append(counts, more...)
		}
		if n.meets != nil {
			for _, p := range n.meets.pairs {
				if !sameEquality(p.l.Type, p.r.Type) {
					continue
				}
				if rows, rests := equalRows(n.right, p.r); n.kind != syntax.FullJoin {
					if fan := new(big.Int).Mul(l, rows); fan.Cmp(product) < 0 {
						product, more = fan, rests
					}
				}
			}
		}
		return product, append(counts, more...)
	case *derived:
		total, counts := new(big.Int), []count(nil)
		for _, q := range n.parts {
			rows, more := big.NewInt(1), []count(nil)
			if q.from != nil && (len(q.keys) > 0 || !slices.ContainsFunc(q.outputs, hasAggregate)) {
				rows, more = mostRows(q.from)
			}
			total.Add(total, rows)
			counts = append(counts, more...)
		}
		return total, counts
	default:
		panic("sqlrewrite: relation without a number of rows")
	}
}

// equalRows is how many rows of a public item have one value of a field at most, and the facts that this rests on.
func equalRows(n fromItem, f *field) (*big.Int, []count) {
	switch n := n.(type) {
	case *scan:
		if slices.ContainsFunc(n.table.Unique, func(key []string) bool { return len(key) == 1 && key[0] == f.Name }) {
			return big.NewInt(1), []count{{table: n.table, key: f.Name}}
		}
		if c, ok := n.table.Column(f.Name); ok && c.MostEqual > 0 {
			return big.NewInt(c.MostEqual), []count{{table: n.table, column: c.Name}}
		}
	case *rowCap:
		return equalRows(n.of, f)
	case *joined:
		if n.meets == nil || n.kind == syntax.FullJoin {
			break
		}
		side, other, own := n.left, n.right, func(p pair) *field { return p.r }
		if holds(n.right, f) {
			side, other, own = n.right, n.left, func(p pair) *field { return p.l }
		}
		rows, counts := equalRows(side, f)
		fan, more := mostRows(other)
		for _, p := range n.meets.pairs {
			if by, rests := equalRows(other, own(p)); sameEquality(p.l.Type, p.r.Type) && by.Cmp(fan) < 0 {
				fan, more = by, rests
			}
		}
		return new(big.Int).Mul(rows, fan), append(counts, more...)
	case *derived:
		if len(n.parts) != 1 || n.parts[0].from == nil {
			break
		}
		if i := slices.Index(n.fields, f); i >= 0 && i < len(n.parts[0].outputs) {
			if stem := plainField(n.parts[0].outputs[i]); stem != nil && n.parts[0].plain() {
				return equalRows(n.parts[0].from, stem)
			}
		}
	}
	return mostRows(n)
}

// count makes facts part of what the statement requires of public tables.
func (e *statementFacts) count(all ...count) {
	for _, c := range all {
		if c.key != "" {
			e.rely(reliance{c.table, []string{c.key}})
		} else if !slices.Contains(e.counted, c) {
			e.counted = append(e.counted, c)
		}
	}
}

// capBase caps the rows that drive a block: with the tables that lead from them to their unit, where they do not hold its id.
func (w *workload) capBase(root *fromItem, e effort) error {
	if _, already := e.base.(*rowCap); already || e.base == nil || e.of.maxRows <= 0 {
		return w.refuse(e)
	}
	rows := *e.of
	rows.node = e.base
	if err := w.reachOwner(&rows); err != nil {
		return err
	}
	for _, o := range rows.owners {
		if !holds(rows.node, o) {
			continue
		}
		c := newRowCap(rows.node, e.of, o)
		c.rows, c.units = c.most, true
		w.facts.caps = append(w.facts.caps, c)
		replaceItem(root, e.base, c)
		return nil
	}
	return w.refuse(e)
}

// replaceItem puts one item in the place of another.
func replaceItem(at *fromItem, old, new fromItem) bool {
	if *at == old {
		*at = new
		return true
	}
	switch n := (*at).(type) {
	case *joined:
		return replaceItem(&n.left, old, new) || replaceItem(&n.right, old, new)
	case *rowCap:
		return n != new && replaceItem(&n.of, old, new)
	case *derived:
		for _, q := range n.parts {
			if q.from != nil && replaceItem(&q.from, old, new) {
				return true
			}
		}
	}
	return false
}

// capsIn are the caps that the rows of a block pass, and those of conditions on them.
func capsIn(n fromItem, more ...expr) []*rowCap {
	var all []*rowCap
	switch n := n.(type) {
	case *joined:
		all = append(append(all, capsIn(n.left)...), capsIn(n.right)...)
	case *rowCap:
		if n.active() {
			all = append(all, n)
		}
	case *derived:
		if len(n.parts) == 1 && n.parts[0].plain() {
			all = capsIn(n.parts[0].from, append(slices.Clone(n.parts[0].outputs), n.parts[0].where)...)
		}
	}
	for _, e := range more {
		all = append(all, capsOf(e)...)
	}
	return all
}

func capsOf(e expr) []*rowCap {
	if e == nil {
		return nil
	}
	var all []*rowCap
	if x, ok := e.(exists); ok {
		all = append(capsIn(x.from), capsOf(x.where)...)
	}
	for _, c := range children(e) {
		all = append(all, capsOf(c)...)
	}
	return all
}

// narrowest lowers the largest cap of a block that can be lowered.
func narrowest(n fromItem, where expr, each []expr) bool {
	var largest *rowCap
	for _, c := range capsIn(n, append(slices.Clone(each), where)...) {
		if c.rows > c.least && (largest == nil || c.rows > largest.rows) {
			largest = c
		}
	}
	return largest != nil && largest.narrow()
}

// pushConditions copies conditions on the rows of a capped item below its cap: rows that fail them take no place there. Only such as every
// row that is used fulfils: not those of WHERE on the side of an outer join that may be NULL.
func pushConditions(n fromItem, where expr) {
	switch n := n.(type) {
	case *rowCap:
		if !n.bare {
			n.where = onlyOn(where, n.of)
		}
	case *joined:
		var left, right expr
		switch n.kind {
		case syntax.LeftJoin:
			left, right = where, n.on
		case syntax.FullJoin: // either side may be NULL
		default:
			left = all(append(boundConjuncts(where), boundConjuncts(n.on)...))
			right = left
		}
		pushConditions(n.left, left)
		pushConditions(n.right, right)
	}
}
