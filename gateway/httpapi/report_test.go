package httpapi

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// reportFront is a gateway in front of 20 people with five visits each; one of each five counts.
func reportFront(t *testing.T) *front {
	t.Helper()
	f := newFront(t, gatewaytest.Options{Quantum: time.Millisecond}, 4)
	policy := `version: 1
dataset: census
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 1
    max_groups: 1
    columns:
      shop:   {domain: [shop0, shop1, shop2]}
      amount: {bounds: [0, 10]}
  people:
    unit: {row: id}
    columns:
      age: {bounds: [0, 100]}
budgets:
  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-7}
`
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1, Text: []byte(policy)}
	if _, err := f.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return f
}

// textOf is the text of the note with a code.
func textOf(notes []api.Note, code string) string {
	at := slices.IndexFunc(notes, func(n api.Note) bool { return n.Code == code })
	if at < 0 {
		return ""
	}
	return notes[at].Text
}

// One of five visits of each person counts, and four of them are looked at. With next to no noise that is a quarter, in numbers and words.
// The whole answer is replayed, and so is every other view of what was released; the figures alone cost their own part.
func TestReportKept(t *testing.T) {
	const sql = "SELECT shop, count(*) AS n FROM visits GROUP BY shop"
	ana := reportFront(t).client("ana:analyst")
	request := api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "3000", Report: "kept"}
	e, err := ana.Estimate(t.Context(), request)
	if err != nil || e.Price.Epsilon != "3000" || len(e.Outputs) != 3 || e.Outputs[2].Price.Epsilon != "1000" ||
		textOf(e.Notes, "report-price") != "the part of the rows that is in these figures costs epsilon 2000 of 3000" {
		t.Fatalf("estimate %+v, %v", e, err)
	}
	r, err := ana.Query(t.Context(), request, "")
	if err != nil || r.Report == nil || r.Spent.Epsilon != "3000" {
		t.Fatalf("answer %+v, %v", r, err)
	}
	if r.Report.Kind != "kept" || r.Report.Share.String() != "0.25" || r.Report.KeptCap != 4 || len(r.Rows) != 3 {
		t.Errorf("report %+v, rows %v", r.Report, r.Rows)
	}
	if text := textOf(r.Notes, "kept"); !strings.HasPrefix(text, "about 25 % of rows are in these figures [") {
		t.Errorf("note %q", text)
	}
	for _, view := range []string{sql, sql + " ORDER BY n DESC LIMIT 2"} {
		request.SQL = view
		again, err := ana.Query(t.Context(), request, "")
		if err != nil || !again.Replayed || again.Report == nil || again.Report.Share.String() != "0.25" {
			t.Errorf("%s: %+v, %v", view, again, err)
		}
	}
	alone, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "1000"}, "")
	if err != nil || !alone.Replayed || alone.Report != nil || textOf(alone.Notes, "kept") != "" {
		t.Errorf("the figures alone: %+v, %v", alone, err)
	}
	// Of the 33 visits of shop0, no person's fifth is there: both WHERE and FILTER count 20 of them.
	for _, view := range []string{"SELECT count(*) FROM visits WHERE shop = 'shop0'",
		"SELECT count(*) FILTER (WHERE shop = 'shop0') FROM visits"} {
		request.SQL = view
		some, err := ana.Query(t.Context(), request, "")
		if err != nil || some.Rows[0][0].String() != "20" || !strings.HasPrefix(some.Report.Share.String(), "0.60") {
			t.Errorf("%s: %+v, %v", view, some, err)
		}
	}
	// Where the computation on the values fails, the answer has the values and the bought share of the bounds.
	request.SQL = "SELECT sqrt(count(*) - 1000000) AS m FROM visits"
	failed, err := ana.Query(t.Context(), request, "")
	if err != nil || len(failed.Columns) != 1 || len(failed.Rows) != 1 || failed.Report == nil || failed.Report.Share.String() != "0.25" ||
		textOf(failed.Notes, "outer-layer-failed") == "" {
		t.Errorf("an outer query that fails: %+v, %v", failed, err)
	}
	request.SQL, request.Selection = "SELECT max(amount) FROM visits", "permute_and_flip"
	chosen, err := ana.Query(t.Context(), request, "")
	if err != nil || chosen.Report == nil || chosen.Columns[0].Selection != "permute_and_flip" {
		t.Errorf("of a selection: %+v, %v", chosen, err)
	}
	request.SQL, request.Epsilon, request.Selection = "SELECT count(*) FROM people", "1", ""
	whole, err := ana.Query(t.Context(), request, "")
	if err != nil || whole.Report == nil || whole.Report.Share.String() != "1" || whole.Spent.Epsilon != "1" {
		t.Errorf("of rows that all count: %+v, %v", whole, err)
	}
}

func TestReportsThatAreRefused(t *testing.T) {
	f := reportFront(t)
	ana := f.client("ana:analyst")
	before := f.Entries(t)
	for name, r := range map[string]api.QueryRequest{
		"unknown":           {SQL: "SELECT count(*) FROM visits", Report: "lost"},
		"units":             {SQL: "SELECT shop, count(DISTINCT person) FROM visits GROUP BY shop", Report: "kept"},
		"several":           {SQL: "SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM people)", Report: "kept"},
		"weights":           {SQL: "SELECT count(*) AS n, sum(amount) FROM visits", Report: "kept", Weights: map[string]api.Decimal{"n": "2"}},
		"held all together": {SQL: "SELECT count(*) FROM visits", Report: "kept", Confidence: &api.Confidence{Simultaneous: true}},
	} {
		r.Dataset, r.Epsilon = "census", "1"
		_, err := ana.Query(t.Context(), r, "")
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Status != 400 {
			t.Errorf("%s: %v", name, err)
		}
		if (name == "unknown" || name == "units" || name == "several") && problem.Code != string(fault.CodeRequestReport) {
			t.Errorf("%s: %s", name, problem.Code)
		}
	}
	if f.Entries(t) != before {
		t.Error("what was refused is in the ledger")
	}
}
