// Package testfiles finds the files that tests of several packages read: queries, policies and vectors of the project,
// and data that was fetched from others, which lies in ../shared beside the clone.
//
// It knows files and their places. It does not know databases, nor what a file is for.
package testfiles

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

//go:embed testdata
var own embed.FS

// Own gives a file of testdata: of the project's own, which each clone has.
func Own(t testing.TB, name string) string {
	t.Helper()
	text, err := own.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal("testfiles: ", err)
	}
	return string(text)
}

// Fetched gives the path of a file or folder of ../shared that was fetched from others. Where it is absent, the test is skipped.
func Fetched(t testing.TB, name string) string {
	t.Helper()
	path, err := shared(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/" + name + " is absent: CONTRIBUTING.md says where it is from")
	}
	if err != nil {
		t.Fatal("testfiles: ", err)
	}
	return path
}

// shared is the absolute path of something beside the clone that the test's directory is in.
func shared(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			path := filepath.Join(filepath.Dir(at), "shared", filepath.FromSlash(name))
			_, err := os.Stat(path)
			return path, err
		}
		if at == filepath.Dir(at) {
			return "", errors.New("no go.mod above " + dir)
		}
	}
}
