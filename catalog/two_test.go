package catalog

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
)

const twoBase = `version: 1
dataset: d
max_failures: 7
share_releases: true
timing: {unit_ms: 5, epsilon: 0.5, delta: 1e-9}
stewards: {two_for: [public, unit, bounds, domain, cap]}
tables:
  Bounds: {public: true}
  people: {unit: {row: id}, not_covered: [staff], columns: {Bounds: {expose: false}, age: {bounds: [1, 2]}, city: {keys: private}, sex: {domain: [f, m]}}}
  visits: {unit: {column: who}, max_rows: 5, max_groups: 3, prepare: {max_rows: 9}, columns: {note: {max_length: 9}}}
budgets:
  - {dataset: true, form: approx, epsilon: 5, delta: 1e-6, min_epsilon: 0.01, default_epsilon: 0.1}
  - {group: a, per: analyst, form: zcdp, rho: 0.5, delta: 1e-9, max_epsilon_per_query: 1, mechanisms: [laplace]}
  - {group: b, per: analyst, form: approx, epsilon: 4, delta: 1e-7, rate: {epsilon: 1, per: 1m}}
  - {group: a, form: approx, epsilon: 3, delta: 1e-7, tranche: {every: 30d, epsilon: 1}}
  - {analyst: bi, replay_only: true}
`

// Each change is of its kind, the other way too; "" says that it takes nobody else. What has no specific kind is of all.
//
// covers: A76
func TestKindsOfChanges(t *testing.T) {
	all := strings.Join(TwoForKinds(), " ")
	for _, c := range []struct{ old, new, there, back string }{
		{"{public: true}", "{public: declassified}", "public", ""},
		{"  Bounds: {public: true}\n", "", "", "public"},
		{"{public: true}", "{unit: {row: id}}", "unit", "public unit"},
		{"Bounds: {expose: false}, ", "", "public", ""},
		{"Bounds: {expose: false}, ", "Bounds: {bounds: [0, 1]}, ", "bounds public", "bounds"},
		{"{row: id}", "{column: id}", "unit", "unit"},
		{"{column: who}", "{column: whom}", "unit", "unit"},
		{", not_covered: [staff]", "", "unit", "unit"},
		{"max_groups: 3", "max_groups: 3, row_security: per-row", "unit", "unit"},
		{"[1, 2]", "[1, 3]", "bounds", "bounds"},
		{"[1, 2]", "[1, 2], step: 0.5", "bounds", "bounds"},
		{"max_rows: 5", "max_rows: 6", "bounds", "bounds"},
		{", max_groups: 3", "", "bounds", "bounds"},
		{"max_groups: 3", "max_groups: 3, max_values: 2, max_rows_total: 7", "bounds", "bounds"},
		{"max_length: 9", "max_length: 8", "bounds", "bounds"},
		{"max_rows: 9", "max_rows: 10", "bounds", "bounds"},
		{"{max_rows: 9}", "{max_rows: 9, ranks: [[note]]}", "bounds", "bounds"},
		{"prepare: {max_rows: 9}", "prepare: {max_rows: 9}, require_prepared: true", "", "bounds"},
		{"[f, m]", "[f, m, x]", "domain", "domain"},
		{"{keys: private}", "{domain: [x]}", "domain", "domain"},
		{"max_rows: 5,", "max_rows: 5, domains: [{columns: [x, y], table: Bounds, values: [x, y]}],", "domain", "domain"},
		{"epsilon: 5,", "epsilon: 6,", "cap", ""},
		{"rho: 0.5", "rho: 0.6", "cap", ""},
		{"delta: 1e-6", "delta: 2e-6", "cap", ""},
		{", max_epsilon_per_query: 1", "", "cap", ""},
		{"max_epsilon_per_query: 1", "max_epsilon_per_query: 2", "cap", ""},
		{"min_epsilon: 0.01", "min_epsilon: 0.001", "cap", ""},
		{", min_epsilon: 0.01", "", "cap", ""},
		{"epsilon: 4, delta: 1e-7", "epsilon: 4, delta: 1e-7, min_epsilon: 0.0009", "cap", "cap"},
		{"epsilon: 4, delta: 1e-7", "epsilon: 4, delta: 1e-7, min_epsilon: 0.001", "", "cap"},
		{"default_epsilon: 0.1", "default_epsilon: 0.2", "", ""},
		{", mechanisms: [laplace]", "", "cap", ""},
		{"[laplace]", "[gaussian]", "cap", "cap"},
		{", rate: {epsilon: 1, per: 1m}", "", "cap", ""},
		{"{epsilon: 1, per: 1m}", "{epsilon: 1, per: 2m}", "cap", "cap"},
		{", tranche: {every: 30d, epsilon: 1}", "", "cap", ""},
		{"{every: 30d, epsilon: 1}", "{every: 30d, epsilon: 0.5}", "cap", "cap"},
		{"form: zcdp, rho: 0.5", "form: approx, epsilon: 0.5", "cap", "cap"},
		{"  - {analyst: bi, replay_only: true}\n", "", "cap", "cap"},
		{"bi, replay_only: true", "bi, form: approx, epsilon: 0.1, delta: 1e-7", "cap", "cap"},
		{"budgets:\n", "budgets:\n  - {analyst: bob, replay_only: true}\n", "cap", "cap"},
		{"group: b, per", "group: c, per", "cap", "cap"},
		{"  - {group: a, per: analyst, form: zcdp, rho: 0.5, delta: 1e-9, max_epsilon_per_query: 1, mechanisms: [laplace]}\n" +
			"  - {group: b, per: analyst, form: approx, epsilon: 4, delta: 1e-7, rate: {epsilon: 1, per: 1m}}\n",
			"  - {group: b, per: analyst, form: approx, epsilon: 3, delta: 1e-7, rate: {epsilon: 1, per: 1m}}\n" +
				"  - {group: a, per: analyst, form: zcdp, rho: 0.5, delta: 1e-9, max_epsilon_per_query: 1, mechanisms: [laplace]}\n", "cap", "cap"},
		{"max_failures: 7", "max_failures: 8", all, ""},
		{"max_failures: 7\n", "", "", all},
		{"share_releases: true", "share_releases: false", "", all},
		{"timing: {unit_ms: 5, epsilon: 0.5, delta: 1e-9}\n", "", all, ""},
		{"unit_ms: 5", "unit_ms: 4", all, all},
		{"dataset: d\n", "dataset: d\npate: {votes: [{table: v, unit: t, query: q, label: l}]}\n", all, all},
		{"dataset: d\n", "dataset: e\n", all, all},
		{"dataset: d\n", "dataset: d\nrefresh_charges: true\n", "", ""},
		{"dataset: d\n", "dataset: d\ndata_version: x\n", "", ""},
		{"dataset: d\n", "# a comment\ndataset: d\n", "", ""},
		{"  visits: {unit: {column: who}, max_rows: 5, max_groups: 3, prepare: {max_rows: 9}, columns: {note: {max_length: 9}}}\n", "",
			"bounds unit", "bounds unit"},
	} {
		edited := strings.Replace(twoBase, c.old, c.new, 1)
		if edited == twoBase {
			t.Fatalf("%q is not there", c.old)
		}
		old, new := parsed(t, twoBase), parsed(t, edited)
		if there, back := critical(old, new), critical(new, old); strings.Join(there, " ") != c.there || strings.Join(back, " ") != c.back {
			t.Errorf("%q → %q: %v, and back %v; want %q and %q", c.old, c.new, there, back, c.there, c.back)
		}
		loosensNothing(t, old, new)
		loosensNothing(t, new, old)
	}
	if got := critical(nil, parsed(t, twoBase)); !slices.Equal(got, TwoForKinds()) {
		t.Errorf("of a policy that cannot be read: %v", got)
	}
}

// loosensNothing makes sure that a change which takes nobody else is never reported as loosening something. What two_for loses is looked at
// apart.
func loosensNothing(t *testing.T, old, new *Policy) {
	t.Helper()
	if len(critical(old, new)) > 0 {
		return
	}
	for _, c := range Diff(old, new) {
		if c.Effect == Loosens && !strings.HasPrefix(c.Text, "stewards.two_for") {
			t.Errorf("it takes one steward, and loosens %s", c.Text)
		}
	}
}

// A setting that is not listed as harmless is of all kinds, wherever it stands and whatever it is called. No field is forgotten, also none
// that comes later, and no name of a table or column passes for a setting.
func TestUnknownSettingsAreOfAllKinds(t *testing.T) {
	for _, path := range []string{"New", "New.RequirePrepared", "Tables.t.New", "Tables.DataVersion.New", "Tables.t.RequirePrepared.New",
		"Tables.t.New.RequirePrepared", "Tables.t.Columns.c.New", "Tables.t.Columns.RequirePrepared.New", "Tables.t.DefaultEpsilon",
		"Budgets.dataset.New", "Budgets.dataset.New.DefaultRho", "Stewards.New", "DataVersion.New", "Pate"} {
		if got := kindsOf(strings.Split(path, "."), nil, "x"); !slices.Equal(got, TwoForKinds()) {
			t.Errorf("%s: %v", path, got)
		}
	}
	harmless := map[string]bool{"policy.DataVersion": true, "policy.RefreshCharges": true,
		"budget.DefaultEpsilon": true, "budget.DefaultRho": true, "budget.DefaultDelta": true}
	base := func() *Policy { return parsed(t, diffBase) }
	for _, part := range []struct {
		name string
		of   func(*Policy) any
	}{
		{"policy", func(p *Policy) any { return p }},
		{"table", func(p *Policy) any { return p.Tables[0] }},
		{"column", func(p *Policy) any { return p.Tables[0].Columns[0] }},
		{"budget", func(p *Policy) any { return &p.Budgets[0] }},
	} {
		fields := reflect.TypeOf(part.of(base())).Elem()
		for i := range fields.NumField() {
			f := fields.Field(i)
			if !f.IsExported() || f.Tag.Get("json") == "-" {
				continue
			}
			changed := base()
			if !change(reflect.ValueOf(part.of(changed)).Elem().Field(i)) {
				t.Errorf("%s.%s: no other value of a %v is known here", part.name, f.Name, f.Type)
				continue
			}
			there, back := critical(base(), changed), critical(changed, base())
			loosensNothing(t, base(), changed)
			loosensNothing(t, changed, base())
			if name := part.name + "." + f.Name; harmless[name] != (len(there)+len(back) == 0) {
				t.Errorf("%s: %v, and back %v", name, there, back)
			}
		}
	}
}

// Whatever else changes, a change of a kind is found: random policies that differ in one protected thing, in harmless ones, and in order.
func TestKindsAreFoundBesideOtherChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	edits := map[string][][2]string{
		"": {{"default_epsilon: 0.1", "default_epsilon: 0.3"}, {"dataset: d\n", "dataset: d\ndata_version: y\n"},
			{"epsilon: 5,", "epsilon: 4,"}},
		"public": {{"{public: true}", "{public: declassified}"}, {"Bounds: {expose: false}, ", ""}},
		"unit":   {{"{row: id}", "{row: key}"}, {"not_covered: [staff]", "not_covered: [others]"}},
		"bounds": {{"[1, 2]", "[0, 2]"}, {"max_groups: 3", "max_groups: 30"}, {"max_length: 9", "max_length: 90"}},
		"domain": {{"[f, m]", "[f]"}, {"city: {keys: private}", "city: {}"}},
		"cap":    {{"rho: 0.5", "rho: 0.7"}, {"epsilon: 3,", "epsilon: 3.5,"}, {"{analyst: bi", "{analyst: bo"}},
	}
	base, documents := parsed(t, twoBase), randomtest.Part(500, 2000)
	if testing.Short() {
		documents = 200
	}
	for range documents {
		document, want := twoBase, []string{}
		for _, kind := range append(TwoForKinds(), "") {
			if random.IntN(2) == 0 {
				continue
			}
			edit := edits[kind][random.IntN(len(edits[kind]))]
			document = strings.Replace(document, edit[0], edit[1], 1)
			if kind != "" {
				want = append(want, kind)
			}
		}
		lines := strings.SplitAfter(document, "\n")
		tables := slices.Index(lines, "tables:\n")
		random.Shuffle(3, func(i, j int) { lines[tables+1+i], lines[tables+1+j] = lines[tables+1+j], lines[tables+1+i] })
		next := parsed(t, strings.Join(lines, ""))
		if got := critical(base, next); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v, of\n%s", got, want, document)
		}
		if got := base.raisedBy(next); got != slices.Contains(want, forCap) {
			t.Fatalf("raises caps: %t, of\n%s", got, document)
		}
	}
	unknown := parsed(t, regexp.MustCompile(`max_failures: \d+`).ReplaceAllString(twoBase, "max_failures: 1000"))
	if !slices.Contains(critical(base, unknown), forCap) || base.raisedBy(unknown) {
		t.Error("what takes two stewards for all kinds raises no cap by itself")
	}
}

func TestTwoForIsRead(t *testing.T) {
	for _, wrong := range []string{"[]", "[all]", "[cap, cap]", "cap", "{cap: true}"} {
		if _, problems := Parse(strings.Replace(twoBase, "[public, unit, bounds, domain, cap]", wrong, 1)); len(problems) == 0 {
			t.Errorf("two_for: %s is taken", wrong)
		}
	}
	if _, problems := Parse(strings.Replace(twoBase, "{two_for: [public, unit, bounds, domain, cap]}", "{sam: key}", 1)); len(problems) == 0 {
		t.Error("a policy names stewards")
	}
}

// What takes two stewards is refused to one: as long as the policy in force says so, also about what it says itself; and what makes public
// again what was protected, whatever it says. Where the configuration names one steward, nobody can approve.
//
// covers: A76
func TestTwoStewardsForPolicies(t *testing.T) {
	p := small(t)
	chain := &tables{pool: pgtest.PoolOf(t, pgtest.Control(t).LedgerDSN), stewards: []string{"eve", "sam"}}
	store := NewStore(chain.pool, chain)
	two := func(kinds string) string {
		return strings.Replace(smallPolicy, "tables:", "stewards: {two_for: ["+kinds+"]}\ntables:", 1)
	}
	give := func(document, approval string) error {
		policy := parsed(t, document)
		schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
		if err != nil {
			t.Fatal(err)
		}
		a := Application{Policy: policy, Schema: schema, By: "sam", Replaces: AnyVersion}
		if approval != "" {
			a.Approval = approval
		}
		review, err := store.Review(t.Context(), policy, schema)
		_, _, applied := store.Apply(t.Context(), a)
		if err == nil && (len(review.Two) > 0) != (fault.CodeOf(applied) == fault.CodePolicySignature) && approval == "" {
			t.Errorf("the review says %v, and it ends in %v", review.Two, applied)
		}
		return applied
	}
	want := func(what string, err error, code fault.Code) {
		t.Helper()
		if fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	chain.stewards = []string{"sam"}
	want("one steward is named", give(two("public"), ""), fault.CodePolicyInvalid)
	chain.stewards = []string{"eve", "sam"}
	want("the first policy", give(two("public, cap"), ""), "")
	raised := func(document string) string { return strings.Replace(document, "epsilon: ", "epsilon: 1", 1) }
	want("a cap", give(raised(two("public, cap")), ""), fault.CodePolicySignature)
	want("one kind less", give(two("cap"), ""), fault.CodePolicySignature)
	want("none", give(smallPolicy, ""), fault.CodePolicySignature)
	want("none, and a signature that does not hold", give(smallPolicy, "forged"), fault.CodePolicySignature)
	want("one kind more", give(two("public, cap, unit"), ""), "")
	want("a signature that nothing wants, and that does not hold", give(two("public, cap, unit, bounds"), "forged"), fault.CodePolicySignature)
	want("a cap, signed", give(raised(two("public, cap, unit")), "signed"), "")
	chain.stewards = nil
	want("another configuration", give(two("public, cap, unit"), ""), fault.CodePolicyInvalid)
	want("another configuration, without", give(smallPolicy, ""), fault.CodePolicySignature)
	chain.stewards = []string{"eve", "sam"}
	want("none, signed", give(smallPolicy, "signed"), "")
	want("a cap, and none in force", give(raised(raised(smallPolicy)), ""), "")

	// A table that was protected.
	open := strings.Replace(smallPolicy, "more_visits: {unit: {column: person_id}}", "more_visits: {public: declassified}", 1)
	if open == smallPolicy {
		t.Fatal(smallPolicy)
	}
	chain.stewards = []string{"sam"}
	want("public with one steward", give(open, ""), fault.CodePolicyInvalid)
	chain.stewards = []string{"eve", "sam"}
	want("public", give(open, ""), fault.CodePolicySignature)
	want("public, signed", give(open, "signed"), "")
}
