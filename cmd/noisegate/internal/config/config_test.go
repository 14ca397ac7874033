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
			return strings.ReplaceAll(describe(c), dir, "DIR")
		})
	})
}

// describe renders what was read, connection strings included: they are not secret in a test.
func describe(c *Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "http %+v\nwire %+v\nadmin %+v\ncontrol %s\nauth %+v\nlimits %+v\nmemory %+v\nversions %s\n", c.HTTP, c.Wire, c.Admin,
		c.Control.DSN.Reveal(), c.Auth, c.Limits, c.Memory, c.Versions)
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
			case !kind.Field(i).IsExported(): // what is known of a setting, and is none
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

// TestCatalogsAreDatabasesOfTheirOwn: a twin's database, which is emptied, is that of no other connection string, whichever dataset has it.
func TestCatalogsAreDatabasesOfTheirOwn(t *testing.T) {
	for catalog, refused := range map[string]bool{
		"postgres://twin@127.0.0.1:5432/twin":              false,
		"postgres://twin@127.0.0.1:5433/payroll":           false,
		"postgres://twin@127.0.0.1:5432/census":            true,
		"postgres://twin@127.0.0.1:5432/payroll":           true,
		"postgres://twin@127.0.0.1:5432/payroll_twin":      true,
		"postgres://twin@localhost:5432/payroll_twin":      true,
		"postgres://twin@[::1]:5432/noisegate":             true,
		"postgres://twin@primary:5432/payroll":             true,
		"host=/run port=5432 dbname=payroll":               true,
		"host=/run,127.0.0.1 port=1,5432 dbname=payroll":   true,
		"host=/run,127.0.0.1 port=1,5433 dbname=payroll":   false,
		"postgres://twin@127.0.0.1/noisegate?user=another": true,
	} {
		text := `
control: {dsn: "postgres://noisegate@127.0.0.1:5432/noisegate"}
auth: {issuer: dev, audience: noisegate, keys: {hs256_file: hs256.key}}
datasets:
  census: {dsn: "postgres://reader@127.0.0.1:5432/census", catalog_dsn: "` + catalog + `"}
  payroll: {dsn: "postgres://reader@127.0.0.1:5432/payroll", catalog_dsn: "postgres://twin@127.0.0.1:5432/payroll_twin",
    prepare_dsn: "postgres://prepare@primary:5432/payroll?sslmode=verify-full"}
`
		file := filepath.Join(t.TempDir(), "noisegate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, nil)
		if got := err != nil && strings.Contains(err.Error(), "datasets.census.catalog_dsn: is the database of another"); got != refused {
			t.Errorf("%s: %v", catalog, err)
		} else if !refused && err != nil {
			t.Errorf("%s: %v", catalog, err)
		}
	}
}

// TestOtherDSNsAreNoDatasets: a variable that names another connection string of a dataset makes no additional dataset, wherever that one
// is named.
func TestOtherDSNsAreNoDatasets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "noisegate.yaml")
	if err := os.WriteFile(file, []byte(`datasets: {census: {dsn: "postgres://reader@127.0.0.1/census"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := Environment{
		"NOISEGATE_CONTROL_DSN": "postgres://noisegate@127.0.0.1/noisegate",
		"NOISEGATE_AUTH_ISSUER": "dev", "NOISEGATE_AUTH_AUDIENCE": "noisegate",
		"NOISEGATE_AUTH_KEYS_HS256_FILE":        "hs256.key",
		"NOISEGATE_DATASETS_CENSUS_PREPARE_DSN": "postgres://prepare@127.0.0.1/census",
		"NOISEGATE_DATASETS_TAX_DSN":            "postgres://reader@127.0.0.1/tax",
		"NOISEGATE_DATASETS_TAX_CATALOG_DSN":    "postgres://twin@127.0.0.1/tax_twin",
		"NOISEGATE_DATASETS_CARD_CATALOG_DSN":   "postgres://reader@127.0.0.1/cards", // of no dataset card: a dataset card_catalog
	}
	c, err := Load(file, env)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(c.Datasets)); !slices.Equal(names, []string{"card_catalog", "census", "tax"}) {
		t.Errorf("the datasets are %v", names)
	}
	if c.Datasets["census"].PrepareDSN.IsZero() || c.Datasets["tax"].CatalogDSN.IsZero() {
		t.Error("a connection string is not where its variable says")
	}
}

// TestFilesBesideTheConfiguration: a relative name is one of the configuration's directory, that of a variable stays as it is.
func TestFilesBesideTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "noisegate.yaml")
	text := `
http: {tls_cert_file: tls/cert.pem, tls_key_file: /etc/key.pem}
control: {dsn: "host=/tmp user=noisegate", anchor: anchor.json, receipt_key_file: ../receipts.key}
auth: {issuer: dev, audience: noisegate, keys: {hs256_file: hs256.key}}
datasets: {census: {dsn: "host=/tmp user=noisegate_reader", steward_keys_file: "stewards.pub"}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	c, err := Load(file, Environment{"NOISEGATE_DATASETS_CENSUS_STEWARD_KEYS_FILE": "others.pub"})
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		c.HTTP.TLSCertFile: filepath.Join(dir, "tls/cert.pem"), c.HTTP.TLSKeyFile: "/etc/key.pem",
		c.Control.Anchor: "anchor.json", c.Control.ReceiptKeyFile: filepath.Join(filepath.Dir(dir), "receipts.key"),
		c.Auth.Keys.HS256File: filepath.Join(dir, "hs256.key"), c.Datasets["census"].StewardKeysFile: "others.pub",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// There is an anchor unless the configuration says otherwise, where state belongs.
func TestAnchorIsOnByDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "noisegate.yaml")
	text := `
control: {dsn: "host=/tmp user=noisegate"}
auth: {issuer: dev, audience: noisegate, keys: {hs256_file: hs256.key}}
datasets: {census: {dsn: "host=/tmp user=noisegate_reader"}}
`
	for _, c := range []struct {
		anchor, want string
		env          Environment
		isDefault    bool
	}{
		{"", file + ".anchor", Environment{}, true},
		{"", "/var/lib/noisegate/anchor", Environment{"STATE_DIRECTORY": "/var/lib/noisegate:/var/lib/other"}, true},
		{"a.json", "a.json", Environment{"STATE_DIRECTORY": "/var/lib/noisegate"}, false},
		{"off", "", Environment{"STATE_DIRECTORY": "/var/lib/noisegate"}, false},
		{"a.json", "", Environment{"NOISEGATE_CONTROL_ANCHOR": "off"}, false},
	} {
		written := text
		if c.anchor != "" {
			written = strings.Replace(text, "user=noisegate\"}", `user=noisegate", anchor: `+c.anchor+"}", 1)
		}
		if err := os.WriteFile(file, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(file, c.env)
		if err != nil || got.Control.Anchor != c.want || got.Control.AnchorIsDefault() != c.isDefault {
			t.Errorf("%+v: %q, %t, %v", c, got.Control.Anchor, got.Control.AnchorIsDefault(), err)
		}
	}
}

// TestEveryFileIsBesideTheConfiguration: each setting of a file is known as one.
func TestEveryFileIsBesideTheConfiguration(t *testing.T) {
	c := New()
	c.Datasets["d"] = NewDataset()
	files := 0
	for _, s := range c.settings() {
		if strings.Contains(s.key, "file") != strings.HasSuffix(s.key, "_file") {
			t.Errorf("is %s the name of a file?", s.key)
		}
		if namesFile(s.key) {
			files++
		}
	}
	if files != 9 {
		t.Errorf("%d settings name files", files)
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
