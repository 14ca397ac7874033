package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/testfiles"
)

func policyValidator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate holds a YAML text against a schema.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(encoded)); err != nil {
		return err
	}
	return schema.Validate(value)
}

// The parser and the schema know the same keys, everywhere in the file: what the parser says that it knows is what the schema describes.
func TestSchemaHasTheParsersKeys(t *testing.T) {
	const odd = "zzzzzzzz: 1"
	file := func(table, budget, rest string) string {
		return "version: 1\ndataset: d\ntables: {t: {" + table + "}}\nbudgets: [{" + budget + "}]\n" + rest
	}
	for place, document := range map[string]string{
		"":                          file("public: true", "dataset: true", odd),
		"timing":                    file("public: true", "dataset: true", "timing: {"+odd+"}"),
		"about":                     file("public: true", "dataset: true", "about: {"+odd+"}"),
		"$defs/table":               file(odd, "dataset: true", ""),
		"$defs/unit":                file("unit: {"+odd+"}", "dataset: true", ""),
		"$defs/column":              file("columns: {c: {"+odd+"}}", "dataset: true", ""),
		"$defs/column/domain/1":     file("columns: {c: {domain: {"+odd+"}}}", "dataset: true", ""),
		"$defs/budget":              file("public: true", odd, ""),
		"$defs/budget/tranche":      file("public: true", "tranche: {"+odd+"}", ""),
		"$defs/budget/rate":         file("public: true", "rate: {"+odd+"}", ""),
		"$defs/pate":                file("public: true", "dataset: true", "pate: {"+odd+"}"),
		"$defs/ensemble":            file("public: true", "dataset: true", "pate: {ensembles: {e: {"+odd+"}}}"),
		"$defs/votes":               file("public: true", "dataset: true", "pate: {votes: [{"+odd+"}]}"),
		"$defs/sanitise/sanitise/1": file("public: true", "dataset: true", "pate: {sanitise: {"+odd+"}}"),
	} {
		known := knownKeys(t, document)
		if described := describedKeys(t, place); !slices.Equal(known, described) {
			t.Errorf("%q: the parser knows %v, the schema %v", place, known, described)
		}
	}
}

// knownKeys is what the parser lists where it meets the odd key.
func knownKeys(t *testing.T, document string) []string {
	t.Helper()
	_, problems := Parse(document)
	for _, problem := range problems {
		var f *fault.Error
		if !errors.As(problem, &f) || !strings.Contains(f.Msg, "zzzzzzzz") {
			continue
		}
		if names, ok := strings.CutPrefix(f.Hint, "known keys: "); ok {
			return strings.Split(names, ", ")
		}
	}
	t.Fatalf("the parser lists no keys: %v", problems)
	return nil
}

// describedKeys are the properties at a place of the schema; a number picks one of several forms.
func describedKeys(t *testing.T, place string) (names []string) {
	t.Helper()
	var at map[string]any
	if err := json.Unmarshal(JSONSchema(), &at); err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(place, "/")
	for i := 0; i < len(steps) && place != ""; i++ {
		switch step := steps[i]; {
		case step == "$defs":
			at = at["$defs"].(map[string]any)
		case step == "1":
			at = at["oneOf"].([]any)[1].(map[string]any)
		case at["properties"] != nil:
			at = at["properties"].(map[string]any)[step].(map[string]any)
		case at[step] != nil:
			at = at[step].(map[string]any)
		}
	}
	for name := range at["properties"].(map[string]any) {
		names = append(names, name)
	}
	slices.Sort(names)
	if at["additionalProperties"] != false {
		t.Errorf("%q: other keys are not refused", place)
	}
	return names
}

// Policies that are accepted validate, those of the tests, the documents and the corpus; slips that an editor should show do not.
func TestPoliciesValidate(t *testing.T) {
	schema := policyValidator(t)
	demo, err := os.ReadFile("../cmd/noisegate/demo_policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"diff": diffBase, "demo": string(demo)}
	for _, name := range []string{"census", "pagila", "pums", "real/shop", "real/star", "real/ward"} {
		texts[name] = testfiles.Own(t, "corpus/"+name+".policy.yaml")
	}
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	texts["docs/policy.md"] = regexp.MustCompile("(?s)```yaml\n(version: 1.*?)```").FindStringSubmatch(string(page))[1]
	for name, text := range texts {
		if _, problems := Parse(text); len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, edit := range [][2]string{
		{"epsilon: 5", "epsilon: ___"}, {"epsilon: 5", "epsilon: [5]"}, {"max_rows: 5", "max_rows: ___"}, {"max_rows: 5", "max_rows: 0"},
		{"form: zcdp", "form: rdp"}, {"keys: private", "keys: public"}, {"expose: false", "expose: no way"}, {"[1, 2]", "[1]"},
		{"dataset: d", "dataset: D"}, {"version: 1", "version: 2"}, {"via: who, to: people", "via: who"}, {"unit: {row: id}", "unit: {}"},
		{"every: 30d", "every: 30"}, {"[laplace]", "[geometric]"}, {"max_groups: 3", "max_group: 3"},
	} {
		text := strings.Replace(diffBase, edit[0], edit[1], 1)
		if _, problems := Parse(text); text == diffBase || len(problems) == 0 {
			t.Fatalf("%v is no slip", edit)
		}
		if validate(t, schema, text) == nil {
			t.Errorf("%v validates", edit)
		}
	}
}
