package fit

import (
	"context"
	"fmt"
	"slices"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Cluster finds centres of rows, or gives again those that the caller paid for. Its errors are those of [Service.Fit].
func (s *Service) Cluster(ctx context.Context, who auth.Principal, r Request[api.ClusterRequest]) (*Answer[api.ClusterResponse], error) {
	return sell(ctx, s, who, s.clusterOrder(r), func(sale api.Sale, kept *stored) *api.ClusterResponse {
		if kept.Clusters == nil {
			return nil
		}
		return &api.ClusterResponse{Sale: sale, ClusterModel: *kept.Clusters}
	})
}

func (s *Service) clusterOrder(r Request[api.ClusterRequest]) order {
	most := r.Body.AtMost
	r.Body.AtMost = nil // no part of the question: a repetition may name another
	return order{what: "cluster", dataset: r.Body.Dataset, key: r.IdempotencyKey, request: r.Body, atMost: most,
		once: "score centres that are known, which takes one pass",
		plan: func(ctx context.Context, o *gateway.Order, proofs *sqlrewrite.Proofs) (product, error) {
			plan, err := grouping(ctx, r.Body, o, proofs)
			return clustering{plan}, err
		}}
}

// clustering is k-means that is for sale.
type clustering struct{ *sqlrewrite.Clustering }

func (c clustering) Run(ctx context.Context, data Data, sampler *mechanisms.Sampler) (*stored, error) {
	run := c.Start(sampler)
	return ran(ctx, data, run, run.Clustered, c.stored)
}

// stored are clusters as the ledger holds them. Their table is what the history of releases shows: a row for each centre.
func (c clustering) stored(found *sqlrewrite.Clustered) *stored {
	m := &api.ClusterModel{Columns: found.Columns, Iterations: int64(c.Passes()), Rho: api.Decimal(c.Loss().Rho.String()),
		SizeDeviation: found.Deviation}
	s := &stored{Clusters: m}
	s.Columns = []api.Column{{Name: "cluster", Type: "integer", Kind: "key"}}
	for _, name := range append(slices.Clone(found.Columns), "size") {
		s.Columns = append(s.Columns, api.Column{Name: name, Type: "double precision", Kind: "derived"})
	}
	for i, centre := range found.Centres {
		m.Centers, m.Sizes = append(m.Centers, centre.Values), append(m.Sizes, centre.Size)
		row := []api.Value{number(float64(i + 1))}
		for _, x := range centre.Values {
			row = append(row, number(x))
		}
		s.Rows = append(s.Rows, append(row, number(centre.Size)))
		s.Intervals = append(s.Intervals, make([]*api.Bounds, len(row)+1))
	}
	s.Notes = notes(found.Notes)
	return s
}

// Steps of centres: as many as were measured to be of use, and the most that a request may ask for.
const (
	defaultSteps int64 = 4
	maxSteps     int64 = 20
)

// grouping reads a request strictly.
func grouping(ctx context.Context, r api.ClusterRequest, o *gateway.Order, proofs *sqlrewrite.Proofs) (*sqlrewrite.Clustering, error) {
	switch {
	case r.From == "":
		return nil, fault.RequestMissingField("from")
	case len(r.Columns) == 0:
		return nil, fault.RequestMissingField("columns")
	case r.K == 0:
		return nil, fault.RequestMissingField("k")
	case r.K < 2 || r.K > sqlrewrite.MaxCentres:
		return nil, fault.FitInvalid("k", fmt.Sprintf("from 2 to %d", sqlrewrite.MaxCentres))
	}
	steps := defaultSteps
	if r.Iterations != nil {
		if steps = *r.Iterations; steps < 1 || steps > maxSteps {
			return nil, fault.FitInvalid("iterations", fmt.Sprintf("from 1 to %d", maxSteps))
		}
	}
	columns, err := weighted(r.Columns, r.Weights)
	if err != nil {
		return nil, err
	}
	options, err := gateway.GaussianOptions(api.QueryRequest{Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows}, o.Accounts)
	if err != nil {
		return nil, err
	}
	return sqlrewrite.NewClustering(ctx, sqlrewrite.ClusterQuestion{From: r.From, Where: r.Where, Columns: columns, Centres: int(r.K),
		Zone: r.TimeZone}, o.On, sqlrewrite.ClusterOptions{Passes: int(steps), Rho: options.Rho, MaxRows: options.MaxRows, Proofs: proofs})
}

func weighted(texts []string, weights map[string]api.Decimal) (features []sqlrewrite.FitFeature, err error) {
	for _, text := range texts {
		f := sqlrewrite.FitFeature{Expr: text}
		if w, ok := weights[text]; ok {
			if f.Weight, err = mechanisms.ParseDecimal(string(w)); err != nil || f.Weight.Sign() <= 0 {
				return nil, fault.FitInvalid("weights", "a positive decimal number for each text it names")
			}
		}
		features = append(features, f)
	}
	for text := range weights {
		if !slices.Contains(texts, text) {
			return nil, fault.FitInvalid("weights", "positive decimal numbers, by the text of what they weigh")
		}
	}
	return features, nil
}

// EstimateCluster prices a clustering. It costs nothing and touches no row.
func (s *Service) EstimateCluster(ctx context.Context, who auth.Principal, r api.ClusterRequest) (*api.ClusterEstimate, error) {
	planned, quote, err := s.estimated(ctx, who, s.clusterOrder(Request[api.ClusterRequest]{Body: r}))
	if err != nil {
		return nil, err
	}
	plan := planned.(clustering)
	return &api.ClusterEstimate{Quote: quote, People: plan.People(), SizeDeviation: plan.Deviation()}, nil
}
