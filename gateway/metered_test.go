package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func testTime() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// brittle is a ledger that fails at one step, before or after the real ledger did it.
type brittle struct {
	budget.Ledger
	before, after string // name of the step
}

var errBrittle = fault.DataUnavailable(errors.New("the ledger broke"))

func (b brittle) around(step string, do func() error) error {
	if b.before == step {
		return errBrittle
	}
	if err := do(); err != nil || b.after != step {
		return err
	}
	return errBrittle
}

func (b brittle) Reserve(ctx context.Context, c budget.Charge) (outcome budget.Outcome, err error) {
	err = b.around("reserve", func() error { outcome, err = b.Ledger.Reserve(ctx, c); return err })
	if err != nil {
		return budget.Outcome{}, err
	}
	return outcome, nil
}

func (b brittle) Settle(ctx context.Context, id budget.ReservationID, loss mechanisms.Loss, answer []byte) error {
	return b.around("settle", func() error { return b.Ledger.Settle(ctx, id, loss, answer) })
}

func (b brittle) SettleApart(ctx context.Context, id budget.ReservationID, released budget.Apart, answer []byte) error {
	return b.around("settle", func() error { return b.Ledger.SettleApart(ctx, id, released, answer) })
}

func (b brittle) Void(ctx context.Context, id budget.ReservationID) error {
	return b.around("void", func() error { return b.Ledger.Void(ctx, id) })
}

func (b brittle) Fail(ctx context.Context, id budget.ReservationID) error {
	return b.around("fail", func() error { return b.Ledger.Fail(ctx, id) })
}

// testCharge costs ε 1 of a budget of 10.
func testCharge(t *testing.T, id string) budget.Charge {
	t.Helper()
	limit, err := budget.NewLimit(budget.LimitSpec{Form: budget.Pure, Epsilon: ten()})
	if err != nil {
		t.Fatal(err)
	}
	return budget.Charge{
		ID: budget.ReservationID(id), Dataset: "d", Analyst: "ana", Fingerprint: [32]byte{1},
		Loss: mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit}, Request: []byte(`{}`),
		Accounts: []budget.Account{
			{ID: budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}, Limit: limit, Origin: budget.FromPolicy},
			{ID: budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}, Limit: limit, Origin: budget.FromPolicy},
		},
	}
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// TestFailureAtEveryStepKeepsTheCharge fails at each step between charge and answer. The charge stands unless nothing
// can have been read, and no answer is shown that the ledger does not hold.
//
// covers: F02
func TestFailureAtEveryStepKeepsTheCharge(t *testing.T) {
	type state struct{ spent, reserved mechanisms.PicoEpsilon }
	const one = mechanisms.EpsilonUnit
	answers := func(context.Context) (any, mechanisms.Loss, error) {
		return "answer", mechanisms.Loss{Epsilon: one}, nil
	}
	fails := func(err error) func(context.Context) (any, mechanisms.Loss, error) {
		return func(context.Context) (any, mechanisms.Loss, error) { return nil, mechanisms.Loss{}, err }
	}
	panics := func(p any) func(context.Context) (any, mechanisms.Loss, error) {
		return func(context.Context) (any, mechanisms.Loss, error) { panic(p) }
	}
	for name, c := range map[string]struct {
		ledger brittle
		work   func(context.Context) (any, mechanisms.Loss, error)
		code   fault.Code // "" for an answer
		want   state
	}{
		"all is well": {work: answers, want: state{spent: one}},
		"less was released": {work: func(context.Context) (any, mechanisms.Loss, error) {
			return "answer", mechanisms.Loss{Epsilon: one / 4}, nil
		}, want: state{spent: one / 4}},
		"the ledger is down before reserving": {ledger: brittle{before: "reserve"}, work: answers, code: fault.CodeDataUnavailable},
		"reserving is committed, the ledger breaks": {ledger: brittle{after: "reserve"}, work: answers,
			code: fault.CodeDataUnavailable, want: state{reserved: one}},
		"no row was read":           {work: fails(fault.Untouched(fault.DataUnavailable(nil))), code: fault.CodeDataUnavailable},
		"a row may have been read":  {work: fails(fault.DataUnavailable(nil)), code: fault.CodeDataUnavailable, want: state{spent: one}},
		"A31 an error without code": {work: fails(errors.New("x")), code: fault.CodeInternal, want: state{spent: one}},
		"a refusal by work itself":  {work: fails(fault.PolicyStale()), code: fault.CodePolicyStale, want: state{spent: one}},
		"F19 panic":                 {work: panics("row 7 of Ann"), code: fault.CodeInternal, want: state{spent: one}},
		"F19 panic with untouched error": {work: panics(fault.Untouched(errors.New("x"))),
			code: fault.CodeInternal, want: state{spent: one}},
		"F18 no randomness": {work: panics(&mechanisms.RandomnessError{Err: errors.New("x")}), code: fault.CodeInternal, want: state{spent: one}},
		"the answer does not encode": {work: func(context.Context) (any, mechanisms.Loss, error) {
			return unencodable{}, mechanisms.Loss{Epsilon: one}, nil
		}, code: fault.CodeInternal, want: state{spent: one}},
		"a sealed value does not encode": {work: func(context.Context) (any, mechanisms.Loss, error) {
			return mechanisms.SealInt64(7), mechanisms.Loss{Epsilon: one}, nil
		}, code: fault.CodeInternal, want: state{spent: one}},
		"the ledger is down before settling": {ledger: brittle{before: "settle"}, work: answers, code: fault.CodeDataUnavailable,
			want: state{reserved: one}},
		"settling is committed, the ledger breaks": {ledger: brittle{after: "settle"}, work: answers,
			code: fault.CodeDataUnavailable, want: state{spent: one}},
		"voiding fails": {ledger: brittle{before: "void"}, work: fails(fault.Untouched(fault.DataUnavailable(nil))),
			code: fault.CodeDataUnavailable, want: state{reserved: one}},
		"failing fails": {ledger: brittle{before: "fail"}, work: fails(fault.DataUnavailable(nil)),
			code: fault.CodeDataUnavailable, want: state{reserved: one}},
	} {
		t.Run(name, func(t *testing.T) {
			memory := budgettest.NewMemory(testTime)
			c.ledger.Ledger = memory
			var log bytes.Buffer
			m := meter{ledger: c.ledger, log: slog.New(slog.NewTextHandler(&log, nil))}
			charge := testCharge(t, "01")
			paid, err := atOnce(t.Context(), m, charge, c.work)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if c.code != "" && paid.Answer != nil {
				t.Errorf("an answer came with an error: %s", paid.Answer)
			}
			for _, b := range balances(t, memory, charge) {
				if got := (state{b.Spent.Epsilon, b.Reserved.Epsilon}); got != c.want {
					t.Errorf("%s: %+v, want %+v", b.ID.Scope, got, c.want)
				}
			}
			if text := log.String() + causes(err); strings.Contains(text, "Ann") {
				t.Errorf("the panic's text is told: %s", text)
			}
			if c.code == "" || c.want.reserved != 0 || c.want.spent != 0 {
				return
			}
			// What was given back can be spent again.
			charge.ID = "02"
			if paid, err := atOnce(t.Context(), meter{ledger: memory, log: m.log}, charge, answers); err != nil || paid.Replayed {
				t.Errorf("again: %+v, %v", paid, err)
			}
		})
	}
}

// TestUnknownSettlement: when the ledger breaks after it stored an answer, asking again gives that answer, free.
//
// covers: F04
func TestUnknownSettlement(t *testing.T) {
	memory := budgettest.NewMemory(testTime)
	runs := 0
	work := func(context.Context) (int, mechanisms.Loss, error) {
		runs++
		return 40 + runs, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit}, nil
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := atOnce(t.Context(), meter{ledger: brittle{Ledger: memory, after: "settle"}, log: log}, testCharge(t, "01"),
		work); err == nil {
		t.Fatal("no error")
	}
	paid, err := atOnce(t.Context(), meter{ledger: memory, log: log}, testCharge(t, "02"), work)
	if err != nil || !paid.Replayed || string(paid.Answer) != "41" || paid.ID != "01" || runs != 1 || !paid.Spent.IsZero() {
		t.Errorf("%+v, %v after %d runs", paid, err, runs)
	}
}

// TestClientHangsUp: paid work is finished and stored although nobody waits for it; before the charge, nothing is begun.
//
// covers: F06
func TestClientHangsUp(t *testing.T) {
	memory := budgettest.NewMemory(testTime)
	m := meter{ledger: memory, log: slog.New(slog.DiscardHandler)}
	ctx, hangUp := context.WithCancel(t.Context())
	work := func(ctx context.Context) (string, mechanisms.Loss, error) {
		hangUp()
		return "answer", mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit}, ctx.Err()
	}
	charge := testCharge(t, "01")
	first, err := atOnce(ctx, m, charge, work)
	if err != nil {
		t.Fatal(err)
	}
	charge.ID = "02"
	again, err := atOnce(t.Context(), m, charge, work)
	if err != nil || !again.Replayed || !bytes.Equal(first.Answer, again.Answer) {
		t.Errorf("%+v, %v", again, err)
	}
	other := testCharge(t, "03")
	other.Fingerprint = [32]byte{2}
	if _, err := atOnce(ctx, m, other, work); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that is gone already: %v", err)
	}
	if got := balances(t, memory, charge)[0]; got.Spent.Epsilon != mechanisms.EpsilonUnit || !got.Reserved.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestAbandonedChargesAreSpent: what a dead gateway left open is spent, not given back.
//
// covers: F01
func TestAbandonedChargesAreSpent(t *testing.T) {
	now := testTime()
	memory := budgettest.NewMemory(func() time.Time { return now })
	charge := testCharge(t, "01")
	if _, err := memory.Reserve(t.Context(), charge); err != nil {
		t.Fatal(err)
	}
	s := &Service{ledger: memory, abandoned: time.Minute}
	now = now.Add(59 * time.Second)
	if n, err := s.ExpireAbandoned(t.Context()); n != 0 || err != nil {
		t.Errorf("too early: %d, %v", n, err)
	}
	now = now.Add(2 * time.Second)
	if n, err := s.ExpireAbandoned(t.Context()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := balances(t, memory, charge)[0]; got.Spent.Epsilon != mechanisms.EpsilonUnit || !got.Reserved.IsZero() {
		t.Errorf("%+v", got)
	}
}

// atOnce is admitted without boundaries, for work that leaves nothing to finish.
func atOnce[T any](ctx context.Context, m meter, charge budget.Charge,
	work func(context.Context) (T, mechanisms.Loss, error)) (Receipt, error) {
	b := bill{Charge: charge, maxFailures: 5}
	return admitted(ctx, m, &Schedule{clock: SystemClock{}}, b, func(ctx context.Context) (Finish[T], error) {
		answer, spent, err := work(ctx)
		return Done(answer, spent), err
	})
}

func balances(t *testing.T, ledger budget.Ledger, charge budget.Charge) []budget.Balance {
	t.Helper()
	ids := make([]budget.AccountID, len(charge.Accounts))
	for i, a := range charge.Accounts {
		ids[i] = a.ID
	}
	list, err := ledger.Balances(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// causes is everything that a log could show of an error.
func causes(err error) string {
	text := ""
	for ; err != nil; err = errors.Unwrap(err) {
		text += err.Error() + "\n"
	}
	return text
}
