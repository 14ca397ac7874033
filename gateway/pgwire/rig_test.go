package pgwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// durable is the server of all control databases of this package's tests.
var durable *pgserver.Server

func TestMain(m *testing.M) { os.Exit(gatewaytest.Main(m, &durable)) }

// door is a running server over a whole gateway.
type door struct {
	*gatewaytest.Gateway
	server  *Server
	tokens  *gatewaytest.Names
	address string
	log     *gatewaytest.Log
	one     *raw
	stop    context.CancelFunc
	stopped chan error
}

// opened gives a door that takes clear text from this machine. Parts of the configuration that change are made there.
func opened(t testing.TB, o gatewaytest.Options, change func(*Config)) *door {
	t.Helper()
	return openedOn(t, gatewaytest.New(t, durable, o), change)
}

// openedOver gives a door to a protected database and a policy of the test's own.
func openedOver(t testing.TB, protected *pgtest.ProtectedDatabase, policy string) *door {
	t.Helper()
	return openedOn(t, assembled(t, protected, policy), nil)
}

// assembled is a gateway over a protected database and a policy of the test's own.
func assembled(t testing.TB, protected *pgtest.ProtectedDatabase, policy string) *gatewaytest.Gateway {
	t.Helper()
	control := pgtest.On(t, durable)
	databases := gatewaytest.Databases{Ledger: control.LedgerDSN, Reader: protected.ReaderDSN}
	g, err := gatewaytest.Assemble(t.Context(), databases, gatewaytest.Options{})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(g.Close)
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Text: []byte(policy)}
	if _, err := g.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	g.Protected = protected
	g.Control = control
	return g
}

func openedOn(t testing.TB, g *gatewaytest.Gateway, change func(*Config)) *door {
	t.Helper()
	d := &door{Gateway: g, tokens: new(gatewaytest.Names), log: new(gatewaytest.Log), stopped: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config := Config{Service: d.Service, Questions: d.Fit.Questions(), Verifier: d.tokens, Log: log}
	if change != nil {
		change(&config)
	}
	var err error
	if d.server, err = New(config); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	go func() { d.stopped <- d.server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-d.stopped:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server did not stop within 20 s")
		}
	})
	return d
}

// url is how a client connects.
func (d *door) url(subject, parameters string) string {
	return "postgres://" + subject + ":" + subject + "%3Aanalyst@" + d.address + "/" + gatewaytest.Dataset + "?" + parameters
}

// connect is a client of pgx. Notices go to the list, which is nil for none.
func (d *door) connect(t testing.TB, parameters string, notices *[]*pgconn.Notice) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.url("ana", "sslmode=disable&"+parameters))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if notices != nil {
			*notices = append(*notices, n)
		}
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

const priced = "options=-c%20noisegate.epsilon%3D0.1"

// raw is a client by hand.
type raw struct {
	t *testing.T
	net.Conn
	front *pgproto3.Frontend
}

// dial makes one that has said nothing yet.
func (d *door) dial(t *testing.T) *raw {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{t, conn, pgproto3.NewFrontend(conn, conn)}
}

// hello logs in by hand, up to the first ReadyForQuery.
func (d *door) hello(t *testing.T, parameters map[string]string) *raw {
	t.Helper()
	r := d.dial(t)
	r.login(parameters)
	return r
}

// login says who the client is, up to the first ReadyForQuery.
func (r *raw) login(parameters map[string]string) {
	r.t.Helper()
	all := map[string]string{"user": "ana", "database": gatewaytest.Dataset}
	for name, v := range parameters {
		all[name] = v
	}
	r.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: all})
	r.expect(&pgproto3.AuthenticationCleartextPassword{})
	r.send(&pgproto3.PasswordMessage{Password: all["user"] + ":analyst"})
	r.until("ReadyForQuery")
}

func (r *raw) send(messages ...pgproto3.FrontendMessage) {
	r.t.Helper()
	for _, m := range messages {
		r.front.Send(m)
	}
	if err := r.front.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) receive() pgproto3.BackendMessage {
	r.t.Helper()
	m, err := r.front.Receive()
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *raw) expect(want pgproto3.BackendMessage) {
	r.t.Helper()
	if m := r.receive(); fmt.Sprintf("%T", m) != fmt.Sprintf("%T", want) {
		r.t.Fatalf("got %T %+v, want %T", m, m, want)
	}
}

// until reads up to a message of a name, and says what came, one word each.
func (r *raw) until(last string) (story []string) {
	r.t.Helper()
	for {
		word := wordOf(r.receive())
		if story = append(story, word); strings.HasPrefix(word, last) {
			return story
		}
	}
}

// wordOf is a message for people.
func wordOf(m pgproto3.BackendMessage) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		return name + " " + m.Severity + " " + m.Code
	case *pgproto3.NoticeResponse:
		return name + " " + m.Severity + " " + m.Code
	case *pgproto3.ReadyForQuery:
		return name + " " + string(m.TxStatus)
	case *pgproto3.CommandComplete:
		return name + " " + string(m.CommandTag)
	default:
		return name
	}
}

// refusedWith asks for the SQLSTATE of an error of a client.
func refusedWith(t *testing.T, err error, state string) *pgconn.PgError {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != state {
		t.Fatalf("got %v, want SQLSTATE %s", err, state)
	}
	return refused
}

// certificate is one for 127.0.0.1, and who signed it.
func certificate(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "noisegate"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, pool
}

// script is a connection that says a text, takes whatever it is told, and hangs up when it has nothing to wait for.
type script struct {
	net.Conn
	says  []byte
	waits func() bool
	over  atomic.Bool // there is a deadline, which is over
}

func (s *script) Read(b []byte) (int, error) {
	for len(s.says) == 0 {
		switch {
		case s.over.Load():
			return 0, os.ErrDeadlineExceeded
		case !s.waits():
			return 0, io.EOF
		}
		time.Sleep(100 * time.Microsecond)
	}
	n := copy(b, s.says)
	s.says = s.says[n:]
	return n, nil
}

// SetReadDeadline implements [net.Conn].
func (s *script) SetReadDeadline(t time.Time) error {
	s.over.Store(!t.IsZero())
	return nil
}

// SetDeadline implements [net.Conn].
func (s *script) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

func (*script) Write(b []byte) (int, error)      { return len(b), nil }
func (*script) Close() error                     { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// isAsking reports whether the service works for a session.
func (c *session) isAsking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running != ""
}

// query asks and gives the error; nil for none.
func (r *raw) query(sql string) (refused *pgproto3.ErrorResponse) {
	r.t.Helper()
	r.send(&pgproto3.Query{String: sql})
	for {
		switch m := r.receive().(type) {
		case *pgproto3.ErrorResponse:
			one := *m
			refused = &one
		case *pgproto3.ReadyForQuery:
			return refused
		}
	}
}

// applyPolicy puts a second version of the policy in force.
func (d *door) applyPolicy(t *testing.T, text string) {
	t.Helper()
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Text: []byte(text), Replaces: 1}
	if _, err := d.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
}
