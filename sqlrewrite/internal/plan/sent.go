package plan

import (
	"iter"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// DryRuns are those of the plan's statements.
func (p *Plan) DryRuns() []sqlprint.DryRun {
	var all []sqlprint.DryRun
	for _, block := range p.pending() {
		for i := range block.Parts {
			all = append(all, sqlprint.DryRunOf(block.Query, &block.Parts[i]))
		}
	}
	return all
}

// Distribute prints the plan's statements for a database whose tables lie on several servers (Citus). It asks its workers for the columns
// that HAVING names, not for the keys that are computed from them, which is no SQL: so keys that a flat statement computes are held against
// their domain row by row. That are the same groups with the same rows; PostgreSQL itself is faster when it tests groups. The question
// stays what it is.
func (p *Plan) Distribute() error {
	if p.Several != nil {
		for _, block := range p.pending() {
			if err := block.Distribute(); err != nil {
				return err
			}
		}
		return nil
	}
	p.distributed = true
	p.Print()
	return p.prove(p.Snapshot)
}

// Print prints all statements. None runs before it is proven.
func (p *Plan) Print() {
	for i := range p.Parts {
		p.printPart(i)
	}
}

func (p *Plan) printPart(i int) {
	sqlprint.NewStatementPrinter(p.Query, p.Bounding, &p.Parts[i], sqlprint.Style{Distributed: p.distributed}).Print()
}

// ExactRow is one row of a [sqlprint.Statement]'s result: keys in clear, aggregates sealed.
type ExactRow struct {
	Part   int // which of the plan's statements gave it
	Keys   []catalog.Key
	Values []mechanisms.Exact
}

// Rows are the rows of a plan's statements, one after another and one by one as PostgreSQL sends them, or the error that ended
// them. They are streamed because the number of private groups is itself private: no limit on it may decide whether there is an answer.
type Rows = iter.Seq2[ExactRow, error]

// MaxParts caps the statements of one plan: each reads the tables once, on one connection of the protected database.
const MaxParts = 32
