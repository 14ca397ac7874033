package pate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
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
	Owned   bool     // the outcome was paid for by the buyer who asks
}

// Buyer is who asks for labels, and has those again, free, that they paid for.
type Buyer string

// Owned looks queries up by their names, and marks those that the buyer paid for. It reads nothing that others bought, so that its time
// does not depend on it. There is one question for each query, or one for all. It reads no votes, and fails with pate/unknown-query. Its
// time is linear in the number of keys or of stored rows, whatever PostgreSQL's statistics of either.
func (s *Store) Owned(ctx context.Context, v *Version, buyer Buyer, keys []string, questions []Question) ([]Asked, error) {
	if i := slices.IndexFunc(keys, func(key string) bool { return !validKey(key) }); i >= 0 {
		return nil, fault.PateUnknownQuery(keys[i]) // PostgreSQL has no texts with a zero byte
	}
	list, err := s.places(ctx, v, keys)
	if err == nil {
		err = s.owned(ctx, v, buyer, list, questions)
	}
	return list, fault.Untouched(plain(err))
}

// Find is [Store.Owned] with the outcomes that the buyer paid for, and on request those that others paid for.
func (s *Store) Find(ctx context.Context, v *Version, buyer Buyer, keys []string, questions []Question, others bool) ([]Asked, error) {
	list, err := s.Owned(ctx, v, buyer, keys, questions)
	if err != nil {
		return nil, err
	}
	return list, fault.Untouched(plain(s.outcomes(ctx, v, list, questions, others)))
}

// places finds each key's place among the version's queries.
func (s *Store) places(ctx context.Context, v *Version, keys []string) ([]Asked, error) {
	rows, err := s.pool.Query(ctx, sqlPlaces, v.ID, keys)
	if err != nil {
		return nil, err
	}
	known := make(map[string]int32, len(keys))
	var key string
	var place int32
	if _, err := pgx.ForEachRow(rows, []any{&key, &place}, func() error { known[key] = place; return nil }); err != nil {
		return nil, err
	}
	list := make([]Asked, len(keys))
	for i, key := range keys {
		place, ok := known[key]
		if !ok {
			return nil, fault.PateUnknownQuery(key)
		}
		list[i].Query = place
	}
	return list, nil
}

// released is the key of a stored outcome.
type released struct {
	question Question
	query    int32
}

// outcomes adds to each query its released outcome, or only to those that the buyer paid for.
func (s *Store) outcomes(ctx context.Context, v *Version, list []Asked, questions []Question, others bool) error {
	queries := []int32{} // NULL is no empty list
	var about []Question
	for i, asked := range list {
		if asked.Owned || others {
			queries, about = append(queries, asked.Query), append(about, questionAt(questions, i))
		}
	}
	if len(questions) == 1 {
		about = questions
	}
	rows, err := s.pool.Query(ctx, sqlOutcomes, v.ID, queries, bytesOf(about))
	if err != nil {
		return err
	}
	stored, err := collectOutcomes(rows)
	for i := range list {
		list[i].Outcome = stored[released{questionAt(questions, i), list[i].Query}]
	}
	return err
}

// collectOutcomes reads rows of sql/outcomes.sql.
func collectOutcomes(rows pgx.Rows) (map[released]*Outcome, error) {
	stored := map[released]*Outcome{}
	var key released
	var question []byte
	var status Status
	var label *int32
	var histogram []int64
	_, err := pgx.ForEachRow(rows, []any{&question, &key.query, &status, &label, &histogram}, func() error {
		outcome := &Outcome{Status: status, Label: NoLabel}
		if label != nil {
			outcome.Label = int(*label)
		}
		for _, n := range histogram {
			outcome.Histogram = append(outcome.Histogram, big.NewInt(n))
		}
		key.question = Question(question)
		stored[key] = outcome
		return nil
	})
	return stored, err
}

// owned marks what the buyer paid for.
func (s *Store) owned(ctx context.Context, v *Version, buyer Buyer, list []Asked, questions []Question) error {
	rows, err := s.pool.Query(ctx, sqlPurchases, v.ID, queriesOf(list), bytesOf(questions), buyer)
	if err != nil {
		return err
	}
	bought, err := collectReleased(rows)
	for i := range list {
		list[i].Owned = bought[released{questionAt(questions, i), list[i].Query}]
	}
	return err
}

// collectReleased reads rows of a question and a place.
func collectReleased(rows pgx.Rows) (map[released]bool, error) {
	set := map[released]bool{}
	var question []byte
	var query int32
	_, err := pgx.ForEachRow(rows, []any{&question, &query}, func() error {
		set[released{Question(question), query}] = true
		return nil
	})
	return set, err
}

func queriesOf(list []Asked) []int32 {
	queries := make([]int32, len(list))
	for i, asked := range list {
		queries[i] = asked.Query
	}
	return queries
}

// questionAt is the question about the i-th query: its own, or the one for all.
func questionAt(questions []Question, i int) Question {
	if len(questions) == 1 {
		return questions[0]
	}
	return questions[i]
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
	list, err := inOrder(rows, queries, func(packed []byte) (mechanisms.ExactVector, error) {
		counts, err := unpack(v.Ensemble, packed)
		if err != nil {
			return mechanisms.ExactVector{}, err
		}
		sealed, err := v.Ensemble.Seal(counts)
		if err != nil {
			err = fault.DataUnavailable(errTampered) // and not the request's fault
		}
		return sealed, err
	})
	return list, plain(err)
}

// inOrder reads rows of a place and its packed counts, in any order, and gives what they hold in the order of places.
func inOrder[T any](rows pgx.Rows, places []int32, read func(packed []byte) (T, error)) ([]T, error) {
	defer rows.Close()
	at := make(map[int32]int, len(places))
	for i, place := range places {
		at[place] = i
	}
	list, found := make([]T, len(places)), 0
	for rows.Next() {
		raw := rows.RawValues()
		i, known := at[int32(binary.BigEndian.Uint32(raw[0]))]
		if !known {
			return nil, errTampered
		}
		var err error
		if list[i], err = read(raw[1]); err != nil {
			return nil, err
		}
		found++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if found != len(places) || len(at) != len(places) {
		return nil, errTampered
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
	counts, err := inOrder(rows, queries, func(packed []byte) ([]uint32, error) { return unpack(v.Ensemble, packed) })
	if err != nil {
		return nil, plain(err)
	}
	table, err := NewTable(v.Ensemble, slices.Concat(counts...))
	if err != nil || table.Queries() != len(queries) {
		return nil, fault.DataUnavailable(errTampered)
	}
	return table, nil
}

// Purchase is a charge and whose it is.
type Purchase struct {
	Buyer  Buyer
	Charge string
}

// Sold is what a purchase has of one query.
type Sold struct {
	Outcome Outcome // as it is stored
	Fresh   bool    // nobody had stored one before: it is released now
	New     bool    // the buyer had not paid for it before
}

// Record stores outcomes of queries under the charge that paid for them, makes what is stored of each query the buyer's
// own, and gives it. Of a query that somebody else bought before or meanwhile that is another outcome, and what was
// drawn must be forgotten. What it does depends as little on that as PostgreSQL allows.
func (s *Store) Record(ctx context.Context, v *Version, p Purchase, queries []int32, questions []Question,
	outcomes []Outcome) ([]Sold, error) {
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
	var fresh, added map[released]bool
	var stored map[released]*Outcome
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(sqlRecord, v.ID, bytesOf(questions), queries, states, labels, histograms, p.Charge).
			Query(func(rows pgx.Rows) (err error) { fresh, err = collectReleased(rows); return err })
		b.Queue(sqlPurchase, v.ID, bytesOf(questions), queries, p.Buyer, p.Charge).
			Query(func(rows pgx.Rows) (err error) { added, err = collectReleased(rows); return err })
		b.Queue(sqlOutcomes, v.ID, queries, bytesOf(questions)).
			Query(func(rows pgx.Rows) (err error) { stored, err = collectOutcomes(rows); return err })
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, plain(err)
	}
	sold := make([]Sold, len(outcomes))
	for i := range outcomes {
		key := released{questionAt(questions, i), queries[i]}
		if stored[key] == nil {
			return nil, fault.Internal(errors.New("pate: an outcome was stored and is not there"))
		}
		sold[i] = Sold{*stored[key], fresh[key], added[key]}
	}
	return sold, nil
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

// Tally is how many queries of a version have which outcome, over all questions: of those that a buyer paid for, or of
// all when buyer is nil.
func (s *Store) Tally(ctx context.Context, v *Version, buyer *Buyer) (map[Status]int64, error) {
	sql, args := sqlTally, []any{v.ID}
	if buyer != nil {
		sql, args = sqlTallyOwn, []any{v.ID, *buyer}
	}
	rows, err := s.pool.Query(ctx, sql, args...)
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

// OtherEpsilon reports whether the version's ε was drawn for another question. There is one a version: of several runs that overlap, each
// would be published below what all of them together lost.
func (s *Store) OtherEpsilon(ctx context.Context, v *Version, q Question) (other bool, err error) {
	err = s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM noisegate.pate_epsilon WHERE ensemble_id = $1 AND question <> $2)", v.ID,
		q[:]).Scan(&other)
	return other, plain(err)
}

// RecordEpsilon stores what was drawn, unless something was drawn before.
func (s *Store) RecordEpsilon(ctx context.Context, v *Version, q Question, charge string, answer json.RawMessage) (fresh bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := declaring(ctx, tx); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO noisegate.pate_epsilon (ensemble_id, question, answer, charge_id)
			SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT FROM noisegate.pate_epsilon WHERE ensemble_id = $1)`, v.ID, q[:], []byte(answer), charge)
		fresh = tag.RowsAffected() == 1
		return err
	})
	return fresh, plain(err)
}

func bytesOf(questions []Question) [][]byte {
	list := make([][]byte, len(questions))
	for i, q := range questions {
		list[i] = q[:]
	}
	return list
}
