package statement

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// message is one of section 1 of the shared corpus: what a client sent, and what becomes of it.
type message struct{ id, expect, client, protocol, raw, text string }

// corpus reads section 1. In text, {oid:NAME} is a number, as in the messages that were recorded; raw is for a twin.
func corpus(t testing.TB) (all []message) {
	t.Helper()
	content, err := os.ReadFile(testfiles.Fetched(t, "corpus/catalog_queries.sql"))
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(content), "-- Section 2")
	heading := regexp.MustCompile(`(?m)^-- \[(W\d+)\] (\w+) \| ([^|]*) \| (\w+) .*\n`)
	places := heading.FindAllStringSubmatchIndex(section, -1)
	for i, at := range places {
		end := len(section)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		raw := strings.TrimSpace(section[at[1]:end])
		field := func(n int) string { return section[at[2*n]:at[2*n+1]] }
		all = append(all, message{field(1), field(2), field(3), field(4), raw,
			regexp.MustCompile(`\{oid:\w+\}`).ReplaceAllString(raw, "16384")})
	}
	if len(all) < 300 {
		t.Fatalf("%d messages of the corpus, want its 338", len(all))
	}
	return all
}

// TestCorpusKinds: each recorded message of a client is what the corpus says.
func TestCorpusKinds(t *testing.T) {
	want := map[string]Kind{"answer": Catalog, "session": Session, "data": Data}
	for _, m := range corpus(t) {
		all, err := Split(m.text, demo())
		if err != nil {
			t.Errorf("%s: %v", m.id, err)
			continue
		}
		found := false
		for _, s := range all {
			kind := s.Kind
			if d, ok := s.Command.(Declare); ok {
				kind = d.Body.Kind
			}
			found = found || kind == want[m.expect]
			if kind != want[m.expect] && kind != Session {
				t.Errorf("%s: %v, want %s: %v", m.id, kind, m.expect, s.Refusal)
			}
		}
		if !found {
			t.Errorf("%s: no statement is %s", m.id, m.expect)
		}
	}
}
