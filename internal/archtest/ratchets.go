package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ratchet is a number that may only fall. Nothing may have more than most, but for what testdata/ratchets.txt names: that may have as much
// as it says there. make golden lowers what it says there and never raises it: that takes -raise, and a page in docs/decisions that says
// why.
type ratchet struct {
	name, unit string
	most       int
	measure    func(*sources, *Tree) map[string]int
}

func ratchets() []ratchet {
	return []ratchet{
		{"branches", "branches in a function", 25, byTypes(branches)},
		{"circle", "files in a package that refer to each other in a circle", 8,
			byTypes(func(s *sources) map[string]int { return circles(s, false) })},
		{"back", "references from file to file in such a circle", 20,
			byTypes(func(s *sources) map[string]int { return circles(s, true) })},
		{"fields", "fields of a struct that functions assign which do not make one", 6, byTypes(fieldsAssigned)},
		{"exported", "exported names in a package", 80, byTypes(exported)},
		{"imports", "packages of the module that a package imports, directly or not", 25, byTypes(importClosure)},
		{"untested", "files of a room without a test or a golden there", 0, func(_ *sources, t *Tree) map[string]int { return untested(t) }},
		{"unmutated", "files of the proof that no mutant weakens", 0, func(_ *sources, t *Tree) map[string]int { return unmutated(t) }},
		{"prose", "phrases that the house does not write, in the comments and pages of a folder", 0,
			func(_ *sources, t *Tree) map[string]int { return prose(t) }},
		{"words", "thousand words in the pages of a folder", 5, func(_ *sources, t *Tree) map[string]int { return words(t) }},
	}
}

func byTypes(measure func(*sources) map[string]int) func(*sources, *Tree) map[string]int {
	return func(s *sources, _ *Tree) map[string]int { return measure(s) }
}

// hold compares numbers with those that are allowed. What fell by a tenth is to be lowered in the file.
func (r ratchet) hold(measured, allowed map[string]int) []Finding {
	var found []Finding
	for _, of := range slices.Sorted(maps.Keys(measured)) {
		if n := measured[of]; n > max(r.most, allowed[of]) {
			found = append(found, Finding{of, fmt.Sprintf("%d %s, want at most %d", n, r.unit, max(r.most, allowed[of]))})
		}
	}
	for _, of := range slices.Sorted(maps.Keys(allowed)) {
		if n, most := measured[of], allowed[of]; n <= r.most || n < most-most/10 {
			found = append(found, Finding{of, fmt.Sprintf("%d %s, and %d are allowed: make golden lowers that", n, r.unit, most)})
		}
	}
	return found
}

// lowered are the numbers that are still needed.
func (r ratchet) lowered(measured, allowed map[string]int) map[string]int {
	low := map[string]int{}
	for of, most := range allowed {
		if n := measured[of]; n > r.most {
			low[of] = min(n, most)
		}
	}
	return low
}

// branches counts, for each function, 1 and its if, for, case, && and ||.
func branches(s *sources) map[string]int {
	count := map[string]int{}
	s.eachFunction(func(d *ast.FuncDecl, o *types.Func) {
		n := 1
		ast.Inspect(d, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
				n++
			case *ast.CaseClause:
				n += min(1, len(x.List))
			case *ast.CommClause:
				if x.Comm != nil {
					n++
				}
			case *ast.BinaryExpr:
				if x.Op == token.LAND || x.Op == token.LOR {
					n++
				}
			}
			return true
		})
		count[shortName(o)] = n
	})
	return count
}

// circles are, for each package, the files of the largest set that refer to each other, directly or not; or the references inside of all
// such sets.
func circles(s *sources, references bool) map[string]int {
	to := map[string]map[string]bool{}
	for _, f := range s.files {
		from := s.file(f)
		to[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if o := s.info.Uses[id]; o != nil && o.Pos().IsValid() {
					if there := s.fset.Position(o.Pos()).Filename; there != from && path.Dir(there) == path.Dir(from) {
						to[from][there] = true
					}
				}
			}
			return true
		})
	}
	reach := map[string]map[string]bool{}
	for from := range to {
		reach[from] = closureOf(from, to)
	}
	count := map[string]int{}
	for from := range to {
		circle, inside := 0, 0
		for there := range reach[from] {
			if reach[there][from] {
				circle++
				if to[from][there] {
					inside++
				}
			}
		}
		if dir := path.Dir(from); references {
			count[dir] += inside
		} else {
			count[dir] = max(count[dir], circle)
		}
	}
	return count
}

// closureOf returns all that can be reached from a name.
func closureOf(from string, to map[string]map[string]bool) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for next := range to[at] {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return seen
}

// fieldsAssigned counts, for each struct, the fields that are assigned in functions that do not give one back.
func fieldsAssigned(s *sources) map[string]int {
	owner := map[*types.Var]*types.TypeName{}
	for _, o := range s.info.Defs {
		if t, ok := o.(*types.TypeName); ok {
			if fields, ok := t.Type().Underlying().(*types.Struct); ok && !t.IsAlias() {
				for f := range fields.Fields() {
					owner[f] = t
				}
			}
		}
	}
	assigned := map[*types.Var]bool{}
	s.eachFunction(func(d *ast.FuncDecl, o *types.Func) {
		made := map[*types.TypeName]bool{}
		for v := range o.Signature().Results().Variables() {
			t := v.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if named, ok := t.(*types.Named); ok {
				made[named.Obj()] = true
			}
		}
		assign := func(place ast.Expr) {
			if x, ok := ast.Unparen(place).(*ast.SelectorExpr); ok {
				if v, ok := s.info.Uses[x.Sel].(*types.Var); ok && owner[v.Origin()] != nil && !made[owner[v.Origin()]] {
					assigned[v.Origin()] = true
				}
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					assign(left)
				}
			case *ast.IncDecStmt:
				assign(n.X)
			}
			return true
		})
	})
	count := map[string]int{}
	for v := range assigned {
		count[strings.TrimPrefix(owner[v].Pkg().Path(), Module+"/")+"."+owner[v].Name()]++
	}
	return count
}

// exported counts the names of each package that others may use, of methods too.
func exported(s *sources) map[string]int {
	count := map[string]int{}
	for id, o := range s.info.Defs {
		if o == nil || !id.IsExported() {
			continue
		}
		f, isFunction := o.(*types.Func)
		if o.Parent() == o.Pkg().Scope() || isFunction && f.Signature().Recv() != nil {
			count[strings.TrimPrefix(o.Pkg().Path(), Module+"/")]++
		}
	}
	return count
}

// importClosure counts the packages of the module that each package imports, directly or not.
func importClosure(s *sources) map[string]int {
	to := map[string]map[string]bool{}
	for _, p := range s.packages {
		to[p.Path()] = map[string]bool{}
		for _, other := range p.Imports() {
			if slices.Contains(s.packages, other) {
				to[p.Path()][other.Path()] = true
			}
		}
	}
	count := map[string]int{}
	for from := range to {
		count[strings.TrimPrefix(from, Module+"/")] = len(closureOf(from, to))
	}
	return count
}

// untested counts, for each package of the rewriter, the files with functions that no test of the package covers: none names what the file
// declares, and neither a test nor a golden has the file's name.
func untested(t *Tree) map[string]int {
	count := map[string]int{}
	for dir, files := range byDir(t.Files) {
		if dir != "sqlrewrite" && !strings.HasPrefix(dir, "sqlrewrite/") || isEquipment(dir) || strings.HasSuffix(dir, "test") {
			continue
		}
		tested := map[string]bool{}
		for _, name := range t.Goldens[dir] {
			tested[name] = true
		}
		inspect(files, func(f *File, n ast.Node) {
			if id, ok := n.(*ast.Ident); ok && f.Test {
				tested[id.Name] = true
			}
		})
		for _, f := range files {
			name := strings.TrimSuffix(path.Base(f.Path), ".go")
			if about, ok := strings.CutSuffix(name, "_test"); ok {
				tested[about] = true
			}
		}
		for _, f := range files {
			declared := declaredNames(f.AST)
			if !f.Test && len(declared) > 0 && !slices.ContainsFunc(append(declared, strings.TrimSuffix(path.Base(f.Path), ".go")),
				func(name string) bool { return tested[name] }) {
				count[dir]++
			}
		}
	}
	return count
}

// unmutated counts the files of the proof with functions that no table of mutants names: a mutant names its file.
func unmutated(t *Tree) map[string]int {
	const proof = "sqlrewrite/verify"
	named := map[string]bool{}
	files := slices.DeleteFunc(slices.Clone(t.Files), func(f *File) bool { return f.Dir != proof && !strings.HasPrefix(f.Dir, proof+"/") })
	inspect(files, func(f *File, n ast.Node) {
		if text, ok := n.(*ast.BasicLit); ok && f.Test && text.Kind == token.STRING {
			named[path.Base(strings.Trim(text.Value, `"`))] = true
		}
	})
	count := map[string]int{}
	for _, f := range files {
		if !f.Test && declaredNames(f.AST) != nil && !named[path.Base(f.Path)] {
			count[proof]++
		}
	}
	return count
}

// declaredNames gives the functions, methods and types of a file; nil where it has no function.
func declaredNames(f *ast.File) (names []string) {
	functions := false
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			functions, names = true, append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	if !functions {
		return nil
	}
	return names
}

// unwritten are phrases that hide who does what to what, or that only this house would write.
var unwritten = regexp.MustCompile(`(?i)\b(whoever|of which|beside|in the place of|alike|by now|by then|at hand|on its way|of its own|told of|tells|is a reading|` +
	`is (of|for|after|by|over) (how|what|which|whom))\b`)

// prose counts unwritten phrases in the comments of Go files and in pages.
func prose(t *Tree) map[string]int {
	count := map[string]int{}
	in := func(dir, text string) {
		count[dir] += len(unwritten.FindAllString(strings.Join(strings.Fields(text), " "), -1))
	}
	for _, f := range t.Files {
		for _, group := range f.AST.Comments {
			in(f.Dir, group.Text())
		}
	}
	for name, text := range t.Texts {
		if path.Ext(name) == ".md" {
			in(path.Dir(name), text)
		}
	}
	return count
}

// words counts the words of each folder's pages, in thousands. README.md belongs to docs.
func words(t *Tree) map[string]int {
	count := map[string]int{}
	for name, text := range t.Texts {
		dir := path.Dir(name)
		if name == "README.md" {
			dir = "docs"
		}
		if path.Ext(name) == ".md" && (dir == "docs" || strings.HasPrefix(dir, "docs/")) {
			count[dir] += len(strings.Fields(text))
		}
	}
	for dir, n := range count {
		count[dir] = (n + 999) / 1000
	}
	return count
}
