package httpapi

import (
	"noisegate/api"
	"noisegate/gateway/fit"
)

func (s *server) postCluster(x *exchange, r pair[string, *api.ClusterRequest]) (*fit.ClusterAnswer, error) {
	return s.fit.Cluster(x.r.Context(), x.who, fit.ClusterRequest{ClusterRequest: *r.second, IdempotencyKey: r.first})
}

func sendCluster(x *exchange, answer *fit.ClusterAnswer) error {
	return x.sold(sold{release: answer.ReleaseID, replayed: answer.Replayed, spent: answer.Spent, remaining: answer.Remaining,
		receipt: answer.Receipt, body: answer.ClusterResponse})
}

func (s *server) estimateCluster(x *exchange, r *api.ClusterRequest) (*api.ClusterEstimate, error) {
	return s.fit.EstimateCluster(x.r.Context(), x.who, *r)
}

func (s *server) postScore(x *exchange, r pair[string, *api.ScoreRequest]) (*fit.ScoreAnswer, error) {
	return s.fit.Score(x.r.Context(), x.who, fit.ScoreRequest{ScoreRequest: *r.second, IdempotencyKey: r.first})
}

func sendScore(x *exchange, answer *fit.ScoreAnswer) error {
	return x.sold(sold{release: answer.ReleaseID, replayed: answer.Replayed, spent: answer.Spent, remaining: answer.Remaining,
		receipt: answer.Receipt, body: answer.ScoreResponse})
}

func (s *server) estimateScore(x *exchange, r *api.ScoreRequest) (*api.ScoreEstimate, error) {
	return s.fit.EstimateScore(x.r.Context(), x.who, *r)
}
