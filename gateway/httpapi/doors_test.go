package httpapi

import (
	"net/http"
	"testing"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestWhatCostsNothingNeedsNoPrice: an answer that is a function of the policy is given without a price, and so is its estimate; no other
// is.
func TestWhatCostsNothingNeedsNoPrice(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for sql, free := range map[string]bool{
		"SELECT DISTINCT region FROM people":                               true,
		"SELECT region FROM people GROUP BY region ORDER BY 1 LIMIT 2":     true,
		"SELECT region, region = 'north' AS n FROM people GROUP BY region": true,
		"SELECT count(*) AS n FROM (SELECT DISTINCT region FROM people) t": true,
		"SELECT DISTINCT region FROM people WHERE region <> 'north'":       true,
		"SELECT region, count(*) FROM people GROUP BY region":              false,
		"SELECT DISTINCT shop FROM visits":                                 false,
		"SELECT region FROM people GROUP BY region HAVING count(*) > 10":   false,
		"SELECT count(*) FROM people WHERE age > 200":                      false,
	} {
		for _, path := range []string{"/v1/query", "/v1/query/estimate"} {
			before := f.Entries(t)
			response, text := f.do(t, call{method: "POST", path: path, token: "ana:analyst", kind: "application/json",
				body: `{"dataset":"census","sql":"` + sql + `"}`})
			switch {
			case free && response.StatusCode != http.StatusOK, !free && codeOf(t, text) != fault.CodeRequestNoPrice:
				t.Errorf("%s: %s: %s", path, sql, text)
			case !free && f.Entries(t) != before:
				t.Errorf("%s: the ledger has another entry", sql)
			}
		}
	}
}

// A path or a parameter that is no text of PostgreSQL's is refused, and no database is blamed for it.
func TestAddressesAreText(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for path, want := range map[string]fault.Code{
		"/v1/releases/%00": fault.CodeRequestNotFound, "/v1/releases/a%00b": fault.CodeRequestNotFound,
		"/v1/plans/%ff": fault.CodeRequestNotFound, "/v1/releases?cursor=%00": fault.CodeRequestBody,
	} {
		if response, text := f.do(t, call{method: "GET", path: path, token: "ana:analyst"}); codeOf(t, text) != want {
			t.Errorf("%s: %d %s", path, response.StatusCode, text)
		}
	}
}

// TestBodiesAreText: what is no Unicode is refused, and not read as another text; a field that clients do not write is none.
func TestBodiesAreText(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	json := func(sql string) call {
		return call{kind: "application/json", body: `{"dataset":"census","epsilon":1,"sql":"` + sql + `"}`}
	}
	plain := func(sql string) call { return call{kind: "text/plain", body: sql} }
	for name, c := range map[string]struct {
		call
		want fault.Code
	}{
		"bytes":            {json("SELECT count(*) FROM people WHERE region = 'no\xffrth'"), fault.CodeRequestBody},
		"half a pair":      {json(`SELECT count(*) FROM people WHERE region = '\ud83d'`), fault.CodeRequestBody},
		"the other half":   {json(`SELECT count(*) FROM people WHERE region = '\ude00\ud83d'`), fault.CodeRequestBody},
		"a pair":           {json(`SELECT count(*) FROM people WHERE region = '\ud83d\ude00'`), ""},
		"an escaped slash": {json(`SELECT count(*) FROM people WHERE region = '\\ud83d'`), ""},
		"bytes as text":    {plain("SELECT count(*) FROM people WHERE region = 'no\xffrth'"), fault.CodeRequestBody},
		"text":             {plain("SELECT count(*) FROM people WHERE region = 'Süd'"), ""},
		"a name of none": {call{kind: "application/json", body: `{"dataset":"census","epsilon":1,"sql":"SELECT 1","-":"Asia/Kolkata"}`},
			fault.CodeRequestUnknownField},
	} {
		c.method, c.path, c.token = "POST", "/v1/query", "ana:analyst"
		if c.kind == "text/plain" {
			c.path += "?dataset=census&epsilon=1"
		}
		before := f.Entries(t)
		if response, text := f.do(t, c.call); codeOf(t, text) != c.want || (response.StatusCode == http.StatusOK) != (c.want == "") {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
		if c.want != "" && f.Entries(t) != before {
			t.Errorf("%s: the ledger has another entry", name)
		}
	}
}
