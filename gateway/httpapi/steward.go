package httpapi

import (
	"net/http"

	"noisegate/api"
)

func (s *server) postRefill(x *exchange) error {
	dataset, account, err := x.account()
	if err != nil {
		return err
	}
	text, _, err := body(x, maxBody, "application/json")
	if err != nil {
		return err
	}
	refill, err := decode[api.Refill](text)
	if err != nil {
		return err
	}
	changed, err := s.service.Refill(x.r.Context(), x.who, dataset, account, *refill)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, changed)
}

func (s *server) postFreeze(x *exchange) error { return s.freeze(x, true) }

func (s *server) postThaw(x *exchange) error { return s.freeze(x, false) }

func (s *server) freeze(x *exchange, frozen bool) error {
	dataset, account, err := x.account()
	if err != nil {
		return err
	}
	changed, err := s.service.Freeze(x.r.Context(), x.who, dataset, account, frozen)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, changed)
}

func (s *server) postResetFailures(x *exchange) error {
	dataset, account, err := x.account()
	if err != nil {
		return err
	}
	reset, err := s.service.ResetFailures(x.r.Context(), x.who, dataset, account)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, reset)
}

func (s *server) getAudit(x *exchange) error {
	query := x.r.URL.Query()
	page, err := s.service.Audit(x.r.Context(), x.who, query.Get("dataset"), query.Get("cursor"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, page)
}
