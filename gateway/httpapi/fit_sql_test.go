package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// modelIn is the model that the one value of an answer holds.
func modelIn[M any](t *testing.T, answer *api.QueryResponse) (model M) {
	t.Helper()
	if len(answer.Rows) != 1 || len(answer.Rows[0]) != 1 || answer.Columns[0].Type != "json" || len(answer.Intervals) != 1 {
		t.Fatalf("%+v", answer)
	}
	if err := json.Unmarshal([]byte(answer.Rows[0][0].String()), &model); err != nil {
		t.Fatal(err)
	}
	return model
}

// A statement that asks for a model is the request to POST /v1/fit or POST /v1/cluster: whichever comes first pays, and its answer is the
// other's, byte for byte in each replay; an estimate is free.
func TestModelsInSQLOverHTTP(t *testing.T) {
	f, signer := signing(t)
	ana := f.client("ana:analyst")
	lines := api.QueryRequest{Dataset: "census", SQL: "SELECT linregr(income, ARRAY[1, age]) AS m FROM people WHERE age > 20",
		Epsilon: "2", Delta: "1e-8"}
	before := f.Entries(t)
	estimate, err := ana.Estimate(t.Context(), lines)
	if err != nil {
		t.Fatal(err)
	}
	if o := estimate.Outputs; len(o) != 1 || o[0].Name != "m" || o[0].Price != estimate.Price || o[0].Variance == "" || !estimate.Affordable ||
		!strings.Contains(estimate.Plan, "linear regression by moments: a pass over the rows of people\nfewer than ") ||
		!strings.Contains(estimate.Plan, "\nage: noise with a standard deviation of ") {
		t.Errorf("%+v", estimate)
	}
	if f.Entries(t) != before {
		t.Error("an estimate changed the ledger")
	}
	first, err := ana.Query(t.Context(), lines, "k1")
	if err != nil {
		t.Fatal(err)
	}
	model := modelIn[api.FitModel](t, first)
	if first.Replayed || first.Spent != estimate.Price || first.Columns[0].Name != "m" || model.Model != "linear" ||
		model.Rho != first.Spent.Rho ||
		len(model.Coefficients) != 1 || model.Coefficients[0].Name != "age" || f.Entries(t) == before {
		t.Errorf("%+v", first)
	}
	request := api.FitRequest{Dataset: "census", From: "people", Where: "age > 20", Target: "income", Model: "linear",
		Features: []api.FitFeature{{Column: "age"}}, Epsilon: "2", Delta: "1e-8"}
	for _, key := range []string{"", "k1"} {
		over, err := ana.Fit(t.Context(), request, key)
		if err != nil || !over.Replayed || over.ReleaseID != first.ReleaseID {
			t.Fatalf("%+v, %v", over, err)
		}
		if diff := cmp.Diff(model, over.FitModel); diff != "" {
			t.Error(diff)
		}
	}
	lines.SQL = "select linregr(income, array[1, age]) m from people where age > 20;"
	again, err := ana.Query(t.Context(), lines, "")
	if err != nil || !again.Replayed || again.ReleasedAt == nil || again.Spent.Rho != "0" || again.Rows[0][0] != first.Rows[0][0] {
		t.Errorf("%+v, %v", again, err)
	}
	// Parameters are constants.
	lines.SQL, lines.Params = "SELECT linregr(income, ARRAY[1, age]) FROM people WHERE age > $1", []json.RawMessage{json.RawMessage("20")}
	if again, err = ana.Query(t.Context(), lines, ""); err != nil || !again.Replayed || again.Columns[0].Name != "linregr" {
		t.Errorf("%+v, %v", again, err)
	}
	// What was bought as clusters is given to SQL.
	groups := ages()
	groups.K = 2
	bought, err := ana.Cluster(t.Context(), groups, "")
	if err != nil {
		t.Fatal(err)
	}
	after := f.Entries(t)
	found, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT kmeans(ARRAY[age, income], 2) FROM people",
		Epsilon: "2", Delta: "1e-8", Mechanism: "gaussian"}, "")
	if err != nil || !found.Replayed || found.ReleaseID != bought.ReleaseID || f.Entries(t) != after {
		t.Fatalf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(bought.ClusterModel, modelIn[api.ClusterModel](t, found)); diff != "" {
		t.Error(diff)
	}
	// A logistic model goes pass by pass; its receipt is that of its settlement, its formats are those of queries.
	response, text := f.do(t, call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json",
		header: map[string][]string{"Accept": {"text/csv"}},
		body:   `{"dataset":"census","sql":"SELECT logregr(CASE WHEN region = 'north' THEN 1 ELSE 0 END, ARRAY[1, age]) FROM people","rho":"0.3"}`})
	if response.StatusCode != 200 || response.Header.Get("Noisegate-Spent-Rho") != "0.3" ||
		!strings.HasPrefix(text, "logregr,logregr_low,logregr_high\r\n"+
			`"{""model"":""logistic"",""method"":""gradient"",""iterations"":30,`) {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, text)
	}
	id := response.Header.Get("Noisegate-Release-Id")
	if r := f.Receipt(t, signer, response.Header.Get("Noisegate-Receipt")); string(r.Reservation) != id {
		t.Errorf("%+v", r)
	}
	// A key that stands for one of them stands for no query.
	count := api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people", Epsilon: "1"}
	if _, err := ana.Query(t.Context(), count, "k1"); !isProblem(err, fault.CodeBudgetReplayMismatch) {
		t.Errorf("a query under the key of a fit: %v", err)
	}
	if _, err := f.client("sam:steward").Query(t.Context(), lines, ""); !isProblem(err, fault.CodeAuthForbidden) {
		t.Errorf("a steward: %v", err)
	}
}

// What is refused changes nothing in the ledger, estimated or asked.
func TestModelsInSQLRefusedOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	before := f.Entries(t)
	const sql = "SELECT linregr(income, ARRAY[1, age]) FROM people"
	text := func(sql string) func(*api.QueryRequest) { return func(r *api.QueryRequest) { r.SQL = sql } }
	for name, c := range map[string]struct {
		change func(*api.QueryRequest)
		code   fault.Code
	}{
		"groups":             {func(r *api.QueryRequest) { r.SQL += " GROUP BY region" }, fault.CodeFit},
		"no intercept":       {text("SELECT linregr(income, ARRAY[age]) FROM people"), fault.CodeFit},
		"an output beside":   {text("SELECT linregr(income, ARRAY[1, age]), count(*) FROM people"), fault.CodeFit},
		"a call in a term":   {text("SELECT 2 * linregr(income, ARRAY[1, age]) FROM people"), fault.CodeUnknownFunction},
		"of another dialect": {func(r *api.QueryRequest) { r.Dialect = "mysql" }, fault.CodeSyntax},
		"a hidden column":    {text("SELECT linregr(secret, ARRAY[1, age]) FROM people"), fault.CodeUnknownColumn},
		"a text column":      {text("SELECT linregr(income, ARRAY[1, region]) FROM people"), fault.CodeTypeMismatch},
		"an aggregate":       {text("SELECT linregr(income, ARRAY[1, avg(age)]) FROM people"), fault.CodeUnsupported},
		"one centre":         {text("SELECT kmeans(ARRAY[age], 1) FROM people"), fault.CodeFit},
		"no such table":      {text("SELECT kmeans(ARRAY[age], 2) FROM persons"), fault.CodeUnknownTable},
		"no price":           {func(r *api.QueryRequest) { r.Rho = "" }, fault.CodeRequestNoPrice},
		"no dataset":         {func(r *api.QueryRequest) { r.Dataset = "" }, fault.CodeRequestMissingField},
		"too much":           {func(r *api.QueryRequest) { r.Rho = "100" }, fault.CodeBudgetOverQueryCap},
		"too little":         {func(r *api.QueryRequest) { r.Rho = "1e-9" }, fault.CodeBudgetUnderFloor},
		"too many values":    {func(r *api.QueryRequest) { r.Params = []json.RawMessage{json.RawMessage("1")} }, fault.CodeRequestParams},
		"an error":           {func(r *api.QueryRequest) { r.Rho, r.MaxError = "", map[string]api.Decimal{"linregr": "1"} }, fault.CodeFit},
		"weights":            {func(r *api.QueryRequest) { r.Weights = map[string]api.Decimal{"linregr": "1"} }, fault.CodeFit},
		"a plan":             {func(r *api.QueryRequest) { r.Plan = "p" }, fault.CodeFit},
		"a report":           {func(r *api.QueryRequest) { r.Report = "kept" }, fault.CodeFit},
		"a selection":        {func(r *api.QueryRequest) { r.Selection = "exponential" }, fault.CodeFit},
		"other noise":        {func(r *api.QueryRequest) { r.Mechanism = "laplace" }, fault.CodeFit},
		"groups of a person": {func(r *api.QueryRequest) { r.MaxGroups = new(int64(1)) }, fault.CodeFit},
		"a new version":      {func(r *api.QueryRequest) { r.Version = "latest" }, fault.CodeFit},
		"rows in all":        {func(r *api.QueryRequest) { r.MaxRowsTotal = new(int64(1)) }, fault.CodeFit},
		"all intervals":      {func(r *api.QueryRequest) { r.Confidence = &api.Confidence{Simultaneous: true} }, fault.CodeFit},
	} {
		r := api.QueryRequest{Dataset: "census", SQL: sql, Rho: "0.1"}
		c.change(&r)
		if _, err := ana.Query(t.Context(), r, ""); !isProblem(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if e, err := ana.Estimate(t.Context(), r); !isProblem(err, c.code) && (c.code != fault.CodeBudgetOverQueryCap || e.Affordable) {
			t.Errorf("estimate of %s: %v, want %s", name, err, c.code)
		}
	}
	if f.Entries(t) != before {
		t.Error("a refusal changed the ledger")
	}
}

// A level of confidence and a bound on rows are those of the fit.
func TestModelsInSQLTakeOptions(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	level := 0.8
	const first = "CASE WHEN shop = 'shop1' THEN 1 ELSE 0 END"
	asked := api.QueryRequest{Dataset: "census", SQL: "SELECT linregr(amount, ARRAY[1, " + first + "]) FROM visits",
		Rho: "0.2", MaxRows: new(int64(2)), Confidence: &api.Confidence{Level: &level}}
	if _, err := ana.Query(t.Context(), asked, ""); err != nil {
		t.Fatal(err)
	}
	same := api.FitRequest{Dataset: "census", From: "visits", Target: "amount", Model: "linear", Rho: "0.2", MaxRows: new(int64(2)),
		Features: []api.FitFeature{{Column: first}}, Confidence: &level}
	if over, err := ana.Fit(t.Context(), same, ""); err != nil || !over.Replayed {
		t.Errorf("%+v, %v", over, err)
	}
	same.Confidence = nil
	if over, err := ana.Fit(t.Context(), same, ""); err != nil || over.Replayed {
		t.Errorf("at another level: %+v, %v", over, err)
	}
}
