package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"noisegate.example/budget/journal"
)

// TestReceiptsThatCannotBeRead: each is told, and none keeps others from being read, in its file or in another.
func TestReceiptsThatCannotBeRead(t *testing.T) {
	good, err := journal.Receipt{Dataset: "d", Reservation: "r", At: time.Unix(1, 0).UTC()}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	receipt := string(good)
	for content, want := range map[string][2]int{ // receipts, and what cannot be read
		"":                                 {0, 0},
		receipt + "\n" + receipt + "\n":    {2, 0},
		"what somebody took for a receipt": {0, 1},
		receipt + "\n" + receipt[:40]:      {1, 1},
		receipt + "{]" + receipt:           {1, 1}, // nobody knows where the second one ends
		receipt + `{"id":1}` + receipt:     {2, 1},
		`[` + receipt + `]` + receipt:      {1, 1},
		`{"answer_sha256":"0"}` + receipt:  {1, 1},
		strings.Repeat("\xff\x00", 1<<10):  {0, 1},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a": content, "b": receipt} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		all, directories, unread, err := receiptsIn(dir)
		if err != nil || directories != nil || len(all) != want[0]+1 || len(unread) != want[1] {
			t.Errorf("%q: %d receipts, %v, %v", content, len(all), unread, err)
		}
		for _, u := range unread {
			if !strings.HasPrefix(u.Error(), strconv.Quote(filepath.Join(dir, "a"))+": a receipt cannot be read: ") {
				t.Errorf("%q: %v", content, u)
			}
		}
	}

	dir := t.TempDir()
	for name, make := range map[string]func(string) error{
		"lost+found":    func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"\x1b[2J\n\xff": func(path string) error { return os.Symlink("nowhere", path) },
		"receipt":       func(path string) error { return os.WriteFile(path, good, 0o600) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	all, directories, unread, err := receiptsIn(dir)
	if err != nil || len(all) != 1 || len(unread) != 2 || !slices.Equal(directories, []string{filepath.Join(dir, "lost+found")}) {
		t.Errorf("%d receipts, %q, %v, %v", len(all), directories, unread, err)
	}
	text := errors.Join(unread...).Error()
	if strings.Contains(text, "\x1b") || !utf8.ValidString(text) || !strings.Contains(text, `\x1b[2J\n\xff": a receipt`) {
		t.Errorf("names are printed as they are: %q", text)
	}
}
