package pipeline

import (
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/plan"
)

// Release adds the noise and selects private keys. An error of the rows is returned as it is.
func Release(p *plan.Plan, s *mechanisms.Sampler, draws *plan.Draws, rows plan.Rows) (*plan.Released, error) {
	return released(p.ReleaseRows(s, draws, rows))
}

// Whole is the release of a question where nothing that needs data is still to be released.
func Whole(p *plan.Plan) (*plan.Released, error) { return released(p.Whole()) }

func released(r *plan.Released, err error) (*plan.Released, error) {
	if err != nil {
		return nil, err
	}
	if r.Blocks != nil { // a release that was given may have other noise
		r.Plan.Outputs = answer.OutputForms(r.Plan)
	}
	return r, nil
}

// Recall is the stored release with the plan's identity, shown as the question wants it.
func Recall(p *plan.Plan, text []byte) (*plan.Released, error) { return recalled(p.Recall(text)) }

// RecallEarlier is [Recall] of what earlier versions stored.
func RecallEarlier(p *plan.Plan, text []byte) (*plan.Released, error) {
	return recalled(earlier.Recall(p, text))
}

func recalled(r *plan.Released, err error) (*plan.Released, error) {
	if err != nil {
		return nil, err
	}
	r.Plan.Outputs = answer.OutputForms(r.Plan)
	return r, nil
}

// Reuse finds out whether what was released before helps a question: nil if it does not.
func Reuse(p *plan.Plan, earlier *plan.Vector) *plan.Reuse {
	u := p.ReuseOf(earlier)
	if u != nil {
		u.Shown.Outputs = answer.OutputForms(u.Shown)
	}
	return u
}

// Weaker is the answer of a reuse if nothing is still to be released.
func Weaker(u *plan.Reuse, s *mechanisms.Sampler) (*plan.Released, error) {
	return released(u.ShownWeaker(s))
}

// Stronger is the answer of a reuse if something was still to be released, and all that is now known of the question.
func Stronger(u *plan.Reuse, s *mechanisms.Sampler, r *plan.Released) (*plan.Released, *plan.Vector, error) {
	shown, all, err := u.ShownStronger(s, r)
	answer, err := released(shown, err)
	return answer, all, err
}
