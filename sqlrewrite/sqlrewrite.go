package sqlrewrite

import (
	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/free"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/plan"
)

// Read parses, binds and plans a query: exactly one of private and public is not nil when there is no error. Its errors are those of
// [Rewrite].
func Read(sql string, snapshot *catalog.Snapshot, options Options) (private *Plan, public *PublicPlan, err error) {
	opened, err := open(sql, snapshot, options)
	if err != nil {
		return nil, nil, err
	}
	if public, err = free.OpenPlan(opened); public != nil || err != nil {
		return nil, public, err
	}
	private, err = planQuery(opened, options)
	return private, nil, err
}

func open(sql string, snapshot *catalog.Snapshot, options Options) (*algebra.Opened, error) {
	query, err := parse.ParseAt(sql, options.Dialect, options.Now)
	return algebra.NewOpened(sql, query, snapshot), err
}

// Rewrite parses, binds and plans a query that reads private rows; [Read] takes every query. Its errors are sql/*, policy/* and plan/*
// faults; it touches neither data nor budget.
func Rewrite(sql string, snapshot *catalog.Snapshot, options Options) (*Plan, error) {
	opened, err := open(sql, snapshot, options)
	if err != nil {
		return nil, err
	}
	return planQuery(opened, options)
}

func planQuery(o *algebra.Opened, options Options) (*Plan, error) {
	bound, err := plan.Asked(o, options)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(plan.NewPlan(bound, o.Snapshot, options))
	if err == nil {
		p.text = o.Text
	}
	return p, err
}

// Plan is a private query, ready to be paid for and run. It is immutable and safe for concurrent use.
type Plan struct {
	made *plan.Plan
	text string // of the question; "" where the plan is made of another one
}

// newPlan describes the outputs of a plan that was made; nil with an error.
func newPlan(p *plan.Plan, err error) (*Plan, error) {
	if err != nil {
		return nil, err
	}
	p.Outputs = answer.OutputForms(p)
	return &Plan{made: p}, nil
}

// Reprice is the plan of the same question under other options. It reads no text again.
func (p *Plan) Reprice(o Options) (*Plan, error) { return newPlan(p.made.Repriced(o)) }

// WithSlots is the plan with other noise: release i has the noise of next[i], the slots that a registered plan has left, in order. The
// slots alone decide ε and ρ, whatever price the plan was made for; the text decides the sensitivity. Its fingerprint is p's.
//
// It refuses private keys and quantiles (a selection is no slot), more releases than there are slots, and a slot whose mechanism is not
// the one that the options ask for: plan/slot-mismatch, plan/exhausted.
func (p *Plan) WithSlots(next []mechanisms.Slot) (*Plan, error) {
	return newPlan(p.made.WithNoise(next))
}

// Release adds the noise and selects private keys: the only step that holds sealed values. An error of the rows is returned as it is.
func (p *Plan) Release(s *mechanisms.Sampler, draws *Draws, rows Rows) (*Released, error) {
	return newReleased(p.made.ReleaseRows(s, draws, rows))
}

// Released is a plan's noisy values, before post-processing.
type Released struct{ made *plan.Released }

func newReleased(r *plan.Released, err error) (*Released, error) {
	if err != nil {
		return nil, err
	}
	if r.Blocks != nil { // a release that was given may have noise of its own
		r.Plan.Outputs = answer.OutputForms(r.Plan)
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
	u := p.made.ReuseOf(earlier)
	if u == nil {
		return nil
	}
	u.Shown.Outputs = answer.OutputForms(u.Shown)
	return &Reuse{u}
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
	return newReleased(u.made.ShownWeaker(s))
}

// Stronger is the answer if something was still to be released, and all that is now known of the question.
func (u *Reuse) Stronger(s *mechanisms.Sampler, released *Released) (*Released, *Vector, error) {
	shown, all, err := u.made.ShownStronger(s, released.made)
	answer, err := newReleased(shown, err)
	return answer, all, err
}
