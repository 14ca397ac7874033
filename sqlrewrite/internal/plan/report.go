package plan

import (
	"errors"
	"slices"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/bind"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/internal/stability"
)

// Report is what a request buys beside its answer, of what the bounds leave out.
type Report string

// ReportKept is the part of the rows that the bounds keep, over all groups: the ratio of two noisy counts ([algebra.KeptRows],
// [algebra.AllRows]), each a release of its own at the price of one of the answer's.
const ReportKept Report = "kept"

var errCopy = errors.New("plan: a prepared copy has no rows beyond its bounds")

// Asked binds what is asked and what is to be reported beside it.
func Asked(opened *algebra.Opened, o Options) (*algebra.BoundQuery, error) {
	q, err := bind.Releasing(opened)
	if err != nil {
		return nil, err
	}
	return reporting(q, o)
}

// reporting is a query with the blocks from which is made what is reported beside its answer. It is the query itself where nothing is to
// be, and where each row counts, as nothing need be bought then.
func reporting(q *algebra.BoundQuery, o Options) (*algebra.BoundQuery, error) {
	switch {
	case o.Report == "":
		return q, nil
	case q.Blocks != nil:
		return nil, fault.NoReport("it has several releases")
	case len(o.Weights) > 0:
		return nil, fault.NoReport("weights divide its price, of which a report takes equal portions")
	case o.Simultaneous:
		return nil, fault.NoReport("its intervals hold all together, which that of a report does not")
	case !slices.ContainsFunc(q.Statistics, boundsRows):
		return nil, fault.NoReport("none of its values is of rows whose number max_rows bounds")
	case q.ReadsCopy(): // nobody sees it: the question is then asked of the table
		return nil, fault.Internal(errCopy)
	}
	rows, agree := countedBy(q.Statistics)
	if !agree {
		return nil, fault.NoReport("its values are of different rows, by FILTER or where a column is NULL; ask for them one by one")
	}
	s, err := stability.ChooseBounding(q, o.bounds())
	if err != nil || s.Kind == stability.Flat {
		return q, err
	}
	first, post := *q, q.Post
	if post == nil {
		post = &algebra.Query{Block: true, Outputs: q.Outputs}
	} else {
		first.Post, first.Outputs, first.Inner, first.Scans = nil, q.Inner, nil, nil
	}
	return &algebra.BoundQuery{Blocks: []*algebra.BoundQuery{&first, q.Counting(algebra.KeptRows, rows), q.Counting(algebra.AllRows, rows)},
		Source: q.Source, Post: post, Outputs: q.Outputs, Scans: q.Scans, Reports: true}, nil
}

// countedBy is the count of the rows that statistics are of, those whose rows max_rows bounds; false where they are of different ones.
func countedBy(all []algebra.Statistic) (rows algebra.Statistic, agree bool) {
	found := false
	for _, m := range all {
		if !boundsRows(m) {
			continue
		}
		of, known := rowsOf(m)
		if !known || found && !of.SameRows(rows) {
			return rows, false
		}
		rows, found = of, true
	}
	return rows, true
}

// rowsOf is the count of the rows that a statistic is of: those that pass its filter, and have the values that it reads. It is false where
// two values must be there.
func rowsOf(m algebra.Statistic) (rows algebra.Statistic, known bool) {
	rows = algebra.Statistic{Kind: algebra.CountRows, Filter: m.Filter}
	for _, x := range []algebra.Expr{m.X, m.Y} {
		switch {
		case x == nil || sqlprint.NeverNull(x):
		case rows.X != nil && !algebra.Same(rows.X, x):
			return rows, false
		default:
			rows.Kind, rows.X = algebra.CountValues, x
		}
	}
	return rows, true
}

// boundsRows reports whether max_rows bounds a statistic.
func boundsRows(m algebra.Statistic) bool {
	return m.Kind != algebra.CountUnits && m.Kind != algebra.CountDistinct
}

func (o Options) bounds() stability.Bounds {
	return stability.Bounds{MaxRows: o.MaxRows, MaxGroups: o.MaxGroups, MaxTotal: o.MaxTotal}
}

// portionsOf are the portions of the price that the blocks of a query get: equal ones; or, where some count what is left out, one for each
// of these and the first block as many as it has releases.
func portionsOf(q *algebra.BoundQuery) []int {
	portions := slices.Repeat([]int{1}, len(q.Blocks))
	if q.Reports {
		portions[0] = len(q.Blocks[0].Statistics) + algebra.BoolIndex(q.Blocks[0].Private())
	}
	return portions
}

// portion are the options of a block that gets so many of n portions of the price, each rounded down. What is reported needs no δ. What the
// first block releases is the same whether or not something is reported beside it.
func (o Options) portion(portions, n int, first bool) Options {
	o.Epsilon = o.Epsilon / mechanisms.PicoEpsilon(n) * mechanisms.PicoEpsilon(portions)
	o.Rho = o.Rho / mechanisms.PicoRho(n) * mechanisms.PicoRho(portions)
	switch {
	case o.Report == "":
		o.Delta /= mechanisms.AttoDelta(n)
	case !first:
		o.Delta, o.Selection, o.SelectsOnly = 0, "", false // of counts
	}
	o.Report = ""
	return o
}

func sum(portions []int) (n int) {
	for _, portion := range portions {
		n += portion
	}
	return n
}

// oneSeed gives the blocks of a report the seed of the first block that has one: each unit keeps the same groups in all of them. The seed
// depends on no data, and each block holds its bounds for every seed.
func (p *Plan) oneSeed(d *Draws) *Draws {
	seed := int64(0)
	for _, block := range d.blocks {
		if seed == 0 {
			seed = block.seed
		}
		if p.Query.Reports {
			block.seed = seed
		}
	}
	return d
}
