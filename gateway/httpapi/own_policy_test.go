package httpapi

import (
	"strings"
	"testing"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Nobody changes by a policy what their own questions are charged by, other than to lower it; another steward does. What is refused makes
// no version.
//
// covers: A76
func TestNobodyRaisesTheirOwnByPolicy(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	const (
		both, alone, sam = "ana:analyst,steward", "ana:steward", "sam:steward"
		mine             = "{group: analysts, per: analyst, form: approx, epsilon: 10,"
		last             = "  - {analyst: bi, replay_only: true}\n"
	)
	for _, c := range []struct {
		name, who, old, new string
		refused             bool
	}{
		{"each of a group", both, mine, strings.Replace(mine, "10", "20", 1), true},
		{"another form", both, mine + " delta: 1e-7,", strings.Replace(mine, "approx", "pure", 1), true},
		{"no cap on a query", both, ", max_epsilon_per_query: 5", "", true},
		{"the dataset", both, "epsilon: 100,", "epsilon: 200,", true},
		{"their name", both, last, last + "  - {analyst: ana, form: pure, epsilon: 1}\n", true},
		{"the group", both, last, last + "  - {group: analysts, form: pure, epsilon: 50}\n", true},
		{"another group", both, "epsilon: 20,", "epsilon: 30,", false},
		{"another name", both, last, "  - {analyst: bob, form: pure, epsilon: 1}\n", false},
		{"a table", both, "max_rows: 5", "max_rows: 4", false},
		{"less", both, mine, strings.Replace(mine, "10", "8", 1), false},
		{"less of the dataset", both, "epsilon: 100,", "epsilon: 90,", false},
		{"and back", both, "epsilon: 90,", "epsilon: 100,", true},
		{"their name, without spending", alone, "{analyst: bob,", "{analyst: ana,", true},
		{"the group, without spending", alone, "epsilon: 8,", "epsilon: 9,", false},
		{"by another", sam, "{analyst: bob,", "{analyst: ana,", false},
		{"what another gave", alone, "  - {analyst: ana, form: pure, epsilon: 1}\n", "", true},
		{"all by another", sam, "epsilon: 90,", "epsilon: 1000,", false},
	} {
		text, version, err := f.client(sam).Policy(t.Context(), gatewaytest.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), c.old, c.new, 1)
		if changed == string(text) {
			t.Fatalf("%s: nothing changes", c.name)
		}
		_, err = f.client(c.who).SetPolicy(t.Context(), gatewaytest.Dataset, []byte(changed), version)
		if c.refused != (codeOfError(err) == fault.CodeAuthForbidden) || !c.refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, now, err := f.client(sam).Policy(t.Context(), gatewaytest.Dataset); err != nil || (now == version) != c.refused {
			t.Errorf("%s: version %d after %d, %v", c.name, now, version, err)
		}
	}
}
