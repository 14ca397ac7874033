package sqlrewrite

import (
	"noisegate/sqlrewrite/internal/answer"
	"noisegate/sqlrewrite/internal/plan"
)

// Form is a plan as what was released of its question may be stored.
type Form struct{ made *plan.Plan }

// Forms are the ways in which the question can have been released at the plan's price: as the plan releases it, then as the planner
// releases the same block where something else of it is shown. Whatever was released in one of them answers the question.
func (p *Plan) Forms() []Form {
	made := p.made.Forms()
	forms := make([]Form, len(made))
	for i, form := range made {
		forms[i].made = form
	}
	return forms
}

// Identity identifies what is released: the release block, its noise and so its price, the name of the data, and the facts of the tables
// that the block reads. What is computed from released values is no part of it, nor are budgets and other tables.
func (f Form) Identity() [32]byte { return f.made.ReleaseIdentity() }

// Recall is what [Released.Kept] wrote of a release with the form's identity, to be shown as the question wants it. Nothing is drawn.
func (f Form) Recall(text []byte) (*Released, error) {
	r, err := f.made.Recall(text)
	if err != nil {
		return nil, err
	}
	r.Plan.Outputs = answer.OutputForms(r.Plan)
	return &Released{r}, nil
}
