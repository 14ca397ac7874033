package gateway

import (
	"context"
	"errors"

	"noisegate.example/budget"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Trier asks a server about statements.
type Trier interface {
	// Dry asks the server whether it takes statements, and runs them over made-up rows, for an analyst by subject: it reads no row of a table
	// and needs no charge. It says whether the server was asked, which it is once. Its errors are internal/unprintable, plan/dry-run and
	// request/too-many.
	Dry(ctx context.Context, analyst string, runs ...sqlrewrite.DryRun) (asked bool, err error)
}

// dry asks the server of the data whether it takes what is to be charged for, unless its analyst asked before. Its errors are
// internal/unprintable, which stewards' lists of refusals do not have and operators' metrics do, plan/dry-run and request/too-many, and
// that the request was given up; nothing was charged. They leave at a boundary if the server was asked: it runs where others' questions
// run. A refusal is one also when it was cancelled meanwhile.
func (s *Service) dry(ctx context.Context, tick *Schedule, data Trier, analyst string, runs []sqlrewrite.DryRun) (asked bool,
	err error) {
	if err := tick.given(ctx); err != nil {
		return false, err
	}
	asked, err = data.Dry(ctx, analyst, runs...)
	if fault.CodeOf(err) == fault.CodeUnprintable {
		s.unprintable.Add(1)
		s.log.ErrorContext(ctx, "the server does not take a statement", "cause", fault.Cause(err))
	}
	return asked, tick.Refused(ctx, asked, err)
}

// given is the error of a request that was given up before it was charged: it is cancelled, or its client is gone.
func (h *Schedule) given(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.RequestGone(err)
	}
	if h.isCancelled() {
		return fault.BudgetCancelled(false)
	}
	return nil
}

// Unprintable counts the questions, since the process began, that were refused because their data's server does not accept their statement.
func (s *Service) Unprintable() int64 { return s.unprintable.Load() }

// ProofsOf returns the proofs of an analyst's texts.
func (s *Service) ProofsOf(who auth.Principal) *sqlrewrite.Proofs { return s.proofs.Of(who.Subject) }

// Refused lets the refusal of a charge leave at a boundary, where the server was asked about its statements, and gives it. Errors of what
// was charged have waited for theirs; a slot that was taken meanwhile is tried again.
func (h *Schedule) Refused(ctx context.Context, asked bool, err error) error {
	if asked && err != nil && !errors.As(err, new(charged)) && !errors.Is(err, budget.ErrSlotTaken) {
		_ = h.hold(ctx)
	}
	return err
}
