package suggest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/internal/suggest"
)

// eachGoldenRefusal visits the refusals of the golden files.
func eachGoldenRefusal(t *testing.T, clauses []string, visit func(sql string, snapshot *catalog.Snapshot, o plan.Options,
	refusal *fault.Error)) {
	t.Helper()
	for _, clause := range clauses {
		rewritetest.RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
			if d.Cmd == "refuse" {
				o := rewritetest.ParseOptions(t, d)
				_, err := pipeline.Rewrite(d.Input, snapshot, o)
				var refusal *fault.Error
				if errors.As(err, &refusal) {
					visit(d.Input, snapshot, o, refusal)
				}
			}
			return d.Expected
		})
	}
}

// suggestionsOf are the texts that a refusal suggests, with a number for what the first of two answers.
func suggestionsOf(err error) (texts []string) {
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return nil
	}
	for _, d := range refusal.Details {
		if d.Name == "suggestion" || d.Name == "then" {
			texts = append(texts, strings.ReplaceAll(d.Value, suggest.AnswerMark, "42"))
		}
	}
	return texts
}

// Every query that a refusal suggests is accepted; the golden file shows which refusals have one.
func TestSuggestionsAreAccepted(t *testing.T) {
	suggested := 0
	eachGoldenRefusal(t, rewritetest.GoldenClauses(), func(sql string, snapshot *catalog.Snapshot, o plan.Options, refusal *fault.Error) {
		for _, text := range suggestionsOf(sqlrewrite.Suggest(steps.WithoutClock(t.Context()), refusal, sql, snapshot, o)) {
			suggested++
			if _, _, err := pipeline.Read(text, snapshot, o); err != nil {
				t.Errorf("%s\n suggests %s\n which is refused: %v", sql, text, err)
			}
		}
	})
	if suggested < 40 {
		t.Errorf("only %d refusals suggest a query", suggested)
	}
}

// The golden file of suggestions: each refused query, and what would be accepted.
func TestSuggestGolden(t *testing.T) {
	rewritetest.RunGoldenFile(t, "suggest", func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
		o := plan.Options{Now: rewritetest.GoldenNow(), Epsilon: mechanisms.EpsilonUnit, Delta: 1, Mechanism: plan.MechanismAuto,
			Currency:   catalog.Approx,
			Confidence: 0.95, Dialect: parse.Dialect(d.Cmd)}
		_, _, err := pipeline.Read(d.Input, snapshot, o)
		if err == nil {
			d.Fatalf(t, "accepted as it is")
		}
		err = sqlrewrite.Suggest(steps.WithoutClock(t.Context()), err, d.Input, snapshot, o)
		var b strings.Builder
		for _, text := range suggestionsOf(err) {
			if _, _, err := pipeline.Read(text, snapshot, o); err != nil {
				d.Fatalf(t, "%s: %v", text, err)
			}
		}
		var refusal *fault.Error
		errors.As(err, &refusal)
		for _, detail := range refusal.Details {
			if slices.Contains([]string{"suggestion", "then", "differs"}, detail.Name) {
				fmt.Fprintf(&b, "%s: %s\n", detail.Name, detail.Value)
			}
		}
		if b.Len() == 0 {
			fmt.Fprintln(&b, "none known")
		}
		return parsetest.ShowFault(err) + b.String()
	})
}

// FuzzSuggest: whatever the text and wherever a refusal points, there is no panic, and what is suggested is accepted.
func FuzzSuggest(f *testing.F) {
	for _, sql := range rewritetest.GoldenQueries(f) {
		f.Add(sql, 1, 8)
	}
	snapshot := rewritetest.TownSnapshot(f)
	f.Fuzz(func(t *testing.T, sql string, line, column int) {
		o := rewritetest.Sharp()
		_, _, err := pipeline.Read(sql, snapshot, o)
		if err == nil {
			err = fault.Unsupported(fault.Position{Line: line, Column: column}, "x", "").WithPart("id")
		}
		for _, text := range suggestionsOf(sqlrewrite.Suggest(steps.WithoutClock(t.Context()), err, sql, snapshot, o)) {
			if _, _, err := pipeline.Read(text, snapshot, o); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	})
}

// Every refusal of the golden files says where, what and what to do: a place in the text with the words there, and a hint. Those about the
// request's options have no place.
func TestRefusalsHelp(t *testing.T) {
	eachGoldenRefusal(t, rewritetest.GoldenClauses(), func(sql string, snapshot *catalog.Snapshot, o plan.Options, refusal *fault.Error) {
		if refusal.Hint == "" {
			t.Errorf("%s\n has no hint: %v", sql, refusal)
		}
		if slices.Contains([]fault.Code{fault.CodeLooserBound, fault.CodePriceTooSmall, fault.CodeMechanism, fault.CodeRequestReport},
			refusal.Code) {
			return
		}
		var told *fault.Error
		errors.As(sqlrewrite.Suggest(steps.WithoutClock(t.Context()), refusal, sql, snapshot, o), &told)
		if refusal.Pos.Line == 0 || refusal.Pos.Column == 0 || len(told.Details) == 0 {
			t.Errorf("%s\n has no place in the text: %v", sql, refusal)
		}
		for _, d := range told.Details {
			if d.Name == "near" && !strings.Contains(sql, d.Value) {
				t.Errorf("%s\n is said to hold %s", sql, d.Value)
			}
		}
	})
}
