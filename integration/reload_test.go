package integration

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
	"noisegate.example/internal/pgtest"
)

const (
	// reloadPatience bounds the wait for a line of the log after SIGHUP.
	reloadPatience = 30 * time.Second
	// removedKey is how long a key that was taken away may be believed.
	removedKey = time.Minute
)

// hangUp sends SIGHUP and waits until the log says what came of it.
func (s *stack) hangUp(t *testing.T, said string) {
	t.Helper()
	before := len(s.log.String())
	if err := s.gateway.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(reloadPatience); !strings.Contains(s.log.String()[before:], said); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after SIGHUP the log does not say %q:\n%s", said, s.log.String()[before:])
		}
	}
}

// let looks whether a token is believed.
func (s *stack) let(t *testing.T, what, token string, believed bool) {
	t.Helper()
	_, err := api.NewClient(s.url, token).Budget(t.Context(), "")
	if (err == nil) != believed || err != nil && problemOf(t, err).Status != http.StatusUnauthorized {
		t.Errorf("%s: %v, believed: %t wanted", what, err, believed)
	}
}

const (
	readAgain   = "were read again"
	staysAsItIs = "stays as it was"
)

// SIGHUP has a gateway read again what tokens are checked against, and its certificates, while it answers. What cannot be read stays.
//
// covers: A72
func TestReload(t *testing.T) {
	t.Parallel()
	sets := []dataset{people(ampleBudget)}
	s := &wireStack{stack: prepareStack(t, sets...)}
	s.writeConfig(t, sets)
	address := pgtest.FreeAddress(t)
	certificate, key := s.certificate(t)
	revoked := filepath.Join(s.dir, "revoked")
	write(t, revoked, "")
	write(t, s.config, strings.Replace(read(t, s.config), "auth: {", "auth: {revoked_file: revoked, ", 1)+
		fmt.Sprintf("wire: {listen: %q, tls_cert_file: %q, tls_key_file: %q}\n", address, certificate, key))
	s.ready(t, sets)
	var found bool
	if s.host, s.port, found = strings.Cut(address, ":"); !found {
		t.Fatal(address)
	}
	process := s.gateway.Process.Pid
	ana, bob := s.tokenOnce(t, "ana", "analyst"), s.token(t, "bob", "analyst")
	session := s.connect(t, "people", nil)
	ask := func() error {
		_, err := session.Exec(t.Context(), "SELECT count(*) FROM people")
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}

	// A revoked subject is refused at both doors, also where it was logged in.
	write(t, revoked, "# left on Friday\nsubject ana\n")
	s.hangUp(t, `"revoked":"1 subjects, 0 tokens, 0 keys"`)
	s.let(t, "a revoked subject", ana, false)
	s.let(t, "another subject", bob, true)
	var refused *pgconn.PgError
	if err := ask(); !errors.As(err, &refused) || refused.Code != "28000" {
		t.Errorf("a session of a revoked subject: %v", err)
	}
	write(t, revoked, "subjects ana\n")
	s.hangUp(t, staysAsItIs)
	s.let(t, "a revoked subject, after a list that nobody understands", ana, false)
	s.let(t, "another subject, after such a list", bob, true)
	write(t, revoked, "")
	s.hangUp(t, readAgain)
	s.let(t, "a subject that is not revoked any more", ana, true)

	// Certificates.
	first := serial(t, address, "postgresql")
	if again := serial(t, address, "postgresql"); again != first {
		t.Fatal("the certificate changes by itself")
	}
	s.certificate(t)
	if got := serial(t, address, "postgresql"); got != first {
		t.Error("a certificate was taken before SIGHUP")
	}
	s.hangUp(t, readAgain)
	second := serial(t, address, "postgresql")
	if second == first {
		t.Error("the new certificate is not shown")
	}
	write(t, certificate, "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n")
	s.hangUp(t, staysAsItIs)
	if got := serial(t, address, "postgresql"); got != second {
		t.Error("a broken certificate took the place of a good one")
	}
	s.certificate(t)
	s.hangUp(t, readAgain)

	s.reloadsWeb(t, certificate, key)

	// Keys.
	hs256 := filepath.Join(s.dir, "hs256.key")
	write(t, hs256, "too short\n")
	s.hangUp(t, staysAsItIs)
	s.let(t, "a token, after a broken key", ana, true)
	secret := make([]byte, 48)
	if _, err := rand.Read(secret); err != nil {
		t.Fatal(err)
	}
	write(t, hs256, hex.EncodeToString(secret)+"\n")
	s.hangUp(t, readAgain)
	s.let(t, "a token of the key before", ana, false)
	s.let(t, "a token of the key", s.token(t, "ana", "analyst"), true)
	s.alive(t)
	if s.gateway.Process.Pid != process {
		t.Error("another process answers")
	}
}

// reloadsWeb looks at the certificate of a second gateway, which is asked over HTTPS.
func (s *wireStack) reloadsWeb(t *testing.T, certificate, key string) {
	t.Helper()
	address := pgtest.FreeAddress(t)
	second := &stack{log: new(logBuffer), gateway: s.command("serve", "--config", s.config)}
	second.gateway.Env = append(second.gateway.Env, "NOISEGATE_HTTP_LISTEN="+address, "NOISEGATE_HTTP_TLS_CERT_FILE="+certificate,
		"NOISEGATE_HTTP_TLS_KEY_FILE="+key, "NOISEGATE_WIRE_LISTEN=", "NOISEGATE_CONTROL_ANCHOR="+filepath.Join(s.dir, "second.json"))
	second.gateway.Stdout, second.gateway.Stderr = second.log, second.log
	second.gateway.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := second.gateway.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = second.gateway.Process.Kill()
		_ = second.gateway.Wait()
	}()
	deadline := time.Now().Add(reloadPatience)
	for ; !strings.Contains(second.log.String(), `"msg":"listening"`); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a second gateway does not listen:\n%s", second.log)
		}
	}
	first := serial(t, address, "h2")
	s.certificate(t)
	second.hangUp(t, readAgain)
	if serial(t, address, "h2") == first {
		t.Error("over HTTPS the new certificate is not shown")
	}
}

// serial is the certificate that a door shows.
func serial(t *testing.T, address, protocol string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// provider serves keys.
type provider struct {
	mu   sync.Mutex
	keys map[string]ed25519.PublicKey
}

// add makes a key, and gives a token of it.
func (p *provider) add(t *testing.T, kid string) (token string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[kid] = public
	claims := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": issuer, "aud": audience, "sub": "ana", "roles": "analyst",
		"exp": time.Now().Add(time.Hour).Unix()})
	claims.Header["kid"] = kid
	if token, err = claims.SignedString(private); err != nil {
		t.Fatal(err)
	}
	return token
}

func (p *provider) remove(kid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, kid)
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for kid, key := range p.keys {
		keys = append(keys, fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, kid, base64.RawURLEncoding.EncodeToString(key)))
	}
	fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
}

// Keys rotate twice within a minute, and nobody who shows a token of the newest one is refused; a key that was taken away is refused within
// a minute by itself, and at once after SIGHUP.
//
// covers: A72
func TestKeysOfAProviderRotate(t *testing.T) {
	t.Parallel()
	p := &provider{keys: map[string]ed25519.PublicKey{}}
	server := httptest.NewServer(p)
	defer server.Close()
	sets := []dataset{people(ampleBudget)}
	s := prepareStack(t, sets...)
	s.writeConfig(t, sets)
	hs256 := regexp.MustCompile(`hs256_file: "[^"]*"`)
	write(t, s.config, hs256.ReplaceAllString(read(t, s.config), fmt.Sprintf("jwks_url: %q", server.URL)))
	var newest atomic.Pointer[string]
	rotated := p.add(t, "k0")
	newest.Store(&rotated)
	s.ready(t, sets)

	stop, asked := make(chan struct{}), 0
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := api.NewClient(s.url, *newest.Load()).Budget(t.Context(), ""); err != nil {
				t.Errorf("a token of the newest key: %v", err)
			}
			asked++
			time.Sleep(20 * time.Millisecond)
		}
	})
	began := time.Now()
	for _, kid := range []string{"k1", "k2"} {
		before := *newest.Load()
		token := p.add(t, kid)
		newest.Store(&token)
		s.let(t, kid, token, true)
		s.let(t, "the key before "+kid, before, true)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("two rotations took %s, which is longer than a minute", took)
	}

	// By itself.
	p.remove("k0")
	gone := time.Now()
	for {
		_, err := api.NewClient(s.url, rotated).Budget(t.Context(), "")
		if err != nil && problemOf(t, err).Status == http.StatusUnauthorized {
			break
		}
		if time.Since(gone) > removedKey {
			t.Fatalf("a key that was taken away is believed after %s: %v", removedKey, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("a key that was taken away was refused after %s", time.Since(gone).Round(100*time.Millisecond))

	// At once.
	last := p.add(t, "k3")
	s.let(t, "k3", last, true)
	p.remove("k3")
	s.hangUp(t, readAgain)
	s.let(t, "k3 was taken away", last, false)
	close(stop)
	clients.Wait()
	if asked < 10 {
		t.Errorf("the client asked %d times", asked)
	}
	server.Close()
	s.hangUp(t, staysAsItIs)
	s.let(t, "the last keys, while the provider is away", *newest.Load(), true)
}
