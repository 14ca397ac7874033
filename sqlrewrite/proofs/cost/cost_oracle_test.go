// Package cost proves that one unit costs no more work than is charged, and holds the table of costs against PostgreSQL.
package cost

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// The chosen unit has far more rows than anybody, in all tables, and public tables are as large as their policy allows.
const costAdversary = `
DELETE FROM public.tags; INSERT INTO public.tags SELECT 1, 'red' || i FROM generate_series(1, 8) i; INSERT INTO public.tags SELECT 2, 'blue' || i FROM generate_series(1, 8) i;
UPDATE store.events SET unit = 3 WHERE event % 4 <> 0; UPDATE store.orders SET buyer = 3 WHERE order_id % 4 <> 0;
UPDATE store.events SET k_num = 1 WHERE unit = 3 AND event % 2 = 0; UPDATE store.orders SET k_num = 1 WHERE buyer = 3;`

// costSlack is by how many milliseconds two runs of one statement may differ on a machine that others use too.
const costSlack = 250

// chosenUnit is the unit of [costAdversary].
const chosenUnit = "3"

// costs compares what statements do with the chosen unit and without.
type costs struct {
	unitRows          float64 // of all tables
	defect            func(string) string
	small             map[string]bool // tables that PostgreSQL reads as it likes
	skipped           int
	tightest, slowest float64
}

// compare is an error where the chosen unit moves the work of a plan by more than its bound.
func (c *costs) compare(t *testing.T, world *gen.World, p *plan.Plan, d *plan.Draws) error {
	t.Helper()
	pairs := float64(scalar.ClampInt64(p.Query.Pairs))
	for _, s := range p.Statements(d) {
		if c.defect != nil {
			s.SQL = c.defect(s.SQL)
		}
		var work, ms [2]float64
		var nodes, idle [2]int
		var unread [2][]string
		for i, without := range []string{"nobody", chosenUnit} {
			rewritetest.MustExec(t, world.Conn, "SELECT set_config('test.without', '"+without+"', false)")
			plan, took, err := gen.ExecutionOf(t.Context(), world.Conn, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.SQL, err)
			}
			ms[i] = took
			work[i], nodes[i], idle[i] = plan.Work()
			unread[i] = slices.DeleteFunc(plan.Unread(), func(relation string) bool { return c.small[relation] })
		}
		most := c.unitRows * (1 + pairs) * float64(max(nodes[0], nodes[1]))
		if idle[0] != idle[1] {
			c.skipped++
		}
		if !slices.Equal(unread[0], unread[1]) {
			return fmt.Errorf("%s\n%v\nunit %s decides whether tables are read: not read with it are %v, without it %v", s.SQL, s.Args, chosenUnit,
				unread[0], unread[1])
		}
		moved := max(work[0]-work[1], work[1]-work[0])
		c.tightest = max(c.tightest, moved/most)
		if moved > most {
			return fmt.Errorf("%s\n%v\nunit %s, of %.0f rows that meet %.0f each, moved the work from %.0f to %.0f rows at %d nodes; the bound is "+
				"%.0f", s.SQL, s.Args, chosenUnit,
				c.unitRows, pairs, work[1], work[0], nodes[0], most)
		}
		allowed := (c.unitRows*stability.MaxRowWork+stability.MaxUnitWork)/1e6*float64(strings.Count(s.SQL, "SELECT")) + costSlack
		for range 20 { // others use the machine as well: what takes too long does so each time
			if ms[0]-ms[1] <= allowed {
				break
			}
			for i, without := range []string{"nobody", chosenUnit} {
				rewritetest.MustExec(t, world.Conn, "SELECT set_config('test.without', '"+without+"', false)")
				_, took, err := gen.ExecutionOf(t.Context(), world.Conn, s)
				if err != nil {
					return fmt.Errorf("%s: %w", s.SQL, err)
				}
				ms[i] = min(ms[i], took)
			}
		}
		if c.slowest = max(c.slowest, ms[0]-ms[1]); ms[0]-ms[1] > allowed {
			return fmt.Errorf("%s\nunit %s moved the time from %.1f to %.1f ms; the bound is %.1f", s.SQL, chosenUnit, ms[1], ms[0], allowed)
		}
	}
	return nil
}

// What one unit adds to the rows that PostgreSQL looks at is bounded by what the planner says: each of its rows meets at most PairsPerRow
// others, at each node of the plan. Its time is bounded by the rows' price. TestTablesAreReadWhateverOneUnitHolds looks at a unit of few
// rows beside very many.
//
// needs: postgres
// covers: B4 C1
func TestCostOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	world := gen.NewWorld(t, *gen.ProofSeed, gen.Wild, 4)
	writer := &gen.Writer{Rand: world.Rand, Counts: make(map[string]int)}
	sampler := rewritetest.FixedSampler(t)
	var c costs
	ran, refused := 0, map[string]int{}
	for tried := 0; ran < *gen.CostQueries; tried++ {
		if tried > 2**gen.CostQueries+100 {
			t.Fatalf("%d of %d queries were refused: %v", tried-ran, tried, refused)
		}
		if tried%50 == 0 {
			world.Fill(t, true)
			rewritetest.MustExec(t, world.Owner, costAdversary)
			c.unitRows = rowsWhere(t, world, "unit = "+chosenUnit)
		}
		sql, from := writer.Query()
		snapshot := world.Seen()
		c.small = map[string]bool{"zones": snapshot == world.Snapshot, "tags": snapshot == world.Snapshot}
		p, err := pipeline.Rewrite(sql, snapshot, gen.RandomOptions(world.Rand, from))
		if err != nil {
			if code := string(fault.CodeOf(err)); gen.Tolerated[code] {
				refused[code]++
				continue
			}
			t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
		}
		if !p.NeedsData() {
			continue
		}
		ran++
		for _, block := range p.Different() {
			if err := c.compare(t, world, block, block.Draw(sampler)); err != nil {
				t.Fatalf("%s\n%v", sql, err)
			}
		}
	}
	rewritetest.MustExec(t, world.Conn, "SELECT set_config('test.without', 'nobody', false)")
	t.Logf("%d queries, refused by size: %v; in %d statements the unit alone decided whether a node ran; at most %.2f of the bound on rows; "+
		"at most %.1f ms", ran, refused, c.skipped, c.tightest, c.slowest)
}

// Without their caps, statements that pair one unit's own rows break the bound: that is what the silence of the test above is worth. No
// pair fulfils the condition of the second one, so that PostgreSQL looks at all of them.
//
// needs: postgres
// covers: B4 C1
func TestCostOracleKillsUncapped(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	world := gen.NewWorld(t, *gen.ProofSeed, gen.Wild, 4)
	for _, test := range []struct {
		rows int
		sql  string
	}{
		{150, "SELECT count(*) FROM events a JOIN events b ON b.unit = a.unit JOIN events c ON c.unit = a.unit"},
		{800, "SELECT count(*) FROM events a WHERE NOT EXISTS (SELECT 1 FROM events b WHERE b.unit = a.unit AND b.nn + a.nn > 1000)"},
	} {
		sql := test.sql
		world.Fill(t, true)
		rewritetest.MustExec(t, world.Owner, fmt.Sprintf(
			"INSERT INTO store.events (event, unit, k_num, nn) SELECT 1000 + i, 3, 1, i FROM generate_series(1, %d) i;", test.rows)+costAdversary)
		p, err := pipeline.Rewrite(sql, world.Snapshot, gen.RandomOptions(world.Rand, gen.Origin{}))
		if err != nil {
			t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
		}
		c := costs{unitRows: rowsWhere(t, world, "unit = "+chosenUnit)}
		draws := p.Draw(rewritetest.FixedSampler(t))
		if err := c.compare(t, world, p, draws); err != nil {
			t.Error(err)
		}
		c.defect = gen.Replacing(`v\.place <= `, `v.place <= 1000000 * `)
		if err := c.compare(t, world, p, draws); err == nil {
			t.Errorf("%s: survived: at most %.2f of the bound", sql, c.tightest)
		} else {
			t.Log(err.Error()[strings.LastIndexByte(err.Error(), '\n')+1:])
		}
	}
}

// rowsWhere counts the rows of owned tables that fulfil a condition, and all rows of public tables.
func rowsWhere(t *testing.T, w *gen.World, condition string) float64 {
	t.Helper()
	people, orders := strings.ReplaceAll(condition, "unit", "id"), strings.ReplaceAll(condition, "unit", "buyer")
	var n float64
	if err := w.Owner.QueryRow(t.Context(), fmt.Sprintf(`SELECT (SELECT count(*) FROM store.people WHERE %s) + (SELECT count(*) FROM store.events WHERE %s) + (SELECT count(*) FROM store.orders WHERE %[3]s)
		+ (SELECT count(*) FROM store.items JOIN store.orders USING (order_id) WHERE %[3]s) + (SELECT count(*) FROM store.cards WHERE %[2]s)
		+ (SELECT count(*) FROM public.zones) + (SELECT count(*) FROM public.tags)`, people, condition, orders)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
