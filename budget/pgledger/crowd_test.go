package pgledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// Everything that may happen to a ledger happens at once, on two datasets and through three gateways, which know
// nothing of each other: nobody waits in a circle, nothing fails but for the reasons that the ledger has, it verifies,
// and each entry kept the rules.
func testCrowd(t *testing.T, d *pgtest.ControlDatabase) {
	const clients, each = 12, 150
	gateways := []*pgledger.Ledger{open(t, d), open(t, d), open(t, d)}
	accounts := func(dataset string) []budget.Account {
		all := []budget.Account{account(budget.DatasetScope, "", 4_000), account(budget.GroupScope, "lab", 3_000),
			account(budget.AnalystScope, "ana", 2_000)}
		for i := range all {
			all[i].ID.Dataset = dataset
		}
		return all
	}
	var mu sync.Mutex
	var open []budget.ReservationID
	failures := map[fault.Code]int{}
	take := func(random *rand.Rand) (id budget.ReservationID) {
		mu.Lock()
		defer mu.Unlock()
		if len(open) > 0 {
			i := random.IntN(len(open))
			id = open[i]
			if random.IntN(4) > 0 { // else another one ends it as well
				open = slices.Delete(open, i, i+1)
			}
		}
		return id
	}
	step := func(l *pgledger.Ledger, random *rand.Rand, name string) error {
		named := accounts([]string{"d", "e"}[random.IntN(2)])
		one := named[random.IntN(len(named))]
		switch pick := random.IntN(100); {
		case pick < 50:
			c := charge(name, mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(1 + random.IntN(60))}, named...)
			c.Dataset = one.ID.Dataset
			if random.IntN(3) == 0 {
				c.Fingerprint = [32]byte{byte(random.IntN(200))}
			}
			if random.IntN(3) == 0 { // a key is one analyst's, whatever the dataset
				c.IdempotencyKey, c.RequestDigest = fmt.Sprint("key ", random.IntN(60)), [32]byte{byte(random.IntN(2))}
			}
			outcome, err := l.Reserve(t.Context(), c)
			if err == nil && outcome.Reserved != nil {
				mu.Lock()
				defer mu.Unlock()
				open = append(open, c.ID)
			}
			return err
		case pick < 90:
			id := take(random)
			switch {
			case id == "":
				return nil
			case pick < 75:
				return l.Settle(t.Context(), id, mechanisms.Loss{Epsilon: 1}, []byte(name))
			case pick < 82:
				return l.Void(t.Context(), id)
			default:
				return l.Expire(t.Context(), id)
			}
		case pick < 94:
			one.Origin, one.Limit.Epsilon = budget.FromSteward, mechanisms.PicoEpsilon(random.IntN(5_000))
			return l.SetLimit(t.Context(), "stella", one)
		case pick < 96:
			return l.Refill(t.Context(), "stella", budget.Refill{Account: one.ID, Epsilon: 50})
		case pick < 99:
			return l.Freeze(t.Context(), "stella", one.ID, random.IntN(3) == 0)
		default:
			_, err := l.ExpireOlder(t.Context(), 0)
			return err
		}
	}
	var all sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		all.Go(func() {
			for n := range each {
				if err := step(gateways[i%len(gateways)], random, fmt.Sprint(i, "-", n)); err != nil {
					mu.Lock()
					failures[fault.CodeOf(err)]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	t.Logf("refusals: %v", failures)
	expected := []fault.Code{fault.CodeBudgetExhausted, fault.CodeBudgetFrozen, fault.CodeBudgetReplayMismatch, fault.CodeBudgetLostAnswer,
		fault.CodeRequestInFlight, fault.CodeRequestNotFound, fault.CodeInternal} // the last: it was ended otherwise
	for code, n := range failures {
		if !slices.Contains(expected, code) {
			t.Errorf("%d times %s", n, code)
		}
	}
	for _, l := range gateways {
		if err := l.VerifyAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	auditor := map[string]*journal.Auditor{"d": journal.NewAuditor("d", nil), "e": journal.NewAuditor("e", nil)}
	for _, e := range slices.Backward(entriesOf(t, gateways[0])) {
		if err := auditor[e.Dataset].Add(e); err != nil {
			t.Fatal(err)
		}
	}
	var deadlocks int
	err := d.Conn(t, d.DSN).QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks)
	if err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}
