package gateway

import (
	"strings"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// TestRequireUseful: what fewer rows can be useful of than the request wants is refused, free, by its text, the policy and other public
// facts; what is not known refuses nothing, and what was bought is given again.
func TestRequireUseful(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	r.policies.snapshot.People = 500
	part := func(q Request, part float64) Request {
		q.RequireUseful = &part
		return q
	}
	bySex := count("0.1")
	bySex.SQL = "SELECT sex, count(*) AS n FROM people GROUP BY sex" // of 3 rows; a useful one has 120 people
	e, err := r.Estimate(t.Context(), ana, bySex.QueryRequest)
	if err != nil || e.Useful == nil || e.Useful.Needs != "120" || e.Useful.Of != 3 || *e.Useful.Possible != 3 {
		t.Fatalf("%+v %v", e, err)
	}
	bySex.Epsilon = "0.05"
	for want, code := range map[float64]fault.Code{0.6: "", 0.7: fault.CodeUseless, 1: fault.CodeUseless, 1.5: fault.CodeRequestUseful,
		0: fault.CodeRequestUseful, -1: fault.CodeRequestUseful} {
		if _, err := r.Estimate(t.Context(), ana, part(bySex, want).QueryRequest); fault.CodeOf(err) != code {
			t.Errorf("%v of the rows: %v, want %s", want, err, code)
		}
	}
	_, err = r.Query(t.Context(), ana, part(bySex, 0.7))
	if fault.CodeOf(err) != fault.CodeUseless || !strings.Contains(err.Error(), "at most 2 of 3 rows") {
		t.Errorf("%v", err)
	}
	r.policies.snapshot.People = 200 // a useful count is 240
	if _, err = r.Query(t.Context(), ana, part(count("0.05"), 0.1)); fault.CodeOf(err) != fault.CodeUseless {
		t.Errorf("%v", err)
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 9}); err != nil || len(entries) > 0 || r.data.runs > 0 {
		t.Errorf("%v %v after %d runs", entries, err, r.data.runs)
	}
	first := r.ask(t, ana, count("0.05"))
	if again := r.ask(t, ana, part(count("0.05"), 0.1)); !again.Replayed || again.ID != first.ID {
		t.Errorf("%+v", again)
	}
	mean := count("0.05")
	mean.SQL = "SELECT sex, avg(age) AS a FROM people GROUP BY sex"
	r.policies.snapshot.People = 50
	if e, err := r.Estimate(t.Context(), ana, mean.QueryRequest); err != nil || e.Useful == nil || e.Useful.Counts != "rows" {
		t.Fatalf("%+v %v", e, err)
	}
	_, err = r.Query(t.Context(), ana, part(mean, 1))
	if fault.CodeOf(err) != fault.CodeUseless || !strings.Contains(err.Error(), "a is computed from about") {
		t.Errorf("%v", err)
	}
	r.policies.snapshot.People = 0 // nothing is known
	if answer := r.ask(t, ana, part(count("0.06"), 1)); answer.Replayed {
		t.Errorf("%+v", answer)
	}
}
