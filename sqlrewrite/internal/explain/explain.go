package sqlrewrite

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"noisegate/catalog"
	"noisegate/mechanisms"
)

// Explanation is what an estimate shows.
type Explanation struct {
	Tree    string // the plan as text, one operator a line; the golden text
	Outputs []OutputEstimate
	Notes   []Note
}

// OutputEstimate is the price and the expected error of one release.
type OutputEstimate struct {
	Name        string // the release, as the analyst could have written it
	Parameters  mechanisms.Parameters
	Bound       string // the factors of the sensitivity, and where each comes from ("people.age in [17, 90] by 1, policy line 9; max_rows 5, request")
	Sensitivity string // in the output's unit
	HalfWidth   *big.Rat
	RankError   *big.Rat // of selections: how far off at the requested confidence, in rows; nil for noise
	Loss        mechanisms.Loss
	Weight      *big.Rat // by which the price was split; nil for private keys, and without weights
	// Private keys only: numbers of units at which a group is shown with probability 50, 95 and 99 %.
	ShownAt []ShownAt
}

// ShownAt says from how many units on a private group is shown with at least Probability.
type ShownAt struct {
	Probability float64
	Units       int64
}

// explain describes the plan without touching a row.
func (p *pricedPlan) explain() Explanation {
	e := Explanation{Tree: p.tree(), Notes: append(p.notes(), p.promises()...)}
	if p.selection != nil {
		m := p.selection.mechanism
		o := OutputEstimate{Name: "group keys", Parameters: m.Parameters(), Bound: p.groupsBound() + "; " + p.unitBound(),
			Sensitivity: fmt.Sprint(p.shape.maxGroups), Loss: m.Loss()}
		for _, probability := range []float64{0.5, 0.95, 0.99} {
			o.ShownAt = append(o.ShownAt, ShownAt{Probability: probability, Units: m.ShownAt(probability)})
		}
		e.Outputs = append(e.Outputs, o)
	}
	for i, r := range p.releases {
		o := OutputEstimate{
			Name:        r.measure.shown(),
			Parameters:  r.law().Parameters(),
			Bound:       p.bound(r),
			Sensitivity: p.sensitivity(r),
			HalfWidth:   p.halfWidth(r),
			RankError:   p.rankError(r),
			Loss:        r.law().Loss(),
		}
		if p.weights != nil {
			o.Weight = p.weights[i]
		}
		e.Outputs = append(e.Outputs, o)
	}
	return e
}

// tree is the plan as text, from the answer down to the scan.
func (p *pricedPlan) tree() string {
	q := p.query
	var lines []string
	depth := 0
	add := func(format string, args ...any) {
		lines = append(lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
	}
	var names []string
	for _, o := range q.outputs {
		names = append(names, fmt.Sprintf("%s = %s", o.name, describeWith(o.expr, q)))
	}
	add("answer: %s", strings.Join(names, ", "))
	depth++
	if q.layer != nil {
		lines = append(lines, indented(q.layer.lines(q))...)
	}
	if q.limit != nil {
		add("limit %d", *q.limit)
	}
	if q.offset > 0 {
		add("offset %d", q.offset)
	}
	if len(q.orderBy) > 0 {
		add("order by %s", orderText(q.orderBy, q))
	}
	if q.having != nil {
		add("having %s", describeWith(q.having, q))
	}
	if len(q.keys) > 0 {
		add("groups: %s", strings.Join(p.keyTexts(), ", "))
	}
	if p.selection != nil {
		parameters := p.selection.mechanism.Parameters()
		price := "epsilon " + parameters.Epsilon
		if variance, ok := new(big.Rat).SetString(parameters.Variance); ok {
			price = fmt.Sprintf("variance %s threshold %d", shortDecimal(variance), parameters.Count)
		}
		add("select groups: %s %s delta %s, L0 %s", parameters.Mechanism, price, parameters.Delta, parameters.Sensitivity)
	}
	for _, r := range p.releases {
		add("release %s: %s, sensitivity %s, %s", r.measure.name, r.law().Name(), p.sensitivity(r), noiseText(r))
	}
	depth++
	if !p.NeedsData() {
		add("no data: the domain is public")
		return strings.Join(lines, "\n") + "\n"
	}
	add("%s", p.shapeText())
	depth++
	if q.where != nil {
		add("where %s", describe(q.where))
	}
	for _, line := range q.source.lines() {
		add("%s", line)
	}
	return strings.Join(lines, "\n") + "\n"
}

func noiseText(r release) string {
	if r.law().Name() == mechanisms.DiscreteGaussian {
		return "variance " + scaleText(r)
	}
	return "scale " + scaleText(r)
}

func (p *pricedPlan) keyTexts() []string {
	var texts []string
	for _, k := range p.query.keys {
		switch {
		case k.private():
			texts = append(texts, k.name+" (private)")
		case len(k.domain) < k.declared:
			texts = append(texts, fmt.Sprintf("%s (public, %d of %d keys)", k.name, len(k.domain), k.declared))
		default:
			texts = append(texts, fmt.Sprintf("%s (public, %d keys)", k.name, len(k.domain)))
		}
	}
	return texts
}

func (p *pricedPlan) shapeText() string {
	unit := p.query.source.unitName()
	switch p.shape.kind {
	case flat:
		if _, one := p.query.source.onePerUnit(); !one {
			return "bound: " + p.flatBound()
		}
		return "bound: each row is one " + unit
	case perUnit:
		return fmt.Sprintf("bound: per %s, at most %d rows", unit, p.shape.maxRows) + p.shape.cut.text(unit)
	case perUnitAndKey:
		return fmt.Sprintf("bound: per %s and group, at most %d rows, in all %d groups", unit, p.shape.maxRows, p.shape.maxGroups) + p.shape.cut.text(unit)
	default:
		return fmt.Sprintf("bound: per %s, at most %d rows in each of %d groups kept by keyed hash", unit, p.shape.maxRows, p.shape.maxGroups)
	}
}

// notes are what the numbers do not say: functions of query and policy alone.
func (p *pricedPlan) notes() []Note {
	var notes []Note
	add := func(code, format string, args ...any) {
		n := Note{Code: code, Text: fmt.Sprintf(format, args...)}
		for _, known := range notes {
			if known == n {
				return
			}
		}
		notes = append(notes, n)
	}
	if p.reused != "" {
		add("reused", "%s", p.reused)
	}
	unit := p.query.source.unitName()
	for _, r := range p.releases {
		if r.measure.kind == countDistinct && p.shape.kind != flat {
			add("bounded-values", "at most %d different values of one %s count in a group, chosen at random", p.shape.maxValues, unit)
		}
		if r.pick != nil {
			add("selected", "%s", p.selectedText(r))
		}
		g := r.measure.grid
		if g == nil {
			continue
		}
		add("clamped", "%s: values are clamped to [%s, %s]; intervals do not include this clamping", describe(g.x),
			g.label(g.lo), g.label(g.hi))
		if g.derived {
			add("derived-step", "%s: values are rounded to steps of %s, derived from the bounds", describe(g.x), g.stepLabel())
		}
	}
	if p.NeedsData() && p.shape.kind != flat {
		if !p.query.source.owner().NotNull {
			add("null-units", "rows where %s is NULL are left out", unit)
		}
		if p.bindsRows() {
			add("bounded-rows", "rows of one %s beyond %d in a group count in proportion", unit, p.shape.maxRows)
		}
		if p.shape.kind == keptKeys {
			add("bounded-groups", "each %s counts in at most %d groups, chosen at random", unit, p.shape.maxGroups)
		}
	}
	if p.NeedsData() {
		for _, n := range p.query.source.notes {
			add(n.Code, "%s", n.Text)
		}
	}
	p.keyNotes(add)
	for i, f := range p.outputs {
		if f.column.Kind == DerivedColumn && !hasInterval(p.query.outputs[i].expr) || f.column.Kind != KeyColumn && !p.query.keepsRows() {
			add("no-interval", "%s: there is no interval for this expression", f.column.Name)
		}
	}
	return notes
}

// selectedText says how far a selection may be off, which is known in rows and not in values, and what else it does not tell.
func (p *pricedPlan) selectedText(r release) string {
	name, off := r.measure.shown(), p.rankError(r)
	sure := fmt.Sprintf("with a probability of %s", percent(p.options.Confidence))
	const unknown = ". How far that is in its own unit depends on the data: there is no interval"
	const empty = ". A group without rows shows a value too"
	switch {
	case r.pick.top != nil:
		return fmt.Sprintf("%s: groups are chosen one after another, at random but the larger the likelier; %s none that is left out is more than %s ahead of one that is shown",
			name, sure, decimalOrFraction(off))
	case r.measure.kind == chooseMode:
		return fmt.Sprintf("%s: %s the most frequent value has at most %s rows more than the value shown%s", name, sure, ceil(off), empty)
	case r.measure.rank.IsInt():
		offset := rankOffset(r, r.pick.epsilon)
		offset.Abs(offset)
		side := map[bool]string{true: "smaller", false: "larger"}[r.measure.rank.Sign() == 0]
		return fmt.Sprintf("%s: the value shown is looked for %s rows in from the end, as values beyond the data would be shown too often there; %s at most %s rows have a %s one%s",
			name, ceil(offset), sure, ceil(new(big.Rat).Add(offset, off)), side, unknown+empty)
	default:
		return fmt.Sprintf("%s: %s the value shown is at most %s rows away from the exact one, counted in the order of the values%s", name, sure, ceil(off), unknown+empty)
	}
}

// shown names a measure as an analyst would have written it.
func (m measure) shown() string {
	name := ""
	if m.kind == chooseRank {
		name = map[string]string{"0": "min", "1/2": "median", "1": "max"}[m.rank.RatString()]
	}
	if name == "" {
		return m.name
	}
	return name + "(" + describe(m.x) + ")" + filterText(m.filter)
}

// rankError is how far a selection may be off at the requested confidence, in rows, or of a selection of groups in the unit of what they
// are ordered by.
func (p *pricedPlan) rankError(r release) *big.Rat {
	level := p.options.Confidence
	switch {
	case r.pick == nil:
		return nil
	case r.pick.top != nil:
		groups := min(clampInt64(p.query.publicTuples()), maxCells)
		return inUnits(r.pick.top.Shortfall(int(groups), level), r.measure.unit())
	case r.pick.quantile != nil:
		return r.pick.quantile.RankError(level)
	default:
		return new(big.Rat).SetInt(r.pick.selector.Shortfall(r.pick.among, level))
	}
}

func percent(level mechanisms.Confidence) string {
	return strconv.FormatFloat(100*float64(level), 'g', 10, 64) + " %"
}

// promises say how wide the intervals of means will be: that depends on how many rows there are, and on nothing else of the data.
func (p *pricedPlan) promises() []Note {
	var notes []Note
	for _, f := range p.outputs {
		if f.core == nil || f.column.HalfWidth != nil || f.core.of.within == nil || f.core.of.over.isConstant() || f.core.of.under.isConstant() {
			continue
		}
		m := p.newFieller(f.core.of)
		if !m.resolves() {
			continue
		}
		lowest, _ := m.edges(m.cellOf(floatOf(f.core.of.within.lo)))
		_, highest := m.edges(m.cellOf(floatOf(f.core.of.within.hi)))
		most := m.most(lowest, highest)
		at := func(rows int64) string {
			w := spreadOf(f.core.shell, new(big.Rat).SetFloat64(most/float64(rows)))
			if w == nil {
				return ""
			}
			v, _ := new(big.Float).SetRat(w).Float64()
			return fmt.Sprintf("± %s for %d", strconv.FormatFloat(roundUp(v), 'f', -1, 64), rows)
		}
		if at(1) != "" {
			notes = append(notes, Note{Code: "interval-by-rows", Text: fmt.Sprintf("%s: the more rows there are, the narrower the interval: at most %s rows (as the noisy count has them), "+
				"%s, %s", f.column.Name, at(100), at(1000), at(10_000))})
		}
	}
	return notes
}

// roundUp leaves three significant digits.
func roundUp(v float64) float64 {
	if v <= 0 {
		return v
	}
	digits := math.Pow10(2 - int(math.Floor(math.Log10(v))))
	return math.Ceil(v*digits) / digits
}

// bindsRows reports whether max_rows can change a release: counting units or their values cannot.
func (p *pricedPlan) bindsRows() bool {
	for _, r := range p.releases {
		if r.measure.kind != countUnits && r.measure.kind != countDistinct {
			return true
		}
	}
	return false
}

// keyNotes says which groups appear.
func (p *pricedPlan) keyNotes(add func(code, format string, args ...any)) {
	if p.query.private() {
		add("private-groups", "groups of few %s are left out at random; whether a group is shown says nothing about one of them", "people")
		return
	}
	for _, k := range p.query.keys {
		some := ""
		if len(k.domain) < k.declared {
			some = " that WHERE allows"
		}
		if f := plainField(k.x); f == nil && plainField(writtenAs(k.x)) != nil {
			w := boundsOf(k.x)
			add("clamped-keys", "%s: every value from %s to %s%s appears; rows with a value beyond count there", k.name,
				valueOf(w.lo, k.x.typ()).text, valueOf(w.hi, k.x.typ()).text, some)
			continue
		}
		if k.x.typ() != catalog.Bool || !neverNull(k.x) {
			add("public-groups", "%s: every declared key%s appears; rows with other keys are left out", k.name, some)
		}
	}
}
