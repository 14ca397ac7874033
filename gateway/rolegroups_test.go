package gateway

import (
	"slices"
	"strings"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/catalog"
)

// A line may name the group of a role by either name. Who changes the name keeps the accounts of the members; of shared accounts, those of
// both names count where both have a line.
func TestBothNamesOfARolesGroup(t *testing.T) {
	ana := principal(t, "ana") // an analyst, and in no group of the identity provider
	shared := func(name string) catalog.Budget { return line(catalog.GroupScope, name, 7) }
	for name, c := range map[string]struct {
		lines []catalog.Budget
		want  string
	}{
		"the old name":        {[]catalog.Budget{perAnalyst("analysts", 3)}, "dataset analyst:ana"},
		"the new name":        {[]catalog.Budget{perAnalyst("role:analysts", 3)}, "dataset analyst:ana"},
		"shared, by the new":  {[]catalog.Budget{shared("role:analysts")}, "dataset group:role:analysts"},
		"shared, by both":     {[]catalog.Budget{shared("role:analysts"), shared("analysts")}, "dataset group:analysts group:role:analysts"},
		"of the other role":   {[]catalog.Budget{perAnalyst("role:ml", 3), perAnalyst("role:analysts", 2)}, "dataset analyst:ana"},
		"both for each":       {[]catalog.Budget{perAnalyst("role:analysts", 2), perAnalyst("analysts", 3)}, "dataset analyst:ana"},
		"shared and for each": {[]catalog.Budget{shared("analysts"), perAnalyst("role:analysts", 3)}, "dataset group:analysts analyst:ana"},
	} {
		r := newRig(t, append([]catalog.Budget{line(catalog.DatasetScope, "", 9)}, c.lines...)...)
		snapshot, err := r.Snapshot("d")
		if err != nil {
			t.Fatal(err)
		}
		accounts, err := r.AccountsOf(t.Context(), ana, snapshot)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, a := range accounts.All() {
			got = append(got, a.ID.String())
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !owns(ana, budget.AccountID{Dataset: "d", Scope: budget.GroupScope, Name: "role:analysts"}) {
		t.Error("the shared account by the new name is nobody's own")
	}
}
