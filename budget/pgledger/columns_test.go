package pgledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// notFound are the tables and columns whose edits the ledger does not find, and why it need not. They give nothing back that was charged.
// What is charged next rests on the two that say what people's rows are worth, policy and pate_ensemble: each charge keeps what it took
// from them, its sensitivities and scales, for auditors.
func notFound() map[string]string {
	return map[string]string{
		"account.busy_until": "a brake for at most a day, which promises nothing; a cap is what bounds charges",
		"request_key":        "a key only ever leads to an answer that is in the chain, or to a refusal",
		"chain.postmaster":   "any other value holds the dataset until its gateways found what they know",
		"chain.lost":         "true holds the dataset; who takes it back does not hide the entry from the gateway that knew it",
		"gateway":            "who is waited for after a failover; each looks by itself for what it knows",
		"lost":               "the same as chain.lost; what was accepted is in an entry",
		"shared":             "a charge names the noise that it pays for, whatever was found here: decision 16",
		"released":           "a charge names the noise that it pays for, whatever was found here: decision 32",
		"archive":            "it has rows only where something was archived: testArchiveAttacked edits them",
		"renamed":            "by which names answers are looked for: what is not found is charged again, and its entry stays",
		"narrowed":           "the same, of the bounds that questions had",
		"schema_migration":   "it says which program may read the schema",
		"pate_ensemble":      "what stewards declared, teachers per person among it; what was sold at it is in the entries of the charges",
		"pate_votes":         "protected data",
		"pate_answer": "labels are given again, never charged again; those that were bought have their digest in the answer of " +
			"their charge",
		"pate_purchase":  "who may have a label again, free: an edit charges nobody, and shows no vote",
		"collector":      "what devices report: their loss is their own, and no charge",
		"collect_report": "randomised by devices, and charged to nobody",
		"collect_tally":  "sums of collect_report",
		"pate_epsilon":   "given again, never charged again; the answer of its charge is in the chain",
	}
}

// column is a column of the control database.
type column struct{ table, name, kind string }

func columns(t *testing.T, d *pgtest.ControlDatabase) (all []column) {
	t.Helper()
	rows, err := d.Conn(t, d.DSN).Query(t.Context(), `SELECT c.table_name, c.column_name, c.udt_name FROM information_schema.columns c
		JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'noisegate' AND t.table_type = 'BASE TABLE' ORDER BY 1, c.ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name, &c.kind); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// edited is another value of the column's type than the one that is there; also where there is none.
func (c column) edited(t *testing.T) string {
	t.Helper()
	name := c.name
	switch c.kind {
	case "int4", "int8":
		return "coalesce(" + name + ", 0) + 1"
	case "bool":
		return "NOT coalesce(" + name + ", false)"
	case "text":
		return "coalesce(" + name + ", '') || 'x'"
	case "bytea":
		return "sha256(coalesce(" + name + ", ''))"
	case "timestamptz":
		return "coalesce(" + name + ", 'epoch') + interval '1 microsecond'"
	case "jsonb":
		return "coalesce(" + name + ", '{}') || '{\"edited\": true}'"
	case "json":
		return "(coalesce(" + name + "::text, '{}') || ' ')::json"
	case "_int8":
		return "array_append(" + name + "[2:], coalesce(" + name + "[1], 0) + 1)"
	case "scope":
		return "CASE " + name + " WHEN 'dataset' THEN 'group' ELSE 'dataset' END::noisegate.scope"
	default:
		t.Fatalf("nobody knows how to edit %s.%s, of type %s", c.table, c.name, c.kind)
		return ""
	}
}

// everyKind is a small ledger with every kind of entry, of charge and of limit in it.
func everyKind(t *testing.T, l *pgledger.Ledger) {
	t.Helper()
	whole, own := account(budget.DatasetScope, "", 100), account(budget.AnalystScope, "ana", 100)
	plan := charge("plan", mechanisms.Loss{Epsilon: 20}, whole, own)
	plan.Registers = []mechanisms.Slot{{Epsilon: 10}, {Rho: 5}, {Epsilon: 10}}
	drawing := charge("draw", mechanisms.Loss{}, whole, own)
	drawing.Draws = &budget.Draw{Plan: "plan", Count: 2}
	again := charge("again", mechanisms.Loss{Epsilon: 1}, whole, own)
	again.Fingerprint = [32]byte{'e', 'x', 'p', 'i', 'r', 'e', 'd'}
	failed := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	reserve(t, l, plan)
	failed(l.Settle(t.Context(), "plan", plan.Loss, []byte("{}")))
	reserve(t, l, drawing)
	for _, id := range []string{"settled", "voided", "expired", "open"} {
		reserve(t, l, charge(id, mechanisms.Loss{Epsilon: 10}, whole, own))
	}
	failed(l.Settle(t.Context(), "settled", mechanisms.Loss{Epsilon: 7}, []byte("answer")))
	apart := charge("apart", mechanisms.Loss{Epsilon: 10, Rho: 4}, whole, own)
	reserve(t, l, apart)
	failed(l.SettleApart(t.Context(), "apart", budget.Apart{Own: mechanisms.Loss{Epsilon: 8, Rho: 3},
		Shared: mechanisms.Loss{Epsilon: 5}}, []byte("apart")))
	failed(l.Void(t.Context(), "voided"))
	failed(l.Expire(t.Context(), "expired"))
	reserve(t, l, again)
	low := own
	low.Limit.Epsilon, low.Origin = 20, budget.FromSteward // below what is spent
	failed(l.SetLimit(t.Context(), "stella", low))
	failed(l.SetLimit(t.Context(), "stella", scheduled("bob")))
	failed(l.Refill(t.Context(), "stella", budget.Refill{Account: whole.ID, Epsilon: 5, Reason: "more"}))
	failed(l.Freeze(t.Context(), "stella", own.ID, true))
	failed(l.Freeze(t.Context(), "stella", own.ID, false))
	for version := range int64(3) {
		_, err := l.RecordPolicy(t.Context(), policy(whole.ID.Dataset, version+1))
		failed(err)
	}
	failed(l.RecordFreeReads(t.Context(), someReads(whole.ID.Dataset)))
	failed(l.RecordKeys(t.Context(), budget.SigningKeys{Dataset: whole.ID.Dataset, Receipts: "0123456789abcdef"}))
}

// someReads are a few reads of public tables.
func someReads(dataset string) budget.FreeReads {
	return budget.FreeReads{Dataset: dataset, Analyst: "ana", Day: "2026-11-26", Version: 8, Reads: 4}
}

// policy is a version of a policy that nobody reads.
func policy(dataset string, version int64) budget.NewPolicy {
	p := budget.NewPolicy{Text: fmt.Sprint("policy ", version), Checked: []byte(`{"b": 1, "a": [2.50]}`)}
	p.Dataset, p.Version, p.AppliedBy, p.Digest = dataset, version, "stella", [32]byte{byte(version)}
	p.Protected = map[string]uint32{"people": 16384}
	return p
}

// scheduled is an account with a schedule.
func scheduled(name string) budget.Account {
	a := account(budget.AnalystScope, name, 100)
	a.Origin = budget.FromSteward
	a.Limit.Tranche = budget.Tranche{Every: time.Hour, Epsilon: 10}
	a.Limit.Rate = budget.Rate{Per: time.Minute, Epsilon: 10}
	return a
}

// Every column of every row is edited, one by one, by a superuser whom no trigger and no constraint stops. Columns that
// are added later are edited too.
func testEveryColumnIsCovered(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	everyKind(t, l)
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	unguard(t, d)
	excused, covered, edits := notFound(), map[string]int{}, 0
	for _, c := range columns(t, d) {
		_, table := excused[c.table]
		_, one := excused[c.table+"."+c.name]
		if table || one {
			continue
		}
		if _, saved := covered[c.table]; !saved {
			covered[c.table] = keep(t, d, c.table)
		}
		for row := range covered[c.table] {
			edits++
			d.Exec(t, fmt.Sprintf("UPDATE noisegate.%[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM noisegate.%[1]s t ORDER BY "+
				"t::text OFFSET %[4]d LIMIT 1)",
				c.table, c.name, c.edited(t), row))
			var broken *journal.BrokenError
			if err := l.VerifyAll(t.Context()); !errors.As(err, &broken) {
				t.Errorf("%s.%s: an edit of row %d was not found: %v", c.table, c.name, row, err)
			}
			d.Exec(t, fmt.Sprintf("DELETE FROM noisegate.%[1]s; INSERT INTO noisegate.%[1]s SELECT * FROM saved.%[1]s", c.table))
		}
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Errorf("what was put back: %v", err)
	}
	if edits < 300 {
		t.Errorf("%d edits are too few to be all: %v", edits, covered)
	}
	t.Logf("%d edits of %v rows", edits, covered)
}

// unguard takes triggers, constraints and identities away.
func unguard(t *testing.T, d *pgtest.ControlDatabase) {
	t.Helper()
	d.Exec(t, `DO $$
		DECLARE statement text;
		BEGIN
			FOR statement IN
				SELECT format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', conrelid::regclass, conname) FROM pg_constraint
				WHERE connamespace = 'noisegate'::regnamespace AND conrelid <> 0 AND contype NOT IN ('n', 't') -- 18 has NOT NULL here as well
				UNION ALL SELECT format('DROP INDEX IF EXISTS %s', indexrelid::regclass) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
				WHERE indisunique AND relnamespace = 'noisegate'::regnamespace AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
				UNION ALL SELECT format('ALTER TABLE %s DISABLE TRIGGER USER', oid::regclass) FROM pg_class WHERE relnamespace = 'noisegate'::regnamespace AND relkind = 'r'
				UNION ALL SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY, ALTER %2$I DROP NOT NULL', attrelid::regclass, attname) FROM pg_attribute
					JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'noisegate'::regnamespace AND attidentity <> ''
			LOOP EXECUTE statement; END LOOP;
		END $$; CREATE SCHEMA saved`)
}

// keep saves a table, and says how many rows it has.
func keep(t *testing.T, d *pgtest.ControlDatabase, table string) (rows int) {
	t.Helper()
	d.Exec(t, fmt.Sprintf("CREATE TABLE saved.%[1]s AS SELECT * FROM noisegate.%[1]s", table))
	if err := d.Conn(t, d.DSN).QueryRow(t.Context(), "SELECT count(*) FROM saved."+table).Scan(&rows); err != nil || rows == 0 {
		t.Fatalf("%s has %d rows, %v", table, rows, err)
	}
	return rows
}
