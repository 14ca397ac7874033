package sqlrewrite

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
)

// Form is a plan as what was released of its question may be stored.
type Form struct {
	made    *plan.Plan
	earlier bool // by a version of noisegate that named releases by printed statements
}

// Blocks are the releases of the question, each as the plan of what it releases, equal ones once; the plan itself, where it is one.
func (p *Plan) Blocks() []*Plan {
	var blocks []*Plan
	for _, block := range p.made.Different() {
		blocks = append(blocks, &Plan{made: block})
	}
	return blocks
}

// Several says whether what is released is a part of what is asked, to be put together by [Plan.Whole]: the question has several blocks,
// though they may be equal.
func (p *Plan) Several() bool { return p.made.Several != nil }

// Given is the plan of a question with several releases of which some were found: found[i] is that of the i-th of [Plan.Blocks], nil where
// there is none. Only the others are released and paid for; the answer is the same question's.
func (p *Plan) Given(found []*Released) *Plan {
	given := make([]*plan.Released, len(found))
	for i, r := range found {
		if r != nil {
			given[i] = r.made
		}
	}
	return &Plan{made: p.made.Given(given), text: p.text}
}

// Whole is what the question releases, where nothing that needs data is still to be released.
func (p *Plan) Whole() (*Released, error) { return newReleased(pipeline.Whole(p.made)) }

// Fresh are what was released now: by place in [Plan.Blocks], nil where a release was given.
func (r *Released) Fresh() []*Released {
	var all []*Released
	for _, block := range r.made.Fresh() {
		if block == nil {
			all = append(all, nil)
			continue
		}
		all = append(all, &Released{block})
	}
	return all
}

// Forms are the ways in which the question can have been released at the plan's price: as the plan releases it, then as the planner
// releases the same block where something else of it is shown, then within the bounds that it had before conditions narrowed these, and
// then as earlier versions stored these. A release in any of these forms answers the question.
func (p *Plan) Forms() (forms []Form) {
	earlier := p.made.Forms()
	for _, form := range earlier {
		forms = append(forms, Form{made: form})
	}
	if wide := p.wide(); wide != nil {
		earlier = wide.Forms()
		for _, form := range earlier {
			forms = append(forms, Form{made: form})
		}
	}
	if p.made.Snapshot.EarlierReleases {
		for _, form := range earlier {
			if !form.Query.FewerKeys() && form.Query.Bought == nil { // there were no lists, and no such values
				forms = append(forms, Form{form, true})
			}
		}
	}
	return forms
}

// wide is the plan of the question as versions before migration 027 had it; nil: it is this one, or nothing can be stored of it.
func (p *Plan) wide() *plan.Plan {
	if !p.made.Snapshot.WideReleases {
		return nil
	}
	return p.made.Wide()
}

// WideUnder is the plan of the question as versions before migration 027 had it, if what is released of that has a name at any price; nil:
// it has not.
func (p *Plan) WideUnder(name [32]byte) *Plan {
	wide := p.wide()
	own := func(made *plan.Plan) bool { return made.BlockQuestion() == name }
	if wide == nil || slices.ContainsFunc(p.made.BlockQuestions(), own) {
		return nil
	}
	return &Plan{made: wide}
}

// Identity identifies what is released: the release block, its noise and so its price, the name of the data, and the facts of the tables
// that the block reads. What is computed from released values is no part of it, nor are budgets and other tables.
func (f Form) Identity() [32]byte {
	if f.earlier {
		return earlier.Release(f.made)
	}
	return f.made.ReleaseIdentity()
}

// Recall is what [Released.Kept] wrote of a release with the form's identity, to be shown as the question wants it. Nothing is drawn.
func (f Form) Recall(text []byte) (*Released, error) {
	if f.earlier {
		return newReleased(pipeline.RecallEarlier(f.made, text))
	}
	return newReleased(pipeline.Recall(f.made, text))
}
