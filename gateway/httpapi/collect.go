package httpapi

import (
	"net/http"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/collect"
)

func collectRoutes() []route {
	all := []auth.Role{auth.Analyst, auth.Collector, auth.Steward}
	return []route{
		{method: http.MethodPut, pattern: "/v1/collect/{collection}", roles: []auth.Role{auth.Steward},
			handle: operation(both(part("collection"), object[api.CollectionDefinition](maxLarger)),
				askAbout(collecting, (*collect.Service).Define), asJSON)},
		{method: http.MethodGet, pattern: "/v1/collect/{collection}/client", roles: all,
			handle: operation(part("collection"), (*server).collectionClient, asJSON)},
		{method: http.MethodPost, pattern: "/v1/collect/{collection}/reports", roles: []auth.Role{auth.Collector},
			handle: operation(both(part("collection"), reportLines), (*server).takeReports, asJSON)},
		{method: http.MethodGet, pattern: "/v1/collect/{collection}/estimate", roles: []auth.Role{auth.Analyst, auth.Steward},
			query:  []string{"round", "confidence"},
			handle: operation(both(part("collection"), both(argument("round"), argument("confidence"))), (*server).estimateCollection, asJSON)},
	}
}

// reportLines reads a batch of reports.
func reportLines(x *exchange) ([]byte, error) {
	text, _, err := body(x, maxLarge, "application/x-ndjson")
	return text, err
}

func (s *server) collectionClient(x *exchange, name string) (*api.CollectionClient, error) {
	return s.collect.Client(x.r.Context(), name)
}

func (s *server) takeReports(x *exchange, r pair[string, []byte]) (*api.ReportsTaken, error) {
	return s.collect.Receive(x.r.Context(), x.who, r.first, r.second)
}

func (s *server) estimateCollection(x *exchange, r pair[string, pair[string, string]]) (*api.CollectionEstimate, error) {
	return s.collect.Estimate(x.r.Context(), r.first, r.second.first, r.second.second)
}
