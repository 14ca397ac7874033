package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rule is one thing that the architecture promises.
type Rule struct {
	Name  string
	Why   string
	Check func(*Tree) []Finding
}

// Rules are all rules.
func Rules() []Rule {
	return []Rule{
		{"imports", "imports point one way, and each library has one home", checkImports},
		{"package-comment", "a package says what it knows and what it does not know", checkPackageComments},
		{"file-map", "in a large package a newcomer finds the file for a change in a minute", checkFileMaps},
		{"math-rand", "noise comes from crypto/rand; a seedable generator in the product is a broken promise", checkMathRand},
		{"clock", "a pure package gives the same result at any time", checkClock},
		{"no-init", "nothing happens before main says so", checkNoInit},
		{"globals", "state has an owner: no package variable changes", checkGlobals},
		{"sampler-source", "only tests may choose where randomness comes from", checkSamplerSource},
		{"fixed-noise", "tests draw the same noise in each run", checkFixedNoise},
		{"sealed", "a true value leaves mechanisms only with noise added", checkSealed},
		{"caches", "what one analyst's question leaves behind shows in the time of nobody else's", checkCaches},
		{"pay-first", "a reservation is made in one place, so that nothing reads protected data without it", checkPayFirst},
		{"simple-protocol", "the simple protocol would run several statements of one text (A49)", checkSimpleProtocol},
		{"fault-home", "errors that clients may see are constructed in internal/fault, so that all texts are read together", checkFaultHome},
		{"fault-codes", "fault codes are unique and documented in docs/errors.md, and nothing else is", checkFaultCodes},
		{"threat-model", "docs/threat-model.md covers every attack and fault, and the tests it names exist", checkThreatModel},
		{"test-names", "a test's name says what it tests; the attack that it covers stands in its comment", checkTestNames},
		{"lines", "a line fits a screen", checkLines},
		{"glossary", "a term has one meaning, and one place that says so", checkGlossary},
		{"tables", "each row of a page's table has the cells of its header", checkTables},
		{"lemmas", "a proof names the code that it is about, and a lemma has one place", checkLemmas},
		{"links", "a page that another one names is there", checkLinks},
		{"index", "a reader finds the page for what they do", checkIndex},
		{"markers", "what is unfinished is an issue, not a comment", checkMarkers},
		{"skips", "CI skips nothing; elsewhere fetched data may be absent, and programs that a page's readers have", checkSkips},
		{"module-file", "the module builds from its own go.mod, without replacements", checkModuleFile},
		{"hosts", "no registry or mirror of one machine in the repository", checkHosts},
	}
}

// maxUnmapped is how many files a package may have before its comment needs a map of them.
const maxUnmapped = 50

// checkFileMaps wants the comment of a large package to name every file of it but its own, once, and no other. A
// smaller package may have such a section, "# Map", too.
func checkFileMaps(t *Tree) []Finding {
	const heading = "# Map\n"
	name := regexp.MustCompile(`\b\w+\.go\b`)
	var found []Finding
	for dir, files := range byDir(t.source()) {
		named := map[string]int{}
		mapped := false
		for _, f := range files {
			if _, text, ok := strings.Cut(f.AST.Doc.Text(), heading); ok {
				mapped = true
				named[path.Base(f.Path)]++
				for _, other := range name.FindAllString(text, -1) {
					named[other]++
				}
			}
		}
		if !mapped && len(files) <= maxUnmapped {
			continue
		}
		for _, f := range files {
			if n := named[path.Base(f.Path)]; n != 1 {
				found = append(found, Finding{f.Path, fmt.Sprintf("the map in the package comment names it %d times, want once", n)})
			}
			delete(named, path.Base(f.Path))
		}
		for _, gone := range slices.Sorted(maps.Keys(named)) {
			found = append(found, Finding{dir, "the map in the package comment names " + gone + ", which does not exist"})
		}
	}
	return found
}

// checkPackageComments wants one package comment per package that ships.
func checkPackageComments(t *Tree) []Finding {
	limits := regexp.MustCompile(`(?is)(does|do) not know|knows? (nothing|neither)|knows \w+ and nothing else`)
	var found []Finding
	for dir, files := range byDir(t.source()) {
		var doc string
		for _, f := range files {
			doc += f.AST.Doc.Text()
		}
		flat := strings.Join(strings.Fields(doc), " ")
		switch {
		case flat == "":
			found = append(found, Finding{dir, "no package comment"})
		case !limits.MatchString(flat):
			found = append(found, Finding{dir, "the package comment does not say what the package does not know"})
		}
	}
	return found
}

func checkMathRand(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.source() {
		if i := f.Imports(); slices.Contains(i, "math/rand") || slices.Contains(i, "math/rand/v2") {
			found = append(found, Finding{f.Path, "imports math/rand"})
		}
	}
	return found
}

// checkClock finds clocks and timers in pure packages.
func checkClock(t *Tree) []Finding {
	impure := func(f *File) bool {
		return !slices.ContainsFunc(layers(), func(l layer) bool { return l.pure && l.dir == f.Dir })
	}
	var found []Finding
	for _, name := range []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"} {
		found = append(found, uses(t, "time", name, impure)...)
	}
	return found
}

func checkNoInit(t *Tree) []Finding {
	var found []Finding
	inspect(t.source(), func(_ *File, n ast.Node) {
		if fn, ok := n.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, Finding{t.at(n), "declares init()"})
		}
	})
	return found
}

func checkSamplerSource(t *Tree) []Finding {
	return uses(t, "", "NewSamplerFrom", func(f *File) bool { return f.Dir == "mechanisms" || f.Dir == "gateway/gatewaytest" })
}

// checkFixedNoise finds tests whose noise differs from run to run, so that a verdict about it may go wrong in any of
// them. Benchmarks give no verdict; packages of integration test the real binary and say how often that goes wrong
// (docs/testing.md).
func checkFixedNoise(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.Test || strings.HasSuffix(f.Path, "bench_test.go") || strings.HasPrefix(f.Dir, "integration") {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, qualified := call.Fun.(*ast.SelectorExpr)
			if isIdent(call.Fun, "NewSampler") || qualified && sel.Sel.Name == "NewSampler" {
				found = append(found, Finding{t.at(n), "draws other noise in each run: NewSamplerFrom(randomtest.Source(t.Name()))"})
			}
			return true
		})
	}
	return found
}

func checkSimpleProtocol(t *Tree) []Finding {
	return uses(t, "", "QueryExecModeSimpleProtocol", func(*File) bool { return false })
}

// checkPayFirst finds calls of Reserve outside the one function that may make them.
func checkPayFirst(t *Tree) []Finding {
	return uses(t, "", "Reserve", func(f *File) bool {
		return f.Path == "gateway/metered.go" || f.Dir == "budget" || strings.HasPrefix(f.Dir, "budget/")
	})
}

// uses finds every mention of qualifier.name in files that ship and are not excepted; an empty qualifier stands for any.
func uses(t *Tree, qualifier, name string, except func(*File) bool) []Finding {
	var found []Finding
	inspect(t.source(), func(f *File, n ast.Node) {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name && (qualifier == "" || isIdent(sel.X, qualifier)) && !except(f) {
			found = append(found, Finding{t.at(n), "uses " + name})
		}
	})
	return found
}

// sealedTypes are the types that hold true values, with the exported methods that they may have besides those that print and encode
// nothing.
func sealedTypes() map[string][]string {
	return map[string][]string{
		"mechanisms.Exact":       nil,
		"mechanisms.ExactVector": {"Len"},
		"pate.Table":             {"Ensemble", "Queries", "Votes", "Select"}, // Votes are an ExactVector, Select another Table
	}
}

// checkSealed keeps the sealed types shut: their exported methods are those that give nothing away, no field is exported, and nobody gets
// around the type system.
func checkSealed(t *Tree) []Finding {
	harmless := []string{"Format", "String", "GoString", "LogValue", "MarshalJSON", "MarshalText", "MarshalBinary"}
	var found []Finding
	inspect(t.source(), func(f *File, n ast.Node) {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if n.Path.Value == `"unsafe"` {
				found = append(found, Finding{t.at(n), "imports unsafe"})
			}
		case *ast.Comment:
			if strings.HasPrefix(n.Text, "//go:linkname") {
				found = append(found, Finding{t.at(n), "uses go:linkname"})
			}
		case *ast.FuncDecl:
			allowed, isSealed := sealedTypes()[f.Dir+"."+receiver(n)]
			if isSealed && n.Name.IsExported() && !slices.Contains(harmless, n.Name.Name) && !slices.Contains(allowed, n.Name.Name) {
				found = append(found, Finding{t.at(n), receiver(n) + " has an exported method " + n.Name.Name})
			}
		case *ast.TypeSpec:
			_, isSealed := sealedTypes()[f.Dir+"."+n.Name.Name]
			if s, ok := n.Type.(*ast.StructType); ok && isSealed && exportsField(s) {
				found = append(found, Finding{t.at(n), n.Name.Name + " has an exported field"})
			}
		}
	})
	return found
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func exportsField(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
			return true
		}
	}
	return false
}

// checkFaultHome finds fault.Error literals outside internal/fault.
func checkFaultHome(t *Tree) []Finding {
	var found []Finding
	inspect(t.source(), func(f *File, n ast.Node) {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		if sel, ok := lit.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" && isIdent(sel.X, "fault") {
			found = append(found, Finding{t.at(n), "builds a fault.Error outside internal/fault"})
		}
	})
	return found
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// checkMarkers looks for the usual words; they are spelled in halves here so that this file passes.
func checkMarkers(t *Tree) []Finding {
	marker := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|panic\("not yet"\)`)
	var found []Finding
	for _, f := range t.Files {
		if m := marker.FindString(f.Text); m != "" {
			found = append(found, Finding{f.Path, "left-over marker " + m})
		}
	}
	for name, text := range t.Texts {
		if m := marker.FindString(text); m != "" {
			found = append(found, Finding{name, "left-over marker " + m})
		}
	}
	return found
}

// checkSkips allows t.Skip only with the message "-short: ..." directly under a condition of testing.Short(), in the
// files that skip outside CI what needs Citus or a program of a page's readers, and in the one for fetched data.
func checkSkips(t *Tree) []Finding {
	skipping := []string{"internal/pgtest/need.go", "internal/pgtest/citus.go", "internal/testfiles/testfiles.go"}
	var found []Finding
	short := map[ast.Node]bool{} // statements under if testing.Short()
	inspect(t.Files, func(f *File, n ast.Node) {
		if branch, ok := n.(*ast.IfStmt); ok && isShort(branch.Cond) && len(branch.Body.List) == 1 {
			if only, ok := branch.Body.List[0].(*ast.ExprStmt); ok {
				short[only.X] = true
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) || !isTesting(sel.X) {
			return
		}
		if !slices.Contains(skipping, f.Path) && !(short[call] && len(call.Args) == 1 && strings.HasPrefix(literal(call.Args[0]), "-short: ")) {
			found = append(found, Finding{t.at(n), "skips a test for another reason than -short; what needs ../shared asks internal/testfiles"})
		}
	})
	return found
}

func isShort(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Short" && isIdent(sel.X, "testing")
}

func isTesting(e ast.Expr) bool {
	return isIdent(e, "t") || isIdent(e, "b") || isIdent(e, "f") || isIdent(e, "tb")
}

// literal is the text of a string literal, or of the literals in a concatenation.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			if s, err := strconv.Unquote(e.Value); err == nil {
				return s
			}
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

func checkModuleFile(t *Tree) []Finding {
	if regexp.MustCompile(`(?m)^\s*replace\b`).MatchString(t.Texts["go.mod"]) {
		return []Finding{{"go.mod", "has a replace directive"}}
	}
	return nil
}

// checkHosts finds addresses of module proxies and mirrors: they belong to a machine, not to the repository. What is made of variables
// or files is none.
func checkHosts(t *Tree) []Finding {
	host := regexp.MustCompile(`(?i)\bGO(PROXY|NOSUMDB|SUMDB|NOSUMCHECK|FLAGS)\s*[:?]?=\s*([^\s$f]|f[^i])|proxy\.golang\.org|goproxy\.\w+|\.pkg\.dev\b|jfrog\.io|\bnexus\.`)
	var found []Finding
	for name, text := range t.Texts {
		if m := host.FindString(text); m != "" {
			found = append(found, Finding{name, "names a registry or mirror: " + m})
		}
	}
	return found
}
