package catalog

import (
	"fmt"
	"strings"
	"testing"
)

const reviewedPolicy = `version: 1
dataset: town
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      age: {bounds: [0, 100]}
  visits:
    unit: {via: person_id, to: people}
    max_rows: 5
    max_groups: 2
  items:
    unit: {via: id, to: visits}
    max_rows: 5
    max_groups: 2
  geo.regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// A change renews the releases that rest on it: those of its table, and of tables whose units lie beyond this one.
func TestRenewedTables(t *testing.T) {
	at := func(edits ...string) *Snapshot {
		t.Helper()
		text := strings.NewReplacer(edits...).Replace(reviewedPolicy)
		policy, problems := Parse(text)
		if len(problems) > 0 || len(edits) > 0 && text == reviewedPolicy {
			t.Fatal(problems, text)
		}
		snapshot, problems := Check(policy, testSchema())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return snapshot
	}
	old := at()
	for _, c := range []struct {
		edits []string
		want  string
	}{
		{nil, "[]"},
		{[]string{"epsilon: 10", "epsilon: 20"}, "[]"},
		{[]string{"neighbours: add-remove\n", "neighbours: add-remove\nabout: {people: 5000}\n"}, "[]"},
		{[]string{"neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n"}, "[]"},
		{[]string{"      age: {bounds: [0, 100]}\n", "\n      # a line more\n      age: {bounds: [0, 100]}\n"}, "[]"},
		{[]string{"max_groups: 2\n  geo", "max_groups: 3\n  geo"}, "[items]"},
		{[]string{"  geo.regions: {public: true}\n", ""}, "[geo.regions]"},
		{[]string{"max_rows: 5\n    max_groups: 2\n  items", "max_rows: 4\n    max_groups: 2\n  items"}, "[items visits]"},
		{[]string{"bounds: [0, 100]", "bounds: [0, 99]"}, "[items people visits]"},
	} {
		if got := renewed(old, at(c.edits...)); fmt.Sprint(got) != c.want {
			t.Errorf("%q renews %v, want %s", c.edits, got, c.want)
		}
	}
	for _, c := range []struct {
		review Review
		want   string
	}{
		{Review{}, "no policy yet"},
		{Review{Version: 1, Same: true, All: true}, "nothing: every answer"},
		{Review{Version: 1}, "nothing: what was released"},
		{Review{Version: 1, All: true}, "every answer: "},
		{Review{Version: 1, Renewed: renewed(old, at("bounds: [0, 100]", "bounds: [0, 99]"))}, "what changes of items, people, visits: "},
	} {
		if got := c.review.Renews(); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c.review, got)
		}
	}
}

// What a policy says of its people is said of one kind of units.
func TestAboutIsOfOneKind(t *testing.T) {
	about := strings.Replace(reviewedPolicy, "tables:\n", "about: {people: 5000}\ntables:\n", 1)
	if snapshot, problems := Check(policyOf(t, about), testSchema()); len(problems) > 0 || snapshot.People != 5000 {
		t.Errorf("%+v %v", snapshot, problems)
	}
	two := strings.Replace(about, "unit: {via: id, to: visits}", "unit: {column: id, of: things}\n    not_covered: [people]", 1)
	if _, problems := Check(policyOf(t, two), testSchema()); len(problems) != 1 || !strings.Contains(problems[0].Error(), "several kinds") {
		t.Errorf("%v", problems)
	}
}
