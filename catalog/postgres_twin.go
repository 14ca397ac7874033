package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
)

// TwinRole is the role that reads catalog twins. It owns nothing, is a member of nothing, and holds REFERENCES on the tables, not SELECT:
// information_schema lists what one holds any privilege on, and a data query that strays to a twin fails.
const TwinRole = "noisegate_twin"

// TwinConnections is the number of connections that a twin's database accepts in all: enough for two gateways. A superuser's are not held
// back.
const TwinConnections = 16

// twinLock is the advisory lock of building a twin: "noisetwi" in ASCII.
const twinLock = 0x6e6f697365747769

// Twin is what a catalog twin is built with.
type Twin struct {
	Revision *Revision
	// Hidden are catalogs that the twin's role may not read, as they show the server; the readable columns of pg_database stay.
	Hidden []TableName
}

// Build makes the database of a connection the twin of a revision, in one transaction and under a lock, unless it is already: sessions see
// the old names or the new. What was in the twin is dropped; a database that is no twin must be empty. The connection's role owns the
// tables; it must be able to create [TwinRole], or find it there. It reports whether it built; a twin that is newer than the revision
// stays, which is not an error.
func (w Twin) Build(ctx context.Context, conn *pgx.Conn) (built bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", int64(twinLock)); err != nil {
			return err
		}
		var tag, database string
		var role bool
		if err := tx.QueryRow(ctx, twinTagSQL).Scan(&tag, &database, &role); err != nil {
			return err
		}
		version, ok := twinVersion(tag)
		if role && (tag == twinTag(w.Revision.Snapshot) || ok && version > w.Revision.Snapshot.Version) {
			return nil
		}
		if !ok {
			if err := isEmpty(ctx, tx, database); err != nil {
				return err
			}
		}
		if err := w.empty(ctx, tx); err != nil {
			return err
		}
		statements := slices.Concat(twinSchema(w.Revision), w.rights(database),
			[]string{fmt.Sprintf("COMMENT ON DATABASE %s IS %s", identifier(database), literal(twinTag(w.Revision.Snapshot)))})
		built = true
		_, err := tx.Exec(ctx, strings.Join(statements, ";\n")) // one message: a policy of 500 tables has some 27,000 statements
		return err
	})
	if err != nil {
		return false, unavailable("the catalog twin", err)
	}
	return built, nil
}

// isEmpty refuses a database that was never a twin and holds something: a wrong DSN must not empty somebody's database.
func isEmpty(ctx context.Context, tx pgx.Tx, database string) error {
	var used bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')`).Scan(&used); err != nil {
		return err
	}
	if used {
		return fmt.Errorf("database %s is no twin, and not empty: name another server", fault.Quote(database))
	}
	return nil
}

const twinTagSQL = `SELECT coalesce(pg_catalog.shobj_description(oid, 'pg_database'), ''), datname,
	EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '` + TwinRole + `') FROM pg_catalog.pg_database
	WHERE datname = pg_catalog.current_database()`

// empty drops all schemas, and makes the role if it is missing.
func (w Twin) empty(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'`)
	if err != nil {
		return err
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		if _, err := tx.Exec(ctx, fmt.Sprintf("DROP SCHEMA %s CASCADE", identifier(schema))); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, twinRoleSQL); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, twinMemberSQL)
	return err
}

// twinRoleSQL makes the role, which all twins of a server share. It does not log in: sessions become it, with limits of their own.
const twinRoleSQL = `DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '` + TwinRole + `') THEN
		CREATE ROLE ` + TwinRole + ` NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT;
	END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN -- the twin of another dataset is built at the same time
	NULL;
END
$$`

// twinMemberSQL lets the owner read as the role.
const twinMemberSQL = `DO $$
BEGIN
	IF NOT pg_catalog.pg_has_role(current_user, '` + TwinRole + `', 'MEMBER') THEN
		EXECUTE format('GRANT ` + TwinRole + ` TO %I', current_user);
	END IF;
END
$$`

// rights take from everybody what a twin's queries have no use for. Only a superuser can take rights on catalogs; the queries themselves
// are rewritten so that they need none.
func (w Twin) rights(database string) []string {
	all := []string{
		fmt.Sprintf("REVOKE ALL ON DATABASE %s FROM PUBLIC", identifier(database)),
		fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", identifier(database), TwinRole),
		fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", identifier(database), TwinConnections),
	}
	for _, name := range slices.Concat(w.Hidden, []TableName{{Schema: "pg_catalog", Name: "pg_hba_file_rules"},
		{Schema: "pg_catalog", Name: "pg_file_settings"}, {Schema: "pg_catalog", Name: "pg_config"}}) {
		all = append(all, fmt.Sprintf(`DO $$
BEGIN
	IF to_regclass(%s) IS NOT NULL AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		REVOKE ALL ON %s FROM PUBLIC;
	END IF;
END
$$`, literal(qualified(name)), qualified(name)))
	}
	return append(all, "GRANT SELECT (datname, encoding) ON pg_catalog.pg_database TO "+TwinRole)
}

// TwinState is the age of a twin relative to a snapshot.
type TwinState int

// The states of a twin relative to a snapshot.
const (
	TwinCurrent TwinState = iota
	TwinOlder             // must be built again
	TwinNewer             // the gateway's snapshot is old
)

// TwinSession is how a transaction on a twin looks names up. Times are written in UTC, as those of all answers.
type TwinSession struct {
	Snapshot   *Snapshot
	SearchPath []string // schemas, the first first
}

// Begin starts a read-only transaction of a twin's owner as [TwinRole], with its limits: five seconds a statement, no files. The state is
// that of the twin in this transaction, whose names stay while it lasts.
func (s TwinSession) Begin(ctx context.Context, conn *pgx.Conn) (pgx.Tx, TwinState, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, TwinOlder, unavailable("the catalog twin", err)
	}
	var tag string
	var limited bool
	if err := tx.QueryRow(ctx, twinBeginSQL, twinPath(s.SearchPath)).Scan(&tag, &limited); err != nil {
		const patience = 5 * time.Second
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, TwinOlder, unavailable("the catalog twin", errors.Join(err, tx.Rollback(back)))
	}
	version, ok := twinVersion(tag)
	switch {
	case !limited: // the server never had a twin, or lost the role
		return tx, TwinOlder, nil
	case tag == twinTag(s.Snapshot):
		return tx, TwinCurrent, nil
	case ok && version > s.Snapshot.Version:
		return tx, TwinNewer, nil
	default:
		return tx, TwinOlder, nil
	}
}

// twinBeginSQL reads the tag as the owner, since the twin's role may not, and then becomes that role: the last output is computed last.
const twinBeginSQL = `SELECT coalesce(d.tag, ''), d.role IS NOT NULL FROM (
	SELECT pg_catalog.shobj_description(oid, 'pg_database') AS tag, pg_catalog.set_config('search_path', $1, true),
		pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('statement_timeout', '5s', true),
		pg_catalog.set_config('lock_timeout', '5s', true), pg_catalog.set_config('work_mem', '32MB', true),
		pg_catalog.set_config('hash_mem_multiplier', '2', true), -- as from 15 on: on 14 element_types did not fit
		pg_catalog.set_config('jit', 'off', true),
		CASE WHEN (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
			THEN pg_catalog.set_config('temp_file_limit', '0', true) END,
		CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '` + TwinRole + `')
			THEN pg_catalog.set_config('role', '` + TwinRole + `', true) END AS role
	FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database() OFFSET 0) d`

// TwinFacts are what rewriting a catalog query needs to know of a twin's server. They change with its version alone, and with its owner.
type TwinFacts struct {
	Owner   uint32 // the role that owns the tables, by OID
	Columns map[TableName][]TwinColumn
	Types   map[uint32]bool // the OIDs of the types that were asked for, and of their arrays
}

// TwinColumn is a column of a catalog, with its type as format_type writes it.
type TwinColumn struct{ Name, Type string }

// LookAtTwin reads the columns of catalogs, and the OIDs of types; what the server's version does not have is absent. The connection is the
// owner's. An error is data/unavailable.
func LookAtTwin(ctx context.Context, conn *pgx.Conn, catalogs, types []TableName) (*TwinFacts, error) {
	facts := &TwinFacts{Columns: map[TableName][]TwinColumn{}, Types: map[uint32]bool{}}
	if err := conn.QueryRow(ctx, "SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user").Scan(&facts.Owner); err != nil {
		return nil, unavailable("the catalog twin", err)
	}
	rows, err := conn.Query(ctx, `SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
		FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname || '.' || c.relname = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`, joined(catalogs))
	if err != nil {
		return nil, unavailable("the catalog twin", err)
	}
	var name TableName
	var column TwinColumn
	if _, err := pgx.ForEachRow(rows, []any{&name.Schema, &name.Name, &column.Name, &column.Type}, func() error {
		facts.Columns[name] = append(facts.Columns[name], column)
		return nil
	}); err != nil {
		return nil, unavailable("the catalog twin", err)
	}
	rows, err = conn.Query(ctx, `SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_catalog.pg_type t
		JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname || '.' || t.typname = ANY ($1)`, joined(types))
	if err != nil {
		return nil, unavailable("the catalog twin", err)
	}
	var oid uint32
	if _, err := pgx.ForEachRow(rows, []any{&oid}, func() error {
		facts.Types[oid] = true
		return nil
	}); err != nil {
		return nil, unavailable("the catalog twin", err)
	}
	return facts, nil
}

// joined writes names with their schemas, unquoted.
func joined(names []TableName) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name.Schema + "." + name.Name
	}
	return all
}
