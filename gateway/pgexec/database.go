package pgexec

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/catalog"
	"noisegate.example/gateway/internal/each"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Database runs statements on one protected database. It is safe for concurrent use.
type Database struct {
	pool     *pgxpool.Pool
	health   *pgxpool.Pool // one connection, for [Database.Ping]
	acquire  time.Duration
	patience time.Duration // for a whole transaction, when even the statement timeout of the server does not come
	watch    *catalog.Watch
	counts   counts
	shards   shards
	server   *server
	trials   each.Analyst[trials]
	// trialTime is how much of the server's time trials of one analyst may take within a minute.
	trialTime time.Duration
	prove     func(sqlrewrite.Statement) error // before anything of a statement is sent
	copies    atomic.Pointer[[]catalog.Version]
}

// Open prepares connections to a protected database; [Database.Close] ends them.
func Open(ctx context.Context, config Config) (*Database, error) {
	server := &server{}
	pool, err := open(ctx, config, func(ctx context.Context, conn *pgx.Conn) error {
		if err := inUTF8(ctx, conn); err != nil {
			return err
		}
		if err := server.is(ctx, conn); err != nil {
			return err
		}
		if err := remember(ctx, conn); err != nil {
			return err
		}
		return warm(ctx, conn)
	})
	if err != nil {
		return nil, err
	}
	config.Connections, config.pings = 1, true
	health, err := open(ctx, config, inUTF8)
	if err != nil {
		pool.Close()
		return nil, err
	}
	acquire := config.AcquireTimeout
	if acquire == 0 {
		acquire = defaultAcquireTimeout
	}
	d := &Database{pool: pool, health: health, watch: catalog.NewWatch(pool), acquire: acquire, server: server,
		patience: config.StatementTimeout + lockTimeout + grace, trialTime: cmp.Or(config.TrialTime, defaultTrialTime)}
	d.prove = func(s sqlrewrite.Statement) error { return s.Prove(s.Proofs) }
	return d, nil
}

// inUTF8 refuses a database of any other encoding: one text of one row that has no equal in the encoding of the session would
// make a statement fail, and tell that the row is there.
func inUTF8(_ context.Context, conn *pgx.Conn) error {
	if conn.PgConn().ParameterStatus("server_encoding") != "UTF8" {
		return errUTF8
	}
	return nil
}

// Close ends all connections when they are idle.
func (d *Database) Close() {
	d.health.Close()
	d.pool.Close()
}

// Inspect reads the live schema; see [catalog.Inspect].
func (d *Database) Inspect(ctx context.Context, policy *catalog.Policy) (*catalog.Schema, error) {
	return catalog.Inspect(ctx, d.pool, policy)
}

// Recheck compares the live schema with what a policy was checked against, see [catalog.Watch], and looks which prepared copies there are.
func (d *Database) Recheck(ctx context.Context, revision *catalog.Revision) error {
	if err := d.watch.Recheck(ctx, revision); err != nil || !revision.Snapshot.Prepares() {
		return err
	}
	return d.Look(ctx, revision.Snapshot.Dataset)
}

// Look looks which prepared copies of a dataset there are now.
func (d *Database) Look(ctx context.Context, dataset string) error {
	versions, err := d.Versions(ctx, dataset)
	if err == nil {
		d.copies.Store(&versions)
	}
	return err
}

// Copies are the complete copies of each table, newest first, as they were when they were last looked at; see [Database.Look].
func (d *Database) Copies() []catalog.Version {
	if seen := d.copies.Load(); seen != nil {
		return *seen
	}
	return nil
}

// Counted counts the public tables of a policy that was applied before they were counted; see [catalog.Counted].
func (d *Database) Counted(ctx context.Context, revision *catalog.Revision) (*catalog.Revision, error) {
	return catalog.Counted(ctx, d.pool, revision)
}

// ServerVersion is the version of the server in its own words, such as "15.18 (Debian 15.18-0+deb12u1)".
func (d *Database) ServerVersion(ctx context.Context) (string, error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return "", fault.DataUnavailable(quiet(err))
	}
	defer conn.Release()
	return serverVersion(conn.Conn()), nil
}

// Ping reports whether the database answers, on a connection of its own: it waits for no statement, so that its time and its outcome
// depend on none.
func (d *Database) Ping(ctx context.Context) error {
	conn, err := d.health.Acquire(ctx) // which pings
	if err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	conn.Release()
	return nil
}

// Run executes statements, one after another on one snapshot, and streams their rows, aggregates sealed. Errors before the first
// statement was sent are [fault.Untouched]: no protected row can have been read. internal/unverified is one of them: a
// statement that is not proven to be as private as its price is not sent. All others are data/unavailable without any
// detail.
func (d *Database) Run(ctx context.Context, statements ...sqlrewrite.Statement) sqlrewrite.Rows {
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		if err := d.stream(ctx, statements, yield); err != nil {
			yield(sqlrewrite.ExactRow{}, err)
		}
	}
}

// stream yields every row, and returns the error that ended them; nil also when nobody wants more.
func (d *Database) stream(ctx context.Context, statements []sqlrewrite.Statement, yield func(sqlrewrite.ExactRow, error) bool) error {
	for _, statement := range statements {
		if err := d.prove(statement); err != nil {
			return fault.Untouched(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.acquire+time.Duration(len(statements))*d.patience)
	defer cancel()
	conn, pins, err := d.acquired(ctx, statements...)
	if err != nil {
		return fault.Untouched(err)
	}
	defer conn.Release()
	var x exchange
	if d.looksAhead(pins) || slices.ContainsFunc(statements, func(s sqlrewrite.Statement) bool { return s.Ranges != nil || s.Bought != nil }) {
		if err := d.open(ctx, conn.Conn(), pins, settingsOf(statements)); err != nil {
			return fault.Untouched(err)
		}
	} else {
		x.open(conn.Conn(), lasting, pins, settingsOf(statements)...)
	}
	if err := x.zones(d.Distributed(), statements...); err != nil {
		return fault.Untouched(err)
	}
	wanted := true
	for part, statement := range statements {
		if statement.Bought != nil {
			if statement, err = d.bought(ctx, conn.Conn(), &x, statement); err != nil || !wanted {
				return err
			}
		}
		if statement.Ranges != nil {
			if err := divide(ctx, conn.Conn(), &statement); err != nil {
				return d.failed(ctx, conn.Conn(), err)
			}
			if err := d.prove(statement); err != nil { // the very bytes that are sent; dividing them may have read rows
				return fault.Excused(err)
			}
		}
		x.statement(statement.SQL, statement.Args, func(_ *pgtype.Map, r *pgconn.ResultReader) error {
			return read(r, statement, func(row sqlrewrite.ExactRow) bool {
				row.Part = part
				wanted = wanted && yield(row, nil)
				return wanted
			})
		})
	}
	return d.close(ctx, conn.Conn(), pins, &x)
}

// bought takes the rows of the statements before one that waits for what they release, and gives the statement with it, proven as it is
// sent.
func (d *Database) bought(ctx context.Context, conn *pgx.Conn, x *exchange, waiting sqlrewrite.Statement) (sqlrewrite.Statement, error) {
	if len(x.texts) > 0 {
		if err := d.send(ctx, conn, nil, x); err != nil {
			return waiting, err
		}
		*x = exchange{later: x.later || len(x.texts) > x.opening}
	}
	statement, err := waiting.Bought()
	if err == nil {
		err = d.prove(statement)
	}
	if err != nil && !x.later { // what it waits for was released before
		return statement, fault.Untouched(err)
	}
	if err != nil { // it is charged, whatever the proof says
		return statement, fault.Excused(fault.Internal(err))
	}
	return statement, nil
}

// acquired is a connection, and the preconditions of statements. The caller releases it: one that goes back with its transaction open or
// broken is closed by the pool.
func (d *Database) acquired(ctx context.Context, statements ...sqlrewrite.Statement) (*pgxpool.Conn, []sqlrewrite.Precondition, error) {
	waiting, stop := context.WithTimeout(ctx, d.acquire)
	defer stop()
	conn, err := d.pool.Acquire(waiting)
	if err != nil {
		return nil, nil, fault.DataUnavailable(quiet(err))
	}
	var pins []sqlrewrite.Precondition
	for _, statement := range statements {
		pins = append(pins, statement.Preconditions...)
	}
	if err := pinSomething(pins); err != nil {
		conn.Release()
		return nil, nil, err
	}
	return conn, pins, nil
}

// pinSomething refuses preconditions that hold always.
func pinSomething(pins []sqlrewrite.Precondition) error {
	if slices.ContainsFunc(pins, func(p sqlrewrite.Precondition) bool { return len(p.Columns) == 0 }) {
		return fault.Internal(errPins)
	}
	return nil
}

func settingsOf(statements []sqlrewrite.Statement) []string {
	settings := []string{planCustom}
	for _, statement := range statements {
		settings = append(settings, statement.Planning()...)
	}
	return settings
}

// looksAhead reports whether preconditions are held against more than one text can look at: counts of public tables, shards.
func (d *Database) looksAhead(pins []sqlrewrite.Precondition) bool {
	return d.Distributed() || slices.ContainsFunc(pins, func(p sqlrewrite.Precondition) bool { _, counted := limitsOf(p); return counted })
}

// open opens a transaction in which the preconditions of statements hold. Nothing was read of a protected row where there is an error.
func (d *Database) open(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, settings []string) error {
	err := begin(ctx, conn, pins, settings...)
	if err == nil {
		err = d.counts.hold(ctx, conn, pins)
	}
	if err == nil && d.Distributed() {
		err = d.shards.hold(ctx, conn, pins)
	}
	return err
}

// close sends what there is, looks once more at the tables of preconditions, and ends the transaction: of one that wrote nothing COMMIT
// decides nothing, and the server skips it after a text that failed.
func (d *Database) close(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, x *exchange) error {
	foreign := false
	if trees := treesOf(pins); trees != nil {
		x.texts = append(x.texts, text{sql: treeText, args: []any{trees}, life: fixed, read: oneRow(&foreign)})
	}
	x.commands(fixed, commitText)
	err := d.send(ctx, conn, pins, x)
	if err == nil && foreign {
		return fault.Excused(fault.PolicyStale())
	}
	return err
}

// send sends an exchange and takes its rows. Its errors are [fault.Untouched] where no protected row was read: never of a later exchange.
func (d *Database) send(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, x *exchange) error {
	known, err := x.prepare(ctx, conn)
	switch {
	case err != nil && x.later:
		return d.failed(ctx, conn, err)
	case err != nil && x.opening > 0: // is a table not what it was?
		if err := begin(ctx, conn, pins); err != nil {
			return fault.Untouched(err)
		}
		fallthrough
	case err != nil:
		return fault.Untouched(fault.DataUnavailable(quiet(err)))
	}
	err = x.run(ctx, conn, known)
	switch {
	case err == nil:
		return nil
	case fault.IsUntouched(err) && !x.later:
		return fault.Untouched(faultOf(err))
	default:
		return d.failed(ctx, conn, err)
	}
}

// treesOf are the partitioned tables among the pinned ones, of which a partition can be attached while they are read.
func treesOf(pins []sqlrewrite.Precondition) []uint32 {
	var all []uint32
	for _, pin := range pins {
		if pin.Partitioned && !slices.Contains(all, pin.OID) {
			all = append(all, pin.OID)
		}
	}
	return all
}

// treeText asks, after the statements ran, whether a partition of their tables is a foreign table. ATTACH PARTITION
// waits for nobody who reads the table, and a statement is planned for the partitions that there are by then, whatever
// the snapshot of its transaction. So these are looked at again. None was there in between: what is detached waits for
// the end of this transaction.
const treeText = `SELECT EXISTS (SELECT FROM unnest($1::oid[]) AS pin(relation) WHERE ` + foreignPart + `)`

// foreignPart tells whether a partition of a pinned table has no rows of its own. Both functions see the schema as it
// is, as planning does; pg_class as a table shows what the transaction's snapshot knew.
const foreignPart = `EXISTS (SELECT FROM pg_catalog.pg_partition_tree(pin.relation) t
					WHERE t.isleaf AND pg_catalog.pg_relation_filenode(t.relid) IS NULL)`

// Read runs a query over released values and public tables, which is all that a [sqlrewrite.Post] can name: it needs no charge. Its
// errors are data/unavailable without any detail, policy/stale, or sql/too-complex for a result that is too large.
func (d *Database) Read(ctx context.Context, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.acquire+d.patience)
	defer cancel()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, fault.DataUnavailable(quiet(err))
	}
	// A connection that goes back with its transaction open or broken is closed by the pool.
	defer conn.Release()
	if err := post.Prove(post.Proofs()); err != nil {
		return nil, nil, err
	}
	if err := begin(ctx, conn.Conn(), post.Preconditions(), planCustom); err != nil {
		return nil, nil, err
	}
	rows, types, err := compute(ctx, conn, post.SQL(), post.Args(), maxOf(post))
	if err != nil {
		return nil, nil, refused(post, err)
	}
	_, _ = conn.Exec(ctx, "COMMIT") // it wrote nothing
	return rows, types, nil
}

// open begins the transaction, locks the tables against changes of their definition, and compares the definitions with
// the pins; the settings hold in it from then on. The locks come before the transaction's snapshot is taken, so what is compared is
// what the statement will read. The text that locks says which tables they are.
func (x *exchange) open(conn *pgx.Conn, lock life, pins []sqlrewrite.Precondition, settings ...string) {
	x.commands(fixed, beginText)
	if len(pins) > 0 {
		x.commands(lock, lockText(pins))
	}
	for _, held := range flatten(pins).held() {
		x.holds(held.sql, held.args, fault.PolicyStale())
	}
	if versions, numbers := versionPins(pins); len(versions) > 0 {
		x.holds(versionPinText, []any{versions, numbers}, errVersionGone)
	}
	x.commands(forgotten, drawnMemory(conn))
	x.commands(fixed, settings...) // after our own texts, whose plans are kept: planCustom would have them planned again
	x.opening = len(x.texts)
}

// begin opens a transaction in which preconditions hold.
func begin(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, settings ...string) error {
	if err := pinSomething(pins); err != nil {
		return err
	}
	var x exchange
	x.open(conn, forgotten, pins, settings...)
	known, err := x.prepare(ctx, conn)
	if err == nil {
		err = x.run(ctx, conn, known)
	}
	return faultOf(err)
}

const (
	beginText  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	commitText = "COMMIT"
)

// warm prepares the fixed texts that questions send, so that a connection's first question takes no longer than others, and asks for the
// memory of its sorts.
func warm(ctx context.Context, conn *pgx.Conn) error {
	texts := []string{beginText, pinText(false, false, false), pinText(false, false, true), pinnedChecksText, planCustom, commitText}
	for _, sql := range texts {
		if _, err := conn.Prepare(ctx, sql, sql); err != nil {
			return err
		}
	}
	var memory int64
	if err := conn.QueryRow(ctx, memoryText).Scan(&memory); err != nil {
		return err
	}
	conn.PgConn().CustomData()[memoryKey] = memory
	return nil
}

// versionPins are the prepared copies among pins to which rows are appended, by name, and the versions that are meant.
func versionPins(pins []sqlrewrite.Precondition) (relations []string, numbers []int64) {
	for _, p := range pins {
		if p.Version > 0 {
			relations, numbers = append(relations, p.Table), append(numbers, p.Version)
		}
	}
	return relations, numbers
}

// versionPinText holds where all versions are in the list, in the snapshot of the statement: else other rows are in a copy.
const versionPinText = `SELECT 1 / (NOT EXISTS (SELECT FROM unnest($1::text[], $2::int8[]) AS pin(relation, number) WHERE NOT EXISTS (
	SELECT FROM noisegate_prepared.versions v WHERE v.relation = pin.relation AND v.number = pin.number)))::int`

// planCustom has the statement planned for its arguments each time: one way of planning, however often its text was seen (A37).
const planCustom = "SET LOCAL plan_cache_mode = force_custom_plan"

// memoryText asks for the kilobytes that a session's sorts and hashes may take each, by its role's settings; memoryKey is where a
// connection has them.
const (
	memoryText = "SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) / 1024"
	memoryKey  = "noisegate work_mem"
)

// drawnMemory draws, for one transaction, how much of its memory a session uses: between half and all of it. With a fixed limit one row of
// one person decides whether all others' rows go through files, which took 40 ms more of 700. With this one a row of b bytes decides it
// with a probability of b in half the memory: a slope, as that of boundaries.
func drawnMemory(conn *pgx.Conn) string {
	const least = 64 // PostgreSQL's, in kB
	most, _ := conn.PgConn().CustomData()[memoryKey].(int64)
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never returns an error
	return fmt.Sprintf("SET LOCAL work_mem = %d", max(least, most/2+int64(binary.BigEndian.Uint32(random[:]))*(most-most/2)>>32))
}

// drawnSetupCost draws, for one connection, from which cost on PostgreSQL gives a statement workers: between 1000, its own, and twice that.
// It has a least number of pages too, which is set to none: there one row that opens a page decided, in each question, whether one process
// or two read the table, which took 60 ms less of 180. With a drawn cost a row decides it with a probability of its cost in 1000.
func drawnSetupCost() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never returns an error
	return strconv.FormatFloat(1000*(1+float64(binary.BigEndian.Uint32(random[:]))/(1<<32)), 'f', 6, 64)
}

// divide puts the ends of a statement's ranges to its arguments: whole numbers of PostgreSQL's statistics of a column, which go back to
// where they came from and nowhere else. They decide which process adds up what, and no result. A column without statistics has one range.
func divide(ctx context.Context, conn *pgx.Conn, s *sqlrewrite.Statement) error {
	if s.Ranges == nil {
		return nil
	}
	var ends []int64
	r := s.Ranges
	if err := conn.QueryRow(ctx, rangesText, r.Schema, r.Table, r.Column, len(r.Args)).Scan(&ends); err != nil {
		return err
	}
	s.Args = slices.Clone(s.Args)
	for i, end := range ends {
		s.Args[r.Args[i]-1] = end
	}
	return nil
}

// rangesText cuts the histogram of a column into $4 + 1 parts of equal size.
const rangesText = `SELECT array_agg(bounds[1 + i * (cardinality(bounds) - 1) / ($4 + 1)]::int8 ORDER BY i)
FROM (SELECT histogram_bounds::text::text[] AS bounds FROM pg_catalog.pg_stats
	WHERE schemaname = $1 AND tablename = $2 AND attname = $3 AND NOT inherited AND cardinality(histogram_bounds::text::text[]) > $4) s
CROSS JOIN generate_series(1, $4::int4) i`

// lockText names every table of the statement. A table that is gone, or that the role may not read, fails here.
func lockText(pins []sqlrewrite.Precondition) string {
	names := make([]string, len(pins))
	for i, pin := range pins {
		names[i] = pgx.Identifier{pin.Schema, pin.Table}.Sanitize()
	}
	return "LOCK TABLE " + strings.Join(names, ", ") + " IN ACCESS SHARE MODE"
}

// pinText and pinnedChecksText hold where everything still is as it was pinned: relations, columns and keys; checks. A server prepares all
// of a text to run it, so that parts with nothing to check are left out: foreign keys where no table must be apart, casts where no column
// has a type of the database's own, keys and checks where there are none. Keys are in one text with columns: most questions have both, and
// each text costs a server as much again.
//
// A relation is the same under the same name; a view is another relation kind, which policies never pin. All that shows
// in it are its own rows: nothing inherits from it, because of such rows nobody was asked whose they are, and its keys
// do not hold for them; no partition is a foreign table; no policy of the database hides rows, unless the steward spoke
// for it. No foreign key leads from it to a table ($5) whose units it was not said to be about.
//
// A column has the same attribute number, type, modifier and collation, and is never NULL where that is relied upon. It
// is stored, not computed when it is read; equal texts are identical; and an enum has no casts that run somebody's
// function. NOT NULL holds once all rows were looked at: servers before 18 know no other.
//
// A key ($2: the names of columns as a JSON array, in the order of their bytes) is the whole key of a unique index of
// its table and of nothing else.
//
// A check ($3: as PostgreSQL writes it) is a constraint of one column alone that all rows were looked at for, and that is enforced.
//
// OFFSET 0 makes each a look-up by the catalog's indexes; a join would read the catalog from end to end for every query.
func pinText(apart, ownTypes, keyed bool) string {
	relation, column, key := ownRows, storedColumn, ""
	if apart {
		relation += notApart
	}
	if ownTypes {
		column += plainCasts
	}
	if keyed {
		key = `
AND coalesce(cardinality($13::oid[]), 0) = (SELECT count(*)
	FROM unnest($13::oid[], $14::text[]) AS pin(relation, columns)
	WHERE ` + pinnedKey + `)`
	}
	return `SELECT 1 / (coalesce(cardinality($1::oid[]), 0) = (SELECT count(*)
	FROM unnest($1::oid[], $2::text[], $3::text[], $4::bool[], $5::text[]) AS pin(relation, schema, name, secured, apart)
	WHERE EXISTS (SELECT FROM pg_catalog.pg_class c
		WHERE c.oid = pin.relation AND c.relname = pin.name AND c.relnamespace = pg_catalog.to_regnamespace(pin.schema)::oid
			AND ` + relation + ` OFFSET 0))
AND coalesce(cardinality($6::oid[]), 0) = (SELECT count(*)
	FROM unnest($6::oid[], $7::text[], $8::int2[], $9::oid[], $10::int4[], $11::bool[], $12::oid[])
		AS pin(relation, attribute, number, type, modifier, required, collation_)
	WHERE EXISTS (SELECT FROM pg_catalog.pg_attribute a
		WHERE a.attrelid = pin.relation AND a.attnum = pin.number AND a.attname = pin.attribute AND a.atttypid = pin.type
			AND a.atttypmod = pin.modifier AND (a.attcollation = 0 OR pin.collation_ IN (0, a.attcollation)) AND ` + column + ` OFFSET 0))` +
		key + `)::int`
}

// firstOwnType is PostgreSQL's FirstNormalObjectId: its built-in types have lower OIDs.
const firstOwnType = 16384

const pinnedChecksText = `SELECT 1 / (coalesce(cardinality($1::oid[]), 0) = (SELECT count(*)
	FROM unnest($1::oid[], $2::text[], $3::text[]) AS pin(relation, attribute, definition)
	WHERE ` + pinnedCheck + `))::int`

// The parts of [pinText] that say what a column, a key and a check of a table or of a shard are.
const (
	ownRows = `(c.relkind = 'r' AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)
				OR c.relkind = 'p' AND NOT ` + foreignPart + `)
			AND (pin.secured OR NOT c.relrowsecurity)`
	notApart = `
			AND (pin.apart = '{}' OR NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
				WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid = ANY (pin.apart::oid[])))`
	storedColumn = `NOT a.attisdropped AND a.attgenerated <> 'v'
			AND (NOT pin.required OR a.attnotnull AND (pg_catalog.current_setting('server_version_num')::int < 180000
				OR NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
					WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND a.attnum = ANY (k.conkey) AND NOT k.convalidated)))
			AND (a.attcollation = 0
				OR EXISTS (SELECT FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation AND l.collisdeterministic))`
	plainCasts = `
			AND (a.atttypid < 16384 OR NOT EXISTS (SELECT FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_type t ON t.oid = k.castsource AND t.typtype = 'e'
				WHERE k.castsource = a.atttypid))`
	solidColumn = storedColumn + plainCasts
	pinnedKey   = `EXISTS (SELECT FROM pg_catalog.pg_index i
		WHERE i.indrelid = pin.relation AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
			AND i.indnkeyatts = jsonb_array_length(pin.columns::jsonb)
			AND pin.columns::jsonb = (SELECT jsonb_agg(a.attname ORDER BY a.attname) FROM pg_catalog.pg_attribute a
				WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) AND a.attnum > 0) OFFSET 0)`
	pinnedCheck = `EXISTS (SELECT FROM pg_catalog.pg_constraint k
		JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
		WHERE k.conrelid = pin.relation AND k.contype = 'c' AND a.attname = pin.attribute
			AND k.convalidated AND coalesce((pg_catalog.to_jsonb(k) ->> 'conenforced')::bool, true) -- a column since 18
			AND pg_catalog.pg_get_constraintdef(k.oid) = pin.definition OFFSET 0)`
)

// pinned is a list of pins as columns, one entry for each pinned relation, column and key.
type pinned struct {
	relations       []uint32
	schemas, tables []string // schemas as SQL writes them
	secured         []bool
	apart           []string // arrays of OIDs as text

	of         []uint32 // the tables of columns
	columns    []string
	numbers    []int16
	types      []uint32
	modifiers  []int32
	required   []bool
	collations []uint32

	keyed []uint32 // the tables of keys
	keys  []string // JSON arrays of the names of columns

	checked []uint32 // the tables of checks
	ranged  []string // their columns
	checks  []string // as PostgreSQL writes them
}

func flatten(pins []sqlrewrite.Precondition) pinned {
	var p pinned
	for _, pin := range pins {
		p.relations = append(p.relations, pin.OID)
		p.schemas = append(p.schemas, pgx.Identifier{pin.Schema}.Sanitize())
		p.tables = append(p.tables, pin.Table)
		p.secured = append(p.secured, pin.RowSecurity)
		apart := make([]string, len(pin.Apart))
		for i, oid := range pin.Apart {
			apart[i] = strconv.FormatUint(uint64(oid), 10)
		}
		p.apart = append(p.apart, "{"+strings.Join(apart, ",")+"}")
		for _, column := range pin.Columns {
			p.of = append(p.of, pin.OID)
			p.columns = append(p.columns, column.Name)
			p.numbers = append(p.numbers, column.AttNum)
			p.types = append(p.types, column.TypeOID)
			p.modifiers = append(p.modifiers, column.TypMod)
			p.required = append(p.required, column.NotNull)
			p.collations = append(p.collations, column.Collation)
		}
		for _, key := range pin.Keys {
			names, err := json.Marshal(key)
			if err != nil {
				panic(err) // strings always encode
			}
			p.keyed, p.keys = append(p.keyed, pin.OID), append(p.keys, string(names))
		}
		for _, c := range pin.Checks {
			p.checked, p.ranged = append(p.checked, pin.OID), append(p.ranged, c.Column)
			p.checks = append(p.checks, checkText(c.Column, c.Lo, c.Hi))
		}
	}
	return p
}

// checkText is a check as PostgreSQL writes it.
func checkText(column string, lo, hi int64) string {
	return fmt.Sprintf("CHECK (((%[1]s >= %[2]d) AND (%[1]s <= %[3]d)))", column, lo, hi)
}

// heldText is a text that holds where pins do.
type heldText struct {
	sql  string
	args []any
}

// held are the texts that hold where all of the pins do.
func (p pinned) held() []heldText {
	apart := slices.ContainsFunc(p.apart, func(tables string) bool { return tables != "{}" })
	ownTypes := slices.ContainsFunc(p.types, func(oid uint32) bool { return oid >= firstOwnType })
	args := []any{p.relations, p.schemas, p.tables, p.secured, p.apart,
		p.of, p.columns, p.numbers, p.types, p.modifiers, p.required, p.collations}
	if len(p.keyed) > 0 {
		args = append(args, p.keyed, p.keys)
	}
	all := []heldText{{pinText(apart, ownTypes, len(p.keyed) > 0), args}}
	if len(p.checked) > 0 {
		all = append(all, heldText{pinnedChecksText, []any{p.checked, p.ranged, p.checks}})
	}
	return all
}

// read takes a statement's result: it seals the aggregates and yields the rows, as long as they are wanted.
func read(result *pgconn.ResultReader, statement sqlrewrite.Statement, yield func(sqlrewrite.ExactRow) bool) error {
	binary := func(f pgconn.FieldDescription) bool { return f.Format != pgx.TextFormatCode }
	if fields := result.FieldDescriptions(); len(fields) != statement.Keys+statement.Values || slices.ContainsFunc(fields, binary) {
		_, err := result.Close()
		return firstError(err, errShape)
	}
	for result.NextRow() {
		row, err := seal(result.Values(), statement.Keys)
		if err != nil {
			return err
		}
		if !yield(row) {
			break
		}
	}
	_, err := result.Close()
	return err
}

// seal takes one row from the wire: the first columns are keys, the others aggregates. NULL is an aggregate over no rows.
func seal(raw [][]byte, keys int) (sqlrewrite.ExactRow, error) {
	row := sqlrewrite.ExactRow{Keys: make([]catalog.Key, keys), Values: make([]mechanisms.Exact, len(raw)-keys)}
	for i, text := range raw[:keys] {
		row.Keys[i] = catalog.Key{Text: string(text), Null: text == nil}
	}
	for i, text := range raw[keys:] {
		if text == nil {
			continue // the zero Exact is 0
		}
		value, err := mechanisms.SealText(text)
		if err != nil {
			return sqlrewrite.ExactRow{}, err
		}
		row.Values[i] = value
	}
	return row, nil
}
