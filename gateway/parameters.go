package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/statement"
)

// BoundText is the text of a request with its parameters in their places, as constants: the question is the one that they make, whatever
// way it was written. The door of PostgreSQL's protocol binds by the same function. Its errors are request/* and sql/syntax.
func BoundText(r api.QueryRequest) (string, error) {
	switch {
	case r.SQL == "":
		return "", fault.RequestMissingField("sql")
	case len(r.Params) == 0:
		return r.SQL, nil
	case sqlrewrite.Dialect(r.Dialect) == sqlrewrite.DialectMySQL:
		return "", fault.RequestParams("left out in the dialect mysql: write the values into the text")
	}
	arguments := make([]statement.Argument, len(r.Params))
	for i, text := range r.Params {
		var why string
		if arguments[i], why = argumentOf(text); why != "" {
			return "", fault.RequestParams(fmt.Sprintf("%s: the value of $%d is not", why, i+1))
		}
	}
	if _, err := statement.Bind(r.SQL, arguments[:len(arguments)-1]); err == nil {
		return "", fault.RequestParams(fmt.Sprintf("one for each parameter of the text, which has no $%d", len(arguments)))
	}
	text, err := statement.Bind(r.SQL, arguments)
	var refused *statement.Refusal
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &refused) && refused.IsSyntax():
		return "", fault.Syntax(fault.Position{}, refused.Message)
	case errors.As(err, &refused):
		return "", fault.RequestParams("what the text has places for: " + refused.Message)
	default:
		return "", fault.Internal(err)
	}
}

// parameterTypes are the types that a parameter may name, by PostgreSQL's internal names.
func parameterTypes() map[string]string {
	return map[string]string{"bool": "bool", "boolean": "bool", "int2": "int2", "smallint": "int2", "int4": "int4", "int": "int4",
		"integer": "int4", "int8": "int8", "bigint": "int8", "numeric": "numeric", "decimal": "numeric", "float4": "float4",
		"real": "float4", "float8": "float8",
		"double precision": "float8", "text": "text", "varchar": "text", "date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz",
		"interval": "interval", "uuid": "uuid"}
}

// argumentOf reads a parameter; why is what it must be, where it is not.
func argumentOf(text json.RawMessage) (a statement.Argument, why string) {
	const want = `null, true, false, numbers, strings, or {"type": "date", "value": "2024-01-31"}`
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return a, want
	}
	switch text[0] {
	case '{':
		return typedArgument(text, want)
	case '[':
		return a, "single values, where IN ($1, $2) takes each of a list"
	}
	return scalarArgument(text), ""
}

// scalarArgument is a JSON value without parts. A string takes the type of its context, as a constant in quotes does.
func scalarArgument(text json.RawMessage) statement.Argument {
	var s string
	switch {
	case bytes.Equal(text, []byte("null")):
		return statement.Argument{Type: "text", Null: true}
	case bytes.Equal(text, []byte("true")), bytes.Equal(text, []byte("false")):
		return statement.Argument{Type: "bool", Text: string(text)}
	case json.Unmarshal(text, &s) == nil:
		return statement.Argument{Type: "text", Text: s}
	default:
		return statement.Argument{Type: "numeric", Text: string(text)}
	}
}

func typedArgument(text json.RawMessage, want string) (a statement.Argument, why string) {
	var members map[string]json.RawMessage
	var name string
	if json.Unmarshal(text, &members) != nil || len(members) != 2 || json.Unmarshal(members["type"], &name) != nil ||
		len(members["value"]) == 0 {
		return a, want
	}
	known, ok := parameterTypes()[strings.ToLower(name)]
	if !ok {
		return a, "of a type that questions compute with (boolean, smallint, integer, bigint, numeric, real, double precision, text, date, " +
			"timestamp, timestamptz, interval, uuid)"
	}
	if first := bytes.TrimSpace(members["value"])[0]; first == '{' || first == '[' {
		return a, want
	}
	a = scalarArgument(bytes.TrimSpace(members["value"]))
	a.Type = known
	return a, ""
}

// unplaced is a refusal without its place, which is one in a text that nobody wrote.
func unplaced(err error) error {
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return refusal.At(fault.Position{})
}
