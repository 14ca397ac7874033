package pgwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgtest"
)

// logged counts the sessions.
func (d *door) logged() int {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	return len(d.server.sessions)
}

// TestThousandIdleSessions: they take 64 MiB at most, both ends of each; others are still answered, and an analyst without a session is let
// in.
func TestThousandIdleSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const many = 1000
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Sessions, c.SessionsPerAnalyst = many, many })
	d.server.config.Sessions = many * 10 / 9 // the last tenth is for who has none
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := held()
	var all []*raw
	for i := range many {
		all = append(all, d.hello(t, map[string]string{"user": []string{"ana", "bob"}[i%2], "options": "-c noisegate.epsilon=0.01"}))
	}
	grown := int64(held() - before)
	t.Logf("%d sessions: %d KiB each, with their clients", many, grown/many/1024)
	if grown > 64<<20 {
		t.Errorf("%d idle sessions take %d MiB", many, grown>>20)
	}
	all = append(all, d.hello(t, map[string]string{"user": "eve"}))
	for i, r := range []*raw{all[0], all[many-1]} {
		_ = r.SetDeadline(time.Now().Add(20 * time.Second))
		if refused := r.query("SELECT count(*) FROM people"); refused != nil {
			t.Errorf("session %d: %s", i, refused.Message)
		}
	}
	for _, r := range all {
		_ = r.Close()
	}
	await(t, "the sessions are gone", func() bool { return d.logged() == 0 })
}

// TestSlowStrangersEnd: who does not say who they are ends within 15 s, however they stretch it.
func TestSlowStrangersEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	config, _ := certificate(t)
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.TLS = config })
	hello := packet(v30, "user\x00ana\x00database\x00census\x00\x00")
	began := time.Now()
	ends := make(chan string, 4)
	for name, says := range map[string][]byte{"nothing": nil, "drops": hello, "no handshake": packet(tlsCode, ""), "no password": hello} {
		r := d.dial(t)
		_ = r.SetDeadline(began.Add(2 * strangerPatience))
		go func() {
			for i := range says {
				if _, err := r.Write(says[i : i+1]); err != nil {
					break
				}
				if name == "drops" {
					time.Sleep(strangerPatience / 20)
				}
			}
			_, err := io.Copy(io.Discard, r)
			ends <- fmt.Sprintf("%s: after %v, %v", name, time.Since(began).Round(time.Second), err)
		}()
	}
	for range cap(ends) {
		said := <-ends
		if took := time.Since(began); took < strangerPatience-time.Second || took > strangerPatience+5*time.Second {
			t.Error(said)
		}
	}
	if n := d.server.strangers.Count(); n != 0 {
		t.Errorf("%d strangers are left", n)
	}
}

// TestWhoDoesNotReadIsGivenUp: a client that asks and takes no answer ends when its patience is over, and with it what it holds.
func TestWhoDoesNotReadIsGivenUp(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.patience = 300 * time.Millisecond })
	r := d.hello(t, nil)
	text, err := (&pgproto3.Query{String: strings.Repeat("SHOW ALL;", 100)}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for { // until the server hangs up
			if _, err := r.Write(text); err != nil {
				return
			}
		}
	}()
	await(t, "the session ends", func() bool { return d.logged() == 0 })
}

// namespace is a separate network in which functions run.
type namespace struct {
	thread int
	work   chan func()
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and the network with it
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		n.thread = syscall.Gettid()
		made <- err
		for f := range n.work {
			f()
		}
	}()
	t.Cleanup(func() { close(n.work) })
	if err := <-made; err != nil {
		pgtest.Without(t, "run it as root", "a network namespace")
	}
	return n
}

func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

// ip runs lines of the program ip.
func (n *namespace) ip(t *testing.T, lines ...string) {
	t.Helper()
	n.do(func() {
		for _, line := range lines {
			if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v %s", line, err, out)
			}
		}
	})
}

// TestOverANetwork: from another network no password is asked for in clear; over TLS it is.
func TestOverANetwork(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		pgtest.Without(t, "apt-get install -y iproute2", "ip")
	}
	here, there := newNamespace(t), newNamespace(t)
	here.ip(t, fmt.Sprintf("link add v0 type veth peer name v1 netns %d", there.thread), "addr add 192.0.2.1/24 dev v0", "link set v0 up")
	there.ip(t, "addr add 192.0.2.2/24 dev v1", "link set v1 up")
	if t.Failed() {
		t.FailNow()
	}
	config, pool := certificate(t)
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.TLS = config })
	var listener net.Listener
	here.do(func() {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "192.0.2.1:0"); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(ctx, listener) }()
	defer func() { stop(); <-served }()
	dial := func() (r *raw) {
		there.do(func() {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			r = &raw{t, conn, pgproto3.NewFrontend(conn, conn)}
		})
		if r == nil {
			t.FailNow()
		}
		return r
	}
	clear := dial()
	clear.send(&pgproto3.StartupMessage{ProtocolVersion: v30, Parameters: map[string]string{"user": "ana", "database": gatewaytest.Dataset}})
	if words := clear.until("ErrorResponse"); len(words) != 1 || words[0] != "ErrorResponse FATAL "+stateLogin {
		t.Error(words)
	}
	secured := tls.Client(dial().Conn, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocolName}})
	(&raw{t, secured, pgproto3.NewFrontend(secured, secured)}).login(nil)
	if d.logged() != 1 {
		t.Error("there is no session")
	}
}

// TestFloodsCloseTheirOwn: strangers of one address, however many, keep nobody of another address out, and close none of its connections.
func TestFloodsCloseTheirOwn(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	first := d.dial(t) // of 127.0.0.1, and silent from now on
	await(t, "the first is accepted", func() bool { return d.server.strangers.Count() == 1 })
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 3 * maxStrangers {
		conn, err := from.DialContext(t.Context(), "tcp", d.address)
		if err != nil {
			t.Fatal("no second address of this machine: ", err)
		}
		defer conn.Close()
	}
	await(t, "the places are taken", func() bool { return d.server.strangers.Count() == maxStrangers })
	for range 5 {
		d.hello(t, nil)
	}
	first.send(&pgproto3.StartupMessage{ProtocolVersion: v30, Parameters: map[string]string{"user": "ana", "database": gatewaytest.Dataset}})
	first.expect(&pgproto3.AuthenticationCleartextPassword{})
}
