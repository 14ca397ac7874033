package httpapi

import (
	"net/http"
	"strconv"

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
