package httpapi

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"noisegate.example/gateway/gatewaytest"
)

// TestAgeOnEveryRoad: a replay has the time of its release on every road, and in every format; latest is charged, and is no replay.
func TestAgeOnEveryRoad(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	_, made := f.do(t, call{method: "POST", path: "/v1/plans", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","delta":"1e-9","mechanisms":[{"mechanism":"laplace","epsilon":0.1,"count":9}]}`})
	plan := regexp.MustCompile(`"plan_id":"([^"]+)"`).FindStringSubmatch(made)
	if plan == nil {
		t.Fatal(made)
	}
	const query, price = "/v1/query", `"epsilon":"0.1","delta":"1e-9"`
	aged := regexp.MustCompile(`\{"code":"replayed","text":"of \d+ \w+ \d\d:\d\d UTC; later rows are not in it[^"]*"\}`)
	for road, c := range map[string]struct{ path, body, costs string }{
		"a query":          {query, `"sql":"SELECT count(*) FROM people",` + price, "ε 0.1"},
		"parameters":       {query, `"sql":"SELECT count(*) FROM people WHERE age > $1","params":[30],` + price, "ε 0.1"},
		"MySQL":            {query, "\"sql\":\"SELECT count(*) FROM `people` WHERE age > 31\",\"dialect\":\"mysql\"," + price, "ε 0.1"},
		"private keys":     {query, `"sql":"SELECT shop, count(*) FROM visits GROUP BY shop",` + price, "ε 0.1"},
		"a plan":           {query, `"sql":"SELECT count(*) FROM people WHERE age > 32","plan":"` + plan[1] + `"`, ""},
		"waiting":          {query, `"sql":"SELECT count(*) FROM people WHERE age > 33","wait":30,` + price, "ε 0.1"},
		"a model in SQL":   {query, `"sql":"SELECT linregr(income, ARRAY[1, age]) FROM people",` + price, ""},
		"a model":          {"/v1/fit", `"from":"people","where":"age > 34","target":"income","model":"linear","features":["age"],` + price, ""},
		"clusters of rows": {"/v1/cluster", `"from":"people","columns":["age","income"],"k":2,` + price, ""},
	} {
		ask := func(accept, more string) (*http.Response, string) {
			t.Helper()
			response, text := f.do(t, call{method: "POST", path: c.path, token: "ana:analyst", kind: "application/json",
				body: `{"dataset":"census",` + c.body + more + "}", header: http.Header{"Accept": {accept}}})
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", road, text)
			}
			return response, text
		}
		if _, text := ask("application/json", ""); aged.MatchString(text) || strings.Contains(text, `"as_of"`) {
			t.Errorf("%s: what was released now has an age: %s", road, text)
		}
		for _, accept := range []string{"application/json", "application/x-ndjson", "text/csv"} {
			if accept != "application/json" && c.path != query {
				continue
			}
			response, text := ask(accept, "")
			notes, asOf := text, response.Header.Get("Noisegate-As-Of")
			if accept != "application/json" {
				notes = response.Header.Get("Noisegate-Notes")
			}
			note := aged.FindString(notes)
			if note == "" || c.costs != "" && !strings.Contains(strings.ReplaceAll(note, `\u03b5`, "ε"), "latest costs "+c.costs) {
				t.Errorf("%s as %s: the note is %q: %s", road, accept, note, text)
			}
			if at, err := time.Parse(time.RFC3339Nano, asOf); c.path == query && (err != nil || time.Since(at) > time.Hour) ||
				accept == "application/json" && !strings.Contains(text, `"as_of"`) {
				t.Errorf("%s as %s: as of %q: %s", road, accept, asOf, text)
			}
			if c.path == query && road != "a model in SQL" {
				before := f.Entries(t)
				response, text := ask(accept, `,"version":"latest"`)
				if response.Header.Get("Noisegate-Replayed") != "false" || f.Entries(t) == before || aged.MatchString(text) {
					t.Errorf("%s as %s: latest is not read anew: %s", road, accept, text)
				}
			}
		}
	}
	response, text := f.do(t, call{method: "POST", path: query, token: "ana:analyst", kind: "application/json",
		body: fmt.Sprintf(`{"dataset":"census","sql":%q,"version":"latest"}`, "SELECT 1")})
	if response.StatusCode != http.StatusOK || aged.MatchString(text) {
		t.Errorf("what is free: %s", text)
	}
}
