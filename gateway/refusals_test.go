package gateway

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// Stewards see who was refused what. A refusal is one before the charge: it reads no row, writes nothing to the ledger, and what came of
// statements that ran is not counted.
func TestRefusalsAreCounted(t *testing.T) {
	r := newRig(t)
	ask := func(who, text, epsilon string) error {
		q := count(epsilon)
		q.SQL = text
		_, err := r.Query(t.Context(), principal(t, who, "analysts"), q)
		return err
	}
	for _, c := range []struct {
		who, text, epsilon string
		code               fault.Code
	}{
		{"ana", "SELECT * FROM people", "0.1", fault.CodeNotAggregate},
		{"ana", "SELECT age FROM people", "0.1", fault.CodeNotAggregate},
		{"ana", "SELECT count(*) FROM", "0.1", fault.CodeSyntax},
		{"ana", "SELECT count(*) FROM people", "2", fault.CodeBudgetOverQueryCap},
		{"bob", "SELECT count(*) FROM people", "x", fault.CodeRequestEpsilon},
	} {
		if err := ask(c.who, c.text, c.epsilon); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, err := r.Estimate(t.Context(), ana(), api.QueryRequest{Dataset: "d", SQL: "SELECT age FROM people", Epsilon: "0.1"}); err == nil {
		t.Error("rows were estimated")
	}
	if _, err := r.Estimate(t.Context(), ana(), api.QueryRequest{Dataset: "e", SQL: "SELECT 1", Epsilon: "0.1"}); err == nil {
		t.Error("there is no such dataset")
	}
	if n := len(journalOf(t, r.ledger)); n != 0 || r.data.runs != 0 {
		t.Errorf("refusals wrote %d entries, and ran %d statements", n, r.data.runs)
	}
	want := []api.Refusal{
		{Analyst: "ana", Code: "policy/not-aggregate", Count: 2, Estimates: 1}, {Analyst: "ana", Code: "budget/over-query-cap", Count: 1},
		{Analyst: "ana", Code: "sql/syntax", Count: 1}, {Analyst: "bob", Code: string(fault.CodeRequestEpsilon), Count: 1},
	}
	list := func() *api.RefusalList {
		t.Helper()
		l, err := r.Refusals("d")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if got := list(); cmp.Diff(want, got.Refusals) != "" || got.Dataset != "d" || !got.Since.Equal(testTime()) {
		t.Errorf("%s\n%+v", cmp.Diff(want, got.Refusals), got)
	}

	// What failed after its charge, so that it may tell of rows, and what follows from that.
	r.breaking(fault.DataUnavailable(errors.New("SQLSTATE 57014")))
	r.policies.snapshot.MaxFailures = 2
	for n, code := range []fault.Code{fault.CodeDataUnavailable, fault.CodeDataUnavailable, fault.CodeBudgetFailures} {
		if err := r.asks(t, ana(), n); fault.CodeOf(err) != code {
			t.Errorf("failure %d: %v", n, err)
		}
	}
	r.policies.snapshot.MaxFailures = 100
	r.breaking(fault.RequestMissingField("an error of a kind that questions are refused with"))
	if err := r.asks(t, ana(), 5); fault.CodeOf(err) != fault.CodeRequestMissingField {
		t.Errorf("a failure that looks like a refusal: %v", err)
	}
	if diff := cmp.Diff(want, list().Refusals); diff != "" {
		t.Errorf("a failure was counted: %s", diff)
	}
	if _, err := r.Refusals("e"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Errorf("of no dataset: %v", err)
	}
}

// Nobody fills the memory of a gateway by being refused.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	r.begin(map[string]Dataset{"d": {}}, testTime())
	err := fault.UnknownDataset("x")
	for n := range 3 * maxRefused {
		r.count("d", fmt.Sprintf("a%d", n), Asked, err)
		r.count("none", fmt.Sprintf("a%d", n), Asked, err)
		r.count("d", fmt.Sprintf("a%d", n), Asked, nil)
	}
	r.count("d", "a0", Asked, err)
	got := r.list("d")
	if len(got) != maxRefused+1 || got[0] != (api.Refusal{Code: string(fault.CodeUnknownDataset), Count: 2 * maxRefused}) ||
		got[1] != (api.Refusal{Analyst: "a0", Code: string(fault.CodeUnknownDataset), Count: 2}) {
		t.Errorf("%d lines, of which the first are %+v", len(got), got[:2])
	}
}
