package migrations_test

import (
	"testing"

	"noisegate.example/migrations"
)

// A journal from before failures were counted stays as it is, takes failures and resets, and still refuses what it refused.
func TestFailuresTakeOverAJournal(t *testing.T) {
	_, conn := migratedUpTo(t, 8)
	insert := func(kind, charge, account string) error {
		_, err := conn.Exec(t.Context(), `INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, charge_id, account, mechanisms, digest, hash)
			VALUES ($1, 'd', 'ana', '{}', nullif($2, ''), nullif($3, '')::json, CASE WHEN $1 = 'reserve' THEN json '[]' END,
				CASE WHEN $1 IN ('reserve', 'settle') THEN sha256('') END, sha256(''))`, kind, charge, account)
		return err
	}
	for _, kind := range []string{"reserve", "expire"} {
		if err := insert(kind, "c", ""); err != nil {
			t.Fatal(kind, err)
		}
	}
	for _, kind := range []string{"fail", "reset"} {
		if insert(kind, "c", "") == nil {
			t.Error(kind, "is taken before its migration")
		}
	}
	if _, err := migrations.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		kind, charge, account string
		taken                 bool
	}{
		{"fail", "c", "", true}, {"reset", "", `{"resets_failures_of":"ana"}`, true}, {"expire", "d", "", true},
		{"fail", "", "", false}, {"reset", "", "", false}, {"reset", "c", `{"resets_failures_of":"ana"}`, false}, {"gift", "c", "", false},
		{"expire", "", "", false}, {"limit", "", "", false},
	} {
		if err := insert(e.kind, e.charge, e.account); (err == nil) != e.taken {
			t.Errorf("%+v: %v", e, err)
		}
	}
	var kinds string
	if err := conn.QueryRow(t.Context(), "SELECT string_agg(kind, ' ' ORDER BY seq) FROM noisegate.entry").Scan(&kinds); err != nil ||
		kinds != "reserve expire fail reset expire" {
		t.Errorf("the journal has %q, %v", kinds, err)
	}
}
