package httpapi

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/labels"
	"noisegate.example/internal/fault"
	"noisegate.example/pate"
)

const (
	maxVotes      = 1 << 30 // of a file of votes, bytes
	uploadTimeout = 10 * time.Minute
)

// pateRoutes are the routes of private labels.
func pateRoutes() []route {
	steward, ml := []auth.Role{auth.Steward}, []auth.Role{auth.ML}
	return []route{
		{method: http.MethodGet, pattern: "/v1/pate", roles: []auth.Role{auth.ML, auth.Steward},
			handle: operation(nothing, (*server).ensembles, asJSON)},
		{method: http.MethodPut, pattern: "/v1/pate/{ensemble}", roles: steward,
			handle: operation(named[api.EnsembleDefinition](maxLarge), askAbout(labelling, (*labels.Service).Define), created)},
		{method: http.MethodGet, pattern: "/v1/pate/{ensemble}", roles: []auth.Role{auth.ML, auth.Steward},
			handle: operation(part("ensemble"), ask(labelling, (*labels.Service).Ensemble), asJSON)},
		{method: http.MethodPut, pattern: "/v1/pate/{ensemble}/votes", roles: steward, query: []string{"layout"}, handle: (*server).putVotes},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/seal", roles: steward,
			handle: operation(part("ensemble"), ask(labelling, (*labels.Service).Seal), asJSON)},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/labels", roles: ml, before: (*server).sold, handle: (*server).postLabels},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/labels/estimate", roles: ml, before: (*server).sold,
			handle: operation(named[api.LabelEstimateRequest](maxLarger), askAbout(labelling, (*labels.Service).Estimate), asJSON)},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/analysis", roles: steward, before: (*server).sold,
			handle: operation(named[api.AnalysisRequest](maxLarger), askAbout(labelling, (*labels.Service).Analyse), asJSON)},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/epsilon", roles: steward, before: (*server).sold,
			handle: operation(named[api.AnalysisRequest](maxLarger), askAbout(labelling, (*labels.Service).SanitisedEpsilon), sendEpsilon)},
		{method: http.MethodPost, pattern: "/v1/pate/{ensemble}/epsilon/estimate", roles: steward, before: (*server).sold,
			handle: operation(named[api.AnalysisRequest](maxLarger), askAbout(labelling, (*labels.Service).EstimateEpsilon), asJSON)},
	}
}

// named reads the name of an ensemble and a JSON body.
func named[T any](limit int64) reader[pair[string, *T]] {
	return both(part("ensemble"), object[T](limit))
}

// sold refuses what is asked of an ensemble that sells no labels before anything is read of the body, which may be long.
func (s *server) sold(x *exchange) error {
	name, err := x.parameter("ensemble")
	if err != nil {
		return err
	}
	return s.labels.CheckSold(x.r.Context(), x.who, name)
}

func (s *server) ensembles(x *exchange, _ struct{}) (*api.EnsembleList, error) {
	return s.labels.Ensembles(x.r.Context(), x.who)
}

// voteFormats are the media types of files of votes.
func voteFormats() map[string]pate.Format {
	return map[string]pate.Format{"application/x-npy": pate.NPY, "text/csv": pate.CSV, "application/x-ndjson": pate.NDJSON}
}

// putVotes reads a file as it comes, or the name of a table that the gateway reads itself.
func (s *server) putVotes(x *exchange) error {
	name, err := x.parameter("ensemble")
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err == nil && kind == "application/json" {
		return s.putVoteTable(x)
	}
	format, known := voteFormats()[kind]
	if err != nil || !known || x.r.Header.Get("Content-Encoding") != "" {
		return fault.RequestMediaType([]string{"application/x-npy", "text/csv", "application/x-ndjson", "application/json"})
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(uploadTimeout)) // the server's own is for small bodies
	ensemble, err := s.labels.LoadVotes(x.r.Context(), x.who, name, labels.VoteFile{
		Format: format, Layout: pate.Layout(x.r.URL.Query().Get("layout")), Body: limited{http.MaxBytesReader(x.w, x.r.Body, maxVotes)},
	})
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, ensemble)
}

// limited is a body that gives every reader a fault at its limit.
type limited struct{ io.Reader }

// Read implements [io.Reader].
func (l limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if _, ok := err.(*http.MaxBytesError); ok { //nolint:errorlint // MaxBytesReader gives it as it is
		err = fault.RequestTooLarge("the body", maxVotes)
	}
	return n, err
}

func (s *server) putVoteTable(x *exchange) error {
	if x.r.URL.RawQuery != "" {
		return fault.RequestUnknownField("layout", []string{"schema", "table", "teacher", "query", "label"})
	}
	return operation(named[api.VoteTable](maxBody), askAbout(labelling, (*labels.Service).LoadVoteTable), asJSON)(s, x)
}

func (s *server) postLabels(x *exchange) error {
	asArray, err := wantsArray(x.r.Header)
	if err != nil {
		return err
	}
	r, err := both(idempotencyKey, named[api.LabelRequest](maxLarger))(x)
	if err != nil {
		return err
	}
	answer, err := s.labels.Buy(x.r.Context(), x.who,
		labels.Request{LabelRequest: *r.second.second, Ensemble: r.second.first, IdempotencyKey: r.first})
	if err != nil {
		return err
	}
	x.amounts(answer.ReleaseID, answer.Spent, answer.Remaining)
	x.receipt(answer.Receipt)
	if asArray {
		return x.labelArray(answer.LabelResponse)
	}
	return asJSON(x, answer.LabelResponse)
}

// wantsArray reports whether Accept names NumPy's format rather than JSON.
func wantsArray(h http.Header) (bool, error) {
	accept := strings.Join(h.Values("Accept"), ",")
	offered := []string{"application/json", "application/x-npy"}
	if strings.TrimSpace(accept) == "" {
		return false, nil
	}
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, err := mime.ParseMediaType(item)
		if i := slices.IndexFunc(offered, func(o string) bool { return err == nil && accepts(kind, o) }); i >= 0 {
			return offered[i] == "application/x-npy", nil
		}
	}
	return false, fault.RequestNotAcceptable(offered)
}

// labelArray sends labels as an array of 32-bit integers in the order of the request, -1 where there is none.
func (x *exchange) labelArray(answer *api.LabelResponse) error {
	labels := make([]int32, len(answer.Labels))
	for i, l := range answer.Labels {
		labels[i] = pate.NoLabel
		if l.Label != nil {
			labels[i] = int32(*l.Label)
		}
	}
	x.send(payload{status: http.StatusOK, kind: "application/x-npy", body: pate.LabelsNPY(labels)})
	return nil
}

func sendEpsilon(x *exchange, answer *labels.EpsilonAnswer) error {
	x.receipt(answer.Receipt)
	return asJSON(x, answer.SanitisedEpsilon)
}
