package budgettest_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// TestClocksThatStep lets the clocks of server and writer step at random, one of them at a time: rates and tranches never admit more than
// by the true time and the minute that clocks may differ by, and a ledger whose clocks are right again goes on at once.
//
// covers: F14
func TestClocksThatStep(t *testing.T) {
	const slack = time.Minute + time.Second
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 8))
		start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
		now, serverOff, ownOff := start, time.Duration(0), time.Duration(0)
		l := budgettest.NewMemoryOnServer(func() time.Time { return now.Add(serverOff) }, func() time.Time { return now.Add(ownOff) })
		limit := budget.Limit{Form: budget.Pure, Epsilon: 1000, Rho: budget.Never, Tranche: budget.Tranche{Every: time.Hour, Epsilon: 10},
			Rate: budget.Rate{Per: 10 * time.Minute, Epsilon: 4}}
		own := budget.Account{ID: budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}, Limit: limit,
			Origin: budget.FromPolicy}
		var admitted []time.Time // by the true time
		refused := 0
		ask := func(i int) error {
			id := budget.ReservationID(fmt.Sprint("R", i))
			_, err := l.Reserve(t.Context(), budget.Charge{ID: id, Dataset: "d", Analyst: "ana", Loss: mechanisms.Loss{Epsilon: 1},
				Accounts: []budget.Account{own}, Fingerprint: sha256.Sum256([]byte(id)), Request: []byte("{}")})
			return err
		}
		if err := ask(-1); err != nil { // the account is opened with clocks that are right
			t.Fatal(err)
		}
		admitted = append(admitted, now)
		for i := range 200 {
			now = now.Add(time.Duration(random.Int64N(int64(4 * time.Minute))))
			if random.IntN(8) == 0 {
				upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
				off := []time.Duration{0, upTo(2 * time.Minute), upTo(400 * 24 * time.Hour), -upTo(24 * time.Hour)}[random.IntN(4)]
				if serverOff, ownOff = off, 0; random.IntN(2) == 0 {
					serverOff, ownOff = 0, off
				}
			}
			before, err := l.Head(t.Context(), "d")
			if err != nil {
				t.Fatal(err)
			}
			switch err := ask(i); {
			case err == nil:
				admitted = append(admitted, now)
			case fault.CodeOf(err) == fault.CodeLedgerClock:
				refused++
				if after, _ := l.Head(t.Context(), "d"); after != before || serverOff <= ownOff+time.Minute-4*time.Minute {
					t.Fatalf("seed %d: refused with the clocks %v and %v off, from %v to %v", seed, serverOff, ownOff, before, after)
				}
			}
		}
		for i, last := range admitted { // those until one, since any before
			if opened := 10 * (1 + int(last.Add(slack).Sub(admitted[0])/time.Hour)); i+1 > opened {
				t.Fatalf("seed %d: %d are admitted by %v, where tranches have released %d", seed, i+1, last.Sub(start), opened)
			}
			for j := range i + 1 {
				if most := 4 + 4*float64(last.Sub(admitted[j])+slack)/float64(10*time.Minute); float64(i-j+1) > most {
					t.Fatalf("seed %d: %d are admitted within %v", seed, i-j+1, last.Sub(admitted[j]))
				}
			}
		}
		serverOff, ownOff, now = 0, 0, now.Add(400*time.Hour)
		if err := ask(1000); err != nil && len(admitted) < 200 && fault.CodeOf(err) == fault.CodeLedgerClock {
			t.Fatalf("seed %d: the clocks are right, and nothing goes on: %v", seed, err)
		}
		if seed == 0 && (refused == 0 || len(admitted) < 10) {
			t.Fatalf("%d are refused and %d admitted: the test tests nothing", refused, len(admitted))
		}
	}
}
