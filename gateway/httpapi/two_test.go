package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

const twoForAll = "stewards: {two_for: [public, unit, bounds, domain, cap]}\n"

// twoStewards is a gateway whose policy wants two of sam, eve and tom for everything that it can.
func twoStewards(t *testing.T) (*front, gatewaytest.Keys) {
	t.Helper()
	keys, stewards := gatewaytest.NewKeys(t, "sam", "eve", "tom")
	return wantsTwo(t, keys, stewards)
}

// wantsTwo is such a gateway, whose stewards have these keys.
func wantsTwo(t *testing.T, keys gatewaytest.Keys, stewards *gateway.Stewards) (*front, gatewaytest.Keys) {
	t.Helper()
	f := newFront(t, gatewaytest.Options{Stewards: stewards}, 4)
	if _, err := f.client("sam:steward").SetPolicy(t.Context(), gatewaytest.Dataset, []byte(gatewaytest.Policy+twoForAll), 1); err != nil {
		t.Fatal(err)
	}
	page, err := f.client("sam:steward").Audit(t.Context(), gatewaytest.Dataset, "")
	if err != nil {
		t.Fatal(err)
	}
	keys.Ledger = page.Heads[0].Ledger
	return f, keys
}

// What is signed on staging holds there, and not on production, where all else is the same: stewards, keys, policy, version, account and
// limit.
//
// covers: A76
func TestSignaturesAreForOneLedger(t *testing.T) {
	keys, stewards := gatewaytest.NewKeys(t, "sam", "eve")
	staging, keys := wantsTwo(t, keys, stewards)
	production, others := wantsTwo(t, keys, stewards)
	if keys.Ledger == others.Ledger || len(keys.Ledger) != 64 || len(others.Ledger) != 64 {
		t.Fatalf("the ledgers' names: %q and %q", keys.Ledger, others.Ledger)
	}
	const sam = "sam:steward"
	pair := gatewaytest.Pair{For: "sam", By: "eve"}
	document := strings.Replace(gatewaytest.Policy+twoForAll, "epsilon: 100,", "epsilon: 200,", 1)
	approval := keys.Approve(pair, 2, document, time.Now())
	for _, on := range []*front{staging, production} { // which opens the account
		question := api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people", Epsilon: "0.1"}
		if _, err := on.client("ana:analyst").Query(t.Context(), question, ""); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := staging.client(sam).Account(t.Context(), gatewaytest.Dataset, "dataset")
	if err != nil {
		t.Fatal(err)
	}
	limit := whole.Limit
	limit.Epsilon = "150"
	signed, refill := keys.Limit(t, pair, "dataset", whole, limit), keys.Refill(t, pair, whole, "1")
	for _, on := range []struct {
		what string
		*front
		budget, policy fault.Code
	}{{"production", production, fault.CodeBudgetSignature, fault.CodePolicySignature}, {"staging", staging, "", ""}} {
		client := on.client(sam)
		_, err := client.Refill(t.Context(), gatewaytest.Dataset, "dataset", api.Refill{Epsilon: "1", Signature: refill})
		if codeOfError(err) != on.budget {
			t.Errorf("a refill on %s: %v", on.what, err)
		}
		if on.budget == "" { // the refill has used the number
			whole, err := client.Account(t.Context(), gatewaytest.Dataset, "dataset")
			if err != nil {
				t.Fatal(err)
			}
			signed = keys.Limit(t, pair, "dataset", whole, limit)
		}
		_, err = client.ChangeAccount(t.Context(), gatewaytest.Dataset, "dataset", api.LimitChange{BudgetLimit: limit, Signature: signed})
		if codeOfError(err) != on.budget {
			t.Errorf("a limit on %s: %v", on.what, err)
		}
		_, err = client.UpdatePolicy(t.Context(), gatewaytest.Dataset, api.PolicyUpdate{Document: []byte(document), Replaces: 2,
			Approval: approval})
		if codeOfError(err) != on.policy {
			t.Errorf("a policy on %s: %v", on.what, err)
		}
	}
}

// What takes two stewards by the policy in force is refused to one, whatever the policy that comes next says of it; a second one's
// signature is for this change, its proposer, this version and today. A change that takes one steward needs none, and a signature
// that is there all the same has to hold.
//
// covers: A76
func TestTwoStewardsForAPolicy(t *testing.T) {
	f, keys := twoStewards(t)
	const raised = "epsilon: 200,"
	version := int64(2)
	text := gatewaytest.Policy + twoForAll
	edited := func(old, new string) string {
		t.Helper()
		changed := strings.Replace(text, old, new, 1)
		if changed == text {
			t.Fatalf("%q is not there", old)
		}
		return changed
	}
	give := func(what, who, document string, approval *api.Approval, want fault.Code) {
		t.Helper()
		review, err := f.client(who).CheckPolicy(t.Context(), gatewaytest.Dataset, []byte(document))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.client(who).UpdatePolicy(t.Context(), gatewaytest.Dataset, api.PolicyUpdate{Document: []byte(document), Replaces: version,
			Approval: approval})
		if codeOfError(err) != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if approval == nil && (len(review.TwoFor) > 0) != (want == fault.CodePolicySignature) {
			t.Errorf("%s: it takes two for %v, and ends in %q", what, review.TwoFor, want)
		}
		if err == nil {
			version, text = version+1, document
		}
	}
	const sam, eve = "sam:steward", "eve:steward"
	elsewhere, nowhere, unnamed := keys, keys, keys
	elsewhere.Ledger, nowhere.Ledger, unnamed.Ledger = strings.Repeat("ab", 32), gatewaytest.NoLedger, ""
	by := func(proposer, approver string) gatewaytest.Pair { return gatewaytest.Pair{For: proposer, By: approver} }
	for kind, edit := range map[string][2]string{
		"unit":   {"{row: id}", "{row: id, of: visitors}"},
		"bounds": {"[0, 100]", "[0, 99]"}, "domain": {"[north, south, west]", "[north, south]"}, "cap": {"epsilon: 100,", raised},
		"two_for": {twoForAll, ""}, "less of two_for": {"bounds, domain, cap", "bounds, domain"},
		"a secret column": {"      secret: {expose: false}\n", ""},
	} {
		give(kind, sam, edited(edit[0], edit[1]), nil, fault.CodePolicySignature)
	}
	more := edited("epsilon: 100,", raised)
	now := time.Now()
	for what, approval := range map[string]*api.Approval{
		"one steward": keys.Approve(by("sam", "sam"), version, more, now), "for another": keys.Approve(by("tom", "eve"), version, more, now),
		"who is no steward": keys.Approve(by("zoe", "eve"), version, more, now),
		"another version":   keys.Approve(by("sam", "eve"), version-1, more, now),
		"the next version":  keys.Approve(by("sam", "eve"), version+1, more, now),
		"another text":      keys.Approve(by("sam", "eve"), version, text, now),
		"the day before":    keys.Approve(by("sam", "eve"), version, more, now.Add(-25*time.Hour)),
		"tomorrow":          keys.Approve(by("sam", "eve"), version, more, now.Add(time.Hour)),
		"another ledger":    elsewhere.Approve(by("sam", "eve"), version, more, now),
		"an empty ledger":   nowhere.Approve(by("sam", "eve"), version, more, now),
		"no ledger":         unnamed.Approve(by("sam", "eve"), version, more, now),
		"another's key": {Proposer: "sam", Approver: "tom", SignedAt: now, Key: "x",
			Signature: keys.Approve(by("sam", "eve"), version, more, now).Signature},
		"nothing":              {},
		"no text that is read": {Proposer: "sam", Approver: "eve", SignedAt: now, Signature: "%"},
	} {
		give(what, sam, more, approval, fault.CodePolicySignature)
	}
	swapped := keys.Approve(by("sam", "eve"), version, more, now)
	swapped.Approver = "tom"
	give("eve's as tom's", sam, more, swapped, fault.CodePolicySignature)
	give("in another's name", eve, more, keys.Approve(by("sam", "eve"), version, more, now), fault.CodePolicySignature)
	used := keys.Approve(by("sam", "eve"), version, more, now)
	give("two", sam, more, used, "")
	back := edited(raised, "epsilon: 100,")
	give("less", sam, back, nil, "")
	give("again", sam, more, used, fault.CodePolicySignature)
	give("a signature that nothing wants, and that does not hold", sam, edited("max_epsilon_per_query: 5", "max_epsilon_per_query: 4"), used,
		fault.CodePolicySignature)

	// What somebody's own questions are charged by.
	const both = "tom:analyst,steward"
	mine := edited("{group: analysts, per: analyst, form: approx, epsilon: 10,", "{group: analysts, per: analyst, form: approx, epsilon: 20,")
	give("their own", both, mine, keys.Approve(by("tom", "tom"), version, mine, now), fault.CodePolicySignature)
	give("their own, with another", both, mine, keys.Approve(by("tom", "eve"), version, mine, now), "")

	// A header that is none.
	for _, header := range []http.Header{{api.ApprovalHeader: {"x"}}, {api.ApprovalHeader: {"{}", "{}"}}, {api.ApprovalHeader: {`{"approvers":1}`}},
		{api.ApprovalHeader: {""}}} {
		header.Set("If-Match", `"1"`)
		if _, text := f.do(t, call{method: http.MethodPut, path: "/v1/datasets/census/policy", token: sam, kind: "application/yaml", body: "x",
			header: header}); codeOf(t, text) != fault.CodeRequestBody {
			t.Errorf("%v: %s", header, text)
		}
	}
}

// Every way to a cap but a policy: none is open to one steward alone, of whatever account and scope; a second one's signature opens it,
// also to who owns the account.
//
// covers: A76
func TestTwoStewardsForCaps(t *testing.T) {
	f, keys := twoStewards(t)
	const sam, own = "sam:steward", "tom:analyst,steward"
	by := gatewaytest.Pair{For: "sam", By: "eve"}
	if _, err := f.client(own).Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people",
		Epsilon: "0.1"}, ""); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, want fault.Code) {
		t.Helper()
		if codeOfError(err) != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	limit := func(epsilon api.Decimal) api.BudgetLimit { return api.BudgetLimit{Form: "pure", Epsilon: epsilon} }
	for _, account := range []string{"dataset", "group:analysts", "group:role:analysts", "analyst:tom", "analyst:new", "ensemble:digits"} {
		_, err := f.client(sam).SetAccount(t.Context(), gatewaytest.Dataset, account, limit("1000"))
		refused("a limit of "+account, err, fault.CodeBudgetSignature)
		_, err = f.client(sam).Refill(t.Context(), gatewaytest.Dataset, account, api.Refill{Epsilon: "1"})
		if code := codeOfError(err); code != fault.CodeBudgetSignature {
			t.Errorf("a refill of %s: %v", account, err)
		}
	}
	_, err := f.client(sam).DefineEnsemble(t.Context(), "digits", api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100,
		Classes: digits(), Budget: &api.BudgetLimit{Form: "zcdp", Rho: "10"}})
	refused("an ensemble's account", err, fault.CodeBudgetSignature)

	account := func(name string) *api.Account {
		t.Helper()
		a, err := f.client(sam).Account(t.Context(), gatewaytest.Dataset, name)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	change := func(who, name string, to api.BudgetLimit, signature *api.RefillSignature, want fault.Code) {
		t.Helper()
		_, err := f.client(who).ChangeAccount(t.Context(), gatewaytest.Dataset, name, api.LimitChange{BudgetLimit: to, Signature: signature})
		refused("a limit of "+name, err, want)
	}
	whole := account("dataset")
	higher := whole.Limit
	higher.Epsilon = "150"
	signed := keys.Limit(t, by, "dataset", whole, higher)
	higher.Epsilon = "151"
	change(sam, "dataset", higher, signed, fault.CodeBudgetSignature)
	higher.Epsilon = "150"
	change("eve:steward", "dataset", higher, signed, fault.CodeBudgetSignature)
	change(sam, "dataset", higher, keys.Limit(t, gatewaytest.Pair{For: "sam", By: "sam"}, "dataset", whole, higher), fault.CodeBudgetSignature)
	change(sam, "dataset", higher, keys.Refill(t, by, whole, "50"), fault.CodeBudgetSignature)
	for _, ledger := range []string{strings.Repeat("ab", 32), gatewaytest.NoLedger, ""} {
		other := keys
		other.Ledger = ledger
		moved := *signed
		moved.Ledger = ledger
		change(sam, "dataset", higher, other.Limit(t, by, "dataset", whole, higher), fault.CodeBudgetSignature)
		change(sam, "dataset", higher, &moved, fault.CodeBudgetSignature)
		_, err := f.client(sam).Refill(t.Context(), gatewaytest.Dataset, "dataset", api.Refill{Epsilon: "1",
			Signature: other.Refill(t, by, whole, "1")})
		refused("a refill for another ledger", err, fault.CodeBudgetSignature)
	}
	change(sam, "dataset", higher, signed, "")
	change(sam, "dataset", higher, signed, fault.CodeBudgetSignature)
	change(sam, "analyst:new", limit("1"), keys.Limit(t, by, "analyst:new", nil, limit("1")), "")
	rho := api.BudgetLimit{Form: "zcdp", Rho: "10"}
	change(sam, "ensemble:digits", rho, keys.Limit(t, by, "ensemble:digits", nil, rho), "")
	ensemble(t, f, "digits") // with the cap that two gave it

	// A refill, of one's own too.
	refill := func(who string, pair gatewaytest.Pair, want fault.Code) {
		t.Helper()
		_, err := f.client(who).Refill(t.Context(), gatewaytest.Dataset, "analyst:tom", api.Refill{Epsilon: "1",
			Signature: keys.Refill(t, pair, account("analyst:tom"), "1")})
		refused("a refill", err, want)
	}
	refill(sam, gatewaytest.Pair{By: "eve"}, fault.CodeBudgetSignature)
	refill(sam, gatewaytest.Pair{For: "sam", By: "sam"}, fault.CodeBudgetSignature)
	refill(sam, gatewaytest.Pair{For: "eve", By: "sam"}, fault.CodeBudgetSignature)
	refill(own, gatewaytest.Pair{By: "eve"}, fault.CodeAuthForbidden)
	refill(own, gatewaytest.Pair{For: "sam", By: "eve"}, fault.CodeAuthForbidden)
	refill(own, gatewaytest.Pair{For: "tom", By: "eve"}, "")
	refill(sam, by, "")
	change(own, "analyst:tom", limit("30"), nil, fault.CodeAuthForbidden)
	change(own, "analyst:tom", limit("30"), keys.Limit(t, gatewaytest.Pair{For: "tom", By: "sam"}, "analyst:tom", account("analyst:tom"),
		limit("30")), "")

	// One alone lowers, freezes and thaws.
	lower := account("dataset").Limit
	lower.Epsilon = "90"
	change(sam, "dataset", lower, nil, "")
	for _, frozen := range []bool{true, false} {
		if _, err := f.client(sam).Freeze(t.Context(), gatewaytest.Dataset, "dataset", frozen); err != nil {
			t.Error(err)
		}
	}
	if v, err := f.client(sam).Verify(t.Context(), gatewaytest.Dataset); err != nil || v.Broken != "" {
		t.Errorf("%+v, %v", v, err)
	}
}

// What a policy in force gives an account that has not been charged since is no steward's to raise, or to reopen, by comparing with what
// an older one gave; nor is it signed over. The account says so. What a policy gives an account that it names is in force at once.
//
// covers: A76
func TestLimitsThatAreDue(t *testing.T) {
	const line = "  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7, max_epsilon_per_query: 5}\n"
	for what, instead := range map[string]string{"lowered": strings.Replace(line, "10,", "1,", 1), "taken away": ""} {
		t.Run(what, func(t *testing.T) {
			f, keys := twoStewards(t)
			pair := gatewaytest.Pair{For: "sam", By: "eve"}
			const sam, name = "sam:steward", "analyst:ana"
			ask := func(sql string) error {
				_, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "0.1"}, "")
				return err
			}
			if err := ask("SELECT count(*) FROM people"); err != nil {
				t.Fatal(err)
			}
			document := strings.Replace(gatewaytest.Policy+twoForAll, line, instead, 1)
			if _, err := f.client(sam).UpdatePolicy(t.Context(), gatewaytest.Dataset, api.PolicyUpdate{Document: []byte(document), Replaces: 2,
				Approval: keys.Approve(pair, 2, document, time.Now())}); err != nil {
				t.Fatal(err)
			}
			shown, err := f.client(sam).Account(t.Context(), gatewaytest.Dataset, name)
			if err != nil || !shown.Due {
				t.Fatalf("%+v, %v", shown, err)
			}
			for _, epsilon := range []api.Decimal{"9", "0.1"} {
				limit := shown.Limit
				limit.Epsilon = epsilon
				if _, err := f.client(sam).SetAccount(t.Context(), gatewaytest.Dataset, name, limit); codeOfError(err) != fault.CodeBudgetSignature {
					t.Errorf("%s, alone: %v", epsilon, err)
				}
				stale := *shown
				stale.Due = false
				_, err = f.client(sam).ChangeAccount(t.Context(), gatewaytest.Dataset, name, api.LimitChange{BudgetLimit: limit,
					Signature: keys.Limit(t, pair, name, &stale, limit)})
				if codeOfError(err) != fault.CodeBudgetSignature {
					t.Errorf("%s, signed over what is not in force: %v", epsilon, err)
				}
			}
			refill := func(before *api.Account) (*api.Account, error) {
				return f.client(sam).Refill(t.Context(), gatewaytest.Dataset, name, api.Refill{Epsilon: "1",
					Signature: keys.Refill(t, pair, before, "1")})
			}
			if _, err := refill(shown); codeOfError(err) != fault.CodeBudgetSignature {
				t.Errorf("a refill of what is not in force: %v", err)
			}
			err = ask("SELECT count(*) FROM visits")
			if instead == "" {
				if codeOfError(err) != fault.CodeBudgetNoAccount {
					t.Errorf("without a line: %v", err)
				}
				limit := shown.Limit
				limit.Epsilon = "3"
				if shown, err = f.client(sam).ChangeAccount(t.Context(), gatewaytest.Dataset, name, api.LimitChange{BudgetLimit: limit,
					Signature: keys.Limit(t, pair, name, shown, limit)}); err != nil || shown.Limit.Epsilon != "3" || shown.Due {
					t.Errorf("two give a limit: %+v, %v", shown, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if shown, err = f.client(sam).Account(t.Context(), gatewaytest.Dataset, name); err != nil || shown.Due || shown.Limit.Epsilon != "1" {
				t.Fatalf("%+v, %v", shown, err)
			}
			if shown, err = refill(shown); err != nil || shown.Limit.Epsilon != "2" {
				t.Errorf("1 and a refill of 1 are %+v, %v", shown, err)
			}
		})
	}
	t.Run("named", func(t *testing.T) {
		f, keys := twoStewards(t)
		const sam, name = "sam:steward", "dataset"
		if _, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people",
			Epsilon: "0.1"}, ""); err != nil {
			t.Fatal(err)
		}
		lower := strings.Replace(gatewaytest.Policy+twoForAll, "epsilon: 100,", "epsilon: 50,", 1)
		if _, err := f.client(sam).UpdatePolicy(t.Context(), gatewaytest.Dataset,
			api.PolicyUpdate{Document: []byte(lower), Replaces: 2}); err != nil {
			t.Fatal(err)
		}
		shown, err := f.client(sam).Account(t.Context(), gatewaytest.Dataset, name)
		if err != nil || shown.Due || shown.Limit.Epsilon != "50" {
			t.Fatalf("%+v, %v", shown, err)
		}
		limit := shown.Limit
		limit.Epsilon = "60"
		if _, err = f.client(sam).SetAccount(t.Context(), gatewaytest.Dataset, name, limit); codeOfError(err) != fault.CodeBudgetSignature {
			t.Errorf("more than the policy gives, alone: %v", err)
		}
		if shown, err = f.client(sam).Refill(t.Context(), gatewaytest.Dataset, name, api.Refill{Epsilon: "1",
			Signature: keys.Refill(t, gatewaytest.Pair{For: "sam", By: "eve"}, shown, "1")}); err != nil || shown.Limit.Epsilon != "51" {
			t.Errorf("50 and a refill of 1 are %+v, %v", shown, err)
		}
		limit.Epsilon = "40"
		if _, err = f.client(sam).SetAccount(t.Context(), gatewaytest.Dataset, name, limit); err != nil {
			t.Errorf("less, alone: %v", err)
		}
	})
}

// While bounds take two stewards, no new version of an ensemble says that a person is in fewer teachers than the one before says.
//
// covers: A76
func TestTwoStewardsForTeachersOfAPerson(t *testing.T) {
	f, keys := twoStewards(t)
	const sam = "sam:steward"
	define := func(most int64) error {
		_, err := f.client(sam).DefineEnsemble(t.Context(), "digits", api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100,
			Classes: digits(), MaxTeachersPerPerson: &most})
		return err
	}
	pair, rho := gatewaytest.Pair{For: "sam", By: "eve"}, api.BudgetLimit{Form: "zcdp", Rho: "10"}
	if _, err := f.client(sam).ChangeAccount(t.Context(), gatewaytest.Dataset, "ensemble:digits", api.LimitChange{BudgetLimit: rho,
		Signature: keys.Limit(t, pair, "ensemble:digits", nil, rho)}); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{5, 5, 7} {
		if err := define(most); err != nil {
			t.Fatalf("%d: %v", most, err)
		}
	}
	for _, most := range []int64{1, 6} {
		if err := define(most); codeOfError(err) != fault.CodePateEnsemble {
			t.Errorf("%d after 7: %v", most, err)
		}
	}
	without := strings.Replace(gatewaytest.Policy+twoForAll, "bounds, ", "", 1)
	if _, err := f.client(sam).UpdatePolicy(t.Context(), gatewaytest.Dataset, api.PolicyUpdate{Document: []byte(without), Replaces: 2,
		Approval: keys.Approve(pair, 2, without, time.Now())}); err != nil {
		t.Fatal(err)
	}
	if err := define(1); err != nil {
		t.Errorf("where bounds take one: %v", err)
	}
}
