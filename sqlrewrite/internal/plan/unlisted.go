package plan

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Lists leave out keys of a question. A release over all keys, such as one from before there were lists, answers it too: the listed groups
// are shown, with the noise that they have.

// overAllKeys returns the plan of the same release without lists; nil: lists leave out no keys, or that plan is refused.
func (p *Plan) overAllKeys() *Plan {
	if !p.Query.FewerKeys() {
		return nil
	}
	all, err := layOut(p.Query.Unlisted(), p.Snapshot, p.Options, keysByOutputs)
	if err != nil {
		return nil
	}
	all.Post = p.Post // which is proven
	if p.Query.Top == 0 {
		all.listing = p
	} // else groups were selected among all, and are shown as they were
	return all
}

// showing makes a stored release of a plan over all keys a release of the plan over the listed keys.
func (p *Plan) showing(listed *Plan, rows []ReleasedRow) (*Released, error) {
	has := domainOf(listed.Query)
	rows = slices.DeleteFunc(rows, func(r ReleasedRow) bool { return !has(r.Keys) })
	rows, err := listed.inOrder(rows)
	if err != nil {
		return nil, err
	}
	p.Query, p.Parts, p.Post, p.identity, p.asked, p.listing = listed.Query, listed.Parts, listed.Post, listed.identity, listed.asked, nil
	return &Released{Plan: p, Rows: rows}, nil
}

// BlockQuestions returns the plans whose [Plan.BlockQuestion] names vectors that help: the plan itself, and the plan over all keys if its
// vectors have the same noise at the same price. These are vectors over the listed keys with more groups.
func (p *Plan) BlockQuestions() []*Plan {
	all := []*Plan{p}
	if over := p.overAllKeys(); over != nil && p.hasNormsOf(over) {
		all = append(all, over)
	}
	return all
}

// hasNormsOf reports whether one unit moves the releases of both plans by the same amount.
func (p *Plan) hasNormsOf(q *Plan) bool {
	for _, r := range p.Releases {
		l1, l2 := p.Bounding.Norms(r.Statistic)
		other1, other2 := q.Bounding.Norms(r.Statistic)
		if l1.Cmp(other1) != 0 || l2.Cmp(other2) != 0 {
			return false
		}
	}
	return true
}

// listed cuts a vector over all keys to the listed ones. It returns other vectors unchanged.
func (p *Plan) listed(v *Vector) *Vector {
	if !p.Query.FewerKeys() {
		return v
	}
	all := p.Query.Unlisted()
	if int64(len(v.Sums)) != scalar.ClampInt64(all.PublicTuples()) {
		return v
	}
	own, has := &Vector{Rho: v.Rho}, domainOf(p.Query)
	_ = EachPublicTuple(all, func(i int, keys []catalog.Key) error {
		if has(keys) {
			own.Sums = append(own.Sums, v.Sums[i])
		}
		return nil
	})
	return own
}

// Unlisted returns the plan of the same question without lists, under whose name answers were stored before there were lists; nil: lists
// leave out no keys, or that plan is refused.
func (p *Plan) Unlisted() *Plan {
	if !p.FewerKeys() {
		return nil
	}
	all, err := newPlan(p.asked.Unlisted(), p.Snapshot, p.Options)
	if err != nil {
		return nil
	}
	return all
}

// FewerKeys reports whether lists leave out keys of the question.
func (p *Plan) FewerKeys() bool { return p.asked != nil && p.asked.FewerKeys() }
