package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
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
//     S END, S a tally of numbers in [A, B] and n a counter of its rows, is by Lemma 2 with d in place of m (k = max(|A|, |B|)), if d
//     is never NULL: n > NULL is not true.
//  4. Where the partition is by the unit alone, a unit moves the sum of such values over all groups by at most k·N. L2² is at most
//     ⌊T/P⌋·P² + (T - P·⌊T/P⌋)², for a total of T of moves of at most P each: the sum of squares is convex.
//
// *Example.* With d at most 5 in a group and 12 in all, sum(int8smaller(a, d * 240)) moves 1,200 in a group, L1 is 2,880, and L2² is
// 2·1200² + 480².

// totalRun is a window's sum of whole numbers, none negative, over a whole partition, or up to a row of it.
func (s *scope) totalRun(w *pgquery.WindowDef, x *run, n *value.Value, filter []*pgquery.Node) *value.WindowSum {
	if len(filter) > 0 || !n.Kind.IsInteger() || !n.Within.Finite() || n.Within.Lo.Sign() < 0 {
		return nil
	}
	p := &value.WindowSum{Added: n.ID, Partition: ids(x.partition), Of: s.number, Parts: s.rel.Numbers(), Over: -1}
	slices.Sort(p.Partition)
	switch {
	case len(x.order) == 0 && int(w.FrameOptions) == frameDefault:
	case len(x.order) > 0 && int(w.FrameOptions) == frameNonDefault|frameRows|unboundedPreceding|untilCurrentRow && s.untied(x):
		p.Upto = true
	default:
		return nil
	}
	return p
}

// shareOfTotal is the CASE of Lemma 2b; nil for others.
func (s *scope) shareOfTotal(c *pgquery.CaseExpr) *value.Value {
	total, most, w := s.above(c)
	if w == nil || total.Running == nil || total.Running.Over >= 0 || total.Running.Upto || total.Kind != value.Numeric {
		return nil
	}
	d, run := s.d, total.Running
	n := s.expr(c.Defresult)
	if n.ID != run.Added || n.Kind != value.Int8 {
		return nil
	}
	part := func(c int) int { return d.Intern("div", d.Intern("*", c, most.ID), total.ID) }
	within := ranges.Between(ranges.Zero, ranges.Lowest(n.Within.Hi, most.Number()))
	branch := *s
	least := new(big.Rat).Add(most.Number(), ranges.One)
	branch.narrow = append(slices.Clone(s.narrow), narrowed{id: total.ID, within: ranges.Span{Lo: least}})
	var shares []int
	for _, upto := range s.upto(run) {
		difference := d.Intern("-", part(upto), part(d.Intern("-", upto, n.ID)))
		branch.narrow = append(branch.narrow, narrowed{id: difference, within: within})
		shares = append(shares, d.Intern("to:"+value.KindName(value.Int8), difference))
	}
	then := branch.expr(w.Result)
	if !slices.Contains(shares, then.ID) {
		return nil
	}
	v := d.Made(value.Int8, "share of a total", false, total, most, then, value.ClearTally(n))
	v.Within, v.Nulls = within, n.Nulls
	v.Split = &value.Share{Most: most.Number(), Partition: run.Partition, Over: -1, Of: run.Parts, Base: v.ID}
	return v
}

// upto are the windows of the same partition that run up to a row: several, where columns add up equal numbers.
func (s *scope) upto(run *value.WindowSum) (all []int) {
	for _, c := range s.rel.Columns {
		if p := c.Value.Running; p != nil && p.Upto && p.Added == run.Added && p.Over == run.Over && p.Of == run.Of &&
			slices.Equal(p.Partition, run.Partition) {
			all = append(all, c.Value.ID)
		}
	}
	return all
}
