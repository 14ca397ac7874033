package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// world is an ensemble, and who buys from it. Several worlds live in one gateway: their ensembles have the same votes
// (but for the name of a query that nobody asks for), their people the same accounts.
type world struct {
	f    *front
	mark string // ends the names of its ensemble and its people
}

// worlds are ensembles of 20 queries whose accounts, and the dataset's, are never exhausted.
func worlds(t *testing.T, marks ...string) (all []world) {
	t.Helper()
	f := newFront(t, gatewaytest.Options{}, 4)
	lines := []string{"{dataset: true, form: zcdp, rho: 100000}", "{group: ml, per: analyst, form: approx, epsilon: 20, delta: 1e-6}"}
	for _, mark := range marks {
		lines = append(lines,
			fmt.Sprintf("{analyst: laplace%s, form: approx, epsilon: 100, delta: 1e-6, mechanisms: [laplace]}", mark),
			fmt.Sprintf("{analyst: floored%s, form: approx, epsilon: 20, delta: 1e-6, min_epsilon: 0.4}", mark),
			fmt.Sprintf("{analyst: capped%s, form: approx, epsilon: 20, delta: 1e-6, max_epsilon_per_query: 2}", mark))
	}
	f.budgets(t, lines...)
	sam := f.client("sam:steward")
	for _, mark := range marks {
		name := "digits" + mark
		if _, err := sam.DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: digits(),
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "100000"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := sam.LoadVotes(t.Context(), name, "text/csv", "", strings.NewReader(votes(20)+"of"+mark+",100,0,0,0\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := sam.SealEnsemble(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		all = append(all, world{f, mark})
	}
	return all
}

// opaque is what differs between equal answers: names of charges and times.
var opaque = regexp.MustCompile(`"(release_id|request_id|id|defined_at|sealed_at|at)":"[^"]*"|\b01[0-9A-HJKMNP-TV-Z]{24}\b`)

// codeSeen finds the code of a refusal.
var codeSeen = regexp.MustCompile(`budget/[a-z-]+`)

// sees is what a response shows, where it does not say which world it is from.
func (w world) sees(status int, text string) string {
	text = strings.ReplaceAll(opaque.ReplaceAllString(text, ""), w.mark, "")
	return fmt.Sprintf("%d %s", status, text)
}

// buy asks for labels and gives what the caller sees.
func (w world) buy(t *testing.T, who, key string, ask api.LabelRequest) string {
	t.Helper()
	body, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	c := call{method: http.MethodPost, path: "/v1/pate/digits" + w.mark + "/labels", token: who + w.mark + ":ml",
		kind: "application/json", body: string(body), header: http.Header{}}
	if key != "" {
		c.header.Set("Idempotency-Key", key)
	}
	response, text := w.f.do(t, c)
	return w.sees(response.StatusCode, text)
}

// look is all that the caller sees without buying: balance, history with what was stored of each charge, the ensemble,
// an estimate.
func (w world) look(t *testing.T, who string, ask api.LabelRequest) string {
	t.Helper()
	var all strings.Builder
	get := func(path string) string {
		response, text := w.f.do(t, call{method: http.MethodGet, path: path, token: who + w.mark + ":ml"})
		fmt.Fprintln(&all, path[:strings.LastIndexByte(path, '/')], w.sees(response.StatusCode, text))
		return text
	}
	get("/v1/budget?dataset=" + gatewaytest.Dataset)
	get("/v1/pate/digits" + w.mark)
	var page api.ReleaseList
	if err := json.Unmarshal([]byte(get("/v1/releases")), &page); err != nil {
		t.Fatal(err)
	}
	for _, release := range page.Releases {
		get("/v1/releases/" + release.ReleaseID)
	}
	estimate, err := w.f.client(who+w.mark+":ml").EstimateLabels(t.Context(), "digits"+w.mark,
		api.LabelEstimateRequest{Queries: ask.Queries, Mechanism: ask.Mechanism,
			Sigma: ask.Sigma, Sigma1: ask.Sigma1, Sigma2: ask.Sigma2, Threshold: ask.Threshold, NoiseScale: ask.NoiseScale})
	text, _ := json.Marshal(estimate)
	fmt.Fprintln(&all, w.sees(0, string(text)), err)
	return all.String()
}

// steer is what a steward does to an account of every world.
func (w world) steer(t *testing.T, who string, do func(*api.Client, string) error) {
	t.Helper()
	if err := do(w.f.client("sam:steward"), "analyst:"+who+w.mark); err != nil {
		t.Fatal(err)
	}
}

func freezing(t *testing.T, frozen bool) func(*api.Client, string) error {
	return func(sam *api.Client, account string) error {
		_, err := sam.Freeze(t.Context(), gatewaytest.Dataset, account, frozen)
		return err
	}
}

func limiting(t *testing.T, limit api.BudgetLimit) func(*api.Client, string) error {
	return func(sam *api.Client, account string) error {
		_, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, account, limit)
		return err
	}
}

// gnmax asks for labels at σ 5, ρ 0.04 each; confident has checks at ρ 0.02, which fail for each fifth query. All noise
// of these tests is far below what would change an outcome.
func gnmax(keys ...string) api.LabelRequest {
	return api.LabelRequest{Queries: keys, Mechanism: "gnmax", Sigma: "5"}
}

func confident(keys ...string) api.LabelRequest {
	return api.LabelRequest{Queries: keys, Mechanism: "confident", Sigma1: "5", Sigma2: "5", Threshold: "62"}
}

// TestOthersPurchasesDoNotShow: in three worlds, in which others bought none, some and all of the labels that are asked
// for, everything that a caller sees is the same: of sales, refusals below the floor, above a cap, of mechanisms, of
// frozen, poor and blocked accounts, of keys that are used again, and of balances and histories after them.
//
// covers: L5
func TestOthersPurchasesDoNotShow(t *testing.T) {
	all := worlds(t, "-none", "-some", "-all")
	for i, w := range all {
		for _, bought := range [][]string{nil, {"q1", "q2", "q4"}, queries(0, 10)}[i : i+1] {
			if bought == nil {
				continue
			}
			for _, ask := range []api.LabelRequest{gnmax(bought...), confident(bought...), {Queries: bought, Mechanism: "lnmax", NoiseScale: "2"}} {
				if seen := w.buy(t, "other", "", ask); !strings.HasPrefix(seen, "200") {
					t.Fatal(seen)
				}
			}
		}
	}
	same := func(what, want string, see func(world) string) {
		t.Helper()
		first := see(all[0])
		if !strings.Contains(first, want) {
			t.Errorf("%s: %s", what, first)
		}
		for _, w := range all[1:] {
			if seen := see(w); seen != first {
				t.Errorf("%s: in the world %s\n%s\nwhere nobody bought\n%s", what, w.mark, seen, first)
			}
		}
	}
	buys := func(what, want, who, key string, ask api.LabelRequest) {
		t.Helper()
		same(what, want, func(w world) string { return w.buy(t, who, key, ask) })
		same(what+", afterwards", "", func(w world) string { return w.look(t, who, ask) })
	}
	steers := func(who string, do func(*api.Client, string) error) {
		for _, w := range all {
			w.steer(t, who, do)
		}
	}
	buys("a sale", "200 {", "mel", "", gnmax(queries(0, 4)...))
	buys("a part of it again", "200 {", "mel", "key", gnmax(queries(1, 3)...))
	buys("more", "200 {", "mel", "more", gnmax("q1", "q2", "q3", "q5", "q6"))
	buys("more, again", "200 {", "mel", "more", gnmax("q1", "q2", "q3", "q5", "q6"))
	buys("the key for another request", "budget/replay-mismatch", "mel", "more", gnmax("q7"))
	buys("checks", "200 {", "mel", "", confident(queries(0, 6)...))
	buys("Laplace noise", "200 {", "laplace", "", api.LabelRequest{Queries: []string{"q0", "q1"}, Mechanism: "lnmax", NoiseScale: "2"})
	buys("a mechanism that is not allowed", "budget/mechanism", "laplace", "", gnmax("q1", "q2"))
	buys("a mechanism that is not allowed, all of it bought by others", "budget/mechanism", "laplace", "", gnmax("q1"))
	buys("below the floor", "budget/under-floor", "floored", "", gnmax("q1"))
	buys("at the floor", "200 {", "floored", "", gnmax("q1", "q3"))
	buys("below the floor, but for what is owned", "budget/under-floor", "floored", "", gnmax("q1", "q2", "q3"))
	buys("below a cap", "200 {", "capped", "", gnmax("q2"))
	buys("above it", "budget/over-query-cap", "capped", "", gnmax(queries(0, 4)...))
	steers("poor", limiting(t, api.BudgetLimit{Form: "zcdp", Rho: "0.1"}))
	buys("too dear", "budget/exhausted", "poor", "dear", gnmax("q0", "q1", "q3"))
	buys("what fits", "200 {", "poor", "dear", gnmax("q0", "q1"))
	buys("too dear, but for what is owned", "budget/exhausted", "poor", "", gnmax("q0", "q1", "q2"))
	steers("mel", freezing(t, true))
	buys("frozen, what is owned", "200 {", "mel", "", gnmax("q0", "q1"))
	buys("frozen", "budget/frozen", "mel", "", gnmax("q0", "q1", "q7"))
	buys("frozen, all of it bought by others", "budget/frozen", "mel", "", gnmax("q8"))
	steers("mel", freezing(t, false))
	buys("thawed", "200 {", "mel", "", gnmax("q0", "q1", "q7", "q8"))
	all[0].f.Audit(t)
}

var histories = flag.Int("histories", 60, "random histories of TestOthersPurchasesDoNotShowAtRandom; make histories tries 1000")

// TestOthersPurchasesDoNotShowAtRandom: the same of random histories, in pairs of worlds that differ in what others
// bought at any time.
//
// covers: L5
func TestOthersPurchasesDoNotShowAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	all := worlds(t, "-here", "-there")
	codes := map[string]int{}
	for n := range *histories {
		random := rand.New(rand.NewPCG(20, uint64(n)))
		h := history{n: n, random: random, who: []string{fmt.Sprintf("mel%d", n), fmt.Sprintf("poor%d", n), "laplace", "floored",
			"capped"}[random.IntN(5)]}
		if strings.HasPrefix(h.who, "poor") {
			for _, w := range all {
				w.steer(t, h.who, limiting(t, api.BudgetLimit{Form: "zcdp", Rho: api.Decimal(fmt.Sprintf("0.%02d", 10+2*(n%10)))}))
			}
		}
		told, seen := make([]strings.Builder, len(all)), make([]strings.Builder, len(all))
		for range 2 + random.IntN(4) {
			ask, key, frozen := h.ask(), []string{"", fmt.Sprint("first", n), fmt.Sprint("second", n)}[random.IntN(3)], random.IntN(8)
			for i, w := range all {
				if some := h.others(); len(some) > 0 { // in each world something else
					bought := ask
					bought.Queries = some
					w.buy(t, fmt.Sprint("other", n, "-", random.IntN(2)), "", bought)
				}
				if frozen < 2 && !slices.Contains([]string{"laplace", "floored", "capped"}, h.who) && seen[i].Len() > 0 {
					w.steer(t, h.who, freezing(t, frozen == 0))
				}
				sees := w.buy(t, h.who, key, ask)
				codes[codeSeen.FindString(sees)]++
				fmt.Fprintln(&told[i], h.who, key, ask)
				fmt.Fprintln(&seen[i], sees)
			}
		}
		for i, w := range all {
			seen[i].WriteString(w.look(t, h.who, h.ask0()))
		}
		if seen[0].String() != seen[1].String() {
			t.Fatalf("history %d, of\n%s: here\n%s\nthere\n%s", n, told[0].String(), seen[0].String(), seen[1].String())
		}
	}
	all[0].f.Audit(t)
	t.Logf("%d histories: %v", *histories, codes)
	for _, code := range []string{"", "budget/exhausted", "budget/frozen", "budget/mechanism", "budget/under-floor",
		"budget/over-query-cap", "budget/replay-mismatch"} {
		if codes[code] < *histories/20 {
			t.Errorf("%d of %q: it is hardly seen", codes[code], code)
		}
	}
}

// history is one that is made up.
type history struct {
	n      int // its number; no two histories ask the same question
	random *rand.Rand
	who    string
}

// ask is a random request, about queries on which the outcome is certain.
func (h history) ask() api.LabelRequest {
	ask := h.ask0()
	ask.Queries = nil
	for i := range 12 {
		if h.random.IntN(3) == 0 && (i%5 != 4 || ask.Mechanism == "confident") {
			ask.Queries = append(ask.Queries, fmt.Sprintf("q%d", i))
		}
	}
	if len(ask.Queries) == 0 {
		ask.Queries = []string{"q0"}
	}
	return ask
}

// ask0 is a request for some labels with noise that no other history has.
func (h history) ask0() api.LabelRequest {
	number := func(n int) api.Decimal { return api.Decimal(fmt.Sprintf("%d.%04d", n, h.n)) }
	switch h.n % 4 {
	case 0:
		return api.LabelRequest{Queries: queries(0, 4), Mechanism: "confident", Sigma1: number(5), Sigma2: "5", Threshold: "62"}
	case 1:
		return api.LabelRequest{Queries: queries(0, 4), Mechanism: "lnmax", NoiseScale: number(2)}
	default:
		return api.LabelRequest{Queries: queries(0, 4), Mechanism: "gnmax", Sigma: number(5)}
	}
}

// others are the queries that others buy: none, some or all.
func (h history) others() []string {
	switch h.random.IntN(3) {
	case 0:
		return nil
	case 1:
		return []string{"q0", "q1", "q2", "q3", "q5", "q6", "q7", "q8", "q10", "q11"}
	default:
		return h.ask().Queries
	}
}
