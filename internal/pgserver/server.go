// Package pgserver runs a private PostgreSQL server: for the demo, and for tests.
//
// It knows where PostgreSQL's programs are, how to start a server on a unix socket in a new directory, and how to make sure that the server
// dies with the process that started it. It does not know SQL, roles, or what the server is for.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"noisegate.example/internal/pgversion"
)

// Superuser is the name of the server's superuser.
const Superuser = "postgres"

// port names the socket's file; nothing listens on TCP.
const port = "5432"

// maxSocketPath is the room for a socket's path in the smaller of the systems' sockaddr_un (macOS: 104 with the final zero).
const maxSocketPath = 103

// stragglers is how long processes of a killed server may take to notice.
const stragglers = 10 * time.Second

// Options say what server to start.
type Options struct {
	Programs Programs
	// Dir is where the server lives: empty for a fresh temporary directory that is removed at the end; else a directory
	// that is kept, and whose cluster is used again when there is one.
	Dir string
	// Cached copies the cluster of a fresh directory from one that initdb made before, with the same programs, below
	// [CacheDir]. Such clusters have one system identifier.
	Cached bool
	// Follows makes the server a standby of another one, which takes a copy of it by pg_basebackup. That one has settings
	// that replicate: wal_level and max_wal_senders.
	Follows *Server
	// Memory makes a fresh directory on a file system in memory, where there is one with room ([memoryRoom]): for tests,
	// which create and drop thousands of files.
	Memory bool
	// Settings are server parameters; they override this package's own, which trade durability against a power failure for
	// speed.
	Settings map[string]string
}

// Server is a running private server. Its methods are safe for concurrent use.
type Server struct {
	programs Programs
	account  *account // nil: this process's own
	dir      string
	data     string
	sockets  string
	settings map[string]string
	keep     bool
	cached   bool
	follows  *Server

	mu      sync.Mutex
	process *process // nil when stopped
	reaper  *reaper
}

// process is one run of the server program.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the main process has ended
	gone   chan struct{} // closed when all processes of the server have
	reaper *reaper       // kept here because the garbage collector would close its input with the last reference
}

// Start creates a cluster and starts a server that accepts connections when Start returns. It listens on a unix socket in
// a directory that only the server's user (and root) can enter, and trusts every client that gets there. A process of root starts the
// server as the user postgres, or nobody. The server ends, and its temporary directory goes, when the calling process does, however that
// ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	acc, err := serverAccount()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: o.Programs, account: acc, dir: o.Dir, keep: o.Dir != "", cached: o.Cached, follows: o.Follows,
		settings: settings(o.Settings)}
	parent := acc.tempDir()
	if memory := MemoryDir(); o.Memory && memory != "" && acc.reaches(memory) {
		parent = memory
	}
	if err := s.makeDirs(parent); err != nil {
		return nil, err
	}
	if s.reaper, err = startReaper(s); err != nil { //nolint:contextcheck // it outlives the start
		return nil, err
	}
	err = s.initialize(ctx)
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// settings are those of a server that may lose its data when the machine fails, but not when a process does.
func settings(overrides map[string]string) map[string]string {
	all := map[string]string{
		"listen_addresses":        "",
		"fsync":                   "off",
		"full_page_writes":        "off",
		"wal_level":               "minimal",
		"max_wal_senders":         "0",
		"max_connections":         "200",
		"shared_buffers":          "64MB",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"unix_socket_permissions": "0700",
	}
	maps.Copy(all, overrides)
	return all
}

// makeDirs makes the server's directory, a fresh one below parent, and one for the socket where the first one's path is
// too long for it.
func (s *Server) makeDirs(parent string) error {
	var err error
	if s.keep {
		if s.dir, err = filepath.Abs(s.dir); err == nil {
			err = os.MkdirAll(s.dir, 0o700)
		}
	} else {
		s.dir, err = os.MkdirTemp(parent, "noisegate-pg-")
	}
	if err != nil {
		return fmt.Errorf("pgserver: cannot make the server's directory: %w", err)
	}
	if !s.account.reaches(filepath.Dir(s.dir)) {
		return fmt.Errorf("pgserver: PostgreSQL refuses to run as root, and the user it runs as instead cannot reach %s: "+
			"take a directory below /tmp or /var", s.dir)
	}
	s.data, s.sockets = filepath.Join(s.dir, "data"), s.dir
	if len(filepath.Join(s.sockets, ".s.PGSQL."+port+".lock")) > maxSocketPath {
		if s.sockets, err = os.MkdirTemp("/tmp", "noisegate-pg-"); err != nil {
			return fmt.Errorf("pgserver: cannot make a directory for the socket: %w", err)
		}
	}
	for _, dir := range []string{s.dir, s.sockets} {
		if err := s.account.own(dir); err != nil {
			return fmt.Errorf("pgserver: cannot hand the directory to the server's user: %w", err)
		}
	}
	return nil
}

// ClusterVersion is the major version of the cluster that an earlier server left in a directory (see [Options]); 0 when
// there is none. No other version can start on it.
func ClusterVersion(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "data", "PG_VERSION"))
	if err != nil || dir == "" {
		return 0
	}
	version, err := pgversion.Major(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return version
}

// initialize makes the cluster unless there is one.
func (s *Server) initialize(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.data, "PG_VERSION")); err == nil {
		return nil
	}
	if s.follows != nil {
		return s.backup(ctx, s.follows)
	}
	if s.cached {
		return s.copyCluster(ctx)
	}
	return s.initdb(ctx, s.data)
}

// initdbOptions are what each cluster is made with.
func initdbOptions() []string {
	return []string{"--username=" + Superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"}
}

func (s *Server) initdb(ctx context.Context, data string) error {
	cmd := s.command(ctx, "initdb", append(initdbOptions(), "--pgdata="+data)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: initdb failed: %w: %s", err, lastLines(out))
	}
	return nil
}

// backup copies a running server, to follow it.
func (s *Server) backup(ctx context.Context, of *Server) error {
	cmd := s.command(ctx, "pg_basebackup", "--pgdata="+s.data, "--host="+of.sockets, "--port="+port, "--username="+Superuser,
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: pg_basebackup failed: %w: %s", err, lastLines(out))
	}
	return nil
}

// command prepares a server program to run as the server's user, away from the terminal's signals.
func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return s.program(ctx, filepath.Join(s.programs.Bin, program), args...)
}

// program prepares any program likewise.
func (s *Server) program(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.programs.Bin + ":/usr/bin:/bin", "TZ=UTC", "LC_ALL=C", "HOME=" + s.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.account.credential()}
	dieWithParent(cmd.SysProcAttr)
	return cmd
}

// start runs the server program and waits until it accepts connections.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return errors.New("pgserver: the server is running already")
	}
	// A server that was killed leaves processes behind for a moment, and a new one refuses to start until they are gone.
	for {
		p, err := s.launch(ctx)
		if err == nil {
			s.process = p
			return nil
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "pre-existing shared memory block") {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *Server) launch(ctx context.Context) (*process, error) {
	args := []string{"-D", s.data, "-k", s.sockets, "-p", port}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		args = append(args, "-c", name+"="+s.settings[name])
	}
	log, err := os.CreateTemp("", "noisegate-pg-log-")
	if err != nil {
		return nil, fmt.Errorf("pgserver: cannot make the server's log: %w", err)
	}
	defer log.Close()
	defer os.Remove(log.Name()) // the server keeps it open; it goes with the server
	// The server outlives ctx, which only limits the start.
	cmd := s.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log

	p := &process{cmd: cmd, done: make(chan struct{}), gone: make(chan struct{}), reaper: s.reaper}
	if err := p.run(); err != nil {
		return nil, fmt.Errorf("pgserver: cannot start postgres: %w", err)
	}
	if err := s.await(ctx, p); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
		out, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w: %s", err, lastLines(out))
	}
	return p, nil
}

// await waits until postmaster.pid says that the server of this process is ready: its eighth line is how pg_ctl learns it.
func (s *Server) await(ctx context.Context, p *process) error {
	pid := fmt.Sprint(p.cmd.Process.Pid)
	for {
		text, _ := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
		lines := strings.Split(string(text), "\n")
		if len(lines) >= 8 && lines[0] == pid && slices.Contains([]string{"ready", "standby"}, strings.TrimSpace(lines[7])) {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("pgserver: postgres ended while starting")
		case <-ctx.Done():
			return fmt.Errorf("pgserver: postgres did not get ready: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// lastLines is the end of a program's output, for an error.
func lastLines(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte(" | ")))
}

// Dir is the server's directory, which nobody else may read. Unless it was given, it is gone with the server, however this process ends.
func (s *Server) Dir() string { return s.dir }

// DSN is how to connect to a database as a user, as a URL that pgx and psql understand.
func (s *Server) DSN(user, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database,
		RawQuery: url.Values{"host": {s.sockets}, "port": {port}}.Encode()}
	return u.String()
}

// Stop ends the server in an orderly way, without waiting for clients, and removes its temporary directory. It may be called
// more than once.
func (s *Server) Stop() error {
	s.end(syscall.SIGINT)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reaper.dismiss()
	if s.sockets != s.dir {
		_ = os.RemoveAll(s.sockets)
	}
	if s.keep {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// StopImmediate ends the server as a power failure of the server alone would, clients included; the next start recovers.
func (s *Server) StopImmediate() { s.end(syscall.SIGQUIT) }

// Kill ends the server's main process with SIGKILL, and waits for its other processes, which follow by themselves. The next
// start recovers.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Restart starts a server that was stopped or killed, with the same data; a running one is stopped first.
func (s *Server) Restart(ctx context.Context) error {
	s.end(syscall.SIGINT)
	return s.start(ctx)
}

func (s *Server) end(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	s.process.signal(signal)
	<-s.process.done
	select {
	case <-s.process.gone:
	case <-time.After(stragglers): // one that computes does not look up; the next start waits for it
	}
	s.process = nil
}
