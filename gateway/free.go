package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"noisegate/api"
	"noisegate/gateway/internal/amounts"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite"
)

// A question that reads nothing private has no price: it is answered without the ledger, each time anew. What it runs is a
// [sqlrewrite.Post], which cannot name a table with a privacy unit, and goes through [Data.Read], which takes nothing else.

// free answers a question that reads nothing private. It leaves at a boundary as others do: it runs where they run, so
// that the time that it takes would tell when they end.
func (s *Service) free(ctx context.Context, q *prepared, tick *Schedule) (Receipt, error) {
	encoded, err := Pace(ctx, tick, func(ctx context.Context) (json.RawMessage, error) {
		var rows []sqlrewrite.PostRow
		var types []string
		if post, ok := q.public.Post(); ok {
			var err error
			if rows, types, err = s.compute(ctx, q.data, post); err != nil {
				return nil, err
			}
		}
		answer, err := q.public.Answer(rows, types)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(encode(answer))
		if err != nil {
			return nil, fault.Internal(err)
		}
		return encoded, nil
	})
	switch {
	case errors.Is(err, errCancelled):
		return Receipt{}, fault.BudgetCancelled(false)
	case errors.Is(err, errTimeout):
		return Receipt{}, fault.DataUnavailable(err)
	}
	return Receipt{Answer: encoded}, err
}

// compute runs what names nothing private: where the public tables are that it reads, else on the control database.
func (s *Service) compute(ctx context.Context, data Data, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	if len(post.Preconditions()) > 0 {
		return data.Read(ctx, post)
	}
	return s.calculator.Compute(ctx, post)
}

// freeEstimate says that a question costs nothing.
func freeEstimate(r api.QueryRequest, q *prepared) *api.EstimateResponse {
	e := &api.EstimateResponse{
		Dataset: r.Dataset, Price: amounts.Of(mechanisms.Loss{}), Remaining: amounts.Headroom(q.accounts.Own()), Affordable: true,
		Confidence: defaultConfidence, Plan: q.public.Tree(), Outputs: []api.OutputEstimate{}, Notes: []api.Note{},
	}
	e.Confidence = levelOf(r)
	return e
}
