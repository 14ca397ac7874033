//go:build citus

package pgexec_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
	"noisegate.example/sqlrewrite"
)

// citusVisits is a cluster with the tables of [preparedDDL]: visits lie by their own id, so that a person's are in many shards, and some of
// them are nobody's.
func citusVisits(t *testing.T) (*pgtest.Cluster, *pgtest.ProtectedDatabase) {
	t.Helper()
	c := pgtest.NewCluster(t, testfiles.Fetched(t, "engines"))
	const shards = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET citus.shard_count = 4', current_database()); END $$"
	return c, c.Protected(t, preparedDDL, shards, "SET citus.shard_count = 4",
		"SELECT create_distributed_table('visits', 'id'), create_reference_table('wards'), create_reference_table('tags')")
}

// TestCitusPreparedNeighbours is [TestPreparedNeighbours] over copies that lie on workers: 552 pairs of a question and a person.
func TestCitusPreparedNeighbours(t *testing.T) {
	_, p := citusVisits(t)
	neighbours(t, p, preparedPolicy, 2)
	dropped(t, p)
	neighbours(t, p, withRanks().Replace(preparedPolicy), 2)
}

// TestCitusCopiesAnswerAsOneServer: with one seed the statements over a copy give the same integers, whether it lies on workers or not, and
// workers compute them whole: a question is one statement for each shard.
func TestCitusCopiesAnswerAsOneServer(t *testing.T) {
	_, spread := citusVisits(t)
	for _, policy := range []string{preparedPolicy, withRanks().Replace(preparedPolicy)} {
		one := pgtest.Protected(t, preparedDDL)
		var answers []map[string]any
		for _, p := range []*pgtest.ProtectedDatabase{one, spread} {
			d := open(t, p, nil)
			fillVisits(t, p, rand.New(rand.NewPCG(16, 11)))
			on := prepared(t, p, d, provenSnapshot(t, d, policy), 7)
			pool, all := p.Pool(t), map[string]any{}
			for _, sql := range preparedQueries {
				plan := distributed(t, d, planned(t, on, sql, 3))
				all[sql] = integers(t, pool, plan)
				if !d.Distributed() {
					continue
				}
				for _, s := range statementsOf(t, plan) {
					whole(t, p, s, sql != joinedQuantile && !strings.Contains(s.SQL, "count(u.x)")) // different values meet at the coordinator
				}
			}
			answers = append(answers, all)
		}
		for _, sql := range preparedQueries {
			if !reflect.DeepEqual(answers[0][sql], answers[1][sql]) {
				t.Errorf("%s: %v on one server, %v on workers", sql, answers[0][sql], answers[1][sql])
			}
		}
		dropped(t, spread)
	}
}

// TestCitusRunsSeeOneMoment: what is written to a worker after a run read it is not in the copy, whatever statement of the run reads next.
func TestCitusRunsSeeOneMoment(t *testing.T) {
	_, p := citusVisits(t)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 13)))
	on := provenSnapshot(t, open(t, p, nil), preparedPolicy)
	visits, _ := on.Table("", "visits")
	made, err := prepareConfig(p, 1).Prepare(t.Context(), on, visits, false, func(step string) {
		if step == pgexec.StepRows { // of people who have numbers, on all shards
			p.Exec(t, "INSERT INTO visits (id, person, ward) SELECT 10000 + i, 1 + i % 12, 1 FROM generate_series(1, 200) AS i")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var late, written int
	text := "SELECT (SELECT count(*) FROM noisegate_prepared." + on.CopyOf(visits, *made).Name + " WHERE fee IS NULL), " +
		"(SELECT count(*) FROM visits WHERE id > 10000)"
	if err := p.Pool(t).QueryRow(t.Context(), text).Scan(&late, &written); err != nil {
		t.Fatal(err)
	}
	if late > 0 || written != 200 {
		t.Errorf("%d of %d rows that were written while the run ran are in the copy", late, written)
	}
}

// dropped removes all copies.
func dropped(t *testing.T, p *pgtest.ProtectedDatabase) {
	t.Helper()
	if err := prepareConfig(p, 0).Drop(t.Context(), "d", catalog.TableName{Schema: "public", Name: "visits"}); err != nil {
		t.Fatal(err)
	}
}

// joinedQuantile is a question whose statement ends its rows in OFFSET 0 (decision 24), which Citus computes at the coordinator.
const joinedQuantile = "SELECT w.floor, median(v.minutes) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.floor"

// whole fails where a statement is not asked of each shard, and of nothing else; or is, where it is not expected.
func whole(t *testing.T, p *pgtest.ProtectedDatabase, s sqlrewrite.Statement, expected bool) {
	t.Helper()
	rows, err := p.Pool(t).Query(t.Context(), "EXPLAIN "+s.SQL, s.Args...)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "Custom Scan (Citus Adaptive)") || !strings.Contains(plan, "Task Count: 4") ||
		strings.Contains(plan, "Subplan") == expected {
		t.Errorf("%s\n%s", s.SQL, plan)
	}
}

// TestCitusShardsArePinned: a statement over a copy runs only while its bounds hold on each shard, whatever the coordinator's catalog says;
// and no copy is made of a source of which a shard lacks what the build rests on.
func TestCitusShardsArePinned(t *testing.T) {
	c, p := citusVisits(t)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 12)))
	p.Exec(t, "ALTER TABLE visits ADD came timestamptz NOT NULL DEFAULT now()")
	on := provenSnapshot(t, open(t, p, nil), preparedPolicy)
	onOne := func(t *testing.T, table, change string) { // one shard of one worker
		t.Helper()
		text := fmt.Sprintf(`SET citus.enable_manual_changes_to_shards = on; SET citus.enable_ddl_propagation = off;
			SET citus.show_shards_for_app_name_prefixes = '*';
			DO $$ DECLARE shard text; BEGIN
				SELECT c.oid::regclass::text INTO STRICT shard FROM pg_class c
					WHERE c.relname ~ '^%s_[0-9]+$' AND c.relkind = 'r' ORDER BY c.oid LIMIT 1;
				EXECUTE replace($q$ %s $q$, '@shard', shard);
			END $$`, table, change)
		if err := c.At(t.Context(), c.Workers[1], p.Name, text); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(kind string) string {
		return "DO $x$ DECLARE c text; BEGIN SELECT conname INTO STRICT c FROM pg_constraint " +
			"WHERE conrelid = '@shard'::regclass AND contype = '" + kind + "'; " +
			"EXECUTE 'ALTER TABLE @shard DROP CONSTRAINT ' || quote_ident(c); END $x$"
	}
	undo := map[string]string{ // so that later runs can drop the version
		"rows of others": "DROP TABLE public.heir",
		"it is gone":     "ALTER TABLE @shard SET SCHEMA noisegate_prepared",
	}
	for name, change := range map[string]string{
		"the check is gone":      drop("c"),
		"the check is not valid": drop("c") + "; ALTER TABLE @shard ADD CHECK (noisegate_rn BETWEEN 1 AND 4) NOT VALID",
		"the check is another":   drop("c") + "; ALTER TABLE @shard ADD CHECK (noisegate_rn BETWEEN 1 AND 5)",
		"the key is gone":        drop("u"),
		"units may be NULL":      "ALTER TABLE @shard ALTER person DROP NOT NULL",
		"ranks may be NULL":      "ALTER TABLE @shard ALTER noisegate_rn DROP NOT NULL",
		"rows of others":         "CREATE TABLE public.heir () INHERITS (@shard)",
		"rows are hidden":        "ALTER TABLE @shard ENABLE ROW LEVEL SECURITY",
		"it is gone":             "ALTER TABLE @shard SET SCHEMA public",
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, p, nil) // which has not seen any shard
			serving := prepared(t, p, d, on, 1)
			table, _ := serving.Named("", "visits")
			s := statementsOf(t, distributed(t, d, planned(t, serving, "SELECT count(*), sum(minutes) FROM visits", 0)))[0]
			if _, err := collect(t, d, s); err != nil {
				t.Fatal(err)
			}
			onOne(t, table.Name, change)
			fresh := open(t, p, nil)
			if _, err := collect(t, fresh, s); !fault.IsUntouched(err) || fault.CodeOf(err) != fault.CodePolicyStale {
				t.Errorf("got %v, want a refusal before anything is read", err)
			}
			state, err := prepareConfig(p, 1).State(t.Context(), on)
			if err != nil || len(state) != 1 || state[0].Versions[0].Current {
				t.Errorf("%+v, %v: a version of which a shard is another table is said to serve", state, err)
			}
			if undo[name] != "" {
				onOne(t, table.Name, undo[name])
			}
		})
	}
	appends := provenSnapshot(t, open(t, p, nil), strings.Replace(preparedPolicy, "{max_rows: 4}",
		"{max_rows: 4, refresh: {append: came, settle: 10m}}", 1))
	visits, _ := appends.Table("", "visits")
	_, err := prepareConfig(p, 1).Prepare(t.Context(), appends, visits, false, nil)
	if err == nil || !strings.Contains(err.Error(), "write refresh: full") {
		t.Errorf("rows are appended: %v", err)
	}
	visits, _ = on.Table("", "visits")
	onOne(t, "visits", drop("p"))
	if _, err := prepareConfig(p, 1).Prepare(t.Context(), on, visits, false, nil); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("a copy is made by keys that a shard has not: %v", err)
	}
}
