package archtest

import (
	"go/ast"
	"go/types"
	"slices"
)

// reached are the lines of declarations that functions use, directly or by way of others: what must be right for them to be right.
//
// A function that is named may be called, a call by an interface may be one of each method in the program that fits, a field that holds
// functions may hold any that the program puts into such a field, and a library may call each method of a named type that fits one of its
// interfaces. So too much is counted rather than too little; but functions that callers hand to the roots are not.
type reached struct {
	*sources
	declared   map[types.Object]ast.Node
	assigned   map[types.Object][]ast.Node // what is put into fields of function types
	named      []*types.TypeName           // types that have methods
	interfaces []*types.Interface          // exported ones of packages of others
	seen       map[any]bool
	todo       []ast.Node
	lines      map[string]map[int]bool // of each file
}

// reach counts from the functions with these names, as types.Func.FullName gives them, less the name of the module.
func reach(s *sources, roots ...string) *reached {
	r := &reached{sources: s, declared: map[types.Object]ast.Node{}, assigned: map[types.Object][]ast.Node{}, seen: map[any]bool{},
		lines: map[string]map[int]bool{}, interfaces: foreignInterfaces(s)}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool { r.collect(n); return true })
	}
	for o := range r.declared {
		if f, ok := o.(*types.Func); ok && slices.Contains(roots, shortName(f)) {
			r.use(f)
		}
	}
	for len(r.todo) > 0 {
		n := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		r.count(n)
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && s.info.Uses[id] != nil {
				r.use(s.info.Uses[id])
			}
			return true
		})
	}
	return r
}

// foreignInterfaces are the interfaces by which packages of others may call methods.
func foreignInterfaces(s *sources) []*types.Interface {
	found := []*types.Interface{types.Universe.Lookup("error").Type().Underlying().(*types.Interface)}
	seen := map[*types.Package]bool{}
	for _, p := range s.packages {
		for _, other := range p.Imports() {
			if seen[other] || slices.Contains(s.packages, other) {
				continue
			}
			seen[other] = true
			for _, name := range other.Scope().Names() {
				o, ok := other.Scope().Lookup(name).(*types.TypeName)
				if !ok || !o.Exported() {
					continue
				}
				if i, ok := o.Type().Underlying().(*types.Interface); ok && i.IsMethodSet() && i.NumMethods() > 0 {
					found = append(found, i)
				}
			}
		}
	}
	return found
}

// collect notes what a node declares, or puts into a field.
func (r *reached) collect(n ast.Node) {
	declare := func(n ast.Node, names ...*ast.Ident) {
		for _, name := range names {
			if o := r.info.Defs[name]; o != nil {
				r.declared[o] = n
			}
		}
	}
	put := func(field types.Object, value ast.Node) {
		if v, ok := field.(*types.Var); ok && v.IsField() && holdsFunctions(v.Type()) {
			r.assigned[v.Origin()] = append(r.assigned[v.Origin()], value)
		}
	}
	switch n := n.(type) {
	case *ast.FuncDecl:
		declare(n, n.Name)
	case *ast.ValueSpec:
		declare(n, n.Names...)
	case *ast.TypeSpec:
		declare(n, n.Name)
		if o, ok := r.info.Defs[n.Name].(*types.TypeName); ok && !o.IsAlias() && !types.IsInterface(o.Type()) {
			r.named = append(r.named, o)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
				put(r.info.Uses[s.Sel], n.Rhs[i])
			}
		}
	case *ast.CompositeLit:
		for i, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					put(r.info.Uses[key], pair.Value)
				}
			} else if s, ok := r.info.TypeOf(n).Underlying().(*types.Struct); ok {
				put(s.Field(i), e)
			}
		}
	}
}

func holdsFunctions(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Signature:
		return true
	case *types.Slice:
		return holdsFunctions(t.Elem())
	case *types.Map:
		return holdsFunctions(t.Elem())
	}
	return false
}

// use adds what a name means.
func (r *reached) use(o types.Object) {
	switch v := o.(type) {
	case *types.Func:
		o = v.Origin()
	case *types.Var:
		o = v.Origin()
	}
	if r.seen[o] {
		return
	}
	r.seen[o] = true
	if n := r.declared[o]; n != nil && (o.Parent() == o.Pkg().Scope() || o.Parent() == nil) {
		r.add(n)
	}
	switch o := o.(type) {
	case *types.Var:
		for _, n := range r.assigned[o] {
			r.add(n)
		}
	case *types.Func:
		if receiver := o.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
			for _, t := range r.named {
				r.method(t, receiver.Type().Underlying().(*types.Interface), o.Name())
			}
		}
	case *types.TypeName:
		if !slices.Contains(r.named, o) {
			return
		}
		for _, name := range []string{"As", "Is", "Unwrap"} { // package errors asks by interfaces without names
			r.method(o, nil, name)
		}
		for _, i := range r.interfaces {
			for m := range i.Methods() {
				r.method(o, i, m.Name())
			}
		}
	}
}

// method adds a method of a type that fits an interface.
func (r *reached) method(t *types.TypeName, fits *types.Interface, name string) {
	named, ok := t.Type().(*types.Named)
	if !ok {
		return
	}
	pointer := types.NewPointer(named)
	o, _, _ := types.LookupFieldOrMethod(pointer, true, t.Pkg(), name)
	if m, ok := o.(*types.Func); ok && (fits == nil || named.TypeParams() != nil || types.Implements(pointer, fits)) {
		r.use(m)
	}
}

func (r *reached) add(n ast.Node) {
	if !r.seen[n] {
		r.seen[n] = true
		r.todo = append(r.todo, n)
	}
}

// count adds the lines of a node.
func (r *reached) count(n ast.Node) {
	from, to := r.fset.Position(n.Pos()), r.fset.Position(n.End())
	if r.lines[from.Filename] == nil {
		r.lines[from.Filename] = map[int]bool{}
	}
	for line := from.Line; line <= to.Line; line++ {
		r.lines[from.Filename][line] = true
	}
}
