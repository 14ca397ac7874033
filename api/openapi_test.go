package api_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
)

// wire lists what goes over the wire at the top level; everything else is reached from here.
func wire() []any {
	return []any{api.QueryRequest{}, api.QueryResponse{}, api.QueryJob{},
		api.Cancellation{}, api.EstimateResponse{}, api.DatasetList{}, api.Dataset{},
		api.BudgetResponse{},
		api.LimitChange{}, api.Approval{},
		api.Account{}, api.AccountList{}, api.Failures{}, api.Refill{}, api.Clock{}, api.AuditPage{}, api.RefusalList{}, api.Verification{},
		api.ReleaseList{},
		api.PrepareRequest{}, api.PrepareJob{}, api.PreparedList{},
		api.Release{}, api.PolicyApplied{}, api.PolicyReview{}, api.PolicyDraft{}, api.Health{}, api.Problem{}, api.Result{},
		api.FitRequest{}, api.FitResponse{}, api.FitEstimate{},
		api.ClusterRequest{}, api.ClusterResponse{}, api.ClusterEstimate{},
		api.ScoreRequest{}, api.ScoreResponse{}, api.ScoreEstimate{},
		api.PlanRequest{}, api.Plan{}, api.EnsembleDefinition{}, api.Ensemble{},
		api.EnsembleList{}, api.VoteTable{}, api.LabelRequest{}, api.LabelResponse{},
		api.LabelEstimateRequest{}, api.LabelEstimate{}, api.AnalysisRequest{}, api.Analysis{}, api.SanitisedEpsilon{}, api.EpsilonEstimate{},
		api.CollectionDefinition{}, api.Collection{}, api.CollectionClient{}, api.DeviceReport{}, api.ReportsTaken{}, api.CollectionEstimate{},
		api.Principal{}, api.LoginRequest{},
		api.LoginOffer{}, api.ProviderLogin{}, api.Login{}}
}

// schema is what the drift test looks at.
type schema struct {
	Properties map[string]json.RawMessage
	Required   []string
}

// TestOpenAPIHasEveryField holds the checked-in document against the wire types, both ways.
func TestOpenAPIHasEveryField(t *testing.T) {
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(api.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	schemas := document.Components.Schemas
	types := map[string]reflect.Type{}
	for _, root := range wire() {
		collect(reflect.TypeOf(root), types)
	}
	for name, kind := range types {
		described, ok := schemas[name]
		if !ok {
			t.Errorf("%s is not described", name)
			continue
		}
		delete(schemas, name)
		if kind.Kind() != reflect.Struct || name == "Value" {
			continue
		}
		all, required := members(kind)
		if diff := cmp.Diff(all, slices.Sorted(maps.Keys(described.Properties))); diff != "" {
			t.Errorf("%s: members: %s", name, diff)
		}
		slices.Sort(described.Required)
		if diff := cmp.Diff(required, described.Required); diff != "" {
			t.Errorf("%s: required: %s", name, diff)
		}
	}
	for name := range schemas {
		t.Errorf("%s is described and does not exist", name)
	}
	for _, reference := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllSubmatch(api.OpenAPI(), -1) {
		if _, ok := types[string(reference[1])]; !ok {
			t.Errorf("a reference leads nowhere: %s", reference[0])
		}
	}
}

// collect finds the types of this package that a type is made of.
func collect(t reflect.Type, into map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		if t.Name() == "" {
			collect(t.Elem(), into)
			return
		}
	}
	if t.PkgPath() != reflect.TypeFor[api.Problem]().PkgPath() || t == reflect.TypeFor[time.Time]() {
		return
	}
	if _, known := into[t.Name()]; known {
		return
	}
	into[t.Name()] = t
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			collect(f.Type, into)
		}
	case reflect.Array:
		collect(t.Elem(), into)
	}
}

// members lists the names of a struct's JSON members, sorted: all, and those that are always there.
func members(t reflect.Type) (all, required []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" {
			continue
		}
		all = append(all, name)
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	slices.Sort(all)
	slices.Sort(required)
	return all, required
}

func TestValues(t *testing.T) {
	for want, v := range map[string]api.Value{
		`12`: api.Number("12"), `-3.50`: api.Number("-3.50"), `1e+20`: api.Number("1e+20"), `0`: api.Number("0"),
		`"NaN"`: api.Number("NaN"), `"Infinity"`: api.Number("Infinity"), `"-Infinity"`: api.Number("-Infinity"), `""`: api.Number(""),
		`9007199254740992`: api.Number("9007199254740992"), `"9007199254740993"`: api.Number("9007199254740993"),
		`"-9007199254740993"`:              api.Number("-9007199254740993"),
		`"123456789012345678901234567890"`: api.Number("123456789012345678901234567890"),
		`123456789012345678901234567890.5`: api.Number("123456789012345678901234567890.5"),
		`"a\"\u003cb\u003e"`:               api.Text(`a"<b>`),
		`true`:                             api.Bool(true),
		`null`:                             api.Null(),
	} {
		text, err := json.Marshal(v)
		if err != nil || string(text) != want {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
		var back api.Value
		if err := json.Unmarshal(text, &back); err != nil {
			t.Error(err)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != want {
			t.Errorf("a second time: %s, %v", again, err)
		}
	}
	for _, text := range []string{`{}`, `[1]`} {
		if json.Unmarshal([]byte(text), new(api.Value)) == nil {
			t.Errorf("%s is taken for a value", text)
		}
	}
	if got := api.Text(`a"<b>`).String(); got != `a"<b>` {
		t.Errorf("%s", got)
	}
}

// A level is a number on the wire, whatever else is asked for an object with nothing unknown in it.
func TestConfidence(t *testing.T) {
	together := api.Level(0.9)
	together.Simultaneous = true
	for text, want := range map[string]*api.Confidence{`0.9`: api.Level(0.9), `{"simultaneous":true}`: {Simultaneous: true},
		`{"level":0.9,"simultaneous":true}`: together, `{}`: {}} {
		var got api.Confidence
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := json.Marshal(got); err != nil || string(again) != text {
			t.Errorf("%s again: %s, %v", text, again, err)
		}
	}
	for _, text := range []string{`"high"`, `{"level":"0.9"}`, `{"level":0.9,"together":true}`, `{"Level":0.9}`, `[0.9]`, `true`} {
		if json.Unmarshal([]byte(text), new(api.Confidence)) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestDecimalsKeepTheirText(t *testing.T) {
	for text, want := range map[string]api.Decimal{
		`"0.10"`: "0.10", `0.1000000000000000000000000001`: "0.1000000000000000000000000001", `1e-9`: "1e-9", `-1`: "-1", `null`: "",
		`"abc"`: "abc", `""`: `""`, `true`: "true", `[1]`: "[1]", // no numbers: the gateway refuses them by name
	} {
		var got api.Decimal
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for d, want := range map[api.Decimal]string{"0.1": `"0.1"`, "": `null`} {
		if text, err := json.Marshal(d); err != nil || string(text) != want {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestProblemRoundTrip(t *testing.T) {
	p := api.Problem{Type: "urn:noisegate:problem:budget/exhausted", Title: "exhausted", Status: 422, Detail: "d", Hint: "h",
		Code:     "budget/exhausted",
		Position: &api.Position{Line: 2, Column: 7}, RequestID: "r", Extra: map[string]string{"needed": "1", "affordable_epsilon": "0.5"}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back api.Problem
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Error(diff)
	}
	if got := p.Error(); got != "budget/exhausted: 2:7: d (h)" {
		t.Error(got)
	}
}
