package httpapi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// The gateway counts refusals of all that it sells: queries, fits, clusterings, scores and labels, in separate requests and in SQL, when
// they are bought and when they are estimated. What failed after its charge is not.
func TestRefusalsOfAllThatIsSold(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedForEpsilon(t, f, "digits", 10)
	ana, mel := f.client("ana:analyst"), f.client("mel:ml")
	want := map[string]int64{}
	as := func(way, who string, err error) {
		t.Helper()
		var p *api.Problem
		if !errors.As(err, &p) {
			t.Fatalf("not refused: %v", err)
		}
		want[who+" "+p.Code+way]++
	}
	refused := func(who string, err error) { t.Helper(); as("", who, err) }
	estimated := func(who string, err error) { t.Helper(); as(", estimated", who, err) }
	expect := func(what string) {
		t.Helper()
		list, err := f.Refusals(gatewaytest.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, r := range list.Refusals {
			got[r.Analyst+" "+r.Code], got[r.Analyst+" "+r.Code+", estimated"] = r.Count, r.Estimates
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	fit := incomes()
	fit.Target = "nothing"
	_, err := ana.Fit(t.Context(), fit, "")
	refused("ana", err)
	_, err = ana.EstimateFit(t.Context(), fit)
	estimated("ana", err)
	expect("fits")
	cluster := api.ClusterRequest{Dataset: gatewaytest.Dataset, From: "people", Columns: []string{"age"}, K: 1, Epsilon: "1", Delta: "1e-8"}
	_, err = ana.Cluster(t.Context(), cluster, "")
	refused("ana", err)
	_, err = ana.EstimateCluster(t.Context(), cluster)
	estimated("ana", err)
	expect("clusterings")
	for _, sql := range []string{"SELECT linregr(income, ARRAY[1, nothing]) FROM people", "SELECT linregr(income) FROM people"} {
		q := api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "1", Delta: "1e-8"}
		_, err = ana.Query(t.Context(), q, "")
		refused("ana", err)
		_, err = ana.Estimate(t.Context(), q)
		estimated("ana", err)
	}
	expect("models in SQL")
	labels := api.LabelRequest{Queries: queries(0, 10), Mechanism: "gnmax", Sigma: "-1"}
	_, err = mel.Labels(t.Context(), "digits", labels, "")
	refused("mel", err)
	one := int64(0)
	_, err = mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Count: &one, Mechanism: "gnmax", Sigma: "15"})
	estimated("mel", err)
	expect("labels")
	if _, err := mel.Labels(t.Context(), "none", labels, ""); codeOfError(err) != fault.CodePateUnknownEnsemble {
		t.Errorf("an ensemble that does not exist, and so is of no dataset: %v", err)
	}
	expect("of no dataset")
}
