package httpapi

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestEnsemblesAreListed: stewards see all ensembles, others those that they may buy of, with their own purchases alone.
func TestEnsemblesAreListed(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	if list, err := f.client("sam:steward").Ensembles(t.Context()); err != nil || len(list.Ensembles) != 0 || list.Ensembles == nil {
		t.Errorf("before there is one: %+v, %v", list, err)
	}
	ensemble(t, f, "pets")
	sealedEnsemble(t, f, "digits", 20)
	five := api.LabelRequest{Queries: queries(0, 5), Mechanism: "gnmax", Sigma: "40"}
	if _, err := f.client("max:ml").Labels(t.Context(), "digits", five, ""); err != nil {
		t.Fatal(err)
	}
	seen := func(token string) map[string]api.Ensemble {
		t.Helper()
		list, err := f.client(token).Ensembles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]api.Ensemble{}
		for _, e := range list.Ensembles {
			byName[e.Ensemble] = e
		}
		if !slices.IsSortedFunc(list.Ensembles, func(a, b api.Ensemble) int { return strings.Compare(a.Ensemble, b.Ensemble) }) {
			t.Errorf("%v", list.Ensembles)
		}
		return byName
	}
	if all := seen("sam:steward"); len(all) != 2 || all["digits"].State != "sealed" || all["digits"].Answered != 5 ||
		all["digits"].Usage == nil || all["pets"].State != "defined" {
		t.Errorf("a steward sees %+v", all)
	}
	for token, bought := range map[string]int64{"mel:ml": 0, "max:ml": 5} {
		if own := seen(token); len(own) != 2 || own["digits"].Answered != bought || own["digits"].Usage != nil || own["digits"].Limit != nil {
			t.Errorf("%s sees %+v", token, own)
		}
	}
	text, version, err := f.client("sam:steward").Policy(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.Contains(line, "{group: ml") })
	if _, err := f.client("sam:steward").SetPolicy(t.Context(), gatewaytest.Dataset, []byte(strings.Join(lines, "")), version); err != nil {
		t.Fatal(err)
	}
	if own := seen("new:ml"); len(own) != 0 {
		t.Errorf("somebody without an account sees %+v", own)
	}
	if _, err := f.client("ana:analyst").Ensembles(t.Context()); codeOfError(err) != fault.CodeAuthForbidden {
		t.Errorf("an analyst: %v", err)
	}
}

// TestCurveOfLabels: ε of up to so many labels, by accountants that look at no vote; the tightest that the ledger uses agrees with the
// estimate for as many labels.
func TestCurveOfLabels(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	mel := f.client("mel:ml")
	n := int64(100)
	for mechanism, r := range map[string]struct {
		request api.LabelEstimateRequest
		lines   []string
	}{
		"gnmax": {api.LabelEstimateRequest{Sigma: "40"}, []string{"rdp_independent", "rdp_independent_tight"}},
		"confident": {api.LabelEstimateRequest{Sigma1: "50", Sigma2: "40", Threshold: "60"},
			[]string{"rdp_independent", "rdp_independent_tight"}},
		"lnmax": {api.LabelEstimateRequest{NoiseScale: "100"},
			[]string{"pure_composition", "strong_composition", "moments_independent", "rdp_independent_tight"}},
	} {
		ask := r.request
		ask.Mechanism, ask.Count, ask.UpTo = mechanism, &n, &n
		e, err := mel.EstimateLabels(t.Context(), "digits", ask)
		if err != nil {
			t.Fatal(err)
		}
		var methods []string
		for _, l := range e.Curve.Lines {
			methods = append(methods, l.Method)
			if len(l.Epsilon) != len(e.Curve.Points) || l.Secret {
				t.Errorf("%s: %+v", mechanism, l)
			}
			for i := 1; i < len(l.Epsilon); i++ {
				if number(t, l.Epsilon[i]) < number(t, l.Epsilon[i-1]) {
					t.Errorf("%s by %s falls: %v", mechanism, l.Method, l.Epsilon)
				}
			}
		}
		last := e.Curve.Lines[len(e.Curve.Lines)-1].Epsilon
		charged := number(t, api.Number(string(e.Epsilon)))
		if got := number(t, last[len(last)-1]); !slices.Equal(methods, r.lines) || e.Curve.Points[len(e.Curve.Points)-1] != n ||
			mechanism == "gnmax" && (got > charged*1.001 || got < charged*0.9) {
			t.Errorf("%s: %v up to %v, %g at the end where the estimate says %g", mechanism, methods, e.Curve.Points, got, charged)
		}
	}
	for _, wrong := range []int64{0, -1, 1 << 40} {
		ask := api.LabelEstimateRequest{Mechanism: "gnmax", Sigma: "40", Count: &n, UpTo: &wrong}
		if _, err := mel.EstimateLabels(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
			t.Errorf("up to %d: %v", wrong, err)
		}
	}
}

// TestDraftOfAPolicy: a draft is made of the schema, for stewards, and with its blanks it is no policy yet.
func TestDraftOfAPolicy(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam := f.client("sam:steward")
	open, err := sam.DraftPolicy(t.Context(), gatewaytest.Dataset, "")
	if err != nil || open.Text != "" && len(open.Candidates) != 1 || !slices.Contains(open.Candidates, "people.id") {
		t.Fatalf("%+v, %v", open, err)
	}
	drafted, err := sam.DraftPolicy(t.Context(), gatewaytest.Dataset, "people.id")
	if err != nil || drafted.Unit != "people.id" || drafted.Blanks < 1 || strings.Count(drafted.Text, "___") < drafted.Blanks ||
		!strings.Contains(drafted.Text, "dataset: "+gatewaytest.Dataset) {
		t.Fatalf("%+v, %v", drafted, err)
	}
	review, err := sam.CheckPolicy(t.Context(), gatewaytest.Dataset, []byte(drafted.Text))
	if err != nil || len(review.Problems) == 0 {
		t.Errorf("%+v, %v", review, err)
	}
	for _, unit := range []string{"people", "people.none", "none.id", "a.b.c.d"} {
		if _, err := sam.DraftPolicy(t.Context(), gatewaytest.Dataset, unit); codeOfError(err) != fault.CodePolicyInvalid {
			t.Errorf("%s: %v", unit, err)
		}
	}
	if _, err := sam.DraftPolicy(t.Context(), "none", ""); codeOfError(err) != fault.CodeUnknownDataset {
		t.Errorf("of no dataset: %v", err)
	}
	if _, err := f.client("ana:analyst").DraftPolicy(t.Context(), gatewaytest.Dataset, ""); codeOfError(err) != fault.CodeAuthForbidden {
		t.Errorf("an analyst: %v", err)
	}
}

// TestEstimatesNameColumns: what is released is said together with the columns of the answer that are computed from it.
func TestEstimatesNameColumns(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for sql, want := range map[string]map[string][]string{
		`SELECT region, avg(age) AS mean, count(*) * 2 AS "a b", 1 AS one FROM people GROUP BY region`: {
			"count(*)": {"mean", "a b"}, "sum(age - 50)": {"mean"}},
		`SELECT region, n FROM (SELECT region, count(*) AS n FROM people GROUP BY region) t WHERE n > 5`: {"count(*)": nil},
	} {
		e, err := f.client("ana:analyst").Estimate(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "0.1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range e.Outputs {
			if columns, ok := want[o.Name]; !ok || !slices.Equal(columns, o.Columns) {
				t.Errorf("%s is of %q, want %q", o.Name, o.Columns, columns)
			}
			delete(want, o.Name)
		}
		if len(want) > 0 {
			t.Errorf("%s: %v is not released", sql, want)
		}
	}
}

// number is a value as a float.
func number(t *testing.T, v api.Value) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(v.String(), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
