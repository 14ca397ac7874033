package verified

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Every statement of the golden files that computes has a dry run, which names no table and which PostgreSQL runs without an error: none of
// them is refused by it. Those of plain counts and sums have none.
//
// needs: postgres
// covers: E.3
func TestDryRunsOfGoldenStatements(t *testing.T) {
	t.Parallel()
	database := pgtest.Protected(t, `CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')`)
	conn := database.Conn(t, database.ReaderDSN)
	if _, err := conn.Exec(t.Context(), "SET search_path = ''"); err != nil {
		t.Fatal(err)
	}
	ran, skipped, at := 0, 0, 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		if at++; at%rewritetest.OneIn(4) > 0 {
			return
		}
		dryProven(t, d.Pos, p)
		for _, run := range p.DryRuns() {
			if run.Plain {
				skipped++
				continue
			}
			ran++
			sql, args := run.Text()
			for _, table := range p.Snapshot.Tables {
				if strings.Contains(sql, sqlprint.TableName(table)) {
					d.Fatalf(t, "the dry run names %s: %s", table.Name, sql)
				}
			}
			rows, err := conn.Query(t.Context(), sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
			if err == nil {
				rows.Close()
				err = rows.Err()
			}
			if err != nil {
				t.Errorf("%s: %s\n%s\n%v", d.Pos, d.Input, sql, err)
			}
		}
	})
	if ran < 90/rewritetest.OneIn(4) || skipped < 50/rewritetest.OneIn(4) {
		t.Errorf("%d dry runs, %d plain statements: too few to say anything", ran, skipped)
	}
	t.Logf("%d dry runs, %d plain statements", ran, skipped)
}
