package plan_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// auditDraws are made of each query on either side.
const auditDraws = 40_000

// nearTheMiddle are rows of which the ends of the grid are about as near to the median without the unit, and only one end with it. A rank
// moves by half of the unit's rows, and all points but one by the same: no data brings a median nearer to its price.
const nearTheMiddle = "(1,1,9,0),(1,1,9,0),(1,1,9,0),(1,1,9,0)," +
	"(2,1,3,0),(2,1,3,0),(2,1,3,0),(2,1,3,0),(3,1,9,0),(3,1,9,0),(3,1,9,0),(3,1,9,0),(4,1,9,0)"

// nearTheOffset are rows whose rank 40, where the least value is looked for, is at the end of those at 3.
func nearTheOffset() string {
	rows := strings.Repeat("(1,1,3,0),", 4)
	for unit := range 10 {
		rows += strings.Repeat(fmt.Sprintf("(%d,1,3,0),(%d,1,9,0),(%d,1,9,0),", 2+unit, 12+unit, 22+unit), 4)
	}
	return strings.TrimSuffix(rows, ",")
}

// audits are queries whose first unit moves the answer as far as it may, on these rows of events: unit, k_num, nn, n4.
var audits = []struct {
	name, sql, rows string
	least           float64 // the ε that the audit certifies, so that it has power; 0: too many outcomes to certify any
}{
	{"median", "SELECT median(nn) FROM events", nearTheMiddle, 0.1},
	{"least", "SELECT min(nn) FROM events", nearTheOffset(), 0.1},
	{"mode", "SELECT mode() WITHIN GROUP (ORDER BY k_num) FROM events",
		"(1,1,3,0),(1,1,3,0),(1,1,3,0),(1,1,3,0),(2,2,3,0),(2,2,3,0),(2,2,3,0),(2,3,3,0)", 0.3},
	{"different values", "SELECT count(DISTINCT n4) FROM events", "(1,1,3,1),(1,1,3,2),(1,1,3,3),(1,1,3,4),(2,1,3,5)", 0.75},
	{"variance", "SELECT var_pop(nn) FROM events", "(1,1,3,0),(1,1,9,0),(1,1,3,0),(1,1,9,0),(2,1,6,0),(2,1,6,0),(3,1,6,0),(3,1,6,0)", 0.05},
	{"median of each group", "SELECT k_num, median(nn) FROM events GROUP BY k_num",
		"(1,1,9,0),(1,1,9,0),(1,1,9,0),(1,1,9,0),(1,2,9,0),(1,2,9,0),(1,2,9,0),(1,2,9,0),(1,3,9,0),(1,3,9,0),(1,3,9,0),(1,3,9,0)," +
			"(2,1,3,0),(2,1,3,0),(2,1,3,0),(2,1,3,0),(2,2,3,0),(2,2,3,0),(2,2,3,0),(2,2,3,0),(2,3,3,0),(2,3,3,0),(2,3,3,0),(2,3,3,0)", 0},
	{"first group", "SELECT k_num FROM events GROUP BY k_num ORDER BY count(*) DESC LIMIT 1",
		"(1,1,3,0),(1,1,3,0),(1,1,3,0),(1,1,3,0),(2,2,3,0),(2,2,3,0)", 0.3},
}

// Draws of whole releases over rows that PostgreSQL gave, with and without one unit: none certifies more than the price of 1, at a false
// alarm of [stattest.PerTest] each, and each comes near enough to it to have power.
func TestAuditOfStatistics(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	w := gen.NewWorld(t, 1, gen.Wild, 4)
	for _, a := range audits {
		t.Run(a.name, func(t *testing.T) {
			p := auditPlan(t, w, a.sql)
			proof := certify(t, w, p, a.rows)
			if loss := p.Loss(); loss.Epsilon > mechanisms.EpsilonUnit {
				t.Fatalf("costs %v", loss)
			}
			if proof.Epsilon > 1 || proof.Epsilon < a.least && !randomtest.Fresh() { // how much is found depends on the draws
				t.Errorf("certified ε %.3f, want %.2f to 1", proof.Epsilon, a.least)
			}
			t.Logf("certified ε %.3f, ρ %.4f of %v", proof.Epsilon, proof.Rho, p.Loss().Rho)
		})
	}
}

// A selection that is made for one row of a unit, where a unit has four, is found out.
func TestAuditFindsWrongSensitivity(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	w := gen.NewWorld(t, 1, gen.Wild, 4)
	for _, a := range audits {
		if a.name != "median" && a.name != "mode" {
			continue
		}
		p := auditPlan(t, w, a.sql)
		r := p.Releases[0]
		r.PerGroup = big.NewInt(1)
		wrong, err := p.NewSelection(r, plan.Portion{Epsilon: mechanisms.EpsilonUnit})
		if err != nil {
			t.Fatal(err)
		}
		p.Releases[0].Selection = wrong
		if proof := certify(t, w, p, a.rows); proof.Epsilon <= 1 && !randomtest.Fresh() {
			t.Errorf("%s: certified ε %.3f only", a.name, proof.Epsilon)
		}
	}
}

func auditPlan(t *testing.T, w *gen.World, sql string) *plan.Plan {
	t.Helper()
	p, err := pipeline.Rewrite(sql, w.Snapshot, plan.Options{Epsilon: mechanisms.EpsilonUnit, Mechanism: plan.MechanismAuto,
		Currency:   catalog.Approx,
		Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// certify audits a plan on rows with and without unit 1.
func certify(t *testing.T, w *gen.World, p *plan.Plan, rows string) stattest.Certificate {
	t.Helper()
	rewritetest.MustExec(t, w.Conn, "TRUNCATE store.people, store.events, store.orders, store.items")
	rewritetest.MustExec(t, w.Conn,
		"INSERT INTO store.events (event, unit, k_num, nn, n4) SELECT row_number() OVER (), v.* FROM (VALUES "+rows+") AS v")
	s := rewritetest.FixedSampler(t)
	d := p.Draw(s)
	draw := func(without string) []float64 {
		rewritetest.MustExec(t, w.Conn, "SELECT pg_catalog.set_config('test.without', '"+without+"', false)")
		exact := rewritetest.Sealed(t, w.Conn, p.Statements(d))
		answers := make([]float64, auditDraws)
		for i := range answers {
			released, err := pipeline.Release(p, s, p.Draw(s), rewritetest.Streamed(exact))
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = outcome(t, p, released)
		}
		return answers
	}
	proof, err := stattest.Draws{With: draw("nobody"), Without: draw("1")}.Certify(0, stattest.PerTest)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// outcome is a released answer as one number: the values of its groups, or their keys where none has a value, as digits.
func outcome(t *testing.T, p *plan.Plan, released *plan.Released) float64 {
	t.Helper()
	sum := 0.0
	for _, row := range released.Rows {
		text := catalog.Key{}
		if len(p.Query.Estimators) > 0 {
			text = p.ValueText(0, row)
		} else {
			text = row.Keys[0]
		}
		if text.Null {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(text.Text, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum = 100*sum + v
	}
	return sum
}
