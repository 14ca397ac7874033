package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestWeakConfigurations runs testdata/*: each case is a file (and variables, as env=(NAME=value,...)) and what becomes of it.
//
// covers: A87
func TestWeakConfigurations(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			dir := t.TempDir()
			file := filepath.Join(dir, "noisegate.yaml")
			if err := os.WriteFile(file, []byte(d.Input), 0o600); err != nil {
				t.Fatal(err)
			}
			env := Environment{}
			for _, arg := range d.CmdArgs {
				env[arg.Key] = strings.Join(arg.Vals, ",")
			}
			c, err := Load(file, env)
			if err != nil {
				return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "") + "\n"
			}
			return describe(c)
		})
	})
}

// describe renders what was read, connection strings included: they are not secret in a test.
func describe(c *Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "http %+v\nwire %+v\ncontrol %s\nauth %+v\nlimits %+v\nversions %s\n", c.HTTP, c.Wire, c.Control.DSN.Reveal(),
		c.Auth, c.Limits, c.Versions)
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		d := c.Datasets[name]
		fmt.Fprintf(&b, "%s %s timeout %s quantum %s connections %d\n", name, d.DSN.Reveal(), d.StatementTimeout, d.Quantum,
			d.Connections)
	}
	return b.String()
}

// Every field has its key: a field that is added to Config and forgotten in settings fails here.
func TestEveryFieldHasAKey(t *testing.T) {
	c := New()
	c.Datasets["x"] = NewDataset()
	fields := 0
	var walk func(kind reflect.Type)
	walk = func(kind reflect.Type) {
		for i := range kind.NumField() {
			switch field := kind.Field(i).Type; {
			case field == reflect.TypeFor[DSN]():
				fields++
			case field.Kind() == reflect.Struct:
				walk(field)
			case field.Kind() == reflect.Map:
				walk(field.Elem().Elem())
			default:
				fields++
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	if keys := len(c.settings()); keys != fields {
		t.Errorf("%d keys for %d fields", keys, fields)
	}
}

// Connection strings hold passwords: no way of printing a configuration shows one.
func TestConfigDoesNotPrintSecrets(t *testing.T) {
	c := New()
	c.Control.DSN = NewDSN("postgres://noisegate:hunter2@db/noisegate")
	c.Datasets["census"] = &Dataset{DSN: NewDSN("postgres://reader:hunter2@db/census"), Quantum: time.Second}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, *c) + fmt.Sprintf(verb, *c.Datasets["census"]); strings.Contains(text, "hunter2") {
			t.Errorf("%s prints a password", verb)
		}
	}
}

// Whatever stands in the file, reading it ends with a configuration or with errors that name their place.
func FuzzConfig(f *testing.F) {
	f.Add("http: {listen: \"127.0.0.1:8080\"}\ncontrol: {dsn: \"host=/tmp\"}\ndatasets: {a: {dsn: \"host=/tmp user=r\", quantum: 1s}}\n")
	f.Add("datasets:\n  a:\n  b: {dsn: |\n    x\n  }\n")
	f.Add("? [a]\n: &x {<<: *x}\n--- !!binary x")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "noisegate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, nil)
		if (c == nil) != (err != nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), file) {
			t.Errorf("the error does not say where: %v", err)
		}
	})
}
