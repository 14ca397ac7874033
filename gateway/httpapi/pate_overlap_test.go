package httpapi

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/stattest"
)

func amount(t testing.TB, text api.Decimal) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		t.Fatalf("%q is no amount", text)
	}
	return r
}

// TestOverlappingPurchases: of purchases that overlap and run at the same time, each settles for an eighth of what it
// reserved at least, the dataset and the ensemble pay for each outcome once, and each analyst for what their answers
// say.
//
// covers: L1
func TestOverlappingPurchases(t *testing.T) {
	w := worlds(t, "-x")[0]
	const draws = 6 * 8 * 20
	if stattest.Exceeds(draws*stattest.GaussianBeyond(4, 37), draws*2*3*stattest.GaussianBeyond(5, 50)) { // as in TestA84LabelsAreChargedOnce
		t.Fatal("this test would fail by chance")
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	spent, became := map[string]*big.Rat{}, map[string]string{}
	for buyer := range 6 {
		who := fmt.Sprintf("buyer%d-x", buyer%4) // two of them buy twice at a time
		spent[who] = new(big.Rat)
		group.Go(func() {
			random, client := rand.New(rand.NewPCG(4, uint64(buyer))), w.f.client(who+":ml")
			for range 8 {
				ask := confident()
				ask.Sigma1 = "4"
				for i := range 20 {
					if random.IntN(2) == 0 {
						ask.Queries = append(ask.Queries, fmt.Sprint("q", i))
					}
				}
				var answer *api.LabelResponse
				var err error
				for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // somebody asks the same at the same time
					if answer, err = client.Labels(t.Context(), "digits-x", ask, ""); codeOfError(err) != fault.CodeRequestInFlight ||
						time.Now().After(deadline) {
						break
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				paid := amount(t, answer.Spent.Rho)
				mu.Lock()
				spent[who].Add(spent[who], paid)
				for _, l := range answer.Labels {
					if outcome := fmt.Sprint(l.Status, l.Class); became[l.Query] != "" && became[l.Query] != outcome {
						t.Errorf("%s is %s and %s", l.Query, outcome, became[l.Query])
					} else {
						became[l.Query] = outcome
					}
					if least := new(big.Rat).Quo(amount(t, answer.WorstCase.Rho), big.NewRat(8, 1)); !l.Replayed && paid.Cmp(least) < 0 {
						t.Errorf("%s was reserved, and %s is paid", answer.WorstCase.Rho, answer.Spent.Rho)
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(became) != 20 {
		t.Fatal(became)
	}
	released := big.NewRat(20*3125+16*4000, 100_000) // 20 checks at 0.03125 (4 fail), and the others' answers at 0.04
	sam := w.f.client("sam:steward")
	shown, err := sam.Ensemble(t.Context(), "digits-x")
	if err != nil || amount(t, shown.Spent.Rho).Cmp(released) != 0 {
		t.Errorf("the ensemble spent %+v, and %s was released: %v", shown.Spent, released.FloatString(4), err)
	}
	for who, sum := range spent {
		account, err := sam.Account(t.Context(), gatewaytest.Dataset, "analyst:"+who)
		if err != nil || amount(t, account.Spent.Rho).Cmp(sum) != 0 {
			t.Errorf("%s spent %+v, and was told %s: %v", who, account, sum.FloatString(4), err)
		}
	}
	w.f.Audit(t)
}

// TestCrashesKeepLabelsAndCharges: wherever a purchase ends, its charge stands; and what was stored of it is its
// buyer's, and read again free.
//
// covers: A67
func TestCrashesKeepLabelsAndCharges(t *testing.T) {
	var ledger *gatewaytest.FailingLedger
	f := newFront(t, gatewaytest.Options{Change: func(c *gateway.Config) {
		ledger = gatewaytest.NewFailingLedger(c.Ledger, fault.DataUnavailable(errors.New("the cable was pulled")))
		c.Ledger = ledger
	}}, 4)
	sealedEnsemble(t, f, "digits", 20)
	mel, other, sam := f.client("mel:ml"), f.client("other:ml"), f.client("sam:steward")
	spent := func(account string) *big.Rat {
		t.Helper()
		shown, err := sam.Account(t.Context(), gatewaytest.Dataset, account)
		if err != nil {
			t.Fatal(err)
		}
		return amount(t, shown.Spent.Rho)
	}
	price := big.NewRat(1, 400)
	times := func(n int64) *big.Rat { return new(big.Rat).Mul(price, big.NewRat(n, 1)) }
	buyOf(t, mel, 19, 20) // there is an account
	for i, test := range []struct {
		step        string
		kept        bool  // the labels are mel's
		own, shared int64 // labels that are paid for
		key         fault.Code
	}{
		{step: "votes", own: 4, shared: 4, key: fault.CodeBudgetLostAnswer},
		{step: "record", own: 4, shared: 4, key: fault.CodeBudgetLostAnswer},
		{step: "before settle", kept: true, own: 4, shared: 4, key: fault.CodeBudgetLostAnswer},
		{step: "after settle", kept: true, own: 4, shared: 3},
	} {
		ask := api.LabelRequest{Queries: queries(4*i, 4*i+4), Mechanism: "gnmax", Sigma: "20"}
		theirs, err := other.Labels(t.Context(), "digits", api.LabelRequest{Queries: ask.Queries[1:2], Mechanism: "gnmax", Sigma: "20"}, "")
		if err != nil {
			t.Fatal(err)
		}
		own, whole, key := spent("analyst:mel"), spent("dataset"), fmt.Sprint("key", i)
		ledger.FailAt(test.step)
		undo := func() { ledger.FailAt("") }
		switch test.step {
		case "votes": // cannot be read, but the names of queries can
			f.Control.Exec(t, "REVOKE SELECT ON noisegate.pate_votes FROM noisegate",
				"GRANT SELECT (ensemble_id, query_no, key) ON noisegate.pate_votes TO noisegate")
			undo = func() { f.Control.Exec(t, "GRANT SELECT ON noisegate.pate_votes TO noisegate") }
		case "record":
			f.Control.Exec(t, `CREATE FUNCTION noisegate.pulled() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $m$pulled$m$; END'`,
				"CREATE TRIGGER pulled BEFORE INSERT ON noisegate.pate_purchase FOR EACH ROW EXECUTE FUNCTION noisegate.pulled()")
			undo = func() {
				f.Control.Exec(t, "DROP TRIGGER pulled ON noisegate.pate_purchase", "DROP FUNCTION noisegate.pulled()")
			}
		}
		if _, err := mel.Labels(t.Context(), "digits", ask, key); codeOfError(err) != fault.CodeDataUnavailable {
			t.Fatalf("%s: %v", test.step, err)
		}
		undo()
		if _, err := f.Ledger.ExpireOlder(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got := new(big.Rat).Sub(spent("analyst:mel"), own); got.Cmp(times(test.own)) != 0 {
			t.Errorf("%s: mel pays %s", test.step, got.FloatString(4))
		}
		if got := new(big.Rat).Sub(spent("dataset"), whole); got.Cmp(times(test.shared)) != 0 {
			t.Errorf("%s: the dataset pays %s", test.step, got.FloatString(4))
		}
		if _, err := mel.Labels(t.Context(), "digits", ask, key); codeOfError(err) != test.key {
			t.Errorf("%s: the key gives %v", test.step, err)
		}
		again, err := mel.Labels(t.Context(), "digits", ask, "")
		if err != nil {
			t.Fatal(err)
		}
		if amount(t, again.Spent.Rho).Sign() == 0 != test.kept || again.Labels[0].Replayed != test.kept ||
			*again.Labels[1].Label != *theirs.Labels[0].Label {
			t.Errorf("%s: again %+v", test.step, again)
		}
	}
	f.Audit(t)
}
