package sqlrewrite

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// outputForm is what a plan knows of an output before any row is read.
type outputForm struct {
	column   Column
	releases int // how many releases it is computed from
	core     *core
}

// outputForms describes the outputs.
func (p *pricedPlan) outputForms() []outputForm {
	var forms []outputForm
	for _, o := range p.query.outputs {
		f := outputForm{column: Column{Name: o.name, Type: typeOfOutput(o.expr.typ()), Kind: DerivedColumn}}
		switch e := o.expr.(type) {
		case keyRef:
			f.column.Kind = KeyColumn
		case valueRef:
			if v := p.query.values[e.index]; !v.computed() {
				f.column = p.aggregateColumn(f.column, p.releases[v.of[0]])
			}
		}
		f.releases = len(p.query.releasesOf(o.expr))
		if f.column.Kind == DerivedColumn && f.releases == 0 && len(leavesOf(o.expr)) > 0 {
			f.column.Kind = KeyColumn // computed from keys alone
		}
		if f.core = p.coreOf(o.expr); f.core != nil && f.column.Kind == DerivedColumn {
			f.column.HalfWidth = p.spread(f.core)
		}
		forms = append(forms, f)
	}
	return forms
}

// columns describes the outputs of the answer before there is one: names, kinds and the half-widths of their noise.
func (p *pricedPlan) columns() []Column {
	columns := make([]Column, len(p.outputs))
	for i, o := range p.outputs {
		columns[i] = o.column
	}
	return columns
}

// plainAnswer is the answer without the outer layer: keys and aggregates as they were released. It is for an outer layer that
// failed after everything was paid: what was bought is then still delivered.
func (r *releasedPlan) plainAnswer() *Answer {
	p := r.plan
	a := &Answer{Notes: append(p.notes(), Note{Code: "outer-layer-failed",
		Text: "HAVING, ORDER BY, LIMIT and expressions over aggregates could not be computed; these are the released values themselves"})}
	for _, k := range p.query.keys {
		a.Columns = append(a.Columns, Column{Name: k.name, Type: typeOfOutput(k.x.typ()), Kind: KeyColumn})
	}
	for _, v := range p.query.values {
		c := Column{Name: v.name, Type: string(v.t), Kind: DerivedColumn}
		if !v.computed() {
			c = p.aggregateColumn(c, p.releases[v.of[0]])
		}
		a.Columns = append(a.Columns, c)
	}
	for _, row := range r.rows {
		values := append([]catalog.Key(nil), row.keys...)
		for i := range p.query.values {
			values = append(values, p.valueText(i, row))
		}
		a.Rows = append(a.Rows, values)
		a.Intervals = append(a.Intervals, make([]*Interval, len(values)))
	}
	return a
}

// typeOfOutput is PostgreSQL's name of an output's type; an enum does not exist outside the protected database.
func typeOfOutput(t catalog.Type) string {
	if t == catalog.Enum || t == unknownType {
		return string(catalog.Text)
	}
	return string(t)
}

// aggregateColumn adds what is known of one release, in the output's unit.
func (p *pricedPlan) aggregateColumn(c Column, r release) Column {
	c.Kind, c.Mechanism = AggregateColumn, r.law().Name()
	c.Sensitivity, c.Scale = p.sensitivity(r), scaleText(r)
	c.HalfWidth, c.RankError = p.halfWidth(r), p.rankError(r)
	return c
}

// halfWidth is that of a release's noise at the requested confidence, in the output's unit; nil for selections, which have none.
func (p *pricedPlan) halfWidth(r release) *big.Rat {
	if r.pick != nil {
		return nil
	}
	return inUnits(r.mechanism.HalfWidth(p.options.Confidence), r.unit)
}

// sensitivity is the L1 (Laplace) or L2 (Gaussian) sensitivity of a release in the output's unit, "sqrt(75)" where irrational; of a
// selection, that of one score, in rows.
func (p *pricedPlan) sensitivity(r release) string {
	if r.pick != nil {
		score, _ := new(big.Int).SetString(r.pick.mechanism.Parameters().Sensitivity, 10)
		return decimalOrFraction(inUnits(score, r.unit))
	}
	linf := inUnits(r.perGroup, r.unit)
	groups := new(big.Rat).SetInt64(p.shape.maxGroups)
	if r.mechanism.Name() != mechanisms.DiscreteGaussian {
		return decimalOrFraction(linf.Mul(linf, groups))
	}
	squared := new(big.Rat).Mul(linf, linf)
	squared.Mul(squared, groups)
	num, denom := new(big.Int).Sqrt(squared.Num()), new(big.Int).Sqrt(squared.Denom())
	root := new(big.Rat).SetFrac(num, denom)
	if new(big.Rat).Mul(root, root).Cmp(squared) == 0 {
		return decimalOrFraction(root)
	}
	return "sqrt(" + decimalOrFraction(squared) + ")"
}

// scaleText is Laplace's b or Gaussian's σ² in the output's unit; of a selection, what its scores are divided by.
func scaleText(r release) string {
	parameters := r.law().Parameters()
	unit, text := r.unit, parameters.Scale
	if r.law().Name() == mechanisms.DiscreteGaussian {
		unit, text = new(big.Rat).Mul(unit, unit), parameters.Variance
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return shortDecimal(v.Mul(v, unit))
}

// significant are the digits of a scale for people; the exact parameters are in the estimate and the ledger.
const significant = 12

// shortDecimal writes a positive number exactly where that is short, else with 12 significant digits, rounded up.
func shortDecimal(v *big.Rat) string {
	if digits, exact := v.FloatPrec(); exact && digits <= significant {
		return v.FloatString(digits)
	}
	digits := significant - len(floor(v).String())
	if digits < 0 {
		return ceil(v).String()
	}
	for small := new(big.Rat).Set(v); small.Cmp(big.NewRat(1, 10)) < 0; digits++ {
		small.Mul(small, big.NewRat(10, 1))
	}
	unit := power10(digits)
	up := ceil(new(big.Rat).Mul(v, new(big.Rat).SetInt(unit)))
	return new(big.Rat).SetFrac(up, unit).FloatString(digits)
}

func inUnits(n *big.Int, unit *big.Rat) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt(n), unit)
}

// answer assembles the answer: from the outer layer's result when there is one (rows in order; types are PostgreSQL's names
// of the output columns, without the ordinal), else from the released values (rows and types are nil).
func (r *releasedPlan) answer(rows []PostRow, types []string) (*Answer, error) {
	p := r.plan
	if p.post == nil {
		rows = r.identityRows()
	} else if len(types) != len(p.outputs) {
		return nil, fault.Internal(errShape)
	}
	a := &Answer{Notes: p.notes()}
	for i, f := range p.outputs {
		c := f.column
		if p.post != nil {
			c.Type = types[i]
		}
		a.Columns = append(a.Columns, c)
	}
	box := newBox(p)
	for _, row := range rows {
		if len(row.Values) != len(p.outputs) || row.Ordinal < 0 || row.Ordinal > len(r.rows) || row.Ordinal == 0 && p.query.layer == nil {
			return nil, fault.Internal(errShape)
		}
		intervals := make([]*Interval, len(p.outputs))
		for i, f := range p.outputs {
			if row.Ordinal > 0 && !row.Values[i].Null && f.column.Kind != KeyColumn {
				intervals[i] = box.interval(p.query.outputs[i].expr, f, r.rows[row.Ordinal-1], a.Columns[i].Type)
			}
		}
		a.Rows = append(a.Rows, row.Values)
		a.Intervals = append(a.Intervals, intervals)
	}
	a.Notes = append(a.Notes, p.unboundedNotes(rows, a.Intervals)...)
	return a, nil
}

// unboundedNotes say of which outputs the intervals are unbounded in some rows, as what is divided by is small against its noise.
func (p *pricedPlan) unboundedNotes(rows []PostRow, intervals [][]*Interval) []Note {
	var notes []Note
	for i, f := range p.outputs {
		if f.column.Kind != DerivedColumn || f.releases == 0 || !hasInterval(p.query.outputs[i].expr) {
			continue
		}
		unbounded := 0
		for j, row := range rows {
			if row.Ordinal > 0 && !row.Values[i].Null && intervals[j][i] == nil {
				unbounded++
			}
		}
		if unbounded > 0 {
			notes = append(notes, Note{Code: "unbounded-interval", Text: fmt.Sprintf("%s: there is no interval in %d of %d rows: a number that is divided by is so small "+
				"against its noise that any value is possible", f.column.Name, unbounded, len(rows))})
		}
	}
	return notes
}

// identityRows are the released rows as the outer layer that does nothing would give them.
func (r *releasedPlan) identityRows() []PostRow {
	out := make([]PostRow, len(r.rows))
	for j, row := range r.rows {
		out[j] = PostRow{Ordinal: j + 1, Values: make([]catalog.Key, len(r.plan.query.outputs))}
		for i, o := range r.plan.query.outputs {
			switch e := o.expr.(type) {
			case keyRef:
				out[j].Values[i] = row.keys[e.index]
			case valueRef:
				out[j].Values[i] = r.plan.valueText(e.index, row)
			default:
				panic("sqlrewrite: an outer layer was skipped")
			}
		}
	}
	return out
}

func clampRat(v, lo, hi *big.Rat) *big.Rat {
	switch {
	case v.Cmp(lo) < 0:
		return lo
	case v.Cmp(hi) > 0:
		return hi
	default:
		return v
	}
}

// meanDigits are PostgreSQL's decimal places of a numeric mean.
const meanDigits = 16

// unitDigits are the decimal places that show every multiple of a unit.
func unitDigits(unit *big.Rat) int {
	if digits, exact := unit.FloatPrec(); exact {
		return digits
	}
	return meanDigits
}

// formatNumber writes a number as PostgreSQL writes type t. Numbers beyond bigint stop at its ends: only noise gets there.
func formatNumber(v *big.Rat, t catalog.Type, digits int) string {
	switch t {
	case catalog.Int8:
		lowest, highest := integerRange(catalog.Int8)
		return floor(clampRat(v, lowest, highest)).String()
	case catalog.Float8:
		f, _ := v.Float64()
		return formatFloat(f, 64)
	case catalog.Float4:
		f, _ := v.Float64()
		return formatFloat(f, 32)
	default:
		return v.FloatString(digits)
	}
}

// formatFloat writes the shortest text that reads back as f, with an exponent where PostgreSQL writes one.
func formatFloat(f float64, bits int) string {
	largest := 15 // digits before the point
	if bits == 32 {
		largest = 6
	}
	if size := math.Abs(f); f != 0 && (size < 1e-4 || size >= math.Pow10(largest)) {
		return strconv.FormatFloat(f, 'e', -1, bits)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}
