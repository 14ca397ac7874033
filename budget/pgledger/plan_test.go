package pgledger_test

import (
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// What a plan paid for never changes and its slots only go: for a defective gateway, and for owners too.
func testPlansAreKept(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	paying := charge("plan", mechanisms.Loss{Epsilon: 60}, own)
	paying.Registers = []mechanisms.Slot{{Epsilon: 30}, {Rho: 40}}
	reserve(t, l, paying)
	if err := l.Settle(t.Context(), "plan", paying.Loss, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	drawing := charge("draw", mechanisms.Loss{}, own)
	drawing.Draws = &budget.Draw{Plan: "plan", Count: 1}
	reserve(t, l, drawing)
	reserve(t, l, charge("plain", mechanisms.Loss{Epsilon: 1}, own))
	const insufficientPrivilege, restrictViolation, checkViolation, foreignKeyViolation = "42501", "23001", "23514", "23503"
	for sql, want := range map[string]struct{ gateway, owner string }{
		"UPDATE noisegate.plan SET next_slot = 0":                         {restrictViolation, restrictViolation},
		"UPDATE noisegate.plan SET next_slot = 3":                         {checkViolation, checkViolation},
		"UPDATE noisegate.plan SET epsilon = '{31,0}'":                    {insufficientPrivilege, restrictViolation},
		"UPDATE noisegate.plan SET rho = '{0,41}'":                        {insufficientPrivilege, restrictViolation},
		"UPDATE noisegate.plan SET plan_id = 'plain'":                     {insufficientPrivilege, restrictViolation},
		"DELETE FROM noisegate.plan":                                      {insufficientPrivilege, restrictViolation},
		"TRUNCATE noisegate.plan":                                         {insufficientPrivilege, restrictViolation},
		"INSERT INTO noisegate.plan VALUES ('nobody', '{1}', '{0}')":      {foreignKeyViolation, foreignKeyViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{}', '{}')":         {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{1}', '{0,1}')":     {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{-1}', '{0}')":      {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{NULL}', '{0}')":    {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{1}', '{0}', -1)":   {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plain', '{1}', '{0}', 2)":    {checkViolation, checkViolation},
		"INSERT INTO noisegate.plan VALUES ('plan', '{1,1}', '{0,0}', 0)": {"23505", "23505"},
	} {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != want.gateway {
			t.Errorf("as noisegate: %s: got %s", sql, got)
		}
		for _, dsn := range []string{d.OwnerDSN, d.DSN} {
			if got := sqlState(t, d, dsn, sql); got != want.owner {
				t.Errorf("as owner or superuser: %s: got %s", sql, got)
			}
		}
	}
	if p, err := l.Plan(t.Context(), "ana", "plan"); err != nil || p.Next != 1 || p.Slots[1].Rho != 40 {
		t.Errorf("%+v, %v", p, err)
	}
}
