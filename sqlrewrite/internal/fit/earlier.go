package fit

import (
	"crypto/sha256"
	"fmt"

	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// What follows goes with package earlier.

// EarlierFingerprint is the name of the question in earlier versions of Noisegate.
func (p *Plan) EarlierFingerprint() [32]byte {
	h := p.hash("noisegate fit 1", p.Question.Model, p.Method(), p.options.Rho, float64(p.options.Confidence))
	p.hashStatement(h, func(s *sqlprint.StatementPrinter) { s.PrintVector(p.sums.vector) })
	for i, c := range p.columns {
		h.Add(c.name, p.sums.scales[i].RatString(), fmt.Sprint(c.oneHot))
	}
	p.sums.hashScales(h)
	if p.Method() == Gradient {
		h.Add(fmt.Sprint(p.passes))
	}
	return [32]byte(h.Sum(nil))
}

// EarlierFingerprint is the name of the question in earlier versions of Noisegate.
func (p *Clustering) EarlierFingerprint() [32]byte {
	h := p.hash("noisegate cluster 1", p.options.Rho, p.options.Passes)
	for _, r := range p.releases() {
		p.hashStatement(h, func(s *sqlprint.StatementPrinter) { p.print(r, s) })
		r.hashScales(h)
	}
	for _, c := range p.columns {
		h.Add(c.name)
	}
	return [32]byte(h.Sum(nil))
}

// EarlierFingerprint is the name of the question in earlier versions of Noisegate.
func (p *Scoring) EarlierFingerprint() [32]byte {
	h := p.hash("noisegate score 1", p.options.Rho, float64(p.options.Confidence))
	p.hashStatement(h, func(s *sqlprint.StatementPrinter) { s.PrintScores(p.scores) })
	p.sums.hashScales(h)
	return [32]byte(h.Sum(nil))
}

// hash begins a fingerprint with the question and its method. Like that of a query's release it has the facts that the statements rest on,
// and no version of the policy: one that changes a budget sells nothing again.
func (p *rowSums) hash(what string, options ...any) sqlprint.Identity {
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add(what, p.on.Dataset, p.on.DataVersion)
	for _, o := range options {
		h.Add(fmt.Sprint(o))
	}
	h.Add(sqlprint.Facts(p.query)...)
	h.Add("bounding", string(p.bounding.Kind), fmt.Sprint(p.bounding.MaxRows))
	return h
}

// hashStatement adds a statement as it would be if the conditions had been written in one certain order and way, without the forms that
// identity does not have, as of a query. It is never run.
func (p *rowSums) hashStatement(h sqlprint.Identity, print func(*sqlprint.StatementPrinter)) {
	q, part := *p.query, sqlprint.PlanPart{Releases: p.statistics()}
	if q.Where != nil {
		q.Where = earlier.Ordered(q.Where)
	}
	print(sqlprint.NewStatementPrinter(&q, p.bounding, &part, sqlprint.Style{Identity: true}))
	h.Add(part.Template.Identity())
	h.Args(part.Statement.Args)
}

// hashScales adds the scales of a release.
func (r *release) hashScales(h sqlprint.Identity) {
	for _, s := range r.scales {
		h.Add(s.RatString())
	}
}
