package httpapi

import (
	"net/http"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/gateway/fit"
)

// order reads a request for a model of rows, and the name that its client gave it.
func order[R any]() reader[fit.Request[R]] {
	read := both(idempotencyKey, object[R](maxBody))
	return func(x *exchange) (fit.Request[R], error) {
		r, err := read(x)
		if err != nil {
			return fit.Request[R]{}, err
		}
		return fit.Request[R]{Body: *r.second, IdempotencyKey: r.first}, nil
	}
}

// sendSold sends what was sold with the headers that answers to queries have.
func sendSold[A any](x *exchange, answer *fit.Answer[A]) error {
	x.w.Header().Set("Noisegate-Replayed", strconv.FormatBool(answer.Sale.Replayed))
	x.amounts(answer.Sale.ReleaseID, answer.Sale.Spent, answer.Sale.Remaining)
	x.receipt(answer.Receipt)
	return x.json(http.StatusOK, answer.Body)
}

func (s *server) postFit(x *exchange, r fit.Request[api.FitRequest]) (*fit.Answer[api.FitResponse], error) {
	return s.fit.Fit(x.r.Context(), x.who, r)
}

func (s *server) estimateFit(x *exchange, r *api.FitRequest) (*api.FitEstimate, error) {
	return s.fit.Estimate(x.r.Context(), x.who, *r)
}

func (s *server) postCluster(x *exchange, r fit.Request[api.ClusterRequest]) (*fit.Answer[api.ClusterResponse], error) {
	return s.fit.Cluster(x.r.Context(), x.who, r)
}

func (s *server) estimateCluster(x *exchange, r *api.ClusterRequest) (*api.ClusterEstimate, error) {
	return s.fit.EstimateCluster(x.r.Context(), x.who, *r)
}

func (s *server) postScore(x *exchange, r fit.Request[api.ScoreRequest]) (*fit.Answer[api.ScoreResponse], error) {
	return s.fit.Score(x.r.Context(), x.who, r)
}

func (s *server) estimateScore(x *exchange, r *api.ScoreRequest) (*api.ScoreEstimate, error) {
	return s.fit.EstimateScore(x.r.Context(), x.who, *r)
}
