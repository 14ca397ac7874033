package budgettest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"noisegate.example/budget/budgettest"
)

// TestClocksThatStep runs the steps against the ledger in memory; pgledger runs them against PostgreSQL.
//
// covers: F14
func TestClocksThatStep(t *testing.T) {
	refused, moved, taken := 0, 0, 0
	for seed := range uint64(300) {
		var server, own time.Time
		l := budgettest.NewMemoryOnServer(func() time.Time { return server }, func() time.Time { return own })
		set := func(s, o time.Time) { server, own = s, o }
		r, m, n := budgettest.ClocksThatStep(t, seed, rand.New(rand.NewPCG(seed, 8)), 100, budgettest.Stepped{Ledger: l, Set: set})
		refused, moved, taken = refused+r, moved+m, taken+n
	}
	if refused < 1000 || moved < 1000 || taken < 10_000 {
		t.Errorf("%d are refused, %d times set back, %d taken: the test tests nothing", refused, moved, taken)
	}
	var server, own time.Time
	budgettest.SettingBack(t, budgettest.Stepped{Set: func(s, o time.Time) { server, own = s, o },
		Ledger: budgettest.NewMemoryOnServer(func() time.Time { return server }, func() time.Time { return own })})
	t.Logf("%d are refused, %d times set back, %d taken", refused, moved, taken)
}
