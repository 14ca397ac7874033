package neighbours

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// reviewed plans a query whose price does not matter.
func reviewed(t *testing.T, sql string, snapshot *catalog.Snapshot) (*plan.Plan, error) {
	t.Helper()
	return pipeline.Rewrite(sql, snapshot, plan.Options{Epsilon: 1000 * mechanisms.EpsilonUnit, Delta: 1, Currency: catalog.Approx,
		Mechanism:  plan.MechanismAuto,
		Confidence: 0.95})
}

// nobodysOrders are few enough rows of few enough people that one of them often has all.
const nobodysOrders = "(SELECT order_id FROM orders WHERE secret = 'x' AND nn = 9 AND n2 = 11)"

// What decides about one person's rows is never whether a query finds any rows of anybody: NULL IN (no rows) is false, and NULL IN (some
// rows) unknown, so that the last person with such a row would move everyone whose value is NULL (A13).
//
// covers: A13
func TestMembershipOfNullIsUnknown(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	world := gen.NewWorld(t, 7, gen.Wild, 4)
	for _, condition := range []string{"o.order_id NOT IN %s", "NOT (o.order_id IN %s)", "(o.order_id IN %s) IS UNKNOWN",
		"(o.order_id, e.n4) NOT IN (SELECT order_id, n4 FROM orders WHERE nn = 9)"} {
		if strings.Contains(condition, "%s") {
			condition = fmt.Sprintf(condition, nobodysOrders)
		}
		for _, sql := range []string{
			"SELECT count(*) FROM events e LEFT JOIN orders o ON o.buyer = e.unit WHERE " + condition,
			"SELECT sum(CASE WHEN " + condition + " THEN e.nn ELSE 3 END) FROM events e LEFT JOIN orders o ON o.buyer = e.unit",
			"SELECT k_num, count(*) FILTER (WHERE " + condition +
				") FROM (SELECT * FROM events WHERE k_num < 4) e LEFT JOIN orders o ON o.buyer = e.unit GROUP BY e.k_num",
		} {
			p, err := reviewed(t, strings.Replace(sql, "SELECT k_num", "SELECT e.k_num", 1), world.Snapshot)
			if err != nil {
				t.Fatalf("%s: %v", sql, parsetest.ShowFault(err))
			}
			n, sampler := &gen.Neighbours{Reached: make(map[string]*big.Rat)}, rewritetest.FixedSampler(t)
			for i := range randomtest.Part(4, 20) {
				world.Fill(t, i%2 == 0)
				if err := n.Compare(t.Context(), world, gen.Claims(p, p.Draw(sampler))); err != nil {
					t.Fatalf("%s\n%v", sql, err)
				}
			}
		}
	}
}

// A column of numerics without digits can hold two values whose sum PostgreSQL cannot: statistics of single people clamp them first, or the
// error would tell that there is one who has both (A29).
//
// covers: A29
func TestSumsOfTheLargestNumerics(t *testing.T) {
	world := gen.NewWorld(t, 7, gen.Wild, 4)
	for _, call := range []string{"sum(free)", "avg(free)", "sum(DISTINCT free)", "sum(free) FILTER (WHERE nn > 0)"} {
		sql := "SELECT sum(s), count(*) FROM (SELECT unit, " + call + " AS s FROM events GROUP BY unit) t WHERE s > 0"
		p, err := reviewed(t, sql, world.Snapshot)
		if err != nil {
			t.Fatalf("%s: %v", sql, parsetest.ShowFault(err))
		}
		world.Fill(t, true)
		rewritetest.MustExec(t, world.Conn,
			"UPDATE store.events SET nn = 9, free = CASE WHEN event % 2 = 0 THEN '9e131071' ELSE '8e131071' END::numeric")
		n := &gen.Neighbours{Reached: make(map[string]*big.Rat)}
		if err := n.Compare(t.Context(), world, gen.Claims(p, p.Draw(rewritetest.FixedSampler(t)))); err != nil {
			t.Errorf("%s\n%.500v", sql, err)
		}
	}
}

const roughTables = `
visits
  person  bigint
orders
  buyer   bigint
scores
  person  double precision`

const roughPolicy = `version: 1
dataset: shop
neighbours: add-remove
tables:
  visits: {unit: {column: person, of: person}, max_rows: 5, max_groups: 2}
  orders: {unit: {column: buyer, of: person}, max_rows: 5, max_groups: 2}
  scores: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// Many whole numbers are one float. After USING a name means the left side's column, so that a condition on it says of the right side's
// only that it is about as large: that does not make two rows one person's (A15). Since no public column is compared with a unit's id at
// all, there is no such condition any more.
//
// covers: A15
func TestRoughEqualityLinksNobody(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, roughTables, roughPolicy)
	for sql, taken := range map[string]bool{
		"SELECT count(*) FROM scores JOIN (visits CROSS JOIN orders o) USING (person) WHERE person = o.buyer":                            false,
		"SELECT count(*) FROM scores JOIN (visits CROSS JOIN orders o) USING (person) WHERE o.buyer = person":                            false,
		"SELECT count(*) FROM scores s JOIN visits v ON s.person = v.person JOIN orders o ON o.buyer = s.person":                         false,
		"SELECT count(*) FROM (visits CROSS JOIN orders o) JOIN scores USING (person) WHERE person = o.buyer":                            false,
		"SELECT count(*) FROM scores JOIN (visits v CROSS JOIN orders o) USING (person) WHERE v.person = o.buyer":                        false,
		"SELECT count(*) FROM visits v JOIN orders o ON v.person = o.buyer":                                                              true,
		"SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM scores s, orders o WHERE s.person = v.person AND o.buyer = s.person)": false,
	} {
		if _, err := reviewed(t, sql, snapshot); (err == nil) != taken {
			t.Errorf("%s: %v, want it taken: %v", sql, err, taken)
		}
	}
}

// Equal intervals have several texts (1 day, 24:00:00), of which PostgreSQL keeps that of whichever row comes first: neither a group nor
// the hash that chooses values can be told by it.
func TestIntervalsAreNotToldApart(t *testing.T) {
	world := gen.NewWorld(t, 7, gen.Wild, 4)
	for _, sql := range []string{
		"SELECT count(DISTINCT (at - until) - (until - timestamp '2024-01-01')) FROM events",
		"SELECT CASE WHEN k_bool THEN interval '1 day' ELSE interval '24 hours' END AS i, count(*) FROM events GROUP BY i",
		"SELECT count(*) FROM (SELECT unit, at - until AS i FROM events) t GROUP BY i",
	} {
		if _, err := reviewed(t, sql, world.Snapshot); err == nil {
			t.Errorf("%s is taken", sql)
		}
	}
}

// Two releases are one only if they mean the same: what a query inside a condition calls its columns and tables is part of what it means.
func TestQueriesInConditionsAreToldApart(t *testing.T) {
	world := gen.NewWorld(t, 7, gen.Wild, 4)
	one := "(SELECT unit, n2 AS z, n4 AS w FROM events) x WHERE x.unit = o.buyer AND x.z = 10"
	other := "(SELECT unit, n2 AS w, n4 AS z FROM events) x WHERE x.unit = o.buyer AND x.z = 10"
	p, err := reviewed(t, "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM "+one+")), count(*) FILTER (WHERE EXISTS (SELECT 1 FROM "+other+
		")) FROM orders o", world.Snapshot)
	if err != nil {
		t.Fatal(parsetest.ShowFault(err))
	}
	if len(p.Releases) != 2 {
		t.Errorf("one release for both: %s", p.Query.Statistics[0].Name)
	}
}

// count(DISTINCT unit) of the side that an outer join may leave NULL counts the people who have a row there.
func TestUnitsOfTheNullableSide(t *testing.T) {
	world := gen.NewWorld(t, 7, gen.Calm, 100)
	world.Fill(t, false)
	for _, sql := range []string{
		"SELECT count(DISTINCT o.buyer) FROM people p LEFT JOIN orders o ON o.buyer = p.id",
		"SELECT count(DISTINCT o.buyer) FROM people p LEFT JOIN (SELECT buyer FROM orders GROUP BY buyer) o ON o.buyer = p.id",
	} {
		p, err := reviewed(t, sql, world.Snapshot)
		if err != nil {
			t.Fatalf("%s: %v", sql, parsetest.ShowFault(err))
		}
		tables, err := gen.RunOnAll(t.Context(), world.Conn, p.Statements(&plan.Draws{})[0], []string{"nobody"})
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		if err := world.Plain.QueryRow(t.Context(), sql).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := tables[0].At("", 0); got.Int64() != want || want == 0 {
			t.Errorf("%s: %v, want %d", sql, got, want)
		}
	}
}

// LIKE compares the pattern anew at each character of a text: with a long one a text that nearly fits at each would take seconds (A32).
//
// covers: A32
func TestLongPatterns(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "visits\n  person bigint\n  note text", `version: 1
dataset: shop
neighbours: add-remove
tables:
  visits: {unit: {column: person, of: person}, max_rows: 5, max_groups: 2}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	for length, taken := range map[int]bool{bind.MaxPattern: true, bind.MaxPattern + 1: false} {
		_, err := reviewed(t, "SELECT count(*) FROM visits WHERE note LIKE '"+strings.Repeat("a", length-1)+"%'", snapshot)
		if (err == nil) != taken {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// What doubles with every level of a query ends at a limit: columns of *, the expressions that outputs stem from, and the values that
// columns can have (A44).
//
// covers: A44
func TestDoublingLevels(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "visits\n  person bigint\n  k integer\nshops\n  name text", `version: 1
dataset: shop
neighbours: add-remove
tables:
  visits: {unit: {column: person, of: person}, max_rows: 5, max_groups: 2, columns: {k: {bounds: [0, 9990]}}}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	nested := func(innermost, around string) string {
		for range 25 {
			innermost = fmt.Sprintf(around, innermost)
		}
		return innermost
	}
	var wide strings.Builder
	for i := range 600 {
		fmt.Fprintf(&wide, ", k + %d AS k%d", i, i)
	}
	for sql, taken := range map[string]bool{
		"SELECT count(*) FROM (" + nested("SELECT * FROM visits", "SELECT t.*, t.* FROM (%s) t") + ") t": false,
		nested("SELECT count(*) AS x FROM visits", "SELECT x + x AS x FROM (%s) t"):                      false,
		nested("SELECT name AS x FROM shops", "SELECT x || x AS x FROM (%s) t"):                          false,
		nested("SELECT name AS x FROM shops", "SELECT x AS x FROM (%s) t"):                               true,
		"SELECT count(*) FROM (SELECT person" + wide.String() + " FROM visits) t":                        true,
	} {
		start := time.Now()
		_, _, err := pipeline.Read(sql, snapshot, rewritetest.Sharp())
		if took := time.Since(start); took > 10*time.Second { // doubled 25 times it would take hours
			t.Errorf("%.100s takes %v", sql, took)
		}
		if taken && err != nil || !taken && fault.CodeOf(err) != fault.CodeTooComplex {
			t.Errorf("%.100s: %v, want it taken: %v", sql, err, taken)
		}
	}
}

// A computation whose results its type cannot hold is made in a wider one, which is then the type of the column that it becomes (A29).
//
// covers: A29
func TestColumnsHaveTheTypeThatTheyAreComputedIn(t *testing.T) {
	world := gen.NewWorld(t, 7, gen.Wild, 4)
	world.Fill(t, true)
	for _, sql := range []string{
		"SELECT sum(x), avg(x + 1) FROM (SELECT unit, n4 * 300000000 AS x FROM events) t WHERE x > 5",
		"SELECT sum(s), max(m) FROM (SELECT unit, sum(n4 * 300000000) AS s, max(n4 * 300000000) AS m, avg(n2 * 70000) AS a FROM events GROUP " +
			"BY unit) t WHERE a > 0",
		"SELECT sum(x), count(s) FROM (SELECT unit, lag(n4 * 300000000, 1, 7) OVER w AS x, sum(n8 * 4) OVER w + 1 AS s FROM events WINDOW w AS " +
			"(PARTITION BY unit ORDER BY n2)) t",
		"SELECT sum(t.x - 1), count(t.y) FROM events, LATERAL (SELECT n4 * 300000000 AS x, n8 * 9000000000 AS y) t WHERE t.y > 0",
		"SELECT x, count(*) FROM (SELECT unit, nn * 300000000 AS x FROM events) t GROUP BY x",
	} {
		p, err := reviewed(t, sql, world.Snapshot)
		if err != nil {
			t.Fatalf("%s: %v", sql, parsetest.ShowFault(err))
		}
		n := &gen.Neighbours{Reached: make(map[string]*big.Rat)}
		if err := n.Compare(t.Context(), world, gen.Claims(p, p.Draw(rewritetest.FixedSampler(t)))); err != nil {
			t.Errorf("%s\n%.900v", sql, err)
		}
	}
}
