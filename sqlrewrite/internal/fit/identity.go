package fit

import (
	"fmt"

	"noisegate.example/sqlrewrite/internal/identity"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Fingerprint identifies the question: two plans with equal fingerprints give equal answers when replayed.
func (p *Plan) Fingerprint() [32]byte {
	made := []any{p.Question.Model, p.Method(), p.options.Rho, float64(p.options.Confidence), p.passes, p.sums.vector.Columns}
	for i, c := range p.columns {
		made = append(made, c.name, p.sums.scales[i].RatString(), c.oneHot)
	}
	return p.named("fit", append(made, p.sums.scaleTexts()...))
}

// Fingerprint identifies the question, as that of a fit does.
func (p *Clustering) Fingerprint() [32]byte {
	made := []any{p.options.Rho, p.options.Passes, p.clusters.Coordinates, p.clusters.Centres}
	for _, r := range p.releases() {
		made = append(append(made, r.vector.Columns), r.scaleTexts()...)
	}
	for _, c := range p.columns {
		made = append(made, c.name)
	}
	return p.named("cluster", made)
}

// Fingerprint identifies the question, as that of a fit does.
func (p *Scoring) Fingerprint() [32]byte {
	s := p.scores
	counts := make([]int64, len(s.Counts)) // as the statement has them
	for i, f := range s.Factors {
		counts[i] = f.Direction(s.Counts[i])
	}
	made := []any{p.options.Rho, float64(p.options.Confidence), counts, s.Centres, s.Spreads, s.Silhouettes}
	return p.named("score", append(made, p.sums.scaleTexts()...))
}

// named names a question and its method. Like the name of a query's release it rests on facts of tables, and on no version of the policy:
// one that changes a budget sells nothing again.
func (p *rowSums) named(what string, made []any) [32]byte {
	bounding := p.bounding
	bounding.MaxGroups, bounding.MaxTotal, bounding.MaxValues = 0, 0, 0 // there are no groups, and rows alone are bounded
	parts := identity.Parts{Query: p.query, Bounding: bounding, Snapshot: p.on, Facts: sqlprint.Facts(p.query)}
	for _, v := range made {
		parts.Options = append(parts.Options, fmt.Sprint(v))
	}
	return identity.Sums(what, parts)
}

// scaleTexts gives the scales of a release.
func (r *release) scaleTexts() (all []any) {
	for _, s := range r.scales {
		all = append(all, s.RatString())
	}
	return all
}
