package pate

import (
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
)

// TestReadStudents reads the same student in every text format; NumPy's arrays are read in TestArraysOfNumPy.
func TestReadStudents(t *testing.T) {
	e := voters(t)
	for name, c := range map[string]struct {
		format Format
		text   string
		named  bool
	}{
		"CSV":                  {CSV, "query,cat,dog\na,0.9,0.1\nb,0.25,0.75\n", true},
		"CSV, classes turned":  {CSV, "query,dog,cat\na,0.1,0.9\nb,0.75,0.25\n", true},
		"CSV, byte order mark": {CSV, "\uFEFFquery,cat,dog\na,0.9,0.1\nb,0.25,0.75\n", true},
		"CSV without a header": {CSV, "0.9, 0.1\n0.25, 0.75\n", false},
		"NDJSON": {NDJSON, `{"query":"a","probabilities":[0.9,0.1]}` + "\n\n" +
			`{"query":"b","probabilities":["0.25",0.75]}`, true},
		"NDJSON, members turned": {NDJSON, `{"probabilities":[0.9,0.1],"query":"a"}` + "\n" +
			`{"query":"b","probabilities":[0.25,0.75]}` + "\n", true},
		"NDJSON, Windows' line ends": {NDJSON, `{"query":"a","probabilities":[0.9,0.1]}` + "\r\n" +
			`{"query":"b","probabilities":[0.25,0.75]}` + "\r\n", true},
	} {
		rows, err := e.ReadStudents(strings.NewReader(c.text), c.format)
		if err != nil || len(rows) != 2 || !slices.Equal(rows[0].Probabilities, []string{"0.9", "0.1"}) ||
			!slices.Equal(rows[1].Probabilities, []string{"0.25", "0.75"}) {
			t.Errorf("%s: %v, %v", name, rows, err)
			continue
		}
		if (rows[0].Query == "a" && rows[1].Query == "b") != c.named || rows[0].Student.best != 0 || rows[1].Student.best != 1 {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	// What decimal numbers of requests cannot hold is 0; as np.savetxt writes it.
	rows, err := e.ReadStudents(strings.NewReader("1.000000000000000000e+00,9.999999999999999e-31\n1,4.9e-324\n1,1e-400\n"), CSV)
	if err != nil || rows[0].Probabilities[1] != "0" || rows[1].Probabilities[1] != "0" || rows[2].Probabilities[1] != "0" {
		t.Errorf("tiny: %v, %v", rows, err)
	}
}

func TestReadStudentsRefuses(t *testing.T) {
	e := voters(t)
	for name, c := range map[string]struct {
		format Format
		text   string
		why    string
	}{
		"nothing":             {NDJSON, "\n", "there is no student"},
		"an empty file":       {CSV, "", "there is no student"},
		"a header alone":      {CSV, "query,cat,dog\n", "there is no student"},
		"another class":       {CSV, "query,cat,cow\na,1,0\n", "the classes"},
		"a class twice":       {CSV, "query,cat,cat\na,1,0\n", "the classes"},
		"a class missing":     {CSV, "query,cat\na,1\n", "the classes"},
		"a query twice":       {CSV, "query,cat,dog\na,1,0\na,1,0\n", "row 2: the query has a row already"},
		"a query unnamed":     {CSV, "query,cat,dog\n,1,0\n", "row 1: the query has no name"},
		"a control":           {NDJSON, `{"query":"\u0001","probabilities":[1,0]}`, "row 1: the query"},
		"too much":            {CSV, "0.5,0.5\n0.9,0.2\n", "row 2: a student's probabilities add up to 1"},
		"three of two":        {CSV, "0.5,0.25,0.25\n", "row 1: a student needs one probability for each class"},
		"negative":            {CSV, "1.1,-0.1\n", "row 1: a probability is not a plain decimal"},
		"not a number":        {CSV, "1,nan\n", "row 1: a probability is not a plain decimal"},
		"a ragged row":        {CSV, "1,0\n1\n", "row 2: the row has another number of fields"},
		"a member more":       {NDJSON, `{"query":"a","probabilities":[1,0],"label":1}`, "row 1: the line is no object"},
		"two objects":         {NDJSON, `{"query":"a","probabilities":[1,0]} {}`, "row 1: the line is no object"},
		"no name":             {NDJSON, `{"probabilities":[1,0]}`, "row 1: the query has no name"},
		"three axes":          {NPY, npy(1, "<f8", false, "(1, 2, 1)", float64s(1, 0)), "the shape is not that of queries by 2 classes"},
		"turned":              {NPY, npy(1, "<f8", false, "(2, 3)", float64s(1, 0, 1, 0, 1, 0)), "the shape is not that of queries by 2 classes"},
		"an array broken off": {NPY, npy(1, "<f8", false, "(2, 2)", float64s(1, 0, 1)), "breaks off"},
		"an infinity":         {NPY, npy(1, "<f2", false, "(1, 2)", []byte{0, 0x7c, 0, 0}), "row 1: a probability is not a plain decimal"},
		"objects":             {NPY, npy(1, "|O", false, "(1, 2)", nil), "pickles"},
	} {
		if rows, err := e.ReadStudents(strings.NewReader(c.text), c.format); rows != nil || fault.CodeOf(err) != fault.CodePateStudent ||
			!strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
	if _, err := e.ReadStudents(strings.NewReader("1,0"), "parquet"); fault.CodeOf(err) != fault.CodeRequestMediaType {
		t.Errorf("a format that there is not: %v", err)
	}
}

func TestStudentsFor(t *testing.T) {
	e := voters(t)
	read := func(text string) []StudentRow {
		rows, err := e.ReadStudents(strings.NewReader(text), CSV)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	named, bare := read("query,cat,dog\na,1,0\nb,0,1\nc,0,1\n"), read("1,0\n0,1\n")
	if rows, err := StudentsFor([]string{"b", "a", "b"}, named); err != nil || len(rows) != 3 || rows[0].Query != "b" ||
		rows[1].Query != "a" || rows[2].Query != "b" {
		t.Errorf("by name: %v, %v", rows, err)
	}
	if rows, err := StudentsFor([]string{"x", "y"}, bare); err != nil || len(rows) != 2 {
		t.Errorf("as they stand: %v, %v", rows, err)
	}
	for _, queries := range [][]string{{"a", "d"}, {"a\x00"}} {
		if _, err := StudentsFor(queries, named); fault.CodeOf(err) != fault.CodePateStudent {
			t.Errorf("%q: %v", queries, err)
		}
	}
	if _, err := StudentsFor([]string{"x"}, bare); fault.CodeOf(err) != fault.CodePateStudent {
		t.Errorf("a row too many: %v", err)
	}
}

// FuzzReadStudents: no file, whatever it is, brings the readers down; what they take is what [NewStudent] takes.
func FuzzReadStudents(f *testing.F) {
	f.Add("query,cat,dog\na,0.9,0.1\n", string(CSV))
	f.Add(`{"query":"a","probabilities":[0.9,0.1]}`, string(NDJSON))
	f.Add(npy(1, "<f8", true, "(2, 2)", float64s(1, 0, 0, 1)), string(NPY))
	e := voters(f)
	f.Fuzz(func(t *testing.T, text, format string) {
		rows, err := e.ReadStudents(strings.NewReader(text), Format(format))
		if err != nil {
			if code := fault.CodeOf(err); code == fault.CodeInternal {
				t.Fatal(err)
			}
			return
		}
		for _, row := range rows {
			if len(row.Probabilities) != 2 || row.Student.Key() == "" || (row.Query == "") != (rows[0].Query == "") {
				t.Fatalf("%+v", row)
			}
		}
	})
}
