package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// exchanges writes down what is asked of the ledger before a charge.
type exchanges struct {
	budget.Ledger
	budget.ReleasedValues
	mu   sync.Mutex
	made []string
}

func (e *exchanges) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made = append(e.made, what)
}

func (e *exchanges) Caller(ctx context.Context, ids []budget.AccountID, dataset, analyst string,
	within time.Duration) ([]budget.Balance, int64, error) {
	e.add("accounts")
	return e.Ledger.Caller(ctx, ids, dataset, analyst, within)
}

func (e *exchanges) Find(ctx context.Context, l budget.Lookup) (*budget.Earlier, error) {
	e.add(map[bool]string{false: "releases", true: "accounts and releases"}[l.Accounts != nil])
	return e.ReleasedValues.Find(ctx, l)
}

// noting has a rig write down its exchanges; asked gives those since it was asked last.
func noting(r *rig) (asked func() string) {
	e := &exchanges{Ledger: r.ledger, ReleasedValues: r.ledger}
	r.Service.ledger, r.values = e, e
	return func() string {
		made := strings.Join(e.made, ", ")
		e.made = nil
		return made
	}
}

// numbered is a question that each number makes another one, at a price.
func numbered(n int, epsilon string) Request {
	r := count(epsilon)
	r.SQL = fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", n)
	return r
}

// Once the ledger has all of a caller's accounts, a question takes one exchange before its charge, whatever becomes of it; where releases
// are shared, what others bought is asked for after the accounts are known.
func TestOneExchangeBeforeACharge(t *testing.T) {
	r := newRig(t)
	asked := noting(r)
	ana := principal(t, "ana", "analysts")
	for n, want := range []string{"accounts, releases", "accounts, releases", "accounts and releases", "accounts and releases"} {
		r.ask(t, ana, numbered(n, "0.6"))
		if got := asked(); got != want {
			t.Errorf("question %d asked for %q, want %q", n, got, want)
		}
	}
	for name, c := range map[string]struct {
		sql, epsilon, want string
		code               fault.Code
	}{
		"a view of an answer": {"SELECT count(*) AS n FROM people WHERE age > 1", "0.6", "accounts and releases", ""},
		"too dear":            {"SELECT count(*) FROM people WHERE age > 9", "0.9", "accounts and releases", fault.CodeBudgetExhausted},
		"one that is refused": {"SELECT count(*) FROM people WHERE nothing > 1", "0.6", "accounts", fault.CodeUnknownColumn},
	} {
		request := count(c.epsilon)
		request.SQL = c.sql
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if got := asked(); got != c.want {
			t.Errorf("%s asked for %q, want %q", name, got, c.want)
		}
	}
	sharing := sharingRig(t)
	asked = noting(sharing)
	for n := range 4 {
		asked()
		sharing.ask(t, ana, numbered(n, "0.001"))
	}
	if got := asked(); got != "accounts, releases" {
		t.Errorf("where releases are shared, a question asked for %q", got)
	}
}

// Accounts count as they are: whatever happened to them since a caller's last question, the next one is planned for them, refused and
// charged as one of a caller whose accounts nobody remembers.
func TestAccountsCountAsTheyAre(t *testing.T) {
	own := budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}
	limit := func(form budget.Form, epsilon int64) budget.Account {
		l, err := budget.NewLimit(budget.LimitSpec{Form: form, Epsilon: big.NewRat(epsilon, 1),
			Delta: map[bool]*big.Rat{true: big.NewRat(1, 1000)}[form == budget.Approx]})
		if err != nil {
			t.Fatal(err)
		}
		return budget.Account{ID: own, Limit: l, Origin: budget.FromSteward}
	}
	const once, anew = "accounts and releases", "accounts and releases, accounts, releases"
	failures := fault.DataUnavailable(errors.New("SQLSTATE 57014"))
	for name, c := range map[string]struct {
		change   func(*rig) error
		gaussian bool
		asked    string // of the question after it
		code     fault.Code
	}{
		"nothing": {func(*rig) error { return nil }, false, once, ""},
		"a freeze": {func(r *rig) error {
			return r.ledger.Freeze(t.Context(), "sam", own, true)
		}, false, anew, fault.CodeBudgetFrozen},
		"a freeze of all": {func(r *rig) error {
			return r.ledger.Freeze(t.Context(), "sam", budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}, true)
		}, false, anew, fault.CodeBudgetFrozen},
		"a lower limit": {func(r *rig) error {
			return r.ledger.SetLimit(t.Context(), "sam", limit(budget.Approx, 1))
		}, false, anew, fault.CodeBudgetExhausted},
		"another form": {func(r *rig) error {
			return r.ledger.SetLimit(t.Context(), "sam", limit(budget.Pure, 9))
		}, true, "accounts and releases, accounts", fault.CodeRequestMechanism},
		"spending": {func(r *rig) error {
			for n := range 4 {
				if _, err := r.Query(t.Context(), principal(t, "ana", "analysts"), numbered(50+n, "0.4")); err != nil {
					return err
				}
			}
			return nil
		}, false, once, fault.CodeBudgetExhausted},
		"failures": {func(r *rig) error {
			r.policies.snapshot.MaxFailures = 1
			r.breaking(failures)
			_, _ = r.Query(t.Context(), principal(t, "ana", "analysts"), numbered(50, "0.001"))
			r.breaking(nil)
			return nil
		}, false, once, fault.CodeBudgetFailures},
		"a policy": {func(r *rig) error {
			next := *r.policies.snapshot
			next.Version++
			next.Budgets = slices.Clone(next.Budgets)
			next.Budgets[1].MinEpsilon = big.NewRat(1, 1)
			r.policies.snapshot = &next
			return nil
		}, false, "accounts, releases", fault.CodeBudgetUnderFloor},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			asked := noting(r)
			ana := principal(t, "ana", "analysts")
			for n := range 3 {
				r.ask(t, ana, numbered(n, "0.4"))
			}
			if err := c.change(r); err != nil {
				t.Fatal(err)
			}
			asked()
			entries := len(journalOf(t, r.ledger))
			question := numbered(9, "0.4")
			if c.gaussian {
				question.Mechanism, question.Delta = string(sqlrewrite.MechanismGaussian), "1e-9"
			}
			_, err := r.Query(t.Context(), ana, question)
			if got := asked(); fault.CodeOf(err) != c.code || got != c.asked {
				t.Errorf("got %v, asked for %q; want %q, %q", err, got, c.code, c.asked)
			}
			if n := len(journalOf(t, r.ledger)); err != nil && n != entries {
				t.Errorf("a refusal wrote %d entries", n-entries)
			}
			if again := r.ask(t, ana, numbered(1, "0.4")); !again.Replayed {
				t.Error("what was bought before is charged")
			}
		})
	}
}

// Nothing is remembered of accounts that the ledger does not have yet: whether it has them depends on what others asked.
func TestAccountsOfNobodyAreNotRemembered(t *testing.T) {
	r := newRig(t)
	asked := noting(r)
	ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
	refused := numbered(0, "0.9")
	refused.AtMost = &api.Price{Epsilon: "0.1"}
	question := func() string {
		t.Helper()
		if _, err := r.Query(t.Context(), ana, refused); fault.CodeOf(err) != fault.CodeBudgetOverAtMost {
			t.Fatal(err)
		}
		return asked()
	}
	before := question()
	r.ask(t, bob, numbered(1, "0.5"))
	asked()
	if after := question(); after != before {
		t.Errorf("ana's question asked for %q, and for %q once bob had asked one", before, after)
	}
}

// Two views of a release at once are one charge, also of a caller whose accounts are remembered.
func TestViewsAtOnceAreOneCharge(t *testing.T) {
	r := newRig(t)
	ana := principal(t, "ana", "analysts")
	for n := range 3 {
		r.ask(t, ana, numbered(n, "0.1"))
	}
	spent := r.spentEpsilon(t)
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		time.Sleep(50 * time.Millisecond) // so that others begin
		return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, nil
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { r.ask(t, ana, counted(fmt.Sprintf("n%d", i), "0.5")) })
	}
	all.Wait()
	if now := r.spentEpsilon(t); spent != "0.3" || now != "0.8" || r.data.runs != 4 {
		t.Errorf("spent %s after %s, in %d runs", now, spent, r.data.runs)
	}
}
