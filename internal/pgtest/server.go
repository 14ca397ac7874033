package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgversion"
)

// DSNEnv names the environment variable with the URL of a superuser's connection to a server that tests may use.
const DSNEnv = "NOISEGATE_TEST_DSN"

// rolesLock is the advisory lock under which test processes on one server change its roles.
const rolesLock int64 = 0x6e67726f6c6573 // "ngroles"

// fetchPatience limits how long it may take to find a server, which may have to be fetched.
const fetchPatience = 5 * time.Minute

// Programs finds the server programs for tests: of the version that [pgserver.VersionVariable] asks for, or the newest
// installed ones. They are fetched when there are none.
func Programs(ctx context.Context) (pgserver.Programs, error) {
	wanted, err := pgserver.WantedIn(os.Getenv) //nolint:forbidigo // this package is test equipment; no product imports it
	if err != nil {
		return pgserver.Programs{}, err
	}
	return pgserver.Find(ctx, wanted)
}

// server is a PostgreSQL on which tests create databases.
type server struct {
	major     int       // its version
	admin     url.URL   // a superuser's connection to the maintenance database
	templates templates // of a private server: a server that stays would keep them

	mu          sync.Mutex
	maintenance *pgx.Conn // of all tests, as each connection costs the server milliseconds; nil: none yet
}

// sharedServer is the server of this test process: found once, used by all tests, and, if private, stopped by the end of
// the process (see pgserver). It and [ownServers] are the globals of the package, because the testing package offers no place for it.
var sharedServer = sync.OnceValues(findServer)

// findServer takes, in this order: the server that the environment names; a local one that lets this user be superuser
// and log in as Noisegate's roles, unless the environment asks for a version; a private one.
func findServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchPatience)
	defer cancel()
	if dsn := os.Getenv(DSNEnv); dsn != "" { //nolint:forbidigo // this package is test equipment; no product imports it
		s, err := newServer(ctx, dsn)
		if err != nil {
			return nil, fmt.Errorf("pgtest: the server of %s cannot be used: %w", DSNEnv, err)
		}
		return s, nil
	}
	for _, dir := range []string{"/var/run/postgresql", "/tmp"} {
		if _, err := os.Stat(dir + "/.s.PGSQL.5432"); err != nil || os.Getenv(pgserver.VersionVariable) != "" { //nolint:forbidigo // as above
			continue
		}
		if s, err := newServer(ctx, "postgres:///postgres?connect_timeout=2&host="+dir); err == nil {
			return s, nil
		}
	}
	programs, err := Programs(ctx)
	if err != nil {
		return nil, fmt.Errorf("pgtest: tests need PostgreSQL: %w (or set %s)", err, DSNEnv)
	}
	private, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: true})
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return newPrivate(ctx, private)
}

// newServer checks that tests can work on a server, and makes Noisegate's roles there.
func newServer(ctx context.Context, dsn string) (*server, error) {
	admin, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("the DSN is not a URL")
	}
	s := &server{admin: *admin}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if s.major, err = pgversion.Major(conn.PgConn().ParameterStatus("server_version")); err != nil {
		return nil, err
	}
	var super bool
	if err := conn.QueryRow(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&super); err != nil {
		return nil, err
	}
	if !super {
		return nil, errors.New("its user is not a superuser")
	}
	if err := s.prepareRoles(ctx); err != nil {
		return nil, err
	}
	reader, err := pgx.Connect(ctx, s.dsn("noisegate_reader", ""))
	if err != nil {
		return nil, fmt.Errorf("the role noisegate_reader cannot log in: %w", err)
	}
	return s, reader.Close(ctx)
}

// prepareRoles makes the roles from deploy/roles.sql, in a database that is dropped at once: the file also takes rights away
// in the database that it runs in, and the maintenance database is not ours. With a password in the DSN the roles get the
// same one.
func (s *server) prepareRoles(ctx context.Context) error {
	name, drop, err := s.createDatabase(ctx, "template0")
	if err != nil {
		return err
	}
	err = s.run(ctx, name, roles())
	if password, ok := s.admin.User.Password(); ok && err == nil {
		for _, role := range []string{"noisegate_owner", "noisegate", "noisegate_reader", "noisegate_prepare"} {
			var alter string
			if alter, err = s.format(ctx, "ALTER ROLE %I PASSWORD %L", role, password); err == nil {
				err = s.run(ctx, name, alter)
			}
			if err != nil {
				break
			}
		}
	}
	return errors.Join(err, drop(ctx))
}

// format fills in names and literals by the server's own rules.
func (s *server) format(ctx context.Context, pattern string, args ...string) (text string, err error) {
	conn, err := pgx.Connect(ctx, s.admin.String())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT format($1, VARIADIC $2::text[])", pattern, args).Scan(&text)
	return text, err
}

// dsn is how a role connects to a database; empty names mean those of the superuser's connection.
func (s *server) dsn(role, database string) string {
	u := s.admin
	if role != "" {
		u.User = url.User(role)
		if password, ok := s.admin.User.Password(); ok {
			u.User = url.UserPassword(role, password)
		}
	}
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

// run executes SQL text of any number of statements as superuser. Text that touches roles, which all databases of a server
// share, must not run twice at a time: a lock in the maintenance database sees to it.
func (s *server) run(ctx context.Context, database, sql string) error {
	lock, err := pgx.Connect(ctx, s.admin.String())
	if err != nil {
		return err
	}
	defer lock.Close(ctx) // and the lock goes with it
	if _, err := lock.Exec(ctx, "SELECT pg_advisory_lock($1)", rolesLock); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.dsn("", database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// createDatabase copies a database, and gives the function that drops the copy and its open connections. It copies file by file where the
// server can do it in another way as well (from version 15 on).
func (s *server) createDatabase(ctx context.Context, template string) (name string, drop func(context.Context) error, err error) {
	name = fmt.Sprintf("noisegate_test_%d_%d", os.Getpid(), time.Now().UnixNano())
	create := "CREATE DATABASE " + name + " TEMPLATE " + template + " ENCODING 'UTF8' LOCALE 'C'"
	if s.major >= 15 {
		create += " STRATEGY FILE_COPY" // no page goes through the log
	}
	if err := s.maintain(ctx, create); err != nil {
		return "", nil, err
	}
	return name, func(ctx context.Context) error {
		return s.maintain(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}, nil
}

// maintain runs a statement in the maintenance database.
func (s *server) maintain(ctx context.Context, sql string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maintenance == nil || s.maintenance.Ping(ctx) != nil { // a test may have restarted the server
		if s.maintenance, err = pgx.Connect(ctx, s.admin.String()); err != nil {
			s.maintenance = nil
			return err
		}
	}
	_, err = s.maintenance.Exec(ctx, sql)
	return err
}
