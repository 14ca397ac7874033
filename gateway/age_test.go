package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// TestLatestIsReadAnew: "version": "latest" over tables is charged each time, and reads the rows, whatever was released before; an estimate
// says so. Only who asks again under an Idempotency-Key is given the same answer.
func TestLatestIsReadAnew(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	latest := count("0.2")
	latest.Version = versionLatest
	for runs := 1; runs <= 3; runs++ {
		answer := r.ask(t, ana, latest)
		if answer.Replayed || answer.Spent.Epsilon != "0.2" || r.data.runs != runs || answer.Note != nil {
			t.Errorf("%+v after %d runs", answer, r.data.runs)
		}
		e, err := r.Estimate(t.Context(), ana, latest.QueryRequest)
		if err != nil || e.Replayed || e.Price.Epsilon != "0.2" {
			t.Errorf("%+v %v", e, err)
		}
	}
	// What it released answers who does not ask for the latest.
	for _, view := range []string{"SELECT count(*) FROM people", "SELECT count(*) AS n FROM people"} {
		q := count("0.2")
		q.SQL = view
		if got := r.ask(t, ana, q); !got.Replayed || r.data.runs != 3 || got.Note == nil {
			t.Errorf("%+v", got)
		}
	}
	latest.IdempotencyKey = "once"
	first, again := r.ask(t, ana, latest), r.ask(t, ana, latest)
	if first.Replayed || !again.Replayed || again.ID != first.ID || r.data.runs != 4 {
		t.Errorf("%+v %+v", first, again)
	}
	latest.IdempotencyKey = ""
	for range 40 {
		if _, err := r.Query(t.Context(), ana, latest); err != nil {
			if fault.CodeOf(err) != fault.CodeBudgetExhausted {
				t.Errorf("%v", err)
			}
			return
		}
	}
	t.Error("latest is asked without end")
}

// TestReplaysSayTheirAge: on each way to a replay the answer has the time of its rows, and a note with it and with the price of a fresh
// one; all else is the stored answer.
func TestReplaysSayTheirAge(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	named := count("0.5")
	named.IdempotencyKey = "k"
	first := r.ask(t, ana, named)
	view, other := count("0.5"), count("0.5")
	view.SQL, other.SQL = "SELECT count(*) AS n FROM people", "select count( * ) from people"
	for way, q := range map[string]Request{"by its key": named, "by its text": count("0.5"), "in other words": other,
		"as another view": view} {
		for range 3 { // planned, remembered
			got := r.ask(t, ana, q)
			if got.Note == nil || !got.Replayed || got.AsOf.IsZero() || got.AsOf.After(r.clock.Now()) {
				t.Fatalf("%s: %+v", way, got)
			}
			want := "of " + got.AsOf.Format("2 Jan 15:04 UTC") + "; later rows are not in it; latest costs ε 0.5"
			if got.Note.Code != "replayed" || got.Note.Text != want {
				t.Errorf("%s: %+v, want %s", way, got.Note, want)
			}
			shown, err := got.Shown()
			var result api.Result
			if err != nil || json.Unmarshal(shown, &result) != nil || result.Notes[len(result.Notes)-1] != *got.Note {
				t.Errorf("%s: %s %v", way, shown, err)
			}
			text, err := json.Marshal(got.Note)
			if err != nil {
				t.Fatal(err)
			}
			if bare := strings.Replace(strings.Replace(string(shown), ","+string(text), "", 1), string(text), "", 1); bare != string(got.Result) {
				t.Errorf("%s: the rest is another\n%s\n%s", way, bare, got.Result)
			}
		}
	}
	if shown, err := first.Shown(); err != nil || first.Note != nil || string(shown) != string(first.Result) {
		t.Errorf("%+v %v", first, err)
	}
}

func TestReplayNote(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		of, now string
		f       fresh
		want    string
	}{
		{"2026-11-03T10:12:31Z", "2026-11-28T00:00:00Z", fresh{price: &api.Amounts{Epsilon: "0.5", Rho: "0.125"}},
			"of 3 Nov 10:12 UTC; later rows are not in it; latest costs ε 0.5"},
		{"2025-11-03T11:12:31+01:00", "2026-11-28T00:00:00Z", fresh{price: &api.Amounts{Rho: "0.005"}},
			"of 3 Nov 2025 10:12 UTC; later rows are not in it; latest costs ρ 0.005"},
		{"2026-11-03T10:12:31Z", "2026-11-28T00:00:00Z", fresh{}, "of 3 Nov 10:12 UTC; later rows are not in it"},
		{"2026-11-03T10:12:31Z", "2026-11-28T00:00:00Z", fresh{copied: true},
			"of 3 Nov 10:12 UTC; later rows are not in it before the prepared copy has a new version"},
	} {
		if got := replayNote(at(c.of), at(c.now), c.f); got.Text != c.want {
			t.Errorf("%s, want %s", got.Text, c.want)
		}
	}
}

// TestOldAnswersCountUsefulRows: of an answer that was stored without, a replay counts them, and so does the release; else it stays.
func TestOldAnswersCountUsefulRows(t *testing.T) {
	const old = `{"columns":[{"name":"k","type":"text","kind":"key","half_width":null},{"name":"n","type":"bigint","kind":"aggregate",` +
		`"half_width":10},{"name":"m","type":"numeric","kind":"derived","half_width":null}],"rows":[["a",40,7],["b",39,7],["c",400,7],["d",400,null]],` +
		`"intervals":[[null,[30,50],[6.5,7.5]],[null,[29,49],[6.5,7.5]],[null,[390,410],null],[null,[390,410],null]],"notes":[]}`
	a := &Answer{Result: json.RawMessage(old), Note: &api.Note{Code: noteReplayed}}
	shown, err := a.Shown()
	if err != nil || !strings.HasSuffix(string(shown), `,"useful":{"rows":2,"of":4}}`) { // a and d; of c a value has no interval
		t.Errorf("%s %v", shown, err)
	}
	a.Result = json.RawMessage(strings.TrimSuffix(old, "}") + `,"useful":{"rows":1,"of":4}}`)
	if shown, err = a.Shown(); err != nil || !strings.HasSuffix(string(shown), `,"useful":{"rows":1,"of":4}}`) {
		t.Errorf("%s %v", shown, err)
	}
	a.Result = json.RawMessage(`{"columns":[{"name":"k","type":"text","kind":"key","half_width":null}],"rows":[["a"]],"intervals":[[null]],"notes":[]}`)
	if shown, err = a.Shown(); err != nil || strings.Contains(string(shown), "useful") {
		t.Errorf("%s %v", shown, err)
	}
}
