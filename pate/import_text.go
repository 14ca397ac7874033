package pate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// maxLine bounds one line of a text file in bytes: 100,000 labels of a teacher fit.
const maxLine = 16 << 20

// readCSV takes in a CSV file. Its header says the layout:
//
//	query,CLASS,CLASS,...          counts
//	teacher,QUERY,QUERY,...        labels_teacher_major
//	query,TEACHER,TEACHER,...      labels_query_major, told from counts by its columns, which are not the classes; else by the caller
//	teacher,query,CLASS,CLASS,...  onehot
//	teacher,query,label            one vote a row
//
// A file whose first field is neither query nor teacher has no header: it is a matrix of numbers; only the layout that the caller names
// says what they are.
func readCSV(r io.Reader, t *tally, named Layout) error {
	source := &recordReader{from: r}
	in := csv.NewReader(bufio.NewReaderSize(source, npyBlock))
	in.ReuseRecord = true
	source.begin()
	first, err := in.Read()
	if err != nil {
		return csvError(err, 0)
	}
	first = slices.Clone(first)
	first[0] = strings.TrimPrefix(first[0], "\uFEFF")
	table, err := t.csvTable(first, named)
	if err != nil {
		return err
	}
	row := int64(0)
	if !table.header {
		row++
		if err := table.take(first, row); err != nil {
			return err
		}
	}
	for {
		source.begin()
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return table.end(row)
		}
		row++
		if err != nil {
			return csvError(err, row)
		}
		if err := table.take(record, row); err != nil {
			return err
		}
	}
}

// recordReader ends a record that is too long: one whose quote is never closed would take the whole file into memory.
type recordReader struct {
	from io.Reader
	left int // bytes for the record that was begun
}

var errLongRecord = errors.New("pate: a record is too long")

// begin makes room for a record, and for what is read ahead.
func (r *recordReader) begin() { r.left = maxLine + npyBlock }

// Read implements [io.Reader].
func (r *recordReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLongRecord
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

func tooLong(row int64) error {
	return fault.PateVotes(row, fmt.Sprintf("the line is longer than %d bytes", maxLine))
}

func csvError(err error, row int64) error {
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, errLongRecord):
		return tooLong(row)
	case errors.Is(err, io.EOF):
		return fault.PateVotes(0, "there is no query in it")
	case errors.Is(err, csv.ErrFieldCount):
		return fault.PateVotes(row, "the row has another number of fields than the first")
	case errors.As(err, &syntax):
		return fault.PateVotes(row, "this is no CSV")
	default:
		return brokenOff(err)
	}
}

// textTable takes in the rows of a text file of one layout.
type textTable struct {
	header bool
	take   func(record []string, row int64) error
	end    func(rows int64) error
}

// csvTable finds the layout of a CSV file from its first row.
func (t *tally) csvTable(first []string, named Layout) (textTable, error) {
	table := textTable{header: true, end: func(int64) error { return nil }}
	var found Layout
	switch {
	case slices.Equal(first, []string{"teacher", "query", "label"}):
		found = layoutVotes
		table.take = func(f []string, row int64) error { return t.vote(Vote{f[0], f[1], f[2]}, row) }
	case len(first) > 2 && first[0] == "teacher" && first[1] == "query":
		found = LayoutOneHot
		columns, err := t.classColumns(first[2:])
		if err != nil {
			return table, err
		}
		table.take = func(f []string, row int64) error { return t.oneHotRow(f[0], f[1], f[2:], columns, row) }
	case first[0] == "teacher":
		found = LayoutTeacherMajor
		for _, key := range first[1:] {
			if _, err := t.newQuery(key, 0); err != nil {
				return table, err
			}
		}
		table.take = func(f []string, row int64) error { return t.teacherRow(f[0], f[1:], row) }
		table.end = t.allTeachers
	case first[0] == "query" && t.areClasses(first[1:]) && t.areTeachers(first[1:]) && named == "":
		return table, fault.PateLayout("the columns after query can be the classes or as many teachers of the same names: counts, or " +
			"labels_query_major")
	case first[0] == "query" && t.areClasses(first[1:]) && !(t.areTeachers(first[1:]) && named == LayoutQueryMajor):
		found = LayoutCounts
		columns, err := t.classColumns(first[1:])
		if err != nil {
			return table, err
		}
		table.take = func(f []string, row int64) error { return t.countsRow(f[0], f[1:], columns, row) }
	case first[0] == "query":
		found = LayoutQueryMajor
		if !t.areTeachers(first[1:]) {
			return table, fault.PateLayout(fmt.Sprintf("the columns after query are neither the %d classes nor %d different teachers",
				t.ensemble.ClassCount(), int(t.ensemble.teachers)))
		}
		table.take = func(f []string, row int64) error { return t.queryRow(f[0], f[1:], row) }
	default:
		return t.bareTable(len(first), named)
	}
	if named != "" && named != found {
		return table, fault.PateLayout(fmt.Sprintf("the header is that of %s, not of %s", found, named))
	}
	return table, nil
}

// bareTable takes in a matrix of numbers without header, as np.savetxt writes it.
func (t *tally) bareTable(columns int, named Layout) (textTable, error) {
	e := t.ensemble
	table := textTable{end: func(int64) error { return nil }}
	shape, kinds := []int{0, columns}, shapes()[named]
	switch named {
	case LayoutTeacherMajor:
		shape[0] = int(e.teachers)
		if err := t.number(columns); err != nil {
			return table, err
		}
		table.end = t.allTeachers
	case LayoutCounts, LayoutQueryMajor:
	case LayoutOneHot, "":
		return table, fault.PateLayout("a CSV file without a header that begins with query or teacher is a matrix of two dimensions that " +
			"may mean anything")
	default:
		return table, fault.PateLayout("there is no such layout")
	}
	if !e.fits(shape, kinds) {
		return table, fault.PateLayout(fmt.Sprintf("the number of columns is not that of %s by %d teachers for %d classes", named,
			e.teachers, e.ClassCount()))
	}
	table.take = func(f []string, row int64) error {
		if named == LayoutTeacherMajor {
			if _, err := t.teacher(fmt.Sprint(row), row); err != nil {
				return err
			}
		} else if _, _, err := t.query(fmt.Sprint(row-1), row); err != nil {
			return err
		}
		var at [3]int
		at[kinds[0]] = int(row - 1)
		for i, text := range f {
			value, ok := whole(text)
			if !ok {
				return fault.PateVotes(row, "an element is no integer")
			}
			at[kinds[1]] = i
			if err := t.element(named, at, value, row); err != nil {
				return err
			}
		}
		return nil
	}
	return table, nil
}

// areClasses reports whether columns are named after the classes, in any order.
func (t *tally) areClasses(columns []string) bool {
	return len(columns) == len(t.classes) && !slices.ContainsFunc(columns, func(c string) bool { _, ok := t.classes[c]; return !ok })
}

// areTeachers reports whether columns can be named after the teachers: as many different names.
func (t *tally) areTeachers(columns []string) bool {
	return len(columns) == int(t.ensemble.teachers) && !hasTwice(columns)
}

// classColumns finds the class of each column: each class has one.
func (t *tally) classColumns(columns []string) ([]int, error) {
	if !t.areClasses(columns) || hasTwice(columns) {
		return nil, fault.PateLayout("the columns are not the classes, each one once")
	}
	places := make([]int, len(columns))
	for i, name := range columns {
		places[i] = t.classes[name]
	}
	return places, nil
}

func hasTwice(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}

func (t *tally) countsRow(key string, cells []string, columns []int, row int64) error {
	query, err := t.newQuery(key, row)
	if err != nil {
		return err
	}
	for i, text := range cells {
		count, ok := whole(text)
		if !ok {
			return fault.PateVotes(row, "a count is no integer")
		}
		if err := t.set(query, columns[i], count, row); err != nil {
			return err
		}
	}
	return nil
}

// teacherRow takes in all votes of one teacher. The teacher's row is its only one, so that it votes once on each query.
func (t *tally) teacherRow(name string, labels []string, row int64) error {
	before := len(t.teachers)
	if _, err := t.teacher(name, row); err != nil {
		return err
	}
	if len(t.teachers) == before {
		return fault.PateVotes(row, "the teacher has a row already")
	}
	if len(labels) != len(t.keys) {
		return fault.PateVotes(row, "the teacher has not one label for each query")
	}
	for query, label := range labels {
		class, err := t.class(label, row)
		if err != nil {
			return err
		}
		t.add(query, class)
	}
	return nil
}

// allTeachers demands that every teacher had a row.
func (t *tally) allTeachers(rows int64) error {
	if len(t.teachers) != int(t.ensemble.teachers) {
		return fault.PateVotes(0, fmt.Sprintf("there are %d rows for %d teachers", rows, int(t.ensemble.teachers)))
	}
	return nil
}

// queryRow takes in the votes of all teachers on one query.
func (t *tally) queryRow(key string, labels []string, row int64) error {
	query, err := t.newQuery(key, row)
	if err != nil {
		return err
	}
	if len(labels) != int(t.ensemble.teachers) {
		return fault.PateVotes(row, "the query has not one label of each teacher")
	}
	for _, label := range labels {
		class, err := t.class(label, row)
		if err != nil {
			return err
		}
		t.add(query, class)
	}
	return nil
}

func (t *tally) oneHotRow(teacher, key string, cells []string, columns []int, row int64) error {
	label, ones := "", 0
	for i, text := range cells {
		switch value, ok := whole(text); {
		case ok && value == 0:
		case ok && value == 1:
			label = t.ensemble.classes[columns[i]]
			ones++
		default:
			return fault.PateVotes(row, "an element of a one-hot row is neither 0 nor 1")
		}
	}
	if ones != 1 {
		return fault.PateVotes(row, "a one-hot row must have a single 1")
	}
	return t.vote(Vote{teacher, key, label}, row)
}

// line is one object of an NDJSON file. Which members it has says the layout.
type line struct {
	Teacher *name   `json:"teacher"`
	Query   *name   `json:"query"`
	Label   *name   `json:"label"`
	Labels  []name  `json:"labels"`
	Counts  []int64 `json:"counts"`
}

// name is a text, or a number that stands for its digits.
type name string

// UnmarshalJSON reads a string or a number.
func (n *name) UnmarshalJSON(text []byte) error {
	var s string
	if text[0] != '"' {
		var number json.Number
		err := json.Unmarshal(text, &number)
		*n = name(number)
		return err
	}
	err := json.Unmarshal(text, &s)
	*n = name(s)
	return err
}

// layout is what the members say, or "" when they say nothing that is known.
func (l line) layout() Layout {
	teacher, query, label, labels, counts := l.Teacher != nil, l.Query != nil, l.Label != nil, l.Labels != nil, l.Counts != nil
	switch {
	case teacher && query && label && !labels && !counts:
		return layoutVotes
	case !teacher && query && !label && !labels && counts:
		return LayoutCounts
	case !teacher && query && !label && labels && !counts:
		return LayoutQueryMajor
	case teacher && !query && !label && labels && !counts:
		return LayoutTeacherMajor
	default:
		return ""
	}
}

// readNDJSON takes in one object a line:
//
//	{"query": "q1", "counts": [3, 247]}              counts, in the order of the classes
//	{"query": "q1", "labels": ["cat", "dog", ...]}   one label of each teacher
//	{"teacher": "t1", "labels": ["cat", ...]}        one label for each query; queries are called 0, 1, ...
//	{"teacher": "t1", "query": "q1", "label": "cat"} one vote
//
// All lines have the layout of the first.
func readNDJSON(r io.Reader, t *tally, named Layout) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, npyBlock), maxLine)
	layout, row := named, int64(0)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		row++
		l, err := parseLine(lines.Text(), row)
		if cut := lines.Err(); cut != nil {
			return brokenOff(cut) // in the middle of this line
		}
		if err != nil {
			return err
		}
		if layout == "" {
			layout = l.layout()
		}
		if layout != l.layout() {
			return fault.PateVotes(row, "the object has other members than the layout of the file")
		}
		if err := t.line(l, row); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return tooLong(row + 1)
	} else if err != nil {
		return brokenOff(err)
	}
	if layout == LayoutTeacherMajor {
		return t.allTeachers(row)
	}
	return nil
}

func parseLine(text string, row int64) (line, error) {
	var l line
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil {
		return line{}, fault.PateVotes(row, `the line is no object of "teacher", "query", "label", "labels", "counts"`)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return line{}, fault.PateVotes(row, "there is more than one object in the line")
	}
	if l.layout() == "" {
		return line{}, fault.PateVotes(row, `the object must have "query" and "counts", "query" and "labels", "teacher" and "labels", or "teacher", "query" and "label"`)
	}
	return l, nil
}

func (t *tally) line(l line, row int64) error {
	switch l.layout() {
	case layoutVotes:
		return t.vote(Vote{string(*l.Teacher), string(*l.Query), string(*l.Label)}, row)
	case LayoutCounts:
		query, err := t.newQuery(string(*l.Query), row)
		if err != nil {
			return err
		}
		if len(l.Counts) != t.ensemble.ClassCount() {
			return fault.PateVotes(row, "the query has not one count for each class")
		}
		for class, count := range l.Counts {
			if err := t.set(query, class, count, row); err != nil {
				return err
			}
		}
		return nil
	case LayoutQueryMajor:
		return t.queryRow(string(*l.Query), texts(l.Labels), row)
	case LayoutTeacherMajor:
		if len(t.keys) == 0 {
			if err := t.number(len(l.Labels)); err != nil {
				return err
			}
		}
		return t.teacherRow(string(*l.Teacher), texts(l.Labels), row)
	default:
		return fault.Internal(errors.New("pate: a line without a layout"))
	}
}

func texts(names []name) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return list
}
