package pgexec

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgrole"
	"noisegate.example/internal/pgversion"
	"noisegate.example/sqlrewrite"
)

// Prepared copies are made in one transaction: the lock of the list of versions, a snapshot of the source, the copy with its constraints,
// and its line in the list. So there is a version where it is complete, and nothing of it where it is not, whatever ends the connection.
// The version before the newest stays until the next run: questions that were planned on it still find it.
//
// Where the policy has rows appended, a run changes the newest copy in one transaction, and its line in the list has the next number.
// Questions that read it then keep their snapshot; those that were planned on the number that is gone are planned anew (versionPins).

// PrepareConfig is how to reach a protected database as the role that prepares.
type PrepareConfig struct {
	DSN      string
	Reader   string           // the gateway's role, which may read copies
	Versions pgversion.Policy // which servers are connected to
	Seed     func() int64     // a secret one for each copy, by which rows of a unit are chosen
}

// prepareLock is how long a run waits for another one to end.
const prepareLock = 3 * time.Second

// prepareMemory is what making an index may take on the server; what does not fit goes to its disk.
const prepareMemory = "256MB"

// littleMemory asks whether a sort may take less than 64 MB, though nobody chose that for the role or the database.
const littleMemory = `SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) < 64 * 1024 * 1024 AND NOT EXISTS (
	SELECT FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) AS chosen WHERE chosen LIKE 'work\_mem=%'
	AND s.setrole IN (0, current_user::pg_catalog.regrole)
	AND s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())))`

// The errors of a run, of which nothing is told by a row.
var (
	errPreparing = errors.New("another run prepares tables of this database, or one of its tables is locked: try again when it has ended")
	errNoRight   = errors.New("the role that prepares lacks a right: it needs the schema " + catalog.PreparedSchema +
		", which deploy/roles.sql makes, with the tables in it, and SELECT on the table and USAGE on its schema")
	errNoReader = errors.New("the role that the gateway connects as, of the dataset's dsn, is not there")
	errNumbers  = errors.New("the table of numbers of units in " + catalog.PreparedSchema + " is damaged: an id or a number is there twice. " +
		"Drop it with all copies, and prepare anew")
	errAppend  = errors.New("the database has Citus, where a run makes each copy anew: write refresh: full in the policy")
	errNoSpace = errors.New("the protected database has no space left, on its disk or within temp_file_limit: the version before stays")
	errPrepare = errors.New("the copy was not made, and the version before stays")
	errDrop    = errors.New("what is left goes with the next run")
	errCompare = errors.New("the copy could not be compared with its table")
)

// ErrChanged is of a copy to which rows were appended, where the table's rows are others by now.
var ErrChanged = errors.New("rows of the table were changed or deleted since the copy has them, or came later than settle: " +
	"run noisegate prepare --full")

// listText makes the list of versions, and that of the seeds of those that rows are appended to. The table of numbers that a version has is
// not known of those that were made before that was written down; built is that of [catalog.Version].
const (
	listText = `CREATE TABLE IF NOT EXISTS noisegate_prepared.versions (
	dataset text NOT NULL, of_schema text NOT NULL, of_table text NOT NULL, number bigint NOT NULL, relation text NOT NULL,
	digest bytea NOT NULL, as_of timestamptz NOT NULL, units text, built bigint, PRIMARY KEY (dataset, of_schema, of_table, number))`
	seedsText = `CREATE TABLE IF NOT EXISTS noisegate_prepared.seeds (relation text PRIMARY KEY, seed bigint NOT NULL)`
)

// list makes the list of versions, or brings that of an earlier Noisegate up to date; it is false where there is none and none is wanted.
func list(ctx context.Context, conn *pgx.Conn, wanted bool) (there bool, err error) {
	var current, seeds bool
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.to_regclass('noisegate_prepared.versions') IS NOT NULL, (SELECT count(*) = 2
		FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass('noisegate_prepared.versions') AND attname IN ('units', 'built')),
		pg_catalog.to_regclass('noisegate_prepared.seeds') IS NOT NULL`).Scan(&there, &current, &seeds); err != nil {
		return false, err
	}
	switch {
	case there && !current: // which takes a lock that questions wait for, so that it is done once
		_, err = conn.Exec(ctx, `ALTER TABLE noisegate_prepared.versions ADD COLUMN IF NOT EXISTS units text, ADD COLUMN IF NOT EXISTS built bigint`)
	case !there && wanted:
		_, err = conn.Exec(ctx, listText)
	}
	if err == nil && !seeds && (there || wanted) {
		_, err = conn.Exec(ctx, seedsText)
	}
	return there || wanted, err
}

// The steps of a run, in this order.
const (
	StepUnits       = "units"       // units get their numbers
	StepRows        = "rows"        // rows are copied
	StepConstraints = "constraints" // indexes and constraints are made; the version serves at the end of it
	StepCleanup     = "cleanup"     // versions that none reads any more are dropped
)

// Prepare makes a new version of the copy of a table of a snapshot, and drops those that none serves any more. Where the policy has rows
// appended, and unless full, it appends to the newest version, if the policy asks for that one, and gives it back as it is while no row can
// have settled since. It calls begins, unless that is nil, as each step begins. Its errors say what to do, and nothing of a row; where
// there is a version beside one, that version serves.
func (c PrepareConfig) Prepare(ctx context.Context, on *catalog.Snapshot, t *catalog.Table, full bool, begins func(step string)) (
	*catalog.Version, error) {
	if begins == nil {
		begins = func(string) {}
	}
	seed := c.Seed()
	conn, err := c.connect(ctx, seed)
	if err != nil {
		return nil, err
	}
	defer leave(ctx, conn)
	reader := pgx.Identifier{c.Reader}.Sanitize()
	if _, err := list(ctx, conn, true); err != nil {
		return nil, unlisted(err)
	}
	for _, text := range []string{"GRANT USAGE ON SCHEMA noisegate_prepared TO " + reader,
		"GRANT SELECT ON noisegate_prepared.versions TO " + reader} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return nil, unlisted(err)
		}
	}
	r := run{PrepareConfig: c, on: on, t: t, full: full, begins: begins, seed: seed}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error { return r.in(ctx, tx) })
	if err != nil {
		return nil, unprepared(err)
	}
	version := &r.made
	begins(StepCleanup)
	if r.as == kept {
		return version, nil
	}
	// Scans of an index alone, which counts are, need what VACUUM knows of pages. A version serves without: there is no error to tell.
	made := on.CopyOf(t, *version)
	_, _ = conn.Exec(ctx, "VACUUM "+pgx.Identifier{made.Schema, made.Name}.Sanitize())
	dropped, err := dropVersions(ctx, conn, on.Dataset, version.Table, version.Number-1) // but it and the one before
	if r.as == anew && !r.first || dropped {                                             // else no unit has left any copy
		err = errors.Join(err, forget(ctx, conn))
	}
	if err != nil {
		return version, fmt.Errorf("version %d serves; those before it could not be dropped, which the next run does: %w", version.Number,
			undone(err, errDrop))
	}
	return version, nil
}

// seedSetting has a seed for a statement that takes no arguments. A setting that a connection begins with is in no text, and so
// in nothing that a server keeps of texts.
const seedSetting = "noisegate.seed"

// connect opens a connection as a role that may write in the schema of copies and nowhere else.
func (c PrepareConfig) connect(ctx context.Context, seed int64) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, errors.New("pgexec: the DSN cannot be read") // without its text: it may hold a password
	}
	config.OnNotice = nil
	for name, value := range settings(time.Hour) {
		config.RuntimeParams[name] = value
	}
	config.RuntimeParams["application_name"] = "noisegate prepare"
	config.RuntimeParams["default_transaction_read_only"] = "off"
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["maintenance_work_mem"] = prepareMemory
	config.RuntimeParams[seedSetting] = strconv.FormatInt(seed, 10)
	// A run reads whole tables, one at a time: it takes the processors that the server has for it.
	config.RuntimeParams["parallel_setup_cost"], config.RuntimeParams["parallel_tuple_cost"] = "0", "0"
	// Hashing many ids takes longer than sorting them; and of numbers in the order of ids the index of a copy's rows is made of sorted ones.
	config.RuntimeParams["enable_hashagg"] = "off"
	config.RuntimeParams["enable_sort"], config.RuntimeParams["enable_incremental_sort"] = "on", "on"
	config.RuntimeParams["plan_cache_mode"] = "force_custom_plan" // which knows how many rows are of the times that are asked for
	config.RuntimeParams["lock_timeout"] = fmt.Sprint(prepareLock.Milliseconds())
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fault.DataUnavailable(quiet(err))
	}
	if err := c.refuse(ctx, conn); err != nil {
		leave(ctx, conn)
		return nil, err
	}
	var little bool
	if err = conn.QueryRow(ctx, littleMemory).Scan(&little); err == nil && little {
		_, err = conn.Exec(ctx, "SET work_mem = '64MB'")
	}
	if err != nil {
		leave(ctx, conn)
		return nil, fault.DataUnavailable(quiet(err))
	}
	citus, err := onCitus(ctx, conn)
	for i := 0; err == nil && citus && i < len(oneConnection); i++ {
		_, err = conn.Exec(ctx, oneConnection[i])
	}
	if err != nil {
		leave(ctx, conn)
		return nil, fault.DataUnavailable(quiet(err))
	}
	return conn, nil
}

// leave closes a connection. Where what ran on it was cancelled it waits until the server was told so: else that would run on, and its lock
// would be in the way of the next run.
func leave(ctx context.Context, conn *pgx.Conn) {
	_ = conn.Close(context.WithoutCancel(ctx))
	<-conn.PgConn().CleanupDone()
}

// refuse says why a connection is not used: its server's version or encoding, or what its role may do beyond its task.
func (c PrepareConfig) refuse(ctx context.Context, conn *pgx.Conn) error {
	if c.Versions.Refuse(serverVersion(conn)) != nil {
		return fault.DataUnavailable(errVersion)
	}
	if err := inUTF8(ctx, conn); err != nil {
		return fault.DataUnavailable(err)
	}
	return pgrole.Check(ctx, conn, pgrole.Expectation{Task: pgrole.Preparer, Schema: catalog.PreparedSchema})
}

// unlisted is [unprepared] of what changes catalogs: no lock keeps two runs from changing one line of these.
func unlisted(err error) error {
	if server := new(pgconn.PgError); errors.As(err, &server) && (server.Code == "XX000" || server.Code == "23505") {
		return errPreparing
	}
	return unprepared(err)
}

// unprepared is what may be said of an error of a run: what to do about it, or PostgreSQL's five letters.
func unprepared(err error) error { return undone(err, errPrepare) }

// undone is what may be said of an error, where what was done is known; otherwise is what that means.
func undone(err, otherwise error) error {
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, errNumbers) || errors.Is(err, errAppend) {
		return err
	}
	var server *pgconn.PgError
	_ = errors.As(err, &server)
	switch {
	case server == nil:
		return fmt.Errorf("%w (%w)", otherwise, quiet(err))
	case server.Code == "55P03", server.Code == "40P01":
		return errPreparing
	case server.Code == "42501", server.Code == "3F000":
		return errNoRight
	case server.Code == "42704": // of all names only the reader's is not the run's own
		return errNoReader
	case server.Code == "53100", server.Code == "53400":
		return errNoSpace
	default:
		return fmt.Errorf("%w (%w)", otherwise, quiet(err))
	}
}

// run is one run on one table.
type run struct {
	PrepareConfig
	on     *catalog.Snapshot
	t      *catalog.Table
	full   bool // no rows are appended
	begins func(step string)
	seed   int64 // of a copy of all rows, and what the connection has as seedSetting

	citus bool // copies are distributed
	as    outcome
	made  catalog.Version // and what it is in
	first bool            // nobody had a number before
}

// outcome is how a run made a version.
type outcome int

const (
	anew     outcome = iota // of all rows of its table
	appended                // of the version before, and newer rows
	kept                    // it was there, and no row can have settled since
)

// in makes a version in a transaction that has not read anything yet.
func (r *run) in(ctx context.Context, tx pgx.Tx) error {
	if err := r.lock(ctx, tx); err != nil { // first: what was committed while it waited is seen
		return err
	}
	var err error
	if r.citus, err = onCitus(ctx, tx); err != nil {
		return err
	}
	if r.citus && r.t.Append.Column != "" {
		return errAppend
	}
	t, name := r.t, catalog.TableName{Schema: r.t.Schema, Name: r.t.Name}
	next := catalog.Version{Table: name}
	// A transaction that inserts a row is open for no longer than settle after the time that the row has: those that are seen of the times
	// up to settle ago are all that there will be.
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(number), 0) + 1, now() - make_interval(secs => $4) FROM noisegate_prepared.versions
		WHERE dataset = $1 AND of_schema = $2 AND of_table = $3`, r.on.Dataset, t.Schema, t.Name, t.Append.Settle.Seconds()).
		Scan(&next.Number, &next.AsOf); err != nil {
		return err
	}
	if t.Append.Column != "" && !r.full {
		before, seed, err := r.before(ctx, tx)
		if err != nil {
			return err
		}
		if before != nil && !next.AsOf.After(before.AsOf) {
			r.as, r.made = kept, *before
			return nil
		}
		var largest int64
		if before != nil && before.Narrow {
			if largest, err = r.largest(ctx, tx); err != nil {
				return err
			}
		}
		if before != nil && largest < narrowMost {
			r.as, next.Built, next.OID, next.Narrow = appended, before.Base(), before.OID, before.Narrow
			return r.make(ctx, tx, next, before, seed)
		}
	}
	r.as = anew
	return r.make(ctx, tx, next, nil, r.seed)
}

// An integer holds numbers of units up to 2³¹, and an index of integers is two thirds as large as one of bigints. A copy has them while its
// largest number is below narrowBelow, and is made anew before appending gets beyond narrowMost.
const narrowBelow, narrowMost = 1_000_000_000, 2_000_000_000

// largest is the largest number of a unit.
func (r *run) largest(ctx context.Context, tx pgx.Tx) (n int64, err error) {
	units, _ := r.on.UnitsOf(r.t)
	err = tx.QueryRow(ctx, "SELECT coalesce(max(unit), 0) FROM ONLY "+pgx.Identifier{catalog.PreparedSchema, units}.Sanitize()).Scan(&n)
	return n, err
}

// lock keeps other runs of the database away, and changes of the table's definition.
func (r *run) lock(ctx context.Context, tx pgx.Tx) error {
	for _, lock := range []string{"noisegate_prepared.versions IN SHARE ROW EXCLUSIVE MODE",
		pgx.Identifier{r.t.Schema, r.t.Name}.Sanitize() + " IN ACCESS SHARE MODE"} {
		if _, err := tx.Exec(ctx, "LOCK TABLE "+lock); err != nil {
			return err
		}
	}
	return nil
}

// before is the version that rows are appended to, and its seed: the newest, if it is what the policy asks for; nil: there is none.
func (r *run) before(ctx context.Context, tx pgx.Tx) (*catalog.Version, int64, error) {
	held, err := listed(ctx, tx, r.on.Dataset)
	if err != nil {
		return nil, 0, err
	}
	for _, v := range held {
		if v.Table != (catalog.TableName{Schema: r.t.Schema, Name: r.t.Name}) {
			continue
		}
		if sqlrewrite.Serving(r.on, v) == nil {
			break
		}
		var seed int64
		err := tx.QueryRow(ctx, "SELECT seed FROM noisegate_prepared.seeds WHERE relation = $1", r.on.CopyOf(r.t, v).Name).Scan(&seed)
		if errors.Is(err, pgx.ErrNoRows) {
			break
		}
		return &v, seed, err
	}
	return nil, 0, nil
}

// withoutIndexes has what is asked answered by rows alone: whether the numbers' indexes are whole is what is to be seen.
var withoutIndexes = []string{"SET LOCAL enable_indexscan = off", "SET LOCAL enable_indexonlyscan = off",
	"SET LOCAL enable_bitmapscan = off"}

// always is before all times.
var always = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}

// make makes a version: of all rows of its table, or by appending to the version before.
func (r *run) make(ctx context.Context, tx pgx.Tx, v catalog.Version, before *catalog.Version, seed int64) error {
	build, err := sqlrewrite.Prepare(r.on, r.t, v)
	if err != nil {
		return err
	}
	if err := stillHolds(ctx, tx, r.citus, build.Conditions); err != nil {
		return err
	}
	var times []any // of the rows, where a policy has rows appended
	if build.Merge != "" {
		since := always
		if before != nil {
			since = pgtype.Timestamptz{Time: before.AsOf, Valid: true}
		}
		times = []any{since, v.AsOf}
	}
	r.begins(StepUnits)
	if r.first, err = r.number(ctx, tx, build, times); err != nil {
		return err
	}
	if before == nil && !r.citus {
		largest, err := r.largest(ctx, tx)
		if v.Narrow = largest < narrowBelow; err == nil && v.Narrow { // what gave numbers to units is the same
			build, err = sqlrewrite.Prepare(r.on, r.t, v)
		}
		if err != nil {
			return err
		}
	}
	if err := r.numbered(ctx, tx, build, before, times); err != nil {
		return err
	}
	if before == nil {
		err = r.fill(ctx, tx, build, times)
	} else {
		r.begins(StepRows)
		err = r.merge(ctx, tx, build, append([]any{seed}, times...))
	}
	if err != nil {
		return err
	}
	if err := execute(ctx, tx, "GRANT SELECT ON "+pgx.Identifier{build.Copy.Schema, build.Copy.Name}.Sanitize()+" TO "+
		pgx.Identifier{r.Reader}.Sanitize()); err != nil {
		return err
	}
	if trees := treesOf(build.Conditions); trees != nil {
		var foreign bool
		if err := tx.QueryRow(ctx, treeText, trees).Scan(&foreign); err != nil {
			return err
		}
		if foreign {
			return fault.PolicyStale()
		}
	}
	v.Digest = build.Digest
	r.made = v
	return r.write(ctx, tx, build, before, seed)
}

// number gives numbers to units that have none, and reports whether these are the first: then keys are made of all ids at once, which takes
// a fifth of the time that one after the other does.
func (r *run) number(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, times []any) (first bool, err error) {
	table := pgx.Identifier{catalog.PreparedSchema, build.Units}.Sanitize()
	if _, err := tx.Exec(ctx, build.NeedUnits); err != nil {
		return false, err
	}
	if err := tx.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM ONLY "+table+")").Scan(&first); err != nil {
		return false, err
	}
	var drop, add string
	if first {
		if err := tx.QueryRow(ctx, keysText, table).Scan(&drop, &add); err != nil {
			return false, err
		}
		if err := execute(ctx, tx, drop); err != nil {
			return false, err
		}
	}
	if _, err := tx.Exec(ctx, build.AddUnits, times...); err != nil || !first {
		return first, err
	}
	return first, execute(ctx, tx, add, "ANALYZE "+table)
}

// merge appends rows to a copy. It has statistics made anew where more than a tenth of the rows are others.
func (r *run) merge(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, args []any) error {
	done, err := tx.Exec(ctx, build.Merge, args...)
	if err != nil {
		return err
	}
	relation := pgx.Identifier{build.Copy.Schema, build.Copy.Name}.Sanitize()
	var many bool
	if err := tx.QueryRow(ctx, "SELECT $2::bigint > reltuples / 10 FROM pg_catalog.pg_class WHERE oid = $1::text::pg_catalog.regclass",
		relation, done.RowsAffected()).Scan(&many); err != nil || !many {
		return err
	}
	_, err = tx.Exec(ctx, "ANALYZE "+relation)
	return err
}

// numbered refuses to make a version where ids and numbers are not keys of each other. How many rows came since statistics were made,
// PostgreSQL does not know, and would compare each with each.
func (r *run) numbered(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, before *catalog.Version, times []any) error {
	text, set, unset := build.Added, []string{"SET LOCAL enable_nestloop = off"}, []string{"SET LOCAL enable_nestloop TO DEFAULT"}
	if before == nil {
		text, times, set, unset = build.Numbered, nil, withoutIndexes, nil
	}
	if err := execute(ctx, tx, set...); err != nil {
		return err
	}
	var keys bool
	if err := tx.QueryRow(ctx, text, times...).Scan(&keys); err != nil {
		return err
	}
	if !keys {
		return errNumbers
	}
	return execute(ctx, tx, unset...)
}

// execute executes texts one after the other.
func execute(ctx context.Context, tx pgx.Tx, texts ...string) error {
	for _, text := range texts {
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// keysText prints what drops the keys of a table, and what adds them again.
const keysText = `SELECT coalesce(pg_catalog.format('ALTER TABLE %s ', $1::text) ||
		pg_catalog.string_agg(pg_catalog.format('DROP CONSTRAINT %I', conname), ', '), ''),
	coalesce(pg_catalog.format('ALTER TABLE %s ', $1::text) ||
		pg_catalog.string_agg(pg_catalog.format('ADD CONSTRAINT %I %s', conname, pg_catalog.pg_get_constraintdef(oid)), ', '), '')
	FROM pg_catalog.pg_constraint WHERE conrelid = $1::text::pg_catalog.regclass AND contype = 'u'`

// fill makes a copy of all rows.
func (r *run) fill(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, times []any) error {
	if _, err := tx.Exec(ctx, build.Create); err != nil {
		return err
	}
	r.begins(StepRows)
	var columns columnTexts
	if err := columns.read(ctx, tx, build.Copy); err != nil {
		return err
	}
	if r.citus {
		if err := distribute(ctx, tx, build.Copy); err != nil {
			return err
		}
	}
	if r.citus || !columns.named {
		if _, err := tx.Exec(ctx, build.Fill, append([]any{r.seed}, times...)...); err != nil {
			return err
		}
	} else if err := refill(ctx, tx, build, columns, times); err != nil {
		return err
	}
	r.begins(StepConstraints)
	constrain := build.Constrain
	if !r.citus { // which takes one at a time; a server reads the rows once for all
		on := "ALTER TABLE " + pgx.Identifier{build.Copy.Schema, build.Copy.Name}.Sanitize() + " "
		constrain = []string{on + strings.ReplaceAll(strings.Join(constrain, ", "), on, "")}
	}
	if err := execute(ctx, tx, constrain...); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "ANALYZE "+pgx.Identifier{build.Copy.Schema, build.Copy.Name}.Sanitize())
	return err
}

// refill makes an empty copy again, with the rows of its query: PostgreSQL reads and sorts on several processors for a table that a query
// makes, and for an INSERT on one alone.
func refill(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, columns columnTexts, times []any) error {
	relation := pgx.Identifier{build.Copy.Schema, build.Copy.Name}.Sanitize()
	const query = "noisegate_rows"
	if _, err := tx.Conn().Prepare(ctx, query, "SELECT "+columns.values+" FROM ("+build.Rows+") AS f ("+columns.names+")"); err != nil {
		return err
	}
	passed := []string{"pg_catalog.current_setting('" + seedSetting + "')::bigint"}
	for _, time := range times {
		var text string
		if err := tx.QueryRow(ctx, "SELECT pg_catalog.quote_literal($1::timestamptz)", time).Scan(&text); err != nil {
			return err
		}
		passed = append(passed, text)
	}
	if err := execute(ctx, tx, "DROP TABLE "+relation,
		fmt.Sprintf("CREATE TABLE %s AS EXECUTE %s (%s)", relation, query, strings.Join(passed, ", "))); err != nil {
		return err
	}
	return tx.Conn().Deallocate(ctx, query)
}

// columnTexts are texts of a copy's columns.
type columnTexts struct {
	names, values string // values of these names, of a relation f, as the columns' types and collations are
	// named: the role may name these types and collations. It needs no USAGE on their schemas to read the table, nor to make and fill a
	// copy, which takes types as they are: so where it has none, the copy is filled, on one processor, and no more rights are asked for.
	named bool
}

func (c *columnTexts) read(ctx context.Context, tx pgx.Tx, of *catalog.Table) error {
	relation := pgx.Identifier{of.Schema, of.Name}.Sanitize()
	return tx.QueryRow(ctx, columnsText, relation).Scan(&c.names, &c.values, &c.named)
}

// columnsText prints them.
const columnsText = `SELECT pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' ORDER BY attnum),
	pg_catalog.string_agg(pg_catalog.format('f.%I::%s', attname, pg_catalog.format_type(atttypid, atttypmod)) ||
		CASE WHEN attcollation = 0 THEN '' ELSE ' COLLATE ' || attcollation::pg_catalog.regcollation::text END || ' AS ' ||
		pg_catalog.quote_ident(attname), ', ' ORDER BY attnum),
	pg_catalog.bool_and(pg_catalog.has_schema_privilege(t.typnamespace, 'USAGE') AND
		coalesce(pg_catalog.has_schema_privilege(l.collnamespace, 'USAGE'), true))
	FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type t ON t.oid = atttypid LEFT JOIN pg_catalog.pg_collation l ON l.oid = attcollation
	WHERE attrelid = $1::text::pg_catalog.regclass AND attnum > 0`

// write writes the version into the list, in place of that to which rows were appended, and the seed of one that rows can be appended
// to.
func (r *run) write(ctx context.Context, tx pgx.Tx, build *sqlrewrite.Build, before *catalog.Version, seed int64) error {
	v, built := r.made, any(nil)
	if v.Built > 0 {
		built = v.Built
	}
	units, _ := r.on.UnitsOf(r.t)
	if _, err := tx.Exec(ctx, `INSERT INTO noisegate_prepared.versions
		(dataset, of_schema, of_table, number, relation, digest, as_of, units, built) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		r.on.Dataset, v.Table.Schema, v.Table.Name, v.Number, build.Copy.Name, build.Digest[:], v.AsOf, units, built); err != nil {
		return err
	}
	if before != nil {
		_, err := tx.Exec(ctx, `DELETE FROM noisegate_prepared.versions WHERE dataset = $1 AND of_schema = $2 AND of_table = $3 AND number = $4`,
			r.on.Dataset, v.Table.Schema, v.Table.Name, before.Number)
		return err
	}
	if build.Merge == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO noisegate_prepared.seeds (relation, seed) VALUES ($1, $2)
		ON CONFLICT (relation) DO UPDATE SET seed = $2`, build.Copy.Name, seed)
	return err
}

// stillHolds is policy/stale where preconditions do not hold, also on a shard.
func stillHolds(ctx context.Context, tx pgx.Tx, citus bool, pins []sqlrewrite.Precondition) error {
	for _, held := range flatten(pins).held() {
		var refused *pgconn.PgError
		if _, err := tx.Exec(ctx, held.sql, held.args...); errors.As(err, &refused) && refused.Code == divisionByZero {
			return fault.PolicyStale()
		} else if err != nil {
			return err
		}
	}
	if citus {
		return holdOnShards(ctx, tx, shardPins(pins)...)
	}
	return nil
}

// dropVersions drops the versions of a table below a number, each by itself: one that a question reads stays until the next run. It reports
// whether there was one.
func dropVersions(ctx context.Context, conn *pgx.Conn, dataset string, of catalog.TableName, below int64) (dropped bool, err error) {
	rows, err := conn.Query(ctx, `SELECT number, relation FROM noisegate_prepared.versions
		WHERE dataset = $1 AND of_schema = $2 AND of_table = $3 AND number < $4 ORDER BY number`, dataset, of.Schema, of.Name, below)
	if err != nil {
		return false, err
	}
	type old struct {
		Number   int64
		Relation string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[old])
	if err != nil {
		return false, err
	}
	for _, v := range all {
		err = errors.Join(err, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, text := range []string{"LOCK TABLE noisegate_prepared.versions IN ROW EXCLUSIVE MODE", // before the copy, as forget has it
				"DROP TABLE IF EXISTS " + pgx.Identifier{catalog.PreparedSchema, v.Relation}.Sanitize()} {
				if _, err := tx.Exec(ctx, text); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, "DELETE FROM noisegate_prepared.seeds WHERE relation = $1", v.Relation); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM noisegate_prepared.versions
				WHERE dataset = $1 AND of_schema = $2 AND of_table = $3 AND number = $4`, dataset, of.Schema, of.Name, v.Number)
			return err
		}))
	}
	return len(all) > 0, err
}

// forget takes units that are in no copy any more out of all tables of numbers, whatever policies say by now: who was erased from the
// sources is gone with the last version that has them. A number that is given later is another one, so that no version gets a row by it;
// and no run is between giving a number and making the row that has it, as each holds this lock.
func forget(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return forgetIn(ctx, tx) })
}

func forgetIn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "LOCK TABLE noisegate_prepared.versions IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT u.relname::text, coalesce(c.relation, ''), coalesce(c.unit, '')
		FROM pg_catalog.pg_class u LEFT JOIN (
			SELECT v.units, v.relation, a.attname::text AS unit FROM noisegate_prepared.versions v
			JOIN pg_catalog.pg_class r ON r.relname = v.relation AND r.relnamespace = 'noisegate_prepared'::pg_catalog.regnamespace
			JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = 1
		) c ON coalesce(c.units, u.relname) = u.relname
		WHERE u.relnamespace = 'noisegate_prepared'::pg_catalog.regnamespace AND u.relkind = 'r' AND u.relname LIKE 'units\_%'
		ORDER BY 1, 2`)
	if err != nil {
		return err
	}
	type use struct{ Units, Relation, Unit string } // a table of numbers, and a copy that has some of them; "" for none
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[use])
	if err != nil {
		return err
	}
	for i := 0; i < len(all); {
		units := all[i].Units
		text := "DELETE FROM ONLY " + pgx.Identifier{catalog.PreparedSchema, units}.Sanitize() + " AS u WHERE true"
		for ; i < len(all) && all[i].Units == units; i++ {
			if c := all[i]; c.Relation != "" {
				text += fmt.Sprintf(" AND NOT EXISTS (SELECT FROM (SELECT c.%s AS unit FROM ONLY %s AS c OFFSET 0) AS c WHERE c.unit = u.unit)",
					pgx.Identifier{c.Unit}.Sanitize(), pgx.Identifier{catalog.PreparedSchema, c.Relation}.Sanitize())
			}
		}
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// versionsText lists the versions of a dataset whose copies are there, newest first.
const versionsText = `SELECT v.of_schema, v.of_table, v.number, coalesce((pg_catalog.to_jsonb(v) ->> 'built')::bigint, 0), -- not in old lists
	c.oid, v.digest, v.as_of, EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum = 1 AND atttypid = 23)
	FROM noisegate_prepared.versions v
	JOIN pg_catalog.pg_class c ON c.relname = v.relation
	JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'noisegate_prepared'
	WHERE v.dataset = $1 ORDER BY v.of_schema, v.of_table, v.number DESC`

// versionOf reads a row of [versionsText].
func versionOf(row pgx.CollectableRow) (v catalog.Version, err error) {
	var digest []byte
	err = row.Scan(&v.Table.Schema, &v.Table.Name, &v.Number, &v.Built, &v.OID, &digest, &v.AsOf, &v.Narrow)
	copy(v.Digest[:], digest)
	return v, err
}

// Versions are the versions of each prepared table of a dataset, newest first: which of them are what a policy asks for, the list cannot
// say, and a run under an earlier policy may have made the newest. None where nothing was ever prepared.
func (d *Database) Versions(ctx context.Context, dataset string) ([]catalog.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, d.acquire)
	defer cancel()
	rows, err := d.pool.Query(ctx, versionsText, dataset)
	var all []catalog.Version
	if err == nil {
		all, err = pgx.CollectRows(rows, versionOf)
	}
	var server *pgconn.PgError
	switch {
	case err == nil:
		return all, nil
	case errors.As(err, &server) && (server.Code == "42P01" || server.Code == "3F000" || server.Code == "42501"):
		return nil, nil
	default:
		return nil, fault.DataUnavailable(quiet(err))
	}
}
