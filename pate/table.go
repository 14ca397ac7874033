package pate

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Table is the votes of many queries, for analysis, sealed: it cannot be printed, logged or encoded, and gives out nothing but sealed
// vectors. 100,000 queries of 150 classes take 60 MB.
type Table struct {
	ensemble Ensemble
	v        *tableVotes
}

// tableVotes are the counts, query by query. They are behind a pointer to an unexported type, as in [mechanisms.Exact].
type tableVotes struct{ n []uint32 }

// NewTable takes over the counts of queries, row by row, one count for each class. The error, a [fault.Error], names the first row (from 1)
// whose counts do not add up to the number of teachers.
func NewTable(e Ensemble, counts []uint32) (*Table, error) {
	m := e.ClassCount()
	if m == 0 || len(counts)%m != 0 {
		return nil, fault.PateVotes(0, "there must be one count for each class")
	}
	for row := range len(counts) / m {
		if err := e.check(int64(row)+1, counts[row*m:(row+1)*m]); err != nil {
			return nil, err
		}
	}
	return &Table{ensemble: e, v: &tableVotes{n: counts}}, nil
}

// Ensemble is whose votes these are.
func (t *Table) Ensemble() Ensemble { return t.ensemble }

// Queries is how many queries there are.
func (t *Table) Queries() int { return len(t.v.n) / t.ensemble.ClassCount() }

// Votes are the votes of one query, counted from 0, sealed.
func (t *Table) Votes(query int) mechanisms.ExactVector { return vector(t.row(query)) }

// Select is a table of some of the queries, counted from 0. It returns a [fault.Error] for a query that does not exist.
func (t *Table) Select(queries []int) (*Table, error) {
	counts := make([]uint32, 0, t.ensemble.ClassCount()*len(queries))
	for _, q := range queries {
		if q < 0 || q >= t.Queries() {
			return nil, fault.PateUnknownQuery(strconv.Itoa(q))
		}
		counts = append(counts, t.row(q)...)
	}
	return &Table{ensemble: t.ensemble, v: &tableVotes{n: counts}}, nil
}

// row is one query's counts: for the analysis in this package only.
func (t *Table) row(query int) []uint32 {
	m := t.ensemble.ClassCount()
	return t.v.n[query*m : (query+1)*m]
}

const sealed = "[sealed]"

var errSealed = errors.New("pate: sealed votes cannot be encoded")

// Format implements [fmt.Formatter] for every verb.
func (*Table) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(sealed)) }

// String implements [fmt.Stringer].
func (*Table) String() string { return sealed }

// GoString implements [fmt.GoStringer].
func (*Table) GoString() string { return sealed }

// LogValue implements [slog.LogValuer].
func (*Table) LogValue() slog.Value { return slog.StringValue(sealed) }

// MarshalJSON refuses: votes never leave the process.
func (*Table) MarshalJSON() ([]byte, error) { return nil, errSealed }

// MarshalText refuses: votes never leave the process.
func (*Table) MarshalText() ([]byte, error) { return nil, errSealed }

// MarshalBinary refuses (gob and friends): votes never leave the process.
func (*Table) MarshalBinary() ([]byte, error) { return nil, errSealed }
