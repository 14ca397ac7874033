package fit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/statement"
)

// Questions answers what doors are asked in SQL. A statement that asks for a model is the same order as a request to [Service.Fit] or
// [Service.Cluster], so that either pays for both; every other text is for [gateway.Service]. The answer is one row of one column of type
// json, whose text is an [api.FitModel] or an [api.ClusterModel].
type Questions struct{ models *Service }

// Questions are what doors put SQL to.
func (s *Service) Questions() Questions { return Questions{s} }

// asked is a model that a statement asks for.
type asked struct {
	order  order
	column string
	model  func(*stored) any      // nil where something else is stored
	expect func(product) []string // what is expected of its noise
}

// Query is [gateway.Service.Query]. Its errors are those of [Service.Fit] where a model is asked for.
func (q Questions) Query(ctx context.Context, who auth.Principal, r gateway.Request) (*gateway.Answer, error) {
	a, err := q.model(ctx, who, r.QueryRequest)
	if err != nil {
		q.models.gateway.CountRefusal(r.Dataset, who, gateway.Asked, err)
		return nil, err
	}
	if a == nil {
		return q.models.gateway.Query(ctx, who, r)
	}
	a.order.key, a.order.name = r.IdempotencyKey, r.Name
	sold, err := sell(ctx, q.models, who, a.order, a.result)
	if err != nil {
		return nil, err
	}
	answer := &gateway.Answer{ID: sold.ID, Dataset: r.Dataset, Replayed: sold.Sale.Replayed, At: sold.At, Spent: sold.Sale.Spent,
		Remaining: sold.Sale.Remaining, Receipt: sold.Receipt}
	if sold.Sale.AsOf != nil {
		answer.AsOf = *sold.Sale.AsOf
	}
	if answer.Result, err = json.Marshal(sold.Body); err != nil {
		return nil, fault.Internal(err)
	}
	return answer, nil
}

// result is what was sold as the answer to a query; nil where it is something else.
func (a *asked) result(sale api.Sale, kept *stored) *api.Result {
	model := a.model(kept)
	if model == nil {
		return nil
	}
	text, err := json.Marshal(model)
	if err != nil {
		return nil
	}
	return &api.Result{Columns: []api.Column{a.output()}, Rows: [][]api.Value{{api.Text(string(text))}}, Intervals: [][]*api.Bounds{{nil}},
		Notes: sale.Notes}
}

// output is the one column of an answer.
func (a *asked) output() api.Column { return api.Column{Name: a.column, Type: "json", Kind: "derived"} }

// Columns is [gateway.Service.Columns]. It plans a model at a fixed price, so that what the policy refuses is refused here.
func (q Questions) Columns(ctx context.Context, who auth.Principal, r api.QueryRequest, rows bool) ([]api.Column, error) {
	r = api.QueryRequest{Dataset: r.Dataset, SQL: r.SQL, Params: r.Params, Dialect: r.Dialect, TimeZone: r.TimeZone, Rho: "1"}
	a, err := q.model(ctx, who, r)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return q.models.gateway.Columns(ctx, who, r, rows)
	}
	release, err := q.models.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := q.models.prepare(ctx, who, a.order); err != nil {
		return nil, err
	}
	return []api.Column{a.output()}, nil
}

// Estimate is [gateway.Service.Estimate].
func (q Questions) Estimate(ctx context.Context, who auth.Principal, r api.QueryRequest) (*api.EstimateResponse, error) {
	a, err := q.model(ctx, who, r)
	if err != nil {
		q.models.gateway.CountRefusal(r.Dataset, who, gateway.Estimated, err)
		return nil, err
	}
	if a == nil {
		return q.models.gateway.Estimate(ctx, who, r)
	}
	product, quote, err := q.models.estimated(ctx, who, a.order)
	if err != nil {
		return nil, err
	}
	noise := product.Mechanisms()[0]
	e := &api.EstimateResponse{Dataset: quote.Dataset, Price: quote.Price, Remaining: quote.Remaining, Affordable: quote.Affordable,
		Confidence: gateway.LevelOf(r), Notes: quote.Notes, Plan: strings.Join(a.expect(product), "\n"),
		Outputs: []api.OutputEstimate{{Name: a.column, Mechanism: string(noise.Mechanism), Sensitivity: noise.Sensitivity,
			Variance: noise.Variance, HalfWidth: api.Null(), Price: quote.Price}}}
	return e, nil
}

// model reads a request whose text asks for a model; nil: it asks for something else. A text is read in one of the caller's places.
func (q Questions) model(ctx context.Context, who auth.Principal, r api.QueryRequest) (*asked, error) {
	if r.Dialect == string(sqlrewrite.DialectMySQL) || !statement.MayAskForModel(r.SQL) {
		return nil, nil
	}
	release, err := q.models.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	text, err := gateway.BoundText(r)
	if err != nil {
		return nil, err
	}
	m, err := statement.ModelOf(text)
	if m == nil || err != nil {
		return nil, err
	}
	if field := unused(r); field != "" {
		return nil, fault.FitInvalid(field, "left out beside "+m.Function)
	}
	if m.Function == statement.KMeans {
		return q.models.groupsOf(r, m), nil
	}
	return q.models.regressionOf(r, m), nil
}

// unused is a member of a request that says nothing about a model; "": there is none.
func unused(r api.QueryRequest) string {
	for _, m := range []struct {
		name  string
		given bool
	}{
		{"max_error", len(r.MaxError) > 0}, {"weights", len(r.Weights) > 0}, {"plan", r.Plan != ""}, {"report", r.Report != ""},
		{"selection", r.Selection != "" && r.Selection != "auto"}, {"max_groups", r.MaxGroups != nil},
		{"max_rows_total", r.MaxRowsTotal != nil}, {"require_useful", r.RequireUseful != nil}, {"version", r.Version != ""},
		{"simultaneous", r.Confidence != nil && r.Confidence.Simultaneous},
		{"mechanism", r.Mechanism != "" && r.Mechanism != string(sqlrewrite.MechanismAuto) &&
			r.Mechanism != string(sqlrewrite.MechanismGaussian)},
	} {
		if m.given {
			return m.name
		}
	}
	return ""
}

func (s *Service) regressionOf(r api.QueryRequest, m *statement.Model) *asked {
	body := api.FitRequest{Dataset: r.Dataset, From: m.From, Where: m.Where, Target: m.Target, Model: string(sqlrewrite.FitLinear),
		Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows, AtMost: r.AtMost, TimeZone: r.TimeZone}
	if m.Function == statement.LogisticRegression {
		body.Model = string(sqlrewrite.FitLogistic)
	}
	if r.Confidence != nil {
		body.Confidence = r.Confidence.Level
	}
	for _, x := range m.Expressions {
		body.Features = append(body.Features, api.FitFeature{Column: x})
	}
	return &asked{order: s.fitOrder(Request[api.FitRequest]{Body: body}), column: m.Column,
		model: func(kept *stored) any {
			if kept.Fit.Model == "" {
				return nil
			}
			return kept.Fit
		},
		expect: func(p product) []string {
			plan := p.(regression)
			expected := plan.Expected()
			lines := []string{fmt.Sprintf("%s regression by %s: %s of %s", plan.Model(), plan.Method(), passes(plan), m.From),
				tooFew(expected.People)}
			for _, d := range expected.Deviations {
				lines = append(lines, fmt.Sprintf("%s: noise with a standard deviation of %.4g among so many", d.Name, d.Deviation))
			}
			return lines
		}}
}

func (s *Service) groupsOf(r api.QueryRequest, m *statement.Model) *asked {
	body := api.ClusterRequest{Dataset: r.Dataset, From: m.From, Where: m.Where, Columns: m.Expressions, K: m.Centres,
		Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows, AtMost: r.AtMost, TimeZone: r.TimeZone}
	return &asked{order: s.clusterOrder(Request[api.ClusterRequest]{Body: body}), column: m.Column,
		model: func(kept *stored) any {
			if kept.Clusters == nil {
				return nil
			}
			return kept.Clusters
		},
		expect: func(p product) []string {
			plan := p.(clustering)
			return []string{fmt.Sprintf("%d centres by k-means: %s of %s", m.Centres, passes(plan), m.From), tooFew(plan.People()),
				fmt.Sprintf("size: noise with a standard deviation of %.4g", plan.Deviation())}
		}}
}

func passes(p product) string {
	if n := p.Statements(); n > 1 {
		return fmt.Sprintf("%d passes over the rows", n)
	}
	return "a pass over the rows"
}

func tooFew(people int64) string {
	return fmt.Sprintf("fewer than %d people are too few for this price", people)
}
