package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// site is an installation as an operator would make it: databases and roles, a configuration file, a key, a policy.
type site struct {
	database *demoDatabase
	dir      string
	config   string
	policy   string
	address  string
}

func newSite(t *testing.T) *site {
	t.Helper()
	ctx := t.Context()
	d, _, err := startDemoDatabase(ctx, askedServer(t), "")
	if err != nil {
		t.Fatal(err)
	}
	return siteOn(t, d)
}

// siteOn makes an installation in databases that are to be made.
func siteOn(t *testing.T, d *demoDatabase) *site {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() { _ = d.close(context.WithoutCancel(ctx)) })
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.load(ctx, demodata.MinRows); err != nil {
		t.Fatal(err)
	}
	s := &site{database: d, dir: t.TempDir(), address: pgtest.FreeAddress(t)}
	s.policy = s.write(t, "census.policy.yaml", unprepared())
	s.config = s.write(t, "noisegate.yaml", fmt.Sprintf(`
http: {listen: %q}
control: {dsn: %q, owner_dsn: %q}
auth: {issuer: test, audience: noisegate, keys: {hs256_file: %q}}
datasets:
  census: {dsn: %q, quantum: 0s}
`, s.address, d.dsn("noisegate", demoControl).Reveal(), d.dsn("noisegate_owner", demoControl).Reveal(),
		s.write(t, "hs256.key", strings.Repeat("0123456789abcdef", 3)), d.dsn("noisegate_reader", demoProtected).Reveal()))
	return s
}

// unprepared is the demo's policy, which asks for no copy.
func unprepared() string {
	return regexp.MustCompile(`(?m)^ *prepare: .*\n`).ReplaceAllString(string(demoPolicy), "")
}

func (s *site) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command to its end; env overrides the configuration.
func (s *site) run(t *testing.T, env config.Environment, args ...string) (code int, out, errs string) {
	t.Helper()
	all := config.Environment{"NOISEGATE_CONFIG": s.config, "USER": "op"}
	for name, value := range env {
		all[name] = value
	}
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, Streams{strings.NewReader(""), &stdout, &stderr}, all)
	return code, stdout.String(), stderr.String()
}

// expect runs a command that must end with a code and print a text, on either stream.
func (s *site) expect(t *testing.T, env config.Environment, code int, text string, args ...string) {
	t.Helper()
	if got, out, errs := s.run(t, env, args...); got != code || !strings.Contains(out+errs, text) {
		t.Errorf("%v: exit code %d, want %d and %q: %s%s", args, got, code, text, out, errs)
	}
}

// serve runs the gateway until the returned function is called, which gives its exit code and log.
func (s *site) serve(t *testing.T, env config.Environment) (stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	all := config.Environment{"NOISEGATE_CONFIG": s.config}
	for name, value := range env {
		all[name] = value
	}
	var log bytes.Buffer
	exited := make(chan int, 1)
	go func() { exited <- Run(ctx, []string{"serve"}, Streams{strings.NewReader(""), &log, &log}, all) }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", s.address); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) || len(exited) > 0 {
			cancel()
			t.Fatalf("the gateway does not listen; exit code %d: %s", <-exited, &log)
		}
	}
	return func() (int, string) {
		cancel()
		return <-exited, log.String()
	}
}

func (s *site) token(t *testing.T, sub, role string) string {
	t.Helper()
	code, out, errs := s.run(t, nil, "token", "--sub="+sub, "--role="+role)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	return strings.TrimSpace(out)
}

// By default there is an anchor next to the configuration, or in systemd's state directory; where that cannot be written the gateway says
// so, and serves.
func TestAnchorByDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s := newSite(t)
	s.expect(t, nil, exitOK, "", "migrate")
	s.expect(t, nil, exitOK, "", "policy", "apply", s.policy)
	state := t.TempDir()
	for _, c := range []struct {
		env    config.Environment
		anchor string
	}{
		{nil, s.config + ".anchor"},
		{config.Environment{"STATE_DIRECTORY": state}, filepath.Join(state, "anchor")},
	} {
		if code, log := s.serve(t, c.env)(); code != exitOK || strings.Contains(log, "there is no anchor") {
			t.Fatalf("%v: exit code %d: %s", c.env, code, log)
		}
		if text, err := os.ReadFile(c.anchor); err != nil || !strings.Contains(string(text), `"dataset": "census"`) {
			t.Errorf("%v: %s, %v", c.env, text, err)
		}
	}
	for env, want := range map[string]string{
		"STATE_DIRECTORY":          "the anchor cannot be written where it is unless control.anchor says otherwise",
		"NOISEGATE_CONTROL_ANCHOR": "there is no anchor (control.anchor)"} {
		value := map[string]string{"STATE_DIRECTORY": filepath.Join(state, "nowhere"), "NOISEGATE_CONTROL_ANCHOR": "off"}[env]
		if code, log := s.serve(t, config.Environment{env: value})(); code != exitOK || !strings.Contains(log, want) {
			t.Errorf("%s: exit code %d: %s", env, code, log)
		}
	}
}

// An operator's day, in order.
func TestOperation(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s := newSite(t)
	as := func(role, database string) string { return s.database.dsn(role, database).Reveal() }

	s.expect(t, nil, exitBackend, "run noisegate migrate", "serve")
	s.expect(t, nil, exitBackend, "run noisegate migrate", "policy", "apply", s.policy)
	s.expect(t, nil, exitOK, "applied 001_catalog.sql", "migrate")
	s.expect(t, nil, exitOK, "up to date", "migrate")

	// Dangerous roles are refused by name (A87).
	s.expect(t, config.Environment{"NOISEGATE_DATASETS_CENSUS_DSN": as(pgserver.Superuser, demoProtected)},
		exitBackend, "dataset census: role postgres", "serve")
	s.expect(t, config.Environment{"NOISEGATE_CONTROL_DSN": as(pgserver.Superuser, demoControl)}, exitBackend, "budget: ", "serve")
	s.expect(t, config.Environment{"NOISEGATE_DATASETS_CENSUS_DSN": "host=/nowhere"}, exitBackend, "dataset census: ", "serve")
	s.expect(t, config.Environment{"NOISEGATE_AUTH_KEYS_HS256_FILE": s.write(t, "weak.key", "short")}, exitUsage, "32", "serve")

	s.expect(t, nil, exitOK, "fits the live schema (3 tables) on PostgreSQL 1", "policy", "check", s.policy)
	s.untestedServer(t)
	s.expect(t, nil, exitRefused, "there is no dataset", "policy", "export", demoDataset)
	s.expect(t, nil, exitOK, "there is no policy yet", "policy", "diff", s.policy)
	s.expect(t, nil, exitOK, "census: version 1 applied", "policy", "apply", s.policy)
	s.expect(t, nil, exitOK, "renewed: nothing", "policy", "diff", s.policy)
	s.expect(t, nil, exitOK, "census: version 1 is in force already", "policy", "apply", s.policy)
	if _, out, _ := s.run(t, nil, "policy", "export", demoDataset); out != unprepared() {
		t.Errorf("the exported policy is not the one that was applied: %s", out)
	}

	s.policyMistakes(t)
	s.readerThatWrites(t)
	s.overTLS(t)

	stop := s.serve(t, nil)
	client := config.Environment{"NOISEGATE_URL": "http://" + s.address, "NOISEGATE_TOKEN": s.token(t, "ana", "analyst")}
	s.expect(t, client, exitOK, "spent epsilon 0.5 (2.5 left)", "query", "--epsilon=0.5", "SELECT count(*) FROM people")
	s.expect(t, client, exitOK, "nothing spent", "query", "--epsilon=0.5", "select COUNT(*) from people -- again")
	s.expect(t, client, exitOK, "affordable", "estimate", "--epsilon=0.5", "SELECT avg(age) FROM people")
	s.expect(t, client, exitOK, "2.5", "budget", "show")
	s.expect(t, client, exitUsage, "auth/forbidden", "budget", "set", demoDataset, "analyst:ana", "--epsilon=100")
	steward := config.Environment{"NOISEGATE_URL": "http://" + s.address, "NOISEGATE_TOKEN": s.token(t, "sam", "steward")}
	s.expect(t, steward, exitOK, "epsilon 4.5", "budget", "set", demoDataset, "analyst:ana", "--epsilon=5", "--delta=1e-7")
	s.expect(t, steward, exitOK, "analyst:ana", "budget", "show", demoDataset, "--accounts")

	// A policy that another process applies is noticed.
	narrower := s.write(t, "narrower.yaml", strings.Replace(unprepared(), "bounds: [17, 90]", "bounds: [18, 80]", 1))
	s.expect(t, nil, exitOK, "census: version 2 applied", "policy", "apply", narrower)
	waitForVersion(t, api.NewClient(client["NOISEGATE_URL"], client["NOISEGATE_TOKEN"]), 2)

	code, log := stop()
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, log)
	}
	for _, secret := range []string{client["NOISEGATE_TOKEN"], "kkkkkkkk", "count(*)", "COUNT(*)"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q: %s", secret, log)
		}
	}
}

func waitForVersion(t *testing.T, client *api.Client, version int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		dataset, err := client.Dataset(t.Context(), demoDataset)
		if err == nil && dataset.Version == version {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("version %d was not noticed: %+v, %v", version, dataset, err)
		}
	}
}

// policyMistakes: they are shown as compilers show theirs, file, line and column, and all of them.
func (s *site) policyMistakes(t *testing.T) {
	t.Helper()
	bad := s.write(t, "bad.yaml", strings.NewReplacer("age:            {bounds", "aeg:            {bounds",
		"income:         {domain", "incom:         {domain").Replace(unprepared()))
	code, out, errs := s.run(t, nil, "policy", "check", bad)
	if code != exitRefused || out != "" || strings.Count(errs, bad+":") != 2 || !strings.Contains(errs, `did you mean "age"`) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if code, _, again := s.run(t, nil, "policy", "apply", bad); code != exitRefused || again != errs {
		t.Errorf("exit code %d: apply says %s, check said %s", code, again, errs)
	}
	unknown := s.write(t, "unknown.yaml", "version: 1\ndataset: census\nnoise: off\n")
	s.expect(t, config.Environment{"NOISEGATE_CONFIG": ""}, exitRefused, unknown+":3:1: ", "policy", "check", unknown)
	s.expect(t, config.Environment{"NOISEGATE_CONFIG": ""}, exitOK, "the file is sound", "policy", "check", s.policy)
}

// untestedServer: a server that is newer than what Noisegate was tested with is refused wherever it stands, unless the
// configuration says otherwise.
func (s *site) untestedServer(t *testing.T) {
	t.Helper()
	reader := pgtest.Pose(t, s.database.dsn("noisegate_reader", demoProtected).Reveal(), 99)
	data := config.Environment{"NOISEGATE_DATASETS_CENSUS_DSN": reader}
	s.expect(t, data, exitBackend, "dataset census: PostgreSQL 99 is newer", "serve")
	s.expect(t, data, exitBackend, "allow-untested", "policy", "check", s.policy)
	s.expect(t, data, exitBackend, "PostgreSQL 99 is newer", "policy", "apply", s.policy)
	s.expect(t, config.Environment{"NOISEGATE_CONTROL_DSN": pgtest.Pose(t, s.database.dsn("noisegate", demoControl).Reveal(), 19)},
		exitBackend, "control database: PostgreSQL 19 is newer", "serve")
	data["NOISEGATE_VERSIONS"] = "allow-untested"
	s.expect(t, data, exitOK, "on PostgreSQL 99", "policy", "check", s.policy)
	stop := s.serve(t, data)
	if code, log := stop(); code != exitOK || !strings.Contains(log, `"dataset":"census","postgresql":"99`) {
		t.Errorf("exit code %d: the log does not name the server's version: %s", code, log)
	}
	data["NOISEGATE_DATASETS_CENSUS_DSN"] = pgtest.Pose(t, s.database.dsn("noisegate_reader", demoProtected).Reveal(), 13)
	s.expect(t, data, exitBackend, "PostgreSQL 13 is too old", "serve")
}

// readerThatWrites: it is refused, whatever gave it the right.
func (s *site) readerThatWrites(t *testing.T) {
	t.Helper()
	alter := func(sql string) {
		if err := s.database.as(t.Context(), s.database.super, demoProtected, func(conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(), sql)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	alter("GRANT UPDATE (age) ON public.people TO noisegate_reader")
	s.expect(t, nil, exitBackend, "dataset census: role noisegate_reader", "serve")
	alter("REVOKE UPDATE (age) ON public.people FROM noisegate_reader")
}

// overTLS: with a certificate the gateway speaks HTTP/2 over TLS 1.2 or later, and nothing else.
func (s *site) overTLS(t *testing.T) {
	t.Helper()
	certificate, pool := selfSigned(t, s, time.Hour)
	stop := s.serve(t, config.Environment{"NOISEGATE_HTTP_TLS_CERT_FILE": certificate, "NOISEGATE_HTTP_TLS_KEY_FILE": certificate})
	get := func(c *tls.Config) (string, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}}
		response, err := client.Get("https://" + s.address + "/healthz")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		return fmt.Sprint(response.Proto, " ", response.StatusCode), nil
	}
	if got, err := get(&tls.Config{RootCAs: pool}); got != "HTTP/2.0 200" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := get(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Errorf("TLS 1.1 was accepted: %s", got)
	}
	if code, log := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, log)
	}
}

// selfSigned writes a certificate for 127.0.0.1, which ends after a time, and its key into one file.
func selfSigned(t *testing.T, s *site, ends time.Duration) (file string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(ends),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	name := fmt.Sprintf("tls-%s.pem", ends)
	return s.write(t, name, string(text)+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))), pool
}
