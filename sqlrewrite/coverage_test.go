package sqlrewrite

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate/sqlrewrite/internal/parsetest"
)

// docs/sql-coverage.md says of each construct what happens to its example; it does.
func TestCoverage(t *testing.T) {
	page, err := os.ReadFile("../docs/sql-coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := postSnapshot(t)
	options := sharp()
	options.Delta, options.Now = 1_000_000, goldenNow()
	asked := 0
	for _, m := range regexp.MustCompile("(?m)^- \\*\\*(\\w+)\\*\\* (.+?): `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		verdict, construct, example := m[1], m[2], m[3]
		if strings.HasPrefix(example, "testdata/") {
			if _, err := os.Stat(example); err != nil {
				t.Errorf("%s: %v", construct, err)
			}
			continue
		}
		asked++
		private, public, err := Read(example, snapshot, options)
		got := "refused"
		switch {
		case err != nil:
		case public != nil:
			got = "free"
		case private.NeedsData():
			got = "works"
		}
		if got != verdict {
			t.Errorf("%s is %s, the page says %s: %s\n%s", construct, got, verdict, example, parsetest.ShowFault(err))
		}
	}
	if asked < 60 {
		t.Errorf("only %d examples were found", asked)
	}
}
