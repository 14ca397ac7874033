package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// ledgerPatience bounds each exchange with the ledger.
const ledgerPatience = 10 * time.Second

// Receipt is what paid work, or the replay of earlier work, gives.
type Receipt struct {
	ID       budget.ReservationID // "" for what was not charged
	buyer    string               // of a stored answer: whose charge it was
	Answer   []byte               // the JSON that the ledger holds, byte for byte
	Replayed bool
	At       time.Time         // of a replay: when the charge was settled that paid for it
	Spent    mechanisms.Loss   // by this request: zero when replayed
	reshaped bool              // of a replay: the answer is not the one that the charge was settled with, but computed from what it released
	of       *budget.Version   // of what was released of an earlier version of a prepared copy: which one; nil for others
	used     []mechanisms.Loss // of each account that was charged, with what this charge reserved; nil when replayed
}

// meter is the one road to protected data: whatever reads it runs inside [admitted].
type meter struct {
	ledger budget.Ledger
	log    *slog.Logger
}

// Finish makes what work did durable, and gives the answer, which must encode as JSON, and what was really spent, at
// most the charge's loss. What others can see of it is seen from the boundary on, after which it runs.
type Finish[T any] func(context.Context) (T, Spending, error)

// Spending is what was spent of a charge: by the dataset and an ensemble less, where some of it was released to others
// before.
type Spending struct {
	Own    mechanisms.Loss
	Shared *mechanisms.Loss // nil: the same
}

// Done is a finish with nothing left to do.
func Done[T any](answer T, spent mechanisms.Loss) Finish[T] {
	return func(context.Context) (T, Spending, error) { return answer, Spending{Own: spent}, nil }
}

// admitted pays for work, runs it, and stores the answer; or gives the stored answer of work that was paid for before. Only [Sell] calls
// it, after [meter.known].
//
//   - The charge is committed before work begins.
//   - Nothing of how the work ended can be seen before a boundary of the schedule: it waits there before the charge is closed.
//   - The charge is taken back only if work says, by [fault.Untouched], that it cannot have read a protected row. Any other error and
//     a panic keep it, and count as a failure of the analyst's, unless work says by [fault.Excused] that it is none.
//   - An end that is the analyst's own doing, a cancel or work that lasted until the timeout, keeps the charge also
//     where nothing was read: its admission reveals what a shared account affords, and the analyst pays for that. It counts as nobody's
//     failure.
//   - After so many failures as the policy tolerates nothing is charged and no work begins: only stored answers are given.
//   - An answer leaves only after the ledger holds it: the same request gets the same bytes again. One that draws from a plan leaves only
//     when its receipt can be made, too.
//   - A client that hangs up changes nothing: work that was paid for is finished and stored, and its place is taken until then.
//
// A gateway that dies on the way, also between the work's end and the boundary, leaves the charge open, and then expired, which is spent.
func admitted[T any](ctx context.Context, m meter, tick *Schedule, b bill, work func(context.Context) (Finish[T], error)) (Receipt, error) {
	if err := tick.given(ctx); err != nil {
		return Receipt{}, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := m.enforce(ctx, b); err != nil {
		return Receipt{}, err
	}
	charge := b.Charge
	outcome, err := within(ctx, func(ctx context.Context) (budget.Outcome, error) { return m.ledger.Reserve(ctx, charge) })
	if err != nil {
		return Receipt{}, err
	}
	if stored := outcome.Replay; stored != nil {
		return replayOf(stored), nil
	}
	finish, err := Pace(ctx, tick, work)
	var finished ended[T]
	if err == nil {
		finished, err = shielded(ctx, finish.run)
	}
	var encoded []byte
	if err == nil {
		encoded, err = json.Marshal(finished.answer)
	}
	if err != nil {
		return Receipt{}, charged{m.unwind(ctx, charge.ID, err)}
	}
	_, err = within(ctx, func(ctx context.Context) (struct{}, error) {
		if shared := finished.spent.Shared; shared != nil {
			return struct{}{}, m.ledger.SettleApart(ctx, charge.ID, budget.Apart{Own: finished.spent.Own, Shared: *shared}, encoded)
		}
		return struct{}{}, m.ledger.Settle(ctx, charge.ID, finished.spent.Own, encoded)
	})
	if err != nil {
		// Whether it was stored is not known. The answer is not shown; asking again shows it if it was.
		return Receipt{}, charged{err}
	}
	if charge.Draws != nil { // what its plan cost is asked for as long as this server is there: after a failover only the receipt may say it
		_, err = within(ctx, func(ctx context.Context) (budget.Settlement, error) { return m.ledger.Settlement(ctx, charge.ID) })
		if err != nil {
			return Receipt{}, charged{err}
		}
	}
	return Receipt{ID: charge.ID, Answer: encoded, Spent: finished.spent.Own, used: outcome.Reserved.Used}, nil
}

// ended is what a finish gave.
type ended[T any] struct {
	answer T
	spent  Spending
}

func (f Finish[T]) run(ctx context.Context) (ended[T], error) {
	answer, spent, err := f(ctx)
	return ended[T]{answer, spent}, err
}

// bill is a charge, the failures tolerated of its payer, and the accounts whose limits the ledger does not have yet.
type bill struct {
	budget.Charge
	maxFailures int64
	failures    int64
	due         []budget.Account
	balances    []budget.Balance
}

// alone is why the charge is refused whatever others did. It costs more than it may, an account is frozen, or it costs more than one query
// may, or more than the asker's account has left. It ignores reasons that end by waiting.
func (b bill) alone() error {
	if err := b.OverCeiling(); err != nil || b.Draws != nil { // which is paid for
		return err
	}
	var own []budget.Balance
	for _, a := range b.balances {
		switch {
		case a.Frozen:
			return fault.BudgetFrozen()
		case slices.Contains(b.due, a.Account): // which is written first, so that it binds gateways with an older policy
		case a.ID.Scope == budget.AnalystScope && a.ID.Name == b.Analyst && !a.Limit.ReplayOnly:
			a.Limit.Tranche, a.Limit.Rate = budget.Tranche{}, budget.Rate{}
			own = append(own, a)
		}
	}
	return budget.Refusal(own, b.Charge, time.Time{})
}

// enforce writes the limits that are due: a policy that lowers a cap works from the next charge on. Estimates, views and requests
// that are refused before a charge write nothing.
func (m meter) enforce(ctx context.Context, b bill) error {
	for _, account := range b.due {
		if err := m.ledger.Enforce(ctx, b.Policy, account); err != nil {
			return err
		}
	}
	return nil
}

// known gives the stored answer or the refusal of a bill that is not to be reserved. It refuses an analyst with too many failures, a charge
// above its ceiling, and one that the analyst's own account cannot pay ([bill.alone]): these depend on nothing that others did. Failures of
// questions that run at the same time are not counted yet: at most as many as an analyst has places. A bill that comes with a refusal, is
// shared, or is to be looked up, gets its stored answer, or that refusal. No receipt and no error: the bill may be reserved.
func (m meter) known(ctx context.Context, b bill, refusal error, look bool) (Receipt, error) {
	alone := b.alone()
	if b.failures >= b.maxFailures {
		alone = fault.BudgetFailures(b.failures)
	}
	switch {
	case alone != nil:
		b.Shared = false // answers that others bought are not shown; the order's own refusal says more
		return m.replay(context.WithoutCancel(ctx), b.Charge, orElse(refusal, alone))
	case refusal != nil || b.Shared || look:
		return m.replay(ctx, b.Charge, refusal)
	default:
		return Receipt{}, nil
	}
}

// replay gives the stored answer of a charge, or else the refusal, which may be nil.
func (m meter) replay(ctx context.Context, charge budget.Charge, refusal error) (Receipt, error) {
	stored, err := within(ctx, func(ctx context.Context) (*budget.Stored, error) { return m.ledger.Replay(ctx, charge) })
	switch {
	case err != nil:
		return Receipt{}, err
	case stored == nil:
		return Receipt{}, refusal
	default:
		return replayOf(stored), nil
	}
}

// replayOf is the receipt of a stored answer.
func replayOf(stored *budget.Stored) Receipt {
	return Receipt{ID: stored.ID, buyer: stored.Analyst, Answer: stored.Answer, Replayed: true, At: stored.SettledAt}
}

// charged marks the error of work that was charged, whatever became of the charge: it may tell of rows.
type charged struct{ error }

func (c charged) Unwrap() error { return c.error }

// takenBack marks the error of work whose charge was taken back: asking again now pays once.
type takenBack struct{ error }

func (t takenBack) Unwrap() error { return t.error }

// unwind closes the charge of work that failed and gives the work's error back, marked as [takenBack] where that is so. A charge that
// cannot be closed now stays open, which counts as spent, until [Service.ExpireAbandoned] closes it.
func (m meter) unwind(ctx context.Context, id budget.ReservationID, failure error) error {
	end, voids := m.ledger.Fail, false
	switch own := errors.Is(failure, errCancelled) || errors.Is(failure, errTimeout); {
	case errors.Is(failure, errCancelled), fault.IsExcused(failure), own && fault.IsUntouched(failure):
		end = m.ledger.Expire
	case fault.IsUntouched(failure):
		end, voids = m.ledger.Void, true
	}
	switch {
	case errors.Is(failure, errCancelled):
		failure = fault.BudgetCancelled(true)
	case errors.Is(failure, errTimeout):
		failure = fault.DataUnavailable(failure)
	}
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, end(ctx, id) })
	if err != nil {
		m.log.ErrorContext(ctx, "closing a charge failed", "reservation", string(id), "code", string(fault.CodeOf(err)))
		return failure
	}
	if voids {
		return takenBack{failure}
	}
	return failure
}

// within bounds one exchange with the ledger.
func within[T any](ctx context.Context, exchange func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	return exchange(ctx)
}

// shielded runs work and turns a panic into an internal error.
func shielded[T any](ctx context.Context, work func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Panicked(p)
		}
	}()
	return work(ctx)
}
