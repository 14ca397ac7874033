package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const ratchetsFile = "testdata/ratchets.txt"

var raise = flag.Bool("raise", false, "let the numbers of ratchets.txt rise to what there is; the commit says why they must")

func readRatchets(t *testing.T) map[string]map[string]int {
	t.Helper()
	text, err := os.ReadFile(ratchetsFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]int{}
	for line := range strings.Lines(string(text)) {
		var name, of string
		var n int
		if _, err := fmt.Sscan(line, &name, &n, &of); err != nil {
			t.Fatalf("%s: %q: %v", ratchetsFile, line, err)
		}
		if all[name] == nil {
			all[name] = map[string]int{}
		}
		all[name][of] = n
	}
	return all
}

// TestRatchets holds the program against numbers that may only fall.
func TestRatchets(t *testing.T) {
	allowed, s, text := readRatchets(t), program(t), ""
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ratchets() {
		measured, allow := r.measure(s, tree), allowed[r.name]
		delete(allowed, r.name)
		if *raise {
			allow = measured
		}
		if *rewrite || *raise {
			allow = r.lowered(measured, allow)
		}
		for _, of := range slices.Sorted(maps.Keys(allow)) {
			text += fmt.Sprintf("%-10s %3d  %s\n", r.name, allow[of], of)
		}
		for _, f := range r.hold(measured, allow) {
			t.Errorf("%s: %v", r.name, f)
		}
	}
	for name := range allowed {
		t.Errorf("%s has numbers of %s, which nobody counts", ratchetsFile, name)
	}
	if *rewrite || *raise {
		if err := os.WriteFile(ratchetsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRatchetsOnlyFall shows what is found, and that a new number is never above the one before.
func TestRatchetsOnlyFall(t *testing.T) {
	r := ratchet{name: "x", unit: "things", most: 5}
	for _, c := range []struct {
		measured, allowed, lowered int
		want                       string
	}{
		{5, 0, 0, ""},
		{6, 0, 0, "6 things, want at most 5"},
		{30, 30, 30, ""},
		{31, 30, 30, "31 things, want at most 30"},
		{27, 30, 27, ""},
		{26, 30, 26, "make golden lowers"},
		{5, 6, 0, "make golden lowers"},
		{0, 6, 0, "make golden lowers"},
	} {
		measured, allowed := map[string]int{"p": c.measured}, map[string]int{}
		if c.allowed > 0 {
			allowed["p"] = c.allowed
		}
		found := fmt.Sprint(r.hold(measured, allowed))
		if !strings.Contains(found, c.want) || c.want == "" && found != "[]" {
			t.Errorf("%d of %d: %s, want %q", c.measured, c.allowed, found, c.want)
		}
		if got := r.lowered(measured, allowed)["p"]; got != c.lowered {
			t.Errorf("%d of %d: lowered to %d, want %d", c.measured, c.allowed, got, c.lowered)
		}
	}
}

// TestRatchetsCount plants a little of what each ratchet counts. A ratchet that has no case here is none.
func TestRatchetsCount(t *testing.T) {
	cases := map[string][]struct {
		texts []string
		of    string
		want  int
	}{
		"branches": {
			{[]string{"package p\nfunc f() {}"}, "p.f", 1},
			{[]string{"package p\nfunc f(a, b bool) { if a && b || a { for range 3 { for a {} } } }"}, "p.f", 6},
			{[]string{"package p\nfunc f(a int, c chan int) { switch a { case 1, 2: case 3: default: }; select { case <-c: default: } }"}, "p.f", 4},
			{[]string{"package p\ntype t int\nfunc (t) f(a bool) { _ = func() { if a {} } }"}, "(p.t).f", 2},
		},
		"circle": {
			{[]string{"package p\nfunc a() { b() }\n// next file\nfunc b() { c() }\n// next file\nfunc c() {}"}, "p", 0},
			{[]string{"package p\nfunc a() { b() }\n// next file\nfunc b() { c() }\n// next file\nfunc c() { a() }"}, "p", 3},
			{[]string{"package p\ntype a int\nfunc (a) m() { b() }\n// next file\nfunc b() { a(1).m() }"}, "p", 2},
		},
		"back": {
			{[]string{"package p\nfunc a() { b() }\n// next file\nfunc b() { c(); c() }\n// next file\nfunc c() { a(); d() }\n" +
				"// next file\nfunc d() {}"}, "p", 3},
		},
		"fields": {
			{[]string{"package p\ntype t struct { a, b, c int }\nfunc (x *t) f() { x.a = 1; x.b++; x.a += 2 }\n" +
				"func newT() *t { x := &t{}; x.c = 1; return x }"}, "p.t", 2},
			{[]string{"package p\ntype T struct { A, B int }", "package q\nimport \"noisegate.example/p\"\nfunc f(x *p.T) { x.A = 1 }"}, "p.T", 1},
		},
		"exported": {
			{[]string{"package p\ntype T struct{ F int }\nfunc (T) M() {}\nfunc (T) m() {}\nconst C, d = 1, 2\nfunc F() {}"}, "p", 4},
		},
		"imports": {
			{[]string{"package p", "package q\nimport _ \"noisegate.example/p\"", "package r\nimport _ \"noisegate.example/q\""}, "r", 2},
		},
	}
	trees := map[string][]struct {
		files map[string]string
		of    string
		want  int
	}{
		"untested": {
			{map[string]string{"sqlrewrite/a.go": "package p\nfunc f() {}", "sqlrewrite/b.go": "package p\ntype t int"}, "sqlrewrite", 1},
			{map[string]string{"sqlrewrite/a.go": "package p\nfunc f() {}", "sqlrewrite/x_test.go": "package p\nvar _ = f"}, "sqlrewrite", 0},
			{map[string]string{"sqlrewrite/a.go": "package p\nfunc f() {}", "sqlrewrite/x_test.go": "package p // f"}, "sqlrewrite", 1},
			{map[string]string{"sqlrewrite/a.go": "package p\nfunc f() {}", "sqlrewrite/a_test.go": "package p"}, "sqlrewrite", 0},
			{map[string]string{"sqlrewrite/p/a.go": "package p\nfunc f() {}", "sqlrewrite/p/testdata/a/g.txt": ""}, "sqlrewrite/p", 0},
			{map[string]string{"gateway/a.go": "package p\nfunc f() {}"}, "gateway", 0},
		},
		"unmutated": {
			{map[string]string{"sqlrewrite/verify/x/a.go": "package p\nfunc f() {}", "sqlrewrite/verify/b.go": "package p\ntype t int"},
				"sqlrewrite/verify", 1},
			{map[string]string{"sqlrewrite/verify/x/a.go": "package p\nfunc f() {}",
				"sqlrewrite/verify/m_test.go": "package p\nvar all = []string{\"x/a.go\"}"}, "sqlrewrite/verify", 0},
		},
		"prose": {
			{map[string]string{"a/a.go": "package p\n\n// f gives b, which tells whoever asks. It is of\n// what c is.\nfunc f() {}"}, "a", 3},
			{map[string]string{"a/a.go": "package p\n\nconst text = \"beside\"", "a/a.md": "Tellers stand next to it, BESIDE\nit."}, "a", 1},
		},
		"words": {
			{map[string]string{"docs/a.md": strings.Repeat("w ", 600), "README.md": strings.Repeat("w ", 401), "a.md": "w"}, "docs", 2},
			{map[string]string{"docs/x/a.md": "w w"}, "docs/x", 1},
		},
	}
	for _, r := range ratchets() {
		if len(cases[r.name])+len(trees[r.name]) == 0 {
			t.Errorf("no case shows that %s is counted", r.name)
		}
		for _, c := range cases[r.name] {
			if got := r.measure(planted(t, c.texts...), nil)[c.of]; got != c.want {
				t.Errorf("%s: %q has %d, want %d", r.name, c.texts, got, c.want)
			}
		}
		for _, c := range trees[r.name] {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tree, err := Load(root)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.measure(nil, tree)[c.of]; got != c.want {
				t.Errorf("%s: %v has %d, want %d", r.name, c.files, got, c.want)
			}
		}
	}
}
