package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Totals: what a unit adds to all groups together. **Lemma 2b.** Let a relation have rows with whole numbers c >= 0, let t be the sum of
// c over the rows of a partition, s the sum of c over the rows up to a row in an order of the partition in which no two tie, and d = CASE
// WHEN t > N THEN div(s·N, t) - div((s - c)·N, t) ELSE c END.
//
//  1. 0 <= d <= c, and the d of a partition add up to at most N. *Proof.* If t <= N then d = c, and they add up to t. Else let f(s) =
//     div(s·N, t), which rises from f(0) = 0 to f(t) = N: the differences telescope. s·N/t grows by c·N/t < c from one row to the next,
//     if c > 0, hence f by at most c. ∎
//  2. Where some rows of the partition are left out later the d of the others add up to less. A join would make several of one: the rows
//     that are added up must have the parts of those that were run over.
//  3. A value is *within* a share if its absolute value is at most k·d in each row, for a constant k: then those of a partition add up to
//     at most k·N in absolute value. d itself is (k = 1); d·K is (k = |K|); smaller(x, d·K) with K >= 0 is where x >= 0; larger(y, d·L)
//     with L <= 0 is where y is such a smaller of whatever x (k = max(K, -L)), or y <= 0 (k = -L). CASE WHEN n > d THEN div(S·d, n) ELSE
//     S END, S a tally of numbers in [A, B] and n a counter of its rows, is by Lemma 2 with d in the place of m (k = max(|A|, |B|)), if d
//     is never NULL: n > NULL is not true.
//  4. Where the partition is by the unit alone, a unit moves the sum of such values over all groups by at most k·N. L2² is at most
//     ⌊T/P⌋·P² + (T - P·⌊T/P⌋)², for a total of T of moves of at most P each: the sum of squares is convex.
//
// *Example.* With d at most 5 in a group and 12 in all, sum(int8smaller(a, d * 240)) moves 1,200 in a group, L1 is 2,880, and L2² is
// 2·1200² + 480².

// totalRun is a window's sum of whole numbers, none negative, over a whole partition, or up to a row of it.
func (s *scope) totalRun(w *pgquery.WindowDef, x *run, n *value, filter []*pgquery.Node) *windowRun {
	if len(filter) > 0 || !n.kind.isInteger() || !n.within.Finite() || n.within.Lo.Sign() < 0 {
		return nil
	}
	p := &windowRun{n: n.id, partition: ids(x.partition), of: s.number, parts: s.rel.parted(), x: -1}
	slices.Sort(p.partition)
	switch {
	case len(x.order) == 0 && int(w.FrameOptions) == frameDefault:
	case len(x.order) > 0 && int(w.FrameOptions) == frameNonDefault|frameRows|unboundedPreceding|untilCurrentRow && s.untied(x):
		p.upto = true
	default:
		return nil
	}
	return p
}

// shareOfTotal is the CASE of Lemma 2b; nil for others.
func (s *scope) shareOfTotal(c *pgquery.CaseExpr) *value {
	total, most, w := s.above(c)
	if w == nil || total.partial == nil || total.partial.x >= 0 || total.partial.upto || total.kind != numeric {
		return nil
	}
	d, run := s.d, total.partial
	n := s.expr(c.Defresult)
	if n.id != run.n || n.kind != int8 {
		return nil
	}
	part := func(c int) int { return d.intern("div", d.intern("*", c, most.id), total.id) }
	within := ranges.Between(ranges.Zero, ranges.Lowest(n.within.Hi, most.number()))
	branch := *s
	branch.narrow = append(slices.Clone(s.narrow), narrowed{id: total.id, within: ranges.Span{Lo: new(big.Rat).Add(most.number(), ranges.One)}})
	var shares []int
	for _, upto := range s.upto(run) {
		difference := d.intern("-", part(upto), part(d.intern("-", upto, n.id)))
		branch.narrow = append(branch.narrow, narrowed{id: difference, within: within})
		shares = append(shares, d.intern("to:"+kindName(int8), difference))
	}
	then := branch.expr(w.Result)
	if !slices.Contains(shares, then.id) {
		return nil
	}
	v := d.made(int8, "share of a total", false, total, most, then, clearTally(n))
	v.within, v.nulls = within, n.nulls
	v.split = &share{most: most.number(), partition: run.partition, x: -1, of: run.parts, base: v.id}
	return v
}

// upto are the windows of the same partition that run up to a row: several, where columns add up equal numbers.
func (s *scope) upto(run *windowRun) (all []int) {
	for _, c := range s.rel.columns {
		if p := c.v.partial; p != nil && p.upto && p.n == run.n && p.x == run.x && p.of == run.of && slices.Equal(p.partition, run.partition) {
			all = append(all, c.v.id)
		}
	}
	return all
}

// total is what one unit adds to an integer of all groups together; nil: nothing bounds it but the number of groups.
func (x *released) total(d *derivation, v *value) *big.Int {
	t := v.terms
	if t != nil && t.share == nil && t.moves == nil && x.rel != nil && t.each.Finite() {
		// Each of the unit's rows is in one group at most, and adds to it what a row adds.
		if n := x.rel.rows(d, nil, true); n != nil {
			return ranges.Ceiled(new(big.Rat).Mul(t.each.WithZero().Most(), new(big.Rat).SetInt(n))).Num()
		}
	}
	if t == nil || t.share == nil || t.share.x >= 0 || x.rel == nil || !slices.Equal(x.rel.parted(), t.share.of) ||
		!x.rel.within(d, t.share.partition, nil) {
		return nil
	}
	return ranges.Ceiled(t.share.most).Num()
}
