package rewritetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// StatementsOf are the statements of all releases, in order, without a seed.
func StatementsOf(p *plan.Plan) (all []sqlprint.Statement) {
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			all = append(all, part.Statement)
		}
	}
	return all
}

// CheckArgs fails where an argument is not used: PostgreSQL refuses a statement with a parameter that is nowhere used.
func CheckArgs(t *testing.T, d *datadriven.TestData, sql string, args []any) {
	t.Helper()
	for i := range args {
		if !strings.Contains(sql, fmt.Sprintf("$%d::", i+1)) {
			d.Fatalf(t, "$%d is not used in %s", i+1, sql)
		}
	}
}

// ShowArgs lists arguments from one on.
func ShowArgs(args []any, from int) string {
	var b strings.Builder
	for i, a := range args {
		if i >= from {
			fmt.Fprintf(&b, "  $%d = %v\n", i+1, a)
		}
	}
	return b.String()
}

// GoldenQueries are the queries of all golden files.
func GoldenQueries(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(GoldenFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			directive, rest, _ := strings.Cut(block, "\n")
			if sql, _, ok := strings.Cut(rest, "\n----"); ok && !strings.HasPrefix(directive, "policy") && !strings.HasPrefix(directive, "tables") {
				queries = append(queries, sql)
			}
		}
	}
	return queries
}
