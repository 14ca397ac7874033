package httpapi

import (
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Two stewards set the time of a ledger back whose newest entry is of the future; nobody alone does, nor with a signature under something
// else, and signatures of now hold from then on.
//
// covers: F14 A76
func TestTwoStewardsSetTheTimeBack(t *testing.T) {
	f, keys := twoStewards(t)
	sam, pair := f.client("sam:steward"), gatewaytest.Pair{For: "sam", By: "eve"}
	clock := api.Clock{To: time.Now().UTC().Truncate(time.Microsecond), Reason: "a clock was wrong"}
	setBack := func(who string, clock api.Clock, approval *api.Approval, want fault.Code) {
		t.Helper()
		clock.Approval = approval
		if _, err := f.client(who).SetBack(t.Context(), gatewaytest.Dataset, clock); codeOfError(err) != want || want == "" && err != nil {
			t.Errorf("%+v by %s: %v, want %q", clock, who, err, want)
		}
	}
	ask := func(epsilon api.Decimal) error {
		_, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset,
			SQL: "SELECT count(*) FROM people", Epsilon: epsilon}, "")
		return err
	}
	const sams = "sam:steward"
	setBack(sams, clock, keys.SetBack(pair, clock), fault.CodeRequestBody) // the time is right
	f.Control.Exec(t, "SET session_replication_role = replica; UPDATE noisegate.chain SET at = at + interval '400 days'")
	if err := ask("0.1"); err != nil {
		t.Fatal(err)
	}
	document := strings.Replace(gatewaytest.Policy+twoForAll, "epsilon: 100,", "epsilon: 200,", 1)
	policy := func(want fault.Code) {
		t.Helper()
		change := api.PolicyUpdate{Document: []byte(document), Replaces: 2, Approval: keys.Approve(pair, 2, document, time.Now())}
		if _, err := sam.UpdatePolicy(t.Context(), gatewaytest.Dataset, change); codeOfError(err) != want || want == "" && err != nil {
			t.Errorf("a policy that was signed now: %v, want %q", err, want)
		}
	}
	policy(fault.CodePolicySignature)
	later, other := clock, clock
	later.To, other.Reason = clock.To.Add(time.Hour), "another reason"
	setBack("ana:analyst", clock, keys.SetBack(pair, clock), fault.CodeAuthForbidden)
	setBack(sams, clock, nil, fault.CodeBudgetSignature)
	setBack(sams, clock, keys.SetBack(gatewaytest.Pair{For: "sam", By: "sam"}, clock), fault.CodeBudgetSignature)
	setBack("tom:steward", clock, keys.SetBack(pair, clock), fault.CodeBudgetSignature)
	setBack(sams, clock, keys.SetBack(pair, other), fault.CodeBudgetSignature)
	setBack(sams, later, keys.SetBack(pair, later), fault.CodeRequestBody)
	setBack(sams, clock, keys.SetBack(pair, clock), "")
	policy("")
	if err := ask("0.2"); err != nil {
		t.Error(err)
	}
	page, err := sam.Audit(t.Context(), gatewaytest.Dataset, "")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]time.Time{}
	for _, e := range page.Entries {
		kinds[e.Kind] = e.At
	}
	if !kinds["clock"].Equal(clock.To) {
		t.Errorf("the journal has %v", kinds)
	}
	if v, err := sam.Verify(t.Context(), gatewaytest.Dataset); err != nil || v.Broken != "" {
		t.Errorf("%+v, %v", v, err)
	}
}
