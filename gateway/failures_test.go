package gateway

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// breaking makes the data fail as told, or answer for nil.
func (r *rig) breaking(err error) {
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, err
	}
}

// asks puts a question that is new with each n.
func (r *rig) asks(t *testing.T, who auth.Principal, n int) error {
	t.Helper()
	request := count("0.001")
	request.SQL = fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", n)
	_, err := r.Query(t.Context(), who, request)
	return err
}

// covers: W.5 A36
//
// An analyst with more failures than the policy tolerates runs nothing and is charged nothing, until a steward resets them, or they are a
// day old. Stored answers stay free.
func TestFailuresStopAnAnalyst(t *testing.T) {
	for _, most := range []int64{0, 2} { // 0: the policy does not say
		r := newRig(t)
		r.policies.snapshot.MaxFailures = most
		if most == 0 {
			most = 5
		}
		ana, bob, sam := principal(t, "ana", "analysts"), principal(t, "bob", "analysts"), principal(t, "sam")
		if err := r.asks(t, ana, 0); err != nil {
			t.Fatal(err)
		}
		unavailable := fault.DataUnavailable(errors.New("SQLSTATE 57014"))
		for _, harmless := range []error{fault.Untouched(unavailable), fault.Excused(unavailable)} {
			r.breaking(harmless)
			for n := range int(most) + 1 {
				if err := r.asks(t, ana, 100+n); fault.CodeOf(err) != fault.CodeDataUnavailable {
					t.Fatal(err)
				}
			}
		}
		fail := func() {
			t.Helper()
			r.breaking(unavailable)
			for n := range int(most) {
				if err := r.asks(t, ana, 1+n); fault.CodeOf(err) != fault.CodeDataUnavailable {
					t.Fatalf("failure %d: %v", n, err)
				}
			}
			r.breaking(nil)
		}
		stopped := func() {
			t.Helper()
			entries, runs := len(journalOf(t, r.ledger)), r.data.runs
			if err := r.asks(t, ana, 50); fault.CodeOf(err) != fault.CodeBudgetFailures {
				t.Fatalf("after %d failures: %v", most, err)
			}
			if err := r.asks(t, ana, 0); err != nil {
				t.Errorf("a stored answer: %v", err)
			}
			if n := len(journalOf(t, r.ledger)); n != entries || r.data.runs != runs {
				t.Errorf("a refusal wrote %d entries and ran %d statements", n-entries, r.data.runs-runs)
			}
		}
		fail()
		stopped()
		if err := r.asks(t, bob, 50); err != nil {
			t.Errorf("another analyst: %v", err)
		}
		reset, err := r.ResetFailures(t.Context(), sam, "d", "analyst:ana")
		if err != nil || reset.Reset != most || reset.MaxFailures != most || reset.Account != "analyst:ana" {
			t.Fatalf("%+v, %v", reset, err)
		}
		if err := r.asks(t, ana, 51); err != nil {
			t.Errorf("after the reset: %v", err)
		}
		fail()
		stopped()
		r.clock.Sleep(t.Context(), budget.FailurePeriod+time.Second)
		if err := r.asks(t, ana, 52); err != nil {
			t.Errorf("a day later: %v", err)
		}
		for _, name := range []string{"dataset", "group:analysts", "analyst:", "ana"} {
			if _, err := r.ResetFailures(t.Context(), sam, "d", name); fault.CodeOf(err) != fault.CodeRequestAccount {
				t.Errorf("resetting %q: %v", name, err)
			}
		}
		chain, books := journal.NewChain(budget.Head{Dataset: "d"}), journal.NewAuditor("d", nil)
		entries := journalOf(t, r.ledger)
		for i := len(entries) - 1; i >= 0; i-- {
			if err := errors.Join(chain.Add(entries[i]), books.Add(entries[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// covers: W.5
//
// A panic while rows are read is a failure: it may depend on one of them.
func TestPanicsAreFailures(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana", "analysts")
	r.data.do = func() ([]sqlrewrite.ExactRow, error) { panic("a row") }
	if err := r.asks(t, ana, 1); fault.CodeOf(err) != fault.CodeInternal {
		t.Fatal(err)
	}
	if n, err := r.ledger.Failures(t.Context(), "d", "ana", budget.FailurePeriod); n != 1 || err != nil {
		t.Errorf("%d failures, %v", n, err)
	}
}

func journalOf(t *testing.T, l *budgettest.Memory) []budget.Entry {
	t.Helper()
	entries, err := l.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
