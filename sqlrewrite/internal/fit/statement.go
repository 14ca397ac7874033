package fit

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/plan"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/internal/stability"
	"noisegate/sqlrewrite/verify"
)

// statistics are those whose expressions the factors are.
func (b *bound) statistics() (all []int) {
	for i := range b.query.Statistics {
		all = append(all, i)
	}
	return all
}

// printed is a statement as it would be if the conditions had been written in one certain order and way, without the forms that identity
// does not have, as of a query. It is hashed, and never run.
func (b *bound) printed(bounding stability.Bounding, print func(*sqlprint.StatementPrinter)) *sqlprint.PlanPart {
	q, part := *b.query, sqlprint.PlanPart{Releases: b.statistics()}
	if q.Where != nil {
		q.Where = plan.Ordered(q.Where)
	}
	printer := sqlprint.NewStatementPrinter(&q, bounding, &part)
	printer.Identity = true
	print(printer)
	return &part
}

// proven gives a printed statement its claim, and has that proven.
func proven(part *sqlprint.PlanPart, claim verify.Claim, on *catalog.Snapshot, memo *sqlprint.Proofs) error {
	if part.RowByRow {
		return fault.RowByRow()
	}
	part.Statement.Claim, part.Statement.On = claim, on
	return part.Statement.WithSeed(0).Prove(memo)
}
