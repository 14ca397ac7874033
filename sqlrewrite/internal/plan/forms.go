package plan

import "sync"

// Forms returns the plans whose stored releases answer the question: first p, then those that release the same block at the same price in
// another form. The planner chooses the form by what is shown of it:
//
//   - A question that sorts groups by a number which it does not show is a selection of groups. With that number in its outputs, or without
//     its LIMIT, the numbers are released.
//   - A count that is shown as it is also shows private keys; one that is divided by does not.
//   - Earlier versions divided δ among all releases of a question.
//
// Last come the plans over all keys: each form may have been released before there were lists, or while one was unavailable. Its listed
// groups are shown.
func (p *Plan) Forms() []*Plan {
	forms := p.listedForms()
	for _, form := range forms {
		if wide := form.overAllKeys(); wide != nil {
			forms = append(forms, wide)
		}
	}
	return forms
}

// listedForms returns the forms over the keys that lists leave.
func (p *Plan) listedForms() []*Plan {
	forms := []*Plan{p}
	if p.sorted != nil {
		forms = append(forms, p.sorted)
	}
	if p.Query.Private() && p.Options.Mechanism == MechanismAuto {
		by := keysByCount
		if p.PartitionSelection == nil {
			by = keysByUnits
		}
		other, err := layOut(p.Query, p.Snapshot, p.Options, by)
		if err == nil && (other.PartitionSelection == nil) != (p.PartitionSelection == nil) {
			other.Post = p.Post // which is proven
			forms = append(forms, other)
		}
	}
	if o := p.Options; o.evenDelta > 0 {
		o.Delta, o.evenDelta = o.evenDelta, 0
		if earlier, err := layOut(p.Query, p.Snapshot, o, keysByOutputs); err == nil {
			earlier.Post = p.Post // the same
			forms = append(forms, earlier.listedForms()...)
		}
	}
	return forms
}

// keysBy selects the release by which private keys are shown.
type keysBy int

const (
	keysByOutputs keysBy = iota // by a count where the outputs show it by itself, else by a selection of their own
	keysByCount                 // by a count whatever the outputs show
	keysByUnits                 // by a selection of their own
)

// wide makes the plan within the bounds of the policy, once.
type wide struct {
	made func(Options) (*Plan, error)
	once sync.Once
	plan *Plan
}

// Widened sets how to plan the question within the bounds of the policy, where conditions narrow these.
func (p *Plan) Widened(planned func(Options) (*Plan, error)) {
	p.wide = &wide{made: planned}
	if p.Several == nil {
		return
	}
	for i, block := range p.Several.Plans {
		block.wide = &wide{made: func(Options) (*Plan, error) {
			if all := p.Wide(); all != nil && all.Several != nil && i < len(all.Several.Plans) {
				return all.Several.Plans[i], nil
			}
			return nil, nil
		}}
	}
}

// Wide returns the plan of the question within the bounds of the policy, as it was released before conditions narrowed bounds; nil: they do
// not, or that plan is refused.
func (p *Plan) Wide() *Plan {
	if p.wide == nil {
		return nil
	}
	p.wide.once.Do(func() {
		if made, err := p.wide.made(p.Options); err == nil {
			p.wide.plan = made
		}
	})
	return p.wide.plan
}
