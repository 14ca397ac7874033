package archtest

import (
	"go/ast"
	"go/token"
)

// checkGlobals finds package variables that change after they were declared: assigned to, counted up, indexed into, or of a type
// that only exists to change (sync, sync/atomic). Package variables that stay as they are (errors, tables, embedded files) are fine.
func checkGlobals(t *Tree) []Finding {
	var found []Finding
	for _, files := range byDir(t.source()) {
		globals := map[string]bool{}
		for _, f := range files {
			found = append(found, declaredGlobals(t, f, globals)...)
		}
		for _, f := range files {
			for _, decl := range f.AST.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
					found = append(found, writesGlobals(t, fn, globals)...)
				}
			}
		}
	}
	return found
}

// declaredGlobals adds the file's package variables to globals and finds those of a changing type.
func declaredGlobals(t *Tree, f *File, globals map[string]bool) []Finding {
	var found []Finding
	for _, decl := range f.AST.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				globals[name.Name] = true
			}
			if sel, ok := v.Type.(*ast.SelectorExpr); ok && (isIdent(sel.X, "sync") || isIdent(sel.X, "atomic")) {
				found = append(found, Finding{t.at(v), "a package variable that changes: " + v.Names[0].Name})
			}
		}
	}
	return found
}

// writesGlobals finds changes of globals in a function. A name that the function declares itself, anywhere, counts as local.
func writesGlobals(t *Tree, fn *ast.FuncDecl, globals map[string]bool) []Finding {
	local := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			declare(local, n.Names...)
		case *ast.ValueSpec:
			declare(local, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok {
						declare(local, id)
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declare(local, id)
				}
			}
		}
		return true
	})
	var found []Finding
	written := func(at ast.Node, e ast.Expr) {
		if name := root(e); globals[name] && !local[name] {
			found = append(found, Finding{t.at(at), "changes the package variable " + name})
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				written(n, left)
			}
		case *ast.IncDecStmt:
			written(n, n.X)
		}
		return true
	})
	return found
}

func declare(local map[string]bool, names ...*ast.Ident) {
	for _, n := range names {
		local[n.Name] = true
	}
}

// root is the variable behind x, x.f, x[i] and *x.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return ""
}
