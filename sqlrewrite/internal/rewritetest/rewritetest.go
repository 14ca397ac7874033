// Package rewritetest has what tests of several rooms share: golden files, snapshots made of texts, options, noise that is the same in
// each run.
//
// It knows how to take a query through package pipeline. It does not know which databases the proofs run on: package gen does.
package rewritetest

import (
	"os"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/plan"
)

// RepoFile is where a file of the repository is, for a test of any package.
func RepoFile(name string) string {
	root := ""
	for range 10 {
		if _, err := os.Stat(root + "go.mod"); err == nil {
			break
		}
		root += "../"
	}
	return root + name
}

// OneIn is the stride of a loop over similar cases: with -short one in n is tried.
func OneIn(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// Sharp are options under which counts of row units are exact: the chance of any noise at all is below 10^-4000.
func Sharp() plan.Options {
	return plan.Options{Epsilon: 1_000_000 * mechanisms.EpsilonUnit, Delta: mechanisms.DeltaUnit / 1000, Mechanism: plan.MechanismLaplace,
		Currency: catalog.Approx, Confidence: 0.95}
}

// FixedSampler draws the same noise in each run of a test.
func FixedSampler(t testing.TB) *mechanisms.Sampler {
	return mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))
}
