package gateway

import (
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// TestAccountsOfACaller says which accounts a caller's queries are charged to.
func TestAccountsOfACaller(t *testing.T) {
	dataset := line(catalog.DatasetScope, "", 9)
	for name, c := range map[string]struct {
		lines   []catalog.Budget
		groups  []string
		steward map[string]int64 // accounts that a steward set
		want    string           // account=ε ...; "" for none
	}{
		"no line":               {lines: []catalog.Budget{dataset}},
		"no cap of the dataset": {lines: []catalog.Budget{perAnalyst("analysts", 1)}},
		"per analyst":           {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1)}, want: "dataset=9 analyst:ana=1"},
		"not a member":          {lines: []catalog.Budget{dataset, perAnalyst("north", 1)}},
		"first of two groups": {lines: []catalog.Budget{dataset, perAnalyst("north", 2), perAnalyst("analysts", 1)},
			groups: []string{"north"}, want: "dataset=9 analyst:ana=2"},
		"the analyst's own line": {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1), line(catalog.AnalystScope, "ana", 5)},
			want: "dataset=9 analyst:ana=5"},
		"another analyst's line": {lines: []catalog.Budget{dataset, line(catalog.AnalystScope, "bob", 5)}},
		"shared group": {lines: []catalog.Budget{dataset, line(catalog.GroupScope, "north", 4)}, groups: []string{"north"},
			want: "dataset=9 group:north=4"},
		"group, analyst and others": {lines: []catalog.Budget{line(catalog.GroupScope, "north", 4), line(catalog.GroupScope, "south", 4),
			perAnalyst("analysts", 1), dataset}, groups: []string{"north"}, want: "dataset=9 group:north=4 analyst:ana=1"},
		"a group called like ana": {lines: []catalog.Budget{dataset, line(catalog.GroupScope, "ana", 4)}},
		"steward's limit": {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1)},
			steward: map[string]int64{"analyst:ana": 7, "dataset": 8}, want: "dataset=8 analyst:ana=7"},
		"steward's account alone": {lines: []catalog.Budget{dataset}, steward: map[string]int64{"analyst:ana": 7},
			want: "dataset=9 analyst:ana=7"},
		"steward's group": {lines: []catalog.Budget{dataset}, groups: []string{"x"}, steward: map[string]int64{"group:x": 7},
			want: "dataset=9 group:x=7"},
		"steward's other analyst": {lines: []catalog.Budget{dataset}, steward: map[string]int64{"analyst:bob": 7}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.lines...)
			for account, epsilon := range c.steward {
				_, err := r.SetAccount(t.Context(), auth.Principal{Subject: "sam"}, "d", account,
					api.LimitChange{BudgetLimit: api.BudgetLimit{Form: "pure",
						Epsilon: api.Decimal((mechanisms.PicoEpsilon(epsilon) * mechanisms.EpsilonUnit).String())}})
				if err != nil {
					t.Fatal(err)
				}
			}
			p, err := r.AccountsOf(t.Context(), principal(t, "ana", c.groups...), r.policies.snapshot)
			if c.want == "" {
				if fault.CodeOf(err) != fault.CodeBudgetNoAccount {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range p.All() {
				got = append(got, a.ID.String()+"="+a.Limit.Epsilon.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// TestPolicyChangesAccounts: a policy that lowers a limit, or takes a line away, works from the next query on.
func TestPolicyChangesAccounts(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 3)), principal(t, "ana")
	if _, err := r.Query(t.Context(), ana, count("2")); err != nil {
		t.Fatal(err)
	}
	r.policies.snapshot = testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 2))
	if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("lowered: %v", err)
	}
	r.policies.snapshot = testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("others", 2))
	if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetNoAccount {
		t.Errorf("taken away: %v", err)
	}
	if _, err := r.SetAccount(t.Context(), auth.Principal{Subject: "sam"}, "d", "analyst:ana",
		api.LimitChange{BudgetLimit: api.BudgetLimit{Form: "pure", Epsilon: "5"}}); err != nil {
		t.Fatal(err)
	}
	answer, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil || answer.Remaining.Epsilon != "2.5" {
		t.Errorf("given by the steward: %+v, %v", answer, err)
	}
}

// TestOnlyChargesWriteLimits: a policy's new limit reaches the ledger with the first charge under it. What costs nothing changes
// nothing, not even then.
func TestOnlyChargesWriteLimits(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 3)), principal(t, "ana")
	if _, err := r.Query(t.Context(), ana, count("1")); err != nil {
		t.Fatal(err)
	}
	lowered := testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 2))
	lowered.Version++
	r.policies.snapshot = lowered
	entries := func() int {
		all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := entries()
	refused := count("1")
	refused.SQL = "SELECT age FROM people"
	if _, err := r.Query(t.Context(), ana, refused); err == nil {
		t.Error("not refused")
	}
	if _, err := r.Estimate(t.Context(), ana, count("0.5").QueryRequest); err != nil {
		t.Error(err)
	}
	if _, err := r.Budget(t.Context(), ana, "d"); err != nil {
		t.Error(err)
	}
	if now := entries(); now != before {
		t.Errorf("%d entries more", now-before)
	}
	if _, err := r.Query(t.Context(), ana, count("1.5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("the lowered limit does not hold: %v", err)
	}
}

// TestOlderPolicyRaisesNothing: a gateway that still holds the policy of before a cap was lowered is bound by the lowered cap.
func TestOlderPolicyRaisesNothing(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 3)), principal(t, "ana")
	older := r.policies.snapshot
	if _, err := r.Query(t.Context(), ana, count("1")); err != nil {
		t.Fatal(err)
	}
	version := func(n int64, epsilon int64) *catalog.Snapshot {
		snapshot := testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("analysts", epsilon))
		snapshot.Version = older.Version + n
		return snapshot
	}
	lowered, raised, loweredAgain := version(1, 1), version(2, 4), version(3, 1) // nothing was charged while the cap was 4
	for _, held := range []*catalog.Snapshot{lowered, older, lowered, loweredAgain, raised} {
		r.policies.snapshot = held
		if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
			t.Errorf("version %d: %v", held.Version, err)
		}
	}
}

// TestOlderPolicyChargesEveryAccount: what a newer policy limits is charged by a gateway that still holds the policy of before.
func TestOlderPolicyChargesEveryAccount(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 5)), principal(t, "ana")
	older, newer := r.policies.snapshot, testSnapshot(line(catalog.DatasetScope, "", 9), line(catalog.GroupScope, "analysts", 1),
		perAnalyst("analysts", 5))
	newer.Version = older.Version + 1
	r.policies.snapshot = newer
	if _, err := r.Query(t.Context(), ana, count("0.9")); err != nil {
		t.Fatal(err)
	}
	r.policies.snapshot = older
	if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("beyond the group's cap: %v", err)
	}
}

// TestRacersBuyNoMoreThanTheCap: 64 queries at a time against a cap that fits ten.
//
// covers: A66
func TestRacersBuyNoMoreThanTheCap(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 1000), perAnalyst("analysts", 1))
	ana := principal(t, "ana")
	codes := make(chan fault.Code, 64)
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			request := count("0.1")
			request.SQL += " WHERE age < " + big.NewInt(int64(i)).String()
			_, err := r.Query(t.Context(), ana, request)
			codes <- fault.CodeOf(err)
		})
	}
	wait.Wait()
	close(codes)
	seen := map[fault.Code]int{}
	for code := range codes {
		seen[code]++
	}
	if diff := cmp.Diff(map[fault.Code]int{"": 10, fault.CodeBudgetExhausted: 54}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestExhaustionShowsNothingOfOthers: a refusal by the dataset's cap shows no figure of what others spent.
//
// covers: A42
func TestExhaustionShowsNothingOfOthers(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 1), perAnalyst("analysts", 5))
	if _, err := r.Query(t.Context(), principal(t, "bob"), count("0.7")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Query(t.Context(), principal(t, "ana"), count("0.7"))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.CodeBudgetExhausted || len(f.Details) != 0 || strings.ContainsAny(f.Msg+f.Hint, "0123456789") {
		t.Errorf("%+v", f)
	}
	e, err := r.Estimate(t.Context(), principal(t, "ana"), count("0.7").QueryRequest)
	if err != nil || !e.Affordable || e.Remaining.Epsilon != "5" {
		t.Errorf("the estimate tells of the others: %+v, %v", e, err)
	}
}

func TestStewardsBudgets(t *testing.T) {
	r := newRig(t)
	sam := auth.Principal{Subject: "sam"}
	if _, err := r.Account(t.Context(), "d", "analyst:bob"); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Errorf("%v", err)
	}
	account, err := r.SetAccount(t.Context(), sam, "d", "analyst:bob",
		api.LimitChange{BudgetLimit: api.BudgetLimit{Form: "zcdp", Rho: "0.5", Delta: "1e-8", MaxEpsilonPerQuery: "0.5"}})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Account{Dataset: "d", Account: "analyst:bob", Origin: "steward",
		Limit:     api.BudgetLimit{Form: "zcdp", Rho: "0.5", Delta: "1e-8", MaxEpsilonPerQuery: "0.5"},
		Spent:     api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"},
		Reserved:  api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"},
		Remaining: api.Amounts{Rho: "0.5", Delta: "1e-8"},
		// ρ 0.5 is ε 6.47 at δ 10⁻⁹; each of the counts is ε·tanh(ε/2)-zCDP.
		Lifetime:  api.Promise{Epsilon: "6.474070020727", Delta: "1.1e-8"},
		WorstCase: api.Promise{Epsilon: "6.474070020727", Delta: "1.1e-8"},
		Usage:     api.Usage{Rule: "rho", Percent: "0"},
		Advice:    "about 100 more counts at epsilon 0.1"}
	if diff := cmp.Diff(&want, account); diff != "" {
		t.Error(diff)
	}
	list, err := r.Accounts(t.Context(), principal(t, "sam"), "d")
	if err != nil || len(list.Accounts) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, c := range map[string]struct {
		account string
		limit   api.BudgetLimit
		code    fault.Code
	}{
		"no scope":       {"bob", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"unknown scope":  {"role:bob", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"no name":        {"group:", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"dataset's name": {"dataset:d", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"unknown form":   {"dataset", api.BudgetLimit{Form: "free", Epsilon: "1"}, fault.CodeRequestBudget},
		"no amount":      {"dataset", api.BudgetLimit{Form: "pure"}, fault.CodeRequestBudget},
		"negative":       {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "-1"}, fault.CodeRequestBudget},
		"A71 infinite":   {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "Infinity"}, fault.CodeRequestBudget},
		"too large":      {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "1000001"}, fault.CodeRequestBudget},
		"delta 1":        {"dataset", api.BudgetLimit{Form: "approx", Epsilon: "1", Delta: "1"}, fault.CodeRequestBudget},
		"wrong currency": {"dataset", api.BudgetLimit{Form: "zcdp", Epsilon: "1"}, fault.CodeRequestBudget},
	} {
		if _, err := r.SetAccount(t.Context(), sam, "d", c.account, api.LimitChange{BudgetLimit: c.limit}); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
