package testfiles

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
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
	copies := files(os.DirFS("testdata"))
	for _, name := range files(os.DirFS(there)) {
		if elsewhere()[name] == "" && !slices.Contains(copies, name) {
			t.Errorf("testdata has no %s", name)
		}
	}
	for _, name := range copies {
		text, err := os.ReadFile(filepath.Join(there, name))
		if err != nil {
			t.Error(err)
		} else if string(text) != Own(t, name) {
			t.Errorf("the copy of %s differs", name)
		}
	}
}

// alone makes a module without a ../shared, and moves the test into it.
func alone(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	deep := filepath.Join(home, "clone", "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "clone", "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	return home
}

// TestSharedIsBesideTheClone: a test finds it from whatever folder of the module it runs in.
func TestSharedIsBesideTheClone(t *testing.T) {
	home := alone(t)
	want := filepath.Join(home, "shared", "data", "x.csv")
	if path, here := find(t, "data/x.csv"); path != want || here {
		t.Errorf("%s, %v, want %s and that it is absent", path, here, want)
	}
	if err := os.MkdirAll(want, 0o700); err != nil {
		t.Fatal(err)
	}
	if path := FetchedOr(t, "data/x.csv"); path != want {
		t.Errorf("%s, want %s", path, want)
	}
}

// TestStandinsHaveTheShape: what stands in for a table has the columns of what is absent, about as many rows, NULL in the same columns, and
// no values outside of the policies' domains, which TestCorpus of integration would miss.
func TestStandinsHaveTheShape(t *testing.T) {
	for name, invent := range standins() {
		if !strings.HasSuffix(name, ".csv") {
			continue
		}
		rows := func(text []byte) ([]string, int, map[string]map[string]bool) {
			t.Helper()
			all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			values := map[string]map[string]bool{}
			for c, column := range all[0] {
				values[column] = map[string]bool{}
				for _, row := range all[1:] {
					values[column][row[c]] = true
				}
			}
			return all[0], len(all) - 1, values
		}
		text, err := os.ReadFile(Fetched(t, name))
		if err != nil {
			t.Fatal(err)
		}
		header, n, values := rows(text)
		columns, invented, others := rows(invent(t))
		if !slices.Equal(header, columns) || invented < n*9/10 || invented > n*11/10 {
			t.Errorf("%s: %d rows of %v, want about %d of %v", name, invented, columns, n, header)
		}
		for _, column := range header {
			if values[column][""] != others[column][""] {
				t.Errorf("%s: NULL in %s: %v, want %v", name, column, others[column][""], values[column][""])
			}
			for value := range others[column] {
				if len(values[column]) < 20 && !values[column][value] {
					t.Errorf("%s: %s is not in %s", name, value, column)
				}
			}
		}
	}
}

// TestStandinsAreWrittenAsTheyAreRead: compressed where the name says so, and only where the clone has no ../shared.
func TestStandinsAreWrittenAsTheyAreRead(t *testing.T) {
	const name = "data/pagila/pagila-data.sql.gz"
	want, invented := Own(t, "standin/pagila-data.sql"), standins()[name](t)
	unpacked, err := gzip.NewReader(bytes.NewReader(invented))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(unpacked); err != nil || string(got) != want {
		t.Errorf("%v, %d bytes, want %d", err, len(got), len(want))
	}
	alone(t)
	if got, err := os.ReadFile(FetchedOr(t, "data/pums/PUMS.yaml")); err != nil || !strings.Contains(string(got), "row_privacy: True") {
		t.Errorf("%v: %s", err, got)
	}
}
