package httpapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

func ages() api.ClusterRequest {
	return api.ClusterRequest{Dataset: "census", From: "people", Columns: []string{"age", "income"}, K: 3, Epsilon: "2", Delta: "1e-8"}
}

// Clusters are paid for once, in ρ, and given again free; their release is in the history; their receipt is that of the settlement.
func TestClustersOverHTTP(t *testing.T) {
	f, signer := signing(t)
	ana := f.client("ana:analyst")
	estimate, err := ana.EstimateCluster(t.Context(), ages())
	if err != nil {
		t.Fatal(err)
	}
	if !estimate.Affordable || estimate.People < 10 || estimate.SizeDeviation < 1 {
		t.Errorf("%+v", estimate)
	}
	before := f.Entries(t)
	first, err := ana.Cluster(t.Context(), ages(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Replayed || first.Spent != estimate.Price || first.Spent.Epsilon != "" ||
		first.Rho != first.Spent.Rho || len(first.Centers) != 3 ||
		len(first.Centers[2]) != 2 || len(first.Sizes) != 3 || first.Iterations != 4 || f.Entries(t) == before {
		t.Errorf("%+v", first)
	}
	after := f.Entries(t)
	for _, key := range []string{"", "k1", "k2"} {
		again, err := ana.Cluster(t.Context(), ages(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !again.Replayed || again.Spent.Rho != "0" || again.ReleaseID != first.ReleaseID {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff(first.ClusterModel, again.ClusterModel); diff != "" {
			t.Error(diff)
		}
	}
	if f.Entries(t) != after {
		t.Error("a replay changed the ledger")
	}
	release, err := ana.Release(t.Context(), first.ReleaseID)
	if err != nil {
		t.Fatal(err)
	}
	if len(release.Rows) != 3 || len(release.Columns) != 4 || release.Columns[3].Name != "size" || release.Request.Dataset != "census" {
		t.Errorf("%+v", release)
	}
	if _, err := ana.Fit(t.Context(), incomes(), "k1"); !isProblem(err, fault.CodeBudgetReplayMismatch) {
		t.Errorf("a fit under the key of clusters: %v", err)
	}
	response, text := f.do(t, call{method: "POST", path: "/v1/cluster", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","from":"visits","where":"amount > 1","columns":["amount"],"k":2,"rho":"0.2","iterations":2,
			"weights":{"amount":"2"}}`})
	if response.StatusCode != 200 || response.Header.Get("Noisegate-Replayed") != "false" {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, text)
	}
	id := response.Header.Get("Noisegate-Release-Id")
	if r := f.Receipt(t, signer, response.Header.Get("Noisegate-Receipt")); string(r.Reservation) != id {
		t.Errorf("%+v", r)
	}
}

func agesScored() api.ScoreRequest {
	return api.ScoreRequest{Dataset: "census", From: "people", Columns: []string{"age", "income"}, Centers: [][]float64{{30, 10}, {60, 20}},
		Epsilon: "2", Delta: "1e-8"}
}

// Scores are paid for once, in ρ, and given again free; their release is in the history; a refusal changes nothing in the ledger.
func TestScoresOverHTTP(t *testing.T) {
	f, _ := signing(t)
	ana := f.client("ana:analyst")
	before := f.Entries(t)
	estimate, err := ana.EstimateScore(t.Context(), agesScored())
	if err != nil {
		t.Fatal(err)
	}
	if !estimate.Affordable || estimate.SizeDeviation < 1 {
		t.Errorf("%+v", estimate)
	}
	for name, change := range map[string]func(*api.ScoreRequest){
		"no table":      func(r *api.ScoreRequest) { r.From = "" },
		"no columns":    func(r *api.ScoreRequest) { r.Columns = nil },
		"no centres":    func(r *api.ScoreRequest) { r.Centers = nil },
		"one centre":    func(r *api.ScoreRequest) { r.Centers = r.Centers[:1] },
		"a short one":   func(r *api.ScoreRequest) { r.Centers[1] = r.Centers[1][:1] },
		"another score": func(r *api.ScoreRequest) { r.Score = []string{"silhouette"} },
		"a score twice": func(r *api.ScoreRequest) { r.Score = []string{"calinski_harabasz", "calinski_harabasz"} },
		"a weight of 0": func(r *api.ScoreRequest) { r.Weights = map[string]api.Decimal{"age": "0"} },
		"two prices":    func(r *api.ScoreRequest) { r.Rho = "1" },
	} {
		r := agesScored()
		change(&r)
		var p *api.Problem
		if _, err := ana.Score(t.Context(), r, ""); !errors.As(err, &p) || p.Status < 400 || p.Status >= 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Entries(t) != before {
		t.Error("a refusal or an estimate changed the ledger")
	}
	first, err := ana.Score(t.Context(), agesScored(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Replayed || first.Spent != estimate.Price || first.Rho != first.Spent.Rho || len(first.Scores) != 2 ||
		first.Scores[1].Score != "simplified_silhouette" {
		t.Errorf("%+v", first)
	}
	after := f.Entries(t)
	for _, key := range []string{"", "k1"} {
		again, err := ana.Score(t.Context(), agesScored(), key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.ScoreModel, again.ScoreModel); diff != "" || !again.Replayed || again.Spent.Rho != "0" {
			t.Errorf("%s %+v", diff, again)
		}
	}
	release, err := ana.Release(t.Context(), first.ReleaseID)
	if err != nil || f.Entries(t) != after {
		t.Fatal(err, "or a replay changed the ledger")
	}
	if len(release.Rows) != 2 || len(release.Columns) != 2 {
		t.Errorf("%+v", release)
	}
	if _, err := ana.Cluster(t.Context(), ages(), "k1"); !isProblem(err, fault.CodeBudgetReplayMismatch) {
		t.Errorf("clusters under the key of scores: %v", err)
	}
}

func isProblem(err error, code fault.Code) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Code == string(code)
}

// A clustering that is refused changes nothing in the ledger, and says what is expected.
func TestClusterRefusalsAreFree(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	before := f.Entries(t)
	for name, c := range map[string]struct {
		change func(*api.ClusterRequest)
		code   fault.Code
	}{
		"no dataset":          {func(r *api.ClusterRequest) { r.Dataset = "" }, fault.CodeRequestMissingField},
		"no table":            {func(r *api.ClusterRequest) { r.From = "" }, fault.CodeRequestMissingField},
		"no columns":          {func(r *api.ClusterRequest) { r.Columns = nil }, fault.CodeRequestMissingField},
		"no k":                {func(r *api.ClusterRequest) { r.K = 0 }, fault.CodeRequestMissingField},
		"one centre":          {func(r *api.ClusterRequest) { r.K = 1 }, fault.CodeFit},
		"too many centres":    {func(r *api.ClusterRequest) { r.K = 1 << 40 }, fault.CodeFit},
		"no steps":            {func(r *api.ClusterRequest) { r.Iterations = new(int64(0)) }, fault.CodeFit},
		"too many steps":      {func(r *api.ClusterRequest) { r.Iterations = new(int64(21)) }, fault.CodeFit},
		"a weight of nothing": {func(r *api.ClusterRequest) { r.Weights = map[string]api.Decimal{"height": "1"} }, fault.CodeFit},
		"a weight of 0":       {func(r *api.ClusterRequest) { r.Weights = map[string]api.Decimal{"age": "0"} }, fault.CodeFit},
		"a text":              {func(r *api.ClusterRequest) { r.Columns = []string{"region"} }, fault.CodeTypeMismatch},
		"two prices":          {func(r *api.ClusterRequest) { r.Rho = "1" }, fault.CodeRequestConflictingPrice},
		"no delta":            {func(r *api.ClusterRequest) { r.Delta = "" }, fault.CodeRequestDelta},
		"steps below the floor": {func(r *api.ClusterRequest) { r.Epsilon, r.Delta, r.Rho = "", "", "0.000002" },
			fault.CodeBudgetUnderFloor},
		"more than there is": {func(r *api.ClusterRequest) { r.Epsilon, r.Delta, r.Rho = "", "", "100" }, fault.CodeBudgetOverQueryCap},
		"a hidden column":    {func(r *api.ClusterRequest) { r.Where = "secret = 'canary-1'" }, fault.CodeUnknownColumn},
	} {
		r := ages()
		c.change(&r)
		if _, err := ana.Cluster(t.Context(), r, ""); !isProblem(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if f.Entries(t) != before {
		t.Error("a refusal changed the ledger")
	}
}

// Where the guarantee covers time, clusters, which take several passes, are refused.
func TestDelayCoversNoClusters(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	text := strings.Replace(gatewaytest.Policy, "tables:\n", "timing: {unit_ms: 5, epsilon: 0.5, delta: 1e-9}\ntables:\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: "census", By: "sam", Replaces: 1, Text: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	_, err := f.client("ana:analyst").EstimateCluster(t.Context(), ages())
	if !isProblem(err, fault.CodeFit) || !strings.Contains(err.Error(), "delay") {
		t.Error(err)
	}
}
