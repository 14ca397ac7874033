package sqlrewrite

import (
	"context"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Read parses, binds and plans a query: exactly one of private and public is not nil when there is no error. Its errors are those of
// [Rewrite].
func Read(ctx context.Context, sql string, snapshot *catalog.Snapshot, options Options) (private *Plan, public *PublicPlan, err error) {
	made, err := steps.Run(ctx, func(n *steps.Count) (made *plan.Plan, err error) {
		made, public, err = pipeline.ReadWithin(n, sql, snapshot, options)
		return made, err
	})
	if made == nil {
		return nil, public, err
	}
	return &Plan{made, sql}, nil, nil
}

// Rewrite parses, binds and plans a query that reads private rows; [Read] takes every query. Its errors are sql/*, policy/* and plan/*
// faults, and that of ctx; it touches neither data nor budget. What takes more than 2,000,000 steps, 400 levels or two seconds to plan is
// sql/too-complex.
func Rewrite(ctx context.Context, sql string, snapshot *catalog.Snapshot, options Options) (*Plan, error) {
	made, err := steps.Run(ctx, func(n *steps.Count) (*plan.Plan, error) { return pipeline.RewriteWithin(n, sql, snapshot, options) })
	if err != nil {
		return nil, err
	}
	return &Plan{made, sql}, nil
}

// Plan is a private query, ready to be paid for and run. It is immutable and safe for concurrent use.
type Plan struct {
	made *plan.Plan
	text string // of the question; "" where the plan is made of another one
}

func newPlan(p *plan.Plan, err error) (*Plan, error) {
	if err != nil {
		return nil, err
	}
	return &Plan{made: p}, nil
}

// Reprice is the plan of the same question under other options. It reads no text again.
func (p *Plan) Reprice(o Options) (*Plan, error) { return newPlan(pipeline.Reprice(p.made, o)) }

// WithSlots is the plan with other noise: release i has the noise of next[i], the slots that a registered plan has left, in order. The
// slots alone decide ε and ρ, whatever price the plan was made for; the text decides the sensitivity. Its fingerprint is p's.
//
// It refuses private keys and quantiles (a selection is no slot), more releases than there are slots, and a slot whose mechanism is not
// the one that the options ask for: plan/slot-mismatch, plan/exhausted.
func (p *Plan) WithSlots(next []mechanisms.Slot) (*Plan, error) {
	return newPlan(pipeline.WithSlots(p.made, next))
}

// Release adds the noise and selects private keys: the only step that holds sealed values. An error of the rows is returned as it is.
func (p *Plan) Release(s *mechanisms.Sampler, draws *Draws, rows Rows) (*Released, error) {
	return newReleased(pipeline.Release(p.made, s, draws, rows))
}

// Released is a plan's noisy values, before post-processing.
type Released struct{ made *plan.Released }

func newReleased(r *plan.Released, err error) (*Released, error) {
	if err != nil {
		return nil, err
	}
	return &Released{r}, nil
}

// Answer assembles the answer: from the result of post-processing when there is any (rows in order; types are PostgreSQL's names of the
// output columns, without the ordinal), else from the released values (rows and types are nil).
func (r *Released) Answer(rows []PostRow, types []string) (*Answer, error) {
	return answer.Complete(r.made, rows, types)
}

// Plain is the answer without the post-processing query: keys and aggregates as they were released. It is for post-processing that failed
// after everything was paid: what was bought is then still delivered.
func (r *Released) Plain() *Answer { return answer.Plain(r.made) }

// Reuse is how a question is answered with the help of what was released of it before.
type Reuse struct{ made *plan.Reuse }

// Reuse finds out whether what was released before helps: nil if it does not.
func (p *Plan) Reuse(earlier *Vector) *Reuse {
	if u := pipeline.Reuse(p.made, earlier); u != nil {
		return &Reuse{u}
	}
	return nil
}

// Fresh is the plan of what is still to be released, and paid for; nil if that is nothing.
func (u *Reuse) Fresh() *Plan {
	if u.made.More == nil {
		return nil
	}
	return &Plan{made: u.made.More}
}

// Weaker is the answer if nothing is still to be released: what there was, with noise on top.
func (u *Reuse) Weaker(s *mechanisms.Sampler) (*Released, error) {
	return newReleased(pipeline.Weaker(u.made, s))
}

// Stronger is the answer if something was still to be released, and all that is now known of the question.
func (u *Reuse) Stronger(s *mechanisms.Sampler, released *Released) (*Released, *Vector, error) {
	shown, all, err := pipeline.Stronger(u.made, s, released.made)
	answer, err := newReleased(shown, err)
	return answer, all, err
}
