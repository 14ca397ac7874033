package answer_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// clampedText finds a column of a table that a statement reads no further than a bound.
var clampedText = regexp.MustCompile(`smaller\(\(*(?:CAST\(\(*)?(?:"?\w+"?\.)?"?(\w+)"?`)

// TestClampedColumnsAreNamed compares the text of each statement of the golden files with the notes of its answer: where the text clamps a
// column to the policy's bounds, a note about clamping names the column.
func TestClampedColumnsAreNamed(t *testing.T) {
	seen := 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		if p.Query == nil || p.Several != nil {
			return
		}
		bounds := map[string]bool{}
		for _, f := range p.Query.Source.Fields {
			if f.Bounds != nil && f.Table != "" {
				bounds[f.Name] = true
			}
		}
		var named string
		for _, n := range answer.Notes(p) {
			if strings.HasPrefix(n.Code, "clamped") {
				named += n.Text + "\n"
			}
		}
		for _, s := range rewritetest.StatementsOf(p) {
			for _, found := range clampedText.FindAllStringSubmatch(s.SQL, -1) {
				if !bounds[found[1]] {
					continue
				}
				seen++
				if !strings.Contains(named, found[1]) {
					t.Errorf("%s: no note names the clamp of %s: %s\n%s", d.Pos, found[1], d.Input, s.SQL)
				}
			}
		}
	})
	if seen < 100 {
		t.Errorf("only %d clamped columns were seen", seen)
	}
}
