package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms/local"
)

// Store keeps collections in the control database. It is safe for concurrent use. Its errors are collect/* faults, and
// data/unavailable for whatever else a database does.
type Store struct{ pool *pgxpool.Pool }

// NewStore uses connections of the gateway's role, which the caller closes.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// querier is the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// define stores a definition, unless there is one under the name: the same one is given back.
func (s *Store) define(ctx context.Context, q *question, by string) (*collection, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fault.Internal(err)
	}
	_, err = s.pool.Exec(ctx, "INSERT INTO noisegate.collector (name, definition, defined_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		q.Name, text, by)
	if err != nil {
		return nil, plain(err)
	}
	c, err := s.collection(ctx, q.Name)
	if err == nil && !reflect.DeepEqual(c.question, *q) {
		return nil, fault.CollectRedefined(q.Name)
	}
	return c, err
}

// collection reads a definition.
func (s *Store) collection(ctx context.Context, name string) (*collection, error) {
	return readCollection(ctx, s.pool, name)
}

func readCollection(ctx context.Context, from querier, name string) (*collection, error) {
	q := question{Name: name}
	var text []byte
	var stored collection
	err := from.QueryRow(ctx, "SELECT collector_id, definition, defined_at FROM noisegate.collector WHERE name = $1", name).
		Scan(&stored.id, &text, &stored.definedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.CollectUnknown(name)
	}
	if err != nil {
		return nil, plain(err)
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fault.DataUnavailable(errForeign)
	}
	c, err := q.open()
	if err != nil {
		return nil, fault.DataUnavailable(errForeign)
	}
	c.id, c.definedAt = stored.id, stored.definedAt
	return c, nil
}

// tally is what was counted of a round.
func (s *Store) tally(ctx context.Context, c *collection, round int64) (local.Tally, error) {
	t := c.protocol.NewTally()
	err := s.pool.QueryRow(ctx, "SELECT reports, cells FROM noisegate.collect_tally WHERE collector_id = $1 AND round = $2", c.id, round).
		Scan(&t.Reports, &t.Cells)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, nil
	}
	return t, plain(err)
}

// take stores the reports that are new, counts them, and says in the answer what became of each. Rounds are locked in their order, so that
// batches wait for each other and never in a circle.
func (s *Store) take(ctx context.Context, c *collection, rounds map[int64][]report, answer *api.ReportsTaken) error {
	return plain(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, round := range slices.Sorted(maps.Keys(rounds)) {
			if err := c.takeRound(ctx, tx, round, rounds[round], answer); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (c *collection) takeRound(ctx context.Context, tx pgx.Tx, round int64, reports []report, answer *api.ReportsTaken) error {
	tally, err := c.lock(ctx, tx, round)
	if err != nil {
		return err
	}
	known, err := c.known(ctx, tx, round, reports)
	if err != nil {
		return err
	}
	var devices [][]byte
	var texts []string
	for _, r := range reports {
		switch before, again := known[r.device]; {
		case again && before == r.text:
			answer.Repeated++
		case again:
			answer.Refused = append(answer.Refused, api.RefusedReport{Line: r.line, Reason: secondReport})
		case tally.Reports == local.MaxReports:
			return fault.CollectFull(local.MaxReports)
		default:
			known[r.device] = r.text
			devices, texts = append(devices, r.device[:]), append(texts, r.text)
			c.protocol.Add(&tally, r.report)
			answer.Taken++
		}
	}
	if len(devices) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO noisegate.collect_report (collector_id, round, device, report)
		SELECT $1, $2, device, report FROM unnest($3::bytea[], $4::text[]) AS new (device, report)`,
		c.id, round, devices, texts); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE noisegate.collect_tally SET reports = $3, cells = $4 WHERE collector_id = $1 AND round = $2",
		c.id, round, tally.Reports, tally.Cells)
	return err
}

// lock reads the tally of a round, and keeps others from it until the transaction ends.
func (c *collection) lock(ctx context.Context, tx pgx.Tx, round int64) (local.Tally, error) {
	tally := c.protocol.NewTally()
	if _, err := tx.Exec(ctx, `INSERT INTO noisegate.collect_tally (collector_id, round, reports, cells) VALUES ($1, $2, 0, $3)
		ON CONFLICT DO NOTHING`, c.id, round, tally.Cells); err != nil {
		return tally, err
	}
	err := tx.QueryRow(ctx, "SELECT reports, cells FROM noisegate.collect_tally WHERE collector_id = $1 AND round = $2 FOR UPDATE",
		c.id, round).Scan(&tally.Reports, &tally.Cells)
	if err == nil && !c.protocol.Fits(tally) {
		err = fault.DataUnavailable(errForeign)
	}
	return tally, err
}

// known are the reports that devices of a batch sent before.
func (c *collection) known(ctx context.Context, tx pgx.Tx, round int64, reports []report) (map[[32]byte]string, error) {
	devices := make([][]byte, len(reports))
	for i, r := range reports {
		devices[i] = r.device[:]
	}
	rows, err := tx.Query(ctx, `SELECT device, report FROM noisegate.collect_report
		WHERE collector_id = $1 AND round = $2 AND device = ANY ($3)`, c.id, round, devices)
	if err != nil {
		return nil, err
	}
	known := map[[32]byte]string{}
	var device []byte
	var text string
	_, err = pgx.ForEachRow(rows, []any{&device, &text}, func() error {
		if len(device) != 32 {
			return fault.DataUnavailable(errForeign)
		}
		known[[32]byte(device)] = text
		return nil
	})
	return known, err
}

// plain passes faults on and makes everything else data/unavailable, without what PostgreSQL says of rows.
func plain(err error) error {
	var f *fault.Error
	var raised *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &f):
		return err
	case errors.As(err, &raised):
		return fault.DataUnavailable(fmt.Errorf("collect: SQLSTATE %s", raised.Code))
	default:
		return fault.DataUnavailable(err)
	}
}
