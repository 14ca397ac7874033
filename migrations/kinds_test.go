package migrations_test

import (
	"slices"
	"testing"

	"noisegate.example/migrations"
)

// Migrations that name the kinds of entries do not take away those of others.
func TestEveryKindIsAdmitted(t *testing.T) {
	_, conn := migratedUpTo(t, 8)
	if _, err := migrations.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"reserve", "settle", "void", "expire", "limit", "refill", "freeze", "thaw", "fail", "reset", "import",
		"policy", "free", "keys", "recharge", "resume", "archive", "clock"} {
		ofCharge := slices.Contains([]string{"reserve", "settle", "void", "expire", "fail", "recharge"}, kind)
		ofAccount := !ofCharge || kind == "recharge"
		_, err := conn.Exec(t.Context(), `INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, charge_id, account, mechanisms, digest, hash)
			VALUES ($1, 'd', 'ana', '{}', CASE WHEN $2 THEN 'c' END, CASE WHEN $3 THEN json '{}' END, CASE WHEN $1 = 'reserve' THEN json '[]' END,
				CASE WHEN $1 IN ('reserve', 'settle', 'recharge') THEN sha256('') END, sha256(''))`, kind, ofCharge, ofAccount)
		if err != nil {
			t.Error(kind, err)
		}
	}
}
