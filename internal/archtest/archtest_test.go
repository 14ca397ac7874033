package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var rewrite = flag.Bool("rewrite", false, "bring docs/threat-model.md, docs/trusted-base.md and testdata/ratchets.txt up to date")

// TestArchitecture holds the repository against every rule.
func TestArchitecture(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		tree.Texts[threatModelPage] = ListTests(tree)
		if err := os.WriteFile("../../"+threatModelPage, []byte(tree.Texts[threatModelPage]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, finding := range rule.Check(tree) {
				t.Errorf("%v\n\t(%s)", finding, rule.Why)
			}
		})
	}
}

// TestTableIsSound finds lines of the import table for packages that do not exist, which would hide a renamed package, and second lines
// for one package.
func TestTableIsSound(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	dirs := byDir(tree.Files)
	seen := map[string]bool{}
	for _, l := range layers() {
		if seen[l.dir] {
			t.Errorf("the import table has two lines for %s", l.dir)
		}
		seen[l.dir] = true
		if len(dirs[l.dir]) == 0 {
			t.Errorf("the import table has a line for %s, which has no Go files", l.dir)
		}
	}
}

// Each memory that caches.go lists is there.
func TestMemoriesAreThere(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	there := rememberedIn(tree)
	for name := range memories() {
		if there[name] == nil {
			t.Errorf("%s remembers nothing, or is not there", name)
		}
	}
}

// breach is a small repository that breaks one rule, and a part of the finding that must result.
type breach struct {
	files map[string]string
	want  string
}

const faultFile = "// Package fault knows errors. It does not know x.\npackage fault\n"

func breaches() map[string][]breach {
	word := "TO" + "DO"
	return map[string][]breach{
		"caches": {
			{files("gateway/a.go", `package gateway; type seen struct { mu sync.Mutex; of map[string]bool }`), "gateway.seen outlives a request"},
			{files("gateway/a.go", `package gateway; type seen struct { mu sync.RWMutex; last [8]string }`), "gateway.seen outlives a request"},
			{files("gateway/a.go", `package gateway; type seen struct { of sync.Map }`), "gateway.seen outlives a request"},
			{files("gateway/a.go", `package gateway; type seen struct { of singleflight.Group }`), "gateway.seen outlives a request"},
			{files("gateway/a.go", `package gateway; type seen struct { of each.Analyst[int] }`), "gateway.seen outlives a request"},
			{files("catalog/a.go", `package catalog; var f = pgxpool.New`), "catalog.pgxpool outlives a request"},
		},
		"imports": {
			{files("mechanisms/a.go", `package mechanisms; import _ "github.com/jackc/pgx/v5"`), "may not use this library"},
			{files("mechanisms/a.go", `package mechanisms; import _ "noisegate.example/budget"`), "mechanisms may not know budget"},
			{files("mechanisms/laplace.go", `package mechanisms; import _ "crypto/rand"`), "mechanisms is pure"},
			{files("sqlrewrite/bind.go", `package sqlrewrite; import _ "net/http"`), "sqlrewrite is pure"},
			{files("sqlrewrite/bind.go", `package sqlrewrite; import _ "noisegate.example/sqlrewrite/proofs/gen"`), "may not know"},
			{files("sqlrewrite/internal/parse/guard.go", `package parse; import _ "github.com/pganalyze/pg_query_go/v6"`), "only in parse_postgres*.go"},
			{files("sqlrewrite/internal/algebra/expr.go", `package algebra; import _ "noisegate.example/sqlrewrite/internal/sqlprint"`), "may not know sqlrewrite/internal/sqlprint"},
			{files("catalog/policy.go", `package catalog; import _ "github.com/jackc/pgx/v5/pgxpool"`), "only in postgres*.go"},
			{files("gateway/service.go", `package gateway; import _ "noisegate.example/gateway/httpapi"`), "gateway may not know gateway/httpapi"},
			{files("integration/a_test.go", `package integration; import _ "noisegate.example/gateway"`), "integration may not know gateway"},
			{files("integration/a_test.go", `package integration; import _ "noisegate.example/mechanisms"`), "integration may not know mechanisms"},
			{files("util/a.go", `package util`), "no line in the import table"},
		},
		"package-comment": {
			{files("mechanisms/a.go", "package mechanisms"), "no package comment"},
			{files("mechanisms/a.go", "// Package mechanisms is good.\npackage mechanisms"), "does not say"},
		},
		"file-map": {
			{files("api/a.go", "// # Map\n//\n// a.go: wire\npackage api"), "names it 2 times"},
			{files("api/a.go", "// # Map\n//\n// b.go: wire\npackage api"), "names b.go, which does not exist"},
			{files("api/a.go", "// # Map\npackage api", "api/b.go", "package api"), "names it 0 times"},
			{manyFiles("api", maxUnmapped+1), "names it 0 times"},
		},
		"math-rand": {
			{files("mechanisms/a.go", `package mechanisms; import _ "math/rand"`), "math/rand"},
			{files("mechanisms/a.go", `package mechanisms; import _ "math/rand/v2"`), "math/rand"},
		},
		"clock":   {{files("sqlrewrite/bind.go", "package sqlrewrite; var _ = time.Now"), "uses Now"}},
		"no-init": {{files("api/a.go", "package api; func init() {}"), "init()"}},
		"globals": {
			{files("api/a.go", "package api; var n int; func f() { n++ }"), "changes the package variable n"},
			{files("api/a.go", "package api; var m = map[string]int{}; func f() { m[\"x\"] = 1 }"), "changes the package variable m"},
			{files("api/a.go", "package api; var n int", "api/b.go", "package api; func f() { n = 2 }"), "changes the package variable n"},
			{files("api/a.go", "package api; var once sync.Once"), "a package variable that changes: once"},
		},
		"sampler-source": {{files("gateway/a.go", "package gateway; var _ = mechanisms.NewSamplerFrom"), "NewSamplerFrom"}},
		"fixed-noise": {
			{files("pate/a_test.go", "package pate; var _ = mechanisms.NewSampler()"), "other noise in each run"},
			{files("mechanisms/a_test.go", "package mechanisms; var _ = NewSampler()"), "other noise in each run"},
		},
		"sealed": {
			{files("mechanisms/a.go", "package mechanisms; func (e Exact) Int() int { return 0 }"), "exported method Int"},
			{files("mechanisms/a.go", "package mechanisms; type Exact struct { N int }"), "exported field"},
			{files("mechanisms/a.go", "package mechanisms; func (e ExactVector) At(i int) int64 { return 0 }"), "exported method At"},
			{files("pate/a.go", "package pate; func (t *Table) Row(i int) []uint32 { return nil }"), "exported method Row"},
			{files("gateway/a.go", `package gateway; import _ "unsafe"`), "unsafe"},
			{files("gateway/a.go", "package gateway\n//go:linkname open noisegate.example/mechanisms.Exact.open\nfunc open()"), "linkname"},
		},
		"pay-first":       {{files("gateway/service.go", "package gateway; func f() { ledger.Reserve() }"), "Reserve"}},
		"simple-protocol": {{files("gateway/pgexec/a.go", "package pgexec; var _ = pgx.QueryExecModeSimpleProtocol"), "SimpleProtocol"}},
		"fault-home":      {{files("budget/a.go", "package budget; var _ = &fault.Error{}"), "outside internal/fault"}},
		"fault-codes": {
			{files("internal/fault/a.go", faultFile+`const A Code = "sql/a"`), "does not explain sql/a"},
			{files("internal/fault/a.go", faultFile+`const ( A Code = "sql/a"; B Code = "sql/a" )`, "docs/errors.md", "| `sql/a` | x |"),
				"declared twice"},
			{files("internal/fault/a.go", faultFile, "docs/errors.md", "| `sql/b` | x |"), "explains sql/b, which does not exist"},
			{files("internal/fault/a.go", faultFile+`const A Code = "sql/a"`, "docs/errors.md", "| `sql/a` | x |\n| `sql/a` | x |"),
				"more than once"},
		},
		"threat-model": {
			{files("docs/threat-model.md", "| A01 | x | not yet: y |"), "A02 has 0 lines"},
			{files("docs/threat-model.md", "| A01 | x | y |"), "A01 names no test and gives no reason"},
			{files("docs/threat-model.md", "| A01 | x | `TestGone` |"), "A01 names TestGone, which does not exist"},
			{files("api/a_test.go", "package api\n// TestTracker tracks.\n//\n// covers: W.1 A01\nfunc TestTracker() {}",
				"docs/threat-model.md", "| A01 | x | not yet: y |"), "A01 does not name TestTracker"},
		},
		"test-names": {
			{files("sqlrewrite/a_test.go", "package sqlrewrite; func TestA01Tracker() {}"), "TestA01Tracker has an ID in its name"},
			{files("api/a_test.go", "package api; func TestOneKeyI6() {}"), `"// covers: I6"`},
		},
		"lines": {
			{files("api/a.go", "package api // "+strings.Repeat("é", 140)), "api/a.go:1: 155 characters"},
			{files("api/a.go", "package api\nvar s = `x`\nvar t = \""+strings.Repeat("x", 140)+"\""), "api/a.go:3"},
			{files("docs/a.md", "```\n"+strings.Repeat("x", 121)+"\n```\n|"+strings.Repeat("x", 121)+"|\n"+strings.Repeat("x", 121)), "docs/a.md:5"},
		},
		"glossary": {
			{files("docs/a.md", "x"), "is missing"},
			{files("docs/glossary.md", "| term | meaning | see |\n| b | x | [a](a.md) |\n| a | x | [a](a.md) |\n", "docs/a.md", "a b"),
				"a is not in order"},
			{files("docs/glossary.md", "| term | meaning | see |\n| b | x; *c* | [a](a.md) |\n", "docs/a.md", "a"), "b does not stand in [a](a.md)"},
			{files("docs/glossary.md", "| term | meaning | see |\n| b | x | `api` |\n", "api/a.go", "package api"), "b does not stand in `api`"},
		},
		"tables": {
			{files("a.md", "| a | b |\n|---|---|\n| `x|y` | c\\|d |\n| a long\n| row |"), "a.md:4: is no row of its table"},
			{files("a.md", "| a | b |\n|---|---|\n| c | d |\nmore of it |"), "a.md:4: is no row of its table"},
		},
		"lemmas": {
			{files("docs/sql/a.md", "## S\n\n**Lemma 1.** x"), "does not name the file of its rule"},
			{files("docs/sql/a.md", "## S\n\nRule: `sqlrewrite/internal/a.go`.\n\n**Lemma 1.** x", "sqlrewrite/internal/a.go", "package a"),
				"does not name the file of its rule"},
			{files("docs/sql/a.md", "## S\n\nRule: `sqlrewrite/internal/a.go`.\n\n**Lemma 1.** x"),
				"sqlrewrite/internal/a.go, which does not exist"},
			{files("docs/sql/a.md", "## S\n\n**Lemma 1.** x **Lemma\n2.** y"), "has 2 lemmas"},
			{files("docs/sql/a.md", "## S\n\n**Lemma 1.** x", "docs/sql/b.md", "## T\n\n**Lemma 1.** x"), "T has Lemma 1, as docs/sql/a.md: S has"},
		},
		"links": {
			{files("docs/a.md", "[b](b.md)"), "links docs/b.md, which does not exist"},
			{files("docs/a.md", "[b](../b.md#c-d)", "b.md", "# C"), "links #c-d of b.md"},
			{files("a.md", "# A\n[b](#b)"), "links #b of a.md"},
		},
		"index": {{files("docs/README.md", "[a](a.md)", "docs/sql/a.md", "x"), "docs/sql/a.md: is not in docs/README.md"}},
		"markers": {
			{files("api/a.go", "package api // "+word+": later"), word},
			{files("docs/a.md", word), word},
			{files("api/a.go", "package api; func f() { panic(\"not "+"yet\") }"), "not yet"},
		},
		"skips": {
			{files("api/a_test.go", `package api; func TestX(t *testing.T) { t.Skip("slow") }`), "skips"},
			{files("api/a_test.go", `package api; func TestX(t *testing.T) { t.SkipNow() }`), "skips"},
			{files("api/a_test.go", `package api; func TestX(t *testing.T) { t.Skip("../shared is absent") }`), "skips"},
			{files("api/a_test.go", `package api; func TestX(t *testing.T) { t.Skip("-short: long") }`), "skips"},
		},
		"module-file": {{files("go.mod", "module noisegate.example\nreplace a => b\n"), "replace"}},
		"hosts":       {{files("Makefile", "export GOPROXY=https://mirror.example\n"), "GOPROXY"}},
	}
}

func files(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// manyFiles is a package of n files.
func manyFiles(dir string, n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("%s/f%d.go", dir, i)] = "package " + dir
	}
	return m
}

// TestRulesCanFail breaks each rule once per way in which it can be broken. A rule without a breach here is no rule.
func TestRulesCanFail(t *testing.T) {
	all := breaches()
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			if len(all[rule.Name]) == 0 {
				t.Fatal("no self-test proves that this rule can fail")
			}
			for _, b := range all[rule.Name] {
				expectFinding(t, rule, b)
			}
		})
	}
}

func expectFinding(t *testing.T, rule Rule, b breach) {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range b.files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	found := rule.Check(tree)
	if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.String(), b.want) }) {
		t.Errorf("%v: no finding contains %q, got %v", slices.Sorted(maps.Keys(b.files)), b.want, found)
	}
}

func TestListTests(t *testing.T) {
	tree, err := Load(fstest.MapFS{
		"api/a_test.go":        {Data: []byte("package api\n// covers: A01\nfunc TestTracker() {}\n// covers: A02 W.3 F03\nfunc TestBoth() {}")},
		"docs/threat-model.md": {Data: []byte("| A01 | x | not yet: y |\n| A02 | x | `TestBoth` |\n| F03 | x | `TestOther` |\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "| A01 | x | `TestTracker`, not yet: y |\n| A02 | x | `TestBoth` |\n| F03 | x | `TestBoth`, `TestOther` |\n"
	if got := ListTests(tree); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestRulesAccept shows the neighbours of the breaches that are allowed.
func TestRulesAccept(t *testing.T) {
	allowed := map[string]string{
		"mechanisms/sampler.go":                       `package mechanisms; import _ "crypto/rand"`,
		"mechanisms/sampler_test.go":                  `package mechanisms; import _ "math/rand/v2"; var _ = mechanisms.NewSamplerFrom`,
		"sqlrewrite/where.go":                         `package sqlrewrite; import "time"; var _ = time.Parse`,
		"sqlrewrite/internal/parse/parse_postgres.go": `package parse; import _ "github.com/pganalyze/pg_query_go/v6"`,
		"budget/pgledger/ledger.go":                   `package pgledger; import _ "github.com/jackc/pgx/v5/pgxpool"`,
		"budget/pgledger/ledger_test.go":              `package pgledger; import _ "noisegate.example/internal/pgtest"`,
		"api/names.go":                                `package api; var names = []string{"a"}; func f() []string { names := names; names = nil; return names }`,
		"gateway/metered.go":                          `package gateway; func f() { ledger.Reserve() }`,
		"mechanisms/bench_test.go":                    `package mechanisms; var _ = NewSampler()`,
		"sqlrewrite/proofs/gen/gen.go":                `package gen; import _ "math/rand/v2"; var _ = mechanisms.NewSamplerFrom`,
		"sqlrewrite/internal/bind/join_test.go":       `package bind_test; import _ "noisegate.example/sqlrewrite/internal/pipeline"`,
		"integration/census_test.go":                  `package integration; import _ "noisegate.example/api"`,
		"api/long_test.go":                            `package api; func TestX(t *testing.T) { if testing.Short() { t.Skip("-short: long") } }`,
		"docs/sql/a.md": "# A\n\n## One unit's rows, `IN`\n\nRule: `sqlrewrite/internal/parse/parse_postgres.go`; " +
			"tested by `TestX`.\n\n" +
			"**Lemma 0a.** [x](#one-units-rows-in)\n",
		"docs/README.md":                  "[A](sql/a.md#one-units-rows-in), [A](sql/a.md), [g](glossary.md), [d](decisions/README.md)",
		"docs/decisions/README.md":        "[one](0001-one.md), [elsewhere](https://example.org/a.md)",
		"docs/decisions/0001-one.md":      "x",
		"docs/glossary.md":                "| term | meaning | see |\n|---|---|---|\n| name | a word | `api` |\n",
		"cmd/noisegate/main.go":           `package main; import _ "noisegate.example/gateway/httpapi"`,
		"mechanisms/testdata/broken.go":   `this is not parsed`,
		"gateway/httpapi/testdata/x/a.go": `this is not parsed`,
		"api/raw.go":                      "package api\nvar s = `\n" + strings.Repeat("x", 150) + "`",
	}
	root := fstest.MapFS{}
	for name, text := range allowed {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		switch rule.Name {
		case "package-comment", "threat-model": // these miss things that the small tree does not have
			continue
		}
		for _, finding := range rule.Check(tree) {
			t.Errorf("%s: %v", rule.Name, finding)
		}
	}
}
