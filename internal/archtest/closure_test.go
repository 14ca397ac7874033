package archtest

import (
	"fmt"
	"go/types"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const trustedPage = "../../docs/trusted-base.md"

// TestTrustedBase holds docs/trusted-base.md against the call graph: how many lines of each package the proof, the release and the run of
// a statement use. A figure may be a hundred off, so
// that few changes have to touch it. Files that the page names are
// there.
func TestTrustedBase(t *testing.T) {
	text, err := os.ReadFile(trustedPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\S+\\.go)` \\|").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat("../../" + row[1]); err != nil {
			t.Error(err)
		}
	}
	table := regexp.MustCompile(`(?m)^\| package \| lines \|\n(?:\|.*\n)+`)
	stands := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| ([\\d,]+) \\|$").FindAllStringSubmatch(table.FindString(page), -1) {
		if stands[row[1]], err = strconv.Atoi(strings.ReplaceAll(row[2], ",", "")); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[string]int{}
	r := reach(program(t), "sqlrewrite/verify.Statement", "(*sqlrewrite.Plan).Release", "(*gateway/pgexec.Database).Run")
	for file, numbers := range r.lines {
		lines[path.Dir(file)] += len(numbers)
	}
	rows, all := "| package | lines |\n|---|---|\n", 0
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		n := (lines[dir] + 9) / 10 * 10
		if was := stands[dir]; was > 0 && max(was-lines[dir], lines[dir]-was) <= 100 && !*rewrite {
			n = was
		}
		rows += fmt.Sprintf("| `%s` | %s |\n", dir, thousands(n))
		all += n
	}
	rows += fmt.Sprintf("| all | %s |\n", thousands(all))
	want := table.ReplaceAllLiteralString(page, rows)
	switch {
	case *rewrite:
		if err := os.WriteFile(trustedPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case len(stands) == 0 || want != page:
		t.Errorf("docs/trusted-base.md is out of date: make trusted-base gives\n%s", rows)
	}
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// planted checks the types of packages; each may import the packages before it. "// next file" begins another file of a package.
func planted(t *testing.T, texts ...string) *sources {
	t.Helper()
	s := newSources()
	for i, text := range texts {
		name, text, _ := strings.Cut(strings.TrimPrefix(text, "package "), "\n")
		files := map[string]string{}
		for n, part := range strings.Split(text, "// next file\n") {
			files[fmt.Sprintf("%s/%d.go", name, n)] = "package " + name + "\n" + part
		}
		_, err := s.check(Module+"/"+name, files, imports(func(path string) (*types.Package, error) {
			for _, p := range s.packages {
				if p.Path() == path {
					return p, nil
				}
			}
			return nil, fmt.Errorf("package %d imports %s", i, path)
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestReachFinds plants each way in which a function is used without being called by its name.
func TestReachFinds(t *testing.T) {
	for name, c := range map[string]struct{ text, reached string }{
		"a call":            {"func Root() { used() }\nfunc used() {}", "used"},
		"a call by another": {"func Root() { other() }\nfunc other() { used() }\nfunc used() {}", "used"},
		"no call":           {"func Root() {}\nfunc unused() {}", ""},
		"a name":            {"func Root() any { return used }\nfunc used() {}", "used"},
		"an interface":      {"func Root(x face) { x.used() }\ntype face interface{ used() }\ntype a struct{}\nfunc (a) used() {}", "used"},
		"by a pointer":      {"func Root(x face) { x.used() }\ntype face interface{ used() }\ntype a struct{}\nfunc (*a) used() {}", "used"},
		"an interface, another": {"func Root(x face) { x.used() }\n" +
			"type face interface{ used(); more() }\ntype a struct{}\nfunc (a) used() {}", ""},
		"an embedded type": {"func Root(x face) { x.used() }\ntype face interface{ used(); more() }\n" +
			"type a struct{ b }\nfunc (a) more() {}\ntype b struct{}\nfunc (b) used() {}", "used"},
		"a constraint":     {"func Root[T face](x T) { x.used() }\ntype face interface{ used() }\ntype a struct{}\nfunc (a) used() {}", "used"},
		"of many types":    {"func Root() { a[int]{}.used() }\ntype a[T any] struct{}\nfunc (a[T]) used() {}", "used"},
		"a table":          {"func Root() { table[0]() }\nvar table = []func(){used}\nfunc used() {}", "used"},
		"a field":          {"func Root(x a) { x.f() }\ntype a struct{ f func() }\nvar other = a{f: used}\nfunc used() {}", "used"},
		"a field by place": {"func Root(x a) { x.f() }\ntype a struct{ f func() }\nvar other = a{used}\nfunc used() {}", "used"},
		"a field, later": {"func Root(x *a) { x.f[0]() }\ntype a struct{ f []func() }\n" +
			"func other(x *a) { x.f = []func(){used} }\nfunc used() {}", "used"},
		"a library": {"func Root() any { return a{} }\n" +
			"type a struct{}\nfunc (a) Error() string { return used() }\nfunc used() string { return \"\" }",
			"used"},
	} {
		s := planted(t, "package p\n"+c.text)
		r := reach(s, "p.Root")
		got := ""
		for o, n := range r.declared {
			if o.Name() == "used" || o.Name() == "unused" {
				if f, ok := o.(*types.Func); ok && r.seen[n] && (f.Signature().Recv() == nil || !types.IsInterface(f.Signature().Recv().Type())) {
					got = o.Name()
				}
			}
		}
		if got != c.reached {
			t.Errorf("%s: %q is reached, want %q", name, got, c.reached)
		}
	}
	r := reach(planted(t, "package p\nfunc Root() {\n\tused()\n}\n\nfunc used() {}\n\nfunc unused() {\n}"), "p.Root")
	if got := len(r.lines["p/0.go"]); got != 4 {
		t.Errorf("%d lines are counted, want 4", got)
	}
}
