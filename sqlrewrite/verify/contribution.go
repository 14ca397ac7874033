package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// What rows add up to, and what cuts it. A tally is a sum with as many terms as rows meet its conditions (value.Tally).
//
// **Lemma 2.** Where S is a tally of numbers in [A, B], and c counts rows that meet some of the conditions of S's rows, hence at least as
// many, then CASE WHEN c > m THEN div(S·m, c) ELSE S END lies in m·[min(A, 0), max(B, 0)]. *Proof.* S has k <= c terms: S lies in
// k·[A, B], so in c·[min(A, 0), max(B, 0)]. If c <= m, in m·[...]; if c > m then S·m/c does, and div truncates towards 0. ∎
// The counter alone, CASE WHEN c > m THEN m ELSE c END, lies in [0, m]: CASE narrows (expression.go).
//
// *Example.* CASE WHEN u.a1 > 5 THEN div(u.a0::numeric * 5, u.a1::numeric)::bigint ELSE u.a0 END, where a0 is sum(minutes clamped to 0 and
// 240) - 120·count(minutes) and a1 is count(minutes), lies in [-600, 600].

// cut is the CASE of Lemma 2, and of 2b with a share of a total in place of m; nil for others.
func (s *scope) cut(c *pgquery.CaseExpr) *value.Value {
	counter, m, w := s.compared(c)
	if w == nil || counter.Summed == nil || !counter.Summed.Count || !positive(m) && !m.Counts() {
		return nil
	}
	d := s.d
	sum := s.expr(c.Defresult)
	t := sum.Summed
	if t == nil || sum.ID == counter.ID || t.Of != counter.Summed.Of || !value.Subset(counter.Summed.Where, t.Where) || !t.Each.Finite() {
		return nil
	}
	limit, least := m.Within.Hi, ranges.One // m < counter
	if positive(m) {
		limit, least = m.Number(), new(big.Rat).Add(m.Number(), ranges.One)
	}
	within := t.Each.WithZero().Times(ranges.Point(limit))
	numericSum, numericCount := d.Convert(value.ClearTally(sum), value.Numeric), d.Convert(value.ClearTally(counter), value.Numeric)
	ratio := d.Intern("div", d.Intern("*", numericSum.ID, m.ID), numericCount.ID)
	branch := *s
	branch.narrow = append(slices.Clone(s.narrow), narrowed{id: counter.ID, within: ranges.Span{Lo: least}},
		narrowed{id: numericCount.ID, within: ranges.Span{Lo: least}}, narrowed{id: ratio, within: within})
	then := branch.expr(w.Result)
	if then.ID != ratio && then.ID != d.Intern("to:"+value.KindName(value.Int8), ratio) {
		return nil
	}
	v := d.Made(value.Common(then.Kind, sum.Kind), "cut", false, counter, m, value.ClearTally(then), sum)
	v.Within, v.Digits = within, -1
	v.Split = m.Split.Scaled(t.Each.Most())
	if positive(m) {
		v.Cut = &value.Cutting{Of: t, Counter: counter.ID, Limit: limit}
	}
	if t.Digits == 0 {
		v.Digits, v.Scale, v.Same = 0, 0, true
	}
	return v
}

// above reads CASE WHEN x > m THEN ... ELSE ... END, m a positive whole number.
func (s *scope) above(c *pgquery.CaseExpr) (x, m *value.Value, w *pgquery.CaseWhen) {
	if x, m, w = s.compared(c); w == nil || !positive(m) {
		return nil, nil, nil
	}
	return x, m, w
}

func positive(m *value.Value) bool {
	n := m.Number()
	return n != nil && n.Sign() > 0 && n.IsInt() && m.Kind.IsInteger()
}

// compared reads CASE WHEN x > m THEN ... ELSE ... END.
func (s *scope) compared(c *pgquery.CaseExpr) (x, m *value.Value, w *pgquery.CaseWhen) {
	if len(c.Args) != 1 || c.Defresult == nil {
		return nil, nil, nil
	}
	w = c.Args[0].GetCaseWhen()
	e := w.GetExpr().GetAExpr()
	if w == nil || w.Xpr != nil || e == nil || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP || e.Lexpr.GetColumnRef() == nil ||
		tree.Operator(e.Name) != ">" {
		return nil, nil, nil
	}
	return s.expr(e.Lexpr), s.expr(e.Rexpr), w
}
