package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"noisegate.example/cmd/noisegate/internal/config"
)

// printedSchema compiles what a command prints.
func printedSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	out, errs, code := runText(t, "schema", name)
	if code != exitOK {
		t.Fatal(errs)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validates(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(encoded)); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// The printed schemas describe the files that are read: configurations that are accepted validate, slips do not.
func TestSchemas(t *testing.T) {
	printed := printedSchema(t, "config")
	const good = `http: {listen: "127.0.0.1:8080", insecure: false}
control: {dsn: "host=/tmp user=noisegate"}
auth: {issuer: dev, audience: noisegate, keys: {hs256_file: /run/key}, claims: {subject: sub}}
limits: {places: 16, wait: 30s}
versions: tested
datasets:
  census: {dsn: "host=127.0.0.1 user=noisegate_reader", quantum: 50ms, statement_timeout: 1m30s, connections: 4}
`
	file := t.TempDir() + "/noisegate.yaml"
	read := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(file, config.Environment{})
		return err
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	if err := validates(t, printed, good); err != nil {
		t.Error(err)
	}
	for _, edit := range [][2]string{{"listen:", "listens:"}, {"insecure: false", "insecure: maybe"}, {"places: 16", "places: many"},
		{"wait: 30s", "wait: soon"}, {"versions: tested", "versions: all"}, {"quantum:", "quanta:"}, {"limits:", "limit:"}} {
		wrong := strings.Replace(good, edit[0], edit[1], 1)
		if read(wrong) == nil {
			t.Fatalf("%v is no slip", edit)
		}
		if validates(t, printed, wrong) == nil {
			t.Errorf("%v validates", edit)
		}
	}
	demo, err := os.ReadFile("demo_policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := validates(t, printedSchema(t, "policy"), string(demo)); err != nil {
		t.Error(err)
	}
}
