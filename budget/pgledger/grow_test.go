package pgledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
)

// grown is the number of charges at the end of TestLedgerStatementsDoNotGrow.
const grown = 100_000

// arguments of the statements that a question meets, which all find what they look for. Each is SQL; the charge is the tenth.
func arguments() map[string]string {
	const id, finger, identity, series = "c0000000010", "sha256('f10')", "sha256('i10')", "sha256('s10')"
	return map[string]string{
		"advance":   "'d', 7, sha256('h'), clock_timestamp(), 6, sha256('g'), clock_timestamp(), 4, 1, true",
		"again":     "ARRAY['" + id + "']",
		"balances":  "ARRAY['d'], ARRAY['analyst'], ARRAY['ana1'], 'd', 'ana1'",
		"best":      "'d', ARRAY[" + identity + "]",
		"bind":      "ARRAY['ana1'], ARRAY['new'], ARRAY[sha256('x')], ARRAY['" + id + "']",
		"committed": "20, sha256('20')",
		"earlier":   "'d', 'ana1', " + finger + ", 'k10', true",
		"end": "clock_timestamp(), ARRAY['open'], ARRAY['expired'], ARRAY[1], ARRAY[false], ARRAY[0], ARRAY[0], ARRAY[NULL]::bytea[], " +
			"ARRAY[0], ARRAY[NULL]::text[]",
		"failed":        "'d', 'ana1'",
		"failures":      "'d', 'ana1', '1 day'",
		"find_latest":   "'d', ARRAY[" + series + "], 'ana1', true, NULL",
		"find_released": "'d', ARRAY[" + identity + "], 'ana1'",
		"find_own":      "'d', ARRAY[" + identity + "], 'ana1'",
		"in_force":      "'d'",
		"keep":          "'open', 'd', sha256('new'), 1, '[]'",
		"keep_released": "ARRAY['open'], ARRAY['d'], ARRAY['ana1'], ARRAY[true], ARRAY[sha256('new')], ARRAY['{}'], " +
			"ARRAY[NULL]::bytea[], ARRAY[NULL]::timestamptz[], ARRAY[NULL]::text[]",
		"load_accounts":  "'d', ARRAY['analyst'], ARRAY['ana1'], ARRAY['open']",
		"load_charges":   "ARRAY['" + id + "']",
		"load_keys":      "ARRAY['ana1'], ARRAY['k10']",
		"load_plans":     "ARRAY['" + id + "']",
		"load_questions": "'d', ARRAY['ana1'], ARRAY[" + finger + "]",
		"lock":           "'d', 20",
		"move": "ARRAY[1], ARRAY[1], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0], " +
			"ARRAY[0], ARRAY[0], ARRAY[clock_timestamp()], ARRAY[0], ARRAY[0]",
		"numbers": "1, 'd'",
		"open": "'d', clock_timestamp(), ARRAY['new'], ARRAY['ana1'], ARRAY['{1}'], ARRAY[1], ARRAY[false], ARRAY[0], ARRAY[0], " +
			"ARRAY[sha256('new')], ARRAY[1], ARRAY['{}'], ARRAY[0]",
		"settlement": "'" + id + "'",
		"write": "'d', clock_timestamp(), ARRAY[999999999], ARRAY['settle'], ARRAY['ana1'], ARRAY['{1}'], ARRAY['open'], ARRAY[1], " +
			"ARRAY[false], ARRAY[0], ARRAY[0], ARRAY[sha256('x')], ARRAY[NULL]::text[], " +
			"ARRAY[NULL]::text[], ARRAY[sha256('y')], ARRAY[0], ARRAY[NULL]::text[]",
	}
}

// charges puts charges up to a number into the ledger, with all that each leaves there: of nine analysts, and of each a question, a key,
// a plan, releases. The triggers are off: it is as if a gateway had written it.
func charges(t *testing.T, d *pgtest.ControlDatabase, from, to int) {
	t.Helper()
	d.Exec(t, fmt.Sprintf(`SET session_replication_role = replica; SET search_path = noisegate;
		INSERT INTO charge (charge_id, dataset, analyst, account_ids, state, epsilon, unbounded, rho, delta, fingerprint, request, answer, closed_at)
			SELECT 'c' || to_char(i, 'FM0000000000'), 'd', 'ana' || i %% 9, '{1}', 'settled', 1, false, 0, 0, sha256(('f' || i)::bytea), '{}', 'x',
				clock_timestamp() FROM generate_series(%[1]d, %[2]d) i;
		INSERT INTO entry (seq, kind, dataset, analyst, account_ids, charge_id, digest, mechanisms, hash) OVERRIDING SYSTEM VALUE
			SELECT 2 * i + k, (ARRAY['reserve', 'settle'])[1 + k], 'd', 'ana' || i %% 9, '{1}', 'c' || to_char(i, 'FM0000000000'), sha256('x'),
				CASE k WHEN 0 THEN '[]'::json END, sha256((2 * i + k)::text::bytea) FROM generate_series(%[1]d, %[2]d) i, generate_series(0, 1) k;
		INSERT INTO entry (seq, kind, dataset, analyst, account_ids, charge_id, hash) OVERRIDING SYSTEM VALUE
			SELECT -i, 'fail', 'd', 'bob', '{1}', 'c' || to_char(i, 'FM0000000000'), sha256(i::text::bytea) FROM generate_series(%[1]d, %[2]d, 9) i;
		INSERT INTO released (charge_id, dataset, analyst, shared, identity, vals, series, as_of, data_version)
			SELECT 'c' || to_char(i, 'FM0000000000'), 'd', 'ana' || i %% 9, i %% 2 = 0, sha256(('i' || i)::bytea), '{}', sha256(('s' || i)::bytea),
				clock_timestamp(), 'v' FROM generate_series(%[1]d, %[2]d) i;
		INSERT INTO shared (charge_id, dataset, question, rho, vector)
			SELECT 'c' || to_char(i, 'FM0000000000'), 'd', sha256(('i' || i)::bytea), 1, '[]' FROM generate_series(%[1]d, %[2]d) i;
		INSERT INTO request_key SELECT 'ana' || i %% 9, 'k' || i, sha256('x'), 'c' || to_char(i, 'FM0000000000') FROM generate_series(%[1]d, %[2]d) i;
		INSERT INTO plan SELECT 'c' || to_char(i, 'FM0000000000'), '{1}', '{0}' FROM generate_series(%[1]d, %[2]d) i;
		INSERT INTO account (dataset, scope, name, origin, policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta, query_epsilon_cap,
				query_rho_cap, replay_only, epsilon_ceiling, rho_ceiling, delta_ceiling)
			SELECT 'd', 'analyst', 'ana' || i, 'policy', 1, 'pure', 9, -1, 0, 0, 0, 0, false, 9, -1, 0 FROM generate_series(%[1]d, %[2]d, 100) i;`,
		from, to))
}

// inserts are how many entries of indexes the statements write: each is a look-up that no plan shows.
func inserts() map[string]int {
	return map[string]int{"bind": 1, "keep": 2, "keep_released": 2, "open": 3, "write": 3}
}

// looked counts a statement's pages and its index look-ups.
type looked struct{ pages, lookups int }

// explained runs a statement that a connection has prepared, and takes back what it wrote.
func explained(t *testing.T, conn *pgxpool.Conn, name, arguments string) looked {
	t.Helper()
	type node struct {
		Kind  string  `json:"Node Type"`
		Loops float64 `json:"Actual Loops"`
		Hit   int     `json:"Shared Hit Blocks"`
		Read  int     `json:"Shared Read Blocks"`
		Plans []node
	}
	var text string
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	err := conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE q_"+name+" ("+arguments+")").Scan(&text)
	if err != nil && !strings.Contains(err.Error(), "division by zero") {
		t.Fatalf("%s: %v", name, err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan node }
	if err == nil {
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
	}
	var l looked
	var count func(node)
	count = func(n node) {
		if strings.Contains(n.Kind, "Index") {
			l.lookups += int(n.Loops)
		}
		for _, below := range n.Plans {
			count(below)
		}
	}
	for _, p := range plans {
		l.pages += p.Plan.Hit + p.Plan.Read
		count(p.Plan)
	}
	return l
}

// Each statement that a question meets takes as many pages of a ledger of 100,000 charges as of one of 2,000, and one more for each look-up
// by an index, which is then a level higher: also where it was planned while the ledger was empty, or had 20 or 2,000 charges, and nothing
// was analysed since.
func TestLedgerStatementsDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	d := pgtest.On(t, durableServer(t))
	for _, table := range []string{"charge", "entry", "released", "shared", "request_key", "plan", "account", "chain"} {
		d.Exec(t, "ALTER TABLE noisegate."+table+" SET (autovacuum_enabled = false)")
	}
	l := open(t, d)
	planned := map[int]*pgxpool.Conn{}
	statements, args := pgledger.OnTheWay(), arguments()
	plan := func(charges int) {
		conn, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
		planned[charges] = conn
		for name, sql := range statements {
			if _, err := conn.Exec(t.Context(), "PREPARE q_"+name+" AS "+sql); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if charges == 0 { // what there is nothing of yet is not looked for twice
				charge := strings.NewReplacer("c0000000010", "open")
				explained(t, conn, name, charge.Replace(args[name]))
				continue
			}
			explained(t, conn, name, args[name])
		}
	}
	d.Exec(t, `SET session_replication_role = replica; SET search_path = noisegate;
		INSERT INTO chain (dataset, postmaster) VALUES ('d', pg_postmaster_start_time());
		INSERT INTO charge (charge_id, dataset, analyst, account_ids, epsilon, unbounded, rho, delta, fingerprint, request)
			VALUES ('open', 'd', 'ana1', '{1}', 1, false, 0, 0, sha256('open'), '{}')`)
	plan(0)
	charges(t, d, 1, 20)
	plan(20)
	charges(t, d, 21, 2_000)
	plan(2_000)
	few := map[string]looked{}
	for name := range statements {
		few[name] = explained(t, planned[2_000], name, args[name]) // once more: the first look reads roots of indexes
	}
	charges(t, d, 2_001, grown)
	plan(grown)
	for name := range statements {
		for charges, conn := range planned {
			explained(t, conn, name, args[name])
			many := explained(t, conn, name, args[name])
			if most := few[name].pages + few[name].lookups + inserts()[name]; many.pages > most {
				t.Errorf("%s, planned at %d charges, touches %d pages of a ledger with %d, at most %d expected (%d with 2,000)",
					name, charges, many.pages, grown, most, few[name].pages)
			}
		}
	}
}

// A connection plans anew once the journal has doubled.
func TestPlansAreOfTheJournalAsItIs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	d := pgtest.On(t, durableServer(t))
	d.Exec(t, "ALTER TABLE noisegate.entry SET (autovacuum_enabled = false)")
	l := open(t, d)
	conn, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	expected := func(entries int64) (rows int) {
		t.Helper()
		if err := l.Replan(t.Context(), conn.Conn(), entries); err != nil {
			t.Fatal(err)
		}
		var text string
		if err := conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE all_entries").Scan(&text); err != nil {
			t.Fatal(err)
		}
		var plans []struct {
			Plan struct {
				Rows int `json:"Plan Rows"`
			}
		}
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		return plans[0].Plan.Rows
	}
	if _, err := conn.Exec(t.Context(), "PREPARE all_entries AS SELECT seq FROM noisegate.entry"); err != nil {
		t.Fatal(err)
	}
	before := expected(100)
	charges(t, d, 1, 2_000)
	if now := expected(199); now != before {
		t.Errorf("%d rows are expected where nobody knows that the journal has doubled, %d before", now, before)
	}
	if now := expected(200); now < 1_000 {
		t.Errorf("%d rows are expected of a journal of 4,000, %d while it was empty", now, before)
	}
}
