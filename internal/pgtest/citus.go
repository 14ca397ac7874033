package pgtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/deploy"
	"noisegate.example/internal/pgserver"
)

// CitusSource is the pattern of the packed sources of Citus in the folder of engines that belongs to no checkout. The
// name ends with the major version of PostgreSQL that it is for.
const CitusSource = "citus-*-pg15.tar.xz"

// citusMajor is the version of PostgreSQL in [CitusSource].
const citusMajor = 15

// citusPatience limits the build: two to four minutes on two cores that do nothing else.
const citusPatience = 20 * time.Minute

// citusInstall is the line that installs what the build needs, on Debian and Ubuntu.
const citusInstall = "apt-get install gcc make xz-utils postgresql-15 postgresql-server-dev-15 libzstd-dev liblz4-dev libkrb5-dev " +
	"libpam0g-dev " +
	"libselinux1-dev libxslt1-dev libreadline-dev zlib1g-dev libssl-dev"

//go:embed citus.sh
var citusScript string

// Citus gives a PostgreSQL server's programs with the extension Citus, which it builds from the source in the given
// folder when it is asked for the first time. What was built is kept in [pgserver.CacheDir], under the checksum of the
// source and the version of PostgreSQL. A test without the source is skipped; one without a compiler or PostgreSQL's
// headers as well, but not in CI.
func Citus(t testing.TB, engines string) pgserver.Programs {
	t.Helper()
	sources, _ := filepath.Glob(filepath.Join(engines, CitusSource)) // the pattern is a constant
	if len(sources) != 1 {
		t.Skip("../shared/engines holds no " + CitusSource + ": there is no Citus to test with")
	}
	pgConfig, version, err := citusPostgres()
	if err != nil {
		Missing(t, citusInstall, err.Error())
	}
	packed, err := os.ReadFile(sources[0])
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	cache, err := pgserver.CacheDir("")
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	sum := sha256.Sum256(append(packed, citusScript+version...))
	root := filepath.Join(cache, "citus-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(root); err != nil {
		t.Logf("building %s in %s (%v at most)", filepath.Base(sources[0]), cache, citusPatience)
		if err := buildCitus(sources[0], pgConfig, root); err != nil {
			t.Fatal("pgtest: cannot build Citus: ", err)
		}
	}
	return pgserver.Programs{Bin: filepath.Join(root, pgConfigSays(pgConfig, "--bindir")), Version: citusMajor}
}

// citusPostgres is a PostgreSQL of the right version that can be built for: its pg_config, and its version in its own words.
func citusPostgres() (pgConfig, version string, err error) {
	for _, program := range []string{"cc", "make", "tar", "xz"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", "", errors.New(program)
		}
	}
	all, _ := filepath.Glob(fmt.Sprintf("/usr/lib/postgresql/%d/bin/pg_config", citusMajor))
	if inPath, err := exec.LookPath("pg_config"); err == nil {
		all = append(all, inPath)
	}
	for _, pgConfig := range all {
		version := pgConfigSays(pgConfig, "--version")
		if !strings.HasPrefix(version, fmt.Sprintf("PostgreSQL %d.", citusMajor)) {
			continue
		}
		_, server := os.Stat(filepath.Join(pgConfigSays(pgConfig, "--bindir"), "postgres"))
		_, headers := os.Stat(filepath.Join(pgConfigSays(pgConfig, "--includedir-server"), "postgres.h"))
		if server == nil && headers == nil && compiles(citusHeaders()...) {
			return pgConfig, version, nil
		}
	}
	return "", "", fmt.Errorf("a PostgreSQL %d with what extensions are built with", citusMajor)
}

// compiles reports whether the C compiler finds headers.
func compiles(headers ...string) bool {
	text := "#include <stdio.h>\n"
	for _, header := range headers {
		text += "#include <" + header + ">\n"
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cc := exec.CommandContext(ctx, "cc", "-fsyntax-only", "-xc", "-")
	cc.Stdin = strings.NewReader(text)
	return cc.Run() == nil
}

// pgConfigSays is one line of pg_config's; "" where it has none.
func pgConfigSays(pgConfig, question string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, pgConfig, question).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// buildCitus makes root, which is complete when it has its name.
func buildCitus(source, pgConfig, root string) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(root), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	ctx, cancel := context.WithTimeout(context.Background(), citusPatience)
	defer cancel()
	build := exec.CommandContext(ctx, "sh", "-c", "umask 022; "+citusScript, "sh", source, scratch, pgConfig)
	if out, err := build.CombinedOutput(); err != nil {
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		return fmt.Errorf("%w: %s", err, bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
	}
	if err := os.Rename(filepath.Join(scratch, "root"), root); err != nil {
		if _, other := os.Stat(root); other == nil { // another process was faster
			return nil
		}
		return err
	}
	return nil
}

// citusHeaders are of the libraries that PostgreSQL and Citus are linked with.
func citusHeaders() []string {
	return []string{"zstd.h", "lz4.h", "zlib.h", "readline/readline.h", "openssl/ssl.h", "krb5.h", "security/pam_appl.h", "selinux/selinux.h"}
}

// Cluster is a coordinator and two workers of Citus. They reach each other over their sockets.
type Cluster struct {
	Coordinator *pgserver.Server
	Workers     []*pgserver.Server
}

// NewCluster starts the servers, of what [Citus] builds; they go when the test ends.
func NewCluster(t testing.TB, engines string) *Cluster {
	t.Helper()
	programs := Citus(t, engines)
	start := func() *pgserver.Server {
		// A control database may be on the coordinator as well: the gateway refuses a ledger that a power failure could take back.
		server, err := pgserver.Start(t.Context(), pgserver.Options{Programs: programs, Cached: true, Settings: map[string]string{
			"shared_preload_libraries": "citus", "wal_level": "logical", "max_wal_senders": "10", "fsync": "on", "full_page_writes": "on",
			"citus.enable_statistics_collection": "off"}})
		if err != nil {
			t.Fatal("pgtest: ", err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		return server
	}
	return &Cluster{Coordinator: start(), Workers: []*pgserver.Server{start(), start()}}
}

// socket is where a server's socket is.
func socket(server *pgserver.Server) (string, error) {
	dsn, err := url.Parse(server.DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		return "", err
	}
	return dsn.Query().Get("host"), nil
}

// At runs statements on a server of the cluster, as superuser.
func (c *Cluster) At(ctx context.Context, server *pgserver.Server, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, server.DSN(pgserver.Superuser, database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, text := range statements {
		if _, err := conn.PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return fmt.Errorf("%w in %.300s", err, text)
		}
	}
	return nil
}

// Join makes Citus, and the workers' part, of a database that the coordinator has with deploy/roles.sql, as docs/operations.md says.
func (c *Cluster) Join(ctx context.Context, database string) error {
	extension := func(server *pgserver.Server) (string, error) {
		host, err := socket(server)
		return fmt.Sprintf("CREATE EXTENSION citus; ALTER DATABASE %s SET citus.local_hostname = '%s'", database, host), err
	}
	host, err := socket(c.Coordinator)
	if err != nil {
		return err
	}
	nodes := fmt.Sprintf("SET citus.local_hostname = '%s'; SELECT citus_set_coordinator_host('%[1]s', 5432);"+
		"SELECT citus_set_node_property('%[1]s', 5432, 'shouldhaveshards', false);", host)
	for _, worker := range c.Workers {
		text, err := extension(worker)
		if err == nil {
			err = c.At(ctx, worker, "postgres", "CREATE DATABASE "+database)
		}
		if err == nil {
			err = c.At(ctx, worker, database, deploy.Roles(), text)
		}
		if err != nil {
			return err
		}
		if host, err = socket(worker); err != nil {
			return err
		}
		nodes += fmt.Sprintf("SELECT citus_add_node('%s', 5432);", host)
	}
	text, err := extension(c.Coordinator)
	if err != nil {
		return err
	}
	return c.At(ctx, c.Coordinator, database, text, nodes)
}

// Protected is [Protected] on the cluster.
func (c *Cluster) Protected(t testing.TB, ddl ...string) *ProtectedDatabase {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := newServer(ctx, c.Coordinator.DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	name, _, err := s.createDatabase(ctx, "template0")
	if err == nil {
		err = s.run(ctx, name, deploy.Roles())
	}
	if err == nil {
		err = c.Join(ctx, name)
	}
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	d := &Database{Name: name, DSN: s.dsn("", name), server: s}
	d.Exec(t, append(slices.Clone(ddl), grant)...)
	return &ProtectedDatabase{Database: d, ReaderDSN: d.As("noisegate_reader")}
}
