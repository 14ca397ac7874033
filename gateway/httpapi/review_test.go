package httpapi

import (
	"context"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// A steward sees over HTTP what applying a file would change, loosen and renew; nothing changes by looking. All that is wrong with a file
// is listed at once.
func TestPolicyReviews(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam := f.client("sam:steward")
	check := func(edits ...string) *api.PolicyReview {
		t.Helper()
		review, err := sam.CheckPolicy(t.Context(), "census", []byte(strings.NewReplacer(edits...).Replace(gatewaytest.Policy)))
		if err != nil {
			t.Fatal(err)
		}
		return review
	}
	same := check()
	if !same.InForce || same.Version != 1 || len(same.Changes) != 0 || !strings.HasPrefix(same.Renews, "nothing") || len(same.Problems) != 0 {
		t.Errorf("%+v", same)
	}
	if !slices.Contains(same.Noise, api.TableNoise{Table: "visits", Text: "count(*) by 12 keys at epsilon 0.1: ± 300"}) {
		t.Errorf("noise %v", same.Noise)
	}
	if len(same.Warnings) != 2 || same.Warnings[0].Line != 20 || !strings.Contains(same.Warnings[0].Text, "22,026") {
		t.Errorf("warnings %v", same.Warnings)
	}
	other := check("epsilon: 10,", "epsilon: 20,", "max_rows: 5", "max_rows: 4", "      secret: {expose: false}\n", "")
	want := []api.PolicyDifference{
		{Effect: "loosens", Text: "budgets.each of group analysts.epsilon: 10 → 20"},
		{Effect: "loosens", Text: "tables.people.columns.secret: hidden → none"},
		{Effect: "changes", Text: "tables.visits.max_rows: 5 → 4"},
	}
	if !slices.Equal(other.Changes, want) || other.InForce ||
		other.Renews != "answers that read what changes of people, visits: asked again, they are released, and charged, anew" {
		t.Errorf("%+v", other)
	}
	if budgets := check("epsilon: 10,", "epsilon: 20,"); !strings.HasPrefix(budgets.Renews, "nothing") || budgets.InForce {
		t.Errorf("%+v", budgets)
	}
	if data := check("dataset: census\n", "dataset: census\ndata_version: 2026-03\n"); !strings.HasPrefix(data.Renews, "every answer") {
		t.Errorf("%+v", data)
	}
	wrong := check("age:", "aeg:", "income:", "incom:")
	if len(wrong.Problems) != 2 || wrong.Problems[0].Line != 8 || wrong.Problems[1].Line != 9 || wrong.Problems[0].Hint == "" {
		t.Errorf("%+v", wrong)
	}
	if text, version, err := sam.Policy(t.Context(), "census"); err != nil || version != 1 || string(text) != gatewaytest.Policy {
		t.Errorf("looking made version %d (%v)", version, err)
	}
	_, err := f.client("ana:analyst").CheckPolicy(t.Context(), "census", []byte(gatewaytest.Policy))
	if codeOfError(err) != fault.CodeAuthForbidden {
		t.Errorf("an analyst: %v", err)
	}
	if _, err := sam.CheckPolicy(t.Context(), "nothing", []byte(gatewaytest.Policy)); codeOfError(err) != fault.CodeUnknownDataset {
		t.Errorf("no dataset: %v", err)
	}
	applied, err := sam.SetPolicy(t.Context(), "census", []byte(strings.Replace(gatewaytest.Policy, "epsilon: 10,", "epsilon: 20,", 1)), 1)
	if err != nil || applied.Version != 2 {
		t.Fatal(applied, err)
	}
	if back := check(); len(back.Changes) != 1 || back.Changes[0].Effect != "tightens" || back.Version != 2 {
		t.Errorf("%+v", back)
	}
}

// Who hangs up while a policy is checked, as a page does whose reader types on, is told that; the schema is not called unreadable.
func TestPolicyReviewsThatAreStopped(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := f.ReviewPolicy(gone, gatewaytest.Dataset, []byte(gatewaytest.Policy)); fault.CodeOf(err) != fault.CodeRequestGone {
		t.Errorf("%v", err)
	}
}
