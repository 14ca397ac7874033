package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Histograms. **Lemma 5.** Let a partition of rows, all of one unit, have rows with different x, each with a whole number n >= 0; let
// total be the sum of n over the rows where x is not NULL, and upto the sum of n up to a row in the order of x. Where total > m a row's
// share is div(2·upto·m + total, 2·total) - div(2·(upto - n)·m + total, 2·total), else n. The shares of the rows where x is not NULL are
// whole numbers >= 0, and add up to at most m. *Proof.* NULLs come last, so that upto of the others runs from their first n to total = c.
// r(C) = div(2·C·m + c, 2·c) rises with C, r(0) = div(c, 2·c) = 0 and r(c) = div(2·c·m + c, 2·c) = m. The differences telescope. Where c
// <= m the shares are n, and add up to c. ∎ If some rows of the partition are left out, what is left adds up to less; a join would make
// several of one, so that the rows added up must have the parts of those that were run over, which total and upto both did in one query.
//
// *Example.* SELECT x, sum(CASE WHEN u.total > 5 THEN div(2 * u.upto * 5 + u.total, 2 * u.total) - ... ELSE u.n END) ... WHERE x IS NOT
// NULL GROUP BY x: all numbers together move by at most 5 when a unit comes.

// share is the CASE of Lemma 5; nil for others.
func (s *scope) share(c *pgquery.CaseExpr) *value {
	total, m, w := s.above(c)
	if w == nil || total.partial == nil || total.partial.upto || total.partial.x < 0 {
		return nil
	}
	d := s.d
	n := s.expr(c.Defresult)
	run := total.partial
	if n.id != run.n || n.tallied == nil || !n.tallied.count {
		return nil
	}
	two := d.literal(int4, "2").id
	part := func(c int) int {
		return d.intern("div", d.intern("+", d.intern("*", d.intern("*", two, c), m.id), total.id), d.intern("*", two, total.id))
	}
	var shares []int
	for _, upto := range s.upto(run) {
		shares = append(shares, d.intern("-", part(upto), part(d.intern("-", upto, n.id))))
	}
	branch := *s
	branch.narrow = append(slices.Clone(s.narrow), narrowed{id: total.id, within: ranges.Span{Lo: m.number()}})
	then := branch.expr(w.Result)
	if !slices.Contains(shares, then.id) || !s.rel.solid[run.x] {
		return nil
	}
	v := d.made(numeric, "share", false, total, m, then, n)
	v.within, v.digits, v.scale, v.same = ranges.Between(ranges.Zero, m.number()), 0, 0, true
	v.split = &share{most: m.number(), partition: run.partition, x: run.x, of: run.parts, base: v.id}
	return v
}
