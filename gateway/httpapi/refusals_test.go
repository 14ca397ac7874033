package httpapi

import (
	"encoding/json"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// Stewards alone see who was refused what.
func TestStewardsSeeRefusals(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	const path = "/v1/datasets/census/refusals"
	for range 2 {
		f.do(t, call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json",
			body: `{"dataset":"census","sql":"SELECT * FROM people","epsilon":"0.1"}`})
	}
	if response, text := f.do(t, call{method: "GET", path: path, token: "ana:analyst"}); response.StatusCode != 403 {
		t.Errorf("an analyst: %d %s", response.StatusCode, text)
	}
	var list api.RefusalList
	response, text := f.do(t, call{method: "GET", path: path, token: "sam:steward"})
	if err := json.Unmarshal([]byte(text), &list); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d %s %v", response.StatusCode, text, err)
	}
	want := api.Refusal{Analyst: "ana", Code: "policy/not-aggregate", Count: 2}
	if len(list.Refusals) != 1 || list.Refusals[0] != want || list.Since.IsZero() {
		t.Errorf("%s", text)
	}
	if response, text := f.do(t, call{method: "GET", path: "/v1/datasets/none/refusals", token: "sam:steward"}); response.StatusCode != 404 {
		t.Errorf("of no dataset: %d %s", response.StatusCode, text)
	}
}
