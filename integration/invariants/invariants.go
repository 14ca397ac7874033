// Package invariants judges a ledger after a fault: what must hold whatever happened to the gateway, to PostgreSQL and to the
// network between them. The numbers I1 to I8 are those of the fault plan; I9 and I10 are about answers that do not come, and tests
// see them as they happen.
//
// It knows the ledger's tables, as sums and rows, and what clients were told. It does not know how faults are made, nor any of
// the code that it judges: the rule of admission, the sums and the life of a charge are written down here a second time, in SQL.
package invariants

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// Violation is one thing that must hold and does not.
type Violation struct {
	Invariant string // I1 to I8
	Text      string
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.Text }

// Answered remembers what clients were told. It is safe for concurrent use.
type Answered struct {
	mu      sync.Mutex
	asked   int
	results map[string]string // by release
	keys    map[string]string // release by Idempotency-Key
	twice   []error
}

// Asked counts a question.
func (a *Answered) Asked() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
}

// Told notes an answer to a request with an Idempotency-Key ("" for none). Two different answers under one key, or one release with two
// results, are violations of I6, which the next [Judge.Check] reports.
func (a *Answered) Told(key string, r *api.QueryResponse) {
	result, err := released(r.Result)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.results == nil {
		a.results, a.keys = map[string]string{}, map[string]string{}
	}
	if err != nil {
		a.twice = append(a.twice, err)
	}
	if before, ok := a.results[r.ReleaseID]; ok && before != string(result) {
		a.twice = append(a.twice, &Violation{"I6", "release " + r.ReleaseID + " was told with two results"})
	}
	a.results[r.ReleaseID] = string(result)
	if key == "" {
		return
	}
	if before, ok := a.keys[key]; ok && before != r.ReleaseID {
		a.twice = append(a.twice, &Violation{"I6", "key " + key + " was answered by " + before + " and by " + r.ReleaseID})
	}
	a.keys[key] = r.ReleaseID
}

// released encodes a result without the note on a replay's age.
func released(r api.Result) ([]byte, error) {
	notes := make([]api.Note, 0, len(r.Notes))
	for _, n := range r.Notes {
		if n.Code != "replayed" {
			notes = append(notes, n)
		}
	}
	r.Notes = notes
	return json.Marshal(r)
}

// Contradictions are the violations of I6 that clients can see by themselves.
func (a *Answered) Contradictions() []error {
	_, found := a.sofar()
	return found
}

// sofar is a copy of the results by release, and the contradictions.
func (a *Answered) sofar() (map[string]string, []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.results), slices.Clone(a.twice)
}

// Counts are how many questions were asked, and how many different releases clients hold.
func (a *Answered) Counts() (asked, releases int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked, len(a.results)
}

// Judge checks one ledger again and again, and what clients were told against it. It is not safe for concurrent use.
type Judge struct {
	Told *Answered

	spent map[string]sums // by account, at the last check
	heads map[string]head // by dataset, at the last check
}

type sums struct{ Epsilon, Rho, Delta, Unbounded int64 }

type head struct {
	seq  int64
	hash string
}

//go:embed invariants.sql
var queries string

// Check gives everything that does not hold, joined; each is a [*Violation], except when the ledger cannot be read. The connection is a
// superuser's to the control database.
func (j *Judge) Check(ctx context.Context, conn *pgx.Conn) error {
	// One snapshot: a gateway may be at work.
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return j.CheckIn(ctx, tx)
	})
}

// CheckIn is [Judge.Check] within a transaction.
func (j *Judge) CheckIn(ctx context.Context, tx pgx.Tx) error {
	// The ledger has indexes for what gateways ask; to the judge, who reads all of it, a nested loop is the square of its length.
	if _, err := tx.Exec(ctx, "SET LOCAL enable_nestloop = off; SET LOCAL jit = off"); err != nil {
		return err
	}
	told, found := j.Told.sofar() // before the first look: clients may be told more while the ledger is read
	checkAnswers := func(ctx context.Context, tx pgx.Tx) ([]error, error) { return j.checkAnswers(ctx, tx, told) }
	for _, check := range []func(context.Context, pgx.Tx) ([]error, error){j.checkLedger, checkAnswers, j.checkSpent, j.checkHeads} {
		violations, err := check(ctx, tx)
		if err != nil {
			return err
		}
		found = append(found, violations...)
	}
	return errors.Join(found...)
}

// checkLedger runs invariants.sql: each query gives what violates the invariant that its first line names.
func (j *Judge) checkLedger(ctx context.Context, tx pgx.Tx) (found []error, err error) {
	for part := range strings.SplitSeq(queries, "\n-- I") {
		name, query, ok := strings.Cut(part, "\n")
		if !ok || strings.HasPrefix(name, "--") {
			continue
		}
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("invariants.sql: I%s: %w", name, err)
		}
		number, what, _ := strings.Cut(name, ": ")
		for _, text := range texts {
			found = append(found, &Violation{"I" + number, what + ": " + text})
		}
	}
	return found, nil
}

// checkAnswers wants a settled charge with the same bytes for every answer that a client was told (I2, I3, I6). It empties told.
func (j *Judge) checkAnswers(ctx context.Context, tx pgx.Tx, told map[string]string) (found []error, err error) {
	rows, err := tx.Query(ctx, "SELECT charge_id, state, coalesce(answer, '') FROM noisegate.charge")
	if err != nil {
		return nil, err
	}
	var id, state string
	var answer []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &state, &answer}, func() error {
		want, ok := told[id]
		if !ok {
			return nil
		}
		delete(told, id)
		var stored api.Result
		if state != "settled" {
			found = append(found, &Violation{"I3", "answer " + id + " was told, and its charge is " + state})
		} else if err := json.Unmarshal(answer, &stored); err != nil {
			found = append(found, &Violation{"I6", "answer " + id + " is stored as what is no answer"})
		} else if again, err := released(stored); err != nil || string(again) != want {
			found = append(found, &Violation{"I6", "answer " + id + " was told otherwise than it is stored"})
		}
		return nil
	})
	for id := range told {
		found = append(found, &Violation{"I2", "answer " + id + " was told without a charge"})
	}
	return found, err
}

// checkSpent compares what accounts have spent for good with the last check: it never falls (I8).
func (j *Judge) checkSpent(ctx context.Context, tx pgx.Tx) (found []error, err error) {
	rows, err := tx.Query(ctx, `
		SELECT a.dataset || '/' || a.scope || '/' || a.name, sum(c.epsilon)::bigint, sum(c.rho)::bigint, sum(c.delta)::bigint, count(*) FILTER (WHERE c.unbounded)
		FROM noisegate.account a JOIN noisegate.charge c ON a.account_id = ANY (c.account_ids)
		WHERE c.state IN ('settled', 'expired') GROUP BY 1`)
	if err != nil {
		return nil, err
	}
	now := map[string]sums{}
	var account string
	var s sums
	_, err = pgx.ForEachRow(rows, []any{&account, &s.Epsilon, &s.Rho, &s.Delta, &s.Unbounded}, func() error {
		now[account] = s
		return nil
	})
	for account, before := range j.spent {
		if s := now[account]; s.Epsilon < before.Epsilon || s.Rho < before.Rho || s.Delta < before.Delta || s.Unbounded < before.Unbounded {
			found = append(found, &Violation{"I8", fmt.Sprintf("%s had spent %+v and now %+v", account, before, s)})
		}
	}
	j.spent = now
	return found, err
}

// checkHeads looks for the entries that chains ended with at the last check: a ledger never goes back (I5). That hashes follow from each
// other is left to noisegate audit verify.
func (j *Judge) checkHeads(ctx context.Context, tx pgx.Tx) (found []error, err error) {
	for dataset, last := range j.heads {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM noisegate.entry WHERE dataset = $1 AND seq = $2 AND hash = $3)", dataset, last.seq,
			[]byte(last.hash)).Scan(&there); err != nil {
			return nil, err
		}
		if !there {
			found = append(found, &Violation{"I5", fmt.Sprintf("entry %d of %s was there and is not any more", last.seq, dataset)})
		}
	}
	rows, err := tx.Query(ctx, "SELECT dataset, seq, head FROM noisegate.chain WHERE seq > 0")
	if err != nil {
		return nil, err
	}
	now := map[string]head{}
	var dataset string
	var seq int64
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&dataset, &seq, &hash}, func() error {
		now[dataset] = head{seq, string(hash)}
		return nil
	})
	j.heads = now
	return found, err
}
