package gateway

import (
	"encoding/json"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// What reads nothing private is answered without a price in the request, without a statement on private tables and without a line in the
// ledger; everything else still needs a price.
func TestFreeQuestions(t *testing.T) {
	r, ana := newRig(t, line("dataset", "", 10), perAnalyst("analysts", 5)), principal(t, "ana", "analysts")
	ask := func(sql string, edit func(*api.QueryRequest)) (*Answer, error) {
		q := api.QueryRequest{Dataset: "d", SQL: sql}
		if edit != nil {
			edit(&q)
		}
		return r.Query(t.Context(), ana, Request{QueryRequest: q})
	}
	for name, c := range map[string]struct {
		sql  string
		edit func(*api.QueryRequest)
	}{
		"no rows":        {"SELECT * FROM people LIMIT 0", nil},
		"never true":     {"SELECT age, sex FROM people WHERE 1 = 0", nil},
		"with a price":   {"SELECT age FROM people LIMIT 0", func(q *api.QueryRequest) { q.Epsilon = "1" }},
		"with max_error": {"SELECT age FROM people LIMIT 0", func(q *api.QueryRequest) { q.MaxError = map[string]api.Decimal{"age": "1"} }},
		"mysql":          {"SELECT `age` FROM `people` LIMIT 0", func(q *api.QueryRequest) { q.Dialect = "mysql" }},
		"with a plan":    {"SELECT age FROM people LIMIT 0", func(q *api.QueryRequest) { q.Plan = "01J00000000000000000000000" }},
	} {
		answer, err := ask(c.sql, c.edit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var result api.Result
		if err := json.Unmarshal(answer.Result, &result); err != nil {
			t.Fatal(err)
		}
		if answer.ID != "" || answer.Receipt != nil || answer.Spent.Epsilon != "0" || len(result.Rows) != 0 || len(result.Columns) == 0 ||
			result.Columns[0].Name != "age" {
			t.Errorf("%s: %+v, %s", name, answer, answer.Result)
		}
	}
	for _, sql := range []string{"SELECT count(*) FROM people", "SELECT count(*) FROM people WHERE 1 = 0"} {
		if _, err := ask(sql, nil); fault.CodeOf(err) != fault.CodeRequestNoPrice {
			t.Errorf("%s: got %v, want %s", sql, err, fault.CodeRequestNoPrice)
		}
	}
	estimate, err := r.Estimate(t.Context(), ana, api.QueryRequest{Dataset: "d", SQL: "SELECT * FROM people LIMIT 0"})
	if err != nil || estimate.Price.Epsilon != "0" || !estimate.Affordable || estimate.Plan != "answer: exact and free\n  no rows\n" {
		t.Errorf("estimate %+v, %v", estimate, err)
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) != 0 || r.data.runs != 0 {
		t.Errorf("free questions left %v in the ledger (%v) and ran %d statements", entries, err, r.data.runs)
	}
}
