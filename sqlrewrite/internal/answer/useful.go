package answer

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// A row of an answer is useful if each of its values is: if the half-width of the value's interval is at most a quarter of the value; of a
// share, at most five points. Where an answer shows the first of many groups by a noisy number, the intervals of that number are those that
// hold for all groups together. Answers count their useful rows by this definition, and estimates derive from it how much a row has to
// hold.

// A useful value is at least usefulPart half-widths; the half-width of a useful share is at most usefulPoints, as a part of the whole.
const (
	usefulPart   = 4
	usefulPoints = 0.05
)

// Cell is a value of an answer, with what decides whether it is useful.
type Cell struct {
	Value  string
	Span   *Interval // nil: none, so that any value is possible
	Points float64   // of a share: the largest half-width of a useful one, in its unit; 0: no share
}

func (c Cell) useful() bool {
	if c.Span == nil {
		return false
	}
	value, err1 := strconv.ParseFloat(c.Value, 64)
	lo, err2 := strconv.ParseFloat(c.Span.Lo, 64)
	hi, err3 := strconv.ParseFloat(c.Span.Hi, 64)
	half := (hi - lo) / 2
	switch {
	case err1 != nil || err2 != nil || err3 != nil:
		return false
	case c.Points > 0:
		return half <= c.Points
	default:
		return usefulPart*half <= math.Abs(value)
	}
}

// Useful counts the useful rows of an answer: Rows of Of.
type Useful struct{ Rows, Of int }

// Add judges a row by its values that are not NULL. A row without such values is not useful.
func (u *Useful) Add(cells []Cell) {
	u.Of++
	if len(cells) > 0 && !slices.ContainsFunc(cells, func(c Cell) bool { return !c.useful() }) {
		u.Rows++
	}
}

// judge counts the useful rows while an answer is assembled.
type judge struct {
	useful Useful
	points []float64 // by output, see [Cell.Points]; negative: not judged
	first  []bool    // by output: it reads a release by which the first rows are chosen
	box    *Box      // intervals that hold for all groups together
	cells  []Cell
}

// newJudge judges an answer over these released rows. groups counts the released groups, also those that the answer does not show.
func newJudge(p *plan.Plan, forms []plan.OutputForm, groups int, rows []plan.ReleasedRow) *judge {
	j := &judge{points: make([]float64, len(forms)), first: make([]bool, len(forms))}
	by, among := firstBy(p, groups)
	for i, f := range forms {
		if j.points[i] = -1; f.Column.Kind != plan.KeyColumn && f.Releases > 0 && shownWithIntervals(p, i) {
			j.points[i] = pointsOf(p, f)
		}
		j.first[i] = by != nil && reads(p, p.Query.Outputs[i].Expr, by)
	}
	if by != nil {
		j.box = NewBox(p, rows...)
		j.box.sure = max(j.box.sure, together(p, among))
	}
	return j
}

// reads reports whether two expressions read a common release.
func reads(p *plan.Plan, e, other algebra.Expr) bool {
	read := bind.ReleasesOf(p.Query, other)
	for release := range bind.ReleasesOf(p.Query, e) {
		if read[release] {
			return true
		}
	}
	return false
}

// value notes a value of the current row that is not NULL, with its interval; in computes the interval from another box.
func (j *judge) value(output int, value string, span *Interval, in func(*Box) *Interval) {
	if j.points[output] < 0 {
		return
	}
	if span != nil && j.first[output] {
		span = in(j.box)
	}
	j.cells = append(j.cells, Cell{value, span, j.points[output]})
}

// row judges the current row, and begins the next.
func (j *judge) row() {
	j.useful.Add(j.cells)
	j.cells = j.cells[:0]
}

// result returns the counts; nil: the answer has no rows, or no output that is judged.
func (j *judge) result() *Useful {
	if j.useful.Of == 0 || !slices.ContainsFunc(j.points, func(points float64) bool { return points >= 0 }) {
		return nil
	}
	return &j.useful
}

// pointsOf returns the largest half-width of a useful share, in the unit of the output; 0: the output is no share.
func pointsOf(p *plan.Plan, f plan.OutputForm) float64 {
	if f.Ratio == nil {
		return 0
	}
	whole := wholeOf(p, f.Ratio.Of)
	if whole == nil {
		return 0
	}
	return FloatOf(SpreadOf(f.Ratio.Context, whole.Mul(whole, new(big.Rat).SetFloat64(usefulPoints))))
}

// wholeOf returns the value of a fraction at 100 %, if it is a share of rows or of units, or a mean of zeros and ones; nil for others.
func wholeOf(p *plan.Plan, f plan.Fraction) *big.Rat {
	statistic := func(t plan.Weighted) algebra.Statistic { return p.Releases[t.Release].Statistic }
	if len(f.Under.Terms) != 1 || f.Under.Constant.Sign() != 0 {
		return nil
	}
	under := f.Under.Terms[0]
	all := statistic(under)
	if f.Within != nil { // a mean
		if slices.ContainsFunc(f.Over.Terms, func(t plan.Weighted) bool { return statistic(t).Grid != nil && !zeroOrOne(statistic(t).Grid) }) {
			return nil
		}
		return new(big.Rat).Sub(f.Within.Hi, f.Within.Lo)
	}
	if len(f.Over.Terms) != 1 || f.Over.Constant.Sign() != 0 || all.Filter != nil {
		return nil
	}
	part := statistic(f.Over.Terms[0])
	if !addsUpRows(part, all) || part.Kind == algebra.SumSteps && !zeroOrOne(part.Grid) {
		return nil
	}
	whole := new(big.Rat).Quo(f.Over.Terms[0].Weight, under.Weight)
	return whole.Abs(whole)
}

// addsUpRows reports whether a statistic adds up some or all of the rows, or people, that another statistic counts.
func addsUpRows(part, all algebra.Statistic) bool {
	return part.Kind == all.Kind && (all.Kind == algebra.CountRows || all.Kind == algebra.CountUnits) ||
		all.Kind == algebra.CountRows && (part.Kind == algebra.CountValues || part.Kind == algebra.SumSteps)
}

func zeroOrOne(g *algebra.Grid) bool {
	return g.Lo.Sign() == 0 && g.Hi.Cmp(big.NewInt(1)) == 0 && g.Step.Cmp(scalar.One()) == 0
}
