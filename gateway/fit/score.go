package fit

import (
	"context"
	"slices"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Score scores centres, or gives again what the caller paid for. Its errors are those of [Service.Fit].
func (s *Service) Score(ctx context.Context, who auth.Principal, r Request[api.ScoreRequest]) (*Answer[api.ScoreResponse], error) {
	return sell(ctx, s, who, s.scoreOrder(r), func(sale api.Sale, kept *stored) *api.ScoreResponse {
		if kept.Scores == nil {
			return nil
		}
		return &api.ScoreResponse{Sale: sale, ScoreModel: *kept.Scores}
	})
}

func (s *Service) scoreOrder(r Request[api.ScoreRequest]) order {
	most := r.Body.AtMost
	r.Body.AtMost = nil // no part of the question: a repetition may name another
	return order{what: "score", dataset: r.Body.Dataset, key: r.IdempotencyKey, request: r.Body, atMost: most,
		plan: func(ctx context.Context, o *gateway.Order, proofs *sqlrewrite.Proofs) (product, error) {
			plan, err := rating(ctx, r.Body, o, proofs)
			return scoring{plan, r.Body}, err
		}}
}

// scoring are scores that are for sale.
type scoring struct {
	*sqlrewrite.Scoring
	request api.ScoreRequest
}

func (c scoring) Run(ctx context.Context, data Data, sampler *mechanisms.Sampler) (*stored, error) {
	run := c.Start(sampler)
	return ran(ctx, data, run, run.Scored, c.stored)
}

// The scores.
const (
	calinskiHarabasz = "calinski_harabasz"
	silhouette       = "simplified_silhouette"
)

// stored are scores as the ledger holds them. Their table is what the history of releases shows: a row for each score.
func (c scoring) stored(found *sqlrewrite.Scored) *stored {
	s := &stored{Scores: &api.ScoreModel{Scores: []api.ClusterScore{}, Rho: api.Decimal(c.Loss().Rho.String())}}
	s.Columns = []api.Column{{Name: "score", Type: "text", Kind: "key"}, {Name: "value", Type: "double precision", Kind: "derived"}}
	for _, score := range []struct {
		name  string
		asked bool
		found *sqlrewrite.ClusterScore
	}{{calinskiHarabasz, c.wants(calinskiHarabasz), found.CalinskiHarabasz}, {silhouette, c.wants(silhouette), found.Silhouette}} {
		if !score.asked {
			continue
		}
		one, value, bounds := api.ClusterScore{Score: score.name}, api.Null(), (*api.Bounds)(nil)
		if f := score.found; f != nil {
			one.Value, one.Interval = &f.Value, &f.Interval
			value, bounds = number(f.Value), &api.Bounds{number(f.Interval[0]), number(f.Interval[1])}
		}
		s.Scores.Scores = append(s.Scores.Scores, one)
		s.Rows, s.Intervals = append(s.Rows, []api.Value{api.Text(score.name), value}), append(s.Intervals, []*api.Bounds{nil, bounds})
	}
	s.Notes = notes(found.Notes)
	return s
}

// wants reports whether a score is asked for.
func (c scoring) wants(name string) bool { return wants(c.request, name) }

func wants(r api.ScoreRequest, name string) bool {
	return len(r.Score) == 0 || slices.Contains(r.Score, name)
}

// rating reads a request strictly.
func rating(ctx context.Context, r api.ScoreRequest, o *gateway.Order, proofs *sqlrewrite.Proofs) (*sqlrewrite.Scoring, error) {
	switch {
	case r.From == "":
		return nil, fault.RequestMissingField("from")
	case len(r.Columns) == 0:
		return nil, fault.RequestMissingField("columns")
	case len(r.Centers) == 0:
		return nil, fault.RequestMissingField("centers")
	}
	for i, name := range r.Score {
		if name != calinskiHarabasz && name != silhouette || slices.Contains(r.Score[:i], name) {
			return nil, fault.FitInvalid("score", calinskiHarabasz+", "+silhouette+", each once, or absent for both")
		}
	}
	columns, err := weighted(r.Columns, r.Weights)
	if err != nil {
		return nil, err
	}
	priced := api.QueryRequest{Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows}
	if r.Confidence != nil {
		priced.Confidence = api.Level(*r.Confidence)
	}
	options, err := gateway.GaussianOptions(priced, o.Accounts)
	if err != nil {
		return nil, err
	}
	return sqlrewrite.NewScoring(ctx, sqlrewrite.ScoreQuestion{From: r.From, Where: r.Where, Columns: columns, Centres: r.Centers,
		CalinskiHarabasz: wants(r, calinskiHarabasz), Silhouette: wants(r, silhouette)}, o.On,
		sqlrewrite.ScoreOptions{Rho: options.Rho, MaxRows: options.MaxRows, Confidence: options.Confidence, Proofs: proofs})
}

// EstimateScore prices scores. It costs nothing and touches no row.
func (s *Service) EstimateScore(ctx context.Context, who auth.Principal, r api.ScoreRequest) (*api.ScoreEstimate, error) {
	planned, quote, err := s.estimated(ctx, who, s.scoreOrder(Request[api.ScoreRequest]{Body: r}))
	if err != nil {
		return nil, err
	}
	return &api.ScoreEstimate{Quote: quote, SizeDeviation: planned.(scoring).Deviation()}, nil
}
