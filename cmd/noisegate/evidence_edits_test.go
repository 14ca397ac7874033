package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/pgledger"
	"noisegate.example/mechanisms"
)

// notExported are columns of the ledger whose edits an export does not show, and why. The gateway's own verification finds them
// (TestEveryColumnIsCovered), and audit verify asks for it where it reads from a running gateway.
func notExported() map[string]string {
	const (
		answers = "an export has no questions and no answers: a stolen one shows neither, and their digests are in its entries"
		end     = "an export goes to the newest entry, or to the one that its gateway has seen, whatever the row says; receipts show later ones"
		held    = "another value holds the dataset, or is put right; nothing is given back"
	)
	return map[string]string{
		"account.busy_until":      "a brake for at most a day, which promises nothing",
		"account.epsilon_ceiling": "a guard against defects of the gateway: caps and sums are what admits",
		"account.rho_ceiling":     "as epsilon_ceiling",
		"account.delta_ceiling":   "as epsilon_ceiling",
		"chain.at":                "the time of the newest entry, which the export has",
		"chain.dataset":           end, "chain.seq": end, "chain.": end,
		"chain.postmaster": held, "chain.lost": held,
		"charge.analyst": answers, "charge.fingerprint": answers, "charge.request": answers, "charge.answer": answers,
		"charge.opened_at": answers, "charge.closed_at": answers, "charge.attempt": answers, "charge.shared": answers,
		"archive.record": "the chain has the same text, and the export takes it from there",
	}
}

// exportedRows are those of a table that an export has: what charges counted as that ended is in their entries, and entries that were
// archived are in the file, also where the journal keeps a copy.
func exportedRows() map[string]string {
	return map[string]string{"charge": "WHERE state = 'open'", "entry": "WHERE seq > (SELECT max(seq) FROM noisegate.archive)"}
}

// editOf is another value of a column, at random: numbers are lower for an even n; "" for a type that nobody knows.
func editOf(r *rand.Rand, n int, name, kind string) string {
	by := []int64{-1, 1, -r.Int64N(1e12) - 1, r.Int64N(1e12) + 1}[n]
	switch kind {
	case "int4":
		return fmt.Sprintf("coalesce(%s, 0) + %d", name, by%1000+1000)
	case "int8":
		return fmt.Sprintf("coalesce(%s, 0) + %d", name, by)
	case "bool":
		return "NOT coalesce(" + name + ", false)"
	case "text":
		return fmt.Sprintf("coalesce(%s, '') || '%d'", name, by)
	case "bytea":
		return fmt.Sprintf("sha256(coalesce(%s, '') || '%d')", name, by)
	case "timestamptz":
		return fmt.Sprintf("coalesce(%s, 'epoch') + interval '%d microsecond'", name, by)
	case "jsonb":
		return fmt.Sprintf("coalesce(%s, '{}') || '{\"edited\": %d}'", name, by)
	case "json":
		return fmt.Sprintf("(regexp_replace(coalesce(%[1]s::text, '{}'), '[0-9](?=\\D*$)', '%[2]d') || ' ')::json", name, r.IntN(10))
	case "_int8":
		return fmt.Sprintf("array_append(%[1]s[2:], coalesce(%[1]s[1], 0) + %[2]d)", name, by)
	case "scope":
		return "CASE " + name + " WHEN 'dataset' THEN 'group' ELSE 'dataset' END::noisegate.scope"
	default:
		return ""
	}
}

// editsShow: who owns the database edits one column of one row, or removes a row, of what an export is made from. The export shows it,
// with the archive's file and without, unless [notExported] has a reason.
func (s *evidenceSite) editsShow(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	l, err := pgledger.Open(ctx, s.database.dsn("noisegate", demoControl).Reveal())
	if err != nil {
		t.Fatal(err)
	}
	limit := budget.Limit{Form: budget.Pure, Epsilon: 1000, Rho: budget.Never}
	for _, id := range []string{"plan", "open"} {
		c := budget.Charge{ID: budget.ReservationID("edits-" + id), Dataset: demoDataset, Analyst: "pat", Loss: mechanisms.Loss{Epsilon: 20},
			Accounts: []budget.Account{{ID: budget.AccountID{Dataset: demoDataset, Scope: budget.AnalystScope, Name: "pat"}, Limit: limit,
				Origin: budget.FromPolicy}}, Fingerprint: [32]byte([]byte(fmt.Sprintf("%-32s", id))), Request: []byte("{}")}
		if id == "plan" {
			c.Registers = []mechanisms.Slot{{Epsilon: 10}, {Epsilon: 10}}
		}
		if _, err = l.Reserve(ctx, c); err == nil && id == "plan" {
			err = l.Settle(ctx, c.ID, c.Loss, []byte("{}"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	stop := s.serve(t, s.serving)
	defer stop()
	client := api.NewClient(s.env["NOISEGATE_URL"], s.env["NOISEGATE_TOKEN"])
	verify := &auditVerifyCommand{Archive: []string{s.archive}, PublicKey: s.key}
	files, err := verify.archives()
	if err != nil {
		t.Fatal(err)
	}
	exported := func() (found []string) {
		t.Helper()
		j, err := fetchJournal(ctx, client, demoDataset)
		if err != nil {
			return []string{err.Error(), err.Error()}
		}
		for _, files := range [][]archivedFile{files[demoDataset], nil} {
			found = append(found, j.verify(demoDataset, files, nil, nil).Broken)
		}
		return found
	}
	if found := exported(); found[0] != "" || found[1] != "" {
		t.Fatal(found)
	}
	type column struct{ Table, Name, Kind string }
	var columns []column
	exec := func(sql string) {
		t.Helper()
		for again := true; again; {
			err := s.database.as(ctx, s.database.super, demoControl, func(conn *pgx.Conn) error {
				_, err := conn.PgConn().Exec(ctx, "SET session_replication_role = replica;"+sql).ReadAll()
				return err
			})
			var refused *pgconn.PgError
			again = errors.As(err, &refused) && refused.Code == "40P01" // a deadlock with the gateway, after which nothing is done
			if err != nil && !again {
				t.Fatal(sql, err)
			}
		}
	}
	tables := []string{"account", "archive", "chain", "charge", "entry", "plan", "policy"}
	exec("CREATE SCHEMA saved; " + unguarded)
	rows := map[string]int{}
	if err := s.database.as(ctx, s.database.super, demoControl, func(conn *pgx.Conn) error {
		for _, table := range tables {
			if _, err := conn.Exec(ctx, "CREATE TABLE saved."+table+" AS TABLE noisegate."+table); err != nil {
				return err
			}
			var n int
			err := conn.QueryRow(ctx, "SELECT count(*) FROM noisegate."+table+" "+exportedRows()[table]).Scan(&n)
			if rows[table] = n; err != nil || n == 0 {
				return fmt.Errorf("%s has %d rows: %w", table, n, err)
			}
		}
		found, err := conn.Query(ctx, `SELECT table_name, column_name, udt_name FROM information_schema.columns
			WHERE table_schema = 'noisegate' AND table_name = ANY ($1) ORDER BY 1, ordinal_position`, tables)
		if err == nil {
			columns, err = pgx.CollectRows(found, pgx.RowToStructByPos[column])
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	excused, used, edits := notExported(), map[string]bool{}, 0
	r := rand.New(rand.NewPCG(20, 26))
	edit := func(table, what, sql string) {
		t.Helper()
		edits++
		exec(sql)
		for i, found := range exported() {
			_, excuse := excused[table+"."+what]
			switch how := []string{"with the archive", "without"}[i]; {
			case found == "" && !excuse:
				t.Errorf("%s, %s: the export is sound: %s", sql, how, found)
			case found == "":
				used[table+"."+what] = true
			}
		}
		exec(fmt.Sprintf("DELETE FROM noisegate.%[1]s; INSERT INTO noisegate.%[1]s TABLE saved.%[1]s", table))
	}
	for _, c := range columns {
		ways := []int{r.IntN(4)}
		if excused[c.Table+"."+c.Name] != "" { // some are found one way, and not the other
			ways = []int{0, 1}
		}
		for _, n := range ways {
			edit(c.Table, c.Name, fmt.Sprintf("UPDATE noisegate.%[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM noisegate.%[1]s t %[4]s "+
				"ORDER BY t::text OFFSET %[5]d LIMIT 1)", c.Table, c.Name, editOf(r, n, c.Name, c.Kind), exportedRows()[c.Table],
				r.IntN(rows[c.Table])))
		}
	}
	for _, table := range tables {
		edit(table, "", fmt.Sprintf("DELETE FROM noisegate.%[1]s WHERE ctid = (SELECT ctid FROM noisegate.%[1]s t %s ORDER BY t::text LIMIT 1)",
			table, exportedRows()[table]))
	}
	if found := exported(); found[0] != "" || found[1] != "" {
		t.Error("what was put back:", found)
	}
	for _, name := range slices.Sorted(maps.Keys(excused)) {
		if !used[name] {
			t.Errorf("%s: every edit was found, and there is an excuse", name)
		}
	}
	t.Logf("%d edits of %s", edits, strings.Join(tables, ", "))
}

// unguarded takes triggers, constraints and identities away.
const unguarded = `DO $$
	DECLARE statement text;
	BEGIN
		FOR statement IN
			SELECT format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', conrelid::regclass, conname) FROM pg_constraint
			WHERE connamespace = 'noisegate'::regnamespace AND conrelid <> 0 AND contype NOT IN ('n', 't')
			UNION ALL SELECT format('DROP INDEX IF EXISTS %s', indexrelid::regclass) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			WHERE indisunique AND relnamespace = 'noisegate'::regnamespace AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
			UNION ALL SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY, ALTER %2$I DROP NOT NULL', attrelid::regclass, attname)
				FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'noisegate'::regnamespace AND attidentity <> ''
		LOOP EXECUTE statement; END LOOP;
	END $$;`
