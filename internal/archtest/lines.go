package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLine is how long a line of Go may be. Lines of raw strings are other texts: SQL, YAML, what a program prints.
const maxLine = 140

// longLines are the files that had longer lines when the rule came, because other branches were changing them.
func longLines() []string {
	return []string{
		"api/pate.go",
		"budget/adaptive_test.go",
		"budget/books.go",
		"budget/books_test.go",
		"budget/budgettest/lifecycle.go",
		"budget/chain.go",
		"budget/charge.go",
		"budget/ledger.go",
		"budget/postgres_write.go",
		"gateway/httpapi/labels_timing_test.go",
		"gateway/httpapi/pate_accounts_test.go",
		"gateway/httpapi/pate_steward_test.go",
		"gateway/labels.go",
		"gateway/labels_analysis.go",
		"gateway/labels_estimate.go",
		"gateway/metered.go",
		"gateway/others_test.go",
		"gateway/purse.go",
		"pate/postgres.go",
		"pate/postgres_answers.go",
		"pate/postgres_test.go",
	}
}

func checkLines(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if strings.HasPrefix(f.Dir, "sqlrewrite") || slices.Contains(longLines(), f.Path) {
			continue
		}
		raw := t.rawLines(f)
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > maxLine && !raw[n] {
				found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, n), fmt.Sprintf("%d characters, want at most %d", length, maxLine)})
			}
		}
	}
	return found
}

// rawLines are the numbers of the lines that a raw string has a part of.
func (t *Tree) rawLines(f *File) map[int]bool {
	raw := map[int]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.HasPrefix(lit.Value, "`") {
			for line := t.fset.Position(lit.Pos()).Line; line <= t.fset.Position(lit.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})
	return raw
}
