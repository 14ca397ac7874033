package gen

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Oracle compares answers of a world whose values no bound binds.
func Oracle(t *testing.T, w *World, queries int) {
	t.Helper()
	writer := &Writer{Rand: w.Rand, Lists: true, Counts: make(map[string]int), exact: true}
	compared, skipped, totals := 0, 0, 0
	for tried := 0; compared < queries && !t.Failed(); tried++ {
		if tried > 4*(1+4*len(w.copies))*queries+100 {
			t.Fatalf("only %d of %d queries could be compared", compared, tried)
		}
		if tried%QueriesPerDatabase == 0 {
			w.Fill(t, tried/QueriesPerDatabase%2 == 0)
			rewritetest.MustExec(t, w.Conn, calmUnits)
			w.prepareAll(t, nil)
		}
		sql, _ := writer.Query()
		p, err := w.plan(sql, plan.Options{Epsilon: 1000 * mechanisms.EpsilonUnit, Delta: 1000, Mechanism: plan.MechanismAuto,
			Currency: catalog.Approx, Confidence: 0.95})
		if errors.Is(err, errNoCopy) {
			continue
		}
		if err != nil {
			if !Tolerated[string(fault.CodeOf(err))] {
				t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
			}
			continue
		}
		if slices.ContainsFunc(p.Different(), capped) {
			skipped++ // a unit may have more rows than take part: up to some 70 in a union
			continue
		}
		limited := strings.Contains(sql, " LIMIT ") || strings.Contains(sql, " OFFSET ")
		absent := slices.ContainsFunc(p.Different(), func(block *plan.Plan) bool { return absentKeys(t, w, block) })
		if absent && (limited || strings.Contains(sql, " HAVING ") || strings.Contains(sql, "/*post*/")) {
			skipped++ // groups that PostgreSQL does not have go through post-processing, and thousands of them may meet each other there
			continue
		}
		got, want := NoiselessAnswer(t, w.Conn, p), PlainAnswer(t, w.Plain, sql)
		if absent {
			got.Rows = onlyKeysOf(p, want.Rows, got.Rows)
		}
		compared++
		totals += algebra.BoolIndex(Grouping.MatchString(sql))
		if limited {
			if len(got.Rows) != len(want.Rows) {
				t.Errorf("%s\n%d rows, PostgreSQL has %d", sql, len(got.Rows), len(want.Rows))
			}
			continue
		}
		compareBags(t, sql, want, got)
	}
	t.Logf("%d queries agree, %d of them with totals; %d more have absent keys below a post-processing query, or rows that a cap leaves out",
		compared, totals, skipped)
	if totals < compared/50 && !testing.Short() {
		t.Errorf("of %d queries only %d have totals", compared, totals)
	}
}

// calmUnits gives every row a unit.
const calmUnits = `
UPDATE store.events SET unit = event % 12 WHERE unit IS NULL; UPDATE store.orders SET buyer = order_id % 12 WHERE buyer IS NULL;
DELETE FROM store.items WHERE order_id IS NULL; DELETE FROM store.cards WHERE unit IS NULL; UPDATE store.cards SET k_bool = true WHERE k_bool IS NULL;
UPDATE store.people SET k_bool = id % 2 = 0 WHERE k_bool IS NULL; UPDATE store.events SET k_bool = false WHERE k_bool IS NULL;
UPDATE store.orders SET k_bool = true WHERE k_bool IS NULL; UPDATE store.items SET k_bool = true WHERE k_bool IS NULL`

// capped reports whether a plan may leave out rows of a unit.
func capped(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Query.Shared().Caps, func(c *algebra.RowCap) bool {
		return c.Active() && c.Rows < 128 && algebra.RowsOf(c.Of) != algebra.PublicRows
	})
}

// absentKeys reports whether a plan has public keys that no row has.
func absentKeys(t *testing.T, w *World, p *plan.Plan) bool {
	t.Helper()
	if p.Query.Private() || len(p.Query.Keys) == 0 || !p.NeedsData() {
		return false
	}
	groups := make(map[string]bool)
	for at, s := range p.Statements(&plan.Draws{}) {
		histogram := p.Parts[at].Histogram(p.Query)
		if histogram {
			s = AsCells(s)
		}
		exact, err := ExactRows(t, w.Conn, s)
		if err != nil {
			t.Fatal(err)
		}
		for id := range exact {
			keys := ParseIdentity(t, id)
			groups[scalar.KeyIdentity(keys[:len(p.Query.Keys)])] = true
		}
	}
	return int64(len(groups)) < scalar.ClampInt64(p.Query.PublicTuples())
}

// onlyKeysOf drops the rows of got whose keys no row of want has.
func onlyKeysOf(p *plan.Plan, want, got [][]string) [][]string {
	keys := func(row []string) string {
		var b strings.Builder
		for i, o := range p.Query.Outputs {
			if _, ok := o.Expr.(algebra.KeyRef); ok {
				b.WriteString(row[i] + "\x00")
			}
		}
		return b.String()
	}
	known := make(map[string]bool)
	for _, row := range want {
		known[keys(row)] = true
	}
	return slices.DeleteFunc(got, func(row []string) bool { return !known[keys(row)] })
}

// compareBags compares answers whatever the order of their rows. A value that is NULL for PostgreSQL and 0 here is a sum over no rows.
func compareBags(t *testing.T, sql string, want, got AnswerText) {
	t.Helper()
	if !slices.Equal(want.Types, got.Types) {
		t.Errorf("%s\ntypes %v, PostgreSQL's %v", sql, got.Types, want.Types)
	}
	if len(want.Rows) != len(got.Rows) {
		t.Errorf("%s\n%d rows, PostgreSQL has %d", sql, len(got.Rows), len(want.Rows))
		return
	}
	left := slices.Clone(got.Rows)
	for _, row := range want.Rows {
		best, most := -1, -1 // the row that needs the fewest excuses: a key may be NULL or 0 too
		for i, other := range left {
			equal := 0
			fits := slices.EqualFunc(row, other, func(w, g string) bool {
				same := SameValue(w, g)
				equal += algebra.BoolIndex(same)
				return same || w == "NULL" && SameValue(g, "0.0")
			})
			if fits && equal > most {
				best, most = i, equal
			}
		}
		if best < 0 {
			t.Errorf("%s\nPostgreSQL has the row %v, not among %v", sql, row, got.Rows)
			return
		}
		left = slices.Delete(left, best, best+1)
	}
}
