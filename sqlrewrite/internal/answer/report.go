package answer

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Report is what was bought beside an answer, of what its bounds leave out.
type Report struct {
	Kind  plan.Report
	Share *big.Rat    // the part of the rows that count, in [0, 1]; nil: the noise hides it
	Span  scalar.Span // its interval, at the level of the answer's
	Cap   int64       // so many rows of one unit are looked at; 0: all
}

// reportOf is the report of an answer and the note that says it; nil where none was asked for. Nothing is bought where each row counts.
func reportOf(r *plan.Released) (*Report, []algebra.Note, error) {
	p := r.Plan
	switch {
	case p.Several == nil && p.Options.Report == "", p.Several != nil && !p.Query.Reports:
		return nil, nil, nil
	case p.Several == nil && capsRows(p):
		return nil, nil, nil
	case p.Several == nil:
		return &Report{Kind: p.Options.Report, Share: scalar.One(), Span: scalar.Span{Lo: scalar.One(), Hi: scalar.One()}}, nil, nil
	}
	row, err := r.Joined([]int{0, 1, 1})
	if err != nil {
		return nil, nil, err
	}
	report := &Report{Kind: p.Options.Report, Cap: p.Several.Plans[2].Bounding.MaxRows}
	f := plan.Fraction{Over: countOf(p, 1), Under: countOf(p, 2), Within: &scalar.Span{Lo: new(big.Rat), Hi: scalar.One()}}
	kept, all := f.Over.At(row.Noisy), f.Under.At(row.Noisy)
	report.Span = *NewBox(p, row).fraction(f, "report", new(big.Rat).Set(kept), new(big.Rat).Set(all), 1)
	if all.Sign() > 0 {
		share := kept.Quo(kept, all)
		report.Share = plan.ClampSpan(scalar.Point(share), f.Within).Lo
	}
	return report, []algebra.Note{{Code: "kept", Text: keptText(p, report)}}, nil
}

// countOf is the noisy count of a block of a report.
func countOf(p *plan.Plan, block int) plan.Linear {
	_, estimators := algebra.Offsets(p.Query.Blocks, block)
	cell := plan.Cells{Release: p.Query.Estimators[estimators].Of[0]}
	return plan.Linear{Terms: []plan.Weighted{{Cells: cell, Weight: scalar.One()}}, Constant: new(big.Rat)}
}

// keptText says which part of the rows is in the figures.
func keptText(p *plan.Plan, r *Report) string {
	if r.Share == nil || r.Span.Lo.Sign() == 0 && r.Span.Hi.Cmp(scalar.One()) == 0 {
		return "which part of the rows is " + whereKept(p) + " cannot be told: there are too few of them for this noise"
	}
	return fmt.Sprintf("about %s %% of rows are %s [%s, %s]; of one %s at most %d rows are looked at for that (kept_cap)",
		percents(r.Share, 0), whereKept(p), percents(r.Span.Lo, -1), percents(r.Span.Hi, 1), p.Query.Source.UnitName(), r.Cap)
}

// whereKept says of rows that count what they are: of counts they are what is counted, while each row has a part in other values.
func whereKept(p *plan.Plan) string {
	for _, m := range p.Query.Blocks[0].Statistics {
		if m.Kind != algebra.CountRows && m.Kind != algebra.CountValues {
			return "within the bounds of these figures"
		}
	}
	return "in these figures"
}

// percents is a share in percent with one digit after the point at most, rounded down, up, or to the nearest where direction is 0.
func percents(share *big.Rat, direction int) string {
	tenths := new(big.Rat).Mul(share, big.NewRat(1000, 1))
	n := scalar.Floor(tenths)
	switch {
	case direction > 0:
		n = scalar.Ceil(tenths)
	case direction == 0:
		n = scalar.Floor(tenths.Add(tenths, big.NewRat(1, 2)))
	}
	return strings.TrimSuffix(new(big.Rat).SetFrac(n, big.NewInt(10)).FloatString(1), ".0")
}

// reportNotes say before there is an answer what a report is of.
func reportNotes(p *plan.Plan, add func(code, format string, args ...any)) {
	unit := p.Query.Source.UnitName()
	switch {
	case p.Options.Report == "":
	case p.Several == nil && capsRows(p):
		add("report", "no part of the rows is reported: the groups keep all rows, and what is left out where tables are joined is not counted")
	case p.Several == nil && p.Bounding.Kind == stability.Flat:
		add("report", "all rows are in these figures: a %s has at most one in a group. Nothing is bought for that", unit)
	default:
		add("report", "beside the answer two counts over all groups are bought, of rows that count and of all rows, at most %d of one %s "+
			"(kept_cap): their ratio is the part of the rows that is %s", p.Several.Plans[2].Bounding.MaxRows, unit, whereKept(p))
	}
}

// Texts are the numbers of a report as decimal texts: the share, empty where it is not known, and the ends of its interval.
func (r *Report) Texts() (share, lo, hi string) {
	if r.Share != nil {
		share = Outward(r.Share, -1)
	}
	return share, Outward(r.Span.Lo, -1), Outward(r.Span.Hi, 1)
}
