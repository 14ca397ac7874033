package pgexec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// dryTimeout ends a dry run. One that takes longer has shown no error.
const dryTimeout = "SET LOCAL statement_timeout = '1s'"

// maxKnown is how many dry runs are remembered.
const maxKnown = 10_000

// citusText asks whether tables may lie on other servers.
const citusText = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')"

// trials are what is known of texts: whether the server can compute them. That is a function of the text and of the server's version.
type trials struct {
	mu      sync.Mutex
	version string
	known   map[[sha256.Size]byte]error
	citus   bool
}

// serverIs forgets what another version of the server said.
func (t *trials) serverIs(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != version {
		t.version, t.known = version, map[[sha256.Size]byte]error{}
	}
}

// ask asks whether tables of the database may lie on other servers.
func (t *trials) ask(ctx context.Context, conn *pgx.Conn) error {
	var citus bool
	if err := conn.QueryRow(ctx, citusText).Scan(&citus); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.citus != citus {
		t.citus, t.known = citus, map[[sha256.Size]byte]error{}
	}
	return nil
}

func (t *trials) onCitus() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.citus
}

func (t *trials) of(text [sha256.Size]byte) (result error, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	result, known = t.known[text]
	return result, known
}

func (t *trials) remember(text [sha256.Size]byte, result error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = map[[sha256.Size]byte]error{}
	}
	t.known[text] = result
}

// Dry runs statements over made-up rows, as the role and on the server that will run them over the tables. Its error is
// plan/dry-run where the server cannot compute one. All else that can go wrong, from a server that is away to one that
// is slow, says nothing of a text and is no error here: the statement itself will meet it.
func (d *Database) Dry(ctx context.Context, runs ...sqlrewrite.DryRun) error {
	for _, run := range runs {
		if run.Plain && !d.Distributed() {
			continue
		}
		id := sha256.Sum256(fmt.Appendf(nil, "%s\x00%q\x00%v", run.For.SQL, run.For.Args, run.For.Preconditions))
		result, known := d.trials.of(id)
		if !known {
			var sure bool
			if result, sure = d.tried(ctx, run); sure {
				d.trials.remember(id, result)
			}
		}
		if result != nil {
			return result
		}
	}
	return nil
}

// tried makes one dry run; sure is false where the next one may say something else of the text.
func (d *Database) tried(ctx context.Context, run sqlrewrite.DryRun) (result error, sure bool) {
	if err := run.Prove(&d.proofs); err != nil {
		return err, false
	}
	ctx, cancel := context.WithTimeout(ctx, d.acquire+d.patience)
	defer cancel()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, false
	}
	// A connection that goes back with its transaction open or broken is closed by the pool.
	defer conn.Release()
	citus := d.Distributed() // whatever was not known before is since there is a connection
	result, sure = nil, true
	if !run.Plain {
		sql, args := run.Text()
		result, sure = inTrial(ctx, conn.Conn(), nil, sql, args, nil)
	}
	if result == nil && sure && citus {
		// What its workers are asked is another statement for each kind of query. Planning it plans theirs, and reads no row.
		// A worker is asked for one of its tasks.
		result, sure = inTrial(ctx, conn.Conn(), run.For.Preconditions, "EXPLAIN "+run.For.SQL, run.For.Args, workersPlan)
	}
	return result, sure
}

// notPlanned is what Citus explains where a worker raised an error when it was to plan its part: that error is dropped by Citus.
const notPlanned = "Could not get remote plan."

// workersPlan refuses what no worker could plan.
func workersPlan(line []byte) error {
	if bytes.Contains(line, []byte(notPlanned)) {
		return fault.Distributed()
	}
	return nil
}

// Distributed reports whether tables of the database may lie on other servers, as far as a connection has told yet.
func (d *Database) Distributed() bool { return d.trials.onCitus() }

// inTrial runs a text in a transaction of its own, which it rolls back, and drops the rows when look, unless it is nil,
// has seen the first column.
func inTrial(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, sql string, args []any,
	look func([]byte) error) (result error, sure bool) {
	if err := begin(ctx, conn, pins, planCustom, dryTimeout); err != nil {
		return nil, false // a policy that is stale is found again, before the statement runs
	}
	// Unprepared: what is tried once need not be remembered by the connection.
	rows, err := conn.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	if err == nil {
		for look != nil && rows.Next() {
			if result = firstError(result, look(rows.RawValues()[0])); result != nil {
				break
			}
		}
		rows.Close()
		err = rows.Err()
	}
	_, _ = conn.Exec(ctx, "ROLLBACK")
	if look == nil {
		return judged(err)
	}
	return planned(result, err)
}

// planned judges what an EXPLAIN on Citus ended with. Only what the coordinator itself says of a text is sure: a
// worker's error may be a matter of that moment, and what took too long was not planned.
func planned(result, err error) (error, bool) {
	var server *pgconn.PgError
	switch {
	case result != nil:
		return result, false
	case !errors.As(err, &server):
		return judged(err)
	case server.Code == "57014":
		return nil, false
	case server.Code == "XX000" || server.Code == "25P02": // joins that it does not make; the next question to a worker that raised an error
		return fault.Distributed(), false
	}
	return judged(err)
}

// judged tells errors that a text makes from all others.
func judged(err error) (result error, sure bool) {
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil, true
	case !errors.As(err, &server):
		return nil, false
	case server.Code == "57014": // it took too long: no error was seen
		return nil, true
	}
	// The classes of errors of computations and of texts: data exceptions, what a server does not have, syntax and names,
	// limits of programs. Rights (42501) say nothing of a text: a dry run names the types of enums, which the statement
	// itself does not.
	for _, class := range []string{"22", "0A", "2F", "38", "39", "42", "54"} {
		if strings.HasPrefix(server.Code, class) && server.Code != "42501" {
			return fault.DryRun(server.Code), true
		}
	}
	return nil, false
}
