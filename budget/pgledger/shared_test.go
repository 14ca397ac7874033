package pgledger_test

import (
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// What is kept for others never changes: for a defective gateway, and for owners too.
func testSharedIsKept(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	for _, id := range []string{"paid", "plain"} {
		reserve(t, l, charge(id, mechanisms.Loss{Epsilon: 1}, account(budget.AnalystScope, "ana", 100)))
	}
	vector := budget.Released{Charge: "paid", Dataset: "d", Analyst: "ana", Rho: 7, Values: []byte("{}")}
	if err := l.KeepReleased(t.Context(), vector); err != nil {
		t.Fatal(err)
	}
	refusesAll(t, d, map[string]states{
		"UPDATE noisegate.shared SET rho = 8":       {insufficientPrivilege, restrictViolation},
		"UPDATE noisegate.shared SET vector = '[]'": {insufficientPrivilege, restrictViolation},
		"DELETE FROM noisegate.shared":              {insufficientPrivilege, restrictViolation},
		"TRUNCATE noisegate.shared":                 {insufficientPrivilege, restrictViolation},
		"INSERT INTO noisegate.shared VALUES ('nobody', 'd', decode(repeat('00', 32), 'hex'), 1, '{}')": {
			foreignKeyViolation, foreignKeyViolation},
		"INSERT INTO noisegate.shared VALUES ('paid', 'd', decode(repeat('00', 32), 'hex'), 1, '{}')": {"23505", "23505"},
		"INSERT INTO noisegate.shared VALUES ('plain', 'd', '', 1, '{}')": {checkViolation,
			checkViolation},
		"INSERT INTO noisegate.shared VALUES ('plain', 'd', decode(repeat('00', 32), 'hex'), 0, '{}')": {checkViolation,
			checkViolation},
		"INSERT INTO noisegate.shared VALUES ('plain', 'd', decode(repeat('00', 32), 'hex'), 1, repeat('x', 1048577))": {checkViolation,
			checkViolation},
	})
}

// The states of statements that are refused.
const insufficientPrivilege, restrictViolation, checkViolation, foreignKeyViolation = "42501", "23001", "23514", "23503"

// states are those with which a statement is refused to a gateway, and to owners.
type states struct{ gateway, owner string }

// refusesAll runs statements as each role.
func refusesAll(t *testing.T, d *pgtest.ControlDatabase, refused map[string]states) {
	t.Helper()
	for sql, want := range refused {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != want.gateway {
			t.Errorf("as noisegate: %s: got %s", sql, got)
		}
		for _, dsn := range []string{d.OwnerDSN, d.DSN} {
			if got := sqlState(t, d, dsn, sql); got != want.owner {
				t.Errorf("as owner or superuser: %s: got %s", sql, got)
			}
		}
	}
}
