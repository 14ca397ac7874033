package fit

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Model is what is fitted.
type Model string

const (
	Linear   Model = "linear"   // least squares; a ridge only where the noise asks for one
	Ridge    Model = "ridge"    // least squares with a ridge as large as the noise
	Logistic Model = "logistic" // the probability that the target is 1
)

// Feature is one term of a model.
type Feature struct {
	Expr   string   // over a row, as in SELECT
	OneHot bool     // one column for each value of the expression's domain
	Weight *big.Rat // how much of the noise others take for it; nil: 1
}

// Question is a regression, as texts of SQL.
type Question struct {
	From     string
	Where    string // "": all rows
	Target   string
	Features []Feature
	Model    Model  // "": none, as of a [ClusterQuestion]
	Zone     string // the time zone of the session, where that is not UTC
}

// MaxFeatures caps the columns of a model, each value of a one-hot feature being one.
const MaxFeatures = 64

// maxPoints caps the points of a grid, so that products of two factors are bigints.
const maxPoints = 1 << 30

// column is one column of the model.
type column struct {
	name   string
	expr   string
	oneHot bool     // one value of a one-hot feature
	group  int      // the feature's place
	weight *big.Rat // squared
	factor sqlprint.Factor
}

// bound is a question that is bound to a snapshot.
type bound struct {
	Question
	query   *algebra.BoundQuery
	columns []column // without the intercept
	target  *column  // nil: there is none
	norm    *big.Rat // what the caller gave, for the intercept, and the largest squared length of a row's weighted features
	partial bool     // rows with NULL are left out
	steps   *steps.Count
}

// loading is what a statement does beside adding up features, once the columns are known.
type loading func() (algebra.Load, error)

// bindQuestion binds a question. Its errors are those of a query over the same expressions, without a place in the text; hint says how less
// is computed of a row.
func (b *bound) bindQuestion(on *catalog.Snapshot, load loading, hint string) error {
	err := b.bind(on, load)
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return err
	}
	if refusal.Code == fault.CodeFanOut {
		refusal = refusal.WithHint(hint)
	}
	return refusal.At(fault.Position{})
}

// bind binds FROM and WHERE three times at most, whatever is asked: for the values of one-hot features, for the sums, and for the sums over
// rows that have values.
func (b *bound) bind(on *catalog.Snapshot, load loading) error {
	if len(b.Features) > MaxFeatures {
		return fault.FitTooMany(b.noun(), int64(len(b.Features)), MaxFeatures)
	}
	if err := b.fragments(); err != nil {
		return err
	}
	values, present, err := b.values(on)
	if err != nil {
		return err
	}
	for place, f := range b.Features {
		weight := big.NewRat(1, 1)
		if f.Weight != nil {
			weight = new(big.Rat).Mul(f.Weight, f.Weight)
		}
		if !f.OneHot {
			b.columns = append(b.columns, column{name: strings.TrimSpace(f.Expr), expr: f.Expr, group: place, weight: weight})
		} else {
			for _, v := range values[place] {
				b.columns = append(b.columns, column{name: strings.TrimSpace(f.Expr) + "=" + v.text, group: place, weight: weight,
					expr: "CASE WHEN (" + f.Expr + "\n) = " + v.literal + " THEN 1 ELSE 0 END", oneHot: true})
			}
		}
		b.norm.Add(b.norm, weight)
	}
	if len(b.columns) > MaxFeatures {
		return fault.FitTooMany(b.noun(), int64(len(b.columns)), MaxFeatures)
	}
	work, err := load()
	if err != nil {
		return err
	}
	if b.target = nil; b.Model != "" {
		b.target = &column{name: strings.TrimSpace(b.Target), expr: b.Target}
	}
	query, err := b.sums(present, work, on)
	if err != nil {
		return err
	}
	for i, c := range b.summed() {
		if !c.oneHot && !neverNull(statisticOf(query, i).X) {
			present = append(present, "("+c.expr+"\n) IS NOT NULL")
		}
	}
	if len(present) > 0 { // once more, over the rows that have a value of each
		b.partial = true
		if query, err = b.sums(present, work, on); err != nil {
			return err
		}
	}
	b.query = query
	return b.grids()
}

// fragments refuses what is no expression, or no FROM, by itself: the texts are put together later.
func (b *bound) fragments() error {
	from, err := parse.Parse("SELECT 1 FROM "+b.From, parse.DialectPostgres)
	if err != nil {
		return err
	}
	if from.Where != nil || !plain(from) {
		return fault.FitInvalid("from", "tables and joins, as after FROM")
	}
	type fragment struct{ field, text string }
	var fragments []fragment
	if b.Model != "" {
		fragments = append(fragments, fragment{"target", b.Target})
	}
	for _, f := range b.Features {
		fragments = append(fragments, fragment{b.noun(), f.Expr})
	}
	if b.Where != "" {
		fragments = append(fragments, fragment{"where", b.Where})
	}
	size := len(b.From)
	for _, f := range fragments {
		size += len(f.text)
	}
	if size > parse.MaxBytes {
		return fault.TooComplex(fault.Position{}, fmt.Sprintf("the fit is longer than %d KiB", parse.MaxBytes>>10))
	}
	for _, f := range fragments {
		q, err := parse.Parse("SELECT "+f.text, parse.DialectPostgres)
		if err != nil {
			return err
		}
		if len(q.Items) != 1 || q.Items[0].Alias != "" || len(q.From) > 0 || q.Where != nil || !plain(q) {
			return fault.FitInvalid(f.field, "an expression over one row")
		}
	}
	return nil
}

// plain reports whether a query has nothing but outputs, FROM and WHERE.
func plain(q *syntax.Query) bool {
	return q.Set == nil && len(q.With) == 0 && !q.Distinct && len(q.DistinctOn) == 0 && !q.Groups() && q.Having == nil &&
		len(q.Windows) == 0 && len(q.OrderBy) == 0 && q.Limit == nil && q.Offset == nil
}

// value is one of a one-hot feature, as people and as SQL write it.
type value struct{ text, literal string }

// values are those of the one-hot features, by place, which the policy declares, and conditions that leave out rows without one.
func (b *bound) values(on *catalog.Snapshot) (values map[int][]value, present []string, err error) {
	var places []int
	var items []string
	for place, f := range b.Features {
		if f.OneHot {
			places, items = append(places, place), append(items, "("+f.Expr+"\n)")
		}
	}
	if len(items) == 0 {
		return nil, nil, nil
	}
	o, err := b.opened("SELECT count(*) FROM "+b.From+"\n"+b.conditions(nil)+" GROUP BY "+strings.Join(items, ", "), on)
	if err != nil {
		return nil, nil, err
	}
	keys, err := bind.RowKeys(o)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) != len(items) {
		return nil, nil, fault.FitInvalid("features", "an expression over one row each")
	}
	values = make(map[int][]value)
	for i, k := range keys {
		if values[places[i]], err = valuesOf(k); err != nil {
			return nil, nil, err
		}
		if !sqlprint.NeverNull(k.X) {
			present = append(present, items[i]+" IS NOT NULL")
		}
	}
	return values, present, nil
}

func valuesOf(k algebra.GroupKey) ([]value, error) {
	if k.Private() {
		return nil, fault.FitInvalid("features", "one-hot only where the policy declares a domain of public keys")
	}
	t := k.X.Typ()
	if !t.IsText() && !t.IsInteger() {
		return nil, fault.FitInvalid("features", "one-hot of texts or whole numbers")
	}
	var values []value
	for _, d := range k.Domain {
		switch {
		case d.Null:
		case len(values) == MaxFeatures:
			return nil, fault.FitTooMany("values of one feature", int64(len(k.Domain)), MaxFeatures)
		case t.IsInteger():
			values = append(values, value{d.Text, d.Text})
		default:
			values = append(values, value{d.Text, scalar.QuoteText(d.Text)})
		}
	}
	return values, nil
}

// noun is what the terms of a question are called.
func (b *bound) noun() string {
	if b.Model == "" {
		return "columns"
	}
	return "features"
}

// summed are the columns, and the target if there is one.
func (b *bound) summed() []column {
	all := slices.Clone(b.columns)
	if b.target != nil {
		all = append(all, *b.target)
	}
	return all
}

func (b *bound) conditions(more []string) string {
	if b.Where != "" {
		more = append([]string{"(" + b.Where + "\n)"}, more...)
	}
	if len(more) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(more, " AND ")
}

// sums binds the sums of all columns and of the target, in that order.
func (b *bound) sums(present []string, load algebra.Load, on *catalog.Snapshot) (*algebra.BoundQuery, error) {
	var outputs []string
	for _, c := range b.summed() {
		outputs = append(outputs, "sum("+c.expr+"\n)")
	}
	o, err := b.opened("SELECT "+strings.Join(outputs, ", ")+" FROM "+b.From+"\n"+b.conditions(present), on)
	if err != nil {
		return nil, err
	}
	o.Load = load
	q, err := bind.Releasing(o)
	if err != nil {
		return nil, err
	}
	for i := range outputs {
		if m := statisticOf(q, i); m == nil || m.Kind != algebra.SumSteps || m.Filter != nil {
			return nil, fault.FitInvalid(b.noun(), "numbers of one row")
		}
	}
	_, err = stability.Together([]stability.Statement{{Query: q, Statistics: q.Statistics, Again: q.Spare}})
	return q, err
}

// opened is a text to be bound, which may be as long as a query.
func (b *bound) opened(text string, on *catalog.Snapshot) (*algebra.Opened, error) {
	q, err := parse.Parse(text, parse.DialectPostgres)
	if err != nil {
		return nil, err
	}
	o := algebra.NewOpened(text, q, on)
	o.Steps = b.steps
	o.Zone, o.Wide = b.Zone, true // models have the policy's bounds
	return o, nil
}

// statisticOf is what an output of a query adds up; nil where it is something else.
func statisticOf(q *algebra.BoundQuery, output int) *algebra.Statistic {
	if output >= len(q.Outputs) || q.Post != nil {
		return nil
	}
	ref, ok := q.Outputs[output].Expr.(algebra.EstimatorRef)
	if !ok || q.Estimators[ref.Index].Computed() {
		return nil
	}
	return &q.Statistics[q.Estimators[ref.Index].Of[0]]
}

// neverNull reports whether an expression surely has a value in every row. Where it says so of one that has none, that row counts for the
// other products alone.
func neverNull(e algebra.Expr) bool {
	all := func(list ...algebra.Expr) bool {
		return !slices.ContainsFunc(list, func(x algebra.Expr) bool { return x == nil || !neverNull(x) })
	}
	switch e := e.(type) {
	case algebra.Computed:
		return neverNull(e.ErrorFree)
	case algebra.Constant:
		return !e.Null
	case algebra.Cast:
		return neverNull(e.X)
	case algebra.Guard:
		return neverNull(e.Clamped)
	case algebra.Choice:
		results := []algebra.Expr{e.Otherwise}
		for _, a := range e.Arms {
			results = append(results, a.Result)
		}
		return all(results...)
	case algebra.Binary:
		return (e.Op == syntax.Add || e.Op == syntax.Subtract || e.Op == syntax.Multiply) && all(e.L, e.R)
	case algebra.Call:
		return slices.Contains(strict, e.Name) && all(e.Args...)
	default:
		return sqlprint.NeverNull(e)
	}
}

// strict are functions that have a value wherever their arguments have one.
var strict = []string{"abs", "ln", "sqrt", "exp", "round", "floor", "ceil", "float8larger", "float8smaller", "int2larger", "int2smaller",
	"int4larger", "int4smaller", "int8larger", "int8smaller", "numeric_larger", "numeric_smaller"}

// indicator is the CASE of a column of a one-hot feature, as it is printed.
func indicator(e algebra.Expr) algebra.Expr {
	if c, ok := e.(algebra.Computed); ok {
		return c.ErrorFree
	}
	return e
}

// grids takes the grid of each column from the sums.
func (b *bound) grids() error {
	seen := make(map[*algebra.Grid]string)
	take := func(c *column, place int) error {
		m := statisticOf(b.query, place)
		g := m.Grid
		if had, twice := seen[g]; twice {
			return fault.FitInvalid(b.noun(), fmt.Sprintf("different ones: %s and %s are the same", had, c.name))
		}
		seen[g] = c.name
		if c.oneHot {
			c.factor.Indicator = indicator(m.X)
			return nil
		}
		if g.Lo.Cmp(g.Hi) == 0 {
			return fault.FitInvalid(b.noun(), "ones with more than one value: "+c.name+" has one")
		}
		if g.Points().Cmp(big.NewInt(maxPoints)) > 0 {
			return fault.BadStep(fault.Position{}, c.name, "the bounds hold too many steps for products")
		}
		c.factor.Grid = g
		return nil
	}
	for i := range b.columns {
		if err := take(&b.columns[i], i); err != nil {
			return err
		}
	}
	if b.target == nil {
		return nil
	}
	if err := take(b.target, len(b.columns)); err != nil {
		return err
	}
	if b.Model == Logistic && (b.target.factor.Grid.Points().Cmp(big.NewInt(2)) != 0 || b.target.factor.Grid.Lo.Sign() != 0) {
		return fault.FitInvalid("target", "0 or 1 for a logistic model, such as CASE WHEN married THEN 1 ELSE 0 END")
	}
	return nil
}
