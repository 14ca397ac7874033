package sqlrewrite

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Codes of bind and plan that a golden file must show at least once, so that no refusal goes unread.
func TestEveryRefusalIsGolden(t *testing.T) {
	want := []fault.Code{
		fault.CodeNotAggregate, fault.CodeMissingBounds, fault.CodeMissingKeys, fault.CodeUnitColumn, fault.CodeUnitJoin,
		fault.CodeMissingDelta, fault.CodeLooserBound, fault.CodePriceTooSmall, fault.CodeMechanism, fault.CodeTooManyKeys, fault.CodeStep,
		fault.CodeUnknownTable, fault.CodeUnknownColumn, fault.CodeUnknownFunction, fault.CodeTypeMismatch, fault.CodeUnsupported,
	}
	seen := goldenCodes(t)
	for _, code := range want {
		if !slices.Contains(seen, string(code)) {
			t.Errorf("no golden file shows %s", code)
		}
	}
}

// goldenCodes lists the codes of all refusals in the golden files.
func goldenCodes(t *testing.T) []string {
	t.Helper()
	code := regexp.MustCompile(`(?m)^((?:sql|policy|plan)/[a-z-]+): `)
	var codes []string
	for _, name := range rewritetest.GoldenFiles() {
		text, err := os.ReadFile(rewritetest.GoldenFile(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, m[1])
		}
	}
	return codes
}
