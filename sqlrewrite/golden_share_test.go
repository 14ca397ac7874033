package sqlrewrite

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// GoldenClauses are the golden files; see [TestGolden].
func GoldenClauses() []string { return rewritetest.GoldenClauses() }

// GoldenOptions are the options of a golden case.
func GoldenOptions(t testing.TB, d *datadriven.TestData) plan.Options {
	return rewritetest.ParseOptions(t, d)
}
