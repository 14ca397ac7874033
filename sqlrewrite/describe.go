package sqlrewrite

import (
	"context"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/internal/suggest"
)

// Open is [Read] for a query that has no price yet; nil when it needs one. Of the options only dialect and clock count.
func Open(ctx context.Context, sql string, snapshot *catalog.Snapshot, options Options) (*PublicPlan, error) {
	return steps.Run(ctx, func(n *steps.Count) (*PublicPlan, error) { return pipeline.Open(n, sql, snapshot, options) })
}

// IsTimeless reports whether a text parses, and means the same on any day.
func IsTimeless(sql string, dialect Dialect) bool { return parse.IsTimeless(sql, dialect) }

// Columns describes the outputs of the answer before there is one: names, kinds and the half-widths of their noise.
func (p *Plan) Columns() []Column { return answer.Columns(p.made) }

// Explain describes the plan without touching a row.
func (p *Plan) Explain() Explanation { return explain.Explain(p.made) }

// Describe gives the columns of a query's answer before it has a price: names, types and kinds. With rows, a query of rows that are not
// shown has the columns that it would have. Of the options only dialect and clock count. Its errors are those of [Rewrite].
func Describe(ctx context.Context, sql string, snapshot *catalog.Snapshot, options Options, rows bool) ([]Column, error) {
	return steps.Run(ctx, func(n *steps.Count) ([]Column, error) { return pipeline.Describe(n, sql, snapshot, options, rows) })
}

// Suggest adds to a refusal the words that it points at, as the detail "near", and a [fault.Suggestion], where a small change to the text
// makes a query that is accepted: the details "suggestion", "then" (in which <answer> stands for the first query's answer) and "differs".
// Other errors come back as they are.
//
// What it says depends on the text, the policy and the options alone. Every suggestion was accepted by [Read] before it is made.
func Suggest(ctx context.Context, err error, sql string, snapshot *catalog.Snapshot, options Options) error {
	if options.Epsilon == 0 && options.Rho == 0 {
		options.Epsilon = mechanisms.EpsilonUnit
	}
	options.Lists = nil // nobody asks for those of a suggestion
	ctx, cancel := steps.InTime(ctx)
	defer cancel()
	return suggest.Suggest(err, sql, snapshot, func(text string) error {
		_, _, err := Read(ctx, text, snapshot, options)
		return err
	})
}
