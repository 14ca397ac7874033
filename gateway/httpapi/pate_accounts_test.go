package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/pate"
)

// buyOf asks for labels at σ 10: ρ 0.01 each.
func buyOf(t testing.TB, client *api.Client, from, to int) *api.LabelResponse {
	t.Helper()
	answer, err := client.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(from, to), Mechanism: "gnmax", Sigma: "10"}, "")
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestLabelsOfOthersCostOwnAccounts: a label that somebody else paid for is the same label, costs the caller's own
// account what it cost then, and the dataset and the ensemble nothing; from then on it is free.
//
// covers: L5
func TestLabelsOfOthersCostOwnAccounts(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	sam, mel, max := f.client("sam:steward"), f.client("mel:ml"), f.client("max:ml")
	first := buyOf(t, mel, 0, 5)
	shared := func() string {
		t.Helper()
		dataset, err := sam.Account(t.Context(), gatewaytest.Dataset, "dataset")
		if err != nil {
			t.Fatal(err)
		}
		ensemble, err := sam.Ensemble(t.Context(), "digits")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(dataset.Spent, ensemble.Spent)
	}
	before := shared()
	second := buyOf(t, max, 0, 5)
	for i, l := range second.Labels {
		if *l.Label != *first.Labels[i].Label || l.Replayed {
			t.Errorf("%+v, and was sold as %+v", l, first.Labels[i])
		}
	}
	if second.Spent.Rho != "0.05" || second.ReleaseID == "" || shared() != before {
		t.Errorf("paid %+v; shared accounts %s, then %s", second.Spent, before, shared())
	}
	if third := buyOf(t, max, 0, 5); third.Spent.Rho != "0" || !third.Labels[0].Replayed {
		t.Errorf("%+v", third)
	}
	// Of a batch, each part costs whom it concerns.
	if mixed := buyOf(t, max, 4, 7); mixed.Spent.Rho != "0.02" || !mixed.Labels[0].Replayed || mixed.Labels[1].Replayed {
		t.Errorf("%+v", mixed)
	}
	before = shared()
	if mixed := buyOf(t, mel, 5, 8); mixed.Spent.Rho != "0.03" || shared() == before {
		t.Errorf("%+v", mixed)
	}
	// What a caller cannot pay for is not shown, even if somebody bought it.
	poor := f.client("poor:ml")
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "analyst:poor", api.BudgetLimit{Form: "zcdp", Rho: "0.005"}); err != nil {
		t.Fatal(err)
	}
	ask := api.LabelRequest{Queries: queries(0, 1), Mechanism: "gnmax", Sigma: "10"}
	if _, err := poor.Labels(t.Context(), "digits", ask, ""); codeOfError(err) != fault.CodeBudgetExhausted {
		t.Errorf("%v", err)
	}
	// What still fits is said in labels, by the own account alone, and is so.
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "analyst:poor", api.BudgetLimit{Form: "zcdp", Rho: "0.035"}); err != nil {
		t.Fatal(err)
	}
	ask.Queries = queries(0, 8)
	_, err := poor.Labels(t.Context(), "digits", ask, "")
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Extra["labels"] != "3" || !strings.HasPrefix(problem.Hint, "3 labels still fit") {
		t.Errorf("%v", err)
	}
	buyOf(t, poor, 0, 3)
	ask.Queries = queries(3, 4)
	if _, err = poor.Labels(t.Context(), "digits", ask, ""); !errors.As(err, &problem) || !strings.HasPrefix(problem.Hint, "no label") {
		t.Errorf("%v", err)
	}
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "analyst:poor", api.BudgetLimit{Form: "zcdp", Rho: "9"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "ensemble:digits", api.BudgetLimit{Form: "zcdp", Rho: "0.001"}); err != nil {
		t.Fatal(err)
	}
	ask.Queries = queries(10, 14)
	problem = nil
	if _, err = poor.Labels(t.Context(), "digits", ask, ""); !errors.As(err, &problem) || problem.Extra["labels"] != "" ||
		strings.Contains(problem.Hint, "label") {
		t.Errorf("of a shared account: %v", err)
	}
}

// TestEnsemblesShowOwnPurchases: to those who buy labels an ensemble shows what was declared and what they bought; spent and remaining of
// the account that all share are for stewards, and nothing is shown to those who cannot buy. Estimates count own purchases.
//
// covers: L4 L5
func TestEnsemblesShowOwnPurchases(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	sam, mel, max := f.client("sam:steward"), f.client("mel:ml"), f.client("max:ml")
	view := func(client *api.Client) string {
		t.Helper()
		shown, err := client.Ensemble(t.Context(), "digits")
		if err != nil {
			t.Fatal(err)
		}
		count := int64(10)
		estimate, err := client.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Mechanism: "gnmax", Sigma: "10", Count: &count})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := client.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Mechanism: "gnmax", Sigma: "10",
			Queries: queries(0, 10)})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v %+v %+v", shown, estimate, keys)
	}
	before := view(max)
	buyOf(t, mel, 0, 5)
	if after := view(max); after != before {
		t.Errorf("another's purchase changes what is shown:\n%s\n%s", before, after)
	}
	if shown, err := mel.Ensemble(t.Context(), "digits"); err != nil || shown.Answered != 5 || shown.Limit != nil || shown.Spent.Rho != "" {
		t.Errorf("%+v, %v", shown, err)
	}
	if shown, err := sam.Ensemble(t.Context(), "digits"); err != nil || shown.Answered != 5 || shown.Spent.Rho != "0.05" {
		t.Errorf("%+v, %v", shown, err)
	}
	// gil is no member of a group with an account.
	if _, err := f.client("gil:nobody").Ensemble(t.Context(), "digits"); err == nil {
		t.Error("who cannot buy is shown an ensemble")
	}
}

// TestFrozenCallersSeeOwnLabelsOnly: where releases are shared, a freeze ends what others' purchases tell.
//
// covers: L5
func TestFrozenCallersSeeOwnLabelsOnly(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	policy := strings.Replace(gatewaytest.Policy, "neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1,
		Text: []byte(policy)}); err != nil {
		t.Fatal(err)
	}
	sealedEnsemble(t, f, "digits", 20)
	sam, mel, max := f.client("sam:steward"), f.client("mel:ml"), f.client("max:ml")
	buyOf(t, mel, 0, 5)
	if free := buyOf(t, max, 0, 5); free.Spent.Rho != "0" || !free.Labels[0].Replayed {
		t.Errorf("releases are shared: %+v", free)
	}
	buyOf(t, max, 5, 6)
	if _, err := sam.Freeze(t.Context(), gatewaytest.Dataset, "analyst:max", true); err != nil {
		t.Fatal(err)
	}
	if own := buyOf(t, max, 5, 6); own.Spent.Rho != "0" || !own.Labels[0].Replayed {
		t.Errorf("%+v", own)
	}
	ask := api.LabelRequest{Queries: queries(0, 1), Mechanism: "gnmax", Sigma: "10"}
	if _, err := max.Labels(t.Context(), "digits", ask, ""); codeOfError(err) != fault.CodeBudgetFrozen {
		t.Errorf("%v", err)
	}
}

// TestSettlementsKeepAShare: a check that cannot pass does not let its caller reserve shared accounts for its price: thresholds that noise
// alone reaches are refused, and of what is reserved an eighth is kept.
//
// covers: L1
func TestSettlementsKeepAShare(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	mel := f.client("mel:ml")
	ask := api.LabelRequest{Queries: queries(4, 5), Mechanism: "confident", Sigma1: "10000000", Sigma2: "5", Threshold: "1000000000"}
	if _, err := mel.Labels(t.Context(), "digits", ask, ""); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("%v", err)
	}
	// 25 votes of 100 and noise of 1 do not reach 106: the probability is below 10⁻¹⁰⁰⁰. The answer would cost 0.04, the check costs 0.5.
	ask.Sigma1, ask.Sigma2, ask.Threshold = "50", "2", "400"
	answer, err := mel.Labels(t.Context(), "digits", ask, "")
	if err != nil || answer.Labels[0].Status != "rejected" || answer.WorstCase.Rho != "0.2502" || answer.Spent.Rho != "0.031275" {
		t.Errorf("%+v, %v", answer, err)
	}
	sam := f.client("sam:steward")
	for _, account := range []string{"dataset", "ensemble:digits", "analyst:mel"} { // the purchase had two levels: answered and rejected
		got, err := sam.Account(t.Context(), gatewaytest.Dataset, account)
		if err != nil || got.Spent.Rho != "0.031275" || got.Spent.Tail != "2e-18" {
			t.Errorf("%s: %+v, %v", account, got, err)
		}
	}
}

// TestLookUpsOfFreshEnsembles: the labels of a fresh ensemble, for which PostgreSQL has no statistics yet, are looked up in a time that is
// linear in their number.
//
// covers: L9
func TestLookUpsOfFreshEnsembles(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{}, 4)
	const n = 50_000
	sealedEnsemble(t, f, "digits", n)
	mel, sam := f.client("mel:ml"), f.client("sam:steward")
	for _, account := range []string{"dataset", "analyst:mel", "ensemble:digits"} {
		if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, account, api.BudgetLimit{Form: "zcdp", Rho: "100000"}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if _, err := mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Mechanism: "gnmax", Sigma: "10",
		Queries: queries(0, 8000)}); err != nil {
		t.Fatal(err)
	}
	estimated := time.Since(began)
	began = time.Now()
	buyOf(t, mel, 0, n)
	bought := time.Since(began)
	t.Logf("estimate of 8,000 keys: %v; purchase of %d labels: %v", estimated, n, bought)
	// Nested loops took 7.7 s for the first, and the second failed after 120 s. Without a neighbour they take 0.2 s and 10
	// s at most.
	if estimated > 4*time.Second || bought > 60*time.Second {
		t.Error("too slow")
	}
}

// TestVotesHaveOneDeclaration: a partition of people belongs to one ensemble, votes that were sealed to one dataset and
// to as many teachers a person as were declared first; the parameters of a sanitised ε are those that the votes were
// first sealed with.
//
// covers: L6 L7
func TestVotesHaveOneDeclaration(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam := f.client("sam:steward")
	partition, other, five, one := strings.Repeat("ab", 32), strings.Repeat("cd", 32), int64(5), int64(1)
	define := func(name, partition string, k *int64, sanitise *api.SanitiseParameters) error {
		_, err := sam.DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: digits(),
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "10"}, PartitionSHA256: partition, MaxTeachersPerPerson: k, Sanitise: sanitise})
		return err
	}
	seal := func(name string, n int) error {
		if _, err := sam.LoadVotes(t.Context(), name, "text/csv", "", strings.NewReader(votes(n))); err != nil {
			t.Fatal(err)
		}
		_, err := sam.SealEnsemble(t.Context(), name)
		return err
	}
	if err := define("digits", partition, &five, nil); err != nil {
		t.Fatal(err)
	}
	if err := seal("digits", 10); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if codeOfError(err) != fault.CodePateEnsemble {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("fewer teachers a person", define("digits", partition, &one, nil))
	refused("fewer teachers a person, over another partition", define("digits", other, &one, nil))
	refused("the partition under another name", define("others", partition, &five, nil))
	if err := define("others", other, &one, nil); err != nil {
		t.Fatal(err)
	}
	refused("the votes with fewer teachers a person under another name", seal("others", 10))
	if err := define("others", other, &five, nil); err != nil {
		t.Fatal(err)
	}
	refused("the votes under another name, whose account would sell them again", seal("others", 10))
	if err := seal("others", 11); err != nil {
		t.Error(err)
	}
	if err := define("digits", partition, &five, &api.SanitiseParameters{Order: "8", SigmaSS: "8", Delta: "1e-7"}); err != nil {
		t.Fatal(err)
	}
	refused("parameters that are chosen with the votes in view", seal("digits", 10))
	if err := seal("digits", 12); err != nil {
		t.Error(err)
	}
}

// TestPartitionsAreBoundWhenSealed: of two ensembles over one partition of people whose votes were both loaded before
// either was sealed, one is sealed. Where an earlier version of the gateway sealed both, the second sells nothing and
// publishes no ε; what was bought of it stays readable.
//
// covers: L6
func TestPartitionsAreBoundWhenSealed(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	partition, five, one := strings.Repeat("ab", 32), int64(5), int64(1)
	load := func(name string, k *int64, n int) {
		t.Helper()
		if _, err := sam.DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: digits(),
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "10"}, PartitionSHA256: partition, MaxTeachersPerPerson: k,
			Sanitise: &api.SanitiseParameters{Order: "8", SigmaSS: "8", Delta: "1e-7"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := sam.LoadVotes(t.Context(), name, "text/csv", "", strings.NewReader(votes(n))); err != nil {
			t.Fatal(err)
		}
	}
	load("digits", &five, 10)
	load("others", &one, 11)
	load("third", &five, 12)
	if _, err := sam.SealEnsemble(t.Context(), "digits"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"others", "third"} {
		if _, err := sam.SealEnsemble(t.Context(), name); codeOfError(err) != fault.CodePateEnsemble {
			t.Errorf("%s over the same people: %v", name, err)
		}
	}
	const seals = "UPDATE noisegate.pate_ensemble SET sealed_by = 'sam', sealed_at = clock_timestamp() WHERE name = 'others'"
	f.Control.Exec(t, strings.Replace(seals, "clock_timestamp()", "'2026-01-01'", 1)) // before digits
	ask := api.LabelRequest{Queries: queries(0, 3), Mechanism: "confident", Sigma1: "20", Sigma2: "15", Threshold: "70"}
	if _, err := mel.Labels(t.Context(), "others", ask, ""); err != nil {
		t.Fatal(err)
	}
	f.Control.Exec(t, "ALTER TABLE noisegate.pate_ensemble DISABLE TRIGGER sealed", seals,
		"ALTER TABLE noisegate.pate_ensemble ENABLE TRIGGER sealed")
	if got, err := mel.Labels(t.Context(), "others", ask, ""); err != nil || !got.Labels[0].Replayed {
		t.Errorf("what was bought: %+v, %v", got, err)
	}
	entries := f.Entries(t)
	if _, err := sam.SanitisedEpsilon(t.Context(), "others", api.AnalysisRequest{Mechanism: "confident", Sigma1: "20", Sigma2: "15",
		Threshold: "70"}); codeOfError(err) != fault.CodePateEnsemble {
		t.Errorf("an epsilon: %v", err)
	}
	ask.Queries = queries(2, 4)
	if _, err := mel.Labels(t.Context(), "others", ask, ""); codeOfError(err) != fault.CodePateEnsemble {
		t.Errorf("a label of people that belong to another ensemble: %v", err)
	}
	if f.Entries(t) != entries {
		t.Error("a refusal changed the ledger")
	}
	if _, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(2, 4), Mechanism: "gnmax", Sigma: "100"},
		""); err != nil {
		t.Errorf("the first: %v", err)
	}
}

// TestEstimatesReadNothingOfOthers: an estimate counts what the caller bought, without a look at what was released,
// which others may have bought: the time that it takes is a function of what is asked. Where releases are shared it
// needs that look, and cannot be made without.
//
// covers: L5 L9
func TestEstimatesReadNothingOfOthers(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	mel, max := f.client("mel:ml"), f.client("max:ml")
	buyOf(t, mel, 0, 5)
	buyOf(t, max, 3, 10)
	f.Control.Exec(t, "REVOKE SELECT ON noisegate.pate_answer FROM noisegate")
	ask := api.LabelEstimateRequest{Queries: queries(0, 20), Mechanism: "gnmax", Sigma: "10"}
	for client, want := range map[*api.Client]int64{mel: 5, max: 7, f.client("new:ml"): 0} {
		if e, err := client.EstimateLabels(t.Context(), "digits", ask); err != nil || e.Replayed != want || e.Queries != 20 {
			t.Errorf("%+v, %v, want %d", e, err, want)
		}
	}
	policy := strings.Replace(gatewaytest.Policy, "neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1,
		Text: []byte(policy)}); err != nil {
		t.Fatal(err)
	}
	if e, err := mel.EstimateLabels(t.Context(), "digits", ask); codeOfError(err) != fault.CodeDataUnavailable {
		t.Errorf("%+v, %v", e, err)
	}
	f.Control.Exec(t, "GRANT SELECT ON noisegate.pate_answer TO noisegate")
	if e, err := mel.EstimateLabels(t.Context(), "digits", ask); err != nil || e.Replayed != 10 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestPurchasesAreBoundedBeforeTheCharge: what a purchase draws after its charge is bounded before it, so that it cannot fail for its size.
//
// covers: L9
func TestPurchasesAreBoundedBeforeTheCharge(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{}, 4)
	classes, counts := make([]string, pate.MaxClasses), make([]string, pate.MaxClasses)
	for i := range classes {
		classes[i], counts[i] = fmt.Sprintf("c%d", i), "0"
	}
	counts[7] = "100"
	const most = 104 // 2²⁰ counts of 10,000 classes
	var votes strings.Builder
	fmt.Fprintf(&votes, "query,%s\n", strings.Join(classes, ","))
	for i := range most + 1 {
		fmt.Fprintf(&votes, "q%d,%s\n", i, strings.Join(counts, ","))
	}
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	if _, err := sam.DefineEnsemble(t.Context(), "wide", api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: classes,
		Budget: &api.BudgetLimit{Form: "zcdp", Rho: "100000"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.LoadVotes(t.Context(), "wide", "text/csv", "", strings.NewReader(votes.String())); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), "wide"); err != nil {
		t.Fatal(err)
	}
	ask := api.LabelRequest{Queries: queries(0, most), Mechanism: "gnmax", Sigma: "40", Return: "histogram"}
	for range 2 { // the second time free
		got, err := mel.Labels(t.Context(), "wide", ask, "")
		if err != nil || len(got.Labels) != most || len(got.Labels[0].Histogram) != pate.MaxClasses {
			t.Fatalf("%v", err)
		}
	}
	before, err := sam.Account(t.Context(), gatewaytest.Dataset, "dataset")
	if err != nil {
		t.Fatal(err)
	}
	ask.Queries, ask.Sigma = queries(0, most+1), "41"
	if _, err := mel.Labels(t.Context(), "wide", ask, ""); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("%v", err)
	}
	after, err := sam.Account(t.Context(), gatewaytest.Dataset, "dataset")
	if err != nil || after.Spent != before.Spent {
		t.Errorf("a refusal is charged: %+v, %+v, %v", before.Spent, after.Spent, err)
	}
}
