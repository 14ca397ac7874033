package catalog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// Watch holds revisions against the live schema of one protected database, again and again, and does little while
// nothing changes. It is safe for concurrent use.
type Watch struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	revision *Revision // found to fit; nil: none yet
	live     *Schema   // what it fitted
	moment   string    // when, see momentSQL
	skipped  int       // rechecks since then that did not read the schema
}

// NewWatch makes a watch on a pool of connections to the protected database, as the gateway's role.
func NewWatch(pool *pgxpool.Pool) *Watch { return &Watch{pool: pool} }

// mostSkipped is how many rechecks in a row may leave the schema unread. What no transaction writes, such as settings of
// the server, can change as well.
const mostSkipped = 20

// momentSQL is the set of transactions whose changes are visible; "" on a standby, which does not tell all of it. While
// it is the same, all rows of the catalogs are.
const momentSQL = `SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE pg_catalog.pg_current_snapshot()::pg_catalog.text END`

// Recheck holds a revision against the live schema: policy/stale when something that the policy relies on has changed,
// or it would be refused if it were applied now, data/unavailable when the schema cannot be read.
func (w *Watch) Recheck(ctx context.Context, r *Revision) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var moment string
	if w.revision == r && w.moment != "" && w.skipped < mostSkipped {
		if err := w.pool.QueryRow(ctx, momentSQL).Scan(&moment); err != nil {
			return fault.DataUnavailable(fmt.Errorf("catalog: cannot read the snapshot: %w", fault.Coded(err)))
		}
		if moment == w.moment {
			w.skipped++
			return nil
		}
	}
	live, err := inspect(ctx, w.pool, func(tx pgx.Tx, schema *Schema) error {
		if err := tx.QueryRow(ctx, momentSQL).Scan(&moment); err != nil {
			return err
		}
		if err := schema.readRelations(ctx, tx, r.Pinned.Tables); err != nil {
			return err
		}
		return schema.readViews(ctx, tx, func(name TableName) bool {
			was, ok := r.Pinned.Table(name)
			return ok && was.View != nil
		})
	})
	if err != nil {
		return err
	}
	if w.revision != r || !reflect.DeepEqual(live, w.live) {
		if err := r.fits(*live); err != nil {
			return fault.PolicyStale().WithCause(err)
		}
	}
	w.revision, w.live, w.moment, w.skipped = r, live, moment, 0
	return nil
}

// fits says why the policy of a revision does not fit a live schema without values.
func (r *Revision) fits(live Schema) error {
	live.Tables = r.Policy.unread(live.Tables)
	if err := r.Pinned.Drift(&live); err != nil {
		return err
	}
	live.Domains = r.Pinned.Domains // other values are no change
	_, problems := Check(r.Policy, &live)
	return errors.Join(problems...)
}
