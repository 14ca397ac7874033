package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
)

func TestClassNames(t *testing.T) {
	for given, want := range map[string]string{"3": "0 1 2", "cat,dog": "cat dog", "cat": "cat", "0": "0", "-2": "-2", "10001": "10001",
		"3,4": "3 4"} {
		if got := classNames(strings.Split(given, ",")); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", given, got)
		}
	}
}

// TestProgress: nothing in the first second, nor where nobody watches; then a bar that goes away.
func TestProgress(t *testing.T) {
	for _, shown := range []bool{true, false} {
		var out bytes.Buffer
		now := time.Unix(0, 0)
		p := &progress{from: strings.NewReader(strings.Repeat("x", 100)), total: 100, to: &out, now: func() time.Time { return now },
			began: now, shown: shown}
		if _, err := io.ReadFull(p, make([]byte, 40)); err != nil || out.Len() > 0 {
			t.Errorf("at once: %q, %v", &out, err)
		}
		now = now.Add(2 * time.Second)
		if _, err := io.ReadFull(p, make([]byte, 20)); err != nil || shown != strings.Contains(out.String(), "]  60 %") {
			t.Errorf("after a while: %q, %v", &out, err)
		}
		drawn := out.Len()
		if _, err := io.ReadFull(p, make([]byte, 10)); err != nil || out.Len() != drawn {
			t.Errorf("twice in no time: %q, %v", &out, err)
		}
		p.end()
		if text := out.String(); shown != strings.HasSuffix(text, " \r") || !shown && text != "" {
			t.Errorf("at the end: %q", text)
		}
	}
}

// TestLabelFiles: an array has -1 and a table an empty cell where there is no label; all noisy counts go into the table.
func TestLabelFiles(t *testing.T) {
	one := 1
	labels := []api.Label{
		{Query: "a,b", Status: "answered", Label: &one, Class: "dog", Histogram: []api.Value{api.Number("-3"), api.Number("61")}},
		{Query: "c", Status: "rejected"},
	}
	const want = "query,status,label,count 0,count 1\n\"a,b\",answered,dog,-3,61\nc,rejected,,,\n"
	if got := string(labelsCSV(labels)); got != want {
		t.Errorf("%q", got)
	}
	if got := labelsNPY(labels); !bytes.HasSuffix(got, []byte{'\n', 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}) {
		t.Errorf("%q", got)
	}
}
