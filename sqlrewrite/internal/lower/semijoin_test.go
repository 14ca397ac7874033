package lower_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/algebra"
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
		many, read := false, sqlprint.NewPreconditionWalk() // EXISTS and IN over small public tables are joined next to other joins only
		read.Visit = func(e algebra.Expr) { many = many || lower.QueriesMany(e) }
		read.Query(p.Query)
		before := sqlprint.RelationLines(p.Query.Source)
		for _, part := range p.Parts {
			as := rewritetest.Printed(p, part)
			if as.SQL != part.Statement.SQL {
				t.Errorf("%s: printed again, it is\n%s\nafter\n%s", d.Input, as.SQL, part.Statement.SQL)
			}
			off := rewritetest.Printed(p, part, lower.LiftSemiJoin)
			if off.SQL == as.SQL {
				continue
			}
			made++
			switch err := off.Prove(new(sqlprint.Proofs)); {
			case err != nil:
				unproven++
			case many && !off.RowByRow:
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

// The rules leave what they were given as it was, give the same each time, and do nothing where they were applied.
func TestRulesAreAppliedOnce(t *testing.T) {
	applied := 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		if p.Query == nil {
			return
		}
		read := func() (lower.Reading, bool) {
			s := lower.NewSemiJoins(nil)
			n, where, reads := s.Join(p.Query.Source.Node, p.Query.Where)
			if !reads {
				return lower.Reading{}, false
			}
			return s.ReadBothSides(n, where, "owned", "groups"), true
		}
		once, reads := read()
		twice, _ := read()
		if !reflect.DeepEqual(once, twice) {
			t.Errorf("%s: %v, then %v", d.Input, once, twice)
		}
		if !reads {
			return
		}
		applied++
		if n, _, again := lower.NewSemiJoins(nil).Join(once.From, nil); again || n != once.From {
			t.Errorf("%s: applied again, %v becomes %v", d.Input, once.From, n)
		}
	})
	if applied < 50 {
		t.Errorf("the rules are applied to %d golden questions", applied)
	}
}
