package sqlrewrite

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

// GoldenClauses are the golden files; see [TestGolden].
func GoldenClauses() []string { return goldenClauses() }

// GoldenOptions are the options of a golden case.
func GoldenOptions(t testing.TB, d *datadriven.TestData) Options { return parseOptions(t, d) }
