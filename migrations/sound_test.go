package migrations_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/migrations"
)

// beforeSound is the last migration before the conditions of the ledger's rows became functions.
const beforeSound = 23

// A function of [024_sound.sql] admits the same rows as the CHECKs in whose place it is: random rows that are sound but for one to three of
// their columns.
func TestFunctionsAdmitWhatChecksDid(t *testing.T) {
	_, conn := migratedUpTo(t, beforeSound)
	conditions := func() map[string]string {
		found := map[string]string{}
		rows, err := conn.Query(t.Context(), `SELECT c.relname, string_agg('(' || pg_get_expr(k.conbin, k.conrelid) || ')', ' AND ')
			FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'c'
			AND c.relname IN ('account', 'charge', 'entry', 'released') GROUP BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var table, condition string
			if err := rows.Scan(&table, &condition); err != nil {
				t.Fatal(err)
			}
			found[table] = condition
		}
		return found
	}
	checks := conditions()
	if _, err := migrations.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	functions := conditions()
	r := rand.New(rand.NewPCG(63, 24))
	hash, short := `\x`+strings.Repeat("ab", 32), `\xab`
	numbers := []any{-2, -1, 0, 1, 2, 3, 31, 32, 64, int64(999999999999999999), int64(1000000000000000000), nil}
	bools, texts := []any{true, false, nil}, []any{"", "a", nil}
	kinds := []any{"", nil, "reserve", "settle", "void", "expire", "limit", "refill", "freeze", "thaw", "fail", "reset", "import", "policy",
		"free", "keys", "recharge", "resume", "archive", "gift"}
	arrays := []any{[]any{}, []any{1}, []any{0, 0, 0, 0, 0}, []any{1, 0, 2, 1, 0}, []any{1, 1, 1, 1, 1, 1}, []any{0, nil, 0, 0, 0}, nil}
	for table, c := range map[string]struct {
		sound   map[string]any
		instead map[string][]any // what columns may be; others are numbers
	}{
		"account": {map[string]any{"dataset": "d", "scope": "dataset", "name": "", "origin": "policy", "form": "approx", "total_delta": 64,
			"epsilon_ceiling": 3, "rho_ceiling": 3, "delta_ceiling": 3, "policy_version": 1, "epsilon_cap": 2, "rho_cap": 2, "delta_cap": 2,
			"query_epsilon_cap": 1, "query_rho_cap": 1, "tranche_every": 0, "tranche_epsilon": 0, "tranche_rho": 0, "rate_per": 0,
			"rate_epsilon": 0, "rate_rho": 0, "refills": 0, "used_epsilon": 2, "used_unbounded": 1, "used_rho": 2, "used_delta": 1,
			"used_tail": 1, "reserved_epsilon": 1, "reserved_unbounded": 1, "reserved_rho": 1, "reserved_delta": 1, "reserved_tail": 1},
			map[string][]any{"dataset": texts, "name": texts, "scope": {"dataset", "group", "analyst"}, "origin": {"policy", "steward", "x", nil},
				"form": {"pure", "zcdp", "approx", "x", nil}}},
		"charge": {map[string]any{"charge_id": "c", "account_ids": []any{1}, "state": "settled", "epsilon": 2, "unbounded": false, "rho": 2,
			"delta": 1, "tail": 1, "shared": []any{1, 0, 2, 1, 0}, "fingerprint": hash, "attempt": 1, "closed_at": "2026-11-28", "answer": short},
			map[string][]any{"charge_id": texts, "account_ids": arrays, "state": {"open", "settled", "voided", "expired", "x", nil},
				"unbounded": bools, "shared": arrays, "fingerprint": {hash, short, nil}, "closed_at": {"2026-11-28", nil}, "answer": {short, nil},
				"attempt": {-1, 0, 1, 2, nil}}},
		"entry": {map[string]any{"kind": "settle", "analyst": "a", "charge_id": "c", "account": nil, "mechanisms": nil, "digest": short,
			"hash": hash, "epsilon": 2, "unbounded": false, "rho": 2, "delta": 1, "tail": 1, "shared": []any{1, 0, 2, 1, 0}},
			map[string][]any{"kind": kinds, "analyst": texts, "charge_id": {"c", nil}, "account": {map[string]any{}, nil},
				"mechanisms": {[]any{}, nil}, "digest": {short, nil}, "hash": {hash, short, nil}, "unbounded": bools, "shared": arrays}},
		"released": {map[string]any{"identity": hash, "vals": "v", "series": hash, "as_of": "2026-11-28", "data_version": "v"},
			map[string][]any{"identity": {hash, short, nil}, "vals": texts, "series": {hash, short, nil}, "as_of": {"2026-11-28", nil},
				"data_version": {"v", nil}}},
	} {
		var rows []string
		names := slices.Sorted(maps.Keys(c.sound))
		for range 4000 {
			row := maps.Clone(c.sound)
			for range 1 + r.IntN(3) {
				name := names[r.IntN(len(names))]
				instead := c.instead[name]
				if instead == nil {
					instead = numbers
				}
				row[name] = instead[r.IntN(len(instead))]
			}
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(text))
		}
		var differ, admitted int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE ((`+checks[table]+`) IS NOT FALSE) <> ((`+functions[table]+
			`) IS NOT FALSE)), count(*) FILTER (WHERE (`+checks[table]+`) IS NOT FALSE)
			FROM unnest($1::jsonb[]) AS given CROSS JOIN LATERAL jsonb_populate_record(NULL::noisegate.`+table+`, given)`,
			rows).Scan(&differ, &admitted); err != nil {
			t.Fatal(table, err)
		}
		t.Logf("%s: %d of %d rows are admitted", table, admitted, len(rows))
		if differ > 0 || admitted < 100 || admitted > len(rows)-100 {
			t.Errorf("%s: of %d rows, %d admitted, functions decide %d otherwise", table, len(rows), admitted, differ)
		}
	}
}
