package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget/pgledger"
	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgrole"
	"noisegate.example/migrations"
)

// control looks at the control database. It reports whether policies can be read from it.
func (d *doctor) control(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const key = "control.dsn"
	conn := d.connect(ctx, key, d.config.Control.DSN)
	if conn == nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d.clock(ctx, key, conn)
	d.room(ctx, key, conn, server.ControlConnections())
	d.replication(ctx, conn)
	if err := migrations.Check(ctx, conn); err != nil {
		d.failed(key, err, "run noisegate migrate")
		return false
	}
	d.ahead(ctx, key, conn)
	d.role(ctx, key, conn, server.LedgerRole())
	ledger, err := pgledger.Open(ctx, d.config.Control.DSN.Reveal())
	if err != nil {
		d.failed(key, err, "see \"Roles\" of the page /docs/operations")
		return true
	}
	ledger.Close()
	d.ok(key, "the schema is this binary's, and the server forgets nothing that it committed")
	return true
}

// connect connects, and says to what; nil when it could not.
func (d *doctor) connect(ctx context.Context, key string, dsn config.DSN) *pgx.Conn {
	conn, err := pgx.Connect(ctx, dsn.Reveal())
	if err != nil {
		d.fail(key, "look at the server, at its pg_hba.conf and at the connection string", "%s", unquoted(err, dsn))
		return nil
	}
	if err := d.config.Versions.Refuse(server.Version(conn)); err != nil {
		d.failed(key, err, "use a version of PostgreSQL that was tested, or say versions: allow-untested")
	} else {
		d.ok(key, "PostgreSQL %s answers", server.Version(conn))
	}
	return conn
}

// unquoted is why a connection failed, without a password.
func unquoted(err error, dsn config.DSN) string {
	text := err.Error()
	if c, parse := pgx.ParseConfig(dsn.Reveal()); parse == nil && c.Password != "" {
		text = strings.ReplaceAll(text, c.Password, "…")
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// role looks whether the role may do more than its task needs.
func (d *doctor) role(ctx context.Context, key string, conn *pgx.Conn, want pgrole.Expectation) {
	if err := pgrole.Check(ctx, conn, want); err != nil {
		d.failed(key, err, "run deploy/roles.sql in this database")
		return
	}
	d.ok(key, "its role may do what its task needs, and no more")
}

// clock compares this machine's clock with the server's.
func (d *doctor) clock(ctx context.Context, key string, conn *pgx.Conn) {
	before := d.now()
	var there time.Time
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.clock_timestamp()").Scan(&there); err != nil {
		d.failed(key, err, "")
		return
	}
	after := d.now()
	if off := max(before.Sub(there), there.Sub(after)); off > skew {
		d.warn(key, "let both machines take their time from one source (NTP)",
			"the server's clock and this machine's differ by %s: tokens end, and windows of budgets open, at other times than is said",
			off.Round(time.Second))
		return
	}
	d.ok(key, "its clock and this machine's agree")
}

// ahead looks whether a ledger can be written: nothing is while its server's clock is far ahead of its newest entry and of the gateway's
// clock, and time stands still in one whose newest entry is of the future.
func (d *doctor) ahead(ctx context.Context, key string, conn *pgx.Conn) {
	var there time.Time
	var datasets []string
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp(), ARRAY(SELECT dataset FROM noisegate.chain WHERE at > $1 ORDER BY dataset)`,
		d.now().Add(pgledger.MaxAhead)).Scan(&there, &datasets); err != nil {
		d.failed(key, err, "")
		return
	}
	const runbook = "see \"A clock is wrong\" of the page /docs/runbooks"
	if by := there.Sub(d.now()); by > pgledger.MaxAhead {
		d.fail(key, runbook, "the server's clock is %s ahead of this machine's: nothing is written, and questions are refused (ledger/clock)",
			by.Round(time.Second))
	}
	if len(datasets) > 0 {
		d.fail(key, "see \"A ledger's time is of the future\" of the page /docs/runbooks",
			"the newest entry of %s is of the future: rates, tranches and second signatures wait until then",
			strings.Join(datasets, ", "))
	}
}

// room looks whether the server lets in as many connections as the gateway opens.
func (d *doctor) room(ctx context.Context, key string, conn *pgx.Conn, wanted int) {
	var all, role int
	if err := conn.QueryRow(ctx, `SELECT
		pg_catalog.current_setting('max_connections')::int - pg_catalog.current_setting('superuser_reserved_connections')::int,
		(SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = current_user)`).Scan(&all, &role); err != nil {
		d.failed(key, err, "")
		return
	}
	if role >= 0 {
		all = min(all, role)
	}
	if all < wanted {
		d.fail(key, "raise max_connections or the role's connection limit, or lower connections",
			"the server lets in %d connections, the gateway opens up to %d", all, wanted)
		return
	}
	d.ok(key, "the server lets in %d connections, of which the gateway needs at least %d", all, wanted)
}

// replication warns of standbys that may lack what was committed: after a failover to one, datasets are held. Where the gateway is to
// follow it, it refuses to start, unless that is taken for granted.
func (d *doctor) replication(ctx context.Context, conn *pgx.Conn) {
	const key = "control.dsn"
	var senders int
	var names string
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.count(*), pg_catalog.current_setting('synchronous_standby_names')
		FROM pg_catalog.pg_stat_replication`).Scan(&senders, &names); err != nil {
		d.failed(key, err, "")
		return
	}
	several, err := server.SeveralHosts(d.config.Control.DSN)
	if err != nil {
		d.failed(key, err, "")
		return
	}
	if several && names == "" && d.config.Control.Replication != config.AsyncAccepted {
		d.fail(key, "set synchronous_standby_names, or say control.replication: "+config.AsyncAccepted,
			"it names several hosts, and synchronous_standby_names is empty: a standby that takes over lacks what was committed last")
		return
	}
	if senders > 0 && names == "" {
		d.warn(key, "set synchronous_standby_names, or never promote them",
			"%d standbys follow asynchronously: after a failover to one that lacks charges, datasets are held until these are booked again", senders)
		return
	}
	d.ok(key, "%d standbys, synchronous_standby_names %q", senders, names)
}

// dataset looks at one protected database, and at its policy where that can be read.
func (d *doctor) dataset(ctx context.Context, name string, c *config.Dataset, governed bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := "datasets." + name
	conn := d.connect(ctx, key, c.DSN)
	if conn == nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d.role(ctx, key, conn, pgrole.Expectation{Task: pgrole.Reader})
	d.clock(ctx, key, conn)
	d.room(ctx, key, conn, c.Connections+1) // one to look whether it answers
	if c.StewardKeysFile == "" {
		d.warn(key+".steward_keys_file", "name the public keys of stewards: see \"Budgets\" of the page /docs/operations",
			"is not set: whoever holds a steward's token raises caps alone")
	} else if _, err := d.config.Stewards(name); err != nil {
		d.failed(key+".steward_keys_file", err, "")
	}
	d.twin(ctx, name, c)
	if !governed {
		return
	}
	on := d.policy(ctx, name, c)
	if on == nil {
		return
	}
	d.otherReaders(ctx, key, conn, on)
	d.rowSecurity(key, on)
	d.copies(ctx, key, c, on)
}

// policy looks whether the policy in force is what the tables are; nil when there is none to look at.
func (d *doctor) policy(ctx context.Context, name string, c *config.Dataset) *catalog.Snapshot {
	key := "datasets." + name
	const apply = "noisegate policy apply FILE"
	pool, err := server.OpenPool(ctx, d.config.Control.DSN)
	if err != nil {
		d.failed(key, err, "")
		return nil
	}
	defer pool.Close()
	revision, err := catalog.NewStore(pool, nil).Load(ctx, name)
	switch {
	case fault.CodeOf(err) == fault.CodeUnknownDataset:
		d.fail(key, apply, "no policy was applied yet: every question is refused")
		return nil
	case err != nil:
		d.failed(key, err, apply)
		return nil
	}
	database, err := pgexec.Open(ctx, pgexec.Config{DSN: c.DSN.Reveal(), Connections: 1, StatementTimeout: patience,
		Versions: d.config.Versions})
	if err == nil {
		defer database.Close()
		if revision, err = database.Counted(ctx, revision); err == nil {
			err = database.Recheck(ctx, revision)
		}
	}
	if err != nil {
		d.failed(key, err, apply)
		return nil
	}
	d.ok(key, "policy version %d is in force, and the tables are what it was checked against", revision.Snapshot.Version)
	if database.Distributed() {
		d.shards(ctx, key, database, revision.Snapshot)
	}
	return revision.Snapshot
}

// shards looks at the servers that the tables of a database with Citus lie on.
func (d *doctor) shards(ctx context.Context, key string, database *pgexec.Database, on *catalog.Snapshot) {
	apart, err := database.Shards(ctx, on)
	switch {
	case err != nil:
		d.failed(key, err, "compare the shards on the workers with their tables on the coordinator")
	case len(apart) > 0:
		d.warn(key, "distribute tables of people by the unit's id, and make public ones reference tables",
			"joins of these tables are refused, or computed by the coordinator alone: %s", listed(apart))
	default:
		d.ok(key, "its shards are what the policy was checked against, and lie by people")
	}
}

// otherReaders names who else can log in and read protected tables: nothing here holds them back. Views and functions of others that show
// the same rows are not looked at.
func (d *doctor) otherReaders(ctx context.Context, key string, conn *pgx.Conn, on *catalog.Snapshot) {
	var tables []uint32
	for _, t := range on.Tables {
		if !t.Public {
			tables = append(tables, t.OID)
		}
	}
	known := []string{conn.Config().User}
	if dsn := d.config.Datasets[on.Dataset].PrepareDSN; !dsn.IsZero() {
		if c, err := pgx.ParseConfig(dsn.Reveal()); err == nil {
			known = append(known, c.User)
		}
	}
	rows, err := conn.Query(ctx, `SELECT r.rolname::text || CASE WHEN r.rolsuper THEN ' (superuser)' ELSE '' END FROM pg_catalog.pg_roles r
		WHERE r.rolcanlogin AND r.rolname <> ALL ($2::text[]) AND EXISTS (
			SELECT 1 FROM pg_catalog.unnest($1::oid[]) t (id), pg_catalog.pg_roles g
			WHERE pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER') -- it may SET ROLE, where it does not inherit
				AND (pg_catalog.has_table_privilege(g.oid, t.id, 'SELECT') OR pg_catalog.has_any_column_privilege(g.oid, t.id, 'SELECT')))
		ORDER BY r.rolsuper, r.rolname`, tables, known)
	var others []string
	if err == nil {
		others, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	switch {
	case err != nil:
		d.failed(key, err, "")
	case slices.ContainsFunc(others, func(name string) bool { return !strings.HasSuffix(name, " (superuser)") }):
		d.warn(key, "see that none of them is an analyst's; else REVOKE SELECT, or ALTER ROLE ... NOLOGIN",
			"others can log in and read protected tables as they are: %s", listed(others))
	default:
		d.ok(key, "nobody else can log in and read protected tables (views and functions over them apart), but %s", listed(others))
	}
}

// listed are the first of some names.
func listed(names []string) string {
	const shown = 8
	switch {
	case len(names) == 0:
		return "nobody"
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// rowSecurity says which tables the gateway's role may see a part of only.
func (d *doctor) rowSecurity(key string, on *catalog.Snapshot) {
	var some []string
	for _, t := range on.Tables {
		if t.RowSecurity {
			some = append(some, catalog.TableName{Schema: t.Schema, Name: t.Name}.String())
		}
	}
	if len(some) > 0 {
		d.warn(key, "see that its policies give the gateway's role the rows that answers are to be about",
			"row level security is on for %s: rows that it hides are not counted", listed(some))
		return
	}
	d.ok(key, "row level security hides no rows from the gateway")
}

// copies looks whether the tables that the policy wants prepared are.
func (d *doctor) copies(ctx context.Context, key string, c *config.Dataset, on *catalog.Snapshot) {
	switch {
	case !on.Prepares():
		return
	case c.PrepareDSN.IsZero():
		d.warn(key+".prepare_dsn", "name the connection string of the role noisegate_prepare",
			"is missing, and the policy asks for prepared copies")
		return
	}
	role, err := server.Preparer(d.config, on.Dataset)
	if err != nil {
		d.fail(key+".dsn", "write it as postgres://role@host/database", "cannot be read") // the cause may quote a password
		return
	}
	states, err := role.State(ctx, on)
	if err != nil {
		d.failed(key+".prepare_dsn", err, "run deploy/roles.sql in this database")
		return
	}
	for _, p := range states {
		say := d.warn
		if t, ok := on.Named(p.Table.Schema, p.Table.Name); ok && t.PreparedOnly {
			say = d.fail // its questions are refused
		}
		switch {
		case p.Problem != nil:
			d.failed(key+".prepare_dsn", errors.Join(p.Problem), "")
		case p.Wanted && p.Serving() == nil:
			say(key, "noisegate prepare --dataset "+on.Dataset, "no copy of %s is what the policy asks for", p.Table)
		case p.Wanted:
			d.ok(key, "a copy of %s serves, as of %s", p.Table, p.Serving().AsOf.UTC().Format(time.DateTime))
		}
	}
}
