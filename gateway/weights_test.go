package gateway

import (
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

func weighted(weights map[string]api.Decimal) Request {
	r := count("1")
	r.SQL, r.Weights = "SELECT count(*) AS n, sum(age) AS s FROM people", weights
	return r
}

// TestWeights: the estimate shows each release's share and weight, the charge is the same sum, and other weights are
// another question.
func TestWeights(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	for _, c := range []struct {
		weights                     map[string]api.Decimal
		nWeight, nPrice, sWeight, s api.Decimal
	}{
		{nil, "", "0.5", "", "0.5"},
		{map[string]api.Decimal{"n": "1e4"}, "10000", "0.5", "1", "0.5"},
		{map[string]api.Decimal{"s": "2.7", "n": "1e3"}, "1000", "0.25", "2.7", "0.75"},
	} {
		e, err := r.Estimate(t.Context(), ana, weighted(c.weights).QueryRequest)
		if err != nil {
			t.Fatal(err)
		}
		n, s := e.Outputs[0], e.Outputs[1]
		if n.Weight != c.nWeight || n.Price.Epsilon != c.nPrice || s.Weight != c.sWeight || s.Price.Epsilon != c.s || e.Price.Epsilon != "1" {
			t.Errorf("%v: %+v %+v", c.weights, n, s)
		}
	}
	r.data.do = twoCounts
	first, err := r.Query(t.Context(), ana, weighted(map[string]api.Decimal{"s": "2"}))
	if err != nil || first.Spent.Epsilon > "1" || first.Spent.Epsilon < "0.999999999998" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := r.Query(t.Context(), ana, weighted(map[string]api.Decimal{"s": "2.0"})); err != nil || !again.Replayed {
		t.Errorf("%+v, %v", again, err)
	}
	if other, err := r.Query(t.Context(), ana, weighted(map[string]api.Decimal{"s": "3"})); err != nil || other.Replayed {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestWeightsAreRefused(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	for name, w := range map[string]map[string]api.Decimal{
		"zero": {"n": "0"}, "negative": {"n": "-1"}, "no number": {"n": "much"}, "null": {"n": ""}, "not finite": {"n": "NaN"},
		"too long": {"n": "1e31"}, "unknown output": {"n": "1", "m": "1"}, "no name": {"": "1"},
	} {
		if _, err := r.Query(t.Context(), ana, weighted(w)); fault.CodeOf(err) != fault.CodeRequestWeights {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := WrongType("weights"); fault.CodeOf(err) != fault.CodeRequestWeights {
		t.Error(err)
	}
	// The price is too small for so uneven a split.
	if _, err := r.Estimate(t.Context(), ana, weighted(map[string]api.Decimal{"n": "1e-30",
		"s": "1e30"}).QueryRequest); fault.CodeOf(err) != fault.CodePriceTooSmall {
		t.Error(err)
	}
}

// TestWeightsAndMaxError: the cheapest price with weights keeps the bound, and costs less than without them.
func TestWeightsAndMaxError(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	price := func(w map[string]api.Decimal) api.Decimal {
		request := weighted(w).QueryRequest
		request.Epsilon, request.MaxError = "", map[string]api.Decimal{"n": "2000", "s": "2000"}
		e, err := r.Estimate(t.Context(), ana, request)
		if err != nil {
			t.Fatal(err)
		}
		return e.Price.Epsilon
	}
	even, weighed := price(nil), price(map[string]api.Decimal{"s": "1"})
	if weighed >= even || len(weighed) < len("0.1") {
		t.Errorf("%s with weights, %s without", weighed, even)
	}
}

func twoCounts() ([]sqlrewrite.ExactRow, error) {
	return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000), mechanisms.SealInt64(40_000)}}}, nil
}
