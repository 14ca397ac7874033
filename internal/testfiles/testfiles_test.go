package testfiles

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere are files of ../shared/corpus and ../shared/golden that have no copy here, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"corpus/README.md":           "describes the folder",
		"corpus/catalog_queries.sql": "captured from clients of others",
		"golden/accounting.json":     "copied beside the packages that read it: archtest.TestEveryGoldenRecordIsRead",
		"golden/pate.json":           "copied beside the package that reads it: archtest.TestEveryPATERecordIsRead",
	}
}

// TestCopiesAreCurrent: each file here is what ../shared has, and each of the project's own files there is here.
func TestCopiesAreCurrent(t *testing.T) {
	files := func(tree fs.FS) (names []string) {
		t.Helper()
		for _, dir := range []string{"corpus", "golden"} {
			if err := fs.WalkDir(tree, dir, func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					names = append(names, name)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	there := filepath.Dir(Fetched(t, "corpus"))
	here, err := fs.Sub(own, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	copies := files(here)
	for _, name := range files(os.DirFS(there)) {
		if elsewhere()[name] == "" && !slices.Contains(copies, name) {
			t.Errorf("testdata has no %s", name)
		}
	}
	for _, name := range copies {
		text, err := os.ReadFile(filepath.Join(there, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(text, []byte(Own(t, name))) {
			t.Errorf("the copy of %s differs", name)
		}
	}
}

// TestSharedIsBesideTheClone: a test finds it from whatever folder of the module it runs in, and nothing outside.
func TestSharedIsBesideTheClone(t *testing.T) {
	home := t.TempDir()
	deep := filepath.Join(home, "clone", "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	if _, err := shared("x"); err == nil || !strings.Contains(err.Error(), "no go.mod above") {
		t.Errorf("outside of a module: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "clone", "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := shared("data/x.csv")
	if want := filepath.Join(home, "shared", "data", "x.csv"); path != want || !os.IsNotExist(err) {
		t.Errorf("%s, %v, want %s and that it is absent", path, err, want)
	}
}
