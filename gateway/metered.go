package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"noisegate/budget"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// ledgerPatience bounds each exchange with the ledger.
const ledgerPatience = 10 * time.Second

// receipt is what paid work, or the replay of earlier work, gives.
type receipt struct {
	id       budget.ReservationID
	answer   []byte // the JSON that the ledger holds, byte for byte
	replayed bool
	spent    mechanisms.Loss   // by this request: zero when replayed
	used     []mechanisms.Loss // of each account that was charged, with what this charge reserved; nil when replayed
}

// meter is the one road to protected data: whatever reads it runs inside [metered].
type meter struct {
	ledger budget.Ledger
	log    *slog.Logger
}

// metered pays for work, runs it, and stores what it released; or gives the stored answer when it was paid for before.
//
//   - The charge is committed before work begins.
//   - It is taken back only if work says, by [fault.Untouched], that it cannot have read a protected row. Any other error and
//     a panic keep it.
//   - An answer leaves only after the ledger holds it: whoever asks again gets the same bytes.
//   - A client that hangs up changes nothing: work that was paid for is finished and stored.
//
// Work gives its answer, which must encode as JSON, and what it really spent, at most the charge's loss.
func metered[T any](ctx context.Context, m meter, charge budget.Charge,
	work func(context.Context) (T, mechanisms.Loss, error)) (receipt, error) {
	if err := ctx.Err(); err != nil {
		return receipt{}, err // gone before anything happened
	}
	ctx = context.WithoutCancel(ctx)
	outcome, err := within(ctx, func(ctx context.Context) (budget.Outcome, error) { return m.ledger.Reserve(ctx, charge) })
	if err != nil {
		return receipt{}, err
	}
	if stored := outcome.Replay; stored != nil {
		return receipt{id: stored.ID, answer: stored.Answer, replayed: true}, nil
	}
	answer, loss, err := shielded(ctx, work)
	var encoded []byte
	if err == nil {
		encoded, err = json.Marshal(answer)
	}
	if err != nil {
		return receipt{}, m.unwind(ctx, charge.ID, err)
	}
	_, err = within(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.ledger.Settle(ctx, charge.ID, loss, encoded)
	})
	if err != nil {
		// Whether it was stored is not known. The answer is not shown; asking again shows it if it was.
		return receipt{}, err
	}
	return receipt{id: charge.ID, answer: encoded, spent: loss, used: outcome.Reserved.Used}, nil
}

// unwind closes the charge of work that failed and gives the work's error back. A charge that cannot be closed now stays
// open, which counts as spent, until [Service.ExpireAbandoned] closes it.
func (m meter) unwind(ctx context.Context, id budget.ReservationID, failure error) error {
	end := m.ledger.Expire
	if fault.IsUntouched(failure) {
		end = m.ledger.Void
	}
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, end(ctx, id) })
	if err != nil {
		m.log.ErrorContext(ctx, "closing a charge failed", "reservation", string(id), "code", string(fault.CodeOf(err)))
	}
	return failure
}

// within bounds one exchange with the ledger.
func within[T any](ctx context.Context, exchange func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	return exchange(ctx)
}

// shielded runs work and turns a panic into an internal error. Of the panic only its type and place are kept: its text
// ("index out of range [5]") can be a function of the data.
func shielded[T any](ctx context.Context, work func(context.Context) (T, mechanisms.Loss, error)) (answer T, loss mechanisms.Loss, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Internal(panicked(p))
		}
	}()
	return work(ctx)
}

// panicked describes a panic by its type and the function that raised it.
func panicked(p any) error {
	callers := make([]uintptr, 16)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !more {
			return fmt.Errorf("panic of type %T", p)
		}
		if !isRuntime(frame.Function) {
			return fmt.Errorf("panic of type %T in %s:%d", p, frame.Function, frame.Line)
		}
	}
}

func isRuntime(function string) bool {
	return len(function) > len("runtime.") && function[:len("runtime.")] == "runtime."
}
