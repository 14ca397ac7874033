package plan

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Report is what a request buys beside its answer, of what the bounds leave out.
type Report string

// ReportKept is the part of the rows that the bounds keep, over all groups: the ratio of two noisy counts ([algebra.KeptRows],
// [algebra.AllRows]), each a release of its own at the price of one of the answer's.
const ReportKept Report = "kept"

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
	case q.Copied() != nil:
		return nil, fault.NotOfCopy(q.At, q.Copied().Of.String(), "report counts rows beyond the bounds, and a copy has none",
			"leave out report")
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

// division is how the price of a query is divided over its blocks.
type division struct {
	blocks *algebra.BoundQuery // whose blocks they are
	of     int                 // all portions together, those of equal releases once
	keyed  int                 // releases with private keys: δ is divided among these
}

// divisionOf is that of a query whose blocks all release something else.
func divisionOf(q *algebra.BoundQuery) division {
	same := make([]int, len(q.Blocks))
	for i := range same {
		same[i] = i
	}
	return division{blocks: q}.among(same)
}

// among is the division over different releases: same says of each block which one releases the same, itself or one before it.
func (d division) among(same []int) division {
	d.of, d.keyed = 0, 0
	for i, first := range same {
		if first == i {
			d.of += d.portions(i)
			d.keyed += algebra.BoolIndex(d.blocks.Blocks[i].Private())
		}
	}
	return d
}

// portions are how many portions of the price a block gets: one; or, where some blocks count what is left out, the first block as many as
// it has releases.
func (d division) portions(block int) int {
	q := d.blocks.Blocks[block]
	if d.blocks.Reports && block == 0 {
		return len(q.Statistics) + algebra.BoolIndex(q.Private())
	}
	return 1
}

// portion are the options of a block: its portions of the price, each rounded down, and where it has private keys its part of δ. Others
// need none; what they are given is part of fingerprints of earlier versions, and of nothing else. What the first block releases is the
// same whether or not something is reported beside it.
func (o Options) portion(d division, block int) Options {
	o.Epsilon = o.Epsilon / mechanisms.PicoEpsilon(d.of) * mechanisms.PicoEpsilon(d.portions(block))
	o.Rho = o.Rho / mechanisms.PicoRho(d.of) * mechanisms.PicoRho(d.portions(block))
	switch evenly := o.Delta / mechanisms.AttoDelta(d.of); {
	case o.Report != "" && block > 0:
		o.Delta, o.Selection, o.SelectsOnly = 0, "", false // of counts
	case o.Report != "":
	case d.keyed < d.of && d.blocks.Blocks[block].Private():
		o.Delta, o.evenDelta = o.Delta/mechanisms.AttoDelta(d.keyed), evenly
	default:
		o.Delta = evenly
	}
	o.Report = ""
	return o
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
