package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
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
func (s *scope) share(c *pgquery.CaseExpr) *value.Value {
	total, m, w := s.above(c)
	if w == nil || total.Running == nil || total.Running.Upto || total.Running.Over < 0 {
		return nil
	}
	d := s.d
	n := s.expr(c.Defresult)
	run := total.Running
	if n.ID != run.Added || n.Summed == nil || !n.Summed.Count {
		return nil
	}
	two := d.Literal(value.Int4, "2").ID
	part := func(c int) int {
		return d.Intern("div", d.Intern("+", d.Intern("*", d.Intern("*", two, c), m.ID), total.ID), d.Intern("*", two, total.ID))
	}
	var shares []int
	for _, upto := range s.upto(run) {
		shares = append(shares, d.Intern("-", part(upto), part(d.Intern("-", upto, n.ID))))
	}
	branch := *s
	branch.narrow = append(slices.Clone(s.narrow), narrowed{id: total.ID, within: ranges.Span{Lo: m.Number()}})
	then := branch.expr(w.Result)
	if !slices.Contains(shares, then.ID) || !s.rel.Solid[run.Over] {
		return nil
	}
	v := d.Made(value.Numeric, "share", false, total, m, then, n)
	v.Within, v.Digits, v.Scale, v.Same = ranges.Between(ranges.Zero, m.Number()), 0, 0, true
	v.Split = &value.Share{Most: m.Number(), Partition: run.Partition, Over: run.Over, Of: run.Parts, Base: v.ID}
	return v
}
