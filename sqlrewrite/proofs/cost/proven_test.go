package cost

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
)

// ratios are what is proven of statements by what their plans say that one unit costs.
type ratios struct{ all []float64 }

func (r *ratios) add(t *testing.T, p *plan.Plan) {
	t.Helper()
	statements := p.Accounted()
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			planned, err := stability.UnitWork(statements[:1])
			if err != nil {
				t.Fatal(err)
			}
			statements = statements[1:]
			claim := part.Statement.Claim
			if claim.UnitWork == nil || claim.RowWork == nil {
				t.Fatalf("a statement claims no work: %s", part.Statement.SQL)
			}
			if planned.Sign() > 0 && claim.UnitWork.Sign() > 0 && claim.RowWork.Sign() == 0 {
				ratio, _ := new(big.Rat).SetFrac(claim.UnitWork, planned).Float64()
				r.all = append(r.all, ratio)
			}
		}
	}
}

// What verify derives of the texts of golden statements, with formulas of its own, is at least half of what their plans say: a mistake in
// one of the two tables shows here. It is at most twice the limit, or there would be no plan. Statements of which verify charges a part to
// rows are left out.
func TestProvenWorkIsPlannedWork(t *testing.T) {
	var r ratios
	rewritetest.EachGoldenPlan(t, func(_ *datadriven.TestData, p *plan.Plan) { r.add(t, p) })
	slices.Sort(r.all)
	if len(r.all) == 0 {
		t.Fatal("no statement")
	}
	t.Logf("%d statements: proven / planned %.2f to %.2f, median %.2f", len(r.all), r.all[0], r.all[len(r.all)-1], r.all[len(r.all)/2])
	if r.all[0] < 0.5 {
		t.Errorf("proven / planned is %.2f", r.all[0])
	}
}

// The same of operations whose price is no sum over operands, with patterns, needles and numbers of many forms.
func TestProvenFormulasArePlannedFormulas(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "t\n  id integer not null unique\n  name text\n  n numeric", `version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	r := rand.New(rand.NewPCG(60, 2))
	text := func() string {
		period := []string{"a", "ab", "aab", "é", "aé", "a_", "x", "abcdefgh"}[r.IntN(8)]
		return strings.Repeat(period, 1+r.IntN(150/len(period))) + []string{"", "b", "%b", "bé"}[r.IntN(4)]
	}
	digits := func() string { return fmt.Sprintf("%d.%0*d", r.Int64N(1_000_000), 1+r.IntN(18), r.Int64N(1000)) }
	var all ratios
	for range 300 {
		condition := []func() string{
			func() string { return "name LIKE '%" + text() + "%'" },
			func() string { return "name ILIKE '%" + text() + "%'" },
			func() string { return "strpos(name, '" + text() + "') > 0" },
			func() string { return "strpos(name || name, name) > 0" },
			func() string { return "length(btrim(name, '" + strings.Repeat("xyz", 1+r.IntN(3)) + "')) > 3" },
			func() string { return "name ~ '" + strings.Repeat("(a|b)", 1+r.IntN(9)) + "[x-z]{2,3}$'" },
			func() string { return "n * n * (n + " + digits() + ") > " + digits() },
			func() string { return "(n * n) / (n + " + digits() + ") > 3" },
			func() string { return "(n * n) % " + digits() + " > 3" },
		}[r.IntN(9)]()
		sql := "SELECT count(*) FROM t WHERE " + condition
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
		}
		before := len(all.all)
		if all.add(t, p); len(all.all) == before {
			t.Fatalf("%s has no work", sql)
		}
		if ratio := all.all[before]; ratio < 0.4 || ratio > 4 {
			t.Errorf("%s: proven / planned is %.2f", sql, ratio)
		}
	}
}
