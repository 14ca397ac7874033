package gateway

import (
	"encoding/json"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

func withParams(sql string, params ...string) Request {
	r := Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: sql, Epsilon: "1"}}
	for _, p := range params {
		r.Params = append(r.Params, json.RawMessage(p))
	}
	return r
}

// A question with parameters is the one with constants: whichever comes second is a replay.
func TestParametersAreConstants(t *testing.T) {
	for _, c := range []struct {
		sql, literal string
		params       []string
	}{
		{"SELECT count(*) FROM people WHERE age > $1", "SELECT count(*) FROM people WHERE age > 30", []string{"30"}},
		{"SELECT count(*) FROM people WHERE age > $2 OR age < $1 OR age = $2",
			"SELECT count(*) FROM people WHERE age > 30.5 OR age < -1 OR age = 30.5",
			[]string{"-1", "30.5"}},
		{"SELECT count(*) FROM people WHERE $1 AND age IS NOT NULL", "SELECT count(*) FROM people WHERE true AND age IS NOT NULL",
			[]string{"true"}},
		{"SELECT count(*) FROM people WHERE age > $1", "SELECT count(*) FROM people WHERE age > 31", []string{`{"type": "Integer", "value": "31"}`}},
		{"SELECT count(*) FROM people WHERE age + 1 > $1", "SELECT count(*) FROM people WHERE age + 1 > '32'", []string{`"32"`}},
	} {
		r := newRig(t)
		first := r.ask(t, principal(t, "ana"), withParams(c.sql, c.params...))
		if again := r.ask(t, principal(t, "ana"), withParams(c.literal)); !again.Replayed || again.ID != first.ID {
			t.Errorf("%s with %v is another question than %s", c.sql, c.params, c.literal)
		}
	}
}

// What is no value of a parameter is refused by its place, and costs nothing.
func TestParametersAreRefused(t *testing.T) {
	r := newRig(t)
	const sql = "SELECT count(*) FROM people WHERE age > $1"
	for _, c := range []struct {
		request Request
		code    fault.Code
	}{
		{withParams(sql), fault.CodeUnsupported},
		{withParams(sql, "1", "2"), fault.CodeRequestParams},
		{withParams(sql+" AND age < $2", "1"), fault.CodeRequestParams},
		{withParams(sql, "[1, 2]"), fault.CodeRequestParams},
		{withParams(sql, `{"type": "json", "value": "{}"}`), fault.CodeRequestParams},
		{withParams(sql, `{"type": "int4", "value": [1]}`), fault.CodeRequestParams},
		{withParams(sql, `{"type": "int4"}`), fault.CodeRequestParams},
		{withParams(sql, `{"type": "int4", "value": "x"}`), fault.CodeRequestParams},
		{withParams(sql, `{"type": "int2", "value": 70000}`), fault.CodeRequestParams},
		{withParams(sql, "true"), fault.CodeTypeMismatch},
		{withParams("SELECT count(* FROM people WHERE age > $1", "1"), fault.CodeSyntax},
		{Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: sql, Epsilon: "1", Dialect: "mysql", Params: []json.RawMessage{[]byte("1")}}},
			fault.CodeRequestParams},
	} {
		_, err := r.Query(t.Context(), principal(t, "ana"), c.request)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s with %s: %v", c.request.SQL, c.request.Params, err)
		}
	}
}
