package pate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Question identifies what is asked of a query: mechanism, parameters, and the student's probabilities where they are part of it. The
// same question about the same query of the same version has one answer for ever.
type Question [32]byte

// QuestionOf is the question of a mode; the zero [Student] for modes without one.
func QuestionOf(m *Mode, student Student) (Question, error) {
	settings, err := json.Marshal(m.Settings())
	if err != nil {
		return Question{}, fault.Internal(err)
	}
	return sha256.Sum256(append(append(settings, 0), student.Key()...)), nil
}

// String is the question in hexadecimal.
func (q Question) String() string { return hex.EncodeToString(q[:]) }

// Asked is one query and what was released of it before.
type Asked struct {
	Query   int32    // its place among the version's queries
	Outcome *Outcome // nil: nothing yet
}

// Find looks queries up by their names. There is one question for each query, or one for all. It reads no votes, and fails with
// pate/unknown-query.
func (s *Store) Find(ctx context.Context, v *Version, keys []string, questions []Question) ([]Asked, error) {
	if i := slices.IndexFunc(keys, func(key string) bool { return !validKey(key) }); i >= 0 {
		return nil, fault.PateUnknownQuery(keys[i]) // PostgreSQL has no texts with a zero byte
	}
	rows, err := s.pool.Query(ctx, sqlFind, v.ID, keys, bytesOf(questions))
	if err != nil {
		return nil, fault.Untouched(plain(err))
	}
	place := 0
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Asked, error) {
		asked, err := scanAsked(row, keys[place])
		place++
		return asked, err
	})
	return list, fault.Untouched(plain(err))
}

func scanAsked(row pgx.CollectableRow, key string) (Asked, error) {
	var query, label *int32
	var status *Status
	var histogram []int64
	if err := row.Scan(&query, &status, &label, &histogram); err != nil {
		return Asked{}, err
	}
	if query == nil {
		return Asked{}, fault.PateUnknownQuery(key)
	}
	asked := Asked{Query: *query}
	if status == nil {
		return asked, nil
	}
	asked.Outcome = &Outcome{Status: *status, Label: NoLabel}
	if label != nil {
		asked.Outcome.Label = int(*label)
	}
	for _, n := range histogram {
		asked.Outcome.Histogram = append(asked.Outcome.Histogram, big.NewInt(n))
	}
	return asked, nil
}

// Votes reads the votes of queries, by their places: protected data, for paid work only. Stored counts that do not add up to the number
// of teachers are refused.
func (s *Store) Votes(ctx context.Context, v *Version, queries []int32) ([]mechanisms.ExactVector, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fault.Untouched(plain(err))
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sqlVotes, v.ID, queries)
	if err != nil {
		return nil, plain(err)
	}
	list := make([]mechanisms.ExactVector, 0, len(queries))
	for rows.Next() {
		counts, err := unpack(v.Ensemble, rows.RawValues()[0])
		if err != nil {
			rows.Close()
			return nil, plain(err)
		}
		sealed, err := v.Ensemble.Seal(counts)
		if err != nil {
			rows.Close()
			return nil, fault.DataUnavailable(errTampered) // and not the request's fault
		}
		list = append(list, sealed)
	}
	if err := rows.Err(); err != nil {
		return nil, plain(err)
	}
	if len(list) != len(queries) {
		return nil, fault.DataUnavailable(errTampered)
	}
	return list, nil
}

var errTampered = errors.New("pate: stored votes are not what was loaded")

// Table reads all votes of some queries into a table, in the order of places: for stewards, and for what is released with noise.
func (s *Store) Table(ctx context.Context, v *Version, queries []int32) (*Table, error) {
	rows, err := s.pool.Query(ctx, sqlVotes, v.ID, queries)
	if err != nil {
		return nil, plain(err)
	}
	flat := make([]uint32, 0, len(queries)*v.Ensemble.ClassCount())
	for rows.Next() {
		counts, err := unpack(v.Ensemble, rows.RawValues()[0])
		if err != nil {
			rows.Close()
			return nil, plain(err)
		}
		flat = append(flat, counts...)
	}
	if err := rows.Err(); err != nil {
		return nil, plain(err)
	}
	table, err := NewTable(v.Ensemble, flat)
	if err != nil || table.Queries() != len(queries) {
		return nil, fault.DataUnavailable(errTampered)
	}
	return table, nil
}

// Record stores outcomes of queries under the charge that paid for them, and says which of them nobody had stored before: those are
// released. The others were answered by somebody else meanwhile, and what was drawn for them must be forgotten.
func (s *Store) Record(ctx context.Context, v *Version, charge string, queries []int32, questions []Question, outcomes []Outcome) ([]bool, error) {
	states, labels, histograms := make([]string, len(outcomes)), make([]*int32, len(outcomes)), make([]*string, len(outcomes))
	for i, o := range outcomes {
		states[i] = string(o.Status)
		if o.Label != NoLabel {
			labels[i] = new(int32(o.Label))
		}
		text, err := histogramText(o.Histogram)
		if err != nil {
			return nil, fault.Internal(err)
		}
		histograms[i] = text
	}
	rows, err := s.pool.Query(ctx, sqlRecord, v.ID, bytesOf(questions), queries, states, labels, histograms, charge)
	if err != nil {
		return nil, plain(err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, plain(err)
	}
	fresh := make([]bool, len(outcomes))
	for _, place := range places {
		fresh[place-1] = true
	}
	return fresh, nil
}

// histogramText writes noisy counts as PostgreSQL writes an array; nil for none.
func histogramText(counts []*big.Int) (*string, error) {
	if counts == nil {
		return nil, nil
	}
	texts := make([]string, len(counts))
	for i, n := range counts {
		if !n.IsInt64() {
			return nil, fmt.Errorf("pate: a noisy count of %d bits", n.BitLen())
		}
		texts[i] = strconv.FormatInt(n.Int64(), 10)
	}
	return new("{" + strings.Join(texts, ",") + "}"), nil
}

// Tally is how many queries of a version have which outcome, over all questions.
func (s *Store) Tally(ctx context.Context, v *Version) (map[Status]int64, error) {
	rows, err := s.pool.Query(ctx, sqlTally, v.ID)
	if err != nil {
		return nil, plain(err)
	}
	tally := map[Status]int64{}
	var status Status
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error { tally[status] = n; return nil })
	return tally, plain(err)
}

// Released are the places of the queries that were released in answer to a question, and what became of each.
func (s *Store) Released(ctx context.Context, v *Version, q Question) (queries []int32, became []Status, err error) {
	rows, err := s.pool.Query(ctx, sqlReleased, v.ID, q[:])
	if err != nil {
		return nil, nil, plain(err)
	}
	var query int32
	var status Status
	_, err = pgx.ForEachRow(rows, []any{&query, &status}, func() error {
		queries, became = append(queries, query), append(became, status)
		return nil
	})
	return queries, became, plain(err)
}

// SanitisedEpsilon is the stored answer about a question and the charge that it was drawn with; nil when nothing was drawn yet.
func (s *Store) SanitisedEpsilon(ctx context.Context, v *Version, q Question) (answer json.RawMessage, charge string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT answer, charge_id FROM noisegate.pate_epsilon WHERE ensemble_id = $1 AND question = $2", v.ID, q[:]).
		Scan((*[]byte)(&answer), &charge)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, "", nil
	}
	return answer, charge, plain(err)
}

// RecordEpsilon stores what was drawn, unless something was drawn before.
func (s *Store) RecordEpsilon(ctx context.Context, v *Version, q Question, charge string, answer json.RawMessage) (fresh bool, err error) {
	tag, err := s.pool.Exec(ctx, `INSERT INTO noisegate.pate_epsilon (ensemble_id, question, answer, charge_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, v.ID, q[:], []byte(answer), charge)
	return tag.RowsAffected() == 1, plain(err)
}

func bytesOf(questions []Question) [][]byte {
	list := make([][]byte, len(questions))
	for i, q := range questions {
		list[i] = q[:]
	}
	return list
}
