package sqlrewrite

import (
	"context"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Scoring are scores of a grouping, ready to be paid for and run. It is immutable and safe for concurrent use.
type Scoring = fit.Scoring

// ScoreQuestion asks how well centres group rows.
type ScoreQuestion = fit.ScoreQuestion

// ScoreOptions are the choices of one request, already checked for range by the caller.
type ScoreOptions = fit.ScoreOptions

// Scored are scores.
type Scored = fit.Scored

// ClusterScore is a score and its interval.
type ClusterScore = fit.Score

// NewScoring plans scores. Its errors are those of [Rewrite] for a query over the same expressions, and plan/fit; it touches neither data
// nor budget.
func NewScoring(ctx context.Context, q ScoreQuestion, snapshot *catalog.Snapshot, o ScoreOptions) (*Scoring, error) {
	return steps.Run(ctx, func(n *steps.Count) (*Scoring, error) {
		o.Steps = n
		return fit.NewScoring(q, snapshot, o)
	})
}
