package fit

import (
	"crypto/sha256"
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// read binds a question, and chooses how the rows of a unit are bounded; hint is as in bindQuestion.
func (p *rowSums) read(on *catalog.Snapshot, load loading, hint string, maxRows int64) (err error) {
	if err = p.bindQuestion(on, load, hint); err != nil {
		return err
	}
	p.bounding, err = stability.ChooseBounding(p.query, stability.Bounds{MaxRows: maxRows})
	return err
}

// statistics are those whose expressions the factors are.
func (b *bound) statistics() (all []int) {
	for i := range b.query.Statistics {
		all = append(all, i)
	}
	return all
}

// prove prints the statement of a release, gives it its claim, and has that proven.
func (p *rowSums) prove(r *release, on *catalog.Snapshot, memo *sqlprint.Proofs, print func(*sqlprint.StatementPrinter)) error {
	r.part.Releases = p.statistics()
	print(sqlprint.NewStatementPrinter(p.query, p.bounding, &r.part))
	if r.part.RowByRow {
		return fault.RowByRow()
	}
	s := &r.part.Statement
	s.Claim, s.On, s.Proofs = p.claim(r), on, memo
	return s.ClaimWork(p.query.Shared().Steps, memo.Work)
}

// hash begins a fingerprint, of what is asked for and how. Like that of a query's release it has the facts that the statements rest on, and
// no version of the policy: one that changes a budget sells nothing again.
func (p *rowSums) hash(what string, on *catalog.Snapshot, options ...any) sqlprint.Identity {
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add(what, on.Dataset, on.DataVersion)
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
		q.Where = plan.Ordered(q.Where)
	}
	printer := sqlprint.NewStatementPrinter(&q, p.bounding, &part)
	printer.Identity = true
	print(printer)
	h.Add(part.Template.Identity())
	h.Args(part.Statement.Args)
}

func (r *release) hashScales(h sqlprint.Identity) {
	for _, s := range r.scales {
		h.Add(s.RatString())
	}
}

// Fingerprint identifies the question: two plans with equal fingerprints give equal answers when replayed.
func (p *rowSums) Fingerprint() [32]byte { return p.identity }

// dryRun is the statement of a release over made-up rows. It is tried of all, as all of them compute.
func (p *rowSums) dryRun(r *release) sqlprint.DryRun {
	d := sqlprint.DryRunOf(p.query, &r.part)
	d.Plain = false
	return d
}

// knownNotes are what is known of the rows before there is data; of what these have values.
func (b *bound) knownNotes(of string) []algebra.Note {
	notes := append([]algebra.Note(nil), b.query.Source.Notes...)
	if b.partial {
		notes = append(notes, algebra.Note{Code: "nulls-left-out", Text: "rows without a value of " + of + " are left out"})
	}
	return notes
}
