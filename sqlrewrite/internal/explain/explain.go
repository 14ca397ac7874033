package explain

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Explanation is what an estimate shows.
type Explanation struct {
	Tree    string // the plan as text, one operator a line; the golden text
	Outputs []OutputEstimate
	Notes   []algebra.Note
}

// OutputEstimate is the price and the expected error of one release.
type OutputEstimate struct {
	Name       string   // the release, as the analyst could have written it
	Columns    []string // of the answer, that are computed from it; nil where the answer is computed from other rows than released ones
	Parameters mechanisms.Parameters
	Selection  mechanisms.Name // of selections: the selector
	// the factors of the sensitivity, and where each comes from ("people.age in [17, 90] by 1, policy line 9; max_rows 5, request")
	Bound       string
	Sensitivity string // in the output's unit
	HalfWidth   *big.Rat
	RankError   *big.Rat // of selections: how far off at the requested confidence, in rows; nil for noise
	Loss        mechanisms.Loss
	Weight      *big.Rat // by which the price was split; nil for private keys, and without weights
	// Of what decides which private keys are shown: numbers of units at which a group is shown with probability 50, 95 and 99 %.
	ShownAt []ShownAt
}

// ShownAt says from how many units on a private group is shown with at least Probability.
type ShownAt struct {
	Probability float64
	Units       int64
}

// Explain describes the plan without touching a row.
func Explain(p *plan.Plan) Explanation {
	if p.Several != nil {
		return explainSeveral(p)
	}
	return Explanation{Tree: tree(p), Notes: slices.Concat(answer.Notes(p), promises(p), alternative(p)), Outputs: estimates(p)}
}

// estimates are the prices and expected errors of a block's releases.
func estimates(p *plan.Plan) (all []OutputEstimate) {
	if p.PartitionSelection != nil {
		m := p.PartitionSelection.Mechanism
		o := OutputEstimate{Name: "group keys", Parameters: m.Parameters(), Bound: groupsBound(p) + "; " + unitBound(p),
			Sensitivity: fmt.Sprint(p.Bounding.MaxGroups), Loss: m.Loss(), ShownAt: shownAt(m)}
		all = append(all, o)
	}
	for i, r := range p.Releases {
		o := OutputEstimate{
			Name:        sqlprint.ShownStatistic(r.Statistic),
			Columns:     columnsOf(p.Query, i),
			Parameters:  r.Law().Parameters(),
			Bound:       bound(p, r),
			Sensitivity: answer.Sensitivity(p, r),
			HalfWidth:   answer.HalfWidth(p, r, 0),
			RankError:   answer.RankError(p, r),
			Loss:        r.Law().Loss(),
		}
		if r.Selection != nil {
			o.Selection = r.Selection.By
		}
		if r.Shown != nil {
			o.ShownAt = shownAt(r.Shown)
		}
		if p.Weights != nil {
			o.Weight = p.Weights[i]
		}
		all = append(all, o)
	}
	return all
}

// columnsOf are the names of a block's own columns that are computed from a release.
func columnsOf(q *algebra.BoundQuery, release int) (names []string) {
	if q.Post != nil {
		return nil
	}
	reads := func(e algebra.Expr) bool {
		ref, ok := e.(algebra.EstimatorRef)
		return ok && slices.Contains(q.Estimators[ref.Index].Of, release)
	}
	for _, o := range q.Outputs {
		if algebra.Has(o.Expr, reads) {
			names = append(names, o.Name)
		}
	}
	return names
}

// explainSeveral describes each release, and what is computed from all of them.
func explainSeveral(p *plan.Plan) Explanation {
	q := p.Query
	var names []string
	for _, o := range q.Outputs {
		names = append(names, fmt.Sprintf("%s = %s", o.Name, sqlprint.DescribeWith(o.Expr, q)))
	}
	lines := append([]string{"answer: " + strings.Join(names, ", ")}, scalar.Indented(sqlprint.PostLines(q.Post, q))...)
	e := Explanation{Notes: slices.Concat(answer.Buying(p), answer.Notes(p), promises(p), reported(p))}
	for i, block := range p.Several.Plans {
		if first := p.Several.Same(i); first != i {
			lines = append(lines, fmt.Sprintf("release %d: the same as release %d", i+1, first+1))
			continue
		}
		lines = append(lines, fmt.Sprintf("release %d:", i+1))
		lines = append(lines, scalar.Indented(strings.Split(strings.TrimSuffix(tree(block), "\n"), "\n"))...)
		e.Outputs = append(e.Outputs, estimates(block)...)
	}
	e.Tree = strings.Join(lines, "\n") + "\n"
	return e
}

// reported says what of a plan's price is for what is reported beside the answer.
func reported(p *plan.Plan) []algebra.Note {
	if !p.Query.Reports {
		return nil
	}
	var price mechanisms.Loss
	for i, block := range p.Several.Plans {
		if block.Query.Part != algebra.NoPart && p.Several.Same(i) == i {
			price = price.Plus(block.Loss())
		}
	}
	text := fmt.Sprintf("epsilon %s of %s", price.Epsilon, p.Loss().Epsilon)
	if price.Unbounded {
		text = fmt.Sprintf("rho %s of %s", price.Rho, p.Loss().Rho)
	}
	return []algebra.Note{{Code: "report-price", Text: "the part of the rows that is in these figures costs " + text}}
}

// shownAt says how many units a group needs. A count of rows is at least that of its units.
func shownAt(m interface{ ShownAt(float64) int64 }) []ShownAt {
	var all []ShownAt
	for _, probability := range []float64{0.5, 0.95, 0.99} {
		all = append(all, ShownAt{Probability: probability, Units: m.ShownAt(probability)})
	}
	return all
}

// tree is the plan as text, from the answer down to the scan.
func tree(p *plan.Plan) string {
	q := p.Query
	var lines []string
	depth := 0
	add := func(format string, args ...any) {
		lines = append(lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
	}
	var names []string
	for _, o := range q.Outputs {
		names = append(names, fmt.Sprintf("%s = %s", o.Name, sqlprint.DescribeWith(o.Expr, q)))
	}
	add("answer: %s", strings.Join(names, ", "))
	depth++
	if q.Post != nil {
		lines = append(lines, scalar.Indented(sqlprint.PostLines(q.Post, q))...)
	}
	if q.Limit != nil {
		add("limit %d", *q.Limit)
	}
	if q.Offset > 0 {
		add("offset %d", q.Offset)
	}
	if len(q.OrderBy) > 0 {
		add("order by %s", sqlprint.OrderText(q.OrderBy, q))
	}
	if q.Having != nil {
		add("having %s", sqlprint.DescribeWith(q.Having, q))
	}
	if len(q.Keys) > 0 {
		add("groups: %s", strings.Join(keyTexts(p), ", "))
	}
	if !p.NeedsData() {
		depth++
		add("no data: the domain is public")
		return strings.Join(lines, "\n") + "\n"
	}
	if p.PartitionSelection != nil {
		parameters := p.PartitionSelection.Mechanism.Parameters()
		price := "epsilon " + parameters.Epsilon
		if variance, ok := new(big.Rat).SetString(parameters.Variance); ok {
			price = fmt.Sprintf("variance %s threshold %d", answer.ShortDecimal(variance), parameters.Count)
		}
		add("select groups: %s %s delta %s, L0 %s", parameters.Mechanism, price, parameters.Delta, parameters.Sensitivity)
	}
	for _, r := range p.Releases {
		if r.Shown != nil {
			add("select groups: by %s above %d, delta %s", r.Statistic.Name, r.Shown.Threshold(), r.Shown.Parameters().Delta)
		}
	}
	for _, r := range p.Releases {
		add("release %s: %s, sensitivity %s, %s", r.Statistic.Name, r.Law().Name(), answer.Sensitivity(p, r), noiseText(r))
	}
	depth++
	add("%s", boundingText(p))
	depth++
	if q.Where != nil {
		add("where %s", sqlprint.Describe(q.Where))
	}
	for _, line := range sqlprint.RelationLines(q.Source) {
		add("%s", line)
	}
	return strings.Join(lines, "\n") + "\n"
}

func noiseText(r plan.Release) string {
	if r.Selection != nil && r.Selection.By != r.Selection.Name() {
		return "by " + string(r.Selection.By) + ", scale " + answer.ScaleText(r)
	}
	if r.Law().Name().Gaussian() {
		return "variance " + answer.ScaleText(r)
	}
	return "scale " + answer.ScaleText(r)
}

func keyTexts(p *plan.Plan) []string {
	var texts []string
	for _, k := range p.Query.Keys {
		switch {
		case k.Private():
			texts = append(texts, k.Name+" (private)")
		case len(k.Domain) < k.Declared:
			texts = append(texts, fmt.Sprintf("%s (public, %d of %d keys)", k.Name, len(k.Domain), k.Declared))
		default:
			texts = append(texts, fmt.Sprintf("%s (public, %d keys)", k.Name, len(k.Domain)))
		}
	}
	return texts
}

func boundingText(p *plan.Plan) string {
	unit := p.Query.Source.UnitName()
	switch p.Bounding.Kind {
	case stability.Flat:
		if p.Bounding.MostRank > 0 {
			return "bound: " + flatBound(p)
		}
		if _, one := p.Query.Source.OnePerUnit(); !one {
			return "bound: " + flatBound(p)
		}
		return "bound: each row is one " + unit
	case stability.PerUnit:
		return fmt.Sprintf("bound: per %s, at most %d rows", unit, p.Bounding.MaxRows) + p.Bounding.Partitioning.Text(unit)
	case stability.PerUnitAndKey:
		return fmt.Sprintf("bound: per %s and group, at most %d rows, in all %d groups%s", unit, p.Bounding.MaxRows, p.Bounding.MaxGroups,
			totalText(p)) + p.Bounding.Partitioning.Text(unit)
	default:
		together := ""
		if p.Bounding.Together {
			together = ", all groups together"
		}
		return fmt.Sprintf("bound: per %s, at most %d rows in each of %d groups kept by keyed hash%s%s", unit, p.Bounding.MaxRows,
			p.Bounding.MaxGroups, totalText(p), together)
	}
}

func totalText(p *plan.Plan) string {
	if p.Bounding.MaxTotal == 0 {
		return ""
	}
	return fmt.Sprintf(", %d rows in all", p.Bounding.MaxTotal)
}

// alternative is the other kind of noise at the same charge. On accounts that add up ρ both kinds cost ρ alone, so that they can be
// compared; auto takes the one with the smaller error, release by release.
func alternative(p *plan.Plan) []algebra.Note {
	if p.Options.Currency != catalog.ZCDP || len(p.Releases) == 0 || slices.ContainsFunc(p.Releases,
		func(r plan.Release) bool { return r.Selection != nil }) {
		return nil
	}
	o := p.Options
	o.Epsilon, o.Rho, o.Mechanism = 0, p.Loss().Rho, plan.MechanismGaussian
	if p.Releases[0].Law().Name().Gaussian() {
		o.Mechanism = plan.MechanismLaplace
	}
	other, err := p.Repriced(o)
	if err != nil {
		return nil // too small a price for it
	}
	now, then := answer.HalfWidth(p, p.Releases[0], 0), answer.HalfWidth(other, other.Releases[0], 0)
	if now == nil || then == nil {
		return nil
	}
	return []algebra.Note{{Code: "alternative", Text: fmt.Sprintf("%s: ± %s with %s noise; with %s noise at the same charge (rho %s) ± %s",
		sqlprint.ShownStatistic(p.Releases[0].Statistic), answer.ShortDecimal(now), kindOfNoise(p.Releases[0]), kindOfNoise(other.Releases[0]),
		o.Rho, answer.ShortDecimal(then))}}
}

func kindOfNoise(r plan.Release) string {
	if r.Law().Name().Gaussian() {
		return "gaussian"
	}
	return "laplace"
}

// promises say how wide the intervals of means will be: that depends on how many rows there are, and on nothing else of the data.
func promises(p *plan.Plan) []algebra.Note {
	var notes []algebra.Note
	for _, f := range p.Outputs {
		if f.Ratio == nil || f.Column.HalfWidth != nil || f.Ratio.Of.Within == nil || f.Ratio.Of.Over.IsConstant() ||
			f.Ratio.Of.Under.IsConstant() {
			continue
		}
		level, known := answer.Level(p, 0)
		if !known {
			continue
		}
		m := answer.NewFieller(p, f.Ratio.Of, level)
		if !m.Resolves() {
			continue
		}
		lowest, _ := m.Edges(m.CellOf(answer.FloatOf(f.Ratio.Of.Within.Lo)))
		_, highest := m.Edges(m.CellOf(answer.FloatOf(f.Ratio.Of.Within.Hi)))
		most := m.Most(lowest, highest)
		at := func(rows int64) string {
			w := answer.SpreadOf(f.Ratio.Context, new(big.Rat).SetFloat64(most/float64(rows)))
			if w == nil {
				return ""
			}
			v, _ := new(big.Float).SetRat(w).Float64()
			return fmt.Sprintf("± %s for %d", strconv.FormatFloat(answer.RoundUp(v), 'f', -1, 64), rows)
		}
		if at(1) != "" {
			notes = append(notes, algebra.Note{Code: "interval-by-rows", Text: fmt.Sprintf(
				"%s: the more rows there are, the narrower the interval: at most %s rows (as the noisy count has them), "+
					"%s, %s", f.Column.Name, at(100), at(1000), at(10_000))})
		}
	}
	return notes
}
