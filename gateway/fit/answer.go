package fit

import (
	"context"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/sqlrewrite"
)

// stored is a model as the ledger holds it. Its table is what the history of releases shows: a row for each coefficient.
func (r regression) stored(m *sqlrewrite.Fitted) *stored {
	s := &stored{Fit: api.FitModel{Model: string(r.Model()), Method: string(r.Method()),
		Rho: api.Decimal(r.Loss().Rho.String()), Intercept: coefficient(m.Intercept), Coefficients: []api.FitCoefficient{}}}
	if r.Method() == sqlrewrite.FitGradient {
		s.Fit.Iterations = new(int64(r.Passes()))
	}
	s.Columns = []api.Column{{Name: "name", Type: "text", Kind: "key"}, {Name: "value", Type: "double precision", Kind: "derived"}}
	row := func(c sqlrewrite.FitCoefficient) {
		var bounds *api.Bounds
		if c.Interval != nil {
			bounds = &api.Bounds{number(c.Interval[0]), number(c.Interval[1])}
		}
		s.Rows = append(s.Rows, []api.Value{api.Text(c.Name), number(c.Value)})
		s.Intervals = append(s.Intervals, []*api.Bounds{nil, bounds})
	}
	row(m.Intercept)
	for _, c := range m.Coefficients {
		s.Fit.Coefficients = append(s.Fit.Coefficients, coefficient(c))
		row(c)
	}
	s.Notes = notes(m.Notes)
	return s
}

func coefficient(c sqlrewrite.FitCoefficient) api.FitCoefficient {
	return api.FitCoefficient{Name: c.Name, Value: c.Value, Scaled: c.Scaled, Interval: c.Interval}
}

func number(x float64) api.Value { return api.Number(strconv.FormatFloat(x, 'g', -1, 64)) }

func notes(all []sqlrewrite.Note) []api.Note {
	list := make([]api.Note, len(all))
	for i, n := range all {
		list[i] = api.Note{Code: n.Code, Text: n.Text}
	}
	return list
}

// Estimate prices a fit. It costs nothing and touches no row.
func (s *Service) Estimate(ctx context.Context, who auth.Principal, r api.FitRequest) (*api.FitEstimate, error) {
	planned, quote, err := s.estimated(ctx, who, s.fitOrder(Request[api.FitRequest]{Body: r}))
	if err != nil {
		return nil, err
	}
	plan := planned.(regression)
	expected := plan.Expected()
	e := &api.FitEstimate{Quote: quote, Method: string(plan.Method()), People: expected.People}
	for _, d := range expected.Deviations {
		e.Coefficients = append(e.Coefficients, api.FitNoise{Name: d.Name, Deviation: d.Deviation})
	}
	return e, nil
}
