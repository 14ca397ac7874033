package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// maxLine is how long a line of Go may be. Lines of raw strings are other texts: SQL, YAML, what a program prints.
const maxLine = 140

func checkLines(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if strings.HasPrefix(f.Dir, "sqlrewrite") {
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
