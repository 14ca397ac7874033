package lower_test

import (
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// A plan's statement in which EXISTS and IN stay as they are is not proven, or refused because PostgreSQL would evaluate them row by row.
// Printing one makes joins anew, and leaves the question alone.
func TestStatementsWithoutSemiJoinsAreRefused(t *testing.T) {
	made, unproven := 0, 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		if p.Query == nil || p.Bounding.Kind == "" {
			return
		}
		printed := func(part sqlprint.PlanPart, joins *lower.SemiJoins) (s sqlprint.Statement, rowByRow bool) {
			claim, on := part.Statement.Claim, part.Statement.On
			printer := sqlprint.NewStatementPrinter(p.Query, p.Bounding, &part)
			printer.SemiJoins = joins
			printer.Print()
			part.Statement.Claim, part.Statement.On = claim, on
			return part.Statement.WithSeed(0), part.RowByRow
		}
		before := sqlprint.RelationLines(p.Query.Source)
		for _, part := range p.Parts {
			as, _ := printed(part, lower.NewSemiJoins(nil))
			if as.SQL != part.Statement.SQL {
				t.Errorf("%s: printed again, it is\n%s\nafter\n%s", d.Input, as.SQL, part.Statement.SQL)
			}
			off, rowByRow := printed(part, lower.NoSemiJoins())
			if off.SQL == as.SQL {
				continue
			}
			made++
			switch err := off.Prove(new(sqlprint.Proofs)); {
			case err != nil:
				unproven++
			case !rowByRow:
				t.Errorf("%s: proven without joins:\n%s", d.Input, off.SQL)
			}
		}
		if after := sqlprint.RelationLines(p.Query.Source); !slices.Equal(before, after) {
			t.Errorf("%s: %q became %q", d.Input, before, after)
		}
	})
	if unproven == 0 {
		t.Errorf("%d statements have such joins, and all are proven without", made)
	}
}
