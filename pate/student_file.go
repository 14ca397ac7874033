package pate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// StudentRow is what a file says of a student about one query.
type StudentRow struct {
	Query         string   // "" throughout a file that names no queries
	Probabilities []string // by class, as decimal numbers: [Student] is made of exactly these
	Student       Student
}

// ReadStudents reads a student's probabilities for each of some queries:
//
//   - an NPY array of floats, queries by classes;
//   - a CSV file with the header query,CLASS,CLASS,..., the classes in any order, or without a header;
//   - NDJSON, a line {"query": "q1", "probabilities": [0.9, 0.1]} for each query, classes in their order.
//
// It is public, and read before anything is asked. A probability of 32 bits means its shortest decimal, not the binary number behind it, so
// that an array and its text are the same student; one below 10⁻³⁰ is 0. Errors are pate/invalid-student with the row, counted from 1.
func (e Ensemble) ReadStudents(r io.Reader, format Format) ([]StudentRow, error) {
	s := &studentReader{ensemble: e, seen: map[string]bool{}}
	var err error
	switch format {
	case NPY:
		err = s.readNPY(r)
	case CSV:
		err = s.readCSV(r)
	case NDJSON:
		err = s.readNDJSON(r)
	default:
		return nil, fault.RequestMediaType([]string{string(NPY), string(CSV), string(NDJSON)})
	}
	if err == nil && len(s.rows) == 0 {
		err = fault.PateStudent("there is no student in it")
	}
	var refused *fault.Error
	if errors.As(err, &refused) && (refused.Code == fault.CodePateVotes || refused.Code == fault.CodePateLayout) {
		err = fault.PateStudent(refused.Msg).WithCause(err) // the readers are those of votes, and so are their words about a file
	}
	if err != nil {
		return nil, err
	}
	return s.rows, nil
}

// StudentsFor puts rows into the order of the queries: by name, or as they stand where they have none, in which case there must be as many.
func StudentsFor(queries []string, rows []StudentRow) ([]StudentRow, error) {
	if rows[0].Query == "" {
		if len(rows) != len(queries) {
			return nil, fault.PateStudent(fmt.Sprintf("there are %d rows of a student for %d queries", len(rows), len(queries)))
		}
		return rows, nil
	}
	places := make(map[string]int, len(rows))
	for i, row := range rows {
		places[row.Query] = i
	}
	found := make([]StudentRow, len(queries))
	for i, query := range queries {
		place, ok := places[query]
		if !ok {
			return nil, fault.PateStudent("the student has no row for query " + fault.Quote(query))
		}
		found[i] = rows[place]
	}
	return found, nil
}

// studentReader collects rows.
type studentReader struct {
	ensemble Ensemble
	rows     []StudentRow
	seen     map[string]bool // names of queries
}

// add checks a row. The rows of a file are all named or all without a name; each query has one.
func (s *studentReader) add(query string, texts []string) error {
	row := len(s.rows) + 1
	wrong := func(why string) error { return fault.PateStudent(fmt.Sprintf("row %d: %s", row, why)) }
	if row > MaxQueries || row*s.ensemble.ClassCount() > maxCells {
		return wrong("there are more queries than an ensemble may have")
	}
	if query != "" && (s.seen[query] || !validKey(query)) {
		return wrong("the query has a row already, or is no name of one")
	}
	s.seen[query] = true
	values := make([]*big.Rat, len(texts))
	for i := range texts {
		var err error
		if texts[i] = strings.TrimSpace(texts[i]); tiny(texts[i]) {
			texts[i] = "0"
		}
		if values[i], err = mechanisms.ParseDecimal(texts[i]); err != nil {
			return wrong("a probability is " + err.Error())
		}
	}
	student, err := NewStudent(s.ensemble, values)
	var refused *fault.Error
	if errors.As(err, &refused) {
		return wrong(refused.Msg)
	}
	if err != nil {
		return err
	}
	s.rows = append(s.rows, StudentRow{Query: query, Probabilities: texts, Student: student})
	return nil
}

// leastProbability is below what decimal numbers of requests hold, and far below what a vote could tell from 0.
const leastProbability = 1e-30

// tiny reports whether a text is a number that counts as 0.
func tiny(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && f >= 0 && f < leastProbability
}

func (s *studentReader) readNPY(r io.Reader) error {
	in := bufio.NewReaderSize(r, npyBlock)
	h, err := readNPYHeader(in)
	if err != nil {
		return err
	}
	if len(h.shape) != 2 || h.shape[1] != s.ensemble.ClassCount() || h.shape[0] > MaxQueries || h.shape[0]*h.shape[1] > maxCells {
		return fault.PateStudent(fmt.Sprintf("the shape is not that of queries by %d classes", s.ensemble.ClassCount()))
	}
	order := axes{sizes: slices.Clone(h.shape), kinds: []axis{queryAxis, classAxis}}
	if h.fortran {
		slices.Reverse(order.sizes)
		slices.Reverse(order.kinds)
	}
	texts := make([][]string, h.shape[0])
	err = readElements(in, h.number.size, order, func(at [3]int, element []byte) error {
		if texts[at[queryAxis]] == nil {
			texts[at[queryAxis]] = make([]string, h.shape[1])
		}
		texts[at[queryAxis]][at[classAxis]] = h.number.decimal(element)
		return nil
	})
	for i := 0; err == nil && i < len(texts); i++ {
		err = s.add("", texts[i])
	}
	return err
}

func (s *studentReader) readCSV(r io.Reader) error {
	source := &recordReader{from: r}
	in := csv.NewReader(bufio.NewReaderSize(source, npyBlock))
	t := newTally(s.ensemble) // knows the classes by name
	var columns []int         // nil without a header
	for row := int64(0); ; row++ {
		source.begin()
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return csvError(err, row+1)
		}
		if row == 0 {
			record[0] = strings.TrimPrefix(record[0], "\uFEFF")
		}
		switch {
		case row == 0 && record[0] == "query":
			columns, err = t.classColumns(record[1:])
		case columns == nil:
			err = s.add("", record)
		default:
			texts := make([]string, len(columns))
			for i, class := range columns {
				texts[class] = record[i+1]
			}
			err = s.named(record[0], texts)
		}
		if err != nil {
			return err
		}
	}
}

// named is [studentReader.add] where each row needs the name of its query.
func (s *studentReader) named(query string, texts []string) error {
	if query == "" {
		return fault.PateStudent(fmt.Sprintf("row %d: the query has no name", len(s.rows)+1))
	}
	return s.add(query, texts)
}

func (s *studentReader) readNDJSON(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, npyBlock), maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var row struct {
			Query         name   `json:"query"`
			Probabilities []name `json:"probabilities"`
		}
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&row)
		if _, more := decoder.Token(); err != nil || !errors.Is(more, io.EOF) {
			return fault.PateStudent(fmt.Sprintf(`row %d: the line is no object of "query" and "probabilities"`, len(s.rows)+1))
		}
		if err := s.named(string(row.Query), texts(row.Probabilities)); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return tooLong(int64(len(s.rows) + 1))
	} else if err != nil {
		return brokenOff(err)
	}
	return nil
}
