package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	errorsPage      = "docs/errors.md"
	threatModelPage = "docs/threat-model.md"
	faultDir        = "internal/fault"
)

// checkFaultCodes compares the codes of internal/fault with docs/errors.md, both ways.
func checkFaultCodes(t *Tree) []Finding {
	var found []Finding
	declared := map[string]bool{}
	for _, c := range faultCodes(t) {
		if declared[c.code] {
			found = append(found, Finding{c.where, c.code + " is declared twice"})
		}
		declared[c.code] = true
	}
	documented := firstCells(t.Texts[errorsPage], regexp.MustCompile("^`([a-z-]+(?:/[a-z-]+)?)`$"))
	for _, code := range slices.Sorted(maps.Keys(declared)) {
		if documented[code] == 0 {
			found = append(found, Finding{errorsPage, "does not explain " + code})
		}
	}
	for code, n := range documented {
		switch {
		case !declared[code]:
			found = append(found, Finding{errorsPage, "explains " + code + ", which does not exist"})
		case n > 1:
			found = append(found, Finding{errorsPage, "explains " + code + " more than once"})
		}
	}
	return found
}

type faultCode struct{ code, where string }

// faultCodes are the values of the constants of type Code.
func faultCodes(t *Tree) []faultCode {
	var codes []faultCode
	inspect(t.source(), func(f *File, n ast.Node) {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST || f.Dir != faultDir {
			return
		}
		for _, spec := range decl.Specs {
			v := spec.(*ast.ValueSpec)
			for _, value := range v.Values {
				if text := literal(value); isIdent(v.Type, "Code") && text != "" {
					codes = append(codes, faultCode{text, t.at(v)})
				}
			}
		}
	})
	return codes
}

// checkThreatModel wants one line per attack and fault; each either names tests, which must exist, or says why there is
// none. A test whose comment has an attack's ID in a "covers:" line must be named on that attack's line.
func checkThreatModel(t *Tree) []Finding {
	page := t.Texts[threatModelPage]
	tests := testNames(t)
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Audit|Benchmark)[A-Z]\w*`)
	var found []Finding
	rows := tableRows(page, threatID())
	for _, id := range threatIDs() {
		cells := rows[id]
		if len(cells) != 1 {
			found = append(found, Finding{threatModelPage, fmt.Sprintf("%s has %d lines, want 1", id, len(cells))})
			continue
		}
		names := named.FindAllString(cells[0], -1)
		if len(names) == 0 && !strings.Contains(cells[0], "not yet:") && !strings.Contains(cells[0], "by design:") {
			found = append(found, Finding{threatModelPage, id + ` names no test and gives no reason ("not yet: ..." or "by design: ...")`})
		}
		for _, name := range names {
			if _, ok := tests[name]; !ok {
				found = append(found, Finding{threatModelPage, id + " names " + name + ", which does not exist"})
			}
		}
	}
	return append(found, unlisted(tests, rows)...)
}

// mention is a test that covers an attack.
type mention struct{ id, test string }

// unmentioned are the tests that the page does not name on the line of an ID that they cover.
func unmentioned(tests map[string]test, rows map[string][]string) []mention {
	var missing []mention
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		for _, id := range tests[name].covers {
			if !slices.ContainsFunc(rows[id], func(row string) bool { return strings.Contains(row, "`"+name+"`") }) {
				missing = append(missing, mention{id, name})
			}
		}
	}
	return missing
}

func unlisted(tests map[string]test, rows map[string][]string) []Finding {
	var found []Finding
	for _, m := range unmentioned(tests, rows) {
		found = append(found, Finding{threatModelPage, fmt.Sprintf("%s does not name %s (%s); make golden adds it", m.id, m.test,
			tests[m.test].file)})
	}
	return found
}

// ListTests gives docs/threat-model.md with every test on the lines of the IDs that it covers.
func ListTests(t *Tree) string {
	page := t.Texts[threatModelPage]
	for _, m := range unmentioned(testNames(t), tableRows(page, threatID())) {
		line := regexp.MustCompile(`(?m)^(\| ` + m.id + ` \|[^|]*\| )`)
		page = line.ReplaceAllString(page, "${1}`"+m.test+"`, ")
	}
	return page
}

// threatID matches the first cell of a line of the threat model.
func threatID() *regexp.Regexp { return regexp.MustCompile(`^([AF]\d\d)$`) }

// threatIDs are the attacks and faults of the plan: A01 to A89 and F01 to F24.
func threatIDs() []string {
	var ids []string
	for i := 1; i <= 89; i++ {
		ids = append(ids, fmt.Sprintf("A%02d", i))
	}
	for i := 1; i <= 24; i++ {
		ids = append(ids, fmt.Sprintf("F%02d", i))
	}
	return ids
}

// test is a test, fuzz target or benchmark.
type test struct {
	file   string
	covers []string // IDs of attacks and faults
}

// testNames are the tests, fuzz targets and benchmarks of the tree.
func testNames(t *Tree) map[string]test {
	names := map[string]test{}
	for _, f := range t.Files {
		for _, fn := range testsOf(f) {
			one := names[fn.Name.Name] // two packages may have tests of one name
			names[fn.Name.Name] = test{f.Path, append(one.covers, covered(fn)...)}
		}
	}
	return names
}

// testsOf are the functions of a file that "go test" runs.
func testsOf(f *File) []*ast.FuncDecl {
	runs := regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]`)
	var tests []*ast.FuncDecl
	for _, decl := range f.AST.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && f.Test && fn.Recv == nil && runs.MatchString(fn.Name.Name) {
			tests = append(tests, fn)
		}
	}
	return tests
}

// covered are the IDs in the "covers:" lines of a test's comment.
func covered(fn *ast.FuncDecl) []string {
	id := regexp.MustCompile(`\b[AF]\d\d\b`)
	var ids []string
	for line := range strings.Lines(fn.Doc.Text()) {
		if list, ok := strings.CutPrefix(line, "covers: "); ok {
			ids = append(ids, id.FindAllString(list, -1)...)
		}
	}
	return ids
}

// nameIDs finds IDs in the name of a test: a letter with digits as a separate word, unlike "SQL18".
func nameIDs() *regexp.Regexp {
	return regexp.MustCompile(`(?:^Test|^Fuzz|^Benchmark|[a-z0-9_])([A-Z]\d+)(?:[A-Z_]|$)`)
}

// checkTestNames finds names that say which attack a test is about instead of what it tests.
func checkTestNames(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		for _, fn := range testsOf(f) {
			if id := nameIDs().FindStringSubmatch(fn.Name.Name); id != nil {
				found = append(found, Finding{t.at(fn), fmt.Sprintf("%s has an ID in its name: say what it tests, and \"// covers: %s\" in its "+
					"comment", fn.Name.Name, id[1])})
			}
		}
	}
	return found
}

// tableRows are the rows of a page's tables whose first cell matches, by the match's first group; each as its text after that cell.
func tableRows(page string, first *regexp.Regexp) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(page) {
		cell, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
		if !ok {
			continue
		}
		if m := first.FindStringSubmatch(strings.TrimSpace(cell)); m != nil {
			rows[m[1]] = append(rows[m[1]], rest)
		}
	}
	return rows
}

// firstCells counts the rows per matching first cell.
func firstCells(page string, first *regexp.Regexp) map[string]int {
	count := map[string]int{}
	for cell, rows := range tableRows(page, first) {
		count[cell] = len(rows)
	}
	return count
}
