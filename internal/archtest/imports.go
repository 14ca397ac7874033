package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// layer says what one package may import besides the standard library.
type layer struct {
	dir    string
	own    []string  // directories of this repository; "*" for all
	others []library // modules of others
	tests  []string  // what its tests may know besides: of proofs that run through the whole gateway
	pure   bool      // no I/O, no clock: the standard library's doors to the outside are closed as well
}

// library is a module of others, and the files (patterns of path.Match) that may import it; none means all files.
type library struct {
	module string
	files  []string
}

const (
	pgx      = "github.com/jackc/pgx/v5"
	chi      = "github.com/go-chi/chi/v5"
	kong     = "github.com/alecthomas/kong"
	yaml     = "github.com/goccy/go-yaml"
	jwt      = "github.com/golang-jwt/jwt/v5"
	keyfunc  = "github.com/MicahParks/keyfunc/v3"
	jwkset   = "github.com/MicahParks/jwkset"
	pgQuery  = "github.com/pganalyze/pg_query_go/v6"
	mysql    = "github.com/xwb1989/sqlparser"
	embedded = "github.com/fergusstrange/embedded-postgres"
	proto    = "google.golang.org/protobuf"
	gonum    = "gonum.org/v1/gonum"
	xsync    = "golang.org/x/sync"
	rapid    = "pgregory.net/rapid"
	cmp      = "github.com/google/go-cmp"
	goldmark = "github.com/yuin/goldmark"
	jschema  = "github.com/santhosh-tekuri/jsonschema/v6"
	xnorm    = "golang.org/x/text/unicode/norm"
	promet   = "github.com/prometheus/client_golang"
)

func only(module string, files ...string) library { return library{module, files} }

// layers is the import table of ARCHITECTURE.md. A package that has no line here is refused: a new package needs a
// decision about what it may know.
func layers() []layer {
	return slices.Concat(rooms(), foundations(), []layer{
		{dir: "budget/accounting", pure: true, own: []string{"internal/exact", "mechanisms"}, others: []library{only(gonum, "pld.go")}},
		{dir: "budget", pure: true, own: []string{"budget/accounting", "internal/exact", "internal/fault", "mechanisms"}},
		{dir: "budget/internal/machine", pure: true, own: []string{"budget", "internal/fault", "mechanisms"}},
		{dir: "budget/journal", own: []string{"budget", "budget/internal/machine", "internal/fault", "mechanisms"}},
		{dir: "budget/pgledger", own: []string{"budget", "budget/internal/machine", "budget/journal", "internal/fault", "mechanisms",
			"migrations"}, others: []library{only(pgx)}},
		{dir: "budget/budgettest", own: []string{"budget", "budget/accounting", "budget/internal/machine", "budget/journal",
			"internal/fault", "mechanisms"}, others: []library{only(rapid), only(cmp)}},
		{dir: "pate", pure: true, own: []string{"budget/accounting", "internal/exact", "internal/fault", "mechanisms"},
			others: []library{only(pgx, "postgres*.go")}},
		{dir: "api"},
		{dir: "api/python", pure: true},
		{dir: "docs", own: []string{"api/python"}, others: []library{only(goldmark)}},
		{dir: "gateway/console"},
		{dir: "gateway/auth", own: []string{"internal/fault", "internal/naming", "internal/strictjson"}, others: []library{only(jwt),
			only(keyfunc), only(jwkset)}},
		{dir: "gateway/internal/amounts", pure: true, own: []string{"api", "budget", "catalog", "internal/fault", "mechanisms"}},
		{dir: "gateway/internal/connlimit"},
		{dir: "gateway/internal/each", pure: true},
		{dir: "gateway/internal/held"},
		{dir: "gateway/released", own: []string{"budget", "internal/fault", "sqlrewrite"}},
		{dir: "gateway", own: []string{"internal/fault", "mechanisms", "catalog", "catalog/draft", "sqlrewrite", "sqlrewrite/statement", "budget",
			"budget/accounting", "budget/journal", "api", "gateway/auth", "gateway/internal/amounts", "gateway/internal/each",
			"gateway/internal/held", "gateway/released"},
			others: []library{only(xsync)}},
		{dir: "gateway/labels", own: []string{"internal/fault", "mechanisms", "catalog", "budget", "budget/accounting", "api", "gateway",
			"gateway/auth", "gateway/internal/amounts", "pate"}},
		{dir: "gateway/fit", own: []string{"internal/fault", "mechanisms", "catalog", "sqlrewrite", "sqlrewrite/statement", "budget", "api",
			"gateway", "gateway/auth", "gateway/internal/amounts"}},
		{dir: "gateway/collect", own: []string{"internal/fault", "internal/strictjson", "mechanisms", "mechanisms/local", "api",
			"budget/journal", "gateway/auth"}, others: []library{only(pgx, "postgres.go")}},
		{dir: "gateway/pgexec", own: []string{"internal/fault", "mechanisms", "catalog", "sqlrewrite", "gateway/internal/each", "internal/pgrole",
			"internal/pgversion", "pate"},
			others: []library{only(pgx)}},
		{dir: "gateway/httpapi", own: []string{"internal/fault", "internal/strictjson", "gateway", "gateway/auth", "gateway/collect",
			"gateway/console", "gateway/fit", "gateway/internal/connlimit", "gateway/internal/held", "gateway/labels", "api", "docs", "pate"},
			tests:  []string{"mechanisms/local", "sqlrewrite"}, // what a protected database is asked
			others: []library{only(chi), only(xsync)}},
		{dir: "gateway/pgwire", own: []string{"internal/fault", "gateway", "gateway/auth", "gateway/internal/connlimit",
			"gateway/internal/held", "api", "sqlrewrite/statement"},
			tests:  []string{"gateway/httpapi", "gateway/twin"},
			others: []library{only(pgx + "/pgproto3"), only(pgx + "/pgtype")}},
		{dir: "gateway/twin", own: []string{"internal/fault", "catalog", "gateway/pgwire", "sqlrewrite/statement"},
			others: []library{only(pgx), only(xsync)}},
		{dir: "gateway/gatewaytest", own: []string{"api", "budget", "budget/journal", "budget/pgledger", "catalog", "gateway",
			"gateway/auth", "gateway/collect", "gateway/fit", "gateway/internal/amounts", "gateway/labels", "gateway/pgexec", "internal/fault",
			"mechanisms", "pate",
			"internal/pgserver", "internal/pgtest", "internal/randomtest"}, others: []library{only(pgx)}},
		{dir: "cmd/noisegate/demodata", pure: true},
		{dir: "cmd/noisegate/internal/config", own: []string{"gateway", "gateway/pgwire", "budget/journal", "internal/pgversion"},
			others: []library{only(yaml, "load.go"), only(pgx, "check.go")}},
		{dir: "cmd/noisegate/internal/metrics", own: []string{"budget", "gateway"}, others: []library{only(promet)}},
		{dir: "cmd/noisegate/internal/server", own: []string{"cmd/noisegate/internal/config", "cmd/noisegate/internal/metrics",
			"budget", "budget/journal", "budget/pgledger", "catalog", "gateway", "gateway/auth", "gateway/collect", "gateway/fit",
			"gateway/httpapi", "gateway/labels", "gateway/pgexec", "gateway/pgwire", "gateway/twin",
			"internal/fault", "internal/pgrole", "mechanisms", "migrations", "pate"}, others: []library{only(pgx), only(xsync)}},
		{dir: "cmd/noisegate/internal/doctor", own: []string{"budget/journal", "budget/pgledger", "catalog", "cmd/noisegate/internal/config",
			"cmd/noisegate/internal/server", "gateway/auth", "gateway/pgexec", "internal/fault", "internal/pgrole", "migrations"},
			others: []library{only(pgx)}},
		{dir: "deploy/examples/pate", own: []string{"api", "deploy/examples/pate/digits"}},
		{dir: "deploy/examples/pate/digits", pure: true},
		{dir: "cmd/noisegate", own: []string{"*"}, others: []library{only(kong), only(pgx), only(xsync), only(yaml, "*_test.go"),
			only(jschema, "*_test.go")}},
		{dir: "integration/invariants", own: []string{"api"}, others: []library{only(pgx)}},
		{dir: "integration/faults", own: []string{"integration/invariants", "api", "budget", "budget/journal", "budget/pgledger", "gateway",
			"gateway/auth", "gateway/gatewaytest", "gateway/httpapi",
			"internal/fault", "internal/pgserver", "internal/pgtest", "mechanisms", "sqlrewrite"}, others: []library{only(pgx)}},
		{dir: "integration", own: []string{"integration/invariants", "api", "internal/pgtest", "internal/pgserver", "internal/stattest",
			"internal/testfiles"}, others: []library{only(pgx)}},
	})
}

// foundations are the packages that know nothing of budgets and services.
func foundations() []layer {
	return []layer{
		{dir: "internal/fault"},
		{dir: "internal/exact", pure: true},
		{dir: "internal/naming", pure: true, others: []library{only(xnorm)}},
		{dir: "mechanisms", pure: true, own: []string{"internal/exact"}},
		{dir: "mechanisms/local", pure: true, own: []string{"internal/exact", "mechanisms"}},
		{dir: "mechanisms/clustering", pure: true, others: []library{only(gonum)}},
		{dir: "mechanisms/regression", pure: true, others: []library{only(gonum)}},
		{dir: "internal/stattest", pure: true, others: []library{only(gonum)}},
		{dir: "internal/randomtest"},
		{dir: "internal/testfiles", own: []string{"cmd/noisegate/demodata"}},
		{dir: "internal/archtest"},
		{dir: "internal/mutate"},
		{dir: "internal/gen/nodes"},
		{dir: "internal/strictjson", pure: true},
		{dir: "internal/pgversion", pure: true},
		{dir: "internal/pgserver", own: []string{"internal/pgversion"}, others: []library{only(embedded, "fetch.go")}},
		{dir: "internal/pgrole", own: []string{"internal/fault"}, others: []library{only(pgx)}},
		{dir: "internal/pgtest", own: []string{"internal/pgserver", "internal/pgversion", "migrations", "deploy"}, others: []library{only(pgx)}},
		{dir: "deploy"},
		{dir: "migrations", own: []string{"internal/fault"}, others: []library{only(pgx)}},
		{dir: "catalog", own: []string{"internal/fault", "internal/naming", "mechanisms"},
			others: []library{only(pgx, "postgres*.go"), only(yaml, "policy*.go", "jsonschema_test.go"), only(jschema, "*_test.go")}},
		{dir: "catalog/draft", pure: true, own: []string{"catalog", "internal/fault"}, others: []library{only(pgx, "*_test.go")}},
		{dir: "sqlrewrite/syntax", pure: true, own: []string{"internal/fault"}},
		{dir: "sqlrewrite/statement", pure: true, own: []string{"internal/fault", "sqlrewrite/internal/parse"},
			tests:  []string{"sqlrewrite/internal/parsetest", "catalog"},
			others: []library{only(pgQuery), only(proto)}},
		{dir: "sqlrewrite/verify", pure: true, own: []string{"catalog", "sqlrewrite/internal/steps", "sqlrewrite/verify/internal/copying",
			"sqlrewrite/verify/internal/public",
			"sqlrewrite/verify/internal/tree", "sqlrewrite/verify/internal/ranges", "sqlrewrite/verify/internal/value",
			"sqlrewrite/verify/internal/relation", "sqlrewrite/verify/internal/release"},
			others: []library{only(pgQuery)}},
		{dir: "sqlrewrite/verify/internal/release", pure: true, own: []string{"sqlrewrite/verify/internal/tree",
			"sqlrewrite/verify/internal/ranges", "sqlrewrite/verify/internal/value", "sqlrewrite/verify/internal/relation"},
			tests: []string{"catalog"}},
		{dir: "sqlrewrite/verify/internal/relation", pure: true, own: []string{"catalog", "sqlrewrite/internal/steps",
			"sqlrewrite/verify/internal/tree", "sqlrewrite/verify/internal/ranges", "sqlrewrite/verify/internal/value"},
			others: []library{only(pgQuery)}},
		{dir: "sqlrewrite/verify/internal/value", pure: true, own: []string{"catalog", "sqlrewrite/internal/steps",
			"sqlrewrite/verify/internal/tree", "sqlrewrite/verify/internal/ranges", "sqlrewrite/verify/internal/calendar"},
			others: []library{only(pgQuery)}},
		{dir: "sqlrewrite/verify/internal/public", pure: true, own: []string{"catalog", "sqlrewrite/verify/internal/tree"},
			others: []library{only(pgQuery)}},
		{dir: "sqlrewrite/verify/internal/copying", pure: true, own: []string{"catalog", "sqlrewrite/verify/internal/tree"},
			others: []library{only(pgQuery)}},
		{dir: "sqlrewrite/verify/internal/tree", pure: true, own: []string{"sqlrewrite/internal/steps"},
			others: []library{only(pgQuery), only(proto)}},
		{dir: "sqlrewrite/verify/internal/ranges", pure: true},
		{dir: "sqlrewrite/verify/internal/calendar", pure: true, own: []string{"sqlrewrite/verify/internal/ranges",
			"sqlrewrite/verify/internal/tree"}},
		{dir: "sqlrewrite/verify/memo", pure: true, own: []string{"catalog", "sqlrewrite/verify"}},
		{dir: "sqlrewrite", pure: true, own: []string{"mechanisms", "catalog", "sqlrewrite/internal/steps", "sqlrewrite/syntax",
			"sqlrewrite/internal/parse",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/sqlprint", "sqlrewrite/internal/keys", "sqlrewrite/internal/bind",
			"sqlrewrite/internal/plan", "sqlrewrite/internal/answer", "sqlrewrite/internal/free", "sqlrewrite/internal/pipeline",
			"sqlrewrite/internal/explain", "sqlrewrite/internal/suggest", "sqlrewrite/internal/fit", "sqlrewrite/internal/earlier"},
			tests: []string{"gateway/pgexec", "sqlrewrite/statement"}},
		{dir: "sqlrewrite/proofs/gen"},
		{dir: "sqlrewrite/proofs/neighbours"},
		{dir: "sqlrewrite/proofs/copies"},
		{dir: "sqlrewrite/proofs/oracle"},
		{dir: "sqlrewrite/proofs/coupling", tests: []string{"api", "budget", "gateway", "gateway/auth", "gateway/httpapi", "gateway/labels",
			"gateway/pgexec"}},
		{dir: "sqlrewrite/proofs/totality"},
		{dir: "sqlrewrite/proofs/cost"},
		{dir: "sqlrewrite/proofs/costs"},
		{dir: "sqlrewrite/proofs/verified", tests: []string{"api", "gateway", "gateway/httpapi"}},
	}
}

// rooms are the packages inside of sqlrewrite, the lowest first: each may import some of those before it.
func rooms() []layer {
	return []layer{
		{dir: "sqlrewrite/internal/steps", pure: true, own: []string{"internal/fault"}},
		{dir: "sqlrewrite/internal/scalar", pure: true, own: []string{
			"internal/fault", "catalog", "sqlrewrite/syntax"}},
		{dir: "sqlrewrite/internal/parse", pure: true, own: []string{
			"internal/fault", "sqlrewrite/syntax", "sqlrewrite/internal/scalar"},
			tests:  []string{"sqlrewrite/internal/parsetest"},
			others: []library{only(pgQuery, "parse_postgres*.go"), only(proto, "parse_postgres*.go"), only(mysql, "parse_mysql*.go")}},
		{dir: "sqlrewrite/internal/algebra", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/scalar"}},
		{dir: "sqlrewrite/internal/domain", pure: true, own: []string{
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra"}},
		{dir: "sqlrewrite/internal/stability", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/domain"}},
		{dir: "sqlrewrite/internal/lower", pure: true, own: []string{"catalog", "sqlrewrite/syntax", "sqlrewrite/internal/steps",
			"sqlrewrite/internal/scalar", "sqlrewrite/internal/algebra", "sqlrewrite/internal/stability"}},
		{dir: "sqlrewrite/internal/identity", pure: true, own: []string{"catalog", "sqlrewrite/internal/algebra",
			"sqlrewrite/internal/stability"}},
		{dir: "sqlrewrite/internal/copytext", pure: true, own: []string{"catalog", "sqlrewrite/internal/scalar"}},
		{dir: "sqlrewrite/internal/sqlprint", pure: true, own: []string{"sqlrewrite/internal/steps", "sqlrewrite/internal/copytext",
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/verify", "sqlrewrite/verify/memo", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/domain", "sqlrewrite/internal/stability", "sqlrewrite/internal/lower"}},
		{dir: "sqlrewrite/internal/keys", pure: true, own: []string{"catalog", "sqlrewrite/syntax", "sqlrewrite/internal/steps",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/domain", "sqlrewrite/internal/sqlprint"}},
		{dir: "sqlrewrite/internal/bind", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/domain", "sqlrewrite/internal/stability",
			"sqlrewrite/internal/sqlprint", "sqlrewrite/internal/keys"}},
		{dir: "sqlrewrite/internal/plan", pure: true, own: []string{
			"internal/fault", "catalog", "mechanisms", "sqlrewrite/syntax", "sqlrewrite/verify",
			"sqlrewrite/internal/scalar", "sqlrewrite/internal/parse", "sqlrewrite/internal/algebra",
			"sqlrewrite/internal/stability", "sqlrewrite/internal/sqlprint", "sqlrewrite/internal/keys", "sqlrewrite/internal/bind",
			"sqlrewrite/internal/identity"}},
		{dir: "sqlrewrite/internal/answer", pure: true, own: []string{
			"internal/fault", "catalog", "mechanisms", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/domain", "sqlrewrite/internal/stability",
			"sqlrewrite/internal/sqlprint", "sqlrewrite/internal/bind", "sqlrewrite/internal/plan"}},
		{dir: "sqlrewrite/internal/free", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"sqlrewrite/internal/algebra", "sqlrewrite/internal/sqlprint", "sqlrewrite/internal/bind",
			"sqlrewrite/internal/plan", "sqlrewrite/internal/answer"}},
		{dir: "sqlrewrite/internal/explain", pure: true, own: []string{
			"catalog", "mechanisms", "sqlrewrite/internal/scalar", "sqlrewrite/internal/algebra",
			"sqlrewrite/internal/stability", "sqlrewrite/internal/sqlprint", "sqlrewrite/internal/bind",
			"sqlrewrite/internal/plan", "sqlrewrite/internal/answer"}},
		{dir: "sqlrewrite/internal/joinorder", pure: true, own: []string{
			"internal/fault", "catalog", "sqlrewrite/syntax", "sqlrewrite/internal/steps",
			"sqlrewrite/internal/algebra"}},
		{dir: "sqlrewrite/internal/pipeline", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "sqlrewrite/internal/joinorder", "sqlrewrite/syntax", "sqlrewrite/internal/scalar",
			"catalog", "mechanisms", "sqlrewrite/internal/parse", "sqlrewrite/internal/algebra", "sqlrewrite/internal/sqlprint",
			"sqlrewrite/internal/keys", "sqlrewrite/internal/plan", "sqlrewrite/internal/earlier", "sqlrewrite/internal/answer",
			"sqlrewrite/internal/free"},
			others: []library{only(pgQuery, "*_test.go")}},
		{dir: "sqlrewrite/internal/earlier", pure: true, own: []string{"catalog", "mechanisms", "sqlrewrite/syntax",
			"sqlrewrite/internal/scalar", "sqlrewrite/internal/algebra", "sqlrewrite/internal/stability", "sqlrewrite/internal/sqlprint",
			"sqlrewrite/internal/plan"}},
		{dir: "sqlrewrite/internal/fit", pure: true, own: []string{"sqlrewrite/internal/steps",
			"internal/fault", "catalog", "mechanisms", "mechanisms/clustering", "mechanisms/regression", "sqlrewrite/syntax",
			"sqlrewrite/verify",
			"sqlrewrite/internal/scalar", "sqlrewrite/internal/parse", "sqlrewrite/internal/algebra",
			"sqlrewrite/internal/stability", "sqlrewrite/internal/sqlprint", "sqlrewrite/internal/bind",
			"sqlrewrite/internal/plan", "sqlrewrite/internal/identity", "sqlrewrite/internal/earlier"},
			tests: []string{"budget/accounting"}},
		{dir: "sqlrewrite/internal/suggest", pure: true, own: []string{
			"internal/fault", "catalog", "sqlrewrite/internal/parse", "sqlrewrite/internal/scalar"}},
		{dir: "sqlrewrite/internal/parsetest", own: []string{"internal/fault"}},
		{dir: "sqlrewrite/internal/rewritetest"},
	}
}

// testOwn and testOthers are what every test may import besides what its package may. Package integration
// tests the finished binary and gets only the libraries.
func testOwn() []string {
	return []string{"internal/pgtest", "internal/pgserver", "internal/stattest", "internal/randomtest", "internal/testfiles",
		"internal/mutate",
		"budget/budgettest", "gateway/gatewaytest",
		"migrations", "deploy", "mechanisms", "internal/fault"}
}

// rewriterTestOwn lists the packages that tests of the rewriter may import besides its rooms.
func rewriterTestOwn() []string { return []string{"catalog", "sqlrewrite/syntax", "sqlrewrite/verify"} }

func testOthers() []library {
	return []library{only(pgx), only(rapid), only(cmp), only("github.com/cockroachdb/datadriven"), only(jwt), only(jwkset),
		only(chi), only(xsync), only(gonum), only("github.com/anishathalye/porcupine"),
		only("github.com/Shopify/toxiproxy/v2"), only("github.com/rs/zerolog")}
}

// doors are the parts of the standard library that a pure package has no use for: files, the network, the environment,
// randomness (which may enter mechanisms/sampler.go only). Dates are values, so "time" is allowed; its clock is not (rule "clock").
func doors() []string {
	return []string{"os", "net", "io/fs", "io/ioutil", "database/sql", "syscall", "plugin", "crypto/rand", "unsafe", "runtime/debug"}
}

// checkImports holds every file against the table.
func checkImports(t *Tree) []Finding {
	table := map[string]layer{}
	for _, l := range layers() {
		table[l.dir] = l
	}
	var found []Finding
	for _, f := range t.Files {
		l, known := table[f.Dir]
		if !known {
			found = append(found, Finding{f.Path, "package " + f.Dir + " has no line in the import table of internal/archtest"})
			continue
		}
		for _, imported := range f.Imports() {
			if why := l.refuses(f, imported); why != "" {
				found = append(found, Finding{f.Path, fmt.Sprintf("imports %s: %s", imported, why)})
			}
		}
	}
	return found
}

// refuses says why a file may not import a path; "" when it may.
func (l layer) refuses(f *File, imported string) string {
	own, isOwn := strings.CutPrefix(imported, Module+"/")
	switch {
	case isOwn:
		if own == l.dir || slices.Contains(l.own, own) || slices.Contains(l.own, "*") || f.Test && l.testMay(own) {
			return ""
		}
		return l.dir + " may not know " + own
	case strings.Contains(strings.Split(imported, "/")[0], "."):
		return l.refusesLibrary(f, imported)
	case l.pure && !f.Test && slices.ContainsFunc(doors(), func(d string) bool { return imported == d || strings.HasPrefix(imported, d+"/") }):
		if imported == "crypto/rand" && f.Path == "mechanisms/sampler.go" {
			return ""
		}
		return l.dir + " is pure: no I/O, no randomness"
	}
	return ""
}

// isEquipment reports whether only tests import a package: its files keep the rules for tests.
func isEquipment(dir string) bool {
	return dir == "sqlrewrite/internal/rewritetest" || dir == "sqlrewrite/proofs/gen"
}

// isRewriter reports whether a package is the rewriter, one of its rooms or one of its proofs: tests of each take queries through all
// rooms.
func isRewriter(dir string) bool {
	return dir == "sqlrewrite" || strings.HasPrefix(dir, "sqlrewrite/internal/") || strings.HasPrefix(dir, "sqlrewrite/proofs/")
}

func (l layer) testMay(own string) bool {
	return slices.Contains(l.tests, own) || isRewriter(l.dir) && (isRewriter(own) || slices.Contains(rewriterTestOwn(), own)) ||
		!strings.HasPrefix(l.dir, "integration") && slices.Contains(testOwn(), own)
}

func (l layer) refusesLibrary(f *File, imported string) string {
	allowed := l.others
	if f.Test {
		allowed = append(slices.Clone(allowed), testOthers()...)
	}
	why := l.dir + " may not use this library"
	for _, lib := range allowed {
		if imported != lib.module && !strings.HasPrefix(imported, lib.module+"/") {
			continue
		}
		if len(lib.files) == 0 || f.Test || slices.ContainsFunc(lib.files, func(p string) bool { return matches(p, path.Base(f.Path)) }) {
			return ""
		}
		why = "only in " + strings.Join(lib.files, ", ")
	}
	return why
}

// matches is path.Match for the patterns of the table, which are well-formed.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
