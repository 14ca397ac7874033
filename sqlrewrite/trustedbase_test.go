package sqlrewrite

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/trusted-base.md lists what must be believed: each file is there and has no more lines than the page says, every file of verify is
// listed, and what is trusted of this package has at most 3,000 lines.
func TestTrustedBase(t *testing.T) {
	page, err := os.ReadFile("../docs/trusted-base.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, total := map[string]bool{}, 0
	for _, row := range regexp.MustCompile("(?m)^\\| `(sqlrewrite/\\S+\\.go)` \\| (\\d+) \\|").FindAllStringSubmatch(string(page), -1) {
		text, err := os.ReadFile("../" + row[1])
		if err != nil {
			t.Error(err)
			continue
		}
		most, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, the page says %d", row[1], n, most)
		}
		listed[row[1]] = true
		if !strings.HasPrefix(row[1], "sqlrewrite/verify/") {
			total += most
		}
	}
	files, err := filepath.Glob("verify/*.go")
	if err != nil {
		t.Fatal(err)
	}
	inside, err := filepath.Glob("verify/internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, inside...) {
		if name := "sqlrewrite/" + filepath.ToSlash(f); !strings.HasSuffix(f, "_test.go") && !listed[name] {
			t.Errorf("the page does not list %s", name)
		}
	}
	if total == 0 || total > 3000 {
		t.Errorf("%d lines of sqlrewrite are trusted, want at most 3,000", total)
	}
}
