package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math/big"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/deploy"
	"noisegate.example/internal/pgserver"
)

//go:embed demo_schema.sql
var demoSchema string

// Names of the demo's databases.
const (
	demoControl   = "noisegate_demo"
	demoProtected = "noisegate_demo_census"
	demoCatalog   = "noisegate_demo_catalog" // the twin of the protected one, without a row
)

// demoUpgrade gives the tables of an older demo what preparing them needs.
const demoUpgrade = `
DO $$BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = 'public.visits'::regclass AND indisprimary) THEN
		ALTER TABLE public.visits ADD PRIMARY KEY (visit_id);
	END IF;
END$$;
GRANT USAGE ON SCHEMA public TO noisegate_prepare;
GRANT SELECT ON public.visits TO noisegate_prepare;`

// demoDatabase is the PostgreSQL that a demo runs on: a private server, or two databases on a server of the user's.
type demoDatabase struct {
	server   *pgserver.Server                       // nil on a server of the user's
	dsn      func(role, database string) config.DSN // how a role connects
	super    string                                 // the role that sets everything up
	leftover bool                                   // the databases were there already (--keep)
}

// startDemoDatabase starts a private server of the wanted programs. It lives in dir, or in a temporary directory when dir
// is empty: then its cluster is a copy of the one that initdb made for the first such server.
func startDemoDatabase(ctx context.Context, wanted pgserver.Wanted, dir string) (*demoDatabase, int, error) {
	if wanted.Version == 0 {
		wanted.Version = pgserver.ClusterVersion(dir)
	}
	programs, err := pgserver.Find(ctx, wanted)
	if err != nil {
		return nil, 0, err
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Dir: dir, Cached: dir == "", Settings: durable()})
	if err != nil {
		return nil, 0, err
	}
	d := &demoDatabase{server: server, super: pgserver.Superuser}
	d.dsn = func(role, database string) config.DSN { return config.NewDSN(server.DSN(role, database)) }
	return d, programs.Version, nil
}

// wantedServer is what a flag (unless it is empty) or the environment asks for. It reports a download on standard error, since it takes a
// while.
func (a *app) wantedServer(version string) (pgserver.Wanted, error) {
	wanted, err := pgserver.WantedIn(func(variable string) string {
		if variable == pgserver.VersionVariable && version != "" {
			return version
		}
		return a.env[variable]
	})
	if err != nil {
		return wanted, usage(err)
	}
	wanted.Fetching = func(version string) {
		fmt.Fprintf(a.Err, "  PostgreSQL %s is fetched, once (15 MB)\n", version)
	}
	return wanted, nil
}

// durable are the settings without which the gateway refuses a ledger: what was committed must survive a power failure.
func durable() map[string]string {
	return map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
}

// borrowDemoDatabase uses a server of the user's, as a superuser. Its roles belong to the whole server, so a server that
// has Noisegate's roles already is left alone: the demo would give them new passwords.
func borrowDemoDatabase(ctx context.Context, superuser string) (*demoDatabase, int, error) {
	base, err := url.Parse(superuser)
	if err != nil || base.Scheme != "postgres" && base.Scheme != "postgresql" {
		return nil, 0, usage(errors.New("--dsn must be a URL such as postgres://postgres@localhost/postgres"))
	}
	conn, err := pgx.Connect(ctx, superuser)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot connect to the server of --dsn: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version int
	var super, taken bool
	var user string
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000, rolsuper, current_user,
		EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname IN ('noisegate', 'noisegate_owner', 'noisegate_reader', 'noisegate_prepare'))
		FROM pg_catalog.pg_roles WHERE rolname = current_user`).Scan(&version, &super, &user, &taken); err != nil {
		return nil, 0, err
	}
	switch {
	case !super:
		return nil, 0, usage(errors.New("--dsn: the demo creates roles and databases, and needs a superuser"))
	case taken:
		return nil, 0,
			usage(errors.New("--dsn: this server has Noisegate's roles already, and the demo would change them; take another server"))
	}
	password := rand.Text()
	d := &demoDatabase{super: user}
	d.dsn = func(role, database string) config.DSN {
		u := *base
		u.Path = "/" + database
		if role != user {
			u.User = url.UserPassword(role, password)
		}
		return config.NewDSN(u.String())
	}
	// One text is one transaction: all of them or none. Utility statements take no parameters; rand.Text is letters and digits.
	create := ""
	for _, role := range []string{"noisegate_owner", "noisegate", "noisegate_reader", "noisegate_prepare"} {
		create += "CREATE ROLE " + role + " LOGIN PASSWORD '" + password + "';"
	}
	if _, err := conn.Exec(ctx, create); err != nil {
		return nil, 0, fmt.Errorf("cannot create the roles: %w", err)
	}
	return d, version, nil
}

// prepare creates roles and databases, unless an earlier demo left them in the directory it was told to keep.
func (d *demoDatabase) prepare(ctx context.Context) error {
	err := d.as(ctx, d.super, "postgres", func(conn *pgx.Conn) error {
		for _, name := range []string{demoCatalog, demoProtected, demoControl} { // the catalog twin may be missing of an older demo
			if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)",
				name).Scan(&d.leftover); err != nil {
				return err
			}
			if d.leftover {
				continue
			}
			if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || d.leftover {
		return err
	}
	if err := d.as(ctx, d.super, demoControl, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, deploy.Roles()+deploy.Control())
		return err
	}); err != nil {
		return err
	}
	return d.as(ctx, d.super, demoProtected, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, deploy.Roles())
		return err
	})
}

// load fills the protected database with invented people, or gives those of an older demo what they lack.
func (d *demoDatabase) load(ctx context.Context, rows int) error {
	if d.leftover {
		return d.as(ctx, d.super, demoProtected, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, deploy.Roles()+demoUpgrade)
			return err
		})
	}
	return d.as(ctx, d.super, demoProtected, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, demoSchema); err != nil {
				return err
			}
			if err := copyPeople(ctx, tx, demodata.People(rows)); err != nil {
				return err
			}
			if err := copyVisits(ctx, tx, rows); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "INSERT INTO public.regions SELECT unnest($1::text[])", demodata.Regions()); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "CREATE INDEX ON public.visits (person_id); ANALYZE public.people, public.visits, public.regions")
			return err
		})
	})
}

func copyPeople(ctx context.Context, tx pgx.Tx, people []demodata.Person) error {
	columns := []string{"person_id", "age", "workclass", "education", "education_num", "marital_status", "occupation",
		"relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "people"}, columns, pgx.CopyFromSlice(len(people), func(i int) ([]any, error) {
		p := &people[i]
		return []any{p.ID, p.Age, nullable(p.Workclass), p.Education, p.EducationNum, p.MaritalStatus, nullable(p.Occupation),
			p.Relationship, p.Race, p.Sex, p.CapitalGain, p.CapitalLoss, p.HoursPerWeek, nullable(p.NativeCountry), p.Income}, nil
	}))
	return err
}

func copyVisits(ctx context.Context, tx pgx.Tx, people int) error {
	var visits []demodata.Visit
	if err := demodata.Visits(people, func(v demodata.Visit) error { visits = append(visits, v); return nil }); err != nil {
		return err
	}
	columns := []string{"visit_id", "person_id", "day", "region", "amount"}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "visits"}, columns, pgx.CopyFromSlice(len(visits), func(i int) ([]any, error) {
		v := &visits[i]
		return []any{v.ID, v.PersonID, v.Day, v.Region, pgtype.Numeric{Int: big.NewInt(v.Cents), Exp: -2, Valid: true}}, nil
	}))
	return err
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// as runs f on a new connection.
func (d *demoDatabase) as(ctx context.Context, role, database string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.dsn(role, database).Reveal())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(conn)
}

// close ends a private server; on a server of the user's it takes away what the demo made.
func (d *demoDatabase) close(ctx context.Context) error {
	if d.server != nil {
		return d.server.Stop()
	}
	return d.as(ctx, d.super, "postgres", func(conn *pgx.Conn) error {
		for _, statement := range []string{
			"DROP DATABASE IF EXISTS " + demoControl + " WITH (FORCE)",
			"DROP DATABASE IF EXISTS " + demoProtected + " WITH (FORCE)",
			"DROP DATABASE IF EXISTS " + demoCatalog + " WITH (FORCE)",
			"DROP ROLE IF EXISTS noisegate_owner, noisegate, noisegate_reader, noisegate_prepare, " + catalog.TwinRole,
		} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}
