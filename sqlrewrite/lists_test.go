package sqlrewrite

import (
	"errors"
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// What was released before there were lists, and before conditions narrowed bounds, is one of the forms of a question that has both: of its
// groups the listed ones are shown. Its answer and its vector are found under all names that it had.
func TestReleasesBeforeListsAndBounds(t *testing.T) {
	const sql = "SELECT sex, grade, sum(age) FROM people WHERE age < 30 AND (sex = 'Male' OR grade = 10) GROUP BY sex, grade"
	on := *rewritetest.TownSnapshot(t)
	on.EarlierReleases, on.EarlierQuestions, on.WideReleases, on.WideQuestions = true, true, true, true
	o := Options{Rho: mechanisms.PicoRho(mechanisms.RhoUnit) / 100, Mechanism: MechanismGaussian, Currency: catalog.ZCDP, Confidence: 0.95}
	unlisted, err := Rewrite(t.Context(), sql, &on, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Lists = &Lists{}
	var needed *NeedLists
	if _, err = Rewrite(t.Context(), sql, &on, o); !errors.As(err, &needed) || len(needed.Questions) != 1 {
		t.Fatal(err)
	}
	male, female, two, ten := catalog.Key{Text: "Male"}, catalog.Key{Text: "Female"}, catalog.Key{Text: "2"}, catalog.Key{Text: "10"}
	o.Lists.Known = map[ListName]Tuples{needed.Questions[0].Name: {{male, two}, {male, ten}, {male, {Null: true}}, {female, ten}}}
	question, err := Rewrite(t.Context(), sql, &on, o)
	if err != nil {
		t.Fatal(err)
	}
	wide := unlisted.made.Wide()
	if wide == nil || question.made.Wide() == nil {
		t.Fatal("the condition narrows no bounds")
	}
	s := rewritetest.FixedSampler(t)
	for name, c := range map[string]struct {
		had           *plan.Plan
		release, asks [32]byte
		block         [32]byte
		inWide        bool
	}{
		"over all keys": {unlisted.made, unlisted.made.ReleaseIdentity(), unlisted.made.Fingerprint(), unlisted.made.BlockQuestion(),
			false},
		"within the policy's bound": {wide, wide.ReleaseIdentity(), wide.Fingerprint(), wide.BlockQuestion(), true},
		"by its printed statements": {wide, earlier.Release(wide), earlier.Fingerprint(wide), earlier.BlockQuestion(wide), true},
		"of that name at any price": {wide, earlier.Release(wide), earlier.Fingerprint(wide), earlier.Question(wide), true},
	} {
		forms := question.Forms()
		at := slices.IndexFunc(forms, func(f Form) bool { return f.Identity() == c.release })
		if at < 0 {
			t.Errorf("%s: the release is no form of the question", name)
			continue
		}
		made, err := pipeline.Release(c.had, s, c.had.Draw(s), rewritetest.Streamed(nil))
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.Kept()
		if err != nil {
			t.Fatal(err)
		}
		if !forms[at].earlier { // which are stored in another order
			shownOf(t, name, forms[at], made, text)
		}
		if !slices.Contains(question.UnlistedFingerprints(), c.asks) || question.EarlierFingerprints() != nil {
			t.Errorf("%s: an answer is not looked for under its name", name)
		}
		if !slices.Contains(question.BlockQuestions(), c.block) || (question.WideUnder(c.block) != nil) != c.inWide {
			t.Errorf("%s: a vector is not looked for under its name", name)
		}
		of := question
		if c.inWide {
			of = question.WideUnder(c.block)
		}
		if reuse := of.Reuse((&Released{made}).Vector()); reuse == nil || reuse.Fresh() != nil {
			t.Errorf("%s: a vector is not used", name)
		}
	}
}

// shownOf holds what a form shows of a stored release against its groups.
func shownOf(t *testing.T, name string, form Form, made *plan.Released, text []byte) {
	t.Helper()
	shown, err := form.Recall(text)
	if err != nil || len(made.Rows) != 6 || len(shown.made.Rows) != 4 {
		t.Fatalf("%s: %v, of %d rows", name, err, len(made.Rows))
	}
	for _, row := range shown.made.Rows {
		was := slices.IndexFunc(made.Rows, func(r plan.ReleasedRow) bool { return slices.Equal(r.Keys, row.Keys) })
		if was < 0 || made.Rows[was].Noisy[0].Cmp(row.Noisy[0]) != 0 {
			t.Errorf("%s: row %v was not released", name, row)
		}
	}
}

// BenchmarkListedKeys plans a question over its policy's keys, and with a cached list of them.
func BenchmarkListedKeys(b *testing.B) {
	const sql = "SELECT sex, grade, sum(age) FROM people WHERE age < 30 AND (sex = 'Male' OR grade = 10) GROUP BY sex, grade"
	on := rewritetest.TownSnapshot(b)
	o := Options{Rho: mechanisms.PicoRho(mechanisms.RhoUnit) / 100, Mechanism: MechanismGaussian, Currency: catalog.ZCDP, Confidence: 0.95}
	listed := o
	listed.Lists = &Lists{}
	var needed *NeedLists
	if _, err := Rewrite(b.Context(), sql, on, listed); !errors.As(err, &needed) {
		b.Fatal(err)
	}
	listed.Lists.Known = map[ListName]Tuples{needed.Questions[0].Name: {{{Text: "Male"}, {Text: "2"}}, {{Text: "Female"}, {Text: "10"}}}}
	for name, options := range map[string]Options{"policy": o, "listed": listed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Rewrite(b.Context(), sql, on, options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
