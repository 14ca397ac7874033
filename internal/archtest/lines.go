package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// How long a line may be: of Go, and of a page. Lines of raw strings are other texts: SQL, YAML, what a program prints; so are those of a
// page's blocks of code. A row of a table has no line breaks.
const (
	maxLine = 140
	maxText = 120
)

func checkLines(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		raw := t.rawLines(f)
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > maxLine && !raw[n] {
				found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, n), fmt.Sprintf("%d characters, want at most %d", length, maxLine)})
			}
		}
	}
	for _, page := range t.pages("") {
		n, code := 0, false
		for line := range strings.Lines(t.Texts[page]) {
			n++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > maxText && !code && !strings.HasPrefix(line, "|") {
				found = append(found, Finding{fmt.Sprintf("%s:%d", page, n), fmt.Sprintf("%d characters, want at most %d", length, maxText)})
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
