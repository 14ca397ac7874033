package gateway

import (
	"context"
	"fmt"

	"noisegate.example/api"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// A question that reads nothing private has no price: it is answered without a charge, each time anew, and reads of
// public tables are counted in the journal. What it runs is a
// [sqlrewrite.Post], which cannot name a table with a privacy unit, and goes through [Data.Read], which takes nothing else.

// free answers a question that reads nothing private.
func (s *Service) free(ctx context.Context, q *prepared, tick *Schedule) (Receipt, error) {
	encoded, err := s.uncharged(ctx, tick, func(ctx context.Context) (*api.Result, error) {
		var rows []sqlrewrite.PostRow
		var types []string
		if post, ok := q.public.Post(); ok {
			var err error
			if rows, types, err = s.compute(ctx, q, post); err != nil {
				return nil, err
			}
		}
		answer, err := q.public.Answer(rows, types)
		return encode(answer), err
	})
	if err == nil && len(encoded) > maxFreeAnswer {
		err = fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d MiB", maxFreeAnswer>>20)).WithHint(
			"add LIMIT, or select less")
	}
	return Receipt{Answer: encoded}, err
}

// compute runs what names nothing private: where the public tables are that it reads, once the journal says so, else on
// the control database.
func (s *Service) compute(ctx context.Context, q *prepared, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	if len(post.Preconditions()) > 0 {
		if err := s.counted(ctx, q); err != nil {
			return nil, nil, err
		}
		return q.data.Read(ctx, post)
	}
	return s.calculator.Compute(ctx, post)
}

// freeEstimate says that a question costs nothing.
func freeEstimate(r api.QueryRequest, q *prepared) *api.EstimateResponse {
	return &api.EstimateResponse{
		Dataset: r.Dataset, Price: amounts.Of(mechanisms.Loss{}), Remaining: amounts.Headroom(q.Accounts.Own()), Affordable: true,
		Confidence: LevelOf(r), Plan: q.public.Tree(), Outputs: []api.OutputEstimate{}, Notes: []api.Note{},
	}
}
