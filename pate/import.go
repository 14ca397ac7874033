package pate

import (
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/internal/fault"
)

// Format is how a file of votes is written.
type Format string

const (
	NPY    Format = "npy"    // a NumPy array, numeric, version 1 to 3
	CSV    Format = "csv"    // RFC 4180, with a header that names the columns, or a bare matrix of numbers
	NDJSON Format = "ndjson" // one object a line
)

// Layout is what the axes of a file stand for. The empty Layout is what shape or header say, if they say one thing only.
type Layout string

// The layouts. Arrays number classes and queries from 0; texts name them.
const (
	LayoutCounts       Layout = "counts"               // a row for each query: how many teachers chose each class
	LayoutTeacherMajor Layout = "labels_teacher_major" // a row for each teacher: its label for each query
	LayoutQueryMajor   Layout = "labels_query_major"   // a row for each query: each teacher's label for it
	LayoutOneHot       Layout = "onehot"               // teacher by query by class: 1 where the teacher chose the class
	layoutVotes        Layout = "votes"                // a row for each teacher and query: the label
)

// Bounds of what one version of an ensemble may hold. They keep an import within a few hundred megabytes of memory.
const (
	MaxQueries = 1_000_000
	maxCells   = 64 << 20 // queries times classes, four bytes each
	maxSeen    = 1 << 30  // queries times teachers, one bit each
	maxKey     = 256      // bytes of the name of a query, a teacher or a class
)

// Vote is one teacher's label for one query, as a table of votes holds it.
type Vote struct{ Teacher, Query, Label string }

// VoteTable is where votes lie in a protected database: names of a schema, a table or view, and three of its columns, to the letter.
type VoteTable struct{ Schema, Table, Teacher, Query, Label string }

// Read takes votes from a file. It reads to the end before it gives anything: a file that is wrong anywhere gives nothing but the error,
// pate/invalid-votes with the row or pate/ambiguous-layout. Every teacher votes exactly once on every query.
func (e Ensemble) Read(r io.Reader, format Format, layout Layout) (*Ballots, error) {
	switch layout {
	case "", LayoutCounts, LayoutTeacherMajor, LayoutQueryMajor, LayoutOneHot:
	default:
		return nil, fault.PateLayout("there is no such layout")
	}
	t := newTally(e)
	var err error
	switch format {
	case NPY:
		err = readNPY(r, t, layout)
	case CSV:
		err = readCSV(r, t, layout)
	case NDJSON:
		err = readNDJSON(r, t, layout)
	default:
		return nil, fault.RequestMediaType([]string{string(NPY), string(CSV), string(NDJSON)})
	}
	return t.finish(err)
}

// Collect takes votes one by one, in any order. An error of the sequence ends it and is passed on. Errors name no row:
// in a table, the place of a wrong row would reveal what lies before it.
func (e Ensemble) Collect(votes iter.Seq2[Vote, error]) (*Ballots, error) {
	t := newTally(e)
	for vote, err := range votes {
		if err == nil {
			err = t.vote(vote, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.finish(nil)
}

// Ballots are the votes of an ensemble on a list of queries: sealed, each query under its name.
type Ballots struct {
	keys  []string // by query; not protected
	table *Table
}

// Queries is how many queries there are.
func (b *Ballots) Queries() int { return len(b.keys) }

// Keys are the names of the queries, in their order. The list must not be changed.
func (b *Ballots) Keys() []string { return b.keys }

// Table is the votes, in the order of the queries.
func (b *Ballots) Table() *Table { return b.table }

// tally adds up votes as they come and knows who has voted on what.
type tally struct {
	ensemble Ensemble
	classes  map[string]int
	queries  map[string]int // by name; nil while queries are numbers
	teachers map[string]int // by name
	keys     []string
	counts   []uint32
	seen     []uint64 // a bit for each teacher and query that voted
}

func newTally(e Ensemble) *tally {
	t := &tally{ensemble: e, classes: make(map[string]int, e.ClassCount()), queries: map[string]int{}, teachers: map[string]int{}}
	for i, name := range e.classes {
		t.classes[name] = i
	}
	return t
}

// number makes room for n queries that are called "0", "1", ...
func (t *tally) number(n int) error {
	if n > MaxQueries || n*t.ensemble.ClassCount() > maxCells {
		return tooMany()
	}
	t.queries = nil
	t.keys = make([]string, n)
	for i := range t.keys {
		t.keys[i] = strconv.Itoa(i)
	}
	t.counts = make([]uint32, n*t.ensemble.ClassCount())
	return nil
}

func tooMany() error {
	return fault.PateVotes(0, fmt.Sprintf("there are more than %d queries, or than %d counts in all", MaxQueries, maxCells))
}

// query finds the place of a query by its name, a new one if it was not named before; fresh says which.
func (t *tally) query(name string, row int64) (place int, fresh bool, err error) {
	if place, ok := t.queries[name]; ok {
		return place, false, nil
	}
	if !validKey(name) {
		return 0, false, fault.PateVotes(row, "a query's name must be 1 to 256 bytes of UTF-8 without control characters")
	}
	place = len(t.keys)
	if place >= MaxQueries || (place+1)*t.ensemble.ClassCount() > maxCells {
		return 0, false, tooMany()
	}
	t.queries[strings.Clone(name)] = place
	t.keys = append(t.keys, strings.Clone(name))
	t.counts = append(t.counts, make([]uint32, t.ensemble.ClassCount())...)
	return place, true, nil
}

// newQuery is [tally.query] for a row that must be the only one of its query.
func (t *tally) newQuery(name string, row int64) (int, error) {
	place, fresh, err := t.query(name, row)
	if err == nil && !fresh {
		err = fault.PateVotes(row, "the query has a row already")
	}
	return place, err
}

// teacher finds the number of a teacher by its name.
func (t *tally) teacher(name string, row int64) (int, error) {
	if place, ok := t.teachers[name]; ok {
		return place, nil
	}
	switch {
	case !validKey(name):
		return 0, fault.PateVotes(row, "a teacher's name must be 1 to 256 bytes of UTF-8 without control characters")
	case len(t.teachers) == int(t.ensemble.teachers):
		return 0, fault.PateVotes(row, fmt.Sprintf("this is one teacher more than the %d that the ensemble has", int(t.ensemble.teachers)))
	}
	place := len(t.teachers)
	t.teachers[strings.Clone(name)] = place
	return place, nil
}

// class finds a class by its name.
func (t *tally) class(name string, row int64) (int, error) {
	class, ok := t.classes[name]
	if !ok {
		return 0, fault.PateVotes(row, "a label is none of the ensemble's classes")
	}
	return class, nil
}

// vote counts one vote of a named teacher.
func (t *tally) vote(v Vote, row int64) error {
	teacher, err := t.teacher(v.Teacher, row)
	if err != nil {
		return err
	}
	query, _, err := t.query(v.Query, row)
	if err != nil {
		return err
	}
	class, err := t.class(v.Label, row)
	if err != nil {
		return err
	}
	return t.cast(teacher, query, class, row)
}

// cast counts the vote of one teacher on one query, which is its only one (A82).
func (t *tally) cast(teacher, query, class int, row int64) error {
	bit := query*int(t.ensemble.teachers) + teacher
	if bit >= maxSeen {
		return fault.PateVotes(row, "single votes of this many teachers on this many queries cannot be checked; load counts instead")
	}
	for word := bit / 64; word >= len(t.seen); {
		t.seen = append(t.seen, 0)
	}
	if t.seen[bit/64]&(1<<(bit%64)) != 0 {
		return fault.PateVotes(row, "a teacher votes twice on one query")
	}
	t.seen[bit/64] |= 1 << (bit % 64)
	t.add(query, class)
	return nil
}

// add counts a vote of a teacher who is known to vote once.
func (t *tally) add(query, class int) { t.counts[query*t.ensemble.ClassCount()+class]++ }

// set puts a count where none is.
func (t *tally) set(query, class int, count int64, row int64) error {
	if count < 0 || count > t.ensemble.teachers {
		return fault.PateVotes(row, "a count is negative, or more than there are teachers")
	}
	t.counts[query*t.ensemble.ClassCount()+class] = uint32(count)
	return nil
}

// finish holds every query against the number of teachers and gives the votes out.
func (t *tally) finish(err error) (*Ballots, error) {
	if err != nil {
		return nil, err
	}
	if len(t.keys) == 0 {
		return nil, fault.PateVotes(0, "there is no query in it")
	}
	table, err := NewTable(t.ensemble, t.counts)
	if err != nil && t.seen != nil {
		return nil, t.incomplete() // a query has no row
	}
	if err != nil {
		return nil, err
	}
	return &Ballots{keys: t.keys, table: table}, nil
}

// incomplete names the first query on which a teacher did not vote, by its place: names may be values of a protected table.
func (t *tally) incomplete() error {
	votes := make([]int64, len(t.keys))
	for i, n := range t.counts {
		votes[i/t.ensemble.ClassCount()] += int64(n)
	}
	query := slices.IndexFunc(votes, func(n int64) bool { return n != t.ensemble.teachers })
	return fault.PateVotes(0, fmt.Sprintf("not every teacher has voted on query %d, counted from 1 as they first appear", query+1))
}

// axes is what the dimensions of an array stand for, in the order in which its elements come.
type axes struct {
	sizes []int
	kinds []axis
}

// axis is what one dimension of an array counts.
type axis int

const (
	queryAxis axis = iota
	teacherAxis
	classAxis
)

// shapes are the layouts of arrays, as their dimensions.
func shapes() map[Layout][]axis {
	return map[Layout][]axis{
		LayoutCounts:       {queryAxis, classAxis},
		LayoutTeacherMajor: {teacherAxis, queryAxis},
		LayoutQueryMajor:   {queryAxis, teacherAxis},
		LayoutOneHot:       {teacherAxis, queryAxis, classAxis},
	}
}

// layoutOf finds the layout that a shape can have: the one that was named, else the only one that fits.
func (e Ensemble) layoutOf(shape []int, named Layout) (Layout, error) {
	var fitting []string
	var layout Layout
	for _, candidate := range []Layout{LayoutCounts, LayoutTeacherMajor, LayoutQueryMajor, LayoutOneHot} {
		if (named == "" || named == candidate) && e.fits(shape, shapes()[candidate]) {
			fitting, layout = append(fitting, string(candidate)), candidate
		}
	}
	switch {
	case len(fitting) == 1:
		return layout, nil
	case len(fitting) > 1:
		return "", fault.PateLayout("the shape can be read as " + strings.Join(fitting, " and as "))
	case named != "":
		return "", fault.PateLayout(fmt.Sprintf("the shape is not that of %s by %d teachers for %d classes", named, e.teachers, e.ClassCount()))
	default:
		return "", fault.PateLayout(fmt.Sprintf("the shape is that of no layout by %d teachers for %d classes", e.teachers, e.ClassCount()))
	}
}

// fits reports whether a shape can have these axes: as many teachers and classes as were declared, any number of queries.
func (e Ensemble) fits(shape []int, kinds []axis) bool {
	if len(shape) != len(kinds) {
		return false
	}
	for i, kind := range kinds {
		if kind == teacherAxis && int64(shape[i]) != e.teachers || kind == classAxis && shape[i] != e.ClassCount() {
			return false
		}
	}
	return true
}

// element takes in one number of an array: at gives its place on each axis.
func (t *tally) element(layout Layout, at [3]int, value int64, row int64) error {
	switch layout {
	case LayoutCounts:
		return t.set(at[queryAxis], at[classAxis], value, row)
	case LayoutTeacherMajor, LayoutQueryMajor:
		// The shape gives each teacher one place for each query.
		if value < 0 || value >= int64(t.ensemble.ClassCount()) {
			return fault.PateVotes(row, "a label is none of the ensemble's classes")
		}
		t.add(at[queryAxis], int(value))
		return nil
	case LayoutOneHot:
		switch value {
		case 0:
			return nil
		case 1:
			return t.cast(at[teacherAxis], at[queryAxis], at[classAxis], row)
		default:
			return fault.PateVotes(row, "an element of a one-hot array is neither 0 nor 1")
		}
	default:
		return fault.Internal(fmt.Errorf("pate: arrays have no layout %q", string(layout)))
	}
}

// validKey reports whether a text can name a query, a teacher or a class.
func validKey(s string) bool {
	if s == "" || len(s) > maxKey {
		return false
	}
	for _, r := range s { // what is not UTF-8 comes as the replacement character
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r < 0xa0 {
			return false
		}
	}
	return true
}

// product multiplies sizes, and fails where the result would not be an int.
func product(sizes []int) (int, bool) {
	p := uint(1)
	for _, n := range sizes {
		hi, lo := bits.Mul(p, uint(n))
		if hi != 0 || lo > math.MaxInt {
			return 0, false
		}
		p = lo
	}
	return int(p), true
}

// whole is the integer that a text in an array of numbers stands for.
func whole(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64) // np.savetxt writes 2.050000000000000000e+02
	return integral(f), err == nil && isIntegral(f)
}

// isIntegral reports whether a float is an integer that it holds exactly.
func isIntegral(f float64) bool { return f == math.Trunc(f) && math.Abs(f) <= 1<<53 }

func integral(f float64) int64 {
	if !isIntegral(f) {
		return 0
	}
	return int64(f)
}
