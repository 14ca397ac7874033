package sqlrewrite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// The golden files, one per clause, read as a specification: the tables and the policy at the top, then queries with the plan and
// the SQL that runs ("plan"), or with the refusal as a user sees it ("refuse"). After a deliberate change:
// go test ./sqlrewrite -run Golden -rewrite, and read the difference.
func TestGolden(t *testing.T) {
	for _, clause := range rewritetest.GoldenClauses() {
		t.Run(clause, func(t *testing.T) {
			rewritetest.RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
				switch d.Cmd {
				case "plan", "refuse":
					p, err := pipeline.Rewrite(d.Input, snapshot, rewritetest.ParseOptions(t, d))
					if (err != nil) != (d.Cmd == "refuse") {
						d.Fatalf(t, "%s: err = %v", d.Cmd, err)
					}
					if err != nil {
						return parsetest.ShowFault(err)
					}
					for _, s := range rewritetest.StatementsOf(p) {
						rewritetest.CheckArgs(t, d, s.SQL, s.Args)
					}
					if p.Post != nil {
						rewritetest.CheckArgs(t, d, p.Post.SQL(), p.Post.Args())
					}
					return showPlan(p, d)
				default:
					d.Fatalf(t, "unknown command %q", d.Cmd)
					return ""
				}
			})
		})
	}
}

// showPlan writes what show= asks for: tree, sql, post, loss, notes, estimate; without it, tree, sql, post and loss.
func showPlan(p *plan.Plan, d *datadriven.TestData) string {
	parts := []string{"tree", "sql", "post", "loss"}
	for _, arg := range d.CmdArgs {
		if arg.Key == "show" {
			parts = arg.Vals
		}
	}
	var b strings.Builder
	explanation := explain.Explain(p)
	for _, part := range parts {
		switch part {
		case "tree":
			b.WriteString(explanation.Tree)
		case "sql":
			for _, s := range rewritetest.StatementsOf(p) {
				fmt.Fprintf(&b, "sql:\n%s%s", parsetest.Indent(s.SQL), rewritetest.ShowArgs(s.Args, 0))
			}
		case "post":
			if p.Post != nil {
				released := len(p.Query.Keys) + len(p.Query.Estimators)
				fmt.Fprintf(&b, "post:\n%s%s", parsetest.Indent(p.Post.SQL()), rewritetest.ShowArgs(p.Post.Args(), released))
			}
		case "loss":
			l := p.Loss()
			fmt.Fprintf(&b, "loss: epsilon %v%s, rho %v, delta %v\n", l.Epsilon, map[bool]string{true: " unbounded"}[l.Unbounded], l.Rho, l.Delta)
		case "notes":
			for _, n := range explanation.Notes {
				fmt.Fprintf(&b, "note %s: %s\n", n.Code, n.Text)
			}
		case "estimate":
			for _, o := range explanation.Outputs {
				fmt.Fprintf(&b, "%s: %s; sensitivity %s", o.Name, o.Bound, o.Sensitivity)
				if o.HalfWidth != nil {
					fmt.Fprintf(&b, "; ± %s", scalar.DecimalOrFraction(o.HalfWidth))
				}
				if o.RankError != nil {
					fmt.Fprintf(&b, "; ± %s rows", scalar.DecimalOrFraction(o.RankError))
				}
				for _, s := range o.ShownAt {
					fmt.Fprintf(&b, "; %v shown from %d", s.Probability, s.Units)
				}
				fmt.Fprintf(&b, "; epsilon %v, rho %v, delta %v\n", o.Loss.Epsilon, o.Loss.Rho, o.Loss.Delta)
			}
		default:
			return "unknown part " + part
		}
	}
	return b.String()
}

// Codes of bind and plan that a golden file must show at least once, so that no refusal goes unread.
func TestEveryRefusalIsGolden(t *testing.T) {
	want := []fault.Code{
		fault.CodeNotAggregate, fault.CodeMissingBounds, fault.CodeMissingKeys, fault.CodeUnitColumn, fault.CodeUnitJoin,
		fault.CodeMissingDelta, fault.CodeLooserBound, fault.CodePriceTooSmall, fault.CodeMechanism, fault.CodeTooManyKeys, fault.CodeStep,
		fault.CodeUnknownTable, fault.CodeUnknownColumn, fault.CodeUnknownFunction, fault.CodeTypeMismatch, fault.CodeUnsupported,
	}
	seen := goldenCodes(t)
	for _, code := range want {
		if !slices.Contains(seen, string(code)) {
			t.Errorf("no golden file shows %s", code)
		}
	}
}

// goldenCodes lists the codes of all refusals in the golden files.
func goldenCodes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(rewritetest.GoldenFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?m)^((?:sql|policy|plan)/[a-z-]+): `)
	var codes []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a directory: fuzzing's seeds
		}
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, m[1])
		}
	}
	return codes
}
