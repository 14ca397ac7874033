package catalog

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
)

// statementCount counts the statements of a pool.
type statementCount struct{ atomic.Int64 }

func (n *statementCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	n.Add(1)
	return ctx
}

func (*statementCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestWatchReadsWhatMayHaveChanged: while no transaction ends, a recheck is one statement, but for each 21st; a change
// of the schema is seen by the next.
func TestWatchReadsWhatMayHaveChanged(t *testing.T) {
	p := small(t)
	revision := inForce(t, p)
	config, err := pgxpool.ParseConfig(p.ReaderDSN)
	if err != nil {
		t.Fatal(err)
	}
	var statements statementCount
	config.ConnConfig.Tracer = &statements
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	watch := NewWatch(pool)
	recheck := func() int64 {
		t.Helper()
		before := statements.Load()
		if err := watch.Recheck(t.Context(), revision); err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		return statements.Load() - before
	}
	whole := recheck()
	if whole < 5 {
		t.Fatalf("the first recheck was %d statements", whole)
	}
	// The server does something by itself now and then (autovacuum), after which the schema is read: then from the beginning.
	for try := 0; ; try++ {
		var quiet int
		for range mostSkipped {
			if recheck() == 1 {
				quiet++
			}
		}
		if again := recheck(); quiet == mostSkipped && again >= whole {
			break
		}
		if try == 20 {
			t.Fatalf("%d of %d rechecks of what did not change were one statement", quiet, mostSkipped)
		}
		for watch.skipped > 0 {
			recheck()
		}
	}
	p.Exec(t, "CREATE TABLE other (id int)")
	if n := recheck(); n < whole {
		t.Errorf("a recheck after a change was %d statements", n)
	}
	recheck()
	p.Exec(t, "ALTER TABLE people DROP COLUMN age")
	for range 3 {
		err := watch.Recheck(t.Context(), revision)
		if fault.CodeOf(err) != fault.CodePolicyStale || !strings.Contains(errors.Unwrap(err).Error(), "people.age") {
			t.Errorf("a column is gone: %v", err)
		}
	}
}

// TestWatchAsksForEachRevision: what was found of one revision says nothing of another.
func TestWatchAsksForEachRevision(t *testing.T) {
	p := small(t)
	revision := inForce(t, p)
	watch := NewWatch(pgtest.PoolOf(t, p.ReaderDSN))
	if err := watch.Recheck(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	other := *revision
	pinned := *revision.Pinned
	other.Pinned, pinned.Tables = &pinned, nil
	for _, table := range revision.Pinned.Tables {
		copied := *table
		copied.OID++
		pinned.Tables = append(pinned.Tables, &copied)
	}
	if err := watch.Recheck(t.Context(), &other); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("a revision for other tables: %v", err)
	}
}
