package catalog

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
)

const diffBase = `version: 1
dataset: d
max_failures: 7
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [1, 2]}, secret: {expose: false}, city: {keys: private}}}
  visits: {unit: {via: who, to: people}, max_rows: 5, max_groups: 3}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 5, delta: 1e-6, min_epsilon: 0.01}
  - {group: a, per: analyst, form: zcdp, rho: 0.5, delta: 1e-9, max_epsilon_per_query: 1, mechanisms: [laplace]}
  - {group: a, form: approx, epsilon: 3, delta: 1e-7, tranche: {every: 30d, epsilon: 1}}
`

func parsed(t *testing.T, document string) *Policy {
	t.Helper()
	p, problems := Parse(document)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

// Each edit is one change with its effect, and undone it is the opposite one.
func TestDiffSaysWhomAChangeFavours(t *testing.T) {
	opposite := map[Effect]Effect{Loosens: Tightens, Tightens: Loosens, Changes: Changes}
	for _, c := range []struct {
		old, new string
		effect   Effect
		text     string
	}{
		{"epsilon: 5", "epsilon: 6", Loosens, "budgets.dataset.epsilon: 5 → 6"},
		{"rho: 0.5", "rho: 0.25", Tightens, "budgets.each of group a.rho: 0.5 → 0.25"},
		{"delta: 1e-6", "delta: 2e-6", Loosens, "budgets.dataset.delta: 0.000001 → 0.000002"},
		{", max_epsilon_per_query: 1", "", Loosens, "budgets.each of group a.max_epsilon_per_query: 1 → none"},
		{", min_epsilon: 0.01", "", Loosens, "budgets.dataset.min_epsilon: 0.01 → none"},
		{", mechanisms: [laplace]", "", Loosens, "budgets.each of group a.mechanisms: [\"laplace\"] → none"},
		{", tranche: {every: 30d, epsilon: 1}", "", Loosens, "budgets.group a.tranche: "},
		{"epsilon: 3", "epsilon: 3, default_epsilon: 0.1", Changes, "budgets.group a.default_epsilon: none → 0.1"},
		{"budgets:\n", "budgets:\n  - {analyst: bob, form: pure, epsilon: 1}\n", Loosens, "budgets.analyst bob: none → given"},
		{"  regions: {public: true}\n", "", Tightens, "tables.regions: given → none"},
		{"{public: true}", "{public: declassified}", Loosens, "tables.regions.declassified"},
		{"[1, 2]", "[1, 3]", Changes, "tables.people.columns.age.bounds: [1, 2] → [1, 3]"},
		{"secret: {expose: false}, ", "", Loosens, "tables.people.columns.secret"},
		{"city: {keys: private}", "city: {expose: false}", Tightens, "tables.people.columns.city.hidden"},
		{"max_rows: 5", "max_rows: 6", Changes, "tables.visits.max_rows: 5 → 6"},
		{"row: id", "column: id", Changes, "tables.people.unit"},
		{"max_groups: 3", "max_groups: 3, row_security: per-row", Loosens, "tables.visits.row_security"},
		{"max_failures: 7", "max_failures: 8", Loosens, "max_failures: 7 → 8"},
		{"max_failures: 7\n", "", Tightens, "max_failures: 7 → none"},
		{"dataset: d\n", "dataset: d\nshare_releases: true\n", Loosens, "share_releases"},
		{"dataset: d\n", "dataset: d\nrefresh_charges: true\n", Changes, "refresh_charges"},
		{"dataset: d\n", "dataset: d\nabout: {people: 5000}\n", Changes, "about"},
		{"dataset: d\n", "dataset: d\ndata_version: x\n", Changes, "data_version: none → x"},
		{"dataset: d\n", "dataset: d\ntiming: {unit_ms: 5, epsilon: 0.5, delta: 1e-9}\n", Tightens, "timing"},
	} {
		edited := strings.Replace(diffBase, c.old, c.new, 1)
		if edited == diffBase {
			t.Fatalf("%q is not there", c.old)
		}
		old, new := parsed(t, diffBase), parsed(t, edited)
		there, back := Diff(old, new), Diff(new, old)
		found := false
		for _, change := range there {
			found = found || change.Effect == c.effect && strings.HasPrefix(change.Text, c.text)
		}
		if !found || len(back) != len(there) {
			t.Errorf("%q → %q: %v, undone %v; want %s %s", c.old, c.new, there, back, c.effect, c.text)
			continue
		}
		for i := range there {
			if back[i].Effect != opposite[there[i].Effect] {
				t.Errorf("%v, undone %v", there[i], back[i])
			}
		}
	}
	if all := Diff(nil, parsed(t, diffBase)); len(all) < 7 {
		t.Errorf("a first policy is %v", all)
	}
}

// A difference is shown exactly where two policies are not the same policy: no field of it is forgotten, also none that comes later.
func TestDiffForgetsNoField(t *testing.T) {
	base := parsed(t, diffBase)
	if all := Diff(base, parsed(t, "# a comment\n"+strings.Replace(diffBase, "epsilon: 5", "epsilon: 5.0", 1))); len(all) > 0 {
		t.Errorf("the same policy differs: %v", all)
	}
	for _, part := range []struct {
		name string
		of   func(*Policy) any
	}{
		{"policy", func(p *Policy) any { return p }},
		{"table", func(p *Policy) any { return p.Tables[0] }},
		{"column", func(p *Policy) any { return p.Tables[0].Columns[0] }},
		{"budget", func(p *Policy) any { return &p.Budgets[0] }},
	} {
		fields := reflect.TypeOf(part.of(base)).Elem()
		for i := range fields.NumField() {
			f := fields.Field(i)
			if !f.IsExported() || f.Tag.Get("json") == "-" {
				continue
			}
			changed := parsed(t, diffBase)
			if !change(reflect.ValueOf(part.of(changed)).Elem().Field(i)) {
				t.Errorf("%s.%s: no other value of a %v is known here", part.name, f.Name, f.Type)
				continue
			}
			differ := string(changed.canonical()) != string(base.canonical())
			if all := Diff(base, changed); !differ || len(all) == 0 {
				t.Errorf("%s.%s is another one (%v), and the difference is %v", part.name, f.Name, differ, all)
			}
		}
	}
}

// change gives a field another value.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Pointer:
		if _, ok := v.Interface().(*big.Rat); ok {
			v.Set(reflect.ValueOf(big.NewRat(77, 100)))
			return true
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			return true
		}
		return change(v.Elem())
	case reflect.Slice:
		if v.Len() > 0 {
			v.Set(v.Slice(0, v.Len()-1))
			return true
		}
		item := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.Append(v, item))
	case reflect.Struct:
		return change(v.Field(0))
	default:
		return false
	}
	return true
}

func ExampleDiff() {
	old, _ := Parse(diffBase)
	edited, _ := Parse(strings.Replace(diffBase, "epsilon: 5", "epsilon: 6", 1))
	for _, c := range Diff(old, edited) {
		fmt.Println(c.Effect, c.Text)
	}
	// Output: loosens budgets.dataset.epsilon: 5 → 6
}
