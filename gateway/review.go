package gateway

import (
	"context"
	"errors"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
)

// ReviewPolicy says what applying a policy file would change, loosen and renew, and warns as applying it does.
func (s *Service) ReviewPolicy(ctx context.Context, dataset string, text []byte) (*api.PolicyReview, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	review, err := s.policies.Review(ctx, dataset, text)
	if fault.CodeOf(err) == fault.CodePolicyInvalid {
		return refusedReview(dataset, err), nil
	}
	if err != nil && ctx.Err() != nil { // who types on stops the check of what stood there before: nothing is wrong with the schema
		return nil, fault.RequestGone(ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return ReviewOf(review), nil
}

// refusedReview lists all that is wrong with a file.
func refusedReview(dataset string, err error) *api.PolicyReview {
	out := emptyReview(dataset)
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	for _, problem := range problems {
		var f *fault.Error
		if errors.As(problem, &f) {
			out.Problems = append(out.Problems, api.PolicyProblem{Line: f.Pos.Line, Column: f.Pos.Column, Text: f.Msg, Hint: f.Hint})
		}
	}
	return out
}

func emptyReview(dataset string) *api.PolicyReview {
	return &api.PolicyReview{Dataset: dataset, Changes: []api.PolicyDifference{}, Warnings: []api.PolicyWarning{},
		Noise: []api.TableNoise{}, Kinds: []string{}, Problems: []api.PolicyProblem{}}
}

// ReviewOf is a review as it goes over the wire.
func ReviewOf(review *catalog.Review) *api.PolicyReview {
	out := emptyReview(review.Snapshot.Dataset)
	out.Version, out.InForce, out.Renews = review.Version, review.Same, review.Renews()
	out.Kinds, out.TwoFor = append(out.Kinds, review.Snapshot.Kinds()...), review.Two
	out.Ledger = review.Ledger
	for _, c := range review.Changes {
		out.Changes = append(out.Changes, api.PolicyDifference{Effect: string(c.Effect), Text: c.Text})
	}
	for _, w := range review.Snapshot.Warnings {
		out.Warnings = append(out.Warnings, api.PolicyWarning{Line: w.Pos.Line, Column: w.Pos.Column, Text: w.Text})
	}
	for _, t := range review.Snapshot.Tables {
		if text := catalog.NoiseText(t.MaxRows, t.MaxGroups, t.MaxTotal); text != "" && !t.Public {
			name := catalog.TableName{Schema: t.Schema, Name: t.Name}
			out.Noise = append(out.Noise, api.TableNoise{Table: name.String(), Text: text})
		}
	}
	return out
}
