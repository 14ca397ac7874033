package pgserver

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperEnv makes the test program play the parent that gets killed.
const helperEnv = "NOISEGATE_PGSERVER_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		playParent()
	}
	os.Exit(m.Run())
}

// playParent starts a server, says where it is, and waits to be killed.
func playParent() {
	programs, err := findAsked(context.Background())
	if err == nil {
		var s *Server
		if s, err = Start(context.Background(), Options{Programs: programs, Cached: true, Memory: true}); err == nil {
			fmt.Println(s.dir)
			select {}
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	programs, err := findAsked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Programs, o.Memory = programs, true
	s, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// findAsked finds the programs of the version that the environment asks for.
func findAsked(ctx context.Context) (Programs, error) {
	w, err := WantedIn(os.Getenv)
	if err != nil {
		return Programs{}, err
	}
	return Find(ctx, w)
}

// query runs a statement in a new session, and gives the first column of its first row as text; "" when there is none.
func query(ctx context.Context, dsn, sql string) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}

func mustQuery(t *testing.T, s *Server, sql string) string {
	t.Helper()
	out, err := query(t.Context(), s.DSN(Superuser, "postgres"), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func TestServerLifeCycle(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Settings: map[string]string{"work_mem": "7MB"}})
	for sql, want := range map[string]string{
		"show listen_addresses": "",
		"show work_mem":         "7MB",
		"show timezone":         "UTC",
		"show server_encoding":  "UTF8",
		"select current_user":   Superuser,
	} {
		if got := mustQuery(t, s, sql); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
	info, err := os.Stat(s.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the server's directory must be closed to others: %v, %v", info.Mode(), err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is still there after Stop: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second Stop must do nothing: %v", err)
	}
}

// TestCommittedRowsSurviveCrashes ends the server in each of its ways.
//
// covers: F03
func TestCommittedRowsSurviveCrashes(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Cached: true})
	mustQuery(t, s, "create table kept (n int)")
	for i, end := range []func(){s.Kill, s.StopImmediate, func() { s.end(15) }, func() {}, s.Kill} {
		mustQuery(t, s, fmt.Sprintf("insert into kept values (%d)", i))
		end()
		if i == 0 {
			if out, err := query(t.Context(), s.DSN(Superuser, "postgres"), "select 1"); err == nil {
				t.Errorf("a killed server answered %q", out)
			}
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := mustQuery(t, s, "select count(*) from kept"), fmt.Sprint(i+1); got != want {
			t.Errorf("after restart %d: %s rows, want %s", i, got, want)
		}
	}
}

// TestKilledServerIsGone: when Kill returns, no session of the server answers any more.
//
// covers: F03
func TestKilledServerIsGone(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Cached: true})
	session := make(chan error, 1)
	go func() {
		_, err := query(t.Context(), s.DSN(Superuser, "postgres"), "select pg_sleep(60)")
		session <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if mustQuery(t, s, "select count(*) from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'") == "1" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the session did not start")
		}
	}
	process := s.process
	s.Kill()
	select {
	case <-process.gone:
	case <-time.After(time.Minute): // Kill waits less long: a process that computes does not look up
		t.Error("a minute after Kill processes of the server are left")
	}
	select {
	case err := <-session:
		if err == nil {
			t.Error("the session ended well")
		}
	case <-time.After(10 * time.Second):
		t.Error("10 s after Kill the session's client still waits for an answer")
	}
}

// TestServerDiesWithItsParent kills the process that started a server with SIGKILL, which leaves it no time to clean up.
func TestServerDiesWithItsParent(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), helperEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("the parent said %q, %v", line, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); err != nil {
		t.Fatalf("no server is running in %s: %v", dir, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return // the directory goes last
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there 10 s after its parent was killed", dir)
		}
	}
}

func TestKeptDirectoryIsUsedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	// Not t.TempDir: the server's user must be able to get there, and its path may be too long for a socket.
	dir, err := os.MkdirTemp("/tmp", "noisegate-keep-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("long", 30))
	first := start(t, Options{Dir: long})
	mustQuery(t, first, "create table kept as select 42 as n")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := ClusterVersion(long); got != first.programs.Version {
		t.Errorf("the cluster is of version %d, want %d", got, first.programs.Version)
	}
	second := start(t, Options{Dir: long})
	if got := mustQuery(t, second, "select n from kept"); got != "42" {
		t.Errorf("got %q, want 42", got)
	}
}

// TestStartReportsTheServersOwnWords: a server that does not start says why.
func TestStartReportsTheServersOwnWords(t *testing.T) {
	t.Parallel()
	programs, err := findAsked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Programs: programs, Cached: true, Memory: true,
		Settings: map[string]string{"shared_buffers": "plenty"}})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("got %v, want an error that names shared_buffers", err)
	}
}

// TestServerOutlivesItsHandle: a program that keeps only the DSN keeps its server.
func TestServerOutlivesItsHandle(t *testing.T) {
	t.Parallel()
	programs, err := findAsked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dsn := func() string {
		s, err := Start(t.Context(), Options{Programs: programs, Cached: true, Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		return s.DSN(Superuser, "postgres")
	}()
	for range 3 {
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := query(t.Context(), dsn, "select 1"); err != nil {
		t.Errorf("the server is gone after its handle was collected: %v", err)
	}
}

// TestUnreachableDirectories: a server of root's runs as somebody else, who must be able to get to its directory.
func TestUnreachableDirectories(t *testing.T) {
	closed, err := os.MkdirTemp("/tmp", "noisegate-closed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(closed) })
	other := &account{uid: 65534, gid: 65534}
	if other.reaches(filepath.Join(closed, "absent")) || other.reaches(closed) || !other.reaches("/tmp") || !(*account)(nil).reaches(closed) {
		t.Error("reachable directories are not told apart from others")
	}
	t.Setenv("TMPDIR", closed)
	if got := other.tempDir(); got != "/tmp" {
		t.Errorf("temporary directory %s, want /tmp", got)
	}
	if got := (*account)(nil).tempDir(); got != closed {
		t.Errorf("temporary directory %s, want the one of TMPDIR", got)
	}
	programs, err := findAsked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return // only root's server runs as somebody else
	}
	if _, err := Start(t.Context(), Options{Programs: programs, Dir: filepath.Join(closed, "data")}); err == nil ||
		!strings.Contains(err.Error(), "cannot reach") {
		t.Errorf("got %v, want an error that says what is wrong with the directory", err)
	}
}

// TestCopiedClustersAreSeparate: servers with cached clusters start with the same, empty cluster, and see nothing of each
// other. Their directories are in memory where that has room.
func TestCopiedClustersAreSeparate(t *testing.T) {
	t.Parallel()
	first := start(t, Options{Cached: true})
	if memory := MemoryDir(); memory != "" && filepath.Dir(first.dir) != memory {
		t.Errorf("the server is in %s, not in %s", first.dir, memory)
	}
	mustQuery(t, first, "CREATE TABLE mine AS SELECT 1 AS n; SELECT count(*) FROM mine")
	for range 2 {
		other := start(t, Options{Cached: true})
		if n := mustQuery(t, other, "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'mine'"); n != "0" {
			t.Errorf("another server's table is there")
		}
		if info, err := os.Stat(other.data); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the copy's directory: %v, %v", info, err)
		}
	}
}
