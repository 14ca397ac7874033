package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMakefileNamesTests: each alternative of a -run pattern of the Makefile names a test. go test reports success where
// none matches, so that a test which is renamed would leave its target unseen.
func TestMakefileNamesTests(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	patterns := regexp.MustCompile(`-run '?([A-Za-z][\w|$.*]*)'?`).FindAllStringSubmatch(string(text), -1)
	if len(patterns) < 8 {
		t.Fatalf("the Makefile has %d patterns", len(patterns))
	}
	for _, p := range patterns {
		for one := range strings.SplitSeq(strings.ReplaceAll(p[1], "$$", "$"), "|") {
			if !slices.ContainsFunc(names, regexp.MustCompile(one).MatchString) {
				t.Errorf("-run %s: no test is named so", one)
			}
		}
	}
}
