package budgettest

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// testTwoStewards: while the policy in force has caps among what takes two, a steward alone opens no account, gives none more, and lifts
// nothing; a second one's signature holds once, for the account as it was. What two signed of a policy is in its entry, and the auditor
// finds each of these without it.
func testTwoStewards(f *fixture) {
	const unit = mechanisms.EpsilonUnit
	sam, eve := f.signerOf(1), f.signerOf(2)
	keys := journal.StewardKeys{{Steward: "sam", Public: sam.Public()}, {Steward: "eve", Public: eve.Public()}}
	inForce := f.ledger.(budget.InForce)
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	f.reserve(f.charge(pure(1000), own))
	version := int64(0)
	policy := func(twoFor, needed []string, approval *budget.Approval) error {
		f.Helper()
		_, err := inForce.RecordPolicy(f.Context(), budget.NewPolicy{Text: "text", Checked: []byte("{}"), PolicyVersion: budget.PolicyVersion{
			PolicyRow: budget.PolicyRow{Version: version + 1, AppliedBy: "sam"}, Dataset: dataset, TwoFor: twoFor, Needed: needed,
			Approval: approval}})
		if err == nil {
			version++
		}
		return err
	}
	want := func(what string, err error, code fault.Code) {
		f.Helper()
		if fault.CodeOf(err) != code {
			f.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	limited := func(epsilon string) budget.Account {
		return budget.Account{ID: own.ID, Limit: f.limit(budget.Pure, epsilon, ""), Origin: budget.FromSteward}
	}
	set := func(a budget.Account) error { return f.ledger.SetLimit(f.Context(), "sam", a) }
	want("before there is a policy", set(limited("2")), "")
	want("the first policy", policy([]string{"cap", "unit"}, nil, nil), "")
	if kinds, err := inForce.TwoFor(f.Context(), dataset); err != nil || !slices.Equal(kinds, []string{"cap", "unit"}) {
		f.Errorf("%v, %v", kinds, err)
	}

	// One alone.
	rated := limited("2")
	rated.Limit.Rate = budget.Rate{Per: time.Minute, Epsilon: unit, Rho: 1}
	want("a brake", set(rated), "")
	before := f.everything()
	opened := limited("0.1")
	opened.ID.Name = "bob"
	want("the same amount without the brake", set(limited("2")), fault.CodeBudgetSignature)
	want("more", set(limited("3")), fault.CodeBudgetSignature)
	want("another account", set(opened), fault.CodeBudgetSignature)
	want("another form", set(budget.Account{ID: own.ID, Limit: f.limit(budget.ZCDP, "0.001", ""), Origin: budget.FromSteward}),
		fault.CodeBudgetSignature)
	for _, a := range []budget.Account{limited("3"), limited("2"), opened} {
		want("more, where there are keys", f.ledger.LowerLimit(f.Context(), "sam", a), fault.CodeBudgetSignature)
	}
	want("a refill", f.ledger.Refill(f.Context(), "sam", budget.Refill{Account: own.ID, Epsilon: 1}), fault.CodeBudgetSignature)
	now := f.entries()[0].At
	ledger, err := inForce.LedgerName(f.Context(), dataset)
	if err != nil || len(ledger) != 64 {
		f.Fatalf("the ledger's name: %q, %v", ledger, err)
	}
	refill := func(number int64, lifetime mechanisms.PicoEpsilon, pair budget.Pair) budget.Refill {
		return eve.SignRefill(budget.Refill{Account: own.ID, Epsilon: unit, Mandate: &budget.Mandate{Number: number, At: now, Pair: pair,
			Ledger: ledger, Lifetime: budget.Promise{Epsilon: lifetime, Bounded: true}}})
	}
	pair := budget.Pair{Proposer: "sam", Approver: "eve"}
	for _, wrong := range []budget.Pair{{}, {Proposer: "eve", Approver: "sam"}, {Proposer: "sam", Approver: "sam"}, {Proposer: "sam"},
		{Approver: "eve"}} {
		want("a refill that one signed", f.ledger.Refill(f.Context(), "sam", refill(1, 3*unit, wrong)), fault.CodeBudgetSignature)
	}
	f.unchanged(before)

	// Two.
	here, others := ledger, []string{strings.Repeat("ab", 32), budget.NoLedger, ""}
	for _, ledger = range others {
		want("a refill for another ledger", f.ledger.Refill(f.Context(), "sam", refill(1, 3*unit, pair)), fault.CodeBudgetSignature)
	}
	ledger = here
	first := refill(1, 3*unit, pair)
	want("a refill", keys.Check(first), "")
	want("a refill", f.ledger.Refill(f.Context(), "sam", first), "")
	want("again", f.ledger.Refill(f.Context(), "sam", first), fault.CodeBudgetSignature)
	change := func(number int64, was *budget.Limit, to budget.Account) budget.LimitChange {
		return eve.SignLimit(budget.LimitChange{Account: to, Before: was, Mandate: budget.Mandate{Number: number, At: now, Pair: pair,
			Ledger: ledger, Lifetime: to.Limit.Promise()}})
	}
	limit := func() *budget.Limit {
		l := f.balance(own.ID).Limit
		return &l
	}
	give := func(c budget.LimitChange) error { return f.ledger.ChangeLimit(f.Context(), "sam", c) }
	higher := change(2, limit(), limited("5"))
	want("a limit", keys.CheckLimit(higher), "")
	old := *limit()
	old.Epsilon--
	want("of another limit before", give(change(2, &old, limited("5"))), fault.CodeBudgetSignature)
	want("of an account that is not there", give(change(2, nil, limited("5"))), fault.CodeBudgetSignature)
	want("of another number", give(change(1, limit(), limited("5"))), fault.CodeBudgetSignature)
	for _, ledger = range others {
		want("a limit for another ledger", give(change(2, limit(), limited("5"))), fault.CodeBudgetSignature)
	}
	ledger = here
	want("a limit", give(higher), "")
	want("again", give(higher), fault.CodeBudgetSignature)
	stale := change(3, limit(), limited("6"))
	want("less, alone", set(limited("4")), "")
	want("after it was lowered", give(stale), fault.CodeBudgetSignature)
	want("a new account", give(change(1, nil, opened)), "")
	if b := f.balance(own.ID); b.Refills != 2 || b.Limit.Epsilon != 4*unit {
		f.Errorf("%+v", b)
	}

	// Policies.
	approve := func(replaces int64, pair budget.Pair, at time.Time) *budget.Approval {
		a := eve.SignPolicy(budget.PolicyChange{Dataset: dataset, Replaces: replaces, Document: sha256.Sum256([]byte("text")),
			Approval: &budget.Approval{Pair: pair, At: at, Ledger: ledger}})
		return &a
	}
	want("what takes two", policy([]string{"cap", "unit"}, []string{"unit"}, nil), fault.CodePolicySignature)
	want("a kind less", policy([]string{"unit"}, nil, nil), fault.CodePolicySignature)
	want("none", policy(nil, nil, nil), fault.CodePolicySignature)
	want("one steward", policy(nil, nil, approve(1, budget.Pair{Proposer: "sam", Approver: "sam"}, now)), fault.CodePolicySignature)
	want("too old", policy(nil, nil, approve(1, pair, now.Add(-25*time.Hour))), fault.CodePolicySignature)
	want("not yet", policy(nil, nil, approve(1, pair, now.Add(time.Hour))), fault.CodePolicySignature)
	for _, ledger = range others {
		want("a policy for another ledger", policy([]string{"cap", "unit"}, []string{"unit"}, approve(1, pair, now)), fault.CodePolicySignature)
	}
	ledger = here
	late := analystAccount("dora", f.limit(budget.Pure, "10", ""))
	late.Version = 1
	f.reserve(f.charge(pure(1000), late))
	later := analystAccount("erin", late.Limit)
	later.Version = 1
	f.reserve(f.charge(pure(1000), later))
	want("what takes two", policy([]string{"cap", "unit"}, []string{"unit"}, approve(1, pair, now)), "")

	// A limit of the policy before.
	before = f.everything()
	old = late.Limit
	given := limited("9")
	given.ID = late.ID
	want("a limit of an older policy", set(given), fault.CodeBudgetSignature)
	want("a limit of an older policy, where there are keys", f.ledger.LowerLimit(f.Context(), "sam", given), fault.CodeBudgetSignature)
	want("a limit that is signed over one of an older policy", give(change(1, &old, given)), fault.CodeBudgetSignature)
	raise := refill(1, 11*unit, pair)
	raise.Account = late.ID
	want("a refill of one of an older policy", f.ledger.Refill(f.Context(), "sam", eve.SignRefill(raise)), fault.CodeBudgetSignature)
	f.unchanged(before)
	given.ID = later.ID
	want("a limit that is signed over none", give(change(1, nil, given)), "")
	given.ID = late.ID
	late.Limit, late.Version = f.limit(budget.Pure, "1", ""), 2
	want("of the policy in force", f.ledger.SetLimit(f.Context(), budget.ByPolicy, late), "")
	want("more than that", set(given), fault.CodeBudgetSignature)
	given.Limit = f.limit(budget.Pure, "0.5", "")
	want("less than that", set(given), "")

	want("none", policy(nil, []string{"two_for"}, approve(2, pair, now)), "")
	opened.ID.Name = "carl"
	want("an account, alone again", set(opened), "")
	f.checkTwoStewards(keys)
}

// checkTwoStewards follows the journal, and journals in which a signature is another one, is missing, or stands in another entry.
func (f *fixture) checkTwoStewards(keys journal.StewardKeys) {
	f.Helper()
	entries := f.entries()
	slices.Reverse(entries)
	follow := func(keys journal.StewardKeys, change func(i int, e *budget.Entry)) (*journal.Auditor, int) {
		auditor := journal.NewAuditor(dataset, keys)
		for i, e := range entries {
			change(i, &e)
			if auditor.Add(e) != nil {
				return auditor, i
			}
		}
		return auditor, len(entries)
	}
	as := func(int, *budget.Entry) {}
	if auditor, at := follow(keys, as); at != len(entries) || auditor.Signed != 1 || auditor.Approved != 5 || auditor.Unsigned != 0 {
		f.Errorf("%+v at %d of %d", auditor, at, len(entries))
	}
	signed := 0
	for i, e := range entries {
		text := string(e.AccountText)
		if !strings.Contains(text, `"approver":"eve"`) {
			continue
		}
		signed++
		for name, edit := range map[string]func(string) string{
			"another approver": func(s string) string { return strings.Replace(s, `"approver":"eve"`, `"approver":"sam"`, 1) },
			"another proposer": func(s string) string { return strings.Replace(s, `"proposer":"sam"`, `"proposer":"bob"`, 1) },
			"another time":     func(s string) string { return strings.Replace(s, `"signed_at":`, `"signed_at":1`, 1) },
			"another text": func(s string) string {
				return strings.NewReplacer(`"document_sha256":"9`, `"document_sha256":"8`, `"epsilon_pico":`, `"epsilon_pico":1`,
					`"lifetime_epsilon_pico":`, `"lifetime_epsilon_pico":1`).Replace(s)
			},
			"another signature": func(s string) string {
				at := strings.Index(s, `"signature":"`) + len(`"signature":"`)
				return s[:at] + map[bool]string{true: "B", false: "A"}[s[at] == 'A'] + s[at+1:]
			},
		} {
			edited := edit(text)
			if edited == text {
				f.Fatalf("%s: nothing changes in %s", name, text)
			}
			if _, at := follow(keys, func(j int, e *budget.Entry) {
				if j == i {
					e.AccountText = []byte(edited)
				}
			}); at > i {
				f.Errorf("%s is not found in %s", name, text)
			}
		}
	}
	if signed != 6 {
		f.Errorf("%d entries are signed by two", signed)
	}
	// Journals from before signatures named ledgers have none; once one does, all do, and all the same.
	named := regexp.MustCompile(`,?"ledger":"[0-9a-f]{64}"`)
	for what, c := range map[string]struct {
		instead string
		from    int
		found   bool
	}{
		"older": {"", 0, false}, "older again": {"", 1, true}, "another ledger": {`,"ledger":"` + strings.Repeat("ab", 32) + `"`, 1, true},
		"another ledger, all": {`,"ledger":"` + strings.Repeat("ab", 32) + `"`, 0, true}, "no ledger yet": {`,"ledger":"none"`, 0, true},
	} {
		seen := 0
		_, at := follow(nil, func(_ int, e *budget.Entry) {
			if named.Match(e.AccountText) {
				if seen++; seen > c.from {
					e.AccountText = named.ReplaceAll(e.AccountText, []byte(c.instead))
				}
			}
		})
		if (at != len(entries)) != c.found || seen == 0 {
			f.Errorf("%s: it ends at %d of %d", what, at, len(entries))
		}
	}
	// Entries that do not say under which policy they were made are older than this rule.
	for under, found := range map[string]bool{`,"under_policy_version":2`: true, "": false} {
		edits := 0
		_, at := follow(keys, func(_ int, e *budget.Entry) {
			text := string(e.AccountText)
			if strings.Contains(text, `"name":"dora"`) {
				edited := strings.NewReplacer(`"policy_version":2`, `"policy_version":1`, `,"under_policy_version":2`, under).Replace(text)
				if edited != text {
					edits++
				}
				e.AccountText = []byte(edited)
			}
		})
		if (at != len(entries)) != found || edits == 0 {
			f.Errorf("a limit of an older policy that one steward changed, with %q: it ends at %d of %d", under, at, len(entries))
		}
	}
	others := slices.Clone(keys)
	others[1].Steward = "mallory"
	if _, at := follow(others, as); at == len(entries) {
		f.Error("the key of somebody else is taken")
	}
	if _, at := follow(nil, as); at != len(entries) {
		f.Errorf("without keys it ends at %d", at)
	}
	if _, at := follow(keys, func(_ int, e *budget.Entry) {
		if e.Kind == budget.EntryPolicy {
			e.AccountText = []byte(strings.Replace(string(e.AccountText), `"approval":{`, `"approved":{`, 1))
		}
	}); at == len(entries) {
		f.Error("policies that nobody signed are not found")
	}
}
