// Package testfiles finds the files that tests of several packages read. These are queries, policies and vectors of the project, and data
// that was fetched from others, which lies in ../shared, next to the clone. A clone without it has stand-ins.
//
// It knows files and their places. It does not know databases, nor what a file is for.
package testfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Own gives a file of testdata: of the project's own, which each clone has.
func Own(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module(t), "internal", "testfiles", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal("testfiles: ", err)
	}
	return string(text)
}

// Fetched gives the path of a file or folder of ../shared that was fetched from others. Where it is absent, the test is skipped.
func Fetched(t testing.TB, name string) string {
	t.Helper()
	path, here := find(t, name)
	if !here {
		t.Skip("../shared/" + name + " is absent: CONTRIBUTING.md says where it is from")
	}
	return path
}

// FetchedOr is [Fetched] for tests that do not depend on what the file says: where it is absent, they get the path of a stand-in, a file of
// the same shape whose people are invented and the same everywhere.
func FetchedOr(t testing.TB, name string) string {
	t.Helper()
	path, here := find(t, name)
	if here {
		return path
	}
	invent := standins()[name]
	if invent == nil {
		t.Fatal("testfiles: nothing stands in for ../shared/" + name)
	}
	t.Log("../shared/" + name + " is absent: what stands in for it is invented")
	path = filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, invent(t), 0o600); err != nil {
		t.Fatal("testfiles: ", err)
	}
	return path
}

// find is the absolute path of something in ../shared, and whether it is there. A folder ../shared that lacks it fails the test: what a
// test reads is the data or, where there is none, stand-ins.
func find(t testing.TB, name string) (path string, here bool) {
	t.Helper()
	shared := filepath.Join(filepath.Dir(module(t)), "shared")
	path = filepath.Join(shared, filepath.FromSlash(name))
	_, err := os.Stat(path)
	if _, beside := os.Stat(shared); err != nil && beside == nil {
		t.Fatal("testfiles: ../shared lacks " + name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("testfiles: ", err)
	}
	return path, err == nil
}

// module is the clone that the test's directory is in.
func module(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal("testfiles: ", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("testfiles: no go.mod above the test's directory")
		}
		dir = filepath.Dir(dir)
	}
}
