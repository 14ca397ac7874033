package pgexec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// dryTimeout ends a dry run. One that takes longer has shown no error.
const dryTimeout = "SET LOCAL statement_timeout = '1s'"

// citusText asks whether tables may lie on other servers.
const citusText = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')"

// server is what connections have told of the server, on which depends what it says of a text.
type server struct {
	mu      sync.Mutex
	version string
	citus   bool
}

// is takes down what a new connection says, and looks which version it is, and whether tables of the database may lie on other servers.
func (s *server) is(ctx context.Context, conn *pgx.Conn) error {
	citus, err := onCitus(ctx, conn)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.citus = serverVersion(conn), citus
	return nil
}

func (s *server) now() (version string, citus bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.citus
}

// shortLock lets a statement be parsed only where no table of it is being changed: nobody's trial lasts as long as that.
const shortLock = "SET LOCAL lock_timeout = '10ms'"

// maxKnown is how many texts of an analyst are remembered.
const maxKnown = 1_000

// The server's time that the trials of an analyst may take: so much at once, and as much again within each period.
const (
	defaultTrialTime = 2 * time.Second
	trialPeriod      = time.Minute
)

// trial is a text that is asked about: what the server says of it is a function of it, of the server, and of the tables that a policy was
// checked against.
type trial struct {
	on   *catalog.Snapshot
	text [sha256.Size]byte
}

// trials are what an analyst asked of the server, and how long that took. Its zero value is ready.
type trials struct {
	mu    sync.Mutex
	known map[trial]error
	took  time.Duration // what has not worn off yet
	at    time.Time     // as of when
}

func (t *trials) of(text trial) (result error, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	result, known = t.known[text]
	return result, known
}

func (t *trials) remember(text trial, result error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = map[trial]error{}
	}
	t.known[text] = result
}

// add adds to the time that was taken, and gives how long it is until less than most of it is left.
func (t *trials) add(now time.Time, took, most time.Duration) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	worn := time.Duration(float64(most) * now.Sub(t.at).Seconds() / trialPeriod.Seconds())
	t.took, t.at = max(t.took-worn, 0)+took, now
	return time.Duration(float64(t.took-most) / float64(most) * float64(trialPeriod))
}

// Dry asks, as the role and on the server that will run statements, whether it takes them, and runs them over made-up rows. Its error is
// internal/unprintable where the server does not take a text, sql/time-zone where it does not know a zone, plan/dry-run where it cannot
// compute one, and request/too-many once trials of the analyst took too long of late. All else that can go wrong, from a server that is
// away to one that is slow, says nothing of a text and is no error here: the statement itself will meet it. What is remembered of texts is
// remembered by analyst.
func (d *Database) Dry(ctx context.Context, analyst string, runs ...sqlrewrite.DryRun) (asked bool, err error) {
	own := d.trials.Of(analyst)
	for _, run := range runs {
		version, citus := d.server.now()
		name := func(what string, more ...any) trial {
			return trial{run.For.On, sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%t\x00%s\x00%q", what, version, citus, run.For.SQL, more))}
		}
		if len(run.For.Zones) > 0 && citus {
			return asked, fault.ZoneOnSeveralServers(run.For.Zones[0])
		}
		var tries []try
		proven := func() error { return d.prove(run.For) }
		for _, zone := range run.For.Zones {
			tries = append(tries, try{name("zone", zone), proven, func(ctx context.Context, conn *pgx.Conn) (error, bool) {
				return hasZone(ctx, conn, zone)
			}})
		}
		tries = append(tries, try{name("parse"), proven, func(ctx context.Context, conn *pgx.Conn) (error, bool) {
			return parsed(ctx, conn, run.For)
		}})
		if !run.Plain || citus {
			tries = append(tries, try{name("run", run.For.Args, fmt.Sprint(run.For.Preconditions)),
				func() error { return run.Prove(run.For.Proofs) },
				func(ctx context.Context, conn *pgx.Conn) (error, bool) { return tried(ctx, conn, run, citus) }})
		}
		for _, t := range tries {
			result, known := own.of(t.name)
			if !known {
				asked = true
				result = d.once(ctx, own, t)
			}
			if result != nil {
				return asked, result
			}
		}
	}
	return asked, nil
}

// try is a trial of a text that is proven. It is sure where the next one would say the same.
type try struct {
	name   trial
	proven func() error
	make   func(context.Context, *pgx.Conn) (result error, sure bool)
}

// once makes a trial.
func (d *Database) once(ctx context.Context, own *trials, t try) error {
	if wait := own.add(time.Now(), 0, d.trialTime); wait > 0 {
		return fault.RequestServerTime("trials of new statements", 1+int(wait.Seconds()))
	}
	if err := t.proven(); err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, d.acquire)
	conn, err := d.pool.Acquire(waiting)
	stop()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	// A connection that goes back with its transaction open or broken is closed by the pool.
	defer conn.Release()
	began := time.Now()
	result, sure := t.make(ctx, conn.Conn())
	own.add(time.Now(), time.Since(began), d.trialTime)
	if sure {
		own.remember(t.name, result)
	}
	return result
}

// parsed asks the server whether it takes a statement: it analyses the text, and neither plans it nor reads a row. The statement has no
// name, so that no connection remembers what somebody asked.
func parsed(ctx context.Context, conn *pgx.Conn, s sqlrewrite.Statement) (result error, sure bool) {
	parse := func() error {
		_, err := conn.PgConn().Prepare(ctx, "", s.SQL, nil)
		return err
	}
	var x exchange
	x.commands(fixed, "BEGIN READ ONLY", shortLock)
	known, err := x.prepare(ctx, conn)
	if err == nil {
		err = x.run(ctx, conn, known)
	}
	if err == nil {
		err = parse()
	}
	_, _ = conn.Exec(ctx, "ROLLBACK")
	if err == nil {
		return nil, true
	}
	if _, text := ofText(err); !text {
		return nil, false
	}
	// Where a table is not what the policy was checked against, that is policy/stale: the statement itself will meet it.
	if err := begin(ctx, conn, s.Preconditions, planCustom, dryTimeout); err != nil {
		return nil, false
	}
	err = parse()
	_, _ = conn.Exec(ctx, "ROLLBACK")
	if code, text := ofText(err); text {
		return fault.Unprintable(code), false
	}
	return nil, false
}

// tried makes a dry run.
func tried(ctx context.Context, conn *pgx.Conn, run sqlrewrite.DryRun, citus bool) (result error, sure bool) {
	result, sure = nil, true
	if !run.Plain {
		sql, args := run.Text()
		result, sure = inTrial(ctx, conn, nil, sql, args, nil)
	}
	if result == nil && sure && citus {
		// What its workers are asked is another statement for each kind of query. Planning it plans theirs, and reads no row.
		// A worker is asked for one of its tasks.
		result, sure = inTrial(ctx, conn, run.For.Preconditions, "EXPLAIN "+run.For.SQL, run.For.Args, workersPlan)
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
func (d *Database) Distributed() bool {
	_, citus := d.server.now()
	return citus
}

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
	case errors.As(err, &server) && server.Code == "57014": // it took too long: no error was seen
		return nil, true
	}
	if code, text := ofText(err); text {
		return fault.DryRun(code), true
	}
	return nil, false
}

// ofText gives the code of an error that a text makes, whatever the rows: data exceptions, what a server does not have, syntax and names,
// limits of programs. Rights (42501) say nothing of a text: a dry run names the types of enums, which the statement itself does not.
func ofText(err error) (code string, ok bool) {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code == "42501" {
		return "", false
	}
	return server.Code, slices.Contains([]string{"22", "0A", "2F", "38", "39", "42", "54"}, server.Code[:2])
}

// hasZone asks whether the server has the file of a zone.
func hasZone(ctx context.Context, conn *pgx.Conn, zone string) (result error, sure bool) {
	var server *pgconn.PgError
	switch _, err := conn.Exec(ctx, zoneText(zone), pgx.QueryExecModeDescribeExec); {
	case err == nil:
		return nil, true
	case errors.As(err, &server) && server.Code == unknownZone:
		return fault.UnknownZone(zone), false // the next one may find that the operator has installed it
	default:
		return nil, false
	}
}
