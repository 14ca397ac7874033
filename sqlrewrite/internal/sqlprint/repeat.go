package sqlprint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/stability"
)

// PostgreSQL writes what a plain query in FROM computes wherever the query around names it, so a column is computed as often as it is
// named, for each row that the query around has, where the bound on work has it once for each row of the inner query, and of public rows
// not at all. Nested, that doubles at each level. Where the work of one unit would not fit any more, the query ends with a fence:
// PostgreSQL then computes each of its columns once a row. How often columns are named is known when the statement is complete, so each
// such query stands between marks until then.

// repeatable is a plain query in FROM.
type repeatable struct {
	of     *algebra.Query
	fields []*algebra.Field
	one    bool // is no part of a UNION ALL
}

// repeats puts a query between marks. One that only passes columns on has marks too: by these it is known what they cost.
func (p *Printer) repeats(text string, r repeatable) string {
	if p.inline || r.of.From != nil && !r.of.Rowwise() {
		return text
	}
	open, end := fenceMarks(p.marks.query(r)) // the same ones each time: texts are compared
	return open + text + end
}

// query is the number of the marks of a query.
func (m *marks) query(r repeatable) int {
	at := slices.IndexFunc(m.repeatables, func(known repeatable) bool { return known.of == r.of })
	if at < 0 {
		at, m.repeatables = len(m.repeatables), append(m.repeatables, r)
	}
	return at
}

func fenceMarks(i int) (open, end string) {
	return fmt.Sprint(markLeaf, "(", i, markLeaf), fmt.Sprint(markLeaf, ")", i, markLeaf)
}

// spareOf bounds the cost of a query's columns that are computed again, in ns a row.
func spareOf(q *algebra.BoundQuery) int64 {
	if q.Shared().Once {
		return 0
	}
	return q.Spare
}

// Again is the cost of columns that are computed again, in ns a row.
func (t template) Again() int64 {
	_, again := t.fences()
	return again
}

// fences are what the marks of queries stand for, and what is computed again for each row. The inner queries of each come before it.
func (t template) fences() (pairs []string, spent int64) {
	cost := make(map[*algebra.Field]int64) // of each time that a field is named
	left := t.spare
	for i, r := range t.repeatables {
		results := r.of.Results()
		again := int64(0)
		for k, f := range r.fields {
			cost[f] = costAgain(results[k], cost)
			times := int64(strings.Count(t.text, f.SQL()))
			if !t.fans && (r.of.Of == nil || r.of.Of.Owned()) {
				times-- // is charged
			}
			if times > 0 && cost[f] > 0 {
				again = plus(again, stability.MultiplyCapped(times, cost[f]))
			}
		}
		open, end := fenceMarks(i)
		switch {
		case again <= left || t.unfenced:
			left -= again
			spent = plus(spent, again)
			pairs = append(pairs, open, "", end, "")
			continue
		case r.one:
			pairs = append(pairs, open, "", end, fence)
		default:
			pairs = append(pairs, open, "(", end, fence+")")
		}
		for _, f := range r.fields {
			delete(cost, f)
		}
	}
	return pairs, spent
}

// costAgain is what it costs to compute an expression once more.
func costAgain(e algebra.Expr, cost map[*algebra.Field]int64) int64 {
	switch e := e.(type) {
	case nil, algebra.Constant:
		return 0
	case algebra.Column:
		return cost[e.Of]
	}
	if stability.IsQuery(e) {
		return math.MaxInt64
	}
	total := stability.PriceOf(e)
	for _, x := range algebra.Children(e) {
		total = plus(total, costAgain(x, cost))
	}
	return total
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
