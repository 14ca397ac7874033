package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/fit"
)

// route is one line of the table of routes. A route that is not public names the roles that may use it; one without
// roles lets nobody in.
type route struct {
	method  string
	pattern string
	public  bool
	roles   []auth.Role // any of them
	query   []string    // the query parameters that it takes
	before  handler     // looks before anything is read of the body; nil: nothing does
	handle  handler
}

// routes is everything that the server answers.
func routes() []route {
	analyst, steward := []auth.Role{auth.Analyst}, []auth.Role{auth.Steward}
	readers := []auth.Role{auth.Analyst, auth.Steward}
	buyers := []auth.Role{auth.Analyst, auth.ML}
	return append([]route{
		{method: http.MethodPost, pattern: "/v1/query", roles: analyst, query: append(queryParameters(), "wait"),
			handle: (*server).postQuery},
		{method: http.MethodDelete, pattern: "/v1/query", roles: buyers,
			handle: operation(idempotencyKey, ask(service, (*gateway.Service).Cancel), accepted)}, // it needs no place
		{method: http.MethodGet, pattern: "/v1/query/{job}", roles: analyst, query: []string{"wait"}, handle: (*server).getJob},
		{method: http.MethodDelete, pattern: "/v1/query/{job}", roles: analyst,
			handle: operation(part("job"), ask(service, (*gateway.Service).CancelJob), accepted)},
		{method: http.MethodPost, pattern: "/v1/query/estimate", roles: analyst, query: queryParameters(),
			handle: operation(queryRequest, (*server).estimate, asJSON)},
		{method: http.MethodPost, pattern: "/v1/fit", roles: analyst,
			handle: operation(order[api.FitRequest](), ask(models, (*fit.Service).Fit), sendSold)},
		{method: http.MethodPost, pattern: "/v1/fit/estimate", roles: analyst,
			handle: operation(object[api.FitRequest](maxBody), askFor(models, (*fit.Service).Estimate), asJSON)},
		{method: http.MethodPost, pattern: "/v1/cluster", roles: analyst,
			handle: operation(order[api.ClusterRequest](), ask(models, (*fit.Service).Cluster), sendSold)},
		{method: http.MethodPost, pattern: "/v1/cluster/score", roles: analyst,
			handle: operation(order[api.ScoreRequest](), ask(models, (*fit.Service).Score), sendSold)},
		{method: http.MethodPost, pattern: "/v1/cluster/score/estimate", roles: analyst,
			handle: operation(object[api.ScoreRequest](maxBody), askFor(models, (*fit.Service).EstimateScore), asJSON)},
		{method: http.MethodPost, pattern: "/v1/cluster/estimate", roles: analyst,
			handle: operation(object[api.ClusterRequest](maxBody), askFor(models, (*fit.Service).EstimateCluster), asJSON)},
		{method: http.MethodPost, pattern: "/v1/plans", roles: analyst,
			handle: operation(both(idempotencyKey, object[api.PlanRequest](maxBody)), (*server).registerPlan, sendNewPlan)},
		{method: http.MethodGet, pattern: "/v1/plans/{id}", roles: analyst,
			handle: operation(part("id"), ask(service, (*gateway.Service).Plan), asJSON)},
		{method: http.MethodGet, pattern: "/v1/releases", roles: buyers, query: []string{"cursor"},
			handle: operation(argument("cursor"), ask(service, (*gateway.Service).Releases), asJSON)},
		{method: http.MethodGet, pattern: "/v1/releases/{id}", roles: buyers,
			handle: operation(part("id"), ask(service, (*gateway.Service).Release), sendRelease)},
		{method: http.MethodGet, pattern: "/v1/datasets", roles: readers,
			handle: operation(nothing, (*server).datasets, asJSON)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}", roles: readers,
			handle: operation(part("dataset"), (*server).dataset, asJSON)},
		{method: http.MethodGet, pattern: "/v1/budget", roles: buyers, query: []string{"dataset"},
			handle: operation(argument("dataset"), ask(service, (*gateway.Service).Budget), asJSON)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/policy", roles: steward,
			handle: operation(part("dataset"), (*server).policy, sendPolicy)},
		{method: http.MethodPut, pattern: "/v1/datasets/{dataset}/policy", roles: steward,
			handle: operation(policyChange, (*server).changePolicy, sendApplied)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/policy/draft", roles: steward, query: []string{"unit"},
			handle: operation(both(part("dataset"), argument("unit")), (*server).draftPolicy, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/policy/check", roles: steward,
			handle: operation(both(part("dataset"), policyText), (*server).checkPolicy, asJSON)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/prepare", roles: steward,
			handle: operation(part("dataset"), (*server).preparedCopies, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/prepare", roles: steward,
			handle: operation(both(part("dataset"), object[api.PrepareRequest](maxBody)),
				askAbout(service, (*gateway.Service).PrepareTables), sendBegun)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/prepare/{job}", roles: steward,
			handle: operation(both(part("dataset"), part("job")), (*server).prepareJob, asJSON)},
		{method: http.MethodDelete, pattern: "/v1/datasets/{dataset}/prepare/{job}", roles: steward,
			handle: operation(both(part("dataset"), part("job")), (*server).cancelPrepare, accepted)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/budgets", roles: steward,
			handle: operation(part("dataset"), ask(service, (*gateway.Service).Accounts), asJSON)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/budgets/{account}", roles: steward,
			handle: operation(account(), (*server).account, asJSON)},
		{method: http.MethodPut, pattern: "/v1/datasets/{dataset}/budgets/{account}", roles: steward,
			handle: operation(both(account(), object[api.LimitChange](maxBody)), (*server).setAccount, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/refill", roles: steward,
			handle: operation(both(account(), object[api.Refill](maxBody)), (*server).refill, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/freeze", roles: steward,
			handle: operation(account(), (*server).freeze, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/thaw", roles: steward,
			handle: operation(account(), (*server).thaw, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/reset-failures", roles: steward,
			handle: operation(account(), (*server).resetFailures, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/clock", roles: steward,
			handle: operation(both(part("dataset"), object[api.Clock](maxBody)), askAbout(service, (*gateway.Service).SetBack), asJSON)},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/refusals", roles: steward,
			handle: operation(part("dataset"), (*server).refusals, asJSON)},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/verify", roles: steward,
			handle: operation(part("dataset"), ask(service, (*gateway.Service).Verify), asJSON)},
		{method: http.MethodGet, pattern: "/openapi.json", public: true, handle: getOpenAPI},
		{method: http.MethodGet, pattern: "/healthz", public: true, handle: getHealth},
		{method: http.MethodGet, pattern: "/readyz", public: true, handle: (*server).getReady},
	}, slices.Concat(auditRoutes(), pateRoutes(), collectRoutes(), consoleRoutes(), docsRoutes())...)
}

// auditRoutes show the journal to stewards.
func auditRoutes() []route {
	steward := []auth.Role{auth.Steward}
	return []route{
		{method: http.MethodGet, pattern: "/v1/audit", roles: steward, query: []string{"cursor", "dataset", "requests"},
			handle: operation(journalPage, ask(service, (*gateway.Service).Audit), asJSON)},
		{method: http.MethodGet, pattern: "/v1/audit/export", roles: steward, query: []string{"dataset"}, handle: (*server).export},
	}
}

// name is what requests of a route are counted by: never what a client wrote.
func (r route) name() string {
	if r.method == "" {
		return r.pattern
	}
	return r.method + " " + r.pattern
}

// Routes are the names of all routes, by which requests are counted; the last one is of requests that have none.
func Routes() []string {
	table := routes()
	names := make([]string, 0, len(table)+1)
	for _, r := range table {
		names = append(names, r.name())
	}
	return append(names, noRoute)
}

// noRoute stands for the route of a request that has none.
const noRoute = "(none)"

func (r route) allows(who auth.Principal) bool {
	return slices.ContainsFunc(r.roles, who.Has)
}

// reads reports whether a route changes nothing, whatever becomes of its request.
func (r route) reads() bool {
	return r.method == http.MethodGet || strings.HasSuffix(r.pattern, "/estimate")
}

func (r route) roleText() string {
	names := make([]string, len(r.roles))
	for i, role := range r.roles {
		names[i] = string(role)
	}
	return strings.Join(names, " or ")
}
