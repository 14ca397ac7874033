package gateway

import (
	"errors"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// estimatedFree is what an estimate says of whether the caller paid before. It leaves the ledger as it is.
func (r *rig) estimatedFree(t *testing.T, who auth.Principal, request Request) bool {
	t.Helper()
	spent := r.spentEpsilon(t)
	estimate, err := r.Estimate(t.Context(), who, request.QueryRequest)
	if err != nil {
		t.Fatal(err)
	}
	if after := r.spentEpsilon(t); after != spent {
		t.Errorf("an estimate changed the ledger from %s to %s", spent, after)
	}
	return estimate.Replayed
}

// An estimate says replayed exactly for what is then given free: the same question and its views, also one of several releases; not those
// at another price, of others, or with a part missing.
func TestEstimatesKnowWhatIsFree(t *testing.T) {
	r := newRig(t)
	bob := principal(t, "bob", "analysts")
	check := func(what string, who auth.Principal, request Request, want bool) {
		t.Helper()
		if got := r.estimatedFree(t, who, request); got != want {
			t.Errorf("%s: replayed is %t", what, got)
		}
		if want {
			if answer := r.ask(t, who, request); !answer.Replayed || answer.Spent.Epsilon != "0" {
				t.Errorf("%s: foretold as free, and it was %+v", what, answer)
			}
		}
	}
	check("before", ana(), counted("n", "0.5"), false)
	r.ask(t, ana(), counted("n", "0.5"))
	check("the same", ana(), counted("n", "0.5"), true)
	check("a view", ana(), counted("total", "0.5"), true)
	check("another price", ana(), counted("n", "0.4"), false)
	check("somebody else", bob, counted("n", "0.5"), false)
	check("one release of two", ana(), bothCounts("a.n - b.n AS young", "1"), false)
	r.ask(t, ana(), bothCounts("a.n - b.n AS young", "1"))
	check("both releases", ana(), bothCounts("b.n", "1"), true)
}

// An estimate does not reveal what others bought, even where the policy shares it: it would show free who asked what.
func TestEstimatesAreSilentAboutOthers(t *testing.T) {
	r := sharingRig(t)
	ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
	question := gaussianCount("0.01")
	r.ask(t, ana, question)
	for who, want := range map[string]bool{"ana": true, "bob": false} {
		estimate, err := r.Estimate(t.Context(), principal(t, who, "analysts"), question.QueryRequest)
		if err != nil || estimate.Replayed != want {
			t.Errorf("%s: replayed is %t, %v", who, estimate.Replayed, err)
		}
	}
	if answer := r.ask(t, bob, question); !answer.Replayed {
		t.Errorf("the policy shares it: %+v", answer)
	}
}

// An answer of an earlier version of a prepared copy is free too.
func TestEstimatesKnowEarlierVersions(t *testing.T) {
	r, copies := preparedRig(t)
	r.ask(t, ana(), askVisits())
	copies.refreshed(t, r, 2)
	latest := askVisits()
	latest.Version = versionLatest
	if !r.estimatedFree(t, ana(), askVisits()) || r.estimatedFree(t, ana(), latest) {
		t.Error("an estimate does not know which version is free")
	}
}

// A question whose value was released, and whose second statement then fails or never ends, has spent its whole price, and nothing of it
// answers another question. What fails before the first statement was sent costs nothing.
func TestFailuresBetweenStatements(t *testing.T) {
	request := Request{QueryRequest: api.QueryRequest{Dataset: "d", Epsilon: "0.5",
		SQL: "SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)"}}
	first := []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(100), mechanisms.SealInt64(1000)}}}
	for name, c := range map[string]struct {
		rows  []sqlrewrite.ExactRow
		err   error
		spent string
	}{
		"the second fails":       {first, fault.DataUnavailable(errors.New("gone")), "0.5"},
		"nobody is to blame":     {first, fault.Excused(fault.DataUnavailable(errors.New("gone"))), "0.5"},
		"the first was not sent": {nil, fault.Untouched(fault.DataUnavailable(errors.New("gone"))), "0"},
	} {
		r := newRig(t)
		r.data.do = func() ([]sqlrewrite.ExactRow, error) { return c.rows, c.err }
		if _, err := r.Query(t.Context(), ana(), request); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		if spent := r.spentEpsilon(t); spent != c.spent {
			t.Errorf("%s: %s is spent, want %s", name, spent, c.spent)
		}
		if r.estimatedFree(t, ana(), request) {
			t.Errorf("%s: it was answered", name)
		}
		mean := request
		mean.SQL, mean.Epsilon = "SELECT avg(age) FROM people", "0.25"
		if r.estimatedFree(t, ana(), mean) {
			t.Errorf("%s: its value was kept", name)
		}
	}
}
