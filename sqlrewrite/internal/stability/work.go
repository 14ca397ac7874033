package stability

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Bound combines two bounds of the policy; 0, which is none, stays none.
func Bound(a, b int64, combine func(a, b int64) int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return combine(a, b)
}

func MultiplyCapped(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// MaxMatched is how many bytes of a text a pattern is matched with, and MatchedLetters how many characters surely have no more (A32).
const (
	MaxMatched     = 1024
	MatchedLetters = MaxMatched / 4
)

// LongestText is how many bytes a text below the aggregates can have.
func LongestText(e algebra.Expr) int64 {
	switch e := e.(type) {
	case algebra.Constant:
		return int64(len(e.Text))
	case algebra.Column:
		return e.Of.LongestText()
	case algebra.Aggregate:
		longest := int64(0)
		for _, x := range e.Args {
			longest = max(longest, LongestText(x))
		}
		return longest
	default:
		return 4 * domain.MaxLetters(e)
	}
}

func IsQuery(e algebra.Expr) bool {
	switch e.(type) {
	case algebra.Exists, algebra.InRows:
		return true
	default:
		return false
	}
}

// This file bounds the work that the rows of one unit can cause, by facts that are public: how many rows public tables have, how many share
// a value, caps that the statement enforces, and what each expression costs at most. docs/sql/work.md says what is bounded and why.

// The most that a row may cost before anything bounds how many rows its unit has, and the most that the rows of one unit may cost where
// something does: a tenth of the default quantum, which is by how much the boundary at which an answer leaves is moved.
const (
	MaxRowWork  = 20_000    // ns
	MaxUnitWork = 5_000_000 // ns
	largePart   = 10        // a table that takes more than this part of MaxUnitWork to read is large
)

// unknownRows stands for what no public fact bounds.
const unknownRows = 1 << 40

// effort is the work that a row causes.
type effort struct {
	base  algebra.FromItem  // whose row it is; nil: of a public relation
	of    *algebra.Relation // the base's
	rows  *big.Int          // so many rows come of it
	pairs *big.Int          // so many rows it meets, product by product
	made  *big.Int          // so many rows of the base one row of a table may be in
	cost  *big.Int          // ns
	unit  *big.Int          // rows that one unit has of the base; nil: nothing bounds them
	why   []string          // the factors of rows, for people
}

// workload bounds the work of one statement.
type workload struct {
	*algebra.Binder
	facts *algebra.StatementFacts
	place fault.Position
	pairs *big.Int                      // the most that any block meets
	spare *big.Int                      // what is left of the limit for a row, of the block that leaves least
	runs  *big.Int                      // how often the statement runs: all runs together are within the limits
	row   int64                         // what a row may take, in ns, where nothing bounds how many its unit has
	units map[algebra.FromItem]*big.Int // by what a block reads: what one unit costs it, in ns; of rows that nothing bounds nothing
	most  *big.Int                      // the most rows that one unit has in a block
	dear  dearest
	// compiled are the regular expressions that are met.
	compiled map[string]bool
	// tested are the conditions of the blocks around what is looked at.
	tested []algebra.Expr
}

// workBlock is a query whose rows are filtered and then computed with.
type workBlock struct {
	root  *algebra.FromItem
	of    *algebra.Relation
	where algebra.Expr
	each  []algebra.Expr // evaluated on every row that is left
	ahead int64          // ns of each row that is left beside that
	whole bool           // its rows are about to be capped: a cap on just these would be the same one again
}

// BoundWork caps rows where that is needed, and refuses what one unit could make too slow by itself. [Together] adds up what the blocks of
// a question come to.
func BoundWork(b *algebra.Binder) error {
	q := b.Bound
	q.At = b.Position(b.Query.Pos)
	w, err := workOf(b, q, q.Statistics)
	if err != nil {
		return err
	}
	q.Pairs, q.Spare = w.pairs, w.spare.Int64()
	noteCaps(q)
	if q.CopyOf() != nil {
		q.Fan = w.fanOf(&q.Source.Node)
	}
	return nil
}

// workOf is the work of a query's statement of some of its statistics. The binder may be nil where the query was bounded before.
func workOf(b *algebra.Binder, q *algebra.BoundQuery, statistics []algebra.Statistic) (*workload, error) {
	runs, row := max(1, q.Load.Runs), int64(MaxRowWork)
	if q.Load.Dear {
		row /= provenMargin
	}
	w := &workload{Binder: b, facts: q.Shared(), place: q.At, pairs: big.NewInt(1), spare: big.NewInt(row / runs), row: row,
		runs: big.NewInt(runs), compiled: make(map[string]bool), units: make(map[algebra.FromItem]*big.Int), most: big.NewInt(1)}
	var each []algebra.Expr
	for _, k := range q.Cells() {
		each = append(each, k.X, k.X) // once more to leave out rows of groups that are not shown
	}
	for _, m := range statistics {
		each = append(each, m.Filter, m.X, m.Y)
	}
	ahead := int64(GroupedRow)
	if _, one := q.Source.OnePerUnit(); one {
		ahead = FlatRow
	}
	_, err := w.block(workBlock{root: &q.Source.Node, of: q.Source, where: q.Where, each: each,
		ahead: ahead + q.Load.Row + listsSearched(q, statistics)})
	return w, err
}

// listsSearched gives the cost, in ns, of searching a row's keys and values in lists: in those of the shown keys, where tables are joined,
// since PostgreSQL then plans without them and hashes none (clauses.c, convert_saop_to_hashed), and in those that a statistic chooses among
// (array_position).
func listsSearched(q *algebra.BoundQuery, statistics []algebra.Statistic) int64 {
	listed := 0
	if q.Shared().Joins() && !slices.ContainsFunc(q.Cells(), algebra.GroupKey.Private) {
		for _, k := range q.Cells() {
			listed += len(k.Domain)
		}
	}
	for _, m := range statistics {
		listed += len(m.Among)
	}
	return int64(listed) * textCompared
}

// textCompared is what it costs to compare a text with one of an array, in ns.
const textCompared = 20

// Steps counts what bounding takes, also where there is no binder any more.
func (w *workload) Steps() *steps.Count { return w.facts.Steps }

// noteCaps says of a query's answer what caps leave out.
func noteCaps(q *algebra.BoundQuery) {
	q.Source.Notes = slices.DeleteFunc(q.Source.Notes, func(n algebra.Note) bool { return n.Code == "capped-rows" })
	for _, c := range q.Shared().Caps {
		if c.Active() && c.Least > 0 {
			q.Source.Note("capped-rows",
				"of each %s at most %d rows of %s are paired with others, chosen at random but the same for the whole answer; intervals do not "+
					"include what is left out",
				q.Source.UnitName(), c.Rows, tablesOf(c.Of))
		}
	}
}

// tablesOf names the tables of an item for people.
func tablesOf(n algebra.FromItem) string {
	var names []string
	for _, l := range tableList(n) {
		if !slices.Contains(names, l) {
			names = append(names, l)
		}
	}
	return strings.Join(names, " and ")
}

func tableList(n algebra.FromItem) []string {
	switch n := n.(type) {
	case *algebra.Scan:
		return []string{n.Table.Name}
	case *algebra.Joined:
		return append(tableList(n.Left), tableList(n.Right)...)
	case *algebra.RowCap:
		return tableList(n.Of)
	case *algebra.Derived:
		var all []string
		for _, q := range n.Parts {
			if q.From != nil {
				all = append(all, tableList(q.From)...)
			}
		}
		return all
	default:
		return nil
	}
}

// block makes the work of a block fit: it caps the rows that drive it, and lowers caps.
func (w *workload) block(b workBlock) (effort, error) {
	all, _, err := w.fitted(b)
	return all, err
}

// fitted is the work of a block that fits, and that of the rows of its FROM alone.
func (w *workload) fitted(b workBlock) (all, from effort, err error) {
	w.tested = append(w.tested, b.where)
	defer func() { w.tested = w.tested[:len(w.tested)-1] }()
	for {
		pushConditions(w.Steps(), *b.root, b.where)
		from, err := w.item(*b.root, b.of)
		if err != nil {
			return from, from, err
		}
		if from.base == nil && from.unit == nil { // public rows alone: nobody's work
			return from, from, nil
		}
		e, err := w.above(from, b)
		if err != nil {
			return e, from, err
		}
		if w.fits(e) {
			w.counts(*b.root, e)
			return e, from, nil
		}
		if copied := ofCopied(e); copied.unit != nil && w.fits(copied) {
			w.counts(*b.root, copied)
			return copied, from, nil
		}
		switch {
		case e.unit == nil && (!b.whole || e.base != *b.root && e.rows.Cmp(big.NewInt(1)) > 0):
			if err := w.capBase(b.root, e); err != nil {
				return e, from, err
			}
		case narrowest(*b.root, b.where, b.each):
		default:
			return e, from, w.refuse(e)
		}
	}
}

// counts notes what a block costs that fits.
func (w *workload) counts(root algebra.FromItem, e effort) {
	delete(w.units, root)
	if e.unit == nil {
		return
	}
	w.units[root] = w.work(e)
	if rows := new(big.Int).Mul(e.rows, e.unit); rows.Cmp(w.most) > 0 {
		w.most = rows
	}
}

// ofCopied is the work of all rows that a unit has in a prepared copy; that of a row, where it is of another table.
func ofCopied(e effort) effort {
	if scan, ok := e.base.(*algebra.Scan); ok && scan.Table.Copy != nil && e.unit == nil {
		e.unit = big.NewInt(scan.Table.Copy.MaxRows)
	}
	return e
}

// fits reports whether the work of one unit is within what it may be. It remembers the most rows that one row meets, and what is left.
func (w *workload) fits(e effort) bool {
	left, rows := big.NewInt(w.row), e.rows
	if e.unit != nil {
		left, rows = big.NewInt(MaxUnitWork), new(big.Int).Mul(e.rows, e.unit)
	}
	if left.Sub(left, w.work(e)); left.Sign() < 0 {
		return false
	}
	if pairs := new(big.Int).Mul(e.pairs, e.made); pairs.Cmp(w.pairs) > 0 {
		w.pairs = pairs
	}
	if rows.Sign() > 0 {
		left.Quo(left, rows)
	}
	left.Quo(left, w.runs)
	if left.Cmp(w.spare) < 0 {
		w.spare = left
	}
	return true
}

// work is that of all rows of a unit in all runs; of one row, where nothing bounds their number.
func (w *workload) work(e effort) *big.Int {
	all := new(big.Int).Mul(e.cost, w.runs)
	if e.unit == nil {
		return all
	}
	return all.Mul(all, e.unit)
}

// refuse spells the product out.
func (w *workload) refuse(e effort) error {
	factors := slices.Clone(e.why)
	if w.runs.Cmp(big.NewInt(1)) > 0 {
		factors = append(factors, w.runs.String()+" passes")
	}
	unit := "1 row"
	switch {
	case e.unit == nil:
		unit = eachRow
	case e.unit.Cmp(big.NewInt(1)) > 0:
		unit = e.unit.String() + " rows of one unit"
	}
	limit := w.row
	if e.unit != nil {
		limit = MaxUnitWork
	}
	micros := new(big.Int).Div(new(big.Int).Add(w.work(e), big.NewInt(999)), big.NewInt(1000))
	return fault.FanOut(w.place, unit, factors, micros.String(), limit/1000, w.dear.remedy)
}

// above adds the conditions of a block, and what is computed of its rows. A condition on the rows that drive it alone is tested once for
// each of them, before they are joined; but of each pair where both sides of a join are read: there it stands in ON of an outer join.
func (w *workload) above(e effort, b workBlock) (effort, error) {
	cost, inside := new(big.Int).Set(e.cost), new(big.Int)
	add := func(x algebra.Expr, rows *big.Int, at standing) error {
		c, met, err := w.expr(x, at, e)
		if err != nil {
			return err
		}
		inside.Add(inside, met)
		cost.Add(cost, c.Mul(c, rows))
		return nil
	}
	beside := readsBoth(b.root)
	for _, x := range algebra.BoundConjuncts(b.where) {
		rows := e.rows
		if e.base != nil && !beside && !IsJoin(x) && ReadsWithin(x, e.base) {
			rows = big.NewInt(1)
		}
		if err := add(x, rows, asCondition); err != nil {
			return e, err
		}
	}
	for _, x := range b.each {
		if err := add(x, e.rows, asValue); err != nil {
			return e, err
		}
	}
	e.cost = cost.Add(cost, new(big.Int).Mul(e.rows, big.NewInt(b.ahead)))
	return e.meets(inside), nil
}

// readsBoth reports whether an item of FROM has a join of which both sides are read whatever is in them.
func readsBoth(n *algebra.FromItem) bool {
	if n == nil {
		return false
	}
	j, ok := (*n).(*algebra.Joined)
	return ok && (ReadsBoth(j) || readsBoth(&j.Left) || readsBoth(&j.Right))
}

// IsJoin reports whether PostgreSQL may make a condition a join of its own, before or after others.
func IsJoin(e algebra.Expr) bool {
	if n, ok := e.(algebra.Not); ok {
		e = n.X
	}
	return IsQuery(e)
}

// ReadsWithin reports whether an expression is computed from the rows of some items alone, by queries of its own too.
func ReadsWithin(e algebra.Expr, among ...algebra.FromItem) bool {
	return e == nil || !algebra.HasAggregate(e) && len(algebra.FreeFields(e, among...)) == 0
}

// item is the work of an item of FROM.
func (w *workload) item(n algebra.FromItem, r *algebra.Relation) (effort, error) {
	defer steps.Visit(w.Steps()).Leave()
	if !r.Owned() {
		return effort{}, nil // nobody's
	}
	switch n := n.(type) {
	case *algebra.Scan:
		return w.fresh(n, r), nil
	case *algebra.RowCap:
		return w.capped(n, r)
	case *algebra.Derived:
		return w.derived(n, r)
	case *algebra.Joined:
		return w.joined(n, r)
	default:
		panic("sqlrewrite: relation without work")
	}
}

// fresh is the work of a row before anything is done with it.
func (w *workload) fresh(n algebra.FromItem, r *algebra.Relation) effort {
	e := effort{base: n, of: r, rows: big.NewInt(1), pairs: big.NewInt(1), made: big.NewInt(1), cost: big.NewInt(ScanRow)}
	if key, one := r.OnePerUnit(); one {
		w.facts.Rely(key.Relies...)
		e.unit = big.NewInt(1)
	}
	return e
}

// capped is the work of a row that a cap kept. What it took to choose it is bounded row by row.
func (w *workload) capped(n *algebra.RowCap, r *algebra.Relation) (effort, error) {
	if !n.Active() {
		return w.item(n.Of, r)
	}
	of, err := w.block(workBlock{root: &n.Of, of: r, where: n.Where, ahead: CappedRow, whole: true})
	if err != nil && n.Where != nil {
		n.Bare, n.Where = true, nil
		of, err = w.block(workBlock{root: &n.Of, of: r, ahead: CappedRow, whole: true})
	}
	if err != nil {
		return effort{}, err
	}
	e := effort{base: n, of: r, rows: big.NewInt(1), pairs: big.NewInt(1), made: new(big.Int).Mul(of.made, of.rows), cost: big.NewInt(ScanRow)}
	if most := big.NewInt(n.Rows); e.made.Cmp(most) > 0 {
		e.made = most
	}
	if n.Units || slices.Contains(r.Owners, n.By) {
		e.unit = big.NewInt(n.Rows)
	}
	return e, nil
}

// derived is the work of a row of a query in FROM.
func (w *workload) derived(n *algebra.Derived, r *algebra.Relation) (effort, error) {
	if len(n.Parts) == 1 && n.Parts[0].Rowwise() {
		q := n.Parts[0]
		pushConditions(w.Steps(), q.From, q.Where)
		w.tested = append(w.tested, q.Where)
		e, err := w.item(q.From, q.Of)
		if w.tested = w.tested[:len(w.tested)-1]; err != nil {
			return e, err
		}
		return w.above(e, workBlock{root: &q.From, where: q.Where, each: q.Results()})
	}
	out := w.fresh(n, r)
	for _, q := range n.Parts {
		_, e, err := w.fitted(workBlock{root: &q.From, of: q.Of, where: q.Where, each: slices.Concat(q.Keys, q.Results()),
			ahead: GroupedRow})
		if err != nil {
			return out, err
		}
		if out.unit != nil {
			continue
		}
		// A row of the query stands for those that it comes from, and there may be several of each.
		if e.rows.Cmp(out.rows) > 0 {
			out.rows, out.pairs, out.why = e.rows, e.pairs, e.why
		}
		if e.cost.Cmp(out.cost) > 0 {
			out.cost = e.cost
		}
		out.made = greater(e.made, out.made)
	}
	return out, nil
}

// found is the work of a row that finds one other, on a path, or a value of public tables.
func (w *workload) found(n *algebra.Joined, r *algebra.Relation) (effort, error) {
	if path, scan := n.Right.(*algebra.Scan); !scan || path.Table.Public {
		if err := w.small(n.Right); err != nil {
			return effort{}, err
		}
	}
	e, err := w.item(n.Left, r)
	if err != nil {
		return e, err
	}
	if e.base == n.Left {
		e.base = n
	}
	return e.times(big.NewInt(1), ""), nil
}

// joined is the work of a row that is joined with others.
func (w *workload) joined(n *algebra.Joined, r *algebra.Relation) (effort, error) {
	m := n.Meets
	if m == nil {
		return w.found(n, r)
	}
	l, err := w.item(n.Left, m.L)
	if err != nil {
		return l, err
	}
	right, err := w.item(n.Right, m.R)
	if err != nil {
		return right, err
	}
	var out effort
	switch {
	case !m.L.Owned():
		if err = w.once(n.Left, m.Pairs); err == nil {
			err = w.small(n.Left, n.On)
		}
		fan, _ := w.publicFan(n.Left, m.LKey, m.Pairs, ofLeft)
		out = right.times(fan, tablesOf(n.Left))
	case !m.R.Owned():
		if err = w.once(n.Right, m.Pairs); err == nil {
			err = w.small(n.Right, n.On)
		}
		fan, _ := w.publicFan(n.Right, m.RKey, m.Pairs, ofRight)
		out = l.times(fan, tablesOf(n.Right))
	case m.RKey != nil:
		w.facts.Rely(m.RKey.Relies...)
		if out = l.times(big.NewInt(1), ""); right.unit == nil || right.base == nil {
			err = w.alone(right)
		}
	case m.LKey != nil:
		w.facts.Rely(m.LKey.Relies...)
		out = right.times(big.NewInt(1), "")
		switch {
		case m.Kind != syntax.LeftJoin && l.unit == nil:
			err = w.alone(l)
		case m.Kind != syntax.LeftJoin || right.unit == nil:
		case l.unit == nil: // rows of the left side that meet none stay, any number of them
			out.base, out.of, out.unit = l.base, l.of, nil
		default:
			out.unit = new(big.Int).Add(l.unit, right.unit)
		}
		out.rows, out.made = greater(l.rows, out.rows), greater(l.made, out.made)
	default:
		c, ok := n.Right.(*algebra.RowCap)
		if !ok || !c.Active() {
			return out, w.refuse(l)
		}
		out = l.times(big.NewInt(c.Rows), tablesOf(c.Of)+" of the same unit")
	}
	if err != nil {
		return out, err
	}
	return w.beside(out, n)
}

func greater(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// beside adds what ON tests of each row of a join, and what LATERAL computes of it.
func (w *workload) beside(out effort, n *algebra.Joined) (effort, error) {
	inside := new(big.Int)
	each := algebra.BoundConjuncts(n.On)
	top := len(each)
	if d, ok := n.Right.(*algebra.Derived); ok && d.Lateral { // computed of each row of the left side
		each = append(each, d.Parts[0].Results()...)
	}
	for i, x := range each {
		place := asValue
		if i < top && joinsInside(x, n) {
			place = asCondition
		}
		c, met, err := w.expr(x, place, out)
		if err != nil {
			return out, err
		}
		inside.Add(inside, met)
		out.cost = new(big.Int).Add(out.cost, c.Mul(c, out.rows))
	}
	return out.meets(inside), nil
}

// joinsInside reports whether EXISTS in ON of a join becomes a join too. Of an outer join it is a query for each row, if it reads a small
// public table and rows of the left side; those of large tables are printed as joins, and all where both sides are read.
func joinsInside(x algebra.Expr, n *algebra.Joined) bool {
	if not, ok := x.(algebra.Not); ok {
		x = not.X
	}
	e, ok := x.(algebra.Exists)
	outer := n.Kind == syntax.LeftJoin || n.Kind == syntax.FullJoin
	return !ok || !outer || ReadsBoth(n) || e.Of.Owned() || Large(e.From, e.Where) || ReadsWithin(x, n.Right)
}

// meets is the work where each row meets some number of rows more, in EXISTS, IN and windows.
func (e effort) meets(inside *big.Int) effort {
	if inside.Sign() > 0 {
		e.pairs = new(big.Int).Mul(e.pairs, new(big.Int).Add(inside, big.NewInt(1)))
		e.why = append(slices.Clone(e.why), inside.String()+" in EXISTS, IN and windows")
	}
	return e
}

// alone checks the work of rows of which each meets at most one of those that the join is driven by.
func (w *workload) alone(e effort) error {
	row := e
	if row.unit = nil; !w.fits(row) {
		return w.refuse(e)
	}
	return nil
}

// times is the work when each row meets some number of others.
func (e effort) times(fan *big.Int, what string) effort {
	e.rows = new(big.Int).Mul(e.rows, fan)
	if e.rows.Sign() == 0 {
		e.rows = big.NewInt(1)
	}
	e.pairs = new(big.Int).Mul(e.pairs, fan)
	e.cost = new(big.Int).Add(e.cost, new(big.Int).Mul(e.rows, big.NewInt(PairRow)))
	if what != "" && fan.Cmp(big.NewInt(1)) > 0 {
		e.why = append(slices.Clone(e.why), fmt.Sprintf("%s of %s", fan, what))
	}
	return e
}

// ofLeft and ofRight give the field of a pair that is the public side's, and the other one.
func ofLeft(p algebra.Pair) (own, other *algebra.Field)  { return p.L, p.R }
func ofRight(p algebra.Pair) (own, other *algebra.Field) { return p.R, p.L }

// publicFan is how many rows of a public item one row of the other side meets at most, and by which of its fields; nil: by none alone.
func (w *workload) publicFan(n algebra.FromItem, key *algebra.RowKey, pairs []algebra.Pair,
	sides func(algebra.Pair) (own, other *algebra.Field)) (best *big.Int, by *algebra.Field) {
	if key != nil {
		w.facts.Rely(key.Relies...)
		return big.NewInt(1), nil
	}
	var rests []algebra.Count
	for _, p := range pairs {
		own, other := sides(p)
		if !algebra.SameEquality(own.Type, other.Type) {
			continue
		}
		if rows, counts := equalRows(n, own); best == nil || rows.Cmp(best) < 0 {
			best, rests, by = rows, counts, own
		}
	}
	if best == nil {
		best, rests = mostRows(n)
	}
	w.facts.Count(rests...)
	return best, by
}

// pushConditions copies conditions on the rows of a capped item below its cap: rows that fail them take no place there. Only such as every
// row that is used fulfils: not those of WHERE on the side of an outer join that may be NULL.
func pushConditions(count *steps.Count, n algebra.FromItem, where algebra.Expr) {
	defer steps.Visit(count).Leave()
	switch n := n.(type) {
	case *algebra.RowCap:
		if !n.Bare {
			n.Where = OnlyOn(where, n.Of)
		}
	case *algebra.Joined:
		var left, right algebra.Expr
		switch n.Kind {
		case syntax.LeftJoin:
			left, right = where, n.On
		case syntax.FullJoin: // either side may be NULL
		default:
			left = algebra.All(append(algebra.BoundConjuncts(where), algebra.BoundConjuncts(n.On)...))
			right = left
		}
		pushConditions(count, n.Left, left)
		pushConditions(count, n.Right, right)
	}
}
