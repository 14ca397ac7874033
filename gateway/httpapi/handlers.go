package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"noisegate/api"
	"noisegate/gateway"
	"noisegate/internal/fault"
)

// parameter is a part of the path, decoded.
func (x *exchange) parameter(name string) (string, error) {
	text := chi.URLParam(x.r, name)
	if x.r.URL.RawPath == "" {
		return text, nil // chi matched the decoded path
	}
	decoded, err := url.PathUnescape(text)
	if err != nil {
		return "", fault.RequestNotFound("such path")
	}
	return decoded, nil
}

func (s *server) postQuery(x *exchange) error {
	format, err := formatFor(x.r.Header)
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	request, err := queryRequest(x)
	if err != nil {
		return err
	}
	answer, err := s.service.Query(x.r.Context(), x.who, gateway.Request{QueryRequest: *request, IdempotencyKey: key})
	if err != nil {
		return err
	}
	return x.answer(answer, format)
}

// deleteQuery takes no place: who has none left must be able to cancel.
func (s *server) deleteQuery(x *exchange) error {
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	cancelled, err := s.service.Cancel(x.r.Context(), x.who, key)
	if err != nil {
		return err
	}
	return x.json(http.StatusAccepted, cancelled)
}

func (s *server) postEstimate(x *exchange) error {
	request, err := queryRequest(x)
	if err != nil {
		return err
	}
	estimate, err := s.service.Estimate(x.r.Context(), x.who, *request)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, estimate)
}

// idempotencyKey is the header of this name, "" for none.
func (x *exchange) idempotencyKey() (string, error) {
	keys := x.r.Header.Values("Idempotency-Key")
	if len(keys) > 1 {
		return "", fault.RequestIdempotencyKey("given once")
	}
	return strings.Join(keys, ""), nil
}

func (s *server) postPlan(x *exchange) error {
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	text, _, err := body(x, maxBody, "application/json")
	if err != nil {
		return err
	}
	request, err := decode[api.PlanRequest](text)
	if err != nil {
		return err
	}
	plan, err := s.service.RegisterPlan(x.r.Context(), x.who, gateway.PlanRequest{PlanRequest: *request, IdempotencyKey: key})
	if err != nil {
		return err
	}
	x.w.Header().Set("Location", "/v1/plans/"+plan.PlanID)
	return x.json(http.StatusCreated, plan)
}

func (s *server) getPlan(x *exchange) error {
	id, err := x.parameter("id")
	if err != nil {
		return err
	}
	plan, err := s.service.Plan(x.r.Context(), x.who, id)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, plan)
}

func (s *server) getReleases(x *exchange) error {
	list, err := s.service.Releases(x.r.Context(), x.who, x.r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, list)
}

// getRelease answers with an entity tag: a release never changes.
func (s *server) getRelease(x *exchange) error {
	id, err := x.parameter("id")
	if err != nil {
		return err
	}
	release, err := s.service.Release(x.r.Context(), x.who, id)
	if err != nil {
		return err
	}
	tag := strconv.Quote(release.ReleaseID)
	x.w.Header().Set("ETag", tag)
	if matches(x.r.Header.Values("If-None-Match"), tag) {
		x.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return x.json(http.StatusOK, release)
}

func (s *server) getDatasets(x *exchange) error {
	list, err := s.service.Datasets()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, list)
}

func (s *server) getDataset(x *exchange) error {
	name, err := x.parameter("dataset")
	if err != nil {
		return err
	}
	dataset, err := s.service.Dataset(name)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, dataset)
}

func (s *server) getBudget(x *exchange) error {
	budget, err := s.service.Budget(x.r.Context(), x.who, x.r.URL.Query().Get("dataset"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, budget)
}

func (s *server) getPolicy(x *exchange) error {
	dataset, err := x.parameter("dataset")
	if err != nil {
		return err
	}
	policy, err := s.service.Policy(x.r.Context(), dataset)
	if err != nil {
		return err
	}
	x.w.Header().Set("ETag", versionTag(policy.Version))
	x.send(payload{status: http.StatusOK, kind: "application/yaml", body: policy.Text})
	return nil
}

// putPolicy needs to know which version the change replaces, so that two stewards do not undo each other's work unseen.
func (s *server) putPolicy(x *exchange) error {
	dataset, err := x.parameter("dataset")
	if err != nil {
		return err
	}
	replaces, err := replacedVersion(x.r.Header)
	if err != nil {
		return err
	}
	text, _, err := body(x, maxPolicy, "application/yaml", "application/x-yaml", "text/yaml")
	if err != nil {
		return err
	}
	applied, err := s.service.SetPolicy(x.r.Context(), gateway.PolicyChange{Dataset: dataset, By: x.who.Subject, Text: text, Replaces: replaces})
	if err != nil {
		return err
	}
	x.w.Header().Set("ETag", versionTag(applied.Version))
	return x.json(http.StatusOK, applied)
}

func (s *server) getAccounts(x *exchange) error {
	dataset, err := x.parameter("dataset")
	if err != nil {
		return err
	}
	list, err := s.service.Accounts(x.r.Context(), x.who, dataset)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, list)
}

func (s *server) getAccount(x *exchange) error {
	dataset, account, err := x.account()
	if err != nil {
		return err
	}
	found, err := s.service.Account(x.r.Context(), dataset, account)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, found)
}

func (s *server) putAccount(x *exchange) error {
	dataset, account, err := x.account()
	if err != nil {
		return err
	}
	text, _, err := body(x, maxBody, "application/json")
	if err != nil {
		return err
	}
	limit, err := decode[api.BudgetLimit](text)
	if err != nil {
		return err
	}
	changed, err := s.service.SetAccount(x.r.Context(), x.who, dataset, account, *limit)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, changed)
}

func (x *exchange) account() (dataset, account string, err error) {
	if dataset, err = x.parameter("dataset"); err != nil {
		return "", "", err
	}
	account, err = x.parameter("account")
	return dataset, account, err
}

func (s *server) getOpenAPI(x *exchange) error {
	x.send(payload{status: http.StatusOK, kind: "application/json; charset=utf-8", body: api.OpenAPI()})
	return nil
}

// getHealth says that the process answers, whatever it depends on.
func (s *server) getHealth(x *exchange) error {
	return x.json(http.StatusOK, api.Health{Status: "ok"})
}

// getReady says whether queries can be answered: ledger and datasets are up. It names what is not, and nothing more.
func (s *server) getReady(x *exchange) error {
	health, status := api.Health{Status: "ok", Checks: map[string]string{}}, http.StatusOK
	for name, err := range s.service.Ready(x.r.Context()) {
		health.Checks[name] = "ok"
		if err != nil {
			health.Checks[name], health.Status, status = "unavailable", "unavailable", http.StatusServiceUnavailable
		}
	}
	return x.json(status, health)
}

// versionTag is the entity tag of a policy.
func versionTag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// replacedVersion reads If-Match: "3", or If-None-Match: * for the first policy.
func replacedVersion(h http.Header) (int64, error) {
	if h.Get("If-None-Match") == "*" && h.Get("If-Match") == "" {
		return 0, nil
	}
	tag := h.Get("If-Match")
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return 0, fault.RequestPrecondition()
	}
	version, err := strconv.ParseInt(tag[1:len(tag)-1], 10, 64)
	if err != nil || version < 1 {
		return 0, fault.RequestPrecondition()
	}
	return version, nil
}

// matches reads If-None-Match: a list of entity tags, weak or not, or *.
func matches(values []string, tag string) bool {
	for _, value := range values {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == tag || candidate == "*" {
				return true
			}
		}
	}
	return false
}

// json sends a value as JSON.
func (x *exchange) json(status int, value any) error {
	text, err := compact(value)
	if err != nil {
		return fault.Internal(err)
	}
	x.send(payload{status: status, kind: "application/json; charset=utf-8", body: text})
	return nil
}
