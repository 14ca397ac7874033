package gateway

import (
	"context"
	"slices"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// sharing is what a question has to do with the same question at other prices, where the policy shares releases.
type sharing struct {
	keeps    bool // what is released for it is kept for others
	question [32]byte
	reuse    *sqlrewrite.Reuse // nil: nothing that was released before helps
}

// GivenFree reports whether a caller is given, free, what others paid for: where the policy says so, and not when an
// account of theirs is frozen or when so many of their questions failed that nothing is run for them. Both end what a
// caller learns; what they bought themselves they may read again.
func GivenFree(snapshot *catalog.Snapshot, p Accounts) bool {
	frozen := slices.ContainsFunc(p.balances, func(b budget.Balance) bool { return b.Frozen })
	return snapshot.ShareReleases && !frozen && p.failed < p.failures
}

// reuse looks whether something that was released before helps to answer a question at another price, and makes the charge that of what is
// still to be released: nothing, or the difference. What it finds was paid for by charges that cannot be taken back ([budget.Shares]).
//
// The charge, of nothing too, goes through the ledger as every other: the answer is stored, and the question replayed. Two who ask at
// once may find the same earlier release; then both pay the difference to it, for noise of their own.
func (s *Service) reuse(ctx context.Context, q *prepared) error {
	if s.shares == nil || q.Charge.Draws != nil || !q.plan.Reusable() {
		return nil
	}
	q.sharing = sharing{keeps: true, question: q.plan.BlockQuestion()}
	best, err := within(ctx, func(ctx context.Context) (*budget.Shared, error) {
		// The second is the name under which earlier versions of Noisegate kept it: it has the outer layers.
		return s.shares.Best(ctx, q.Charge.Dataset, q.sharing.question, q.plan.Question())
	})
	if err != nil || best == nil {
		return err
	}
	vector, err := sqlrewrite.ReadVector(best.Vector)
	if err != nil {
		s.log.ErrorContext(ctx, "an earlier release cannot be read", "reservation", string(best.Charge), "code", string(fault.CodeOf(err)))
		return nil // it is asked anew, at the whole price
	}
	if q.sharing.reuse = q.plan.Reuse(vector); q.sharing.reuse == nil {
		return nil
	}
	fresh := q.sharing.reuse.Fresh()
	if fresh == nil { // no row is read: there is no time to hide
		q.Charge.Loss, q.Charge.Mechanisms, q.Delay = mechanisms.Loss{}, nil, nil
		return nil
	}
	q.Price(fresh.Loss(), fresh.Mechanisms())
	return q.Accounts.floor.check("what this question asks for beyond an earlier answer", fresh.Loss())
}

// releaseShared releases what the charge pays for, and gives it the form of the answer that was asked for; and all that is known now of the
// question, for others: nil where that is nothing new.
func (s *Service) releaseShared(ctx context.Context, q *prepared) (*sqlrewrite.Released, *sqlrewrite.Vector, error) {
	share := q.sharing
	switch {
	case share.reuse == nil:
		released, err := s.release(ctx, q.data, q.plan)
		if err != nil || !share.keeps {
			return released, nil, err
		}
		return released, released.Vector(), nil
	case share.reuse.Fresh() == nil:
		released, err := share.reuse.Weaker(s.sampler())
		return released, nil, err
	}
	released, err := s.release(ctx, q.data, share.reuse.Fresh())
	if err != nil {
		return nil, nil, err
	}
	return share.reuse.Stronger(s.sampler(), released)
}

// keep stores what was released for others, after the boundary at which it may be seen and before the charge is settled. If the gateway
// dies in between, the charge expires and counts as spent, so that what it bought may be used. If it cannot be stored, the next one pays
// more, and this answer is not lost for it.
func (s *Service) keep(ctx context.Context, q *prepared, vector *sqlrewrite.Vector) {
	if vector == nil {
		return
	}
	text, rho, err := vector.Text()
	if err == nil && len(text) > budget.MaxShared {
		return
	}
	if err == nil {
		_, err = within(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.shares.Keep(ctx, budget.Shared{Charge: q.Charge.ID, Dataset: q.Charge.Dataset, Question: q.sharing.question,
				Rho: rho, Vector: text})
		})
	}
	if err != nil {
		s.log.ErrorContext(ctx, "keeping a release for others failed", "reservation", string(q.Charge.ID), "code", string(fault.CodeOf(err)))
	}
}
