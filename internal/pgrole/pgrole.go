// Package pgrole refuses to work with a PostgreSQL role that can do more than its task needs.
//
// It knows which attributes, memberships and rights make a role dangerous to a privacy gateway, and asks PostgreSQL for
// them. It does not know queries, policies or ledgers.
package pgrole

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Task is what a role is for.
type Task int

const (
	// Reader reads protected tables. It must not write anything anywhere: whatever it could write, an analyst's query that
	// slipped through every other guard could write too.
	Reader Task = iota + 1
	// Ledger adds to the control database. It must not change or remove what is written there once.
	Ledger
	// Preparer reads protected tables and makes copies of them in a separate schema. It must not write anything anywhere else.
	Preparer
)

// Expectation says what a role is for and what it must therefore not be able to do.
type Expectation struct {
	Task Task
	// AppendOnly are the tables of the ledger, as schema.table, that the role must not change or delete rows of. Tables that
	// do not exist are refused as well: a check of nothing proves nothing.
	AppendOnly []string
	// Schema is where a preparer may do what it likes.
	Schema string
}

// Check returns nil when the connection's role cannot do more than its task needs. Otherwise the error names the role and
// everything that is wrong with it, one line each, with what to do about it.
func Check(ctx context.Context, conn *pgx.Conn, want Expectation) error {
	c := &checker{ctx: ctx, conn: conn}
	c.identity()
	if c.attributes(); c.superuser {
		return c.result() // a superuser may do everything else as well; listing it would hide the point
	}
	c.memberships()
	switch want.Task {
	case Reader:
		c.writes("")
		c.creates("")
		c.largeObjects()
	case Preparer:
		c.writes(want.Schema)
		c.creates(want.Schema)
		c.largeObjects()
	case Ledger:
		c.appendOnly(want.AppendOnly)
		c.ownsLedger()
	default:
		return errors.New("pgrole: no task was named")
	}
	return c.result()
}

type checker struct {
	ctx       context.Context
	conn      *pgx.Conn
	role      string
	superuser bool
	dangers   []error
	err       error // of the check itself; ends it
}

func (c *checker) danger(remedy, format string, args ...any) {
	c.dangers = append(c.dangers, fmt.Errorf("role %s %s; %s", c.role, fmt.Sprintf(format, args...), remedy))
}

func (c *checker) result() error {
	if c.err != nil {
		return fmt.Errorf("pgrole: cannot check role %s: %w", c.role, c.err)
	}
	return errors.Join(c.dangers...)
}

// strings runs a query of one text column.
func (c *checker) strings(sql string, args ...any) []string {
	if c.err != nil {
		return nil
	}
	rows, err := c.conn.Query(c.ctx, sql, args...)
	if err != nil {
		c.err = err
		return nil
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c.err = err
	return list
}

// identity refuses a session that could become another role by RESET ROLE.
func (c *checker) identity() {
	names := c.strings("SELECT current_user::text UNION ALL SELECT session_user::text")
	if len(names) != 2 {
		return
	}
	c.role = names[0]
	if names[0] != names[1] {
		c.danger("log in as it", "is only assumed by a session of %s, which could turn back", names[1])
	}
}

func (c *checker) attributes() {
	for _, attribute := range c.strings(`SELECT a.name FROM pg_catalog.pg_roles r
		CROSS JOIN LATERAL (VALUES ('SUPERUSER', r.rolsuper), ('BYPASSRLS', r.rolbypassrls), ('CREATEROLE', r.rolcreaterole),
			('CREATEDB', r.rolcreatedb), ('REPLICATION', r.rolreplication)) a (name, has)
		WHERE r.rolname = current_user AND a.has`) {
		c.superuser = c.superuser || attribute == "SUPERUSER"
		c.danger(fmt.Sprintf("ALTER ROLE %s NO%s", c.quoted(), attribute), "has the attribute %s", attribute)
	}
}

// memberships refuses PostgreSQL's predefined roles, which all give rights over the whole server or database. It also refuses roles with a
// dangerous attribute, which a member can assume. pg_database_owner has the owner of the database as its member.
func (c *checker) memberships() {
	for _, of := range c.strings(`SELECT r.rolname::text FROM pg_catalog.pg_roles r
		WHERE r.rolname <> current_user AND pg_catalog.pg_has_role(r.oid, 'MEMBER')
			AND (r.rolname LIKE 'pg\_%' OR r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication)
		ORDER BY 1`) {
		remedy := fmt.Sprintf("REVOKE %s FROM %s", pgx.Identifier{of}.Sanitize(), c.quoted())
		if of == "pg_database_owner" {
			remedy = "ALTER DATABASE ... OWNER TO somebody else"
		}
		c.danger(remedy, "is a member of %s", of)
	}
}

// writes refuses rights on tables beyond reading, by column too, and ownership, which gives all of them; but in a schema, unless it is "".
func (c *checker) writes(but string) {
	for _, table := range c.strings(`SELECT pg_catalog.format('%I.%I', n.nspname, t.relname) || ': ' || pg_catalog.string_agg(p.name, ', ' ORDER BY p.place)
		FROM pg_catalog.pg_class t
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		CROSS JOIN LATERAL (VALUES
			(1, 'owner', pg_catalog.pg_has_role(t.relowner, 'USAGE')),
			(2, 'INSERT', pg_catalog.has_table_privilege(t.oid, 'INSERT') OR pg_catalog.has_any_column_privilege(t.oid, 'INSERT')),
			(3, 'UPDATE', pg_catalog.has_table_privilege(t.oid, 'UPDATE') OR pg_catalog.has_any_column_privilege(t.oid, 'UPDATE')),
			(4, 'DELETE', pg_catalog.has_table_privilege(t.oid, 'DELETE')),
			(5, 'TRUNCATE', pg_catalog.has_table_privilege(t.oid, 'TRUNCATE')),
			(6, 'TRIGGER', pg_catalog.has_table_privilege(t.oid, 'TRIGGER'))) p (place, name, has)
		WHERE t.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', $1) AND p.has
		GROUP BY n.nspname, t.relname ORDER BY 1 LIMIT 5`, but) {
		name, rights, _ := strings.Cut(table, ": ")
		c.danger(fmt.Sprintf("REVOKE ALL ON %s FROM %s; GRANT SELECT ON %s TO %s", name, c.quoted(), name, c.quoted()),
			"may do more with table %s than read it (%s)", name, rights)
	}
}

// creates refuses the right to make objects, but in a schema: temporary ones too, because they come before others in name resolution.
func (c *checker) creates(but string) {
	for _, schema := range c.strings(`SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace n
		WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> $1 AND pg_catalog.has_schema_privilege(n.oid, 'CREATE') ORDER BY 1 LIMIT 5`,
		but) {
		c.danger(fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM PUBLIC, %s", schema, c.quoted()), "may create objects in schema %s", schema)
	}
	for _, right := range c.strings(`SELECT p.name FROM (VALUES ('CREATE'), ('TEMPORARY')) p (name)
		WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), p.name)`) {
		c.danger(fmt.Sprintf("REVOKE %s ON DATABASE ... FROM PUBLIC, %s", right, c.quoted()), "has the right %s on the database", right)
	}
}

// largeObjects refuses the functions that write large objects, which work even in a read-only transaction.
func (c *checker) largeObjects() {
	for range c.strings(`SELECT p.proname::text FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.proname IN ('lo_create', 'lo_creat', 'lo_from_bytea')
			AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') LIMIT 1`) {
		c.danger("run deploy/roles.sql in this database", "may create large objects")
	}
}

func (c *checker) appendOnly(tables []string) {
	for _, table := range tables {
		if missing := c.strings("SELECT 'x' WHERE pg_catalog.to_regclass($1) IS NULL", table); len(missing) > 0 {
			c.danger("run noisegate migrate", "cannot be checked on table %s, which does not exist", table)
			continue
		}
		for _, right := range c.strings(`SELECT p.name FROM (VALUES ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('TRIGGER')) p (name)
			WHERE pg_catalog.has_table_privilege($1::text, p.name)
				OR p.name = 'UPDATE' AND pg_catalog.has_any_column_privilege($1::text, 'UPDATE')`, table) {
			c.danger(fmt.Sprintf("REVOKE %s ON %s FROM %s", right, table, c.quoted()), "has the right %s on the append-only table %s", right, table)
		}
	}
}

// ownsLedger refuses the owner of the schema or of anything in it: owners can switch off what protects the ledger.
func (c *checker) ownsLedger() {
	for _, object := range c.strings(`SELECT 'schema noisegate' FROM pg_catalog.pg_namespace n
			WHERE n.nspname = 'noisegate' AND pg_catalog.pg_has_role(n.nspowner, 'USAGE')
		UNION ALL (SELECT 'table ' || pg_catalog.format('%I.%I', n.nspname, t.relname)
			FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
			WHERE n.nspname = 'noisegate' AND t.relkind IN ('r', 'p') AND pg_catalog.pg_has_role(t.relowner, 'USAGE') ORDER BY 1 LIMIT 5)`) {
		c.danger("let noisegate_owner own it", "owns %s", object)
	}
}

func (c *checker) quoted() string { return pgx.Identifier{c.role}.Sanitize() }
