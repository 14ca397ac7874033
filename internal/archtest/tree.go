// Package archtest checks the architecture: it is the table of who may import whom, and the house rules that a machine
// can check, as code that "go test" runs.
//
// It knows the source text of the repository. It does not know behaviour: a rule here looks at syntax, those of
// recursion, of the trusted base and of numbers that may only fall look at types too, and whatever needs more belongs
// into a test of the package concerned. Each rule has a self-test that proves it can fail.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the module path of this repository.
const Module = "noisegate.example"

// Tree is the parsed source of a repository.
type Tree struct {
	Files []*File           // every Go file, sorted by path
	Texts map[string]string // every other text file that rules look at (go.mod, Makefile, *.md, *.sql, *.yml), by path
	// Goldens are the names in the testdata of a package's directory, without what follows a point.
	Goldens map[string][]string

	fset *token.FileSet
}

// File is one Go file.
type File struct {
	Path string // slash-separated, relative to the repository's root
	Dir  string // the package's directory; "." for the root
	Test bool   // a _test.go file, or one of a package that only tests import
	AST  *ast.File
	Text string
}

// Imports are the paths that the file imports.
func (f *File) Imports() []string {
	var paths []string
	for _, spec := range f.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// Finding is one breach of a rule.
type Finding struct {
	Where string // path, or path:line
	What  string
}

func (f Finding) String() string { return f.Where + ": " + f.What }

// Load parses the repository at root. Hidden directories, testdata and what npm installed are left out.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{Texts: map[string]string{}, Goldens: map[string][]string{}, fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			goldens, err := fs.ReadDir(root, name)
			for _, golden := range goldens {
				of, _, _ := strings.Cut(golden.Name(), ".")
				t.Goldens[path.Dir(name)] = append(t.Goldens[path.Dir(name)], of)
			}
			if err != nil {
				return err
			}
			return fs.SkipDir
		case entry.IsDir():
			return skipDir(name, entry.Name())
		case path.Ext(name) == ".go":
			return t.addGo(root, name)
		case isText(name):
			text, err := fs.ReadFile(root, name)
			t.Texts[name] = string(text)
			return err
		}
		return nil
	})
	return t, err
}

func skipDir(name, base string) error {
	hidden := strings.HasPrefix(base, ".") && name != "." && base != ".ci"
	if hidden || base == "bin" || base == "node_modules" {
		return fs.SkipDir
	}
	return nil
}

func isText(name string) bool {
	if strings.HasPrefix(name, ".ci/") {
		return true
	}
	switch path.Ext(name) {
	case ".md", ".mod", ".sql", ".yml", ".yaml":
		return true
	}
	return path.Base(name) == "Makefile"
}

func (t *Tree) addGo(root fs.FS, name string) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("archtest: %w", err)
	}
	t.Files = append(t.Files, &File{
		Path: name, Dir: path.Dir(name), AST: syntax, Text: string(text),
		Test: strings.HasSuffix(name, "_test.go") || isEquipment(path.Dir(name)),
	})
	return nil
}

// at names the place of a node.
func (t *Tree) at(node ast.Node) string {
	p := t.fset.Position(node.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// source are the files that ship: those that are no tests.
func (t *Tree) source() []*File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f *File) bool { return f.Test })
}

// byDir groups files by package directory.
func byDir(files []*File) map[string][]*File {
	dirs := map[string][]*File{}
	for _, f := range files {
		dirs[f.Dir] = append(dirs[f.Dir], f)
	}
	return dirs
}

// inspect walks every node of every file.
func inspect(files []*File, visit func(*File, ast.Node)) {
	for _, f := range files {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if n != nil {
				visit(f, n)
			}
			return true
		})
	}
}
