package answer

import (
	"fmt"
	"math"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// OutputForms describes the outputs.
func OutputForms(p *plan.Plan) []plan.OutputForm { return outputForms(p, 0) }

// outputForms describes the outputs of an answer with so many released rows; 0 before there are any.
func outputForms(p *plan.Plan, rows int) []plan.OutputForm {
	var forms []plan.OutputForm
	for _, o := range p.Query.Outputs {
		forms = append(forms, outputForm(p, o, rows))
	}
	return forms
}

func outputForm(p *plan.Plan, o algebra.Output, rows int) plan.OutputForm {
	f := plan.OutputForm{Column: plan.Column{Name: o.Name, Type: scalar.TypeOfOutput(o.Expr.Typ()), Kind: plan.DerivedColumn}}
	switch e := o.Expr.(type) {
	case algebra.KeyRef:
		f.Column.Kind = plan.KeyColumn
	case algebra.EstimatorRef:
		if v := p.Query.Estimators[e.Index]; !v.Computed() {
			f.Column = aggregateColumn(p, f.Column, p.Releases[v.Of[0]], rows)
		}
	}
	f.Releases = len(bind.ReleasesOf(p.Query, o.Expr))
	if f.Column.Kind == plan.DerivedColumn && f.Releases == 0 && len(bind.LeavesOf(o.Expr)) > 0 {
		f.Column.Kind = plan.KeyColumn // computed from keys alone
	}
	if f.Ratio = ratioOf(p, o.Expr, rows); f.Ratio != nil && f.Column.Kind == plan.DerivedColumn {
		f.Column.HalfWidth = spread(f.Ratio)
	}
	if p.Several != nil && !shownOver(p, o.Expr) { // of rows that are not told, two may have one noise
		f.Ratio, f.Column.HalfWidth = nil, nil
	}
	f.Column.Bias = outputBias(p, f, o.Expr)
	return f
}

// Columns describes the outputs of the answer before there is one: names, kinds and the half-widths of their noise.
func Columns(p *plan.Plan) []plan.Column {
	columns := make([]plan.Column, len(p.Outputs))
	for i, o := range p.Outputs {
		columns[i] = o.Column
	}
	return columns
}

// outerFailed says that there is no outer layer.
var outerFailed = algebra.Note{Code: "outer-layer-failed",
	Text: "HAVING, ORDER BY, LIMIT and expressions over aggregates could not be computed; these are the released values themselves"}

// Plain is the answer without the post-processing query: keys and aggregates as they were released. It is for a post-processing query that
// failed after everything was paid: what was bought is then still delivered.
func Plain(r *plan.Released) *Answer {
	p := r.Plan
	switch {
	case p.Several != nil && p.Query.Reports: // the answer is the first block
		a := Plain(r.Blocks[0])
		a.Notes = append(Notes(p), outerFailed)
		_ = a.report(r) // which is missing where its counts do not fit together
		return a
	case p.Several != nil:
		return plainSeveral(r)
	}
	a := &Answer{Notes: append(Notes(p), outerFailed)}
	for _, k := range p.Query.Keys {
		a.Columns = append(a.Columns, plan.Column{Name: k.Name, Type: scalar.TypeOfOutput(k.X.Typ()), Kind: plan.KeyColumn})
	}
	for _, v := range p.Query.Estimators {
		c := plan.Column{Name: v.Name, Type: string(v.T), Kind: plan.DerivedColumn}
		if !v.Computed() {
			c = aggregateColumn(p, c, p.Releases[v.Of[0]], len(r.Rows))
		}
		for _, r := range v.Of {
			if c.Bias = biasOf(p, p.Releases[r]); c.Bias != plan.Unbiased && v.Computed() {
				c.Bias = plan.UnknownBias
				break
			}
		}
		a.Columns = append(a.Columns, c)
	}
	for _, row := range r.Rows {
		values := append([]catalog.Key(nil), row.Keys...)
		for i := range p.Query.Estimators {
			values = append(values, p.ValueText(i, row))
		}
		a.Rows = append(a.Rows, values)
		a.Intervals = append(a.Intervals, make([]*Interval, len(values)))
	}
	return a
}

// aggregateColumn adds what is known of one release, in the output's unit.
func aggregateColumn(p *plan.Plan, c plan.Column, r plan.Release, rows int) plan.Column {
	c.Kind, c.Mechanism = plan.AggregateColumn, r.Law().Name()
	if r.Selection != nil {
		c.Selection = r.Selection.By
	}
	c.Sensitivity, c.Scale = Sensitivity(p, r), ScaleText(r)
	c.HalfWidth, c.RankError = HalfWidth(p, r, rows), RankError(p, r)
	return c
}

// HalfWidth is that of a release's noise in an answer with so many released rows, 0 before there are any, in the output's unit; nil for
// selections, which have none, and where it is not known yet.
func HalfWidth(p *plan.Plan, r plan.Release, rows int) *big.Rat {
	level, known := Level(p, rows)
	if r.Selection != nil || !known {
		return nil
	}
	return scalar.InUnits(r.HalfWidth(level), r.Unit)
}

// Sensitivity is the L1 (Laplace) or L2 (Gaussian) sensitivity of a release in the output's unit, "sqrt(75)" where irrational; of a
// selection, that of one score, in rows.
func Sensitivity(p *plan.Plan, r plan.Release) string {
	if r.Selection != nil {
		score, _ := new(big.Int).SetString(r.Selection.Mechanism.Parameters().Sensitivity, 10)
		return scalar.DecimalOrFraction(scalar.InUnits(score, r.Unit))
	}
	l1, l2Squared := p.Home(r).Bounding.Norms(r.Statistic)
	if !r.Law().Name().Gaussian() {
		return scalar.DecimalOrFraction(scalar.InUnits(l1, r.Unit))
	}
	squared := scalar.InUnits(l2Squared, new(big.Rat).Mul(r.Unit, r.Unit))
	num, denom := new(big.Int).Sqrt(squared.Num()), new(big.Int).Sqrt(squared.Denom())
	root := new(big.Rat).SetFrac(num, denom)
	if new(big.Rat).Mul(root, root).Cmp(squared) == 0 {
		return scalar.DecimalOrFraction(root)
	}
	return "sqrt(" + scalar.DecimalOrFraction(squared) + ")"
}

// ScaleText is Laplace's b or Gaussian's σ² in the output's unit; of a selection, what its scores are divided by.
func ScaleText(r plan.Release) string {
	parameters := r.Law().Parameters()
	unit, text := r.Unit, parameters.Scale
	if r.Law().Name().Gaussian() {
		unit, text = new(big.Rat).Mul(unit, unit), parameters.Variance
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return ShortDecimal(v.Mul(v, unit))
}

// significant are the digits of a scale for people; the exact parameters are in the estimate and the ledger.
const significant = 12

// ShortDecimal writes a positive number exactly where that is short, else with 12 significant digits, rounded up.
func ShortDecimal(v *big.Rat) string {
	if digits, exact := v.FloatPrec(); exact && digits <= significant {
		return v.FloatString(digits)
	}
	digits := significant - len(scalar.Floor(v).String())
	if digits < 0 {
		return scalar.Ceil(v).String()
	}
	for small := new(big.Rat).Set(v); small.Cmp(big.NewRat(1, 10)) < 0; digits++ {
		small.Mul(small, big.NewRat(10, 1))
	}
	unit := scalar.Power10(digits)
	up := scalar.Ceil(new(big.Rat).Mul(v, new(big.Rat).SetInt(unit)))
	return new(big.Rat).SetFrac(up, unit).FloatString(digits)
}

// RoundUp leaves three significant digits.
func RoundUp(v float64) float64 {
	if v <= 0 {
		return v
	}
	digits := math.Pow10(2 - int(math.Floor(math.Log10(v))))
	return math.Ceil(v*digits) / digits
}

// Complete assembles the answer: from the post-processing query's result when there is one (rows in order; types are PostgreSQL's names
// of the output columns and of those that [algebra.BoundQuery.Followed] asks for, without the ordinal), else from the released values (rows
// and types are nil).
func Complete(r *plan.Released, rows []PostRow, types []string) (*Answer, error) {
	p := r.Plan
	followed := p.Query.Followed()
	switch {
	case p.Several != nil:
		return completeSeveral(r, rows, types)
	case p.Post == nil:
		rows = identityRows(r)
	case len(types) != len(p.Outputs)+len(followed):
		return nil, fault.Internal(plan.ErrShape)
	}
	a, forms := &Answer{Notes: Notes(p)}, p.Outputs
	if p.Options.Simultaneous && p.Query.Private() { // how many groups there are is known now
		forms = outputForms(p, len(r.Rows))
	}
	for i, f := range forms {
		c := f.Column
		if p.Post != nil {
			c.Type = types[i]
		}
		a.Columns = append(a.Columns, c)
	}
	box, lost, judged := NewBox(p, r.Rows...), make([]int, len(forms)), newJudge(p, forms, len(r.Rows), r.Rows)
	for _, row := range rows {
		if len(row.Values) != len(forms)+len(followed) || row.Ordinal < 0 || row.Ordinal > len(r.Rows) ||
			row.Ordinal == 0 && p.Query.Post == nil {
			return nil, fault.Internal(plan.ErrShape)
		}
		at := &place{row: row.Ordinal, cells: make(map[int]catalog.Key)}
		for i, number := range followed {
			at.cells[number] = row.Values[len(forms)+i]
		}
		intervals := make([]*Interval, len(forms))
		for i, f := range forms {
			if !row.Values[i].Null && f.Column.Kind != plan.KeyColumn {
				in := func(b *Box) *Interval { return b.interval(p.Query.Outputs[i].Expr, f, at, a.Columns[i].Type) }
				intervals[i] = in(box)
				lost[i] += algebra.BoolIndex(intervals[i] == nil)
				judged.value(i, row.Values[i].Text, intervals[i], in)
			}
		}
		judged.row()
		a.Rows = append(a.Rows, row.Values[:len(forms)])
		a.Intervals = append(a.Intervals, intervals)
	}
	a.Useful = judged.result()
	a.Notes = append(a.Notes, unboundedNotes(p, len(rows), lost)...)
	a.Notes = append(a.Notes, barNotes(p, a.Intervals, len(r.Rows))...)
	if p.Query.Private() { // how many groups there are is known now
		a.Notes = append(a.Notes, rankNotes(p, len(r.Rows))...)
	}
	a.Notes = append(a.Notes, hiddenNotes(r)...)
	return a, a.report(r)
}

// unboundedNotes say of which outputs the intervals are unbounded in some rows, as what is divided by is small against its noise: lost
// counts these rows by output.
func unboundedNotes(p *plan.Plan, rows int, lost []int) []algebra.Note {
	var notes []algebra.Note
	for i, f := range p.Outputs {
		if f.Column.Kind != plan.DerivedColumn || f.Releases == 0 || !shownWithIntervals(p, i) || lost[i] == 0 {
			continue
		}
		text := fmt.Sprintf("%s: there is no interval in %d of %d rows: a number that is divided by is so small "+
			"against its noise that any value is possible", f.Column.Name, lost[i], rows)
		if algebra.HasAggregate(p.Query.Outputs[i].Expr) {
			text += ", or a released row counts more than once"
		}
		notes = append(notes, algebra.Note{Code: "unbounded-interval", Text: text})
	}
	return notes
}

// identityRows are the released rows as the post-processing query that does nothing would give them.
func identityRows(r *plan.Released) []PostRow {
	out := make([]PostRow, len(r.Rows))
	for j, row := range r.Rows {
		out[j] = PostRow{Ordinal: j + 1, Values: make([]catalog.Key, len(r.Plan.Query.Outputs))}
		for i, o := range r.Plan.Query.Outputs {
			switch e := o.Expr.(type) {
			case algebra.KeyRef:
				out[j].Values[i] = row.Keys[e.Index]
			case algebra.EstimatorRef:
				out[j].Values[i] = r.Plan.ValueText(e.Index, row)
			default:
				panic("sqlrewrite: a post-processing query was skipped")
			}
		}
	}
	return out
}

// RankError is how far a selection may be off at the requested confidence, in rows, or of a selection of groups in the unit of what they
// are ordered by.
func RankError(p *plan.Plan, r plan.Release) *big.Rat {
	level := p.Options.Confidence
	switch {
	case r.Selection == nil:
		return nil
	case r.Selection.Top != nil:
		groups := min(scalar.ClampInt64(p.Home(r).Query.PublicTuples()), plan.MaxCells)
		return scalar.InUnits(r.Selection.Top.Shortfall(int(groups), level), r.Statistic.Unit())
	case r.Selection.Quantile != nil:
		return r.Selection.Quantile.RankError(level)
	default:
		return new(big.Rat).SetInt(r.Selection.Selector.Shortfall(r.Selection.Among, level))
	}
}

// PostRow is one row of a [sqlprint.Post]'s result in PostgreSQL's text form, and which released row it came from, counted from 1; 0 for
// none.
type PostRow struct {
	Values  []catalog.Key
	Ordinal int
}

// Answer is what an analyst gets: noisy values with intervals.
type Answer struct {
	Columns   []plan.Column
	Rows      [][]catalog.Key // PostgreSQL's text form, per column type
	Intervals [][]*Interval   // nil entries where there is none (keys)
	Notes     []algebra.Note
	Report    *Report // what was bought of what the bounds leave out; nil: nothing
	Useful    *Useful // counts the useful rows; nil: no value has an interval
}

// report adds what was bought beside the answer.
func (a *Answer) report(r *plan.Released) error {
	report, notes, err := reportOf(r)
	a.Report, a.Notes = report, append(a.Notes, notes...)
	return err
}

// Interval is a confidence interval in PostgreSQL's text form of a number.
type Interval struct{ Lo, Hi string }
