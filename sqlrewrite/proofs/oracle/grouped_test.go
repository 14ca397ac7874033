package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Groups of one unit's rows by computed keys, windows and first rows by a column that leads to one unit, and different values of one that
// rows are joined on: without noise each total is PostgreSQL's.
//
// needs: postgres
func TestGroupsByWhatLeadsToOneUnit(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 41, gen.Calm, 1000)
	w.Fill(t, true)
	rewritetest.MustExec(t, w.Conn, `UPDATE store.events SET unit = event % 12 WHERE unit IS NULL;
		UPDATE store.orders SET buyer = order_id % 12 WHERE buyer IS NULL; DELETE FROM store.items WHERE order_id IS NULL`)
	r := rand.New(rand.NewPCG(9, 10)) // reproducible on purpose
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for range 120 {
		table := pick("items order_id item", "items order_id item", "orders order_id order_id", "events unit event", "events event event")
		var name, key, unique string
		if _, err := fmt.Sscan(table, &name, &key, &unique); err != nil {
			t.Fatal(err)
		}
		computed := pick("n2 % 3", "date_trunc('month', day)::date", "n4 > 3", "n2 + n4", "upper(note)", "abs(n4 - 2)",
			"CASE WHEN n2 > 2 THEN 'many' ELSE 'few' END", "extract(dow FROM day)", "at AT TIME ZONE 'UTC'")
		sql := strings.NewReplacer("$key", key, "$k", computed, "$table", name, "$unique", unique, "$again", pick(computed, "2", "k"),
			"$where", pick("", "", " WHERE n4 IS NOT NULL", " WHERE n2 < 4"), "$side", pick("o", "i"), "$most", pick("1", "3", "5"),
			"$having", pick("", " HAVING "+computed+" IS NOT NULL", " HAVING count(*) > 1")).Replace(pick(
			"SELECT count(*), count(k), sum(c), sum(s) FROM (SELECT $key, $k AS k, count(*) AS c, sum(n2) AS s FROM $table$where "+
				"GROUP BY $key, $again$having) g",
			"SELECT count(*), sum(c), sum(s) FROM (SELECT max(n2) OVER (PARTITION BY $key) AS c, row_number() OVER (PARTITION BY $key, $k "+
				"ORDER BY $unique) AS s FROM $table$where) g",
			"SELECT count(*), count(n4), sum(n2) FROM (SELECT DISTINCT ON ($key, $k) n2, n4 FROM $table$where ORDER BY $key, $k, $unique DESC) g",
			"SELECT count(DISTINCT $side.order_id) FROM orders o JOIN items i ON i.order_id = o.order_id WHERE $side.n2 < $most"))
		p, err := pipeline.Rewrite(sql, w.Snapshot, rewritetest.Sharp())
		if err != nil {
			t.Errorf("%s\n%v", sql, err)
			continue
		}
		got, want := gen.NoiselessAnswer(t, w.Conn, p), gen.PlainAnswer(t, w.Plain, sql)
		if len(got.Rows) != 1 || !slices.EqualFunc(got.Rows[0], want.Rows[0], func(g, w string) bool {
			return gen.SameValue(g, w) || w == "NULL" && gen.SameValue(g, "0.0") // a sum over no rows
		}) {
			t.Errorf("%s\n%v, PostgreSQL has %v", sql, got.Rows, want.Rows)
		}
	}
}
