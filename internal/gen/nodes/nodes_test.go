package nodes

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the file")

// The file of algebra is what its structs say; -rewrite writes it.
func TestAlgebra(t *testing.T) {
	const dir = "../../../sqlrewrite/internal/algebra"
	want, err := Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(filepath.Join(dir, Name), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, Name)); err != nil || string(got) != string(want) {
		t.Fatalf("%s is not what the structs say (%v): make golden writes it", Name, err)
	}
}

// What no number stands for is refused: nothing would compare it.
func TestRefusals(t *testing.T) {
	const b = "; type B struct{ X Expr `node:\"1\"` }"
	for source, want := range map[string]string{
		"type A struct { X Expr `node:\"1\"`; N int }" + b:                          "A.N has no number",
		"type A struct { X, Y Expr `node:\"1\"`; N int `node:\"2\"` }" + b:          "A.X has no number",
		"type A struct { X Expr `node:\"1\"`; N int `node:\"1\"` }" + b:             "A.N has no number of its own",
		"type A struct { X Expr `node:\"1\"` }; type B struct{ X Expr }":            "the fields of B have no numbers",
		"type A struct { N *big.Rat `node:\"1\"` }" + b:                             "nothing compares *big.Rat",
		"type A struct { N []*C `node:\"1\"` }; type C struct{ X Expr }" + b:        "nothing compares *C",
		"\n//nodes:2 C\ntype FromItem interface{ fromItem() }; type A struct{}" + b: "B and C have one number, 2",
	} {
		dir := t.TempDir()
		source = "package algebra\n//nodes:1 A, 2 B\ntype Expr interface{}; " + source
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Source(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwas taken (%v), want: %s", source, err, want)
		}
	}
}
