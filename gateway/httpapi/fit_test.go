package httpapi

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

func incomes() api.FitRequest {
	return api.FitRequest{Dataset: "census", From: "people", Target: "income", Model: "linear", Epsilon: "2", Delta: "1e-8",
		Features: []api.FitFeature{{Column: "age"}, {Column: "region", Encode: "one-hot"}}}
}

// A fit is paid for once, in ρ, and given again free; a release of it is in the history; its receipt is that of its settlement.
func TestFitOverHTTP(t *testing.T) {
	f, signer := signing(t)
	ana := f.client("ana:analyst")
	estimate, err := ana.EstimateFit(t.Context(), incomes())
	if err != nil {
		t.Fatal(err)
	}
	if !estimate.Affordable || len(estimate.Coefficients) != 5 || estimate.People < 100 || estimate.Method != "moments" {
		t.Errorf("%+v", estimate)
	}
	before := f.Entries(t)
	first, err := ana.Fit(t.Context(), incomes(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Replayed || first.Spent != estimate.Price || first.Spent.Epsilon != "" || first.Rho != first.Spent.Rho ||
		len(first.Coefficients) != 4 ||
		first.Coefficients[1].Name != "region=north" || first.Intercept.Name != "intercept" || f.Entries(t) == before {
		t.Errorf("%+v", first)
	}
	after := f.Entries(t)
	for _, key := range []string{"", "k1", "k2"} {
		again, err := ana.Fit(t.Context(), incomes(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !again.Replayed || again.Spent.Rho != "0" || again.ReleaseID != first.ReleaseID {
			t.Errorf("%+v", again)
		}
		if diff := cmp.Diff(first.FitModel, again.FitModel); diff != "" {
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
	if len(release.Rows) != 5 || release.Columns[1].Name != "value" || release.Request.Dataset != "census" {
		t.Errorf("%+v", release)
	}
	// The answer of somebody else is another one, and is paid for.
	bob, err := f.client("bob:analyst").Fit(t.Context(), incomes(), "k1")
	if err != nil || bob.Replayed || bob.ReleaseID == first.ReleaseID {
		t.Errorf("%+v, %v", bob, err)
	}
	response, text := f.do(t, call{method: "POST", path: "/v1/fit", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","from":"visits","where":"amount > 1","target":"amount","model":"ridge","rho":"0.2",
			"features":["CASE WHEN shop = 'shop1' THEN 1 ELSE 0 END"],"weights":{"CASE WHEN shop = 'shop1' THEN 1 ELSE 0 END":"2"}}`})
	if response.StatusCode != 200 || response.Header.Get("Noisegate-Spent-Rho") != "0.2" ||
		response.Header.Get("Noisegate-Replayed") != "false" {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, text)
	}
	id := response.Header.Get("Noisegate-Release-Id")
	if r := f.Receipt(t, signer, response.Header.Get("Noisegate-Receipt")); string(r.Reservation) != id {
		t.Errorf("%+v", r)
	}
}

// A logistic model is fitted by gradients: pass after pass, in one charge, which is all that the ledger has of it.
func TestFitByGradientsOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	request := api.FitRequest{Dataset: "census", From: "people", Target: "CASE WHEN region = 'north' THEN 1 ELSE 0 END", Model: "logistic",
		Features: []api.FitFeature{{Column: "age"}, {Column: "income"}}, Rho: "0.21", Iterations: new(int64(7))}
	first, err := ana.Fit(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	if first.Method != "gradient" || *first.Iterations != 7 || first.Spent.Rho != "0.21" || len(first.Coefficients) != 2 ||
		first.Coefficients[0].Interval != nil {
		t.Errorf("%+v", first)
	}
	again, err := ana.Fit(t.Context(), request, "")
	if err != nil || !again.Replayed {
		t.Fatalf("%+v, %v", again, err)
	}
	if diff := cmp.Diff(first.FitModel, again.FitModel); diff != "" {
		t.Error(diff)
	}
	// Another number of passes is another fit, and one charge more: it is reserved and settled.
	before := f.Entries(t)
	request.Iterations = new(int64(8))
	if other, err := ana.Fit(t.Context(), request, ""); err != nil || other.Replayed || f.Entries(t) != before+2 {
		t.Errorf("%+v, %v, %d entries", other, err, f.Entries(t)-before)
	}
	estimate, err := ana.EstimateFit(t.Context(), request)
	if err != nil || estimate.Method != "gradient" || estimate.People < 100 {
		t.Errorf("%+v, %v", estimate, err)
	}
}

// A fit that is refused changes nothing in the ledger, and says what is expected.
func TestFitRefusalsAreFree(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	before := f.Entries(t)
	for name, c := range map[string]struct {
		change func(*api.FitRequest)
		code   fault.Code
	}{
		"no dataset":          {func(r *api.FitRequest) { r.Dataset = "" }, fault.CodeRequestMissingField},
		"an unknown dataset":  {func(r *api.FitRequest) { r.Dataset = "other" }, fault.CodeUnknownDataset},
		"no table":            {func(r *api.FitRequest) { r.From = "" }, fault.CodeRequestMissingField},
		"no target":           {func(r *api.FitRequest) { r.Target = "" }, fault.CodeRequestMissingField},
		"no features":         {func(r *api.FitRequest) { r.Features = nil }, fault.CodeRequestMissingField},
		"another model":       {func(r *api.FitRequest) { r.Model = "forest" }, fault.CodeFit},
		"another method":      {func(r *api.FitRequest) { r.Method = "newton" }, fault.CodeFit},
		"gradients of a line": {func(r *api.FitRequest) { r.Method = "gradient" }, fault.CodeFit},
		"nothing at all": {func(r *api.FitRequest) {
			*r = api.FitRequest{Dataset: r.Dataset}
		}, fault.CodeRequestMissingField},
		"passes of moments":   {func(r *api.FitRequest) { r.Iterations = new(int64(5)) }, fault.CodeFit},
		"no passes":           {func(r *api.FitRequest) { r.Iterations = new(int64(0)) }, fault.CodeFit},
		"too many passes":     {func(r *api.FitRequest) { r.Iterations = new(int64(101)) }, fault.CodeFit},
		"another encoding":    {func(r *api.FitRequest) { r.Features[0].Encode = "ordinal" }, fault.CodeFit},
		"a weight of nothing": {func(r *api.FitRequest) { r.Weights = map[string]api.Decimal{"height": "1"} }, fault.CodeFit},
		"a weight of 0":       {func(r *api.FitRequest) { r.Weights = map[string]api.Decimal{"age": "0"} }, fault.CodeFit},
		"two prices":          {func(r *api.FitRequest) { r.Rho = "1" }, fault.CodeRequestConflictingPrice},
		"no price":            {func(r *api.FitRequest) { r.Epsilon = "" }, fault.CodeRequestNoPrice},
		"no delta":            {func(r *api.FitRequest) { r.Delta = "" }, fault.CodeRequestDelta},
		"less than the floor": {func(r *api.FitRequest) { r.Epsilon, r.Delta, r.Rho = "", "", "1e-9" }, fault.CodeBudgetUnderFloor},
		"passes below the floor": {func(r *api.FitRequest) {
			r.Model, r.Target, r.Epsilon, r.Delta, r.Rho = "logistic", "CASE WHEN income > 5 THEN 1 ELSE 0 END", "", "", "0.00001"
			r.Features = r.Features[:1]
		}, fault.CodeBudgetUnderFloor}, // 30 passes at 0.0000005 each
		"more than there is": {func(r *api.FitRequest) { r.Epsilon, r.Delta, r.Rho = "", "", "100" }, fault.CodeBudgetOverQueryCap},
		"a hidden column":    {func(r *api.FitRequest) { r.Where = "secret = 'canary-1'" }, fault.CodeUnknownColumn},
		"looser bounds": {func(r *api.FitRequest) {
			r.From, r.MaxRows = "visits JOIN people ON visits.person = people.id", new(int64(6))
		}, fault.CodeLooserBound},
		"a level of confidence": {func(r *api.FitRequest) { r.Confidence = new(2.0) }, fault.CodeRequestConfidence},
	} {
		r := incomes()
		c.change(&r)
		_, err := ana.Fit(t.Context(), r, "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != string(c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	for name, body := range map[string]string{
		"an unknown member of a feature": `{"dataset":"census","from":"people","target":"income","model":"linear","rho":"1","features":[{"column":"age","scale":2}]}`,
		"a number as a feature":          `{"dataset":"census","from":"people","target":"income","model":"linear","rho":"1","features":[7]}`,
	} {
		response, text := f.do(t, call{method: "POST", path: "/v1/fit", token: "ana:analyst", kind: "application/json", body: body})
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	if f.Entries(t) != before {
		t.Error("a refusal changed the ledger")
	}
}
