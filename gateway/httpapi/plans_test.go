package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

func TestPlansOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana, bob := f.client("ana:analyst"), f.client("bob:analyst")
	count := int64(20)
	request := api.PlanRequest{Dataset: "census", Delta: "1e-8",
		Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.1", Count: &count},
			{Mechanism: "gaussian", Rho: "0.005"}}}
	plan, err := ana.RegisterPlan(t.Context(), request, "k")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Slots != 21 || plan.Drawn != 0 || len(plan.Left) != 2 || plan.Cost.Delta != "1e-8" {
		t.Errorf("%+v", plan)
	}
	if again, err := ana.RegisterPlan(t.Context(), request, "k"); err != nil || again.PlanID != plan.PlanID {
		t.Errorf("%+v, %v", again, err)
	}
	query := api.QueryRequest{Dataset: "census", Plan: plan.PlanID,
		SQL: "SELECT region, count(*) AS n, avg(age) FROM people GROUP BY region ORDER BY n DESC"}
	first, err := ana.Query(t.Context(), query, "")
	if err != nil || first.Spent.Epsilon != "0" || len(first.Rows) != 3 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := ana.Query(t.Context(), query, ""); err != nil || !again.Replayed {
		t.Errorf("%+v, %v", again, err)
	}
	if plan, err = ana.Plan(t.Context(), plan.PlanID); err != nil || plan.Drawn != 2 || *plan.Left[0].Count != 18 {
		t.Errorf("%+v, %v", plan, err)
	}
	var foreign, unknown *api.Problem
	if _, err := bob.Plan(t.Context(), plan.PlanID); !errors.As(err, &foreign) || foreign.Status != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	if _, err := bob.Plan(t.Context(), "01J"); !errors.As(err, &unknown) || unknown.Code != foreign.Code ||
		unknown.Detail != foreign.Detail || unknown.Status != foreign.Status {
		t.Errorf("%v is not %v", unknown, foreign)
	}
	if _, err := bob.Query(t.Context(), query, ""); !errors.As(err, &foreign) || foreign.Status != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	response, text := f.do(t, call{method: "POST", path: "/v1/plans", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","delta":"1e-9","mechanisms":[{"mechanism":"laplace","epsilon":0.1}]}`})
	if response.StatusCode != http.StatusCreated || !strings.HasPrefix(response.Header.Get("Location"), "/v1/plans/01") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

func TestPlanBodies(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	before := f.Entries(t)
	for list, code := range map[string]fault.Code{
		`[{"mechanism":"laplace","epsilon":"0.1","counts":3}]`:             fault.CodeRequestUnknownField,
		`[{"mechanism":"laplace","Epsilon":"0.1"}]`:                        fault.CodeRequestUnknownField,
		`[{"mechanism":"laplace","epsilon":"0.1","epsilon":"0.2"}]`:        fault.CodeRequestDuplicateField,
		`[{"mechanism":"laplace","epsilon":"0.1","count":1.5}]`:            fault.CodeRequestBody,
		`[{"mechanism":"laplace","epsilon":"0.1","count":"9"}]`:            fault.CodeRequestBody,
		`[{"mechanism":"laplace","epsilon":"0.1","count":99999999999999}]`: fault.CodeRequestPlan,
		`[{"mechanism":1}]`: fault.CodeRequestMechanism,
		`[{}]`:              fault.CodeRequestPlan,
		`[null]`:            fault.CodeRequestPlan,
		`[]`:                fault.CodeRequestMissingField,
		`null`:              fault.CodeRequestMissingField,
		`{}`:                fault.CodeRequestPlan,
		`"laplace"`:         fault.CodeRequestPlan,
	} {
		_, text := f.do(t, call{method: "POST", path: "/v1/plans", token: "ana:analyst", kind: "application/json",
			body: `{"dataset":"census","delta":"1e-9","mechanisms":` + list + `}`})
		if got := codeOf(t, text); got != code {
			t.Errorf("%s: %s", list, text)
		}
	}
	if _, text := f.do(t, call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","sql":"SELECT count(*) FROM people","plan":7}`}); codeOf(t, text) != fault.CodeRequestPlan {
		t.Error(text)
	}
	if f.Entries(t) != before {
		t.Error("a refusal wrote to the ledger")
	}
}
