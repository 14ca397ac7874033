package sqlprint

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
)

// PlanPart is one statement of a plan: releases that one scan serves.
type PlanPart struct {
	Releases  []int // by index; all additive, or all of one histogram
	Units     bool  // the last column is the number of units, by which private keys are selected
	Statement Statement
	Template  template // of the statement
	SeedArg   int      // which argument is the seed, from 1; 0: none
	RowByRow  bool     // PostgreSQL would evaluate EXISTS or IN over many rows for each row that conditions leave
}

// statistics are those that the part releases.
func (p *PlanPart) statistics(q *algebra.BoundQuery) (all []algebra.Statistic) {
	for _, i := range p.Releases {
		all = append(all, q.Statistics[i])
	}
	return all
}

// PartsOf divides the releases over statements: everything that adds up in one scan, another for each expression whose different values
// are counted, and one for each histogram.
func PartsOf(q *algebra.BoundQuery) []PlanPart {
	var parts []PlanPart
	var additive []int
	for i, m := range q.Statistics {
		switch m.Kind {
		case algebra.CountDistinct, algebra.ChooseRank, algebra.ChooseMode:
			scan := slices.IndexFunc(parts, func(p PlanPart) bool { return q.Statistics[p.Releases[0]].SameRows(m) })
			if scan < 0 {
				scan, parts = len(parts), append(parts, PlanPart{})
			}
			parts[scan].Releases = append(parts[scan].Releases, i)
		default:
			additive = append(additive, i)
		}
	}
	if len(additive) > 0 || q.Private() {
		parts = append([]PlanPart{{Releases: additive, Units: q.Private()}}, parts...)
	}
	return parts
}
