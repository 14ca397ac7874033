package pgledger_test

import (
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/internal/pgtest"
)

// The same rule as in memory, with what is stored of accounts and policies.
func testOwnRaises(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	budgettest.OwnRaises(t, 2, func() budget.Ledger { return l })
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}
