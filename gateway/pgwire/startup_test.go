package pgwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/internal/connlimit"
	"noisegate.example/internal/fault"
)

// packet is a start-up packet of a code and what follows it.
func packet(code uint32, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(2*lengthBytes+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

const v30 = majorVersion << 16

// TestStartupIsRefused: what a stranger may say, in order, and the SQLSTATE of the refusal; "" for a connection that is closed
// without a word.
func TestStartupIsRefused(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	user := "user\x00ana\x00database\x00census\x00"
	for name, c := range map[string]struct {
		says  [][]byte
		state string
	}{
		"protocol 2":              {[][]byte{packet(2<<16, user+"\x00")}, stateUnsupported},
		"protocol 4":              {[][]byte{packet(4<<16, user+"\x00")}, stateUnsupported},
		"too short":               {[][]byte{{0, 0, 0, 7, 0, 3, 0}}, stateProtocol},
		"length 0":                {[][]byte{{0, 0, 0, 0}}, stateProtocol},
		"negative length":         {[][]byte{{0xff, 0xff, 0xff, 0xff}}, stateProtocol},
		"too long":                {[][]byte{binary.BigEndian.AppendUint32(nil, maxPacket+1)}, stateProtocol},
		"HTTP":                    {[][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, stateProtocol},
		"no end":                  {[][]byte{packet(v30, user)}, stateProtocol},
		"more after the end":      {[][]byte{packet(v30, user+"\x00x\x00")}, stateProtocol},
		"a name without value":    {[][]byte{packet(v30, "user\x00ana")}, stateProtocol},
		"no user":                 {[][]byte{packet(v30, "database\x00census\x00\x00")}, stateLogin},
		"replication":             {[][]byte{packet(v30, user+"replication\x00database\x00\x00")}, stateUnsupported},
		"options":                 {[][]byte{packet(v30, user+"options\x00-d\x00\x00")}, stateSyntax},
		"options without value":   {[][]byte{packet(v30, user+"options\x00-c x\x00\x00")}, stateSyntax},
		"an SSLRequest with more": {[][]byte{packet(tlsCode, "x")}, stateProtocol},
		"five packets": {[][]byte{packet(gssCode, ""), packet(tlsCode, ""), packet(gssCode, ""), packet(tlsCode, ""), packet(v30,
			user+"\x00")},
			stateProtocol},
		"a cancel without a key":   {[][]byte{packet(cancelCode, "\x00\x00\x00\x01")}, ""},
		"a cancel of nobody":       {[][]byte{packet(cancelCode, "\x00\x00\x00\x01abcd")}, ""},
		"TLS where there is none":  {[][]byte{{tlsRecord, 3, 1, 0}}, stateProtocol},
		"half a packet and no end": {[][]byte{packet(v30, user+"\x00")[:10]}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.dial(t)
			for _, text := range c.says {
				_, _ = r.Write(text)
			}
			_ = r.Conn.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(r)
			answer = bytes.TrimLeft(answer, "N")
			if c.state == "" {
				if len(answer) > 0 {
					t.Errorf("got %q", answer)
				}
				return
			}
			m := new(pgproto3.ErrorResponse)
			if len(answer) < 5 || m.Decode(answer[5:]) != nil || m.Code != c.state || m.Severity != "FATAL" {
				t.Errorf("got %q, want SQLSTATE %s", answer, c.state)
			}
		})
	}
}

// Bearers of genuine tokens that are not taken are told why; everybody else hears one text.
func TestRefusalsOfTokens(t *testing.T) {
	const other = "the user is the subject of the token, and the token is the password"
	for _, c := range []struct {
		err  error
		hint string
	}{
		{fault.AuthExpired(time.Unix(0, 0)), "the token expired"},
		{fault.AuthLongLived(24 * time.Hour), "from its iat to its exp there may be 24h0m0s; get one that ends sooner"},
		{fault.AuthInvalid(errors.New("revoked")), other}, {fault.AuthMissing(), other}, {nil, other},
	} {
		for state, r := range map[string]*refusal{statePassword: wrongPassword("ana", c.err), stateLogin: wrongBearer("ana", c.err)} {
			if r.state != state || !strings.Contains(r.hint, c.hint) || !strings.Contains(r.text, `authentication failed for user "ana"`) {
				t.Errorf("%v: %s, hint %s", c.err, r, r.hint)
			}
		}
	}
}

// TestLogin: who may come in, and what others are told.
//
// covers: A72
func TestLogin(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	d.tokens.Withdraw("old:analyst", fault.AuthExpired(time.Unix(0, 0)))
	for name, c := range map[string]struct{ user, password, database, more, state string }{
		"an analyst":                   {"ana", "ana:analyst", "census", "", ""},
		"settings":                     {"ana", "ana:analyst", "census", "&application_name=x&timezone=Europe%2FBerlin", ""},
		"another's token":              {"eve", "ana:analyst", "census", "", statePassword},
		"a forged token":               {"ana", "forged", "census", "", statePassword},
		"no token":                     {"ana", "", "census", "", statePassword},
		"an old token":                 {"old", "old:analyst", "census", "", statePassword},
		"a steward":                    {"sam", "sam:steward", "census", "", statePassword},
		"another dataset":              {"ana", "ana:analyst", "payroll", "", stateNoDatabase},
		"the user's name":              {"ana", "ana:analyst", "", "", stateNoDatabase},
		"an encoding in quotes":        {"ana", "ana:analyst", "census", "&client_encoding=%27utf-8%27", ""},
		"an unknown setting":           {"ana", "ana:analyst", "census", "&data_directory=x", stateUnknownSetting},
		"an unknown setting of ours":   {"ana", "ana:analyst", "census", "&options=-c%20noisegate.epsilom%3D1", stateUnknownSetting},
		"another encoding":             {"ana", "ana:analyst", "census", "&client_encoding=LATIN1", stateValue},
		"a setting that is not theirs": {"ana", "ana:analyst", "census", "&is_superuser=on", stateSettingFixed},
		"a setting of other bytes":     {"ana", "ana:analyst", "census", "&search_path=%FF", stateText},
		"a panic":                      {"panic", "panic:analyst", "census", "", stateInternal},
	} {
		t.Run(name, func(t *testing.T) {
			url := "postgres://" + c.user + ":" + strings.ReplaceAll(c.password, ":", "%3A") + "@" + d.address + "/" + c.database +
				"?sslmode=disable" + c.more
			conn, err := pgconn.Connect(t.Context(), url)
			if c.state == "" {
				if err != nil {
					t.Fatal(err)
				}
				for parameter, want := range map[string]string{"server_version": shownVersion, "standard_conforming_strings": "on",
					"client_encoding": "UTF8", "DateStyle": "ISO, MDY", "default_transaction_read_only": "on", "is_superuser": "off",
					"session_authorization": c.user} {
					if got := conn.ParameterStatus(parameter); got != want {
						t.Errorf("%s is %q, want %q", parameter, got, want)
					}
				}
				_ = conn.Close(t.Context())
				return
			}
			refused := refusedWith(t, err, c.state)
			if refused.Severity != "FATAL" {
				t.Errorf("severity %s", refused.Severity)
			}
			if c.state == statePassword && refused.Message != `password authentication failed for user "`+c.user+`"` {
				t.Errorf("message %q", refused.Message)
			}
		})
	}
	if log := d.log.String(); strings.Contains(log, ":analyst") || strings.Contains(log, "forged") || strings.Contains(log,
		"text of a panic") {
		t.Errorf("the log has a token or a panic's text: %s", log)
	}
}

// TestVersions: newer clients are told what is spoken, and get a longer key for it.
func TestVersions(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	for name, c := range map[string]struct {
		version   uint32
		option    string
		negotiate []string // nil: not; else the options that are not known
		key       int
	}{
		"3.0":               {v30, "", nil, shortKey},
		"3.2":               {v30 | 2, "", nil, longKey},
		"3.9999":            {v30 | 9999, "", []string{}, longKey},
		"3.0 and an option": {v30, "_pq_.x", []string{"_pq_.x"}, shortKey},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.dial(t)
			parameters := map[string]string{"user": "ana", "database": "census"}
			if c.option != "" {
				parameters[c.option] = "on"
			}
			r.send(&pgproto3.StartupMessage{ProtocolVersion: c.version, Parameters: parameters})
			m := r.receive()
			if n, ok := m.(*pgproto3.NegotiateProtocolVersion); ok != (c.negotiate != nil) {
				t.Fatalf("got %T", m)
			} else if ok {
				if n.NewestMinorProtocol != min(c.version, v30|newestMinor) || !slices.Equal(n.UnrecognizedOptions, c.negotiate) {
					t.Errorf("%+v", n)
				}
				m = r.receive()
			}
			if _, ok := m.(*pgproto3.AuthenticationCleartextPassword); !ok {
				t.Fatalf("got %T", m)
			}
			r.send(&pgproto3.PasswordMessage{Password: "ana:analyst"})
			for {
				if m, ok := r.receive().(*pgproto3.BackendKeyData); ok {
					if len(m.SecretKey) != c.key {
						t.Errorf("a key of %d bytes, want %d", len(m.SecretKey), c.key)
					}
					return
				}
			}
		})
	}
}

// TestTLS: asked for or direct, and nothing that came before it counts as said inside it.
//
// covers: A72
func TestTLS(t *testing.T) {
	config, pool := certificate(t)
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.TLS = config })
	for _, negotiation := range []string{"postgres", "direct"} {
		parsed, err := pgconn.ParseConfig(d.url("ana", "sslmode=require"))
		if err != nil {
			t.Fatal(err)
		}
		parsed.TLSConfig = &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
		if parsed.SSLNegotiation = negotiation; negotiation == "direct" {
			parsed.TLSConfig.NextProtos = []string{protocolName}
		}
		conn, err := pgconn.ConnectConfig(t.Context(), parsed)
		if err != nil {
			t.Fatalf("%s: %v", negotiation, err)
		}
		_ = conn.Close(t.Context())
	}
	t.Run("direct without ALPN", func(t *testing.T) {
		client := tls.Client(d.dial(t), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
		if err := client.HandshakeContext(t.Context()); err == nil {
			if n, err := client.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Error("the server answers")
			}
		}
	})
	t.Run("bytes before the handshake", func(t *testing.T) {
		r := d.dial(t)
		injected := packet(v30, "user\x00eve\x00database\x00census\x00\x00")
		if _, err := r.Write(append(packet(tlsCode, ""), injected...)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 1)
		if _, err := io.ReadFull(r, answer); err != nil || answer[0] != 'S' {
			t.Fatalf("%q %v", answer, err)
		}
		if err := tls.Client(r, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1",
			MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context()); err == nil {
			t.Error("the handshake went on after bytes that were sent in clear")
		}
	})
	t.Run("TLS twice", func(t *testing.T) {
		r := d.dial(t)
		_, _ = r.Write(packet(tlsCode, ""))
		_, _ = io.ReadFull(r, make([]byte, 1))
		client := tls.Client(r, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
		_, _ = client.Write(packet(tlsCode, ""))
		if text, _ := io.ReadAll(client); !bytes.Contains(text, []byte(stateProtocol)) {
			t.Errorf("got %q", text)
		}
	})
	t.Run("an old version", func(t *testing.T) {
		r := d.dial(t)
		_, _ = r.Write(packet(tlsCode, ""))
		_, _ = io.ReadFull(r, make([]byte, 1))
		old := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
		if err := tls.Client(r, old).HandshakeContext(t.Context()); err == nil {
			t.Error("TLS 1.1 was taken")
		}
	})
}

// far is a connection from another machine.
type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// TestClearTextStaysOnThisMachine: from elsewhere no password is asked for in clear, whatever is configured.
func TestClearTextStaysOnThisMachine(t *testing.T) {
	config, pool := certificate(t)
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.TLS = config })
	meet := func(wrap func(net.Conn) net.Conn) net.Conn {
		client, server := net.Pipe()
		go d.server.handle(context.Background(), wrap(server))
		t.Cleanup(func() { _ = client.Close() })
		_ = client.SetDeadline(time.Now().Add(10 * time.Second))
		return client
	}
	hello := packet(v30, "user\x00ana\x00database\x00census\x00\x00")
	client := meet(func(c net.Conn) net.Conn { return far{c} })
	_, _ = client.Write(hello)
	if text, _ := io.ReadAll(client); !bytes.Contains(text, []byte(stateLogin)) || text[0] != 'E' {
		t.Errorf("got %q", text)
	}
	client = meet(func(c net.Conn) net.Conn { return far{c} })
	_, _ = client.Write(packet(tlsCode, ""))
	_, _ = io.ReadFull(client, make([]byte, 1))
	secured := tls.Client(client, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	_, _ = secured.Write(hello)
	if text := make([]byte, 9); true {
		if _, err := io.ReadFull(secured, text); err != nil || text[0] != 'R' {
			t.Errorf("got %q, %v: a password was to be asked for", text, err)
		}
	}
	unix, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	go func() {
		if conn, err := unix.Accept(); err == nil {
			d.server.handle(context.Background(), conn)
		}
	}()
	local, err := (&net.Dialer{}).DialContext(t.Context(), "unix", unix.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	_, _ = local.Write(hello)
	if text := make([]byte, 9); true {
		if _, err := io.ReadFull(local, text); err != nil || text[0] != 'R' {
			t.Errorf("over a unix socket: %q, %v", text, err)
		}
	}
}

// TestStrangersAreFew: those who say nothing take no more than their places, and keep nobody out: the one who is silent longest
// gives way.
//
// covers: A85
func TestStrangersAreFew(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	accepted := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); d.server.strangers.Count() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d strangers are not accepted within 10 s", n)
			}
		}
	}
	first := d.dial(t)
	accepted(1) // before the others, so that it is silent longest
	for range maxStrangers - 1 {
		d.dial(t)
	}
	accepted(maxStrangers)
	time.Sleep(connlimit.Grace)
	for range 2 * maxStrangers {
		conn, err := pgconn.Connect(t.Context(), d.url("ana", "sslmode=disable"))
		if err != nil {
			t.Fatal("silent connections keep others out: ", err)
		}
		_ = conn.Close(t.Context())
	}
	_ = first.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that is silent longest: %v", err)
	}
	if n := d.server.strangers.Count(); n > maxStrangers {
		t.Errorf("%d strangers", n)
	}
}

func TestPasswordHasALimit(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.dial(t)
	r.send(&pgproto3.StartupMessage{ProtocolVersion: v30, Parameters: map[string]string{"user": "ana", "database": "census"}})
	r.expect(&pgproto3.AuthenticationCleartextPassword{})
	_, _ = r.Write(binary.BigEndian.AppendUint32([]byte{'p'}, 1<<30))
	if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateTooLarge {
		t.Error(words)
	}
	r = d.dial(t)
	r.send(&pgproto3.StartupMessage{ProtocolVersion: v30, Parameters: map[string]string{"user": "ana", "database": "census"}})
	r.expect(&pgproto3.AuthenticationCleartextPassword{})
	r.send(&pgproto3.Query{String: "SELECT count(*) FROM people"})
	if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateProtocol {
		t.Error(words)
	}
}

// TestSessionsAreLimited: for each analyst; a session that ends gives its place back.
func TestSessionsAreLimited(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Sessions, c.SessionsPerAnalyst = 3, 2 })
	open := func(who string) (*pgconn.PgConn, error) {
		return pgconn.Connect(t.Context(), d.url(who, "sslmode=disable"))
	}
	var conns []*pgconn.PgConn
	for _, who := range []string{"ana", "ana", "bob"} {
		conn, err := open(who)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	_, err := open("ana")
	_ = refusedWith(t, err, stateTooMany)
	_ = conns[0].Close(t.Context())
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := open("ana")
		if err == nil {
			_ = conn.Close(t.Context())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed session is not free within 10 s")
		}
	}
	for _, conn := range conns[1:] {
		_ = conn.Close(t.Context())
	}
}

// TestTokenEnds: the statement that runs is finished; the next one ends the session.
func TestTokenEnds(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	r.send(&pgproto3.Query{String: "SELECT count(*) FROM people"})
	r.until("ReadyForQuery I")
	d.tokens.Withdraw("ana:analyst", fault.AuthExpired(time.Unix(0, 0)))
	r.send(&pgproto3.Query{String: "SELECT count(*) FROM people"})
	if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateLogin {
		t.Error(words)
	}
	if _, err := r.front.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the session goes on: %v", err)
	}
}

// TestAccountsEnd: a policy that takes an analyst's account away ends the sessions at their next statement, whatever it is; the sessions
// of others go on.
func TestAccountsEnd(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	ana := d.hello(t, nil)
	bi := d.hello(t, map[string]string{"user": "bi"})
	d.applyPolicy(t, strings.Replace(gatewaytest.Policy, "{group: analysts, per", "{group: others, per", 1))
	for _, r := range []*raw{bi, bi} {
		if refused := r.query("SHOW noisegate.budget"); refused != nil {
			t.Errorf("another's session: %s", refused.Message)
		}
	}
	ana.send(&pgproto3.Query{String: "SHOW server_version"})
	if words := ana.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateNoDatabase {
		t.Error(words)
	}
	if _, err := ana.front.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the session goes on: %v", err)
	}
}

// TestSessionsOutliveAnOutage: while the ledger does not say whether an analyst still has an account, statements are refused in either
// protocol and the session stays, for when it does.
func TestSessionsOutliveAnOutage(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	ana := d.hello(t, nil)
	d.applyPolicy(t, strings.Replace(gatewaytest.Policy, "epsilon: 10", "epsilon: 11", 1))
	d.Control.Exec(t, "ALTER TABLE noisegate.account RENAME TO away")
	if refused := ana.query("SHOW server_version"); refused == nil || refused.Code != stateUnavailable || refused.Severity != "ERROR" {
		t.Errorf("simple: %+v", refused)
	}
	ana.send(&pgproto3.Parse{Query: "SHOW server_version"}, new(pgproto3.Sync))
	if words := ana.until("ReadyForQuery"); !slices.Contains(words, "ErrorResponse ERROR "+stateUnavailable) {
		t.Error(words)
	}
	d.Control.Exec(t, "ALTER TABLE noisegate.away RENAME TO account")
	if refused := ana.query("SHOW server_version"); refused != nil {
		t.Errorf("afterwards: %+v", refused)
	}
}

// TestStopping: idle sessions are told; what runs is finished first; nobody new comes in.
//
// covers: F20
func TestStopping(t *testing.T) {
	d := opened(t, gatewaytest.Options{Quantum: 100 * time.Millisecond}, nil)
	idle := d.hello(t, nil)
	busy := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	busy.send(&pgproto3.Query{String: "SELECT count(*) FROM people"})
	for deadline := time.Now().Add(10 * time.Second); !d.isRunning(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no question runs within 10 s")
		}
	}
	d.stop()
	want := "ErrorResponse FATAL " + stateStopping
	if words := idle.until("ErrorResponse"); words[0] != want {
		t.Error(words)
	}
	words := busy.until("ErrorResponse")
	if !slices.Contains(words, "CommandComplete SELECT 1") || words[len(words)-1] != want {
		t.Error(words)
	}
	if conn, err := net.Dial("tcp", d.address); err == nil {
		_ = conn.Close()
		t.Error("the server still takes connections")
	}
}

// isRunning reports whether a question of some session runs.
func (d *door) isRunning() bool {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	for _, c := range d.server.sessions {
		if c.isAsking() {
			return true
		}
	}
	return false
}

func TestOptions(t *testing.T) {
	for text, want := range map[string][]parameter{
		"":                                  nil,
		"-c a=1":                            {{"a", "1"}},
		"  -ca=1\t--b-c=2 ":                 {{"a", "1"}, {"b_c", "2"}},
		`-c a=x\ y -c b=\\`:                 {{"a", "x y"}, {"b", `\`}},
		"-c noisegate.epsilon=0.1 -c geqo=": {{"noisegate.epsilon", "0.1"}, {"geqo", ""}},
	} {
		got, err := splitOptions(text)
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(parameter{})) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a=1", "-c", "-c a", "-d 5", "--", "-c =1"} {
		if got, err := splitOptions(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzStartup: whatever a stranger sends, there is no panic, and nothing is read beyond the packet.
func FuzzStartup(f *testing.F) {
	f.Add(packet(v30, "user\x00ana\x00database\x00census\x00options\x00-c a=b\x00\x00"))
	f.Add(packet(tlsCode, ""))
	f.Add(packet(v30|9999, "_pq_.x\x001\x00\x00"))
	f.Add([]byte{0, 0, 0, 8, 4, 210})
	f.Fuzz(func(t *testing.T, text []byte) {
		reader := bytes.NewReader(append(bytes.Clone(text), "the rest"...))
		body, err := readPacket(reader, nil)
		if err != nil {
			return
		}
		if read := len(text) + len("the rest") - reader.Len(); read != len(body)+lengthBytes || read > maxPacket {
			t.Fatalf("%d bytes read of a packet of %d", read, len(body)+lengthBytes)
		}
		if h, err := parseHello(body); err == nil && h.minor > newestMinor {
			t.Fatalf("minor version %d", h.minor)
		}
	})
}
