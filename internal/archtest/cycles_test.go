package archtest

import (
	"go/types"
	"strings"
	"sync"
	"testing"
)

var loadProgram = sync.OnceValues(func() (*sources, error) { return loadSources("../..", "./cmd/noisegate") })

// program are the packages that noisegate is made of.
func program(t *testing.T) *sources {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it reads the types of all packages")
	}
	s, err := loadProgram()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTextsEnd: no function that works on a text can go round for ever uncounted.
//
// covers: A44
func TestTextsEnd(t *testing.T) {
	g := newGraph(program(t).below("sqlrewrite"))
	for _, f := range g.cycles() {
		t.Error(f)
	}
	if len(g.byObject) < 2000 {
		t.Errorf("only %d functions were read", len(g.byObject))
	}
}

// TestCyclesAreFound plants ways round.
func TestCyclesAreFound(t *testing.T) {
	const tree = `package algebra
type Node interface{ node() }
type Leaf struct{}
func (Leaf) node() {}
type Pair struct { L, R Node }
func (*Pair) node() {}
type worker struct { at Node; list []Node }
func grow(n Node) Node { return &Pair{n, n} }
`
	for name, c := range map[string]struct {
		text string
		want string // a part of the finding; "" for none
	}{
		"walk":              {`func walk(n Node) int { if p, ok := n.(*Pair); ok { return walk(p.L) + walk(p.R) }; return 1 }`, ""},
		"walk of a list":    {`func (w *worker) walk(n *Pair) { for _, x := range []Node{n.L, n.R} { if p, ok := x.(*Pair); ok { w.walk(p) } } }`, ""},
		"walk by a literal": {`func walk(n Node) { var f func(Node); f = func(n Node) { if p, ok := n.(*Pair); ok { f(p.L) } }; f(n) }`, ""},
		"walk by two":       {"func one(n Node) { if p, ok := n.(*Pair); ok { two(p) } }\nfunc two(p *Pair) { one(p.L) }", ""},
		"counted":           {`func walk(n Node) { steps.Visit(nil); walk(grow(n)) }`, ""},
		"the same":          {`func walk(n Node) { walk(n) }`, "nobody on a way round hands on a part"},
		"made of it":        {`func walk(n Node) { walk(grow(n)) }`, "nobody on a way round hands on a part"},
		"by two":            {"func one(n Node) { two(n) }\nfunc two(n Node) { one(n) }", "one, algebra.two: nobody"},
		"something else":    {`func walk(n Node) { if p, ok := n.(*Pair); ok { walk(p.L) }; walk(Leaf{}) }`, "none of what it was given"},
		"the worker's own":  {`func (w *worker) walk() { w.at = grow(w.at); w.walk() }`, "nobody on a way round hands on a part"},
		"out of the worker": {`func (w *worker) walk(n Node) { w.walk(w.at) }`, "none of what it was given"},
		"by a literal":      {`func walk(n Node) { var f func(Node); f = func(n Node) { f(grow(n)) }; f(n) }`, "(literal): nobody"},
		"by an interface": {"type w interface{ Walk(Node) }\ntype a struct{}\nfunc (a) Walk(n Node) { b(a{}, n) }\n" +
			"func b(x w, n Node) { x.Walk(n) }", "nobody"},
		"by a value":          {`func walk(n Node) { each(n, walk) }` + "\nfunc each(n Node, f func(Node)) { f(grow(n)) }", ""}, // as slices.ContainsFunc
		"what grows the tree": {`func walk(at *Node) { if p, ok := (*at).(*Pair); ok { p.L = &Pair{p.L, p.R}; walk(&p.L) } }`, "changes what it was given"},
		"by whom it calls": {"func walk(p *Pair) { wrap(p); if l, ok := p.L.(*Pair); ok { walk(l) } }\n" +
			"func wrap(p *Pair) { p.L = grow(p.L) }",
			"changes what it was given"},
	} {
		s := newSources()
		text, counts := tree+c.text, "package steps\nfunc Visit(any) {}"
		if strings.Contains(text, "steps.") {
			text = strings.Replace(text, "package algebra\n", "package algebra\nimport \"steps\"\n", 1)
		}
		_, err := s.check("algebra", map[string]string{"a.go": text}, imports(func(path string) (*types.Package, error) {
			return s.check(path, map[string]string{"steps.go": counts}, nil)
		}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := newGraph(s).cycles()
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: %v", name, found)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].What, c.want)):
			t.Errorf("%s: %v, want %s", name, found, c.want)
		}
	}
}
