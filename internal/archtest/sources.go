package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sources are checked packages of one program.
type sources struct {
	fset     *token.FileSet
	packages []*types.Package // in the order in which they import each other
	files    []*ast.File
	info     *types.Info
}

// listed holds the fields of a package that go list prints.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

func goList(root string, arguments ...string) (found []listed, err error) {
	list := exec.Command("go", append([]string{"list"}, arguments...)...) //nolint:gosec,noctx // arguments are this package's; tests end it
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("archtest: go list: %w", err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("archtest: go list: %w", err)
		}
		found = append(found, p)
	}
}

// loadSources checks the packages of the module at root that a program is made of. Packages of others are read as the compiler left them;
// those of the module need not be compiled.
func loadSources(root, program string) (*sources, error) {
	all, err := goList(root, "-deps", "-json=ImportPath,Dir,GoFiles,Module", program)
	if err != nil {
		return nil, err
	}
	var own []listed
	others := []string{"-export", "-json=ImportPath,Export"}
	for _, p := range all {
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		} else {
			others = append(others, p.ImportPath)
		}
	}
	compiled, err := goList(root, others...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range compiled {
		exports[p.ImportPath] = p.Export
	}
	s, checked := newSources(), map[string]*types.Package{}
	foreign := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		dir, texts := strings.TrimPrefix(p.ImportPath, Module+"/"), map[string]string{}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			texts[dir+"/"+name] = string(text)
		}
		checked[p.ImportPath], err = s.check(p.ImportPath, texts, imports(func(path string) (*types.Package, error) {
			if own := checked[path]; own != nil {
				return own, nil
			}
			return foreign.Import(path)
		}))
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newSources() *sources {
	return &sources{fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}}}
}

// check adds a package.
func (s *sources) check(path string, texts map[string]string, from types.Importer) (*types.Package, error) {
	var files []*ast.File
	for name, text := range texts {
		f, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("archtest: %w", err)
		}
		files = append(files, f)
	}
	config := types.Config{Importer: from}
	p, err := config.Check(path, s.fset, files, s.info)
	s.files, s.packages = append(s.files, files...), append(s.packages, p)
	return p, err
}

type imports func(string) (*types.Package, error)

func (i imports) Import(path string) (*types.Package, error) { return i(path) }

// below are the packages in a folder.
func (s *sources) below(dir string) *sources {
	some := &sources{fset: s.fset, info: s.info}
	for _, p := range s.packages {
		if strings.HasPrefix(p.Path()+"/", Module+"/"+dir+"/") {
			some.packages = append(some.packages, p)
		}
	}
	for _, f := range s.files {
		if strings.HasPrefix(s.file(f), dir+"/") {
			some.files = append(some.files, f)
		}
	}
	return some
}

// file is the path of the file that a node stands in.
func (s *sources) file(n ast.Node) string { return s.fset.Position(n.Pos()).Filename }

func (s *sources) eachFunction(visit func(*ast.FuncDecl, *types.Func)) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				visit(d, s.info.Defs[d.Name].(*types.Func))
			}
		}
	}
}

// shortName is a function's name without that of the module.
func shortName(f *types.Func) string { return strings.ReplaceAll(f.FullName(), Module+"/", "") }
