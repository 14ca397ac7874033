package catalog

import (
	"errors"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
)

func policyOf(t *testing.T, document string) *Policy {
	t.Helper()
	p, problems := Parse(document)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	return p
}

// withGroup is a policy with a group's line, which is its tenth.
func withGroup(group string) string {
	return smallPolicy + "  - {group: \"" + group + "\", form: pure, epsilon: 1}\n"
}

// A new line's owner has a name that is told from others; one that is in force stays.
func TestNewNamesAreTold(t *testing.T) {
	for group, fine := range map[string]bool{"west": true, "Ärzte": true, "R&D": true, "A\u0308rzte": false, "R＆D": false, "west™": false,
		"west\u200b": false, "west ": false} {
		p := policyOf(t, withGroup(group))
		for _, inForce := range []*Policy{nil, policyOf(t, smallPolicy), policyOf(t, withGroup("north"))} {
			problems := strangers(p, inForce)
			if (len(problems) == 0) != fine {
				t.Errorf("%q: %v", group, problems)
			}
			var f *fault.Error
			if !fine && (!errors.As(problems[0], &f) || f.Code != fault.CodePolicyInvalid || f.Pos.IsZero() || f.Hint == "") {
				t.Errorf("%q: %v", group, problems[0])
			}
		}
		if problems := strangers(p, p); len(problems) > 0 {
			t.Errorf("%q, which is in force: %v", group, problems)
		}
	}
	p := policyOf(t, smallPolicy+"  - {group: \"west™\", per: analyst, form: pure, epsilon: 1}\n")
	if problems := strangers(p, policyOf(t, withGroup("west™"))); len(problems) != 1 {
		t.Errorf("another line of a group that has one: %v", problems)
	}
}

// A policy of before that has such a line stays in force, is read, and may be changed elsewhere.
func TestOldNamesStay(t *testing.T) {
	p, store := small(t), newStore(t)
	old := withGroup("west™")
	if _, _, err := apply(t, p, store, old); fault.CodeOf(err) != fault.CodePolicyInvalid {
		t.Fatalf("a new line: %v", err)
	}
	schema := inForce(t, p).Pinned
	if _, err := store.Review(t.Context(), policyOf(t, old), schema); fault.CodeOf(err) != fault.CodePolicyInvalid {
		t.Errorf("a review of a new line: %v", err)
	}
	policy := policyOf(t, old)
	snapshot, problems := Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	snapshot.Version = 1
	_, inserted, err := store.insert(t.Context(), snapshot, schema, Application{Policy: policy, By: "stella"}, nil)
	if err != nil || !inserted {
		t.Fatal(err)
	}
	if loaded, err := store.Load(t.Context(), "small"); err != nil || len(loaded.Snapshot.Budgets) != 2 {
		t.Errorf("%+v, %v", loaded, err)
	}
	changed := strings.Replace(old, "[0, 120]", "[0, 99]", 1)
	review, err := store.Review(t.Context(), policyOf(t, changed), schema)
	if err != nil || review.Version != 1 {
		t.Fatalf("a review that keeps the line: %v", err)
	}
	warned := false
	for _, w := range review.Snapshot.Warnings {
		warned = warned || strings.Contains(w.Text, "west™")
	}
	if !warned {
		t.Error("nothing is said of the line")
	}
	if r, _, err := apply(t, p, store, changed); err != nil || r.Snapshot.Version != 2 {
		t.Errorf("a policy that keeps the line: %v", err)
	}
}

// The second name of a role's group needs no quotes.
func TestGroupsOfRolesAreNamed(t *testing.T) {
	p := parsed(t, strings.Replace(diffBase, "{group: a, form", "{group: role:analysts, form", 1))
	if name := p.Budgets[2].Name; name != "role:analysts" {
		t.Errorf("it is read as %q", name)
	}
}
