package gateway

import (
	"testing"

	"noisegate.example/internal/fault"
)

// unlikely are names of groups that no new line of a policy may have, and that older lines and tokens do have.
func unlikely() []string {
	return []string{"contractors™", "A\u0308rzte", "R＆D", "team❤\ufe0f", "west\u200b", "west "}
}

// A cap and an allotment of a group hold for its members, whatever its name looks like; a steward can freeze it.
func TestCapsOfGroupsOfAnyName(t *testing.T) {
	sam := principal(t, "sam")
	other := count("1")
	other.SQL = "SELECT count(*) FROM people WHERE age > 3"
	for _, group := range append(unlikely(), "contractors") {
		ana := principal(t, "ana", group)
		r := newRig(t, line("dataset", "", 20), line("group", group, 1), perAnalyst("analysts", 10))
		if _, err := r.Query(t.Context(), ana, count("1")); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Query(t.Context(), ana, other); fault.CodeOf(err) != fault.CodeBudgetExhausted {
			t.Errorf("%q: its cap of ε 1 is passed: %v", group, err)
		}
		if account, err := r.Freeze(t.Context(), sam, "d", "group:"+group, true); err != nil || !account.Frozen {
			t.Errorf("%q cannot be frozen: %v", group, err)
		}
		r = newRig(t, line("dataset", "", 20), perAnalyst(group, 1), perAnalyst("analysts", 10))
		if _, err := r.Query(t.Context(), ana, count("5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
			t.Errorf("%q: an allotment of ε 1 has become 10: %v", group, err)
		}
	}
}
