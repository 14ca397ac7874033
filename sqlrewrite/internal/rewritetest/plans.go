package rewritetest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// StatementsOf are the statements of all releases, in order, without a seed.
func StatementsOf(p *plan.Plan) (all []sqlprint.Statement) {
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			all = append(all, part.Statement)
		}
	}
	return all
}

// Printout is a statement that is printed again.
type Printout struct {
	sqlprint.Statement
	RowByRow bool // PostgreSQL would evaluate EXISTS or IN over many rows for each row
	Fired    []lower.Rule
}

// Printed is the statement of a part, printed without some passes of package lower.
func Printed(p *plan.Plan, part sqlprint.PlanPart, off ...string) Printout {
	claim, on := part.Statement.Claim, part.Statement.On
	printer := sqlprint.NewStatementPrinter(p.Query, p.Bounding, &part, sqlprint.Style{Off: off})
	printer.Print()
	part.Statement.Claim, part.Statement.On = claim, on
	if strings.Count(part.Statement.SQL, fence) > strings.Count(printer.B.String(), fence) { // in the places of marks
		printer.SemiJoins.Fire(lower.FenceRepeated)
	}
	return Printout{part.Statement.WithSeed(0), part.RowByRow, printer.SemiJoins.Fired()}
}

const fence = " OFFSET 0"

// CheckArgs fails where an argument is not used: PostgreSQL refuses a statement with a parameter that is nowhere used.
func CheckArgs(t *testing.T, d *datadriven.TestData, sql string, args []any) {
	t.Helper()
	for i := range args {
		if !strings.Contains(sql, fmt.Sprintf("$%d::", i+1)) {
			d.Fatalf(t, "$%d is not used in %s", i+1, sql)
		}
	}
}

// ShowArgs lists arguments from one on.
func ShowArgs(args []any, from int) string {
	var b strings.Builder
	for i, a := range args {
		if i >= from {
			fmt.Fprintf(&b, "  $%d = %v\n", i+1, a)
		}
	}
	return b.String()
}

// GoldenQueries are the queries of all golden files.
func GoldenQueries(t testing.TB) []string {
	t.Helper()
	var queries []string
	for _, name := range GoldenFiles() {
		text, err := os.ReadFile(GoldenFile(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			directive, rest, _ := strings.Cut(block, "\n")
			if sql, _, ok := strings.Cut(rest, "\n----"); ok && !strings.HasPrefix(directive, "policy") && !strings.HasPrefix(directive, "tables") {
				queries = append(queries, sql)
			}
		}
	}
	return queries
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
			for _, s := range StatementsOf(p) {
				fmt.Fprintf(&b, "sql:\n%s%s", parsetest.Indent(s.SQL), ShowArgs(s.Args, 0))
			}
		case "post":
			if p.Post != nil {
				released := len(p.Query.Keys) + len(p.Query.Estimators)
				fmt.Fprintf(&b, "post:\n%s%s", parsetest.Indent(p.Post.SQL()), ShowArgs(p.Post.Args(), released))
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
