package httpapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// TestNotesOfFlatAnswers: CSV and NDJSON have no place for notes, so that a header has them; JSON has its own.
func TestNotesOfFlatAnswers(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ask := call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","sql":"SELECT sum(age) FROM people","epsilon":"0.5"}`, header: map[string][]string{}}
	for kind, has := range map[string]bool{"application/json": false, "text/csv": true, "application/x-ndjson": true} {
		ask.header["Accept"] = []string{kind}
		response, _ := f.do(t, ask)
		var notes []api.Note
		err := json.Unmarshal([]byte(response.Header.Get("Noisegate-Notes")), &notes)
		if response.StatusCode != 200 || (err == nil) != has || has && (notes[0].Code != "clamped" || notes[0].Text == "") {
			t.Errorf("%s: %d %v", kind, response.StatusCode, response.Header)
		}
	}
}

// TestHeaderOfNotes: any text is told in ASCII, and as it was; notes that are too long for a header keep their codes.
func TestHeaderOfNotes(t *testing.T) {
	header := func(notes []api.Note) string {
		t.Helper()
		stored, err := json.Marshal(map[string]any{"notes": notes})
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		(&exchange{w: recorder}).notes(stored)
		return recorder.Header().Get("Noisegate-Notes")
	}
	if got := header(nil); got != "" {
		t.Errorf("no notes: %q", got)
	}
	const text = "ε \"ρ\"\r\n\x7f\U0001F600"
	got := header([]api.Note{{Code: "a", Text: text}})
	if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("%q is not printable ASCII", got)
	}
	var notes []api.Note
	if err := json.Unmarshal([]byte(got), &notes); err != nil || notes[0].Text != text {
		t.Errorf("%q: %v", got, err)
	}
	if got := header([]api.Note{{Code: "a", Text: strings.Repeat("ε", maxNotes)}, {Code: "b", Text: "x"}}); got != `[{"code":"a"},{"code":"b"}]` {
		t.Errorf("long notes: %q", got)
	}
}
