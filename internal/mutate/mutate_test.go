package mutate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shop is a package with functions of each kind, and its tests.
var shop = map[string]string{
	"go.mod": "module shop\n\ngo 1.26\n",
	"shop.go": `package shop

import "strings"

var limit = 3

type Cart struct{ lines []string }

// Add takes the cart by its address.
func (c *Cart) Add(line string, more ...string) { c.lines = append(append(c.lines, line), more...) }

func (Cart) Check(int, string) (n int, err error) {
	defer func() {
		if recover() != nil {
			n = -1
		}
	}()
	n = limit
	return
}

func Fits(_, _ int, _ string) bool { return limit == 3 }

func Sum[K comparable, N int | float64](all map[K]N) (total N) {
	for _, n := range all {
		total += n
	}
	return total
}

func Zero[N int | float64]() (n N) { return n }

type Pair[A, B any] struct { a A; b B }

func (p Pair[_, B]) Second() B { return p.b }

func Depth(n int) int {
	if n == 0 {
		return 0
	}
	return Depth(n-1) + 1
}

func Upper(s string) string { return strings.ToUpper(s) }

func Caught() (caught bool) { return recover() != nil }
`,
	"deep/deep.go": "package deep\n\nfunc Seven() int { return 7 }\n",
	"shop_test.go": `package shop

import (
	"os"
	"testing"
	"shop/deep"
)

func want[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAdd(t *testing.T) {
	var c Cart
	c.Add("a", "b", "c")
	want(t, len(c.lines), 3)
}

func TestCheck(t *testing.T) {
	n, err := Cart{}.Check(1, "")
	want(t, n, 3)
	want(t, err, nil)
}

func TestFits(t *testing.T) { want(t, Fits(1, 2, ""), true) }
func TestSum(t *testing.T) { want(t, Sum(map[string]int{"a": 1, "b": 2}), 3) }
func TestZero(t *testing.T) { want(t, Zero[int](), 0) }
func TestSecond(t *testing.T) { want(t, Pair[int, string]{1, "b"}.Second(), "b") }
func TestDepth(t *testing.T) { want(t, Depth(5), 5) }
func TestUpper(t *testing.T) { want(t, Upper("a"), "A") }
func TestSeven(t *testing.T) { want(t, deep.Seven(), 7) }
func TestEnds(t *testing.T) { if Depth(1) > 5 { os.Exit(3) } }
`,
}

func write(t *testing.T) (dir string) {
	dir = t.TempDir()
	for name, text := range shop {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A test fails with each mutant, the one that it should, and with none without.
func TestEachMutantIsSeen(t *testing.T) {
	dir := write(t)
	var edits []Edit
	var tests []string
	for _, m := range []struct{ test, file, old, text string }{
		{"TestAdd", "shop.go", ", more...)", ")"},
		{"TestAdd", "shop.go", "append(append(c.lines, line), more...)", "more"},
		{"TestCheck", "shop.go", "n = limit", "panic(n)"},
		{"TestCheck", "shop.go", "n = limit", ""},
		{"TestFits", "shop.go", "limit == 3", "limit > 3"},
		{"TestSum", "shop.go", "total += n", "total = n"},
		{"TestZero", "shop.go", "return n }", "return n + 1 }"},
		{"TestSecond", "shop.go", "return p.b", "var b B; return b"},
		{"TestDepth", "shop.go", "Depth(n-1) + 1\n}", "Depth(n-1)\n}"},
		{"TestUpper", "shop.go", "strings.ToUpper(s)", `s`},
		{"TestSeven", "deep/deep.go", "7", "8"},
	} {
		edits, tests = append(edits, Edit{m.file, m.old, m.text}), append(tests, m.test)
	}
	edits = append(edits, Edit{"shop.go", "n-1) + 1", "n-1) + 9"}) // a test ends the process
	mutants, err := New(dir, edits)
	if err != nil {
		t.Fatal(err)
	}
	p, err := mutants.Compile(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if dead, out, err := p.Kills(t.Context(), 0, "."); dead || err != nil {
		t.Errorf("without a mutant: %v\n%s", err, out)
	}
	for i, test := range tests {
		dead, out, err := p.Kills(t.Context(), i+1, ".")
		if !dead || err != nil || strings.Count(out, "--- FAIL") != 1 || !strings.Contains(out, "--- FAIL: "+test+" ") {
			t.Errorf("%v: dead: %v, %v\n%s", edits[i], dead, err, out)
		}
	}
	if dead, _, err := p.Kills(t.Context(), len(edits), "Ends"); dead || err == nil {
		t.Errorf("a test that ends the process: dead: %v, %v", dead, err)
	}
	if dead, _, err := p.Kills(t.Context(), 1, "Nothing"); dead || err == nil {
		t.Errorf("no test: dead: %v, %v", dead, err)
	}
}

func TestEditsAreRefused(t *testing.T) {
	dir := write(t)
	for old, why := range map[string]string{
		"limit = 3":                     "outside of functions",
		"more ...string":                "outside of functions",
		"total\n}\n\nfunc Zero":         "outside of functions",
		"// no":                         "not there any more",
		"":                              "outside of functions",
		"recover() != nil }":            "calls recover",
		"return 0\n\t}\n\treturn Depth": "",
	} {
		_, err := New(dir, []Edit{{"shop.go", old, ""}})
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", old, err)
		}
	}
}
