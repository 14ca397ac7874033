package plan_test

import (
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// A release over more keys, or more tuples of them, than lists leave is one of the forms of the question: of its groups those that are
// listed are shown, with their noise. So is a vector of it at another price.
func TestReleasesOverMoreKeys(t *testing.T) {
	t.Parallel()
	const sql = "SELECT sex, grade, count(*) FROM people GROUP BY sex, grade"
	before := rewritetest.TownPlan(t, sql, atRho(centiRho))
	narrow := func(list func(q *plan.Plan)) *plan.Plan {
		query := *before.Query
		query.Keys = slices.Clone(query.Keys)
		q := *before
		q.Query = &query
		list(&q)
		p, err := plan.NewPlan(q.Query, before.Snapshot, before.Options)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	fewer := narrow(func(p *plan.Plan) {
		p.Query.Keys[1].Leave(func(k catalog.Key) bool { return k.Text == "10" || k.Null })
	})
	pairs := narrow(func(p *plan.Plan) {
		p.Query.LeaveTuples([]int{0, 1}, [][]catalog.Key{{{Text: "Male"}, {Null: true}}, {{Text: "Female"}, {Text: "10"}},
			{{Text: "Male"}, {Text: "2"}}, {{Text: "Nobody"}, {Text: "2"}}, {{Text: "Female"}, {Text: "10"}}})
	})
	s := rewritetest.FixedSampler(t)
	made, err := pipeline.Release(before, s, before.Draw(s), rewritetest.Streamed(nil))
	if err != nil || len(made.Rows) != 6 {
		t.Fatal(err, made)
	}
	text, err := made.Kept()
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[*plan.Plan][]int{fewer: {1, 2, 4, 5}, pairs: {1, 3, 5}} {
		if p.ReleaseIdentity() == before.ReleaseIdentity() || p.BlockQuestion() == before.BlockQuestion() {
			t.Error("a release over fewer keys has the name of one over more")
		}
		forms := p.Forms()
		at := slices.IndexFunc(forms, func(form *plan.Plan) bool { return form.ReleaseIdentity() == before.ReleaseIdentity() })
		if at < 0 {
			t.Fatal("no form of the question is the release over all keys")
		}
		shown, err := pipeline.Recall(forms[at], text)
		if err != nil || len(shown.Rows) != len(want) {
			t.Fatalf("%v, %d rows", err, len(shown.Rows))
		}
		for i, place := range want {
			if was := made.Rows[place]; !slices.Equal(shown.Rows[i].Keys, was.Keys) || shown.Rows[i].Noisy[0].Cmp(was.Noisy[0]) != 0 {
				t.Errorf("row %d is %v, was %v", i, shown.Rows[i], was)
			}
		}
		if shown.Plan.Query != p.Query {
			t.Error("what is shown is of another question")
		}
		if found := p.BlockQuestions(); len(found) != 2 || found[1].BlockQuestion() != before.BlockQuestion() {
			t.Errorf("%d names at any price", len(found))
		}
		reuse := pipeline.Reuse(p, made.Vector())
		if reuse == nil || reuse.More != nil {
			t.Fatal("a release over more keys is not used")
		}
		weaker, err := pipeline.Weaker(reuse, s)
		if err != nil || len(weaker.Rows) != len(want) {
			t.Fatalf("%v, %d rows", err, len(weaker.Rows))
		}
	}
}
