package pate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/testfiles"
)

// voters are three teachers who choose one of two classes.
func voters(t testing.TB) Ensemble {
	t.Helper()
	e, err := NewEnsemble(EnsembleParameters{Teachers: 3, Classes: []string{"cat", "dog"}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// npy is an array as numpy.save writes it.
func npy(version byte, descr string, fortran bool, shape string, elements []byte) string {
	order := "False"
	if fortran {
		order = "True"
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	out := append([]byte(npyMagic), version, 0)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return string(append(append(out, header...), elements...))
}

func int64s(order binary.AppendByteOrder, values ...int64) (b []byte) {
	for _, v := range values {
		b = order.AppendUint64(b, uint64(v))
	}
	return b
}

func float64s(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// The same votes in all files below: q0 has 3 cats, q1 has 1 cat and 2 dogs (the first teacher's is the cat).
func wantCounts() []uint32 { return []uint32{3, 0, 1, 2} }

// TestImport reads the same votes in every format and layout.
func TestImport(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		layout Layout
		text   string
		keys   string // "" for 0 1
	}{
		"npy counts":              {NPY, "", npy(1, "<i8", false, "(2, 2)", int64s(binary.LittleEndian, 3, 0, 1, 2)), ""},
		"npy counts, version 2":   {NPY, "", npy(2, "<i8", false, "(2, 2)", int64s(binary.LittleEndian, 3, 0, 1, 2)), ""},
		"npy counts, version 3":   {NPY, LayoutCounts, npy(3, "<i8", false, "(2, 2)", int64s(binary.LittleEndian, 3, 0, 1, 2)), ""},
		"npy counts, Fortran":     {NPY, "", npy(1, "<i8", true, "(2, 2)", int64s(binary.LittleEndian, 3, 1, 0, 2)), ""},
		"npy counts, big-endian":  {NPY, "", npy(1, ">i8", false, "(2, 2)", int64s(binary.BigEndian, 3, 0, 1, 2)), ""},
		"npy counts, float":       {NPY, "", npy(1, "<f8", false, "(2, 2)", float64s(3, 0, 1, 2)), ""},
		"npy counts, bytes":       {NPY, "", npy(1, "|u1", false, "(2, 2)", []byte{3, 0, 1, 2}), ""},
		"npy by teacher":          {NPY, LayoutTeacherMajor, npy(1, "|i1", false, "(3, 2)", []byte{0, 0, 0, 1, 0, 1}), ""},
		"npy by teacher, Fortran": {NPY, LayoutTeacherMajor, npy(1, "|i1", true, "(3, 2)", []byte{0, 0, 0, 0, 1, 1}), ""},
		"npy by query":            {NPY, "", npy(1, "|u1", false, "(2, 3)", []byte{0, 0, 0, 0, 1, 1}), ""},
		"npy one-hot":             {NPY, "", npy(1, "|b1", false, "(3, 2, 2)", []byte{1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1}), ""},
		"npy one-hot, Fortran":    {NPY, "", npy(1, "|b1", true, "(3, 2, 2)", []byte{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1}), ""},
		"csv counts":              {CSV, "", "query,cat,dog\na,3,0\nb,1,2\n", "a b"},
		"csv counts, other order": {CSV, LayoutCounts, "query,dog,cat\r\na,0,3\r\nb,2,1\r\n", "a b"},
		"csv counts, floats":      {CSV, "", "\uFEFFquery,cat,dog\na,3.000000000000000000e+00,0.0\nb,1,2\n", "a b"},
		"csv by teacher":          {CSV, "", "teacher,a,b\nt1,cat,cat\nt2,cat,dog\nt3,cat,dog\n", "a b"},
		"csv by query":            {CSV, "", "query,t1,t2,t3\na,cat,cat,cat\nb,cat,dog,dog\n", "a b"},
		"csv one-hot":             {CSV, "", "teacher,query,cat,dog\n1,a,1,0\n2,a,1,0\n3,a,1,0\n1,b,1,0\n2,b,0,1\n3,b,0,1\n", "a b"},
		"csv votes":               {CSV, "", "teacher,query,label\n1,a,cat\n2,b,dog\n3,a,cat\n1,b,cat\n2,a,cat\n3,b,dog\n", "a b"},
		"csv bare counts":         {CSV, LayoutCounts, "3,0\n1,2\n", ""},
		"csv bare by teacher":     {CSV, LayoutTeacherMajor, "0,0\n0,1\n0,1\n", ""},
		"csv bare by query":       {CSV, LayoutQueryMajor, "0,0,0\n0,1,1\n", ""},
		"ndjson counts":           {NDJSON, "", `{"query":"a","counts":[3,0]}` + "\n" + `{"query":"b","counts":[1,2]}`, "a b"},
		"ndjson by query": {NDJSON, LayoutQueryMajor, `{"query":1,"labels":["cat","cat","cat"]}` + "\n\n" +
			`{"query":"b","labels":["cat","dog","dog"]}` + "\n", "1 b"},
		"ndjson by teacher": {NDJSON, "", `{"teacher":1,"labels":["cat","cat"]}` + "\n" + `{"teacher":2,"labels":["cat","dog"]}` +
			"\n" + `{"teacher":3,"labels":["cat","dog"]}`, ""},
		"ndjson votes":             {NDJSON, "", votesOf(`{"teacher":"%s","query":"%s","label":"%s"}`), "a b"},
		"ndjson votes, other keys": {NDJSON, "", votesOf(`{"label":"%[3]s","query":"%[2]s","teacher":"%[1]s"}`), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := voters(t).Read(iotest.OneByteReader(strings.NewReader(c.text)), c.format, c.layout)
			if err != nil {
				t.Fatal(err)
			}
			if c.keys == "" {
				c.keys = "0 1"
			}
			if strings.Join(got.keys, " ") != c.keys || !slices.Equal(got.table.v.n, wantCounts()) {
				t.Errorf("queries %q, counts %v", got.keys, got.table.v.n)
			}
		})
	}
}

func votesOf(pattern string) string {
	var b strings.Builder
	for _, v := range [][3]any{{"1", "a", "cat"}, {"2", "a", "cat"}, {"3", "a", "cat"}, {"1", "b", "cat"}, {"2", "b", "dog"},
		{"3", "b", "dog"}} {
		fmt.Fprintf(&b, pattern+"\n", v[0], v[1], v[2])
	}
	return b.String()
}

// TestImportRefusesWholeFiles: a file that is wrong in one row gives nothing, names the row, and repeats nothing that the row holds.
//
// covers: A82
func TestImportRefusesWholeFiles(t *testing.T) {
	vote := fault.CodePateVotes
	for name, c := range map[string]struct {
		format Format
		layout Layout
		text   string
		want   fault.Code
		row    string
	}{
		"a teacher twice":             {CSV, "", "teacher,query,label\n1,a,cat\n2,a,dog\n1,a,dog\n", vote, "3"},
		"a teacher's row twice":       {CSV, "", "teacher,a,b\n1,cat,cat\n2,cat,cat\n1,cat,cat\n", vote, "3"},
		"a stranger":                  {CSV, "", "teacher,query,label\n1,a,cat\n2,a,dog\n3,a,dog\n4,a,cat\n", vote, "4"},
		"a missing vote":              {CSV, "", "teacher,query,label\n1,a,cat\n2,a,dog\n", vote, ""},
		"a missing teacher":           {CSV, "", "teacher,a,b\n1,cat,cat\n2,cat,cat\n", vote, ""},
		"a class that is none":        {CSV, "", "teacher,query,label\n1,a,secretvalue\n", vote, "1"},
		"a query twice":               {CSV, "", "query,cat,dog\na,3,0\na,3,0\n", vote, "2"},
		"a query's column twice":      {CSV, "", "teacher,a,a\n1,cat,cat\n", vote, ""},
		"too many votes":              {CSV, "", "query,cat,dog\na,3,0\nb,1,3\n", vote, "2"},
		"too few votes":               {NDJSON, "", `{"query":"a","counts":[1,1]}`, vote, "1"},
		"a negative count":            {NDJSON, "", `{"query":"a","counts":[4,-1]}`, vote, "1"},
		"a count beyond":              {NDJSON, "", `{"query":"a","counts":[9223372036854775807,-9223372036854775804]}`, vote, "1"},
		"a fraction":                  {CSV, "", "query,cat,dog\na,2.5,0.5\n", vote, "1"},
		"NaN":                         {CSV, "", "query,cat,dog\na,NaN,3\n", vote, "1"},
		"another number of fields":    {CSV, "", "query,cat,dog\na,3\n", vote, "1"},
		"a quote":                     {CSV, "", "query,cat,dog\n\"a,3,0\n", vote, "1"},
		"nothing":                     {CSV, "", "", vote, ""},
		"a header alone":              {CSV, "", "query,cat,dog\n", vote, ""},
		"a class's column twice":      {CSV, "", "teacher,query,cat,cat\n", fault.CodePateLayout, ""},
		"columns of nobody":           {CSV, "", "query,t1,t2\na,cat,cat\n", fault.CodePateLayout, ""},
		"a header of another layout":  {CSV, LayoutTeacherMajor, "query,cat,dog\na,3,0\n", fault.CodePateLayout, ""},
		"no header and no layout":     {CSV, "", "3,0\n1,2\n", fault.CodePateLayout, ""},
		"another width":               {CSV, LayoutCounts, "3,0,0\n", fault.CodePateLayout, ""},
		"a name of control":           {CSV, "", "query,cat,dog\n\"a\x01\",3,0\n", vote, "1"},
		"a name of no UTF-8":          {CSV, "", "query,cat,dog\n\xff,3,0\n", vote, "1"},
		"a name of nothing":           {CSV, "", "teacher,query,label\n,a,cat\n", vote, "1"},
		"two ones":                    {CSV, "", "teacher,query,cat,dog\n1,a,1,1\n", vote, "1"},
		"no one":                      {CSV, "", "teacher,query,cat,dog\n1,a,0,0\n", vote, "1"},
		"members of another layout":   {NDJSON, "", `{"query":"a","counts":[3,0]}` + "\n" + `{"teacher":"1","labels":["cat"]}`, vote, "2"},
		"unknown member":              {NDJSON, "", `{"query":"a","counts":[3,0],"x":1}`, vote, "1"},
		"two objects":                 {NDJSON, "", `{"query":"a","counts":[3,0]} {"query":"b","counts":[3,0]}`, vote, "1"},
		"no object":                   {NDJSON, "", "[3,0]", vote, "1"},
		"half an object":              {NDJSON, "", `{"query":"a"}`, vote, "1"},
		"null":                        {NDJSON, "", `{"teacher":null,"query":"a","label":"cat"}`, vote, "1"},
		"npy of objects":              {NPY, "", npy(1, "|O", false, "(2, 2)", []byte("cos\nsystem\n(S'true'\ntR.")), vote, ""},
		"npy of records":              {NPY, "", npy(1, "[('a', '<i8')]", false, "(2, 2)", nil), vote, ""},
		"npy of text":                 {NPY, "", npy(1, "<U1", false, "(2, 2)", nil), vote, ""},
		"npy of complex numbers":      {NPY, "", npy(1, "<c8", false, "(2, 2)", nil), vote, ""},
		"npy without an order":        {NPY, "", npy(1, "|i8", false, "(2, 2)", make([]byte, 32)), vote, ""},
		"npy version 4":               {NPY, "", npy(4, "<i8", false, "(2, 2)", nil), vote, ""},
		"npy, no magic":               {NPY, "", "PK\x03\x04 a zip file", vote, ""},
		"npy, one dimension":          {NPY, "", npy(1, "|u1", false, "(2,)", []byte{1, 2}), vote, ""},
		"npy, no dimension":           {NPY, "", npy(1, "|u1", false, "()", []byte{1}), vote, ""},
		"npy, four dimensions":        {NPY, "", npy(1, "|u1", false, "(1, 1, 1, 1)", []byte{1}), vote, ""},
		"npy, nothing":                {NPY, "", npy(1, "|u1", false, "(0, 2)", nil), vote, ""},
		"npy, huge":                   {NPY, LayoutCounts, npy(1, "|u1", false, "(2000000000, 2)", nil), vote, ""},
		"npy, three classes":          {NPY, "", npy(1, "|u1", false, "(5, 4)", nil), fault.CodePateLayout, ""},
		"npy, either":                 {NPY, "", npy(1, "|u1", false, "(3, 3)", nil), fault.CodePateLayout, ""},
		"npy, teachers or counts":     {NPY, "", npy(1, "|u1", false, "(3, 2)", nil), fault.CodePateLayout, ""},
		"npy, named layout unfit":     {NPY, LayoutOneHot, npy(1, "|u1", false, "(3, 2)", nil), fault.CodePateLayout, ""},
		"npy, cut off":                {NPY, "", npy(1, "|u1", false, "(2, 2)", []byte{3, 0, 1}), vote, ""},
		"npy, more":                   {NPY, "", npy(1, "|u1", false, "(2, 2)", []byte{3, 0, 1, 2, 9}), vote, ""},
		"npy, fractions":              {NPY, "", npy(1, "<f8", false, "(2, 2)", float64s(3, 0, 1.5, 1.5)), vote, "2"},
		"npy, NaN":                    {NPY, "", npy(1, "<f8", false, "(2, 2)", float64s(3, 0, math.NaN(), 3)), vote, "2"},
		"npy, infinity":               {NPY, "", npy(1, "<f8", false, "(2, 2)", float64s(3, 0, math.Inf(1), 3)), vote, "2"},
		"npy, a count beyond":         {NPY, "", npy(1, "<i8", false, "(2, 2)", int64s(binary.LittleEndian, 3, 0, 4, -1)), vote, "2"},
		"npy, a label beyond":         {NPY, LayoutQueryMajor, npy(1, "|u1", false, "(2, 3)", []byte{0, 0, 0, 1, 1, 2}), vote, "2"},
		"npy, a negative label":       {NPY, LayoutQueryMajor, npy(1, "|i1", false, "(2, 3)", []byte{0, 0, 0, 1, 1, 255}), vote, "2"},
		"npy one-hot, two ones":       {NPY, "", npy(1, "|u1", false, "(3, 1, 2)", []byte{1, 1, 0, 0, 1, 0}), vote, "1"},
		"npy one-hot, two for no one": {NPY, "", npy(1, "|u1", false, "(3, 1, 2)", []byte{2, 0, 0, 0, 1, 0}), vote, "1"},
		"npy header, code":            {NPY, "", npyRaw("__import__('os').system('true')"), vote, ""},
		"npy header, twice":           {NPY, "", npyRaw("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }"), vote, ""},
		"npy header, more":            {NPY, "", npyRaw("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), 'x': 1}"), vote, ""},
		"npy header, less":            {NPY, "", npyRaw("{'descr': '|u1', 'shape': (2, 2), }"), vote, ""},
		"npy header, negative":        {NPY, "", npyRaw("{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 2), }"), vote, ""},
		"npy header, 1":               {NPY, "", npyRaw("{'descr': '|u1', 'fortran_order': 1, 'shape': (2, 2), }"), vote, ""},
		"unknown layout":              {NPY, "votes", "", fault.CodePateLayout, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := voters(t).Read(strings.NewReader(c.text), c.format, c.layout)
			var f *fault.Error
			if got != nil || !errors.As(err, &f) || f.Code != c.want {
				t.Fatalf("%v, %v; want %s", got, err, c.want)
			}
			row := ""
			for _, d := range f.Details {
				row = d.Value
			}
			if row != c.row || strings.Contains(f.Msg+f.Hint, "secretvalue") {
				t.Errorf("%v in row %q, want row %q", err, row, c.row)
			}
		})
	}
}

func npyRaw(header string) string {
	out := append([]byte(npyMagic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	return string(append(append(out, header...), 3, 0, 1, 2))
}

// TestImportPassesLimitsOn: a body that the border cuts off is too large, not broken.
func TestImportPassesLimitsOn(t *testing.T) {
	for _, format := range []Format{NPY, CSV, NDJSON} {
		cut := io.MultiReader(strings.NewReader(map[Format]string{NPY: npy(1, "|u1", false, "(2, 2)", []byte{3}), CSV: "query,cat,dog\na,3",
			NDJSON: `{"query"`}[format]),
			iotest.ErrReader(fault.RequestTooLarge("the body", 10)))
		if _, err := voters(t).Read(cut, format, ""); fault.CodeOf(err) != fault.CodeRequestTooLarge {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestColumnsOfTeachersOrClasses: as many teachers as classes, of the same names, are not told apart by guessing.
func TestColumnsOfTeachersOrClasses(t *testing.T) {
	e := ensembleOf(t, 2, 2, 1) // teachers 0 and 1, classes 0 and 1
	for layout, want := range map[Layout][]uint32{"": nil, LayoutCounts: {1, 1}, LayoutQueryMajor: {0, 2}} {
		got, err := e.Read(strings.NewReader("query,0,1\na,1,1\n"), CSV, layout)
		switch {
		case want == nil && fault.CodeOf(err) != fault.CodePateLayout:
			t.Errorf("without a layout: %v", err)
		case want != nil && (err != nil || !slices.Equal(got.table.v.n, want)):
			t.Errorf("%s: %v", layout, err)
		}
	}
}

// TestRecordsWithoutEnd: a quote that is never closed does not take a file of any size into memory.
func TestRecordsWithoutEnd(t *testing.T) {
	const size = 1 << 30
	file := &io.LimitedReader{R: endless{}, N: size}
	_, err := voters(t).Read(io.MultiReader(strings.NewReader("query,cat,dog\na,3,0\n\""), file), CSV, "")
	if fault.CodeOf(err) != fault.CodePateVotes || !strings.Contains(err.Error(), "row 2: the line is longer") {
		t.Errorf("%v", err)
	}
	if taken := size - file.N; taken > 2*maxLine {
		t.Errorf("%d bytes were read", taken)
	}
}

// endless is a line that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestBallotsAreSealed: what was imported cannot be printed.
func TestBallotsAreSealed(t *testing.T) {
	e := voters(t)
	b, err := e.Read(strings.NewReader("query,cat,dog\na,3,0\n"), CSV, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s"} {
		if text := fmt.Sprintf(verb, b.Table()); strings.Contains(text, "3") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

// TestImportOfTheMNISTVotes: the same votes of 250 teachers as labels and as counts, as NumPy and as text.
func TestImportOfTheMNISTVotes(t *testing.T) {
	dir := testfiles.Fetched(t, "data/pate")
	read := func(name string, format Format, layout Layout, teachers int64) []uint32 {
		t.Helper()
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		e, err := NewEnsemble(EnsembleParameters{Teachers: teachers, Classes: strings.Split("0123456789", "")})
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Read(file, format, layout)
		if err != nil {
			t.Fatal(name, err)
		}
		return b.table.v.n
	}
	if !slices.Equal(read("mnist_250_teacher_votes.npy", NPY, "", 250), read("mnist_250_vote_counts.npy", NPY, "", 250)) {
		t.Error("labels and counts of MNIST differ")
	}
	if !slices.Equal(read("digits_50_teacher_votes.npy", NPY, "", 50), read("digits_50_vote_counts.npy", NPY, "", 50)) {
		t.Error("labels and counts of the digits differ")
	}
	if !slices.Equal(read("mnist_250_teachers.npy", NPY, "", 250), read("mnist_250_teachers.csv", CSV, LayoutCounts, 250)) {
		t.Error("NumPy and text differ")
	}
}

// fuzzImport: no file, whatever it is, brings the decoders down; what they take keeps every invariant of votes.
func fuzzImport(f *testing.F, format Format, seeds ...string) {
	e := voters(f)
	for _, seed := range seeds {
		f.Add(seed, "")
		f.Add(seed, string(LayoutQueryMajor))
	}
	f.Fuzz(func(t *testing.T, text, layout string) {
		b, err := e.Read(strings.NewReader(text), format, Layout(layout))
		if err != nil {
			if code := fault.CodeOf(err); code == fault.CodeInternal {
				t.Fatal(err)
			}
			return
		}
		if len(b.keys) != b.table.Queries() || len(b.keys) == 0 {
			t.Fatal("another number of queries")
		}
		seen := map[string]bool{}
		for _, key := range b.keys {
			if !validKey(key) || seen[key] {
				t.Fatalf("key %q", key)
			}
			seen[key] = true
		}
	})
}

func FuzzImportNPY(f *testing.F) {
	fuzzImport(f, NPY, npy(1, "<i8", false, "(2, 2)", int64s(binary.LittleEndian, 3, 0, 1, 2)),
		npy(2, "|b1", true, "(3, 2, 2)", bytes.Repeat([]byte{1, 0}, 6)))
}

func FuzzImportCSV(f *testing.F) {
	fuzzImport(f, CSV, "query,cat,dog\na,3,0\n", "teacher,query,label\n1,a,cat\n", "teacher,a,b\nt1,cat,cat\n", "0,1,1\n")
}

func FuzzImportNDJSON(f *testing.F) {
	fuzzImport(f, NDJSON, `{"query":"a","counts":[3,0]}`, `{"teacher":1,"labels":["cat"]}`, `{"teacher":"1","query":"a","label":"cat"}`)
}

// BenchmarkImport reads 250 teachers' labels for 9,000 queries.
func BenchmarkImport(b *testing.B) {
	e, err := NewEnsemble(EnsembleParameters{Teachers: 250, Classes: strings.Split("0123456789", "")})
	if err != nil {
		b.Fatal(err)
	}
	labels := make([]byte, 250*9000)
	for i := range labels {
		labels[i] = byte(i % 10)
	}
	file := npy(1, "|u1", false, "(250, 9000)", labels)
	for b.Loop() {
		if _, err := e.Read(strings.NewReader(file), NPY, ""); err != nil {
			b.Fatal(err)
		}
	}
}
