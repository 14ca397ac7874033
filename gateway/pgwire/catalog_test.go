package pgwire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/pgwire"
	"noisegate.example/gateway/twin"
	"noisegate.example/internal/pgtest"
)

// withTwin opens a door whose dataset has a catalog twin.
func withTwin(t *testing.T) pgwire.Door {
	t.Helper()
	return pgwire.OpenedWith(t, func(g *gatewaytest.Gateway) pgwire.Catalog { return twinOf(t, g) })
}

// twinOf makes the catalog twin of a gateway.
func twinOf(t *testing.T, g *gatewaytest.Gateway) pgwire.Catalog {
	t.Helper()
	return twinAt(t, g, pgtest.New(t).DSN)
}

// TestCatalog: queries about names and types are answered by the twin, in both protocols and formats, and cost nothing.
func TestCatalog(t *testing.T) {
	d := withTwin(t)
	conn := d.Connect(t, "application_name=tester")
	before := d.Entries(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		for _, c := range []struct {
			sql  string
			args []any
			want [][]string
		}{
			{"SELECT 1 AS one, 'x'::text AS t", nil, [][]string{{"1", "x"}}},
			{"SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1", nil,
				[][]string{{"people"}, {"visits"}}},
			{"SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position", []any{"people"},
				[][]string{{"id"}, {"region"}, {"age"}, {"income"}}},
			{"SELECT datname::text FROM pg_database", nil, [][]string{{"census"}}},
			{"SELECT current_user::text, current_database()::text", nil, [][]string{{"ana", "census"}}},
			{"SELECT rolname::text FROM pg_roles", nil, [][]string{{"ana"}}},
			{"SELECT application_name FROM pg_stat_activity", nil, [][]string{{"tester"}}},
			{"SELECT setting FROM pg_settings WHERE name = 'noisegate.notices'", nil, [][]string{{"on"}}},
			{"SELECT column_name, keys FROM noisegate.columns WHERE table_name = 'people' ORDER BY 1", nil,
				[][]string{{"age", "null"}, {"id", "null"}, {"income", "null"}, {"region", "public"}}},
			{"SELECT remaining_epsilon::text FROM noisegate.budget", nil, [][]string{{"10"}}},
		} {
			if diff := cmp.Diff(c.want, pgwire.Table(t, conn, c.sql, slices.Concat([]any{mode}, c.args)...)); diff != "" {
				t.Errorf("%s, mode %v: %s", c.sql, mode, diff)
			}
		}
	}
	for sql, state := range map[string]string{"SELECT pg_read_file('/etc/passwd')": "", "SELECT * FROM pg_authid, people": "",
		"SELECT 1/0": "22012", "SELECT pg_sleep(1)": "", "SELECT nothing FROM pg_class": "42703"} {
		_, err := conn.Exec(t.Context(), sql)
		if err == nil {
			t.Errorf("%s: no error", sql)
		} else if state != "" {
			pgwire.RefusedWith(t, err, state)
		}
	}
	if refused := d.Query(t,
		`BEGIN; DECLARE c CURSOR FOR SELECT relname FROM pg_class WHERE relname = 'people'; FETCH 1 FROM c; COMMIT`); refused != nil {
		t.Errorf("a cursor: %+v", refused)
	}
	if refused := d.Query(t, "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;"); refused != nil {
		t.Errorf("asyncpg's pool: %+v", refused)
	}
	var copied strings.Builder
	if _, err := conn.PgConn().CopyTo(t.Context(), &copied,
		"COPY (SELECT relname FROM pg_class WHERE relname = 'people') TO STDOUT"); err != nil ||
		copied.String() != "people\n" {
		t.Errorf("COPY: %q, %v", copied.String(), err)
	}
	if n := d.Entries(t); n != before {
		t.Error("the catalog was charged")
	}
	// Questions go on meanwhile, and their names are not those of the twin's empty tables.
	if _, err := conn.Exec(t.Context(), "SET noisegate.epsilon = 1"); err != nil {
		t.Fatal(err)
	}
	if got := pgwire.Table(t, conn, "SELECT count(*) FROM people")[0][0]; got == "0" {
		t.Error("a question was answered by the twin")
	}
}

// BenchmarkCatalog is what psql's \d asks of a table, by the gateway and of the twin itself, in turn.
func BenchmarkCatalog(b *testing.B) {
	const columns = `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_catalog.col_description(a.attrelid, a.attnum)
		FROM pg_catalog.pg_attribute a WHERE a.attrelid = 'public.people'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	dsn := pgtest.New(b).DSN
	d := pgwire.OpenedWith(b, func(g *gatewaytest.Gateway) pgwire.Catalog { return twinAt(b, g, dsn) })
	bare, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close(b.Context())
	took := map[*pgx.Conn][]float64{}
	gateway := d.Connect(b, "")
	for b.Loop() {
		for _, conn := range []*pgx.Conn{gateway, bare} {
			began := time.Now()
			if tag, err := conn.Exec(b.Context(), columns, pgx.QueryExecModeSimpleProtocol); err != nil || tag.RowsAffected() != 4 {
				b.Fatal(tag, err)
			}
			took[conn] = append(took[conn], time.Since(began).Seconds()*1e3)
		}
	}
	for unit, conn := range map[string]*pgx.Conn{"ms/gateway": gateway, "ms/twin": bare} {
		slices.Sort(took[conn])
		b.ReportMetric(took[conn][len(took[conn])/2], unit)
	}
}

// TestExplainOfCatalogs: a query about names and types is free, in both formats and without a price; what would be refused is refused.
func TestExplainOfCatalogs(t *testing.T) {
	d := withTwin(t)
	conn := d.Connect(t, "")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		text := pgwire.Table(t, conn, "EXPLAIN SELECT relname FROM pg_class", mode)
		if len(text) < 3 || text[0][0] != "Release  (cost=0.00..0 rows=0 width=0)" ||
			!strings.Contains(text[len(text)-1][0], "no data are read") {
			t.Errorf("%q", text)
		}
		document := pgwire.Table(t, conn, "EXPLAIN (FORMAT JSON) SELECT relname FROM pg_class WHERE relname = 'x'", mode)[0][0]
		if !strings.Contains(document, `"affordable":true`) {
			t.Error(document)
		}
		for sql, state := range map[string]string{"EXPLAIN SELECT nothing FROM pg_class": "42703",
			"EXPLAIN SELECT pg_read_file('/etc/passwd')": "42501", "EXPLAIN ANALYZE SELECT relname FROM pg_class": "0A000"} {
			_, err := conn.Exec(t.Context(), sql, mode)
			pgwire.RefusedWith(t, err, state)
		}
	}
}

// TestCatalogFollowsThePolicy: a new version of the policy shows at the next query.
func TestCatalogFollowsThePolicy(t *testing.T) {
	d := withTwin(t)
	conn := d.Connect(t, "")
	const sql = "SELECT count(*)::text FROM information_schema.columns WHERE table_name = 'people'"
	if got := pgwire.Table(t, conn, sql)[0][0]; got != "4" {
		t.Errorf("%s columns, want 4", got)
	}
	d.ApplyPolicy(t, strings.Replace(gatewaytest.Policy, "secret: {expose: false}", "secret: {keys: private}", 1))
	if got := pgwire.Table(t, conn, sql)[0][0]; got != "5" {
		t.Errorf("%s columns, want 5", got)
	}
}

// TestCatalogParameterTypes: a parameter of a query about catalogs has a listed type, whether the client names it, or the server infers it:
// the input and the output of others look up the server's roles.
//
// covers: A54
func TestCatalogParameterTypes(t *testing.T) {
	d := withTwin(t)
	conn := d.Connect(t, "").PgConn()
	const regrole, regroles, rights, right, xml, rowOfClasses = 4096, 4097, 1034, 1033, 142, 83
	for _, oid := range []uint32{regrole, regroles, rights, right, xml, rowOfClasses, 999_999} {
		_, err := conn.Prepare(t.Context(), "", "SELECT $1", []uint32{oid})
		pgwire.RefusedWith(t, err, "0A000")
		_, err = conn.ExecParams(t.Context(), "SELECT $1", [][]byte{nil}, []uint32{oid}, nil, nil).Close()
		pgwire.RefusedWith(t, err, "0A000")
	}
	for _, sql := range []string{"SELECT relacl @> $1 FROM pg_class", "SELECT aclexplode($1)", "SELECT relacl[1] = $1 FROM pg_class",
		"SELECT coalesce(n, $1) FROM pg_namespace n"} {
		_, err := conn.Prepare(t.Context(), "", sql, nil)
		pgwire.RefusedWith(t, err, "0A000")
		_, err = conn.ExecParams(t.Context(), sql, [][]byte{[]byte("ana=r/postgres")}, nil, nil, nil).Close()
		pgwire.RefusedWith(t, err, "0A000")
	}
	for oid, value := range map[uint32]string{0: "x", pgtype.UnknownOID: "x", pgtype.TextOID: "x", pgtype.TextArrayOID: "{x}",
		pgtype.OIDArrayOID: "{1}", pgtype.NameOID: "x", 2205: "pg_class"} {
		got := conn.ExecParams(t.Context(), "SELECT $1", [][]byte{[]byte(value)}, []uint32{oid}, nil, nil).Read()
		if got.Err != nil || string(got.Rows[0][0]) != value {
			t.Errorf("type %d: %v, %v", oid, got.Rows, got.Err)
		}
	}
}

// TestSettingsAreNoOutage: whatever a client sets, queries about catalogs are answered, in UTC as all answers, and nothing is logged.
func TestSettingsAreNoOutage(t *testing.T) {
	d := withTwin(t)
	for _, parameters := range []string{"timezone=Nowhere%2FLand", "search_path=%22%22", "search_path=a,,%22b",
		"search_path=%22", "search_path=", "search_path=,",
		"search_path=$user,public,a%27b%22c", "search_path=" + strings.Repeat("a", 4000)} {
		conn := d.Connect(t, parameters)
		got, err := conn.PgConn().Exec(t.Context(), "SELECT '2020-01-01 12:00+02'::timestamptz::text, 1").ReadAll()
		if err != nil || string(got[0].Rows[0][0]) != "2020-01-01 10:00:00+00" {
			t.Errorf("%s: %v, %v", parameters, got, err)
		}
	}
	conn := d.Connect(t, "")
	if _, err := conn.Exec(t.Context(), "SET timezone = 'Nowhere/Land'; SET search_path = a, \"b c\", ''; SELECT now()::text, 1"); err != nil {
		t.Error(err)
	}
	if log := d.Log(); strings.Contains(log, "level=ERROR") {
		t.Error(log)
	}
}

// TestSmallValuesCount: an answer of many values of no bytes is refused, as it takes memory. A busy machine may need more than the twin's
// 5 s to get there, which end the statement too.
func TestSmallValuesCount(t *testing.T) {
	conn := withTwin(t).Connect(t, "")
	const columns, rows = 60, 50_000
	_, err := conn.PgConn().Exec(t.Context(), fmt.Sprintf("SELECT %s NULL FROM generate_series(1, %d)", strings.Repeat("NULL, ", columns),
		rows)).ReadAll()
	if ended := new(pgconn.PgError); errors.As(err, &ended) && ended.Code == "57014" {
		return
	}
	pgwire.RefusedWith(t, err, "0A000")
}

// frozen is a way to a server that can be made to hang: connections are accepted, and nothing goes through any more.
type frozen struct {
	address string
	closed  atomic.Bool
}

// freezing makes a way to a server; "": it hangs from the start.
func freezing(t *testing.T, network, to string) *frozen {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	f := &frozen{address: listener.Addr().String()}
	f.closed.Store(to == "")
	pass := func(from, to net.Conn) {
		part := make([]byte, 1<<16)
		for {
			n, err := from.Read(part)
			if err != nil {
				_ = to.Close()
				return
			}
			if !f.closed.Load() {
				_, _ = to.Write(part[:n])
			}
		}
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = in.Close() })
			if to == "" {
				continue
			}
			if f.closed.Load() { // somebody wants to cancel
				_ = in.Close()
				continue
			}
			out, err := (&net.Dialer{}).DialContext(t.Context(), network, to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return f
}

// twinAt is a catalog twin by its connection string.
func twinAt(t testing.TB, g *gatewaytest.Gateway, dsn string) pgwire.Catalog {
	t.Helper()
	catalogs, err := twin.Open(t.Context(), twin.Config{DSNs: map[string]string{gatewaytest.Dataset: dsn}, Policies: g.Policies})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(catalogs.Close)
	return catalogs
}

// TestPlaceIsFreeWhenTheServerIsDone: a query that its server does not stop, and whose client is gone, keeps its place until the server has
// closed the connection.
func TestPlaceIsFreeWhenTheServerIsDone(t *testing.T) {
	database := pgtest.New(t)
	var catalogs pgwire.Catalog
	pgwire.OpenedWith(t, func(g *gatewaytest.Gateway) pgwire.Catalog {
		catalogs = twinAt(t, g, database.DSN)
		return catalogs
	})
	left := make(chan struct{}, 1)
	ask := func(ctx context.Context, sql string) error {
		_, err := catalogs.Ask(ctx, pgwire.CatalogQuery{Dataset: gatewaytest.Dataset, Text: sql, SearchPath: []string{"public"},
			Leave: func() { left <- struct{}{} }})
		return err
	}
	if err := ask(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	<-left
	const slow = "SELECT pg_catalog.power(9::numeric, 130000) > 1, pg_catalog.power(7::numeric, 130000) > 1" // a second of two operations
	watch := database.Conn(t, database.DSN)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := ask(ctx, slow); err == nil {
		t.Fatal("the query was not slow")
	}
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Fatal("the place was not free within 30 s")
	}
	var running int
	if err := watch.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_catalog.power%'
		AND pid <> pg_backend_pid()`).Scan(&running); err != nil {
		t.Fatal(err)
	}
	if running > 0 {
		t.Error("the place was free while the server computed")
	}
}

// TestTwinThatHangsAtTheStart: while a twin's server does not answer, clients log in, all at once, and their questions are answered; only
// queries about catalogs are not. The wait is for one look at that server, of three seconds.
func TestTwinThatHangsAtTheStart(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	d := pgwire.OpenedWith(t, func(g *gatewaytest.Gateway) pgwire.Catalog {
		return twinAt(t, g, "postgres://a:b@"+freezing(t, "", "").address+"/c?sslmode=disable")
	})
	const clients = 30
	conns := make(chan *pgx.Conn, clients)
	start := time.Now()
	for range clients {
		go func() { conns <- d.Connect(t, "") }()
	}
	var conn *pgx.Conn
	for range clients {
		conn = <-conns
	}
	if took := time.Since(start); took > 12*time.Second {
		t.Errorf("logging in took %s", took)
	}
	if _, err := conn.Exec(t.Context(), "SET noisegate.epsilon = 1"); err != nil {
		t.Fatal(err)
	}
	if got := pgwire.Table(t, conn, "SELECT count(*) FROM people"); len(got) != 1 {
		t.Errorf("a question: %v", got)
	}
	_, err := conn.Exec(t.Context(), "SELECT relname FROM pg_class")
	pgwire.RefusedWith(t, err, "57P03")
}

// TestTwinThatHangsLater: a query about catalogs ends on a server that stopped answering.
func TestTwinThatHangsLater(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it waits for five seconds")
	}
	server := pgtest.New(t)
	at, err := pgx.ParseConfig(server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(at.Host, at.Port)
	way := freezing(t, network, address)
	d := pgwire.OpenedWith(t, func(g *gatewaytest.Gateway) pgwire.Catalog {
		user := url.UserPassword(at.User, at.Password)
		return twinAt(t, g, "postgres://"+user.String()+"@"+way.address+"/"+server.Name+"?sslmode=disable")
	})
	conn := d.Connect(t, "")
	const sql = "SELECT relname::text FROM pg_class WHERE relname = 'people'"
	if got := pgwire.Table(t, conn, sql); len(got) != 1 {
		t.Fatal(got)
	}
	way.closed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the parts of the work wait for five seconds each
	defer cancel()
	_, err = conn.Exec(ctx, sql)
	pgwire.RefusedWith(t, err, "57P03")
}
