package lower_test

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/internal/mutate"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// testdata/rules lists the golden questions in whose statements a rule fires: one that fires no more, or elsewhere too, changes it. Each
// rule fires somewhere; where one of a pass fires, the statement is another without the pass, and where none does it is the same.
func TestRulesOfGoldenQuestions(t *testing.T) {
	t.Parallel()
	const file = "testdata/rules"
	all := lower.Rules()
	reads, prints := slices.Index(all, lower.LeftForInner), slices.Index(all, lower.CapRows)
	passes := map[string][]lower.Rule{lower.LiftSemiJoin: all[:reads],
		lower.ReadBothSides: append(slices.Clone(all[reads:prints]), lower.FenceJoins, lower.HideEqualities)}
	fires := map[lower.Rule]map[string]bool{} // for which questions
	var asked []string
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		if p.Query == nil {
			return
		}
		name, _, _ := strings.Cut(path.Base(d.Pos), ":")
		question := name + ": " + strings.Join(strings.Fields(d.Input), " ")
		for _, part := range p.Parts {
			as := rewritetest.Printed(p, part)
			for _, r := range as.Fired {
				if fires[r] == nil {
					fires[r] = map[string]bool{}
				}
				fires[r][question] = true
			}
			for pass, rules := range passes {
				changed := slices.ContainsFunc(as.Fired, func(r lower.Rule) bool { return slices.Contains(rules, r) })
				if same := rewritetest.Printed(p, part, pass).SQL == as.SQL; same == changed {
					t.Errorf("%s: without %s the statement is the same: %v, and %v fired", d.Pos, pass, same, as.Fired)
				}
			}
		}
		if !slices.Contains(asked, question) {
			asked = append(asked, question)
		}
	})
	var list strings.Builder
	for _, question := range asked {
		names := ""
		for _, r := range all {
			if fires[r][question] {
				names += " " + string(r)
			}
		}
		if names != "" {
			fmt.Fprintf(&list, "%s\n\t%s\n", question, names[1:])
		}
	}
	for _, r := range all {
		if fires[r] == nil {
			t.Errorf("%s fires for no golden question", r)
		}
	}
	text, err := os.ReadFile(file)
	switch {
	case flag.Lookup("rewrite").Value.String() == "true" && !t.Failed(): // datadriven's
		err = os.WriteFile(file, []byte(list.String()), 0o600)
	case list.String() != string(text):
		t.Errorf("%s does not have the rules that fire: make golden writes it", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ruleMutants each lack a rule, or break it in the way that its guarantee forbids, and are found by a test of package sqlprint.
var ruleMutants = []struct {
	rule                    lower.Rule
	file, old, mutant, test string
}{
	{lower.JoinByEqualities, "lower/semijoin.go", `l := s.tied(e)`, `l := s.paired(e)`, "TestTablesAreReadWhateverOneUnitHolds/A4"},
	{lower.JoinByEqualities, "lower/semijoin.go", `{{Distinct: true}}`, `{{}}`, "TestPreconditionsOfRelations"},
	{lower.JoinOneValue, "lower/semijoin.go", "if len(equal) == 0 { //", "if len(equal) == 0 {\n\t\treturn nil //",
		"TestConditionsOverBothSidesAreJoins"},
	{lower.JoinByFields, "lower/semijoin.go", `l = s.paired(e)`, `l = nil`, "TestRowByRowIsRefused"},
	{lower.SpellIn, "lower/semijoin.go", `len(places) > mostSpelled`, `len(places) > 0`, "TestRowByRowIsRefused"},
	{lower.TestAhead, "lower/semijoin.go", `case j.Kind != syntax.FullJoin && s.readsBoth(c, l, r):`, `case false:`,
		"TestTablesAreReadWhateverOneUnitHolds/conditions_over_both_sides"},
	{lower.LeftForInner, "lower/readboth.go", `Kind: syntax.LeftJoin, On: algebra.BoundConjuncts(j.On)`,
		`Kind: syntax.InnerJoin, On: algebra.BoundConjuncts(j.On)`, "TestTablesAreReadWhateverOneUnitHolds/A2"},
	{lower.FullForInner, "lower/readboth.go", `if !l.steady || joinsPeople(r.was) && l.key != nil {`, `if false {`,
		"TestTablesAreReadWhateverOneUnitHolds/A5"},
	{lower.FullForLeft, "lower/readboth.go", `both && unit != nil && key != nil`, `false && unit != nil`,
		"TestTablesAreReadWhateverOneUnitHolds/A1"},
	{lower.SwapSides, "lower/readboth.go", `if l.key != nil && s.swaps(j, l, r) {`, `if false {`,
		"TestPeopleAreReadWhereNoPublicRowIsLeft"},
	{lower.ValueFirst, "lower/readboth.go", `stability.OfLarge(j) && unit != nil {`, `false && unit != nil {`,
		"TestTablesAreReadWhateverOneUnitHolds/A5"},
	{lower.FenceLate, "lower/readboth.go", `if len(all) > 0 && late > 0 || len(r.present) > 0 && len(r.outer) > 0 {`, `if late < 0 {`,
		"TestTablesAreReadWhateverOneUnitHolds/A1_conditions_from_above"},
	{lower.CapRows, "sqlprint/rowcap.go", `v.place <= `, `v.place <> `, "TestPreconditionsOfRelations"},
	{lower.ByPartition, "sqlprint/partitioning.go", `half + " <> "`, `half + " = "`, "TestPreconditionsOfRelations"},
	{lower.FenceRepeated, "sqlprint/repeat.go", `again <= left ||`, `again/2 <= left ||`, "TestColumnsOfQueriesAreComputedOnce"},
	{lower.FenceJoins, "sqlprint/print_from.go", "if joins {\n", "if joins && q == nil {\n",
		"TestTablesAreReadWhateverOneUnitHolds/A1_conditions_from_above"},
	{lower.HideEqualities, "sqlprint/print.go", `if p.hiding && e.Op == syntax.Eq {`, `if false {`, "TestPlansDoNotFollowOneUnit"},
}

var runMutants = flag.Bool("mutants", false, "run the tests on each mutant of a rule")

// Each rule has mutants, and all of them die. make mutants runs them: go test ./sqlrewrite/internal/lower -run Mutants -mutants.
func TestMutantsOfRulesDie(t *testing.T) {
	edits := make([]mutate.Edit, len(ruleMutants))
	var tests []string
	without := lower.Rules()
	for i, m := range ruleMutants {
		edits[i] = mutate.Edit{File: m.file, Old: m.old, New: m.mutant}
		tests = append(tests, "^"+m.test+"$")
		without = slices.DeleteFunc(without, func(r lower.Rule) bool { return r == m.rule })
	}
	if len(without) > 0 {
		t.Errorf("%v have no mutants", without)
	}
	mutants, err := mutate.New("..", edits)
	if err != nil {
		t.Fatal(err)
	}
	if !*runMutants {
		t.Log("mutants are looked for, not run")
		return
	}
	program, err := mutants.Compile(t.Context(), "../sqlprint", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if dead, out, err := program.Kills(t.Context(), 0, strings.Join(tests, "|")); dead || err != nil {
		t.Fatalf("without a mutant: %v\n%s", err, out)
	}
	for i, m := range ruleMutants {
		t.Run(fmt.Sprint(m.rule, i), func(t *testing.T) {
			t.Parallel()
			switch dead, out, err := program.Kills(t.Context(), i+1, tests[i]); {
			case err != nil:
				t.Errorf("was not tested: %s: %v\n%s", m.old, err, out)
			case !dead:
				t.Errorf("survives %s: %s", m.test, m.old)
			}
		})
	}
}
