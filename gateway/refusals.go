package gateway

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// maxRefused is the number of analysts of a dataset whose refusals are counted by name. Those of others are counted together, under no
// name.
const maxRefused = 1000

// isRefusal reports whether a code is a question's own: of its text, its price, the policy and the budget. How other work ends, or is under
// way, is told by those that are left out.
func isRefusal(code fault.Code) bool {
	area, _, _ := strings.Cut(string(code), "/")
	return slices.Contains([]string{"request", "sql", "policy", "plan", "budget", "pate"}, area) &&
		!slices.Contains([]fault.Code{fault.CodeRequestInFlight, fault.CodeRequestTooMany, fault.CodeRequestMemory, fault.CodeRequestGone,
			fault.CodeBudgetCancelled, fault.CodeBudgetLostAnswer, fault.CodeBudgetFailures}, code)
}

// Way is in which of two ways something was refused: asked for, or estimated, which pages do while somebody types.
type Way int

const (
	Asked Way = iota
	Estimated
)

// refusals counts the questions, fits, clusterings, purchases of labels and estimates that were refused before a charge, by dataset,
// analyst and code, since the process began. They are functions of texts, policies and budgets, as what their analysts were told; what
// failed after its charge is not among them. Nothing of it is in the ledger. The zero value counts nothing; it is safe for concurrent
// use.
type refusals struct {
	since time.Time
	mu    sync.Mutex
	of    map[string]map[string]map[fault.Code]*[2]int64 // by [Way]
}

func (r *refusals) begin(datasets map[string]Dataset, now time.Time) {
	r.since, r.of = now.UTC(), map[string]map[string]map[fault.Code]*[2]int64{}
	for name := range datasets {
		r.of[name] = map[string]map[fault.Code]*[2]int64{}
	}
}

// count adds a refusal, where the error is one.
func (r *refusals) count(dataset, analyst string, way Way, err error) {
	code := fault.CodeOf(err)
	if !isRefusal(code) || errors.As(err, new(charged)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	byAnalyst := r.of[dataset]
	if byAnalyst == nil {
		return // no such dataset
	}
	if byAnalyst[analyst] == nil && len(byAnalyst) >= maxRefused {
		analyst = ""
	}
	if byAnalyst[analyst] == nil {
		byAnalyst[analyst] = map[fault.Code]*[2]int64{}
	}
	if byAnalyst[analyst][code] == nil {
		byAnalyst[analyst][code] = new([2]int64)
	}
	byAnalyst[analyst][code][way]++
}

// list gives what was counted of a dataset, most first.
func (r *refusals) list(dataset string) []api.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []api.Refusal{}
	for analyst, codes := range r.of[dataset] {
		for code, n := range codes {
			all = append(all, api.Refusal{Analyst: analyst, Code: string(code), Count: n[Asked], Estimates: n[Estimated]})
		}
	}
	slices.SortFunc(all, func(a, b api.Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Estimates, a.Estimates),
			cmp.Compare(a.Analyst, b.Analyst), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// CountRefusal counts a request about a dataset that was refused before a charge; a nil error is no refusal. Callers use it for all sales
// but queries; [Service.Query] counts those.
func (s *Service) CountRefusal(dataset string, who auth.Principal, way Way, err error) {
	s.refusals.count(dataset, who.Subject, way, err)
}

// Refusals lists, for stewards, how many requests and estimates of each analyst this gateway refused before a charge since it started, by
// code. Its error is policy/unknown-dataset.
func (s *Service) Refusals(dataset string) (*api.RefusalList, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	return &api.RefusalList{Dataset: dataset, Since: s.refusals.since, Refusals: s.refusals.list(dataset)}, nil
}
