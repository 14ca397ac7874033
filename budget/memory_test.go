package budget_test

import (
	"testing"
	"time"

	"noisegate/budget"
	"noisegate/budget/budgettest"
)

func TestMemory(t *testing.T) {
	budgettest.Run(t, func(*testing.T) budget.Ledger { return budget.NewMemory(time.Now) })
}
