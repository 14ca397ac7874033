package gen

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
	"noisegate.example/sqlrewrite/internal/rewritetest"
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

// NewCopiedWorld makes a database whose queries are answered from copies alone; a unit has at most most rows in each, and bound is
// max_rows and max_groups of the policy.
func NewCopiedWorld(t *testing.T, seed uint64, values map[string][]string, bound, most int) *World {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, ProofDDL)
	snapshot := SnapshotOf(t, db, CopiedPolicy(bound, most))
	db.Exec(t, proofMove)
	w := &World{Schema: "store", Conn: db.Conn(t, db.DSN), Plain: db.Conn(t, db.DSN), Snapshot: snapshot, Values: values,
		Rand: rand.New(rand.NewPCG(seed, 2))} // reproducible on purpose
	if most < 100 { // tags have outgrown what was approved: the statement itself leaves out the third row of a key
		tags, _ := snapshot.Table("public", "tags")
		key, _ := tags.Column("k_num")
		key.MostEqual = 2
	}
	w.Owner = w.Conn
	w.Prepare(t)
	rewritetest.MustExec(t, w.Conn, "CREATE SCHEMA "+catalog.PreparedSchema)
	for i, name := range []string{"cards", "events", "orders"} {
		w.copies = append(w.copies, w.copyOf(t, name, uint32(i+1)))
	}
	return w
}

// CopiedPolicy has copies of most rows of a unit.
func CopiedPolicy(bound, most int) string {
	policy := strings.ReplaceAll(fmt.Sprintf(proofPolicy, bound, (bound+1)/2), "    row_security: per-row\n", "")
	for name, ranks := range proofCopies {
		head := "\n  " + name + ":\n"
		policy = strings.Replace(policy, head, head+fmt.Sprintf("    prepare: {max_rows: %d, ranks: %s}\n", most, ranks), 1)
	}
	return policy
}

// copyOf makes the copy of a table, empty.
func (w *World) copyOf(t *testing.T, name string, oid uint32) *proofCopy {
	t.Helper()
	table, _ := w.Snapshot.Table("public", name)
	v := catalog.Version{Table: catalog.TableName{Schema: "public", Name: name}, Number: 1, OID: oid}
	build, err := pipeline.Prepare(w.Snapshot, table, v)
	if err != nil {
		t.Fatal(err)
	}
	v.Digest = build.Digest
	c := &proofCopy{build: build, serving: pipeline.Serving(w.Snapshot, v), rows: "store." + name + "_copies"}
	var columns []string
	for _, column := range build.Copy.Columns {
		columns = append(columns, scalar.QuoteIdent(column.Name))
	}
	view := build.Copy.Schema + "." + build.Copy.Name
	rewritetest.MustExec(t, w.Conn, build.NeedUnits+"; "+build.Create+fmt.Sprintf(`;
		ALTER TABLE %[1]s SET SCHEMA store; ALTER TABLE store.%[2]s RENAME TO %[3]s_copies;
		ALTER TABLE %[4]s ADD without text NOT NULL DEFAULT pg_catalog.current_setting('test.without');
		CREATE VIEW %[1]s AS SELECT %[5]s FROM %[4]s WHERE without = pg_catalog.current_setting('test.without')`,
		view, build.Copy.Name, name, c.rows, strings.Join(columns, ", ")))
	return c
}

// prepareAll prepares the database and its neighbours anew, each with other numbers of units, and with the same seeds. Defect, unless it is
// nil, changes the text that fills a copy.
func (w *World) prepareAll(t *testing.T, defect func(string) string) {
	t.Helper()
	if len(w.copies) == 0 {
		return
	}
	numbers := catalog.PreparedSchema + "." + w.copies[0].build.Units
	var sql strings.Builder
	var fills []string
	for _, c := range w.copies {
		fmt.Fprintf(&sql, "DELETE FROM %s; ", c.rows)
		fill := strings.ReplaceAll(c.build.Fill, "$1::bigint", fmt.Sprintf("%d::bigint", w.Rand.Int64()))
		if defect != nil {
			fill = defect(fill)
		}
		fills = append(fills, fill)
	}
	for _, unit := range Neighbourhood() {
		fmt.Fprintf(&sql, "SELECT pg_catalog.set_config('test.without', '%[1]s', false); DELETE FROM %[2]s; INSERT INTO %[2]s (id) "+
			"SELECT i FROM pg_catalog.generate_series(0, %[3]d) AS i WHERE i::text <> '%[1]s' AND i %% 2 = 0 "+
			"ORDER BY pg_catalog.hashint4extended(i, %[4]d); ", unit, numbers, Units-1, w.Rand.Int64())
		for i, c := range w.copies {
			fmt.Fprintf(&sql, "%s; %s; ", c.build.AddUnits, fills[i])
		}
	}
	rewritetest.MustExec(t, w.Owner, sql.String()+"SET test.without = 'nobody'")
}

// plan plans a query as the gateway does: over the tables, and over a copy where one answers it. In a world with copies the tables
// themselves answer none.
func (w *World) plan(sql string, o plan.Options) (*plan.Plan, error) {
	if len(w.copies) == 0 {
		return w.Lists.Plan(sql, w.Seen(), o)
	}
	live, err := w.Lists.Plan(sql, w.Snapshot, o)
	if err != nil {
		return nil, err
	}
	for _, c := range w.copies {
		if p, err := w.Lists.Plan(sql, c.serving, live.Options); err == nil && p.NeedsData() {
			return p, p.Unproven()
		}
	}
	return nil, errNoCopy
}

// Serving are the snapshots by which questions are answered from a copy.
func (w *World) Serving() (all []*catalog.Snapshot) {
	for _, c := range w.copies {
		all = append(all, c.serving)
	}
	return all
}

// CopiedBounds are bounds of a request that copies can keep: mostly none, or one on all rows of a unit.
func CopiedBounds(r *rand.Rand) (rows, groups, total int64) {
	switch r.IntN(4) {
	case 0:
		return int64(1 + r.IntN(4)), int64(1 + r.IntN(4)), 0
	case 1:
		return 0, 0, int64(1 + r.IntN(6))
	default:
		return 0, 0, 0
	}
}
