package httpapi

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/strictjson"
)

// bearer takes the token out of the one Authorization header.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", fault.AuthMissing()
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if len(values) > 1 || !found || !strings.EqualFold(scheme, "Bearer") {
		return "", fault.AuthInvalid(errors.New("httpapi: the Authorization header is not one bearer token"))
	}
	return strings.TrimSpace(token), nil
}

// checkQuery refuses an address that is no text, query parameters that the route does not take, and those that are given twice.
func checkQuery(r *http.Request, known []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.RequestBody("is fine, but the query string of the URL is not")
	}
	isText := func(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) } // as PostgreSQL has it
	if !isText(r.URL.Path) {
		return fault.RequestNotFound("route")
	}
	for name, list := range values {
		if slices.Contains(known, name) && !isText(list[0]) {
			return fault.RequestParameter(name, "UTF-8 without NUL")
		}
		if !slices.Contains(known, name) {
			return fault.RequestUnknownField(name, known)
		}
		if len(list) > 1 {
			return fault.RequestDuplicateField(name)
		}
	}
	return nil
}

// body reads a body of one of the media types, up to a limit, and returns it with its type.
func body(x *exchange, limit int64, types ...string) ([]byte, string, error) {
	kind, parameters, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	charset := parameters["charset"]
	if err != nil || !slices.Contains(types, kind) || charset != "" && !strings.EqualFold(charset, "utf-8") ||
		x.r.Header.Get("Content-Encoding") != "" {
		return nil, "", fault.RequestMediaType(types)
	}
	text, err := x.readBody(limit)
	return text, kind, err
}

// decode reads a JSON object into a struct: exactly its members, each at most once, names to the letter.
func decode[T any](text []byte) (*T, error) {
	if err := strictjson.Check(text); err != nil {
		var twice *strictjson.DuplicateError
		switch {
		case errors.As(err, &twice):
			return nil, fault.RequestDuplicateField(twice.Name)
		case errors.Is(err, strictjson.ErrDepth):
			return nil, fault.RequestBody("nests too deep")
		case errors.Is(err, strictjson.ErrText):
			return nil, notText()
		default:
			return nil, fault.RequestBody("is not one JSON value")
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, fault.RequestBody("is not a JSON object")
	}
	into := new(T)
	return into, fill(fieldsOf(into), members)
}

// notText refuses bytes that are no text: the SQL that was read, stored and answered would be another than the one that was sent.
func notText() error {
	return fault.RequestBody("is not Unicode: it has invalid UTF-8, or half of a surrogate pair")
}

// fill sets fields from members of an object.
func fill(fields []field, members map[string]json.RawMessage) error {
	for name, raw := range members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return fault.RequestUnknownField(name, namesOf(fields))
		}
		if list := reflect.ValueOf(fields[i].to).Elem(); list.Kind() == reflect.Slice && list.Type().Elem().Kind() == reflect.Struct &&
			!reflect.PointerTo(list.Type().Elem()).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			if err := fillList(name, list, raw); err != nil {
				return err
			}
		} else if list.Kind() == reflect.Pointer && list.Type().Elem().Kind() == reflect.Struct &&
			!list.Type().Implements(reflect.TypeFor[json.Unmarshaler]()) {
			if err := fillObject(name, list, raw); err != nil {
				return err
			}
		} else if err := json.Unmarshal(raw, fields[i].to); err != nil {
			return gateway.WrongType(name)
		}
	}
	return nil
}

// fillList sets a list of structs from a list of objects.
func fillList(name string, list reflect.Value, text json.RawMessage) error {
	var objects []map[string]json.RawMessage
	if json.Unmarshal(text, &objects) != nil {
		return gateway.WrongType(name)
	}
	list.Set(reflect.MakeSlice(list.Type(), len(objects), len(objects)))
	for i, members := range objects {
		if err := fill(fieldsOf(list.Index(i).Addr().Interface()), members); err != nil {
			return err
		}
	}
	return nil
}

// fillObject sets a pointer to a struct from an object.
func fillObject(name string, to reflect.Value, text json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return gateway.WrongType(name)
	}
	to.Set(reflect.New(to.Type().Elem()))
	return fill(fieldsOf(to.Interface()), members)
}

// field is one member of a request.
type field struct {
	name string
	to   any // pointer to the struct's field
}

// fieldsOf are the fields of a struct, and those of structs in it that have no name of their own.
func fieldsOf(into any) (fields []field) {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		of, to := v.Type().Field(i), v.Field(i).Addr().Interface()
		if of.Anonymous {
			fields = append(fields, fieldsOf(to)...)
			continue
		}
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		if name == "-" { // it is not what a client says
			continue
		}
		fields = append(fields, field{name: name, to: to})
	}
	return fields
}

func namesOf(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// queryParameters are the members of a query request that a text/plain body leaves to the URL.
func queryParameters() []string {
	return []string{"dataset", "epsilon", "rho", "delta", "mechanism", "selection", "confidence", "dialect", "max_groups", "max_rows",
		"report", "version"}
}

// queryRequest reads a query: a JSON object, or the SQL itself with everything else in the URL.
func queryRequest(x *exchange) (*api.QueryRequest, error) {
	text, kind, err := body(x, maxBody, "application/json", "text/plain")
	if err != nil {
		return nil, err
	}
	parameters := x.r.URL.Query()
	if kind == "application/json" {
		for name := range parameters {
			return nil, fault.RequestUnknownField(name, nil)
		}
		return decode[api.QueryRequest](text)
	}
	if !utf8.Valid(text) {
		return nil, notText()
	}
	request := &api.QueryRequest{SQL: string(text)}
	for _, f := range fieldsOf(request) {
		value := parameters.Get(f.name)
		if value == "" {
			continue
		}
		// Words are JSON strings; numbers stand for themselves.
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, gateway.WrongType(f.name)
		}
		if json.Unmarshal(raw, f.to) != nil && json.Unmarshal([]byte(value), f.to) != nil {
			return nil, gateway.WrongType(f.name)
		}
	}
	return request, nil
}
