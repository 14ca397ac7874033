package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every Markdown file is a page, and every address in a page leads to a page, to a heading of it, or out of the documentation.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		page, ok := Find(strings.TrimSuffix(name, ".md"))
		if !ok {
			t.Errorf("%s is no page", name)
			return nil
		}
		for _, m := range link.FindAllStringSubmatch(string(page.Body), -1) {
			if strings.HasPrefix(m[1], "https://") || m[1] == Root+"/api" {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if to != "" {
				if target, ok = Find(strings.TrimPrefix(strings.TrimPrefix(to, Root), "/")); !ok || !strings.HasPrefix(to, Root) {
					t.Errorf("%s: %s leads nowhere", name, m[1])
				}
			}
			if anchor, _ = url.PathUnescape(anchor); anchor != "" && !strings.Contains(string(target.Body), ` id="`+anchor+`"`) {
				t.Errorf("%s: %s leads to no heading", name, m[1])
			}
		}
		for _, foreign := range []string{"<script", "<iframe", `src="http`} {
			if strings.Contains(string(page.Body), foreign) {
				t.Errorf("%s has %s", name, foreign)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/http-api.md lists every code of a note that queries have.
func TestNotesAreListed(t *testing.T) {
	page, err := os.ReadFile("http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Notes by code")
	note := regexp.MustCompile(`(?:\bNote\(|Note\{\{?Code: |\badd\()"([a-z]+(?:-[a-z]+)*)",`)
	found := map[string]bool{}
	err = filepath.WalkDir("../sqlrewrite", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			strings.Contains(filepath.ToSlash(name), "internal/fit/") {
			return err
		}
		source, err := os.ReadFile(name)
		for _, m := range note.FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = true
			if !strings.Contains(list, "`"+m[1]+"`") {
				t.Errorf("%s: the page does not list the note %s", name, m[1])
			}
		}
		return err
	})
	if err != nil || len(found) < 20 {
		t.Errorf("found %v, %v", found, err)
	}
}

// The table of docs/privacy-officer.md is e^ε/(1+e^ε).
func TestTableOfAccuracies(t *testing.T) {
	page, err := os.ReadFile("privacy-officer.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([\d.]+) \| ([\d.]+)`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		epsilon, err := strconv.ParseFloat(row[1], 64)
		if got := 100 / (1 + math.Exp(-epsilon)); err != nil || strings.TrimSuffix(strconv.FormatFloat(got, 'f', 1, 64), ".0") != row[2] {
			t.Errorf("ε %s: %s, want %.1f", row[1], row[2], got)
		}
	}
	if len(rows) != 7 {
		t.Errorf("the table has %d rows", len(rows))
	}
}

// Every page that a text of the program names, in a hint, a note or a comment that it writes, is served; none names a file instead.
func TestNamedPagesAreServed(t *testing.T) {
	page := regexp.MustCompile(`/docs/([a-z][a-z0-9/-]*[a-z0-9])`)
	file := regexp.MustCompile(`\bdocs/[a-z/-]+\.md`)
	named := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch slashed := filepath.ToSlash(name); {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && slashed != ".." || slashed == "../internal/archtest"):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(source), "docs/") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			if m := file.FindString(text.Value); m != "" {
				t.Errorf("%s names %s, which readers of the program do not have", name, m)
			}
			for _, m := range page.FindAllStringSubmatch(text.Value, -1) {
				named[m[1]] = true
				if _, ok := Find(m[1]); !ok && m[1] != "api" {
					t.Errorf("%s names the page %s, which is not served", name, m[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !named["sql-coverage"] || !named["fit"] {
		t.Errorf("found %v only", named)
	}
}
