package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"noisegate/api"
	"noisegate/gateway/fit"
)

func (s *server) postFit(x *exchange, r pair[string, *api.FitRequest]) (*fit.Answer, error) {
	return s.fit.Fit(x.r.Context(), x.who, fit.Request{FitRequest: *r.second, IdempotencyKey: r.first})
}

func sendFit(x *exchange, answer *fit.Answer) error {
	return x.sold(sold{release: answer.ReleaseID, replayed: answer.Replayed, spent: answer.Spent, remaining: answer.Remaining,
		receipt: answer.Receipt, body: answer.FitResponse})
}

// sold is an answer that was paid for.
type sold struct {
	release          string
	replayed         bool
	spent, remaining api.Amounts
	receipt          json.RawMessage
	body             any
}

// sold sends an answer with the headers that answers to queries have.
func (x *exchange) sold(a sold) error {
	x.w.Header().Set("Noisegate-Replayed", strconv.FormatBool(a.replayed))
	x.amounts(a.release, a.spent, a.remaining)
	x.receipt(a.receipt)
	return x.json(http.StatusOK, a.body)
}

func (s *server) estimateFit(x *exchange, r *api.FitRequest) (*api.FitEstimate, error) {
	return s.fit.Estimate(x.r.Context(), x.who, *r)
}
