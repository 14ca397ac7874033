package budgettest

import (
	"math"
	"math/big"
	"strings"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func testExactExhaustion(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	for range 9 {
		f.settle(f.reserve(f.charge(pure(100), own)), pure(100))
	}
	e := f.refused(f.charge(pure(101), own), fault.CodeBudgetExhausted)
	want := map[string]string{"currency": "epsilon", "needed": "0.101", "remaining": "0.1", "affordable_epsilon": "0.1"}
	for _, d := range e.Details {
		if want[d.Name] != d.Value {
			f.Errorf("%s is %q, want %q", d.Name, d.Value, want[d.Name])
		}
	}
	if len(e.Details) != len(want) {
		f.Errorf("details %v", e.Details)
	}
	f.reserve(f.charge(pure(100), own)) // to the last unit
	for _, least := range []mechanisms.Loss{{Epsilon: 1}, {Epsilon: 1, Rho: 1}, gaussian(1), {Delta: 1}} {
		f.refused(f.charge(least, own), fault.CodeBudgetExhausted)
	}
	f.reserve(f.charge(mechanisms.Loss{}, own)) // what costs nothing still fits
}

// Each form, charge by charge; the OR rule of approx among them.
func testForms(f *fixture) {
	type step struct {
		loss mechanisms.Loss
		ok   bool
	}
	for _, c := range []struct {
		name          string
		form          budget.Form
		amount, delta string
		steps         []step
	}{
		{"pure adds up epsilon", budget.Pure, "1", "", []step{{pure(600), true}, {pure(600), false}, {pure(400), true}, {pure(1), false}}},
		{"pure knows no Gaussian", budget.Pure, "1", "", []step{{gaussian(1), false}, {pure(1000), true}}},
		{"pure with delta pays selections", budget.Pure, "1", "1e-9", []step{
			{withDelta(pure(1), 600_000_000), true}, {withDelta(pure(1), 600_000_000), false}, {withDelta(pure(1), 400_000_000), true}}},
		{"zcdp adds up rho", budget.ZCDP, "1", "", []step{{gaussian(600), true}, {gaussian(600), false}, {gaussian(400), true},
			{gaussian(1), false}}},
		{"zcdp takes pure mechanisms at their rho", budget.ZCDP, "0.5", "", []step{{pure(1000), true}, {pure(1), false}}},
		{"zcdp without delta selects nothing", budget.ZCDP, "1", "", []step{{withDelta(pure(1), 1), false}}},
		{"approx by epsilon: one large query", budget.Approx, "1", "1e-6", []step{{pure(1000), true}, {pure(1), false}}},
		// RhoFor(1, 5e-7) is 0.02293: releases at ε 0.01 would end after 100 by the ε clause; by ρ, at 5e-5 each, after 458.
		{"approx by rho: many small queries", budget.Approx, "1", "1e-6", append(repeat(step{pure(10), true}, 458), step{pure(10), false})},
		// At δ' = 10⁻¹⁸ a ρ of 0.01 is an ε of 1.21, one of 0.001 of 0.38, one of 10⁻¹² of 0.00001.
		{"approx: a Gaussian has an epsilon, too large here", budget.Approx, "1", "1e-6", []step{
			{gaussian(10), true}, {pure(1000), false}, {gaussian(12), true}, {gaussian(1), false}}},
		{"approx: a Gaussian of which the epsilon fits", budget.Approx, "1", "1e-6", []step{
			{pure(300), true}, {gaussian(5), false}, {gaussian(1), true}, {pure(300), true}, {pure(1), true}, {pure(30), false}}},
		{"approx: a Gaussian leaves the epsilon clause open", budget.Approx, "20", "1e-6", append(
			append([]step{{mechanisms.Loss{Rho: 1, Unbounded: true}, true}}, repeat(step{pure(1000), true}, 19)...), step{pure(1000), false},
			step{pure(999), true})},
		{"approx: a Gaussian takes a unit of delta", budget.Approx, "1", "1e-6", []step{
			{withDelta(pure(1), 500_000_000_000), true}, {gaussian(1), false}, {pure(1), true}}},
		{"approx without room for tails", budget.Approx, "1", "31e-18", []step{
			{gaussian(1), true}, {pure(1), true}, {pure(900), false}}},
		{"approx: half of delta is for spending", budget.Approx, "1", "1e-6", []step{
			{withDelta(pure(1), 500_000_000_000), true}, {withDelta(pure(1), 1), false}, {pure(1), true}}},
		{"approx without delta is pure", budget.Approx, "1", "", []step{{gaussian(1), false}, {pure(1000), true}, {pure(1), false}}},
	} {
		own := analystAccount(c.name, f.limit(c.form, c.amount, c.delta))
		for i, s := range c.steps {
			charge := f.charge(s.loss, own)
			got, err := f.ledger.Reserve(f.Context(), charge)
			if (err == nil) != s.ok || err != nil && fault.CodeOf(err) != fault.CodeBudgetExhausted {
				f.Fatalf("%s: step %d: got %+v, %v", c.name, i, got, err)
			}
			if err == nil {
				f.took(charge)
			}
		}
	}
}

func repeat[T any](x T, n int) []T {
	var all []T
	for range n {
		all = append(all, x)
	}
	return all
}

// Taking back the last loss without a pure ε gives the ε clause back what it took of it, and only that.
func testUnboundedLossesAreCounted(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Approx, "1", "1e-6"))
	first, second := f.reserve(f.charge(gaussian(1), own)), f.reserve(f.charge(gaussian(1), own))
	f.refused(f.charge(pure(1000), own), fault.CodeBudgetExhausted)
	if err := f.ledger.Void(f.Context(), first); err != nil {
		f.Fatal(err)
	}
	f.refused(f.charge(pure(1000), own), fault.CodeBudgetExhausted)
	f.settle(second, mechanisms.Loss{Rho: 5}) // less was released than reserved: without Gaussian noise in the end
	f.wantBalance(own, mechanisms.Loss{Rho: 5}, mechanisms.Loss{})
	f.reserve(f.charge(pure(1000), own))
}

func testAllAccountsOrNone(f *fixture) {
	large, small := f.limit(budget.Pure, "10", ""), f.limit(budget.Pure, "1", "")
	for _, accounts := range [][]budget.Account{
		{datasetAccount(large), groupAccount("g1", large), analystAccount("one", small)},
		{datasetAccount(large), groupAccount("g2", small), analystAccount("two", large)},
	} {
		f.reserve(f.charge(pure(1000), accounts...))
		f.refused(f.charge(pure(1), accounts...), fault.CodeBudgetExhausted)
	}
	f.wantBalance(datasetAccount(large), mechanisms.Loss{}, pure(1000).Plus(pure(1000)))
	// A refused charge leaves no account behind.
	f.refused(f.charge(pure(1001), datasetAccount(large), analystAccount("new", small)), fault.CodeBudgetExhausted)
}

// An analyst learns figures of her own account only.
func testSharedBalancesStaySecret(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "5", ""))
	told := ""
	for _, c := range []struct {
		account budget.Account
		word    string
	}{
		{datasetAccount(f.limit(budget.Pure, "1", "")), "dataset"},
		{groupAccount("g", f.limit(budget.Pure, "1", "")), "group"},
		{analystAccount("pool", f.limit(budget.Pure, "1", "")), "analyst"}, // an account of that scope that is not hers
	} {
		accounts := []budget.Account{c.account, own}
		if c.account.ID.Name == "pool" {
			accounts = []budget.Account{own, c.account}
		}
		id := f.reserve(f.charge(pure(777), accounts...))
		e := f.refused(f.charge(pure(334), accounts...), fault.CodeBudgetExhausted)
		if len(e.Details) != 0 || strings.ContainsAny(e.Msg+e.Hint, "0123456789") || told != "" && e.Msg != told {
			f.Errorf("%s: %v %v", c.word, e, e.Details)
		}
		told = e.Msg // whichever account refused
		// When her own account refuses as well, that is what she is told.
		if e := f.refused(f.charge(pure(9999), accounts...), fault.CodeBudgetExhausted); len(e.Details) != 4 {
			f.Errorf("%s: %v has no figures of her own account", c.word, e)
		}
		f.settle(id, pure(777))
	}
}

func testPerQueryCap(f *fixture) {
	spec := budget.LimitSpec{Form: budget.Approx, Epsilon: f.number("10"), Delta: f.number("1e-6"), MaxEpsilonPerQuery: f.number("1")}
	limit, err := budget.NewLimit(spec)
	if err != nil {
		f.Fatal(err)
	}
	own := analystAccount("ana", limit)
	e := f.refused(f.charge(pure(1001), own), fault.CodeBudgetOverQueryCap)
	if len(e.Details) != 2 || e.Details[0].Value != "1.001" || e.Details[1].Value != "1" {
		f.Errorf("details %v", e.Details)
	}
	f.reserve(f.charge(pure(1000), own))
	// A Gaussian counts as the ε of its ρ at the account's δ: RhoFor(1, 5e-7) is 0.02293.
	f.reserve(f.charge(gaussian(22), own))
	f.refused(f.charge(gaussian(23), own), fault.CodeBudgetOverQueryCap)
}

func testReplayOnly(f *fixture) {
	limit, err := budget.NewLimit(budget.LimitSpec{ReplayOnly: true})
	if err != nil {
		f.Fatal(err)
	}
	open, closed := analystAccount("ana", f.limit(budget.Pure, "1", "")), analystAccount("ana", limit)
	c := f.charge(pure(1), open)
	f.settle(f.reserve(c), pure(1))
	closed.Origin = budget.FromSteward
	if err := f.ledger.SetLimit(f.Context(), "stella", closed); err != nil {
		f.Fatal(err)
	}
	f.refused(f.charge(pure(1), open), fault.CodeBudgetReplayOnly)
	f.refused(f.charge(mechanisms.Loss{}, open), fault.CodeBudgetReplayOnly)
	f.replayed(f.sameQuestion(c))
}

func testNoAccount(f *fixture) { f.refused(f.charge(pure(1)), fault.CodeBudgetNoAccount) }

// Losses beyond every budget are refused, and sums never wrap around.
func testExtremeLosses(f *fixture) {
	limit := budget.Limit{Form: budget.Pure, Epsilon: math.MaxInt64, Rho: math.MaxInt64, Delta: 1000, TotalDelta: 1000}
	own := analystAccount("ana", limit)
	half := mechanisms.Loss{Epsilon: math.MaxInt64 / 2, Rho: math.MaxInt64 / 2}
	f.refused(f.charge(mechanisms.Loss{Epsilon: math.MaxInt64}, own), fault.CodeBudgetExhausted)
	f.refused(f.charge(mechanisms.Loss{Rho: math.MaxInt64}, own), fault.CodeBudgetExhausted)
	f.refused(f.charge(mechanisms.Loss{Delta: math.MaxInt64}, own), fault.CodeBudgetExhausted)
	f.reserve(f.charge(half, own))
	f.refused(f.charge(half.Plus(mechanisms.Loss{Epsilon: 1}), own), fault.CodeBudgetExhausted)
	f.refused(f.charge(half.Plus(mechanisms.Loss{Rho: 1}), own), fault.CodeBudgetExhausted)
	f.reserve(f.charge(half, own))
	f.refused(f.charge(mechanisms.Loss{Epsilon: 1}, own), fault.CodeBudgetExhausted)
}

// What only a defect of the caller can send.
func testDefectiveCharges(f *fixture) {
	limit := f.limit(budget.Pure, "1", "")
	own := analystAccount("ana", limit)
	foreign, unnamed, noScope, noForm := own, own, own, own
	foreign.ID.Dataset = "other"
	unnamed.ID.Name = ""
	noScope.ID.Scope = ""
	noForm.Limit.Form = ""
	for name, c := range map[string]budget.Charge{
		"twice":           f.charge(pure(1), own, own),
		"foreign account": f.charge(pure(1), foreign),
		"unnamed account": f.charge(pure(1), unnamed),
		"no scope":        f.charge(pure(1), noScope),
		"no form":         f.charge(pure(1), noForm),
		"negative ε":      f.charge(mechanisms.Loss{Epsilon: -1}, own),
		"negative ρ":      f.charge(mechanisms.Loss{Rho: -1}, own),
		"negative δ":      f.charge(mechanisms.Loss{Delta: -1}, own),
		"no id":           {Dataset: dataset, Analyst: "ana", Accounts: []budget.Account{own}},
	} {
		if e := f.refused(c, fault.CodeInternal); e.Err == nil {
			f.Errorf("%s: no cause for the log", name)
		}
	}
	used := f.charge(pure(1), own)
	f.reserve(used)
	second := f.charge(pure(1), own)
	second.ID = used.ID
	before := f.everything()
	if _, err := f.ledger.Reserve(f.Context(), second); err == nil {
		f.Error("one id reserved twice")
	}
	f.unchanged(before)
}

func testLimitsOfExistingAccounts(f *fixture) {
	small, large := f.limit(budget.Pure, "1", ""), f.limit(budget.ZCDP, "100", "1e-9")
	own := analystAccount("ana", small)
	f.reserve(f.charge(pure(1000), own))
	f.refused(f.charge(pure(1), analystAccount("ana", large)), fault.CodeBudgetExhausted) // the limit in the ledger counts

	set := func(by string, origin budget.Origin, l budget.Limit) {
		f.Helper()
		if err := f.ledger.SetLimit(f.Context(), by, budget.Account{ID: own.ID, Limit: l, Origin: origin}); err != nil {
			f.Fatal(err)
		}
	}
	want := func(origin budget.Origin, l budget.Limit) {
		f.Helper()
		if got := f.balance(own.ID).Account; got != (budget.Account{ID: own.ID, Limit: l, Origin: origin}) {
			f.Fatalf("got %+v", got)
		}
	}
	set("policy v2", budget.FromPolicy, large)
	want(budget.FromPolicy, large)
	f.reserve(f.charge(gaussian(1), own))
	set("stella", budget.FromSteward, f.limit(budget.Approx, "7", "1e-6"))
	want(budget.FromSteward, f.limit(budget.Approx, "7", "1e-6"))
	before := f.everything()
	set("policy v3", budget.FromPolicy, large) // does not replace the steward's
	set("stella", budget.FromSteward, f.limit(budget.Approx, "7", "1e-6"))
	f.unchanged(before)
	if e := before.Entries[0]; e.Kind != budget.EntryLimit || e.Analyst != "stella" || *e.Account != own.ID || e.Limit.Form != budget.Approx {
		f.Errorf("the change is in the journal as %+v", e)
	}
	set("stella", budget.FromSteward, small)
	want(budget.FromSteward, small)

	// A gateway that still holds an older policy does not set back what a newer one set.
	other := budget.AccountID{Dataset: dataset, Scope: budget.AnalystScope, Name: "bob"}
	for _, step := range []struct {
		version int64
		limit   budget.Limit
		want    budget.Limit
	}{{5, large, large}, {6, small, small}, {5, large, small}, {7, large, large}, {6, small, large}, {8, large, large}, {7, small, large}} {
		given := budget.Account{ID: other, Limit: step.limit, Origin: budget.FromPolicy, Version: step.version}
		if err := f.ledger.SetLimit(f.Context(), "policy", given); err != nil {
			f.Fatal(err)
		}
		if got := f.balance(other).Limit; got != step.want {
			f.Fatalf("after version %d: %+v", step.version, got)
		}
	}

	for name, a := range map[string]budget.Account{
		"no origin": {ID: own.ID, Limit: small},
		"no form":   {ID: own.ID, Origin: budget.FromSteward},
		"negative":  {ID: own.ID, Origin: budget.FromSteward, Limit: budget.Limit{Form: budget.Pure, Epsilon: -2}},
		"named dataset": {ID: budget.AccountID{Dataset: dataset, Scope: budget.DatasetScope, Name: "x"}, Origin: budget.FromSteward,
			Limit: small},
	} {
		if err := f.ledger.SetLimit(f.Context(), "stella", a); fault.CodeOf(err) != fault.CodeInternal {
			f.Errorf("%s: %v", name, err)
		}
	}
}

func testLoweredLimitBlocks(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Approx, "10", "1e-6"))
	charged := withDelta(pure(1000), 400_000_000_000).Plus(gaussian(10))
	id := f.reserve(f.charge(charged, own))
	open := f.reserve(f.charge(pure(1), own))
	for _, limit := range []budget.Limit{f.limit(budget.Approx, "1", "1e-7"), f.limit(budget.Pure, "0", ""), f.limit(budget.ZCDP, "0", "")} {
		lowered := budget.Account{ID: own.ID, Limit: limit, Origin: budget.FromSteward}
		if err := f.ledger.SetLimit(f.Context(), "stella", lowered); err != nil {
			f.Fatal(err)
		}
		for _, loss := range []mechanisms.Loss{pure(1), gaussian(1), {Delta: 1}} {
			f.refused(f.charge(loss, own), fault.CodeBudgetExhausted)
		}
	}
	f.settle(id, charged) // what was reserved before may still be released
	if err := f.ledger.Void(f.Context(), open); err != nil {
		f.Fatal(err)
	}
	if err := f.ledger.SetLimit(f.Context(), "stella", budget.Account{ID: own.ID, Limit: own.Limit, Origin: budget.FromSteward}); err != nil {
		f.Fatal(err)
	}
	f.reserve(f.charge(gaussian(1), own))
}

// A charge above its ceiling changes nothing; a replay of what was bought is free, and has none.
func testCeilings(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	most := func(epsilon int64) *budget.Ceiling { return &budget.Ceiling{Epsilon: big.NewRat(epsilon, 1000)} }
	dear := f.charge(pure(100), own)
	dear.Ceiling = most(99)
	f.refused(dear, fault.CodeBudgetOverAtMost)
	noEpsilon := f.charge(gaussian(1), own)
	noEpsilon.Ceiling = most(1000_000)
	f.refused(noEpsilon, fault.CodeBudgetOverAtMost)
	exact := f.charge(pure(100), own)
	exact.Ceiling = most(100)
	f.settle(f.reserve(exact), pure(100))
	again := f.sameQuestion(exact)
	again.Ceiling = most(0)
	f.replayed(again)
	last := f.charge(pure(1000), own)
	last.Ceiling = most(1000)
	f.refused(last, fault.CodeBudgetExhausted)
}
