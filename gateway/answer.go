package gateway

import (
	"context"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// encode gives an answer its wire form; none for none. How a value is written depends on its column's type alone.
func encode(a *sqlrewrite.Answer) *api.Result {
	if a == nil {
		return nil
	}
	r := &api.Result{
		Columns:   make([]api.Column, len(a.Columns)),
		Rows:      make([][]api.Value, len(a.Rows)),
		Intervals: make([][]*api.Bounds, len(a.Rows)),
		Notes:     notesOf(a.Notes),
		Report:    shareOf(a.Report),
	}
	if a.Useful != nil {
		r.Useful = &api.Useful{Rows: a.Useful.Rows, Of: a.Useful.Of}
	}
	for i, c := range a.Columns {
		r.Columns[i] = api.Column{Name: c.Name, Type: c.Type, Kind: string(c.Kind), Mechanism: string(c.Mechanism),
			Selection: string(c.Selection), Sensitivity: c.Sensitivity, Scale: c.Scale,
			HalfWidth: rational(c.HalfWidth), RankError: decimalOf(c.RankError), Bias: string(c.Bias), Digits: digitsOf(a, i)}
	}
	for i, row := range a.Rows {
		r.Rows[i] = make([]api.Value, len(row))
		for j, value := range row {
			r.Rows[i][j] = valueOf(value, a.Columns[j].Type)
		}
		r.Intervals[i] = make([]*api.Bounds, len(row))
		for j, interval := range a.Intervals[i] {
			if interval != nil {
				r.Intervals[i][j] = &api.Bounds{api.Number(interval.Lo), api.Number(interval.Hi)}
			}
		}
	}
	return r
}

// judged counts the useful rows of a stored answer that does not say how many there are, by its values and intervals alone: such an answer
// has no shares, and no intervals that groups have together.
func judged(r *api.Result) *api.Useful {
	if r.Useful != nil {
		return r.Useful
	}
	known := make([]bool, len(r.Columns))
	for _, row := range r.Intervals {
		for i, interval := range row {
			known[i] = known[i] || interval != nil
		}
	}
	if !slices.Contains(known, true) {
		return nil
	}
	var useful sqlrewrite.Useful
	for i, row := range r.Rows {
		var cells []sqlrewrite.Cell
		for j, value := range row {
			if !known[j] || value.IsNull() {
				continue
			}
			cell := sqlrewrite.Cell{Value: value.String()}
			if b := r.Intervals[i][j]; b != nil {
				cell.Span = &sqlrewrite.Interval{Lo: b[0].String(), Hi: b[1].String()}
			}
			cells = append(cells, cell)
		}
		useful.Add(cells)
	}
	return &api.Useful{Rows: useful.Rows, Of: useful.Of}
}

// digitsOf is how many decimal places of a column's numbers are worth showing: those that leave two digits of the narrowest
// interval, and no more than any number of the column has, since round(x, 1) asked for one; nil where there is no interval.
// It looks at what is released, and at nothing else.
func digitsOf(a *sqlrewrite.Answer, column int) *int {
	narrowest, most := math.Inf(1), 0
	if half := a.Columns[column].HalfWidth; half != nil {
		narrowest, _ = half.Float64()
	}
	for _, row := range a.Rows {
		most = max(most, placesOf(row[column].Text))
	}
	for _, row := range a.Intervals {
		if row[column] == nil {
			continue
		}
		most = max(most, placesOf(row[column].Lo), placesOf(row[column].Hi))
		lo, err := strconv.ParseFloat(row[column].Lo, 64)
		hi, other := strconv.ParseFloat(row[column].Hi, 64)
		if width := (hi - lo) / 2; err == nil && other == nil && width > 0 {
			narrowest = min(narrowest, width)
		}
	}
	if math.IsInf(narrowest, 1) || math.IsNaN(narrowest) || !catalog.Type(a.Columns[column].Type).IsNumber() {
		return nil
	}
	places := 0
	for ; narrowest < 10 && places < min(most, maxPlaces) && !catalog.Type(a.Columns[column].Type).IsInteger(); places++ {
		narrowest *= 10
	}
	return &places
}

// placesOf is how many decimal places a number is written with.
func placesOf(number string) int {
	digits, exponent, scientific := strings.Cut(number, "e")
	_, fraction, _ := strings.Cut(digits, ".")
	if !scientific {
		return len(fraction)
	}
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return maxPlaces
	}
	return max(0, min(len(fraction)-power, maxPlaces))
}

// shareOf is the share of rows that was bought with an answer; nil if none was.
func shareOf(r *sqlrewrite.ReportedShare) *api.ReportedShare {
	if r == nil {
		return nil
	}
	share, lo, hi := r.Texts()
	return &api.ReportedShare{Kind: string(r.Kind), Share: valueOf(catalog.Key{Text: share, Null: share == ""}, string(catalog.Numeric)),
		Interval: api.Bounds{api.Number(lo), api.Number(hi)}, KeptCap: r.Cap}
}

// valueOf writes numbers as numbers, truth values as such, and everything else as text.
func valueOf(v catalog.Key, kind string) api.Value {
	if v.Null {
		return api.Null()
	}
	switch {
	case catalog.Type(kind) == catalog.Bool:
		return api.Bool(v.Text == "true")
	case catalog.Type(kind).IsNumber():
		return api.Number(v.Text)
	default:
		return api.Text(v.Text)
	}
}

func notesOf(notes []sqlrewrite.Note) []api.Note {
	list := make([]api.Note, len(notes))
	for i, n := range notes {
		list[i] = api.Note{Code: n.Code, Text: n.Text}
	}
	return list
}

// maxPlaces is how many decimal places a fraction is shown with that no decimal number equals.
const maxPlaces = 12

// rational writes a number for people; nil is null.
func rational(r *big.Rat) api.Value {
	if r == nil {
		return api.Null()
	}
	return api.Number(rationalText(r))
}

// decimalOf is a number, or nothing for nil.
func decimalOf(r *big.Rat) api.Decimal {
	if r == nil {
		return ""
	}
	return api.Decimal(rationalText(r))
}

func rationalText(r *big.Rat) string {
	places, exact := r.FloatPrec()
	if !exact {
		places = maxPlaces
	}
	return r.FloatString(places)
}

// Remaining asks for the caller's balance after a charge that was settled at less than it reserved. The answer is already paid and stored:
// if the ledger does not answer, only the amounts stay empty.
func (s *Service) Remaining(ctx context.Context, p Accounts) api.Amounts {
	balances, err := s.ledger.Balances(ctx, []budget.AccountID{p.Own().ID})
	if err != nil || len(balances) != 1 {
		return api.Amounts{}
	}
	return s.headroom(balances[0])
}

// left is what the caller's own account has once a charge is settled at what it reserved, as the ledger said when it reserved it; where
// nothing was charged, as it was when the request came. So nothing has to be asked once an answer is paid, stored and due.
func (s *Service) left(p Accounts, paid Receipt) api.Amounts {
	own := p.Own()
	if paid.used != nil {
		own.Spent, own.Reserved = paid.used[p.own], mechanisms.Loss{}
	}
	return s.headroom(own)
}

// headroom is what an account has left now.
func (s *Service) headroom(b budget.Balance) api.Amounts {
	return amounts.Headroom(amounts.Released(b, s.clock.Now()))
}

// usefulOf shows in an estimate what makes a row useful; nil: nothing is known.
func usefulOf(told *sqlrewrite.Foretold) *api.UsefulEstimate {
	if told == nil {
		return nil
	}
	return &api.UsefulEstimate{Output: told.Output, Needs: api.Decimal(told.Needs), Counts: told.Counts, Of: told.Of, Possible: told.Possible}
}

// useless refuses a question about so many people where fewer rows can be useful than the request requires. Where their number is not known
// it refuses nothing.
func useless(r api.QueryRequest, plan *sqlrewrite.Plan, people int64) error {
	if r.RequireUseful == nil {
		return nil
	}
	told := plan.Foretell(people)
	if told == nil || told.Possible == nil || float64(*told.Possible) >= *r.RequireUseful*float64(told.Of) {
		return nil
	}
	return fault.Useless(*told.Possible, told.Of, told.Output, told.Needs, told.Counts)
}

// estimate shows a plan's price and expected error.
func estimate(r api.QueryRequest, q *prepared, now time.Time) *api.EstimateResponse {
	own, loss, explained := amounts.Released(q.Accounts.Own(), now), q.Charge.Loss, q.plan.Explain()
	e := &api.EstimateResponse{
		Dataset: r.Dataset, Price: amounts.Of(loss), Remaining: amounts.Headroom(own), Affordable: amounts.Affordable(own, loss),
		Confidence: LevelOf(r), Simultaneous: r.Confidence != nil && r.Confidence.Simultaneous,
		Plan: explained.Tree, Notes: q.Delay.Note(append(notesOf(explained.Notes), foretold(q)...)),
		Outputs: make([]api.OutputEstimate, len(explained.Outputs)), Useful: usefulOf(q.plan.Foretell(q.On.People)),
	}
	if q.version != nil {
		asOf := q.asOf()
		e.AsOf, e.DataVersion = &asOf, q.dataVersion
	}
	for i, o := range explained.Outputs {
		e.Outputs[i] = api.OutputEstimate{
			Name: o.Name, Columns: o.Columns, Mechanism: string(o.Parameters.Mechanism), Selection: string(o.Selection),
			Bound: o.Bound, Sensitivity: o.Sensitivity,
			Scale: o.Parameters.Scale, Variance: o.Parameters.Variance, HalfWidth: rational(o.HalfWidth), RankError: decimalOf(o.RankError),
			Price:  amounts.Of(o.Loss),
			Weight: decimalOf(o.Weight),
		}
		for _, at := range o.ShownAt {
			e.Outputs[i].ShownAt = append(e.Outputs[i].ShownAt, api.ShownAt{Probability: at.Probability, Units: at.Units})
		}
	}
	return e
}
