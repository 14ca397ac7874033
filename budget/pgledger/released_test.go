package pgledger_test

import (
	"errors"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// What was released never changes: for a defective gateway, and for owners too.
func testReleasedIsKept(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	for _, id := range []string{"paid", "plain"} {
		reserve(t, l, charge(id, mechanisms.Loss{Epsilon: 1}, account(budget.AnalystScope, "ana", 100)))
	}
	if err := l.KeepReleased(t.Context(), budget.Released{Charge: "paid", Dataset: "d", Analyst: "ana", Values: []byte("{}")}); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	if err := l.Settle(t.Context(), "paid", mechanisms.Loss{Epsilon: 1}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	insert := func(charge, identity, values string) string {
		return "INSERT INTO noisegate.released VALUES ('" + charge + "', 'd', 'ana', false, " + identity + ", " + values + ")"
	}
	const identity = "decode(repeat('00', 32), 'hex')"
	refusesAll(t, d, map[string]states{
		"UPDATE noisegate.released SET vals = '[]'":           {insufficientPrivilege, restrictViolation},
		"DELETE FROM noisegate.released":                      {insufficientPrivilege, restrictViolation},
		"TRUNCATE noisegate.released":                         {insufficientPrivilege, restrictViolation},
		insert("nobody", identity, "'{}'"):                    {foreignKeyViolation, foreignKeyViolation},
		insert("paid", identity, "'{}'"):                      {"23505", "23505"},
		insert("plain", "''", "'{}'"):                         {checkViolation, checkViolation},
		insert("plain", identity, "'{}', "+identity):          {checkViolation, checkViolation},
		insert("plain", identity, "'{}', 'x', now(), 'v'"):    {checkViolation, checkViolation},
		insert("plain", identity, "''"):                       {checkViolation, checkViolation},
		insert("plain", identity, "repeat('x', 4194304 + 1)"): {checkViolation, checkViolation},
	})
}
