package pate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// record is one record of testdata/golden_*.json: ../shared/golden/pate.json, section by section, unchanged. The numbers come
// from the unmodified reference analyses (see each record's source).
type record struct {
	ID       string                     `json:"id"`
	Section  string                     `json:"section"`
	Function string                     `json:"function"`
	Inputs   map[string]json.RawMessage `json:"inputs"`
	Output   map[string]json.RawMessage `json:"output"`
	Note     string                     `json:"note"`
}

// in and out read one value of a record.
func in[T any](t *testing.T, r record, name string) T  { return value[T](t, r.Inputs, name) }
func out[T any](t *testing.T, r record, name string) T { return value[T](t, r.Output, name) }

func value[T any](t *testing.T, m map[string]json.RawMessage, name string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(m[name], &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// countsOf are a record's counts: a list, or runs of equal ones.
func countsOf(t *testing.T, r record) []uint32 {
	t.Helper()
	if !strings.HasPrefix(string(r.Inputs["counts"]), "{") {
		return in[[]uint32](t, r, "counts")
	}
	var counts []uint32
	for _, run := range in[map[string][][2]int](t, r, "counts")["repeat"] {
		counts = append(counts, slices.Repeat([]uint32{uint32(run[0])}, run[1])...)
	}
	return counts
}

// golden runs a test for each record of a section whose id begins with the prefix, and counts them.
func golden(t *testing.T, section, prefix string, want int, check func(t *testing.T, r record)) {
	t.Helper()
	n := 0
	for _, r := range records(t, section) {
		if strings.HasPrefix(r.ID, prefix) {
			n++
			t.Run(r.ID, func(t *testing.T) { check(t, r) })
		}
	}
	if n != want {
		t.Errorf("section %s has %d records %s*, want %d", section, n, prefix, want)
	}
}

func records(t testing.TB, section string) []record {
	t.Helper()
	text, err := os.ReadFile("testdata/golden_" + section + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var list []record
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// near wants two numbers to agree to 10⁻¹² relatively; below 10⁻³⁰ the reference's own error is larger.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	within(t, what, got, want, 1e-12)
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)+1e-30) {
		t.Errorf("%s = %.17g, want %.17g (relative error %.2g)", what, got, want, math.Abs(got/want-1))
	}
}

func nearAll(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		near(t, fmt.Sprintf("%s[%d]", what, i), got[i], want[i])
	}
}
