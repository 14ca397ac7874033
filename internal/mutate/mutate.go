// Package mutate compiles all mutants of a package into one test binary, so that a mutant costs a process, not a build.
//
// A function with mutants becomes a copy of itself for each of them and a dispatcher, which calls the copy that the
// environment names, or the original. The files that ship stay as they are: the go command reads others in an overlay.
//
// It knows Go's syntax and the go command. It does not know what a mutant weakens, nor which may live.
package mutate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Edit is a mutant: the first occurrence of Old in File, which is within the body of one function, becomes New.
type Edit struct{ File, Old, New string }

// variable names the environment variable with the mutant to run, counted from 1; 0 or unset runs the original.
const variable = "NOISEGATE_MUTANT"

// Overlay maps a file's path to the text that is compiled in its place.
type Overlay map[string]string

// New writes the mutants of files whose paths start at dir. It refuses edits that it does not find within a function.
func New(dir string, edits []Edit) (Overlay, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]int{}
	for i, e := range edits {
		files[e.File] = append(files[e.File], i)
	}
	all := Overlay{}
	var refused []error
	for name, numbers := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := &file{text: string(source), fset: token.NewFileSet(), mutants: map[*ast.FuncDecl][]mutant{}}
		if f.tree, err = parser.ParseFile(f.fset, path, source, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		for _, i := range numbers {
			if err := f.add(i+1, edits[i]); err != nil {
				refused = append(refused, fmt.Errorf("%s: %w: %s", name, err, edits[i].Old))
			}
		}
		all[path] = f.mutated()
		all[filepath.Join(filepath.Dir(path), "mutant_on.go")] = "package " + f.tree.Name.Name + `

import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`
	}
	return all, errors.Join(refused...)
}

// file is a Go file and the mutants of its functions.
type file struct {
	text    string
	fset    *token.FileSet
	tree    *ast.File
	mutants map[*ast.FuncDecl][]mutant
}

// mutant replaces the bytes of a file from start to end.
type mutant struct {
	number, start, end int
	text               string
}

func (f *file) at(p token.Pos) int { return f.fset.Position(p).Offset }

// source is a node as it is written.
func (f *file) source(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

func (f *file) add(number int, e Edit) error {
	start := strings.Index(f.text, e.Old)
	if start < 0 {
		return errors.New("is not there any more")
	}
	m := mutant{number, start, start + len(e.Old), e.New}
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || m.start < f.at(fn.Body.Lbrace) || m.end > f.at(fn.End()) {
			continue
		}
		if recovers(fn.Body) {
			return errors.New("its function calls recover, which does not work behind a dispatcher")
		}
		f.mutants[fn] = append(f.mutants[fn], m)
		return nil
	}
	return errors.New("is outside of functions")
}

// recovers says whether a function itself, not one inside of it, calls recover.
func recovers(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

// mutated is the file with a dispatcher and copies in place of each function that has mutants.
func (f *file) mutated() string {
	var out strings.Builder
	last := 0
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || f.mutants[fn] == nil {
			continue
		}
		start, name, end := f.at(fn.Pos()), f.at(fn.Name.End()), f.at(fn.End())
		out.WriteString(f.text[last:start] + f.dispatcher(fn))
		fmt.Fprintf(&out, "\n\n%s__0%s", f.text[start:name], f.text[name:end])
		for _, m := range f.mutants[fn] {
			fmt.Fprintf(&out, "\n\n%s__%d%s%s%s", f.text[start:name], m.number, f.text[name:m.start], m.text, f.text[m.end:end])
		}
		last = end
	}
	return out.String() + f.text[last:]
}

// dispatcher is a function of the name and type of fn that calls one of its copies.
func (f *file) dispatcher(fn *ast.FuncDecl) string {
	head, call := "func ", fn.Name.Name+"__%d"
	if fn.Recv != nil {
		head += "(mr " + f.source(fn.Recv.List[0].Type) + ") "
		call = "mr." + call
	}
	head += fn.Name.Name
	if p := fn.Type.TypeParams; p != nil {
		head += f.source(p)
		call += "[" + strings.Join(names(p), ", ") + "]"
	}
	var params, args, results []string
	for _, p := range fn.Type.Params.List {
		for range max(1, len(p.Names)) {
			arg := fmt.Sprintf("mp%d", len(args))
			params = append(params, arg+" "+f.source(p.Type))
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results == nil {
		call += "; return"
	} else {
		call = "return " + call
		for _, r := range fn.Type.Results.List {
			results = append(results, slices.Repeat([]string{f.source(r.Type)}, max(1, len(r.Names)))...)
		}
	}
	var cases strings.Builder
	for _, m := range f.mutants[fn] {
		fmt.Fprintf(&cases, "\tcase %d:\n\t\t"+call+"\n", m.number, m.number)
	}
	return fmt.Sprintf("%s(%s) (%s) {\n\tswitch mutantOn {\n%s\t}\n\t"+call+"\n}",
		head, strings.Join(params, ", "), strings.Join(results, ", "), cases.String(), 0)
}

func names(list *ast.FieldList) []string {
	var all []string
	for _, p := range list.List {
		for _, n := range p.Names {
			all = append(all, n.Name)
		}
	}
	return all
}

// Program is a test binary with mutants.
type Program struct{ dir, binary string }

// Compile makes the test binary of the package in dir; scratch is an empty directory for it.
func (o Overlay) Compile(ctx context.Context, dir, scratch string) (*Program, error) {
	replace := map[string]string{}
	for path, text := range o {
		replace[path] = filepath.Join(scratch, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay, binary := filepath.Join(scratch, "overlay.json"), filepath.Join(scratch, "mutants.test")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mutants do not compile: %w\n%s", err, out)
	}
	return &Program{dir, binary}, nil
}

// limit bounds the tests of one mutant; even on a busy machine they take far less.
const limit = 2 * time.Minute

// Kills says whether a test of the pattern fails or panics with a mutant, and what the tests print. Ends of other kinds
// are errors: a mutant on which the tests hang was not judged.
func (p *Program) Kills(ctx context.Context, number int, pattern string) (dead bool, out string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the tests take longer than %v", limit))
	defer cancel()
	run := exec.CommandContext(ctx, p.binary, "-test.failfast", "-test.timeout=0", "-test.run="+pattern)
	run.Dir, run.Env = p.dir, append(os.Environ(), variable+"="+strconv.Itoa(number))
	text, err := run.CombinedOutput()
	switch {
	case err == nil && bytes.Contains(text, []byte("no tests to run")):
		return false, string(text), errors.New("no test has a name of the pattern " + pattern)
	case err == nil:
		return false, string(text), nil
	case ctx.Err() == nil && (bytes.Contains(text, []byte("--- FAIL: Test")) || bytes.Contains(text, []byte("panic:"))):
		return true, string(text), nil
	}
	return false, string(text), cmp.Or(context.Cause(ctx), err)
}
