package budgettest

import (
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Timed is a ledger whose time a test moves.
type Timed struct {
	budget.Ledger
	// Advance lets so much time pass.
	Advance func(time.Duration)
	// Rewound says that Advance changes what the ledger remembers: then its journal's times are not those by which it decided.
	Rewound bool
	// Glimpse shows the ledger, for one operation, a clock that is so far ahead, and then the old one again.
	Glimpse func(time.Duration)
}

// RunTimed runs the tests of what depends on time. Open gives an empty ledger, once per test.
func RunTimed(t *testing.T, open func(t *testing.T) Timed) {
	for _, test := range []struct {
		name string
		run  func(*fixture, Timed)
	}{
		{"Tranches", testTranches},
		{"TranchesOfEachForm", testTranchesOfEachForm},
		{"SharedTranchesStaySecret", testSharedTranchesStaySecret},
		{"A27_F14_ClockStepsBack", testClockStepsBack},
		{"F15_EdgeOfTranche", testEdgeOfTranche},
		{"Rates", testRates},
		{"RatesKeepTheirPace", testRatesKeepTheirPace},
		{"RatesFallBack", testRatesFallBack},
	} {
		t.Run(test.name, func(t *testing.T) {
			ledger := open(t)
			f := &fixture{T: t, ledger: ledger, rewound: ledger.Rewound, charged: map[budget.ReservationID][]budget.AccountID{}}
			test.run(f, ledger)
			if !t.Failed() {
				f.checkSums()
				f.checkChain()
			}
		})
	}
}

// scheduled is a limit with a tranche of amount every hour.
func (f *fixture) scheduled(form budget.Form, amount, delta, tranche string) budget.Limit {
	f.Helper()
	spec := budget.LimitSpec{Form: form, Tranche: budget.TrancheSpec{Every: time.Hour}}
	if form == budget.ZCDP {
		spec.Tranche.Rho = f.number(tranche)
	} else {
		spec.Tranche.Epsilon = f.number(tranche)
	}
	return f.made(spec, amount, delta)
}

// A cap of 1 is released by quarters. What is not spent stays; after four there is no more.
func testTranches(f *fixture, timed Timed) {
	own := analystAccount("ana", f.scheduled(budget.Pure, "1", "", "0.25"))
	f.reserve(f.charge(pure(250), own))
	e := f.refused(f.charge(pure(100), own), fault.CodeBudgetTrancheClosed)
	want := map[string]string{"currency": "epsilon", "needed": "0.1", "remaining": "0", "affordable_epsilon": "0"}
	for _, d := range e.Details {
		if d.Name == "opens" {
			if at, err := time.Parse(time.RFC3339, d.Value); err != nil || !at.Equal(f.balance(own.ID).Opened.Add(time.Hour).Truncate(time.Second)) {
				f.Errorf("opens %s, %v", d.Value, err)
			}
		} else if want[d.Name] != d.Value {
			f.Errorf("%s is %q, want %q", d.Name, d.Value, want[d.Name])
		}
	}
	f.refused(f.charge(pure(1000), own), fault.CodeBudgetExhausted) // no waiting helps
	timed.Advance(time.Hour)
	f.reserve(f.charge(pure(200), own))
	f.refused(f.charge(pure(51), own), fault.CodeBudgetTrancheClosed)
	f.reserve(f.charge(pure(50), own))
	timed.Advance(2 * time.Hour) // two more, unused so far
	f.reserve(f.charge(pure(500), own))
	timed.Advance(1000 * time.Hour)
	f.refused(f.charge(pure(1), own), fault.CodeBudgetExhausted)
	if _, more := f.balance(own.ID).Limit.NextTranche(f.balance(own.ID).Opened, f.balance(own.ID).Opened.Add(3*time.Hour)); more {
		f.Error("another tranche opens after the last")
	}
}

// What is released is a limit of the same form: half its δ is for spending, and its ρ is that of the released ε.
func testTranchesOfEachForm(f *fixture, timed Timed) {
	zcdp := analystAccount("zcdp", f.scheduled(budget.ZCDP, "1", "", "0.25"))
	f.reserve(f.charge(gaussian(250), zcdp))
	f.refused(f.charge(gaussian(1), zcdp), fault.CodeBudgetExhausted) // ana asks, on an account of another

	approx := analystAccount("approx", f.scheduled(budget.Approx, "3", "1e-6", "1"))
	// As in testForms: RhoFor(1, 5e-7) is 0.02293, so 458 releases at ε 0.01 fit into the first tranche.
	for range 458 {
		f.reserve(f.charge(pure(10), approx))
	}
	f.refused(f.charge(pure(10), approx), fault.CodeBudgetExhausted)
	timed.Advance(time.Hour)
	f.reserve(f.charge(pure(10), approx))
	if got := f.balance(approx.ID).Lifetime(); got != (budget.Promise{Epsilon: 3 * mechanisms.EpsilonUnit, Delta: 1_000_000_000_000,
		Bounded: true}) {
		f.Errorf("lifetime %+v", got)
	}
}

func testSharedTranchesStaySecret(f *fixture, _ Timed) {
	own, whole := analystAccount("ana", f.limit(budget.Pure, "5", "")), datasetAccount(f.scheduled(budget.Pure, "1", "", "0.25"))
	f.reserve(f.charge(pure(250), whole, own))
	if e := f.refused(f.charge(pure(1), whole, own), fault.CodeBudgetExhausted); len(e.Details) != 0 ||
		strings.ContainsAny(e.Msg+e.Hint, "0123456789") {
		f.Errorf("%v %v", e, e.Details)
	}
}

// A clock that is set back closes nothing that was open and opens nothing again: time stands still until it has caught up.
func testClockStepsBack(f *fixture, timed Timed) {
	own := analystAccount("ana", f.scheduled(budget.Pure, "1", "", "0.25"))
	f.reserve(f.charge(pure(250), own))
	timed.Glimpse(90 * time.Minute)
	f.reserve(f.charge(pure(250), own)) // the second was open, and stays so
	f.refused(f.charge(pure(1), own), fault.CodeBudgetTrancheClosed)
	entries := f.entries()
	for i := 1; i < len(entries); i++ {
		if entries[i].At.After(entries[i-1].At) {
			f.Errorf("entry %d is from before entry %d", entries[i-1].Seq, entries[i].Seq)
		}
	}
}

// 64 clients at the moment a tranche opens spend what is released, and no more.
func testEdgeOfTranche(f *fixture, timed Timed) {
	own := analystAccount("ana", f.scheduled(budget.Pure, "1", "", "0.25"))
	f.reserve(f.charge(pure(250), own))
	timed.Advance(time.Hour)
	charges := make([]budget.Charge, clients)
	for i := range charges {
		charges[i] = f.charge(pure(50), own)
	}
	taken := make(chan budget.Charge, clients)
	ctx := patiently(f)
	together(clients, func(i int) {
		switch got, err := f.ledger.Reserve(ctx, charges[i]); {
		case err == nil && got.Reserved != nil:
			taken <- charges[i]
		case fault.CodeOf(err) != fault.CodeBudgetTrancheClosed:
			f.Error(err)
		}
	})
	close(taken)
	for c := range taken {
		f.took(c)
	}
	if used := f.balance(own.ID).Used(); used.Epsilon != mechanisms.EpsilonUnit/2 {
		f.Errorf("used %s", used.Epsilon)
	}
}

// rated is a limit with a rate of ε 1 a minute.
func (f *fixture) rated(form budget.Form, amount, delta string) budget.Limit {
	f.Helper()
	return f.made(budget.LimitSpec{Form: form, Rate: budget.RateSpec{Epsilon: f.number("1"), Per: time.Minute}}, amount, delta)
}

func testRates(f *fixture, timed Timed) {
	own := analystAccount("ana", f.rated(budget.Approx, "100", "1e-6"))
	if e := f.refused(f.charge(pure(1001), own), fault.CodeBudgetOverQueryCap); e.Details[1].Value != "1" {
		f.Errorf("details %v", e.Details)
	}
	for range 5 {
		f.reserve(f.charge(pure(200), own))
	}
	e := f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)
	// 30 s, less what passed in the test.
	if len(e.Details) != 1 || e.Details[0].Name != "retry_after" || e.Details[0].Value > "30" || len(e.Details[0].Value) != 2 {
		f.Errorf("details %v", e.Details)
	}
	f.refused(f.charge(gaussian(22), own), fault.CodeBudgetRateLimited) // as much as ε 1, by its ρ
	timed.Advance(30 * time.Second)
	f.reserve(f.charge(pure(500), own))
	f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)
	timed.Advance(time.Hour) // a pause saves up no more than one minute
	f.reserve(f.charge(pure(1000), own))
	f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)

	other := analystAccount("bob", f.rated(budget.Pure, "100", ""))
	f.reserve(f.charge(pure(1000), other))
	if e := f.refused(f.charge(pure(500), other), fault.CodeBudgetExhausted); len(e.Details) != 0 { // ana asks, on bob's account
		f.Errorf("details %v", e.Details)
	}
}

// What was reserved and is not spent is given back to the rate, as far as it has not worn off: never more than if it had not been reserved.
func testRatesFallBack(f *fixture, timed Timed) {
	own := analystAccount("ana", f.rated(budget.Approx, "100", "1e-6"))
	c := f.reserve(f.charge(pure(1000), own))
	f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)
	f.settle(c, pure(100))
	f.reserve(f.charge(pure(800), own)) // of 900, less what passes while the test asks
	f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)
	timed.Advance(time.Hour)

	c = f.reserve(f.charge(pure(1000), own))
	if err := f.ledger.Void(f.Context(), c); err != nil {
		f.Fatal(err)
	}
	c = f.reserve(f.charge(pure(900), own))
	// It has worn off before it ends, so that nothing is left to give back: what was charged meanwhile counts.
	timed.Advance(2 * time.Minute)
	f.reserve(f.charge(pure(1000), own))
	f.settle(c, pure(0))
	f.refused(f.charge(pure(500), own), fault.CodeBudgetRateLimited)
	timed.Advance(time.Hour)

	// Half of it has worn off, and half is given back.
	c = f.reserve(f.charge(pure(1000), own))
	timed.Advance(30 * time.Second)
	f.reserve(f.charge(pure(400), own))
	f.settle(c, pure(0))
	f.refused(f.charge(pure(900), own), fault.CodeBudgetRateLimited)
	f.reserve(f.charge(pure(550), own))
	if err := f.ledger.Expire(f.Context(), f.reserve(f.charge(pure(1), own))); err != nil {
		f.Fatal(err)
	}
}

// Over any time, at most the rate at once and the rate after that.
func testRatesKeepTheirPace(f *fixture, timed Timed) {
	own := analystAccount("ana", f.rated(budget.Pure, "100", ""))
	taken := 0
	for range 40 { // 6 s each: 4 minutes
		for range 3 {
			c := f.charge(pure(100), own)
			got, err := f.ledger.Reserve(f.Context(), c)
			if err == nil && got.Reserved != nil {
				f.took(c)
				taken++
			} else if fault.CodeOf(err) != fault.CodeBudgetRateLimited {
				f.Fatal(err)
			}
		}
		timed.Advance(6 * time.Second)
	}
	// 10 at once, then 10 a minute; one more if the test itself takes so long that another one has worn off.
	if taken < 49 || taken > 51 {
		f.Errorf("%d were taken in four minutes, want 49", taken)
	}
}
