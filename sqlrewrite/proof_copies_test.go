package sqlrewrite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// The proofs run over prepared copies too. Each neighbour of a database is prepared by itself, from the views that leave one unit out, with
// numbers of units of its own; its rows lie beside those of the others, and a view in the copy's place shows those of the neighbour that is
// set.

// proofCopies are the tables of the family that have copies, and the sets of ranks of each.
var proofCopies = map[string]string{"events": "[[k_num], [k_bool, k_text]]", "orders": "[[k_text]]", "cards": "[[k_num]]"}

// proofCopy is the copy of a table of the family.
type proofCopy struct {
	build   *sqlprint.Build
	serving *catalog.Snapshot
	rows    string // where the rows of all neighbours lie
}

// errNoCopy is of a query that no copy answers: it is about other tables, or needs no data.
var errNoCopy = errors.New("about no copy")

// newCopiedWorld makes a database whose queries are answered from copies alone; a unit has at most most rows in each, and bound is
// max_rows and max_groups of the policy.
func newCopiedWorld(t *testing.T, seed uint64, values map[string][]string, bound, most int) *world {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, proofDDL)
	snapshot := snapshotOf(t, db, copiedPolicy(bound, most))
	db.Exec(t, proofMove)
	w := &world{schema: "store", conn: db.Conn(t, db.DSN), plain: db.Conn(t, db.DSN), snapshot: snapshot, values: values,
		r: rand.New(rand.NewPCG(seed, 2))} // reproducible on purpose
	if most < 100 { // tags have outgrown what was approved: the statement itself leaves out the third row of a key
		tags, _ := snapshot.Table("public", "tags")
		key, _ := tags.Column("k_num")
		key.MostEqual = 2
	}
	w.owner = w.conn
	w.prepare(t)
	mustExec(t, w.conn, "CREATE SCHEMA "+catalog.PreparedSchema)
	for i, name := range []string{"cards", "events", "orders"} {
		w.copies = append(w.copies, w.copyOf(t, name, uint32(i+1)))
	}
	return w
}

// copiedPolicy has copies of most rows of a unit.
func copiedPolicy(bound, most int) string {
	policy := strings.ReplaceAll(fmt.Sprintf(proofPolicy, bound, (bound+1)/2), "    row_security: per-row\n", "")
	for name, ranks := range proofCopies {
		head := "\n  " + name + ":\n"
		policy = strings.Replace(policy, head, head+fmt.Sprintf("    prepare: {max_rows: %d, ranks: %s}\n", most, ranks), 1)
	}
	return policy
}

// copyOf makes the copy of a table, empty.
func (w *world) copyOf(t *testing.T, name string, oid uint32) *proofCopy {
	t.Helper()
	table, _ := w.snapshot.Table("public", name)
	v := catalog.Version{Table: catalog.TableName{Schema: "public", Name: name}, Number: 1, OID: oid}
	build, err := pipeline.Prepare(w.snapshot, table, v)
	if err != nil {
		t.Fatal(err)
	}
	v.Digest = build.Digest
	c := &proofCopy{build: build, serving: pipeline.Serving(w.snapshot, v), rows: "store." + name + "_copies"}
	var columns []string
	for _, column := range build.Copy.Columns {
		columns = append(columns, scalar.QuoteIdent(column.Name))
	}
	view := build.Copy.Schema + "." + build.Copy.Name
	mustExec(t, w.conn, build.NeedUnits+"; "+build.Create+fmt.Sprintf(`;
		ALTER TABLE %[1]s SET SCHEMA store; ALTER TABLE store.%[2]s RENAME TO %[3]s_copies;
		ALTER TABLE %[4]s ADD without text NOT NULL DEFAULT pg_catalog.current_setting('test.without');
		CREATE VIEW %[1]s AS SELECT %[5]s FROM %[4]s WHERE without = pg_catalog.current_setting('test.without')`,
		view, build.Copy.Name, name, c.rows, strings.Join(columns, ", ")))
	return c
}

// prepareAll prepares the database and its neighbours anew, each with other numbers of units, and with the same seeds. Defect, unless it is
// nil, changes the text that fills a copy.
func (w *world) prepareAll(t *testing.T, defect func(string) string) {
	t.Helper()
	if len(w.copies) == 0 {
		return
	}
	numbers := catalog.PreparedSchema + "." + w.copies[0].build.Units
	var sql strings.Builder
	var fills []string
	for _, c := range w.copies {
		fmt.Fprintf(&sql, "DELETE FROM %s; ", c.rows)
		fill := strings.ReplaceAll(c.build.Fill, "$1::bigint", fmt.Sprintf("%d::bigint", w.r.Int64()))
		if defect != nil {
			fill = defect(fill)
		}
		fills = append(fills, fill)
	}
	for _, unit := range neighbourhood() {
		fmt.Fprintf(&sql, "SELECT pg_catalog.set_config('test.without', '%[1]s', false); DELETE FROM %[2]s; INSERT INTO %[2]s (id) "+
			"SELECT i FROM pg_catalog.generate_series(0, %[3]d) AS i WHERE i::text <> '%[1]s' AND i %% 2 = 0 "+
			"ORDER BY pg_catalog.hashint4extended(i, %[4]d); ", unit, numbers, units-1, w.r.Int64())
		for i, c := range w.copies {
			fmt.Fprintf(&sql, "%s; %s; ", c.build.AddUnits, fills[i])
		}
	}
	mustExec(t, w.owner, sql.String()+"SET test.without = 'nobody'")
}

// plan plans a query as the gateway does: over the tables, and over a copy where one answers it. In a world with copies the tables
// themselves answer none.
func (w *world) plan(sql string, o plan.Options) (*plan.Plan, error) {
	if len(w.copies) == 0 {
		return pipeline.Rewrite(sql, w.seen(), o)
	}
	live, err := pipeline.Rewrite(sql, w.snapshot, o)
	if err != nil {
		return nil, err
	}
	for _, c := range w.copies {
		if p, err := pipeline.Rewrite(sql, c.serving, live.Options); err == nil && p.NeedsData() {
			return p, p.Unproven()
		}
	}
	return nil, errNoCopy
}

// copiedBounds are bounds of a request that copies can keep: mostly none, or one on all rows of a unit.
func copiedBounds(r *rand.Rand) (rows, groups, total int64) {
	switch r.IntN(4) {
	case 0:
		return int64(1 + r.IntN(4)), int64(1 + r.IntN(4)), 0
	case 1:
		return 0, 0, int64(1 + r.IntN(6))
	default:
		return 0, 0, 0
	}
}

// copiedProofs is how many random queries a proof over copies runs: each takes as long as five others.
func copiedProofs() int { return proofs() / 5 }

// As TestNeighbours says, for queries that are answered from prepared copies: each neighbour is prepared from what it holds, and no
// sealed integer moves by more than its claim.
func TestCopiesNeighbours(t *testing.T) {
	t.Parallel()
	n := &neighbours{queries: copiedProofs(), seed: *proofSeed, copied: true}
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d queries of %d on %d databases each, refused by size: %v", n.ran, n.tried, len(neighbourhood()), n.refusals)
	if n.ran >= enoughForPower/3 {
		tight(t, n.reached)
	}
}

// Each mutant of the text that fills a copy, or of a statement's cut by its ranks, is noticed within 1,000 queries.
func TestCopiesNeighboursKillMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for name, defect := range map[string]defect{
		"rank over units":          {fill: replacing(`PARTITION BY t\."\w+" ORDER`, `ORDER`)},
		"more rows than the rank":  {fill: replacing(`(WHERE \w\.rn <= )6`, `${1}8`)},
		"a number for two units":   {fill: replacing(`SELECT u\.unit`, `SELECT u.unit / 2`)},
		"rows of other units":      {fill: replacing(`ON u\.id = r\.id`, `ON u.id / 3 = r.id / 3`)},
		"no cut by rank":           {sql: replacing(`[^( ]*noisegate_rn"? <= `, `1 <= `)},
		"no cut by rank of groups": {sql: replacing(`[^( ]*noisegate_group_\d"? <= `, `1 <= `)},
		"more of the public rows":  {sql: replacing(`(v\.place <= \$\d+::bigint)`, `${1} + 1`)},
		"no cut by rank in groups": {sql: replacing(`[^( ]*noisegate_row_\d"? <= `, `1 <= `)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &neighbours{queries: 1000, seed: *proofSeed, defect: defect, copied: true}
			err := n.run(t)
			if err == nil {
				t.Fatalf("survived %d queries of %d", n.ran, n.tried)
			}
			t.Logf("killed at query %d of %d: %s", n.ran, n.tried+1, err.Error()[strings.LastIndexByte(err.Error(), '\n')+1:])
		})
	}
}

// Without noise an answer from a copy that leaves out no row is PostgreSQL's own answer to the analyst's text about the table.
func TestCopiesOracleRandom(t *testing.T) {
	t.Parallel()
	oracle(t, newCopiedWorld(t, 12, calm, 1000, 1000), copiedProofs())
}
