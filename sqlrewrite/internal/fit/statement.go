package fit

import (
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// read binds a question, and chooses how the rows of a unit are bounded; hint is as in bindQuestion.
func (p *rowSums) read(on *catalog.Snapshot, load loading, hint string, maxRows int64) (err error) {
	if err = p.bindQuestion(on, load, hint); err != nil {
		return err
	}
	p.on = on
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
	print(sqlprint.NewStatementPrinter(p.query, p.bounding, &r.part, sqlprint.Style{}))
	if r.part.RowByRow {
		return fault.RowByRow()
	}
	s := &r.part.Statement
	s.Claim, s.On, s.Proofs = p.claim(r), on, memo
	return s.ClaimWork(p.query.Shared().Steps, memo.Work)
}

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
