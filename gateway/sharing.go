package gateway

import (
	"context"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/released"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// sharing is what a question has to do with the same question at other prices, where the policy shares releases.
type sharing struct {
	questions [][32]byte         // its names at any price; its releases are kept for others under the first. nil: they are not
	best      *sqlrewrite.Vector // the best earlier release; nil: none
	under     [32]byte           // its name
	reuse     *sqlrewrite.Reuse  // nil: no earlier release helps
}

// GivenFree reports whether a caller is given, free, what others paid for: where the policy says so, and not when an
// account of theirs is frozen or when so many of their questions failed that nothing is run for them. Both end what a
// caller learns; what they bought themselves they may read again.
func GivenFree(snapshot *catalog.Snapshot, p Accounts) bool {
	return snapshot.ShareReleases && !p.held()
}

// atAnyPrice gives names of the question at any price, where others' releases at other prices may help to answer it; nil: they do not.
func (q *prepared) atAnyPrice() [][32]byte {
	if !q.Charge.Shared || q.Charge.Draws != nil || !q.plan.Reusable() {
		return nil
	}
	return q.plan.BlockQuestions()
}

// reuse checks whether an earlier release of a question helps to answer it at another price, and lowers the charge to what is still to be
// released: nothing, or the difference. The charges that paid for it cannot be taken back ([budget.ReleasedValues]).
//
// The charge, of nothing too, goes through the ledger as every other: the answer is stored, and the question replayed. Two who ask at
// once may find the same earlier release; then both pay the difference to it, for noise of their own.
func (q *prepared) reuse() error {
	if q.sharing.best == nil {
		return nil
	}
	plan := q.plan
	if wide := plan.WideUnder(q.sharing.under); wide != nil {
		if plan = wide; plan.Loss().Rho > q.plan.Loss().Rho { // weights split the price in another way
			return nil
		}
	}
	reuse := plan.Reuse(q.sharing.best)
	if reuse == nil { // what is released is what was priced
		return nil
	}
	if q.sharing.reuse = reuse; plan != q.plan { // it is released, and kept, as it was before
		q.plan, q.sharing.questions, q.released = plan, plan.BlockQuestions(), released.Of(plan, "")
		q.nameSeries()
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
		if err != nil || share.questions == nil {
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

// vectorToKeep gives the vector of a question as it is stored for others; none where it adds nothing new, or is too long.
func (s *Service) vectorToKeep(ctx context.Context, q *prepared, vector *sqlrewrite.Vector) []budget.Released {
	if vector == nil {
		return nil
	}
	text, rho, err := vector.Text()
	if err != nil {
		s.notKept(ctx, q, err)
	}
	if err != nil || len(text) > budget.MaxShared {
		return nil
	}
	return []budget.Released{{Charge: q.Charge.ID, Dataset: q.Charge.Dataset, Analyst: q.Charge.Analyst, Shared: true,
		Identity: q.sharing.questions[0], Values: text, Rho: rho}}
}
