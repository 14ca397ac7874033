package integration

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if what := os.Getenv(floodVariable); what != "" {
		floodFromHere(what)
		return
	}
	if flag.Parse(); testing.Short() {
		return // -short: every test here starts a binary
	}
	dir, err := os.MkdirTemp("", "noisegate-integration-")
	if err != nil {
		log.Fatal(err)
	}
	binary = filepath.Join(dir, "noisegate")
	build := exec.Command("go", "build", "-ldflags=-w", "-o", binary, "../cmd/noisegate")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("go build: %v\n%s", err, out)
	}
	code := m.Run()
	common.stop()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Names that the configuration of every stack uses.
const (
	issuer   = "https://issuer.example"
	audience = "noisegate"
	control  = "noisegate"
)

// dataset is one protected database of a stack.
type dataset struct {
	name   string
	policy string // the policy document
	// quantum is that of its answers; "": they leave at once.
	quantum string
	load    func(context.Context, *pgx.Conn) error
	// prepares: its tables can be prepared.
	prepares bool
	// timeout is that of its statements; "": 30s.
	timeout string
}

// stack is a control database and protected databases, and a gateway in front of them.
type stack struct {
	server *pgserver.Server
	names  map[string]string // of its databases on a server that others use too: see database
	dir    string            // configuration, key, policies
	config string
	url    string
	// admin is the address for the gateway's operators, host:port; empty: nowhere.
	admin    string
	migrated bool // pgtest made its control database, with the migrations of this version
	// program is another binary than the one under test; empty: that one.
	program string
	tokens  map[string]string // see tokenOnce

	shell   string // runs before the gateway, in its process
	gateway *exec.Cmd
	exited  chan error
	log     *logBuffer
}

// newStack starts everything: databases, migrations, data, policies, gateway. All of it goes when the test ends.
func newStack(t testing.TB, sets ...dataset) *stack {
	t.Helper()
	return prepareStack(t, sets...).started(t, sets)
}

// newOwnStack is [newStack] on a separate server; why says what the test does to it.
func newOwnStack(t testing.TB, why string, sets ...dataset) *stack {
	t.Helper()
	return prepareOwnStack(t, why, sets...).started(t, sets)
}

// started makes the gateway ready.
func (s *stack) started(t testing.TB, sets []dataset) *stack {
	t.Helper()
	s.writeConfig(t, sets)
	s.ready(t, sets)
	return s
}

// ready migrates where that is not done, applies the policies, and starts the gateway.
func (s *stack) ready(t testing.TB, sets []dataset) {
	t.Helper()
	if !s.migrated {
		s.run(t, "migrate", "--config", s.config)
	}
	for _, d := range sets {
		file := filepath.Join(s.dir, d.name+".policy.yaml")
		write(t, file, d.policy)
		s.run(t, "policy", "apply", "--config", s.config, file)
	}
	s.serve(t)
	t.Cleanup(func() { s.kill() })
}

// prepareStack makes databases, roles and data: what is there before Noisegate is. Benchmarks have a server of their own.
func prepareStack(t testing.TB, sets ...dataset) *stack {
	t.Helper()
	if _, test := t.(*testing.T); !test {
		return prepareStackOn(t, ownServer(t, nil), sets...)
	}
	server := common.running(t)
	s := stackAround(t, server, pgtest.On(t, server), sets...)
	s.migrated = true
	return s
}

// prepareStackBeside is [prepareStack] on a server that is running and that others use too. The program may be an older one: nothing is
// migrated yet.
func prepareStackBeside(t testing.TB, server *pgserver.Server, sets ...dataset) *stack {
	t.Helper()
	return stackAround(t, server, pgtest.UnmigratedOn(t, server), sets...)
}

func stackAround(t testing.TB, server *pgserver.Server, ledger *pgtest.ControlDatabase, sets ...dataset) *stack {
	t.Helper()
	s := emptyStack(t, server)
	s.names = map[string]string{control: ledger.Name}
	for _, d := range sets {
		s.names[d.name] = pgtest.SecuredOn(t, server).Name
		s.load(t, d)
	}
	return s
}

// prepareOwnStack is [prepareStack] on a separate server; why says what the test does to it.
func prepareOwnStack(t testing.TB, why string, sets ...dataset) *stack {
	t.Helper()
	t.Log("a separate PostgreSQL:", why)
	return prepareStackOn(t, ownServer(t, nil), sets...)
}

// prepareStackOn is [prepareStack] on a server that is running and that nobody else uses.
func prepareStackOn(t testing.TB, server *pgserver.Server, sets ...dataset) *stack {
	t.Helper()
	s := emptyStack(t, server)
	s.createDatabases(t, sets)
	return s
}

// emptyStack has no databases yet.
func emptyStack(t testing.TB, server *pgserver.Server) *stack {
	t.Helper()
	s := &stack{server: server, dir: t.TempDir(), log: new(logBuffer)}
	s.config = filepath.Join(s.dir, "noisegate.yaml")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log ends with:\n%s", s.log.end())
		}
	})
	return s
}

// createDatabases does what docs/operations.md asks of an operator.
func (s *stack) createDatabases(t testing.TB, sets []dataset) {
	t.Helper()
	roles := read(t, "../deploy/roles.sql")
	s.exec(t, "postgres", "CREATE DATABASE "+control)
	for _, d := range sets {
		s.exec(t, "postgres", "CREATE DATABASE "+d.name)
		s.exec(t, d.name, roles)
		s.load(t, d)
	}
	s.exec(t, control, roles)
	s.exec(t, control, read(t, "../deploy/control.sql"))
}

// load brings the data into a database.
func (s *stack) load(t testing.TB, d dataset) {
	t.Helper()
	if err := d.load(t.Context(), s.superuser(t, d.name)); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	s.exec(t, d.name, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_reader")
}

// database gives a database's name on the server. On the shared server it differs from the dataset's.
func (s *stack) database(name string) string { return cmp.Or(s.names[name], name) }

// dsn returns the connection string of a role for a database.
func (s *stack) dsn(role, database string) string { return s.server.DSN(role, s.database(database)) }

func (s *stack) writeConfig(t testing.TB, sets []dataset) {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(s.dir, "hs256.key")
	write(t, keyFile, hex.EncodeToString(key)+"\n")
	address := pgtest.FreeAddress(t)
	s.url = "http://" + address

	var yaml strings.Builder
	fmt.Fprintf(&yaml, "http: {listen: %q}\n", address)
	fmt.Fprintf(&yaml, "control: {dsn: %q, owner_dsn: %q, anchor: %q, receipt_key_file: %q}\n", s.dsn("noisegate", control),
		s.dsn("noisegate_owner", control), filepath.Join(s.dir, "anchor.json"), s.receiptKey(t))
	fmt.Fprintf(&yaml, "auth: {issuer: %q, audience: %q, keys: {hs256_file: %q}}\n", issuer, audience, keyFile)
	if s.admin != "" {
		fmt.Fprintf(&yaml, "admin: {listen: %q}\n", s.admin)
	}
	fmt.Fprintf(&yaml, "datasets:\n")
	for _, d := range sets {
		quantum := "0s"
		if d.quantum != "" {
			quantum = d.quantum
		}
		prepare := "trial_time: 1m, "
		if s.program != "" { // an older one, which may not know it
			prepare = ""
		}
		if d.prepares {
			prepare += fmt.Sprintf("prepare_dsn: %q, ", s.dsn("noisegate_prepare", d.name))
		}
		fmt.Fprintf(&yaml, "  %s: {dsn: %q, %sstatement_timeout: %s, quantum: %s}\n", d.name,
			s.dsn("noisegate_reader", d.name), prepare, cmp.Or(d.timeout, "30s"), quantum)
	}
	write(t, s.config, yaml.String())
}

// receiptKey makes the key that signs receipts, and receipts.pub next to it, as openssl would.
func (s *stack) receiptKey(t testing.TB) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	open, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir, "receipts.pub"), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})))
	file := filepath.Join(s.dir, "receipts.key")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return file
}

// serve starts the gateway and waits until it is ready.
func (s *stack) serve(t testing.TB) {
	t.Helper()
	s.serveUntil(t, "/readyz")
}

// serveUntil starts the gateway and waits until a path answers 200.
func (s *stack) serveUntil(t testing.TB, path string) {
	t.Helper()
	s.gateway = s.command("serve", "--config", s.config)
	if s.shell != "" {
		s.gateway.Path, s.gateway.Args = "/bin/sh", append([]string{"sh", "-c", s.shell + `; exec "$0" "$@"`}, s.gateway.Args...)
	}
	s.gateway.Stdout, s.gateway.Stderr = s.log, s.log
	s.gateway.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.gateway.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	s.exited = exited
	go func(cmd *exec.Cmd) { exited <- cmd.Wait() }(s.gateway)
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the gateway ended while starting: %v\n%s", err, s.log)
		case <-time.After(20 * time.Millisecond):
		}
		if s.status(path) == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s of the gateway does not answer 200 within a minute\n%s", path, s.log)
}

// kill ends the gateway as a power failure would.
func (s *stack) kill() {
	_ = s.gateway.Process.Kill()
	<-s.exited
	s.exited <- nil // a second kill finds it ended already
}

// alive fails the test when the gateway has ended or does not answer.
func (s *stack) alive(t testing.TB) {
	t.Helper()
	if got := s.status("/healthz"); got != http.StatusOK {
		t.Fatalf("/healthz gives %d: the gateway is not alive", got)
	}
}

// status is the status of a GET without a token; 0 when there is no answer.
func (s *stack) status(path string) int {
	response, err := http.Get(s.url + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func (s *stack) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(s.program, binary), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "NO_COLOR=1"}
	return cmd
}

// run runs a command of the binary, which must succeed, and gives its output.
func (s *stack) run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := s.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("noisegate %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String()
}

// token is a token for a subject with one role.
func (s *stack) token(t testing.TB, subject, role string) string {
	t.Helper()
	return s.sign(t, subject, role, time.Now().Add(lifetime))
}

// analyst is a client for an analyst.
func (s *stack) analyst(t testing.TB, subject string) *api.Client {
	t.Helper()
	return api.NewClient(s.url, s.token(t, subject, "analyst"))
}

// superuser is a connection as the server's superuser.
func (s *stack) superuser(t testing.TB, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn(pgserver.Superuser, database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// exec runs statements as the superuser.
func (s *stack) exec(t testing.TB, database, sql string) {
	t.Helper()
	conn := s.superuser(t, database)
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", database, err)
	}
}

// entries is how many entries the journal has, but for those that count reads of public tables: of free questions too.
func (s *stack) entries(t testing.TB) int {
	t.Helper()
	conn := s.superuser(t, control)
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM noisegate.entry WHERE kind <> 'free'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// problemOf is the problem document that a call was refused with.
func problemOf(t testing.TB, err error) *api.Problem {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a problem document", err)
	}
	return p
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logBuffer collects the gateway's output.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// end is what matters of the last lines.
func (b *logBuffer) end() string {
	var lines []string
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, "/healthz") && !strings.Contains(line, "/readyz") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
