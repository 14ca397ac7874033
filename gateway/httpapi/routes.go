package httpapi

import (
	"net/http"
	"strings"

	"noisegate/gateway/auth"
)

// route is one line of the table of routes. A route that is not public names the roles that may use it; one without
// roles lets nobody in.
type route struct {
	method  string
	pattern string
	public  bool
	roles   []auth.Role // any of them
	query   []string    // the query parameters that it takes
	handle  func(*server, *exchange) error
}

// routes is everything that the server answers.
func routes() []route {
	analyst, steward := []auth.Role{auth.Analyst}, []auth.Role{auth.Steward}
	buyers := []auth.Role{auth.Analyst, auth.ML}
	return append([]route{
		{method: http.MethodPost, pattern: "/v1/query", roles: analyst, query: queryParameters(), handle: (*server).postQuery},
		{method: http.MethodDelete, pattern: "/v1/query", roles: buyers, handle: (*server).deleteQuery},
		{method: http.MethodPost, pattern: "/v1/query/estimate", roles: analyst, query: queryParameters(), handle: (*server).postEstimate},
		{method: http.MethodPost, pattern: "/v1/plans", roles: analyst, handle: (*server).postPlan},
		{method: http.MethodGet, pattern: "/v1/plans/{id}", roles: analyst, handle: (*server).getPlan},
		{method: http.MethodGet, pattern: "/v1/releases", roles: buyers, query: []string{"cursor"}, handle: (*server).getReleases},
		{method: http.MethodGet, pattern: "/v1/releases/{id}", roles: buyers, handle: (*server).getRelease},
		{method: http.MethodGet, pattern: "/v1/datasets", roles: analyst, handle: (*server).getDatasets},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}", roles: analyst, handle: (*server).getDataset},
		{method: http.MethodGet, pattern: "/v1/budget", roles: buyers, query: []string{"dataset"}, handle: (*server).getBudget},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/policy", roles: steward, handle: (*server).getPolicy},
		{method: http.MethodPut, pattern: "/v1/datasets/{dataset}/policy", roles: steward, handle: (*server).putPolicy},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/budgets", roles: steward, handle: (*server).getAccounts},
		{method: http.MethodGet, pattern: "/v1/datasets/{dataset}/budgets/{account}", roles: steward, handle: (*server).getAccount},
		{method: http.MethodPut, pattern: "/v1/datasets/{dataset}/budgets/{account}", roles: steward, handle: (*server).putAccount},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/refill", roles: steward, handle: (*server).postRefill},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/freeze", roles: steward, handle: (*server).postFreeze},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/thaw", roles: steward, handle: (*server).postThaw},
		{method: http.MethodPost, pattern: "/v1/datasets/{dataset}/budgets/{account}/reset-failures", roles: steward, handle: (*server).postResetFailures},
		{method: http.MethodGet, pattern: "/v1/audit", roles: steward, query: []string{"cursor", "dataset"}, handle: (*server).getAudit},
		{method: http.MethodGet, pattern: "/openapi.json", public: true, handle: (*server).getOpenAPI},
		{method: http.MethodGet, pattern: "/healthz", public: true, handle: (*server).getHealth},
		{method: http.MethodGet, pattern: "/readyz", public: true, handle: (*server).getReady},
	}, pateRoutes()...)
}

func (r route) allows(who auth.Principal) bool {
	for _, role := range r.roles {
		if who.Has(role) {
			return true
		}
	}
	return false
}

func (r route) roleText() string {
	names := make([]string, len(r.roles))
	for i, role := range r.roles {
		names[i] = string(role)
	}
	return strings.Join(names, " or ")
}
