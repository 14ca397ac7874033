package pgtest

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/deploy"
	"noisegate.example/internal/pgserver"
	"noisegate.example/migrations"
)

// stage is how far a database is prepared. Each stage contains the one before.
type stage int

const (
	empty      stage = iota
	secured          // deploy/roles.sql
	unmigrated       // deploy/control.sql
	migrated         // all migrations
)

// templates are the databases of a private server that others are copied from: a copy takes a tenth of the time of the statements.
type templates struct {
	private bool // the server ends with its tests, and the templates with it
	mu      sync.Mutex
	names   map[stage]string
}

// makeDatabase makes a database of a stage and gives the function that drops it.
func (s *server) makeDatabase(ctx context.Context, st stage) (name string, drop func(context.Context) error, err error) {
	if st == empty || !s.templates.private {
		return s.buildDatabase(ctx, st)
	}
	template, err := s.template(ctx, st)
	if err != nil {
		return "", nil, err
	}
	name, drop, err = s.createDatabase(ctx, template)
	if err != nil {
		return "", nil, err
	}
	// A copy has everything of its template but the rights to the database itself (roles.sql).
	return name, drop, s.maintain(ctx, "REVOKE TEMPORARY ON DATABASE "+name+" FROM PUBLIC")
}

// template is the name of the database that those of a stage are copied from. Nothing connects to it after it is made.
func (s *server) template(ctx context.Context, st stage) (string, error) {
	s.templates.mu.Lock()
	defer s.templates.mu.Unlock()
	if name, made := s.templates.names[st]; made {
		return name, nil
	}
	name, _, err := s.buildDatabase(ctx, st)
	if err != nil {
		return "", err
	}
	s.templates.names[st] = name
	return name, nil
}

var connectionLimit = regexp.MustCompile(`(?m)^ALTER ROLE \w+ CONNECTION LIMIT \d+;$`)

// roles is deploy/roles.sql without connection limits: they suit one gateway, and a server of tests has many.
func roles() string { return connectionLimit.ReplaceAllString(deploy.Roles(), "") }

// buildDatabase makes a database by the statements that an operator would run.
func (s *server) buildDatabase(ctx context.Context, st stage) (name string, drop func(context.Context) error, err error) {
	name, drop, err = s.createDatabase(ctx, "template0")
	if err != nil {
		return "", nil, err
	}
	if st >= secured {
		if err := s.run(ctx, name, roles()); err != nil {
			return "", nil, err
		}
	}
	if st >= unmigrated {
		if err := s.run(ctx, name, deploy.Control()); err != nil {
			return "", nil, err
		}
	}
	if st >= migrated {
		if err := s.migrate(ctx, name); err != nil {
			return "", nil, err
		}
	}
	return name, drop, nil
}

func (s *server) migrate(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.dsn("noisegate_owner", name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = migrations.Apply(ctx, conn)
	return err
}

// newPrivate is [newServer] for a server that ends with the tests.
func newPrivate(ctx context.Context, private *pgserver.Server) (*server, error) {
	s, err := newServer(ctx, private.DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s.templates.private, s.templates.names = true, map[stage]string{}
	return s, nil
}

// ownServers are the servers that tests started themselves.
var ownServers = sync.OnceValue(func() *servers { return &servers{known: map[*pgserver.Server]*server{}} })

type servers struct {
	mu    sync.Mutex
	known map[*pgserver.Server]*server
}

func (l *servers) find(ctx context.Context, own *pgserver.Server) (*server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.known[own]; ok {
		return s, nil
	}
	s, err := newPrivate(ctx, own)
	if err == nil {
		l.known[own] = s
	}
	return s, err
}
