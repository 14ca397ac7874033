package httpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// TestOpenAPIHasEveryRoute holds the checked-in document against the table of routes, both ways.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	type operation struct {
		Roles      []string              `json:"x-roles"`
		Security   []map[string][]string `json:"security"`
		Parameters []struct{ Name, In string }
	}
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]operation
	}
	if err := json.Unmarshal(api.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(document.OpenAPI, "3.1.") {
		t.Errorf("openapi is %s", document.OpenAPI)
	}
	for _, r := range routes() {
		o, ok := document.Paths[r.pattern][strings.ToLower(r.method)]
		if !ok {
			t.Errorf("%s %s is not described", r.method, r.pattern)
			continue
		}
		delete(document.Paths[r.pattern], strings.ToLower(r.method))
		var roles, query, path []string
		for _, role := range r.roles {
			roles = append(roles, string(role))
		}
		for _, p := range o.Parameters {
			switch p.In {
			case "query":
				query = append(query, p.Name)
			case "path":
				path = append(path, "{"+p.Name+"}")
			}
		}
		inPattern := regexp.MustCompile(`\{\w+\}`).FindAllString(r.pattern, -1)
		if !slices.Equal(roles, o.Roles) || !slices.Equal(query, r.query) || !slices.Equal(path, inPattern) ||
			(len(o.Security) == 0) != r.public {
			t.Errorf("%s %s: the document says roles %v, query %v, path %v, security %v", r.method, r.pattern, o.Roles, query, path, o.Security)
		}
	}
	for path, methods := range document.Paths {
		for method := range methods {
			t.Errorf("%s %s is described and does not exist", method, path)
		}
	}
}

// TestStatusOfEveryCode holds the statuses against the table of docs/errors.md, which archtest holds against the codes.
func TestStatusOfEveryCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^\\| `([a-z]+(?:/[a-z-]+)?)` \\| (\\d{3}) \\|").FindAllStringSubmatch(string(text), -1)
	if len(lines) < 50 {
		t.Fatalf("only %d codes found", len(lines))
	}
	for _, line := range lines {
		want, err := strconv.Atoi(line[2])
		if err != nil {
			t.Fatal(err)
		}
		if got := statusOf(fault.Code(line[1])); got != want {
			t.Errorf("%s: %d, documented as %d", line[1], got, want)
		}
	}
	if got := statusOf("weather/rain"); got != 500 {
		t.Errorf("an unknown code gives %d", got)
	}
}

// TestUnknownCodeIsOpaque: an error of an area that nobody thought of does not show its text.
func TestUnknownCodeIsOpaque(t *testing.T) {
	p := problemOf(&fault.Error{Code: "weather/rain", Msg: "secret"}, "id")
	if p.Code != string(fault.CodeInternal) || p.Status != 500 || strings.Contains(p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
}
