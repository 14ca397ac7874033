package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A text that somebody sent must not keep the process busy, or end it by a full stack: every function of packages that work on texts, and
// that may call itself, by way of others or not, either counts its visits (steps.Visit), or is a walk: it hands on a part of what it was
// given, and so ends with the tree that it walks.
//
// A walk is told by its form. What a parameter holds is a part of it: its fields, its elements, what its getters and Children give, and
// what these hold. A worker that is handed on whole, as the receiver of a method mostly is, has no parts. On each way round, somebody
// must hand on a part, and nobody anything that is none of what it was given, nor changes the tree. That form does not prove that a tree
// is finite, or not shared: trees of syntax are made by parsers, whose limits hold for them, and trees that planning makes are made by
// functions that count.

// handed describes the arguments of a call in terms of the caller's parameters.
type handed int

const (
	other handed = iota // something else
	whole               // it, or a value made of it
	part
)

// taint says how a value comes from parameters, and from which.
type taint struct {
	level handed
	roots map[types.Object]bool
}

// function is one that is declared, or a literal.
type function struct {
	name   string
	in     string // its package
	at     token.Pos
	visits bool
	writes bool                 // into what it was given
	calls  map[*function]handed // the weakest of all calls
	index  int                  // by Tarjan; 0: not seen yet
	low    int
	open   bool
}

// graph are the calls among functions. A function whose name stands somewhere may be called there; a call by an interface may be one of
// each method that fits it.
type graph struct {
	*sources
	byObject map[types.Object]*function
	literals map[*ast.FuncLit]*function
	assigned map[types.Object][]*ast.FuncLit // to a variable
	named    map[*ast.FuncLit]bool           // those
	methods  map[string][]*types.Func
	taints   map[types.Object]taint
	worker   types.Object // the receiver of the function that is read
	changed  bool
}

func newGraph(s *sources) *graph {
	g := &graph{sources: s, byObject: map[types.Object]*function{}, literals: map[*ast.FuncLit]*function{},
		assigned: map[types.Object][]*ast.FuncLit{}, named: map[*ast.FuncLit]bool{}, methods: map[string][]*types.Func{},
		taints: map[types.Object]taint{}}
	g.eachFunction(func(d *ast.FuncDecl, o *types.Func) {
		g.byObject[o] = &function{name: shortName(o), in: o.Pkg().Path(), at: d.Pos(),
			calls: map[*function]handed{}}
		if d.Recv != nil {
			g.methods[o.Name()] = append(g.methods[o.Name()], o)
		}
	})
	g.eachFunction(func(d *ast.FuncDecl, o *types.Func) {
		g.give(d.Recv, d.Type)
		g.worker = o.Signature().Recv()
		ast.Inspect(d, func(n ast.Node) bool { g.declare(n, g.byObject[o]); return true })
		for g.changed = true; g.changed; {
			g.changed = false
			ast.Inspect(d.Body, func(n ast.Node) bool { g.spread(n); return true })
		}
	})
	g.eachFunction(func(d *ast.FuncDecl, o *types.Func) {
		g.worker = o.Signature().Recv()
		g.read(g.byObject[o], d.Body)
	})
	return g
}

// give makes parameters what they are.
func (g *graph) give(lists ...any) {
	for _, l := range lists {
		if t, ok := l.(*ast.FuncType); ok {
			l = t.Params
		}
		if l, ok := l.(*ast.FieldList); ok && l != nil {
			for _, f := range l.List {
				for _, name := range f.Names {
					if o := g.info.Defs[name]; o != nil {
						g.taints[o] = taint{whole, map[types.Object]bool{o: true}}
					}
				}
			}
		}
	}
}

// declare finds literals, and the variables that hold them.
func (g *graph) declare(n ast.Node, in *function) {
	hold := func(name ast.Expr, value ast.Expr) {
		literal, ok := value.(*ast.FuncLit)
		if id, isName := name.(*ast.Ident); ok && isName {
			o := g.object(id)
			g.assigned[o], g.named[literal] = append(g.assigned[o], literal), true
		}
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		g.literals[n] = &function{name: in.name + " (literal)", in: in.in, at: n.Pos(), calls: map[*function]handed{}}
		g.give(n.Type)
	case *ast.AssignStmt:
		for i := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				hold(n.Lhs[i], n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i := range n.Values {
			hold(n.Names[i], n.Values[i])
		}
	}
}

func (g *graph) object(id *ast.Ident) types.Object {
	if o := g.info.Defs[id]; o != nil {
		return o
	}
	return g.info.Uses[id]
}

// spread follows values through assignments. A variable that gets several values is as little of a parameter as the least of them.
func (g *graph) spread(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			right := n.Rhs[0]
			if len(n.Rhs) == len(n.Lhs) {
				right = n.Rhs[i]
			}
			g.assign(left, g.of(right))
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Values) == len(n.Names) {
				g.assign(name, g.of(n.Values[i]))
			} else if len(n.Values) == 1 {
				g.assign(name, g.of(n.Values[0]))
			}
		}
	case *ast.RangeStmt:
		if t := g.of(n.X); t.level > other {
			t.level = part
			if n.Value != nil {
				g.assign(n.Value, t)
			} else if n.Key != nil && isIterator(g.info.TypeOf(n.X)) {
				g.assign(n.Key, t)
			}
		}
	case *ast.TypeSwitchStmt:
		var x ast.Expr
		switch s := n.Assign.(type) {
		case *ast.AssignStmt:
			x = s.Rhs[0].(*ast.TypeAssertExpr).X
		case *ast.ExprStmt:
			x = s.X.(*ast.TypeAssertExpr).X
		}
		for _, c := range n.Body.List {
			if o := g.info.Implicits[c]; o != nil {
				g.join(o, g.of(x))
			}
		}
	case *ast.CallExpr: // a literal gets parts of the call's other arguments
		for _, a := range n.Args {
			literal, ok := a.(*ast.FuncLit)
			if !ok {
				continue
			}
			beside := g.beside(n, a)
			for _, f := range literal.Type.Params.List {
				for _, name := range f.Names {
					if o := g.info.Defs[name]; o != nil && beside.level > other {
						g.replace(o, taint{part, beside.roots})
					}
				}
			}
		}
	}
}

func isIterator(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// beside describes the other arguments of a call.
func (g *graph) beside(n *ast.CallExpr, but ast.Expr) taint {
	var all taint
	if s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && g.info.Selections[s] != nil && !g.isWorker(s.X) {
		all = g.of(s.X)
	}
	for _, a := range n.Args {
		if a != but {
			all = least(all, g.of(a))
		}
	}
	return all
}

func (g *graph) assign(left ast.Expr, t taint) {
	if id, ok := left.(*ast.Ident); ok && id.Name != "_" && t.level > other {
		g.join(g.object(id), t)
	}
}

func (g *graph) join(o types.Object, t taint) {
	if t.level > other {
		g.replace(o, least(g.taints[o], t))
	}
}

func (g *graph) replace(o types.Object, t taint) {
	had := g.taints[o]
	if had.level != t.level || len(had.roots) != len(t.roots) {
		g.taints[o], g.changed = t, true
	}
}

// least is how little of parameters two values are together.
func least(a, b taint) taint {
	if a.level == other {
		return b
	}
	if b.level == other {
		return a
	}
	roots := map[types.Object]bool{}
	for _, t := range []taint{a, b} {
		for o := range t.roots {
			roots[o] = true
		}
	}
	return taint{min(a.level, b.level), roots}
}

// of describes how a value derives from parameters.
func (g *graph) of(e ast.Expr) taint {
	inside := func(x ast.Expr) taint {
		t := g.of(x)
		if t.level > other {
			t.level = part
		}
		return t
	}
	switch e := e.(type) {
	case *ast.Ident:
		return g.taints[g.object(e)]
	case *ast.ParenExpr:
		return g.of(e.X)
	case *ast.StarExpr:
		return g.of(e.X)
	case *ast.TypeAssertExpr:
		return g.of(e.X)
	case *ast.UnaryExpr:
		return g.of(e.X)
	case *ast.SelectorExpr:
		return inside(e.X)
	case *ast.IndexExpr:
		return inside(e.X)
	case *ast.SliceExpr:
		return inside(e.X)
	case *ast.KeyValueExpr:
		return g.of(e.Value)
	case *ast.CompositeLit:
		var all taint
		for _, x := range e.Elts {
			all = least(all, g.of(x))
		}
		return all
	case *ast.CallExpr:
		name := ""
		switch f := ast.Unparen(e.Fun).(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
			if g.info.Selections[f] != nil && (!g.isWorker(f.X) || len(e.Args) == 0) && g.of(f.X).level > other { // a getter
				return inside(f.X)
			}
		}
		t := g.beside(e, nil)
		if slices.Contains(givesParts(), name) && t.level > other {
			t.level = part
		}
		return t
	default:
		return taint{}
	}
}

// givesParts are functions that give parts of what they are given.
func givesParts() []string { return []string{"Children", "first", "only"} }

// isWorker reports whether an expression is the receiver itself.
func (g *graph) isWorker(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && g.worker != nil && g.object(id) == g.worker
}

// read adds the calls of a function.
func (g *graph) read(in *function, body ast.Node) {
	how := map[ast.Expr]handed{} // by what is called, or named as an argument
	set := map[ast.Expr]bool{}   // what is assigned to
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if n == body {
				return true
			}
			l := g.literals[n]
			if given, ok := how[n]; ok {
				in.call(l, given)
			} else if !g.named[n] { // it runs where it stands
				in.call(l, whole)
			}
			g.read(l, n.Body)
			return false
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				set[left] = true
				in.writes = in.writes || n.Tok != token.DEFINE && g.isTree(left) && g.isInside(left)
			}
		case *ast.CallExpr:
			given := g.given(n)
			how[ast.Unparen(n.Fun)] = given
			for _, a := range n.Args {
				if t := g.beside(n, a); t.level > other {
					how[a] = part // it is called for parts of the other arguments
				}
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && id.Name == "steps" && n.Sel.Name == "Visit" {
				in.visits = true
			}
			if s := g.info.Selections[n]; s != nil {
				g.to(in, s.Obj(), s.Recv(), how[n])
			} else {
				g.to(in, g.info.Uses[n.Sel], nil, how[n])
			}
		case *ast.Ident:
			if _, ok := g.info.Uses[n].(*types.Var); ok && !set[n] {
				g.to(in, g.info.Uses[n], nil, how[n])
			} else if o, ok := g.info.Uses[n].(*types.Func); ok && o.Signature().Recv() == nil {
				g.to(in, o, nil, how[n])
			}
		}
		return true
	})
}

// given describes the arguments of a call.
func (g *graph) given(n *ast.CallExpr) handed {
	best := other
	take := func(t taint, wholeWorker bool) {
		if wholeWorker && t.roots[g.worker] && len(t.roots) == 1 {
			return
		}
		best = max(best, t.level)
	}
	s, isMethod := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	handsWorker := isMethod && g.isWorker(s.X)
	if isMethod && g.info.Selections[s] != nil && !handsWorker {
		take(g.of(s.X), false)
	}
	for _, a := range n.Args {
		handsWorker = handsWorker || g.isWorker(a)
	}
	for _, a := range n.Args {
		take(g.of(a), handsWorker)
	}
	if best == other && handsWorker && len(n.Args) == 0 {
		return whole
	}
	return best
}

// isTree reports whether a place can hold a tree, or a branch of one: an interface of the module, or a pointer to one of its structs.
func (g *graph) isTree(place ast.Expr) bool {
	t := g.info.TypeOf(place)
	if t == nil { // of _
		return false
	}
	if list, ok := t.Underlying().(*types.Slice); ok {
		t = list.Elem()
	}
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	} else if !types.IsInterface(t) {
		return false
	}
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && slices.Contains([]string{"algebra", "syntax", "pg_query", "tree"}, named.Obj().Pkg().Name())
}

// isInside reports whether a place is one of a tree that was given: not of the worker.
func (g *graph) isInside(place ast.Expr) bool {
	var x ast.Expr
	switch p := ast.Unparen(place).(type) {
	case *ast.StarExpr:
		x = p.X
	case *ast.IndexExpr:
		x = p.X
	case *ast.SelectorExpr:
		x = p.X
	default:
		return false
	}
	t := g.of(x)
	if _, pointer := g.info.TypeOf(x).Underlying().(*types.Pointer); !pointer {
		if inner, ok := ast.Unparen(x).(*ast.SelectorExpr); ok { // a field of what a pointer leads to
			return g.isInside(inner)
		}
		return false
	}
	return t.level > other && !(len(t.roots) == 1 && t.roots[g.worker])
}

// to adds a call of what a name means.
func (g *graph) to(in *function, o types.Object, receiver types.Type, given handed) {
	switch o := o.(type) {
	case *types.Func:
		o = o.Origin()
		if t, ok := receiver.(*types.TypeParam); ok {
			receiver = t.Constraint()
		}
		if receiver == nil || !types.IsInterface(receiver) {
			if f := g.byObject[o]; f != nil {
				in.call(f, given)
			}
			return
		}
		for _, m := range g.methods[o.Name()] {
			t, face := m.Signature().Recv().Type(), receiver.Underlying().(*types.Interface)
			if types.Implements(t, face) || types.Implements(types.NewPointer(t), face) {
				in.call(g.byObject[m], given)
			}
		}
	case *types.Var:
		for _, l := range g.assigned[o] {
			if f := g.literals[l]; f != nil {
				in.call(f, given)
			}
		}
	}
}

func (f *function) call(to *function, given handed) {
	if had, ok := f.calls[to]; ok {
		given = min(had, given)
	}
	f.calls[to] = given
}

// cycles are the ways round of functions that do not count visits and are no walks.
func (g *graph) cycles() []Finding {
	var all []*function
	for _, f := range g.byObject {
		all = append(all, f)
	}
	for _, f := range g.literals {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *function) int { return int(a.at - b.at) })
	for changed := true; changed; {
		changed = false
		for _, f := range all {
			for to := range f.calls {
				if to.writes && !f.writes && to.in == f.in {
					f.writes, changed = true, true
				}
			}
		}
	}
	var found []Finding
	for _, c := range components(all, func(_, to *function, _ handed) bool { return !to.visits }) {
		bad := ""
		if slices.ContainsFunc(c, endsOtherwise) {
			continue
		}
		for _, f := range c {
			if f.writes && !slices.ContainsFunc(c, changesOther) {
				bad = f.name + " changes what it was given"
			}
			for to, given := range f.calls {
				if given == other && slices.Contains(c, to) {
					bad = f.name + " calls " + to.name + " with none of what it was given"
				}
			}
		}
		if bad == "" && len(components(c, func(_, to *function, given handed) bool { return given < part && slices.Contains(c, to) })) > 0 {
			bad = "nobody on a way round hands on a part"
		}
		if bad == "" {
			continue
		}
		var names []string
		for _, f := range c {
			names = append(names, f.name)
		}
		p := g.fset.Position(c[0].at)
		found = append(found, Finding{fmt.Sprintf("%s:%d", p.Filename, p.Line),
			fmt.Sprintf("neither counts steps nor walks a tree: %s: %s", strings.Join(names, ", "), bad)})
	}
	return found
}

// endsOtherwise are functions that end for a reason that their form does not show.
func endsOtherwise(f *function) bool {
	switch f.name {
	case "(*sqlrewrite/internal/domain.regexReader).alternatives": // its depth has a limit, and each takes a character at least
		return true
	case "(*sqlrewrite/internal/plan.Plan).Forms": // once: without a second delta
		return true
	}
	return false
}

// changesOther reports whether what a function changes is not the tree that it walks.
func changesOther(f *function) bool {
	switch strings.TrimPrefix(f.in, Module+"/") {
	case "sqlrewrite/internal/parse", "sqlrewrite/statement": // nodes of a parser's tree, which the limits on texts hold for
		return true
	case "sqlrewrite/internal/answer": // copies; and what was paid for is answered whatever it takes
		return true
	}
	return f.name == "sqlrewrite/internal/earlier.Ordered" || f.name == "sqlrewrite/internal/sqlprint.PostLines" // lists of their own
}

// components are the sets of functions that call each other along the calls that count (Tarjan).
func components(all []*function, counts func(from, to *function, given handed) bool) (found [][]*function) {
	for _, f := range all {
		f.index, f.low, f.open = 0, 0, false
	}
	var stack []*function
	index := 0
	var visit func(f *function)
	visit = func(f *function) {
		index++
		f.index, f.low, f.open = index, index, true
		stack = append(stack, f)
		again := false
		for to, given := range f.calls {
			if to.visits || !counts(f, to, given) {
				continue
			}
			again = again || to == f
			if to.index == 0 {
				visit(to)
				f.low = min(f.low, to.low)
			} else if to.open {
				f.low = min(f.low, to.index)
			}
		}
		if f.low < f.index {
			return
		}
		i := slices.Index(stack, f)
		c := slices.Clone(stack[i:])
		stack = stack[:i]
		for _, m := range c {
			m.open = false
		}
		if len(c) > 1 || again {
			slices.SortFunc(c, func(a, b *function) int { return int(a.at - b.at) })
			found = append(found, c)
		}
	}
	for _, f := range all {
		if f.index == 0 && !f.visits {
			visit(f)
		}
	}
	return found
}
