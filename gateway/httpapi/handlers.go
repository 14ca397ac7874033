package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

func (s *server) postQuery(x *exchange) error {
	format, err := formatFor(x.r.Header)
	if err != nil {
		return err
	}
	request, err := both(idempotencyKey, queryRequest)(x)
	if err != nil {
		return err
	}
	asked := gateway.Request{QueryRequest: *request.second, IdempotencyKey: request.first}
	if asked.Wait != nil {
		return s.queryLater(x, asked, format)
	}
	answer, err := s.questions.Query(x.r.Context(), x.who, asked)
	if err != nil {
		return err
	}
	defer answer.Release()
	return x.answer(answer, format)
}

func (s *server) estimate(x *exchange, request *api.QueryRequest) (*api.EstimateResponse, error) {
	return s.questions.Estimate(x.r.Context(), x.who, *request)
}

// idempotencyKey is the header of this name, "" for none.
func idempotencyKey(x *exchange) (string, error) {
	keys := x.r.Header.Values("Idempotency-Key")
	if len(keys) > 1 {
		return "", fault.RequestIdempotencyKey("given once")
	}
	return strings.Join(keys, ""), nil
}

func (s *server) registerPlan(x *exchange, r pair[string, *api.PlanRequest]) (*api.Plan, error) {
	return s.service.RegisterPlan(x.r.Context(), x.who, gateway.PlanRequest{PlanRequest: *r.second, IdempotencyKey: r.first})
}

func sendNewPlan(x *exchange, plan *api.Plan) error {
	x.w.Header().Set("Location", "/v1/plans/"+plan.PlanID)
	return created(x, plan)
}

// sendRelease answers with an entity tag: a release never changes.
func sendRelease(x *exchange, release *api.Release) error {
	tag := strconv.Quote(release.ReleaseID)
	x.w.Header().Set("ETag", tag)
	if matches(x.r.Header.Values("If-None-Match"), tag) {
		x.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return asJSON(x, release)
}

func (s *server) datasets(x *exchange, _ struct{}) (*api.DatasetList, error) {
	return s.service.Datasets(x.who)
}

func (s *server) dataset(_ *exchange, name string) (*api.Dataset, error) {
	return s.service.Dataset(name)
}

func (s *server) policy(x *exchange, dataset string) (gateway.PolicyDocument, error) {
	return s.service.Policy(x.r.Context(), dataset)
}

func sendPolicy(x *exchange, policy gateway.PolicyDocument) error {
	x.w.Header().Set("ETag", versionTag(policy.Version))
	x.send(payload{status: http.StatusOK, kind: "application/yaml", body: policy.Text})
	return nil
}

// policyChange needs to know which version the change replaces, so that two stewards do not undo each other's work unseen.
func policyChange(x *exchange) (gateway.PolicyChange, error) {
	at, err := both(part("dataset"), replacedVersion)(x)
	if err != nil {
		return gateway.PolicyChange{}, err
	}
	approval, err := approved(x)
	if err != nil {
		return gateway.PolicyChange{}, err
	}
	text, err := policyText(x)
	return gateway.PolicyChange{Dataset: at.first, By: x.who.Subject, Roles: x.who.Roles, Groups: x.who.Groups, Text: text,
		Replaces: at.second, Approval: approval}, err
}

// approved reads a second steward's signature under a policy; nil for none.
func approved(x *exchange) (*api.Approval, error) {
	values := x.r.Header.Values(api.ApprovalHeader)
	if len(values) == 0 {
		return nil, nil
	}
	wrong := fault.RequestParameter(api.ApprovalHeader, "what noisegate policy sign prints, once")
	if len(values) > 1 {
		return nil, wrong
	}
	approval, err := decode[api.Approval]([]byte(values[0]))
	if err != nil {
		return nil, wrong
	}
	return approval, nil
}

// policyText is a policy file as the body.
func policyText(x *exchange) ([]byte, error) {
	text, _, err := body(x, maxLarge, "application/yaml", "application/x-yaml", "text/yaml")
	return text, err
}

func (s *server) draftPolicy(x *exchange, r pair[string, string]) (*api.PolicyDraft, error) {
	return s.service.DraftPolicy(x.r.Context(), r.first, r.second)
}

func (s *server) checkPolicy(x *exchange, r pair[string, []byte]) (*api.PolicyReview, error) {
	return s.service.ReviewPolicy(x.r.Context(), r.first, r.second)
}

func (s *server) changePolicy(x *exchange, change gateway.PolicyChange) (*api.PolicyApplied, error) {
	return s.service.SetPolicy(x.r.Context(), change)
}

func sendApplied(x *exchange, applied *api.PolicyApplied) error {
	x.w.Header().Set("ETag", versionTag(applied.Version))
	return asJSON(x, applied)
}

func getOpenAPI(_ *server, x *exchange) error {
	x.send(payload{status: http.StatusOK, kind: "application/json; charset=utf-8", body: api.OpenAPI()})
	return nil
}

// getHealth says that the process answers, whatever it depends on.
func getHealth(_ *server, x *exchange) error { return asJSON(x, api.Health{Status: "ok"}) }

// getReady says whether queries can be answered, as it was found within the last seconds. It names what is not well, and nothing more.
func (s *server) getReady(x *exchange) error {
	health, status := api.Health{Status: "ok", Checks: map[string]string{}}, http.StatusOK
	for name, err := range s.service.Ready() {
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
func replacedVersion(x *exchange) (int64, error) {
	h := x.r.Header
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
