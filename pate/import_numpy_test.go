package pate

import (
	"archive/zip"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
)

// TestArraysOfNumPy reads what NumPy itself wrote (testdata/numpy/make.py): every numeric type in both byte orders and both memory orders,
// all versions of the format; and refuses all else that NumPy writes, objects (pickles) among it, by its header or by its first wrong row.
func TestArraysOfNumPy(t *testing.T) {
	files, err := zip.OpenReader("testdata/numpy/arrays.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	e, read := voters(t), map[string]int{}
	for _, f := range files.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(f.Name, "/")
		read[kind]++
		switch kind {
		case "counts":
			b, err := e.Read(in, NPY, LayoutCounts)
			if err != nil || !slices.Equal(b.table.v.n, wantCounts()) {
				t.Errorf("%s: %v, %v", f.Name, b, err)
			}
		case "student":
			rows, err := e.ReadStudents(in, NPY)
			want := [][]string{{"0.875", "0.125"}, {"0.25", "0.75"}}
			if f.Name == "student/shortest32.npy" {
				want = [][]string{{"0.9", "0.1"}, {"0", "1"}}
			}
			if err != nil || !slices.EqualFunc(rows, want, func(r StudentRow, w []string) bool { return slices.Equal(r.Probabilities, w) }) {
				t.Errorf("%s: %v, %v", f.Name, rows, err)
			}
		case "refused":
			b, err := e.Read(in, NPY, LayoutCounts)
			if code := fault.CodeOf(err); b != nil || code != fault.CodePateVotes && code != fault.CodePateLayout {
				t.Errorf("%s: %v, %v", f.Name, b, err)
			}
		default:
			t.Errorf("what is %s?", f.Name)
		}
		in.Close()
	}
	if read["counts"] != 11*4+5 || read["student"] != 3*4+1 || read["refused"] != 21 {
		t.Errorf("there are %v files", read)
	}
}
