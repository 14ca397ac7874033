package httpapi

import (
	"net/http"
	"strconv"

	"noisegate/api"
	"noisegate/gateway/fit"
)

func (s *server) postFit(x *exchange, r pair[string, *api.FitRequest]) (*fit.Answer, error) {
	return s.fit.Fit(x.r.Context(), x.who, fit.Request{FitRequest: *r.second, IdempotencyKey: r.first})
}

// sendFit sends a model with the headers that answers to queries have.
func sendFit(x *exchange, answer *fit.Answer) error {
	x.w.Header().Set("Noisegate-Replayed", strconv.FormatBool(answer.Replayed))
	x.amounts(answer.ReleaseID, answer.Spent, answer.Remaining)
	x.receipt(answer.Receipt)
	return x.json(http.StatusOK, answer.FitResponse)
}

func (s *server) estimateFit(x *exchange, r *api.FitRequest) (*api.FitEstimate, error) {
	return s.fit.Estimate(x.r.Context(), x.who, *r)
}
