package randomtest_test

import (
	"bytes"
	"io"
	"testing"

	"noisegate.example/internal/randomtest"
)

func read(t *testing.T, names ...string) []byte {
	t.Helper()
	b := make([]byte, 1000)
	if _, err := io.ReadFull(randomtest.Source(names...), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Sources of one name are equal, those of other names are not; drawn anew they differ.
func TestSource(t *testing.T) {
	t.Setenv("NOISEGATE_FRESH", "")
	if !bytes.Equal(read(t, "a", "b"), read(t, "a", "b")) {
		t.Error("one name, other bytes")
	}
	if bytes.Equal(read(t, "a"), read(t, "b")) || bytes.Equal(read(t, "a", "b"), read(t, "ab")) {
		t.Error("other names, the same bytes")
	}
	if bytes.Equal(read(t, "a"), make([]byte, 1000)) {
		t.Error("no bytes at all")
	}
	t.Setenv("NOISEGATE_FRESH", "1")
	if bytes.Equal(read(t, "a"), read(t, "a")) {
		t.Error("drawn anew, the same bytes")
	}
}
