package sqlrewrite

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/plan"
)

// GoldenClauses are the golden files; see [TestGolden].
func GoldenClauses() []string { return goldenClauses() }

// GoldenOptions are the options of a golden case.
func GoldenOptions(t testing.TB, d *datadriven.TestData) plan.Options { return parseOptions(t, d) }
