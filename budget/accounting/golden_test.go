package accounting

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"testing"
)

// vector is a record of testdata/accounting.json, a copy of golden/accounting.json's families that this package answers for
// (internal/archtest compares the copies, and finds families that nobody reads).
type vector struct {
	ID, Family      string
	Inputs, Outputs map[string]any
	RelTol          float64 `json:"rel_tol"`

	place int // in the file
}

// asks says whether the query at a place is among one in four of the record's queries (of all, where parts is 4): neighbouring records ask
// others of theirs.
func (v vector) asks(query, parts int) bool { return (v.place+query)%4 < parts }

// vectors runs a test on every record of a family.
func vectors(t *testing.T, family string, test func(*testing.T, vector)) {
	t.Helper()
	text, err := os.ReadFile("testdata/accounting.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	ran := false
	for place, v := range all {
		if v.Family == family {
			ran, v.place = true, place
			t.Run(v.ID, func(t *testing.T) { test(t, v) })
		}
	}
	if !ran {
		t.Fatalf("no records of %s", family)
	}
}

// rat is an input or output as an exact number; decimals are texts.
func (v vector) rat(t *testing.T, x any) *big.Rat {
	t.Helper()
	switch x := x.(type) {
	case string:
		return rational(t, x)
	case float64:
		return new(big.Rat).SetFloat64(x)
	}
	t.Fatalf("%s: %v is no number", v.ID, x)
	return nil
}

func (v vector) in(t *testing.T, name string) *big.Rat { t.Helper(); return v.rat(t, v.Inputs[name]) }

func (v vector) num(t *testing.T, name string) float64 { t.Helper(); return float(v.in(t, name)) }

func (v vector) out(t *testing.T, name string) float64 {
	t.Helper()
	return float(v.rat(t, v.Outputs[name]))
}

func (v vector) list(t *testing.T, x any) []float64 {
	t.Helper()
	items, ok := x.([]any)
	if !ok {
		t.Fatalf("%s: %v is no list", v.ID, x)
	}
	out := make([]float64, len(items))
	for i, item := range items {
		out[i] = float(v.rat(t, item))
	}
	return out
}

// recordError is the relative error of the records' own numbers: some were found by bisection in float64.
const recordError = 4e-15

// above checks the conservative direction: never below the exact value, and above it by at most a relative slack.
func above(t *testing.T, what string, got, exact, slack float64) {
	t.Helper()
	if math.IsNaN(got) || got < exact-recordError*math.Abs(exact) || got > exact+slack*math.Abs(exact) {
		t.Errorf("%s = %.17g, exact %.17g, off by %+.2g of it, allowed +%.2g", what, got, exact, got/exact-1, slack)
	}
}

// event makes an event of a record.
func event(t testing.TB, make func(*big.Rat) (Event, error), parameter *big.Rat) Event {
	t.Helper()
	e, err := make(parameter)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// events reads the list of a record: {"laplace": [{eps, count}], "gaussian": [{sigma, count}]}, or "mechanisms".
func (v vector) events(t *testing.T) []Repeated {
	t.Helper()
	var list []Repeated
	add := func(kind string, parameter *big.Rat, times any) {
		kinds := map[string]func(*big.Rat) (Event, error){"laplace": continuousLaplaceEvent, "gaussian": continuousGaussianEvent,
			"pure": PureEvent, "zcdp": ZCDPEvent}
		if kinds[kind] == nil {
			t.Fatalf("%s: unknown mechanism %s", v.ID, kind)
		}
		list = append(list, Repeated{event(t, kinds[kind], parameter), v.rat(t, times).Num().Int64()})
	}
	items := func(x any) []map[string]any {
		var out []map[string]any
		some, _ := x.([]any)
		for _, item := range some {
			out = append(out, item.(map[string]any))
		}
		return out
	}
	for _, m := range items(v.Inputs["mechanisms"]) {
		add(m["mechanism"].(string), v.rat(t, m["param"]), m["count"])
	}
	for _, m := range items(v.Inputs["laplace"]) {
		add("laplace", v.rat(t, m["eps"]), m["count"])
	}
	for _, m := range items(v.Inputs["gaussian"]) {
		add("gaussian", v.rat(t, m["sigma"]), m["count"])
	}
	if len(list) == 0 {
		t.Fatalf("%s: no events", v.ID)
	}
	return list
}

func (v vector) times(t *testing.T) int64 { t.Helper(); return v.in(t, "count").Num().Int64() }

func newPLD(t testing.TB, list ...Repeated) *PLD {
	t.Helper()
	p, err := NewPLD(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Slacks of the PLD accountant above the exact value, relative. The grid costs n·(12/points)² in ε and, because
// dδ/δ is about -θ·dε, some tens of times as much in δ.
const (
	pldEpsilonSlack = 1e-4
	pldDeltaSlack   = 1e-3
)

// exact checks a PLD against exact curves, at the queries that the record asks.
func (v vector) exact(t *testing.T, p *PLD, parts int) {
	t.Helper()
	deltas := v.list(t, v.Outputs["delta_exact"])
	for i, eps := range v.list(t, v.Inputs["eps_query"]) {
		if !v.asks(i, parts) {
			continue
		}
		// Gaussian losses are cut off where 10⁻²⁶ are left; the ledger's unit of δ is 10⁻¹⁸.
		above(t, fmt.Sprintf("delta(%g)", eps), p.delta(eps), deltas[i], max(v.RelTol, pldDeltaSlack, 1e-24/deltas[i]))
	}
	if v.Outputs["eps_exact"] == nil {
		return
	}
	epsilons := v.list(t, v.Outputs["eps_exact"])
	for i, delta := range v.list(t, v.Inputs["delta_query"]) {
		if !v.asks(i, parts) {
			continue
		}
		above(t, fmt.Sprintf("epsilon(%g)", delta), p.epsilon(delta), epsilons[i], max(v.RelTol, pldEpsilonSlack))
	}
}

// bracket checks a PLD against another accountant's lower and upper bounds, whose tails were cut at 1e-15, at the queries that the record
// asks.
func (v vector) bracket(t *testing.T, p *PLD, parts int) {
	t.Helper()
	check := func(what string, at []float64, f func(float64) float64, low, high []float64, slack float64) {
		for i, x := range at {
			if !v.asks(i, parts) {
				continue
			}
			if got := f(x); got < low[i]*(1-1e-9)-2e-15 || got > high[i]*(1+slack) {
				t.Errorf("%s(%g) = %.12g, not in [%.12g, %.12g]", what, x, got, low[i], high[i])
			}
		}
	}
	check("delta", v.list(t, v.Inputs["eps_query"]), p.delta, v.list(t, v.Outputs["delta_lower"]), v.list(t, v.Outputs["delta_upper"]), 1e-3)
	check("epsilon", v.list(t, v.Inputs["delta_query"]), p.epsilon, v.list(t, v.Outputs["eps_lower"]), v.list(t, v.Outputs["eps_upper"]), 1e-4)
}
