package answer

import (
	"math/big"
	"slices"
	"sort"
	"strconv"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Foretold says how much a row of an answer has to hold to be useful, and how many rows can. It depends on text, policy and other public
// facts alone.
type Foretold struct {
	Output   string // of several, the one for which a useful row needs most
	Needs    string // its least value in a useful row, in its unit, rounded up to three digits; or what Counts says
	Counts   string // "rows" or "people" where Needs is about how many the output is computed from in a useful row; else ""
	Of       int64  // rows of the answer, at most; 0: the data decide
	Possible *int64 // rows that can be useful, if people add to no other rows; nil: not known, as Of or the number of people
}

// Foretell predicts which rows of an answer can be useful. People is about how many people there are; 0: not known. It returns nil where
// the plan has several release blocks, where rows of the answer are not released rows, and where no output is a released count or sum as it
// is, a mean, a share or a spread.
func Foretell(p *plan.Plan, people int64) (told *Foretold) {
	if p.Several != nil || !p.NeedsData() || !p.Query.KeepsRows() {
		return nil
	}
	likely, least := new(big.Rat), new(big.Rat) // people that a useful row has, if they add to no other row
	for i, f := range p.Outputs {
		n := needOf(p, i)
		if n == nil {
			continue
		}
		r := p.Releases[n.release]
		l1, _ := p.Home(r).Bounding.Norms(r.Statistic)
		each := scalar.InUnits(l1, r.Unit)
		if people := new(big.Rat).Quo(n.likely, each); people.Cmp(likely) > 0 {
			needs := strconv.FormatFloat(RoundUp(FloatOf(n.likely)), 'f', -1, 64)
			likely, told = people, &Foretold{Output: f.Column.Name, Needs: needs, Counts: n.counts}
		}
		if people := new(big.Rat).Quo(n.least, each); people.Cmp(least) > 0 {
			least = people
		}
	}
	if told == nil || p.Query.Private() {
		return told
	}
	told.Of = scalar.ClampInt64(p.Query.PublicTuples())
	if limit := limitOf(p.Query); limit != nil {
		told.Of = min(told.Of, *limit)
	}
	if people > 0 {
		possible := scalar.ClampInt64(scalar.Floor(new(big.Rat).Quo(new(big.Rat).SetInt64(people), least)))
		told.Possible = new(min(told.Of, possible))
	}
	return told
}

// noiseOf returns the half-width by which values of an aggregate are judged; nil: not known before there is data.
func noiseOf(p *plan.Plan, output int) *big.Rat {
	half, e := p.Outputs[output].Column.HalfWidth, p.Query.Outputs[output].Expr
	if by, among := firstBy(p, 0); by != nil && half != nil && reads(p, e, by) {
		if w := reach(p, e, together(p, among)); w != nil && w.Cmp(half) > 0 {
			return w
		}
	}
	return half
}

// need is the value of a release in a row in which an output is useful: for likely values of the output, and at least.
type need struct {
	release       int
	counts        string
	likely, least *big.Rat
}

// needOf returns what an output needs to be useful; nil: that is not known before there is data, or it needs nothing.
func needOf(p *plan.Plan, output int) *need {
	if p.Outputs[output].Column.Kind == plan.AggregateColumn {
		half := noiseOf(p, output)
		if half == nil || half.Sign() == 0 {
			return nil
		}
		needs := new(big.Rat).Mul(half, big.NewRat(usefulPart, 1))
		ref := p.Query.Outputs[output].Expr.(algebra.EstimatorRef)
		return &need{release: p.Query.Estimators[ref.Index].Of[0], likely: needs, least: needs}
	}
	divisor, ok := divisorOf(p, output)
	if !ok {
		return nil
	}
	likely, least := leastRows(p, output, divisor)
	if likely <= 4 {
		return nil
	}
	n, unit := &need{release: divisor, counts: "rows"}, p.Releases[divisor].Unit
	if p.Releases[divisor].Statistic.Kind == algebra.CountUnits {
		n.counts = "people"
	}
	n.likely, n.least = scalar.InUnits(big.NewInt(likely), unit), scalar.InUnits(big.NewInt(least), unit)
	return n
}

// divisorOf returns the release that counts the rows that an output is computed from; ok is false for other outputs than means, shares and
// spreads.
func divisorOf(p *plan.Plan, output int) (release int, ok bool) {
	if f := p.Outputs[output].Ratio; f != nil {
		return dividesByRows(p, f.Of)
	}
	leaves := bind.LeavesOf(p.Query.Outputs[output].Expr)
	if len(leaves) != 1 {
		return 0, false
	}
	ref, ok := leaves[0].(algebra.EstimatorRef)
	if !ok {
		return 0, false
	}
	switch v := p.Query.Estimators[ref.Index]; v.How {
	case algebra.VariancePop, algebra.VarianceSamp, algebra.DeviationPop, algebra.DeviationSamp:
		return v.Of[0], true
	default:
		return 0, false
	}
}

// dividesByRows returns the divisor of a fraction that is one statistic of rows, besides their number, over the number of these rows.
func dividesByRows(p *plan.Plan, f plan.Fraction) (divisor int, ok bool) {
	if len(f.Under.Terms) != 1 || f.Under.Constant.Sign() != 0 {
		return 0, false
	}
	divisor = f.Under.Terms[0].Release
	parts := slices.DeleteFunc(slices.Clone(f.Over.Terms), func(t plan.Weighted) bool { return t.Release == divisor })
	if len(parts) != 1 {
		return 0, false
	}
	all := p.Releases[divisor].Statistic
	return divisor, f.Within != nil || all.Filter == nil && addsUpRows(p.Releases[parts[0].Release].Statistic, all)
}

// invented is a group in which so many of four rows have the largest value that the policy allows, and the others the least.
type invented int64

// row is the group with 4n rows as it would be released without noise; divisor counts them.
func (g invented) row(p *plan.Plan, divisor int, n int64) (row plan.ReleasedRow) {
	high, low := big.NewInt(n*int64(g)), big.NewInt(n*int64(4-g))
	for i, r := range p.Releases {
		v, m := high, r.Statistic // a count of some of the rows
		switch {
		case i == divisor:
			v = big.NewInt(4 * n)
		case m.Grid != nil && !m.Chooses():
			v = new(big.Int).Mul(high, added(m, m.Grid.Hi))
			v.Add(v, new(big.Int).Mul(low, added(m, m.Grid.Lo)))
		}
		row.Noisy = append(row.Noisy, v)
	}
	return row
}

// added returns what a row adds to a sum, if its value is so many steps.
func added(m algebra.Statistic, steps *big.Int) *big.Int {
	if m.Kind == algebra.SumSteps {
		return steps
	}
	v := new(big.Int).Sub(steps, m.Grid.Centre())
	if m.Kind == algebra.SumProducts {
		v.Sub(v.Mul(v, v), m.Middle())
	}
	return v
}

// leastRows returns how many rows the smallest invented group has in which an output is useful, in steps of four; 0: none is. In likely
// groups a quarter of the rows is at one end of the bounds, and the rest at the other. The groups that need the fewest rows are all at one
// end, where bounds also cut intervals, or, for a spread, half at each.
func leastRows(p *plan.Plan, output, divisor int) (likely, least int64) {
	f, e := p.Outputs[output], p.Query.Outputs[output].Expr
	if _, known := Level(p, 0); !known || !shownWithIntervals(p, output) {
		return 0, 0
	}
	box, exact, points := NewBox(p), NewBox(p), pointsOf(p, f)
	exact.exact = true
	if by, among := firstBy(p, 0); by != nil && reads(p, e, by) {
		box.sure = max(box.sure, together(p, among))
	}
	useful := func(groups []invented, n int64) bool {
		return slices.ContainsFunc(groups, func(g invented) bool {
			row := g.row(p, divisor, n)
			value := exact.Eval(e, 1, row)
			if value == nil {
				return false
			}
			box.rows = []plan.ReleasedRow{row}
			span := box.interval(e, f, &place{row: 1}, f.Column.Type)
			return Cell{strconv.FormatFloat(FloatOf(value.Lo), 'g', -1, 64), span, points}.useful()
		})
	}
	from := func(groups []invented) int64 {
		enough := int64(1)
		for ; !useful(groups, enough); enough *= 2 {
			if enough > mostRows {
				return 0
			}
		}
		few := enough / 2
		return 4 * (few + int64(sort.Search(int(enough-few), func(i int) bool { return useful(groups, few+int64(i)) })))
	}
	if likely = from([]invented{1, 3}); likely == 0 {
		return 0, 0
	}
	return likely, from([]invented{0, 1, 2, 3, 4})
}

// mostRows is where the search for a useful group ends, in fours.
const mostRows = 1 << 50

// limitOf returns how many rows a query shows at most; nil: all.
func limitOf(q *algebra.BoundQuery) *int64 {
	if q.Post != nil {
		return q.Post.Limit
	}
	return q.Limit
}
