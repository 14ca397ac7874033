package sqlrewrite

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/statement"
)

// plannedModel plans a model as gateway/fit does.
func plannedModel(m *statement.Model, on *catalog.Snapshot) error {
	var features []fit.Feature
	for _, x := range m.Expressions {
		features = append(features, fit.Feature{Expr: x})
	}
	if m.Function == statement.KMeans {
		_, err := fit.NewClustering(fit.ClusterQuestion{From: m.From, Where: m.Where, Columns: features, Centres: int(m.Centres)}, on,
			fit.ClusterOptions{Passes: 4, Rho: 1e12})
		return err
	}
	model := fit.Linear
	if m.Function == statement.LogisticRegression {
		model = fit.Logistic
	}
	_, err := fit.NewPlan(fit.Question{From: m.From, Where: m.Where, Target: m.Target, Features: features, Model: model}, on,
		fit.Options{Passes: 1, Rho: 1e12, Confidence: 0.95})
	return err
}

// docs/sql-coverage.md says of each construct what happens to its example; it does.
func TestCoverage(t *testing.T) {
	page, err := os.ReadFile("../docs/sql-coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := rewritetest.PostSnapshot(t)
	options := rewritetest.Sharp()
	options.Delta, options.Now = 1_000_000, rewritetest.GoldenNow()
	asked := 0
	for _, m := range regexp.MustCompile("(?m)^- \\*\\*(\\w+)\\*\\* (.+?): `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		verdict, construct, example := m[1], m[2], m[3]
		if strings.Contains(example, "/testdata/") {
			if _, err := os.Stat("internal/" + example); err != nil {
				t.Errorf("%s: %v", construct, err)
			}
			continue
		}
		asked++
		private, public, err := pipeline.Read(example, snapshot, options)
		got := "refused"
		m, wrong := statement.ModelOf(example)
		if m != nil {
			err = plannedModel(m, snapshot)
		}
		switch {
		case m != nil && err == nil:
			got = "works"
		case err != nil || wrong != nil:
		case public != nil:
			got = "free"
		case private.NeedsData():
			got = "works"
		}
		if got != verdict {
			t.Errorf("%s is %s, the page says %s: %s\n%s", construct, got, verdict, example, parsetest.ShowFault(err))
		}
	}
	if asked < 60 {
		t.Errorf("only %d examples were found", asked)
	}
}
