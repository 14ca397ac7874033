package auth_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// reloaded is a verifier whose files a test rewrites.
type reloaded struct {
	*auth.Verifier
	dir string
}

func newReloaded(t *testing.T, config auth.Config, files map[string]string) *reloaded {
	t.Helper()
	r := &reloaded{dir: t.TempDir()}
	for name, text := range files {
		r.write(t, name, text)
	}
	in := func(name string) string {
		if name == "" {
			return ""
		}
		return filepath.Join(r.dir, name)
	}
	config.Issuer, config.Audience, config.Now = issuer, audience, now
	config.RevokedFile = in(config.RevokedFile)
	config.Keys.HS256File, config.Keys.JWKSFile = in(config.Keys.HS256File), in(config.Keys.JWKSFile)
	v, err := auth.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	r.Verifier = v
	return r
}

func (r *reloaded) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect looks whether a token is believed.
func (r *reloaded) expect(t *testing.T, what, token string, believed bool) {
	t.Helper()
	_, err := r.Verify(t.Context(), token)
	if code := fault.CodeOf(err); (err == nil) != believed || !believed && code != fault.CodeAuthInvalid {
		t.Errorf("%s: %v, believed: %t wanted", what, err, believed)
	}
}

// A subject, a token and a key are refused once the list has them, and believed again once it has not; a list that cannot be read, or
// has a line that nobody understands, changes nothing.
//
// covers: A72
func TestRevokedTokens(t *testing.T) {
	public := map[string]ed25519.PublicKey{}
	private := map[string]ed25519.PrivateKey{}
	var keys []string
	for _, kid := range []string{"k1", "k2"} {
		var err error
		if public[kid], private[kid], err = ed25519.GenerateKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, okpJWK(kid, public[kid]))
	}
	r := newReloaded(t, auth.Config{Keys: auth.Keys{JWKSFile: "keys"}, RevokedFile: "revoked"},
		map[string]string{"keys": keySet(keys...), "revoked": "# nothing\n\n"})
	token := func(kid, subject, id string) string {
		header := map[string]any{}
		if kid != "" {
			header["kid"] = kid
		}
		claims := good(map[string]any{"sub": subject})
		if id != "" {
			claims["jti"] = id
		}
		return sign(t, jwt.SigningMethodEdDSA, private[max(kid, "k1")], header, claims)
	}
	tokens := map[string]string{"ana k1": token("k1", "ana", ""), "ana k2": token("k2", "ana", "7"), "bob k1": token("k1", "bob", "8"),
		"bob k2": token("k2", "bob", "7"), "ana smith k1": token("k1", "ana smith", ""), "ana, no kid": token("", "ana", "")}
	for _, c := range []struct{ list, refused string }{
		{"", ""},
		{"subject ana\r\n", "ana k1, ana k2, ana, no kid"},
		{" subject  ana smith \n", "ana smith k1"},
		{"#subject bob\njti 7\n", "ana k2, bob k2"},
		{"kid k2\n", "ana k2, bob k2, ana, no kid"},
		{"kid k1\njti 7\nsubject nobody\n", "ana k1, bob k1, ana smith k1, ana, no kid, ana k2, bob k2"},
		{"", ""},
	} {
		expect := func() {
			t.Helper()
			for name, text := range tokens {
				r.expect(t, c.list+": "+name, text, !strings.Contains(c.refused, name))
			}
		}
		r.write(t, "revoked", c.list)
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect()
		for _, bad := range []string{"ana\n", "subject\n", "subject \n", "sub ana\n", "Subject ana\n", "jti 9\nkid\n", "subject\tana\n",
			"subject a\x00b\n", "subject ana", "jti 7subject ana", "# a note", " ", "subject ana # left\n", "subject ana #\n", "jti 7 8\n",
			"jti 7 # lost\n", "kid k 1\n", "jti 7\rkid k1\r\n", "subject ana\u200b\n"} {
			r.write(t, "revoked", bad)
			if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%q: %v", bad, err)
			}
			expect()
		}
		if err := os.Remove(filepath.Join(r.dir, "revoked")); err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(t.Context()); err == nil {
			t.Error("a list that is not there was read")
		}
		expect()
	}
}

// A jti that is a number is told by its digits; where tokens are revoked, one that no line can name is refused.
func TestRevokedIDs(t *testing.T) {
	r := newReloaded(t, auth.Config{Keys: auth.Keys{HS256File: "key"}, RevokedFile: "revoked"},
		map[string]string{"key": secret, "revoked": ""})
	odd := []any{json.RawMessage("1.5e1"), json.RawMessage("15.0"), json.RawMessage("12345678901234567890"), true, []string{"7"}, "a b"}
	plain := []any{nil, "", "8", 8, -1}
	expect := func(list string, believed bool, ids ...any) {
		t.Helper()
		r.write(t, "revoked", list)
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			token := sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(map[string]any{"jti": id}))
			r.expect(t, fmt.Sprintf("%q: jti %v", list, id), token, believed)
		}
	}
	expect("", true, append(odd, plain...)...)
	expect("subject bob\n", true, append(odd, plain...)...)
	expect("jti 7\n", true, plain...)
	expect("jti 7\n", false, append(odd, "7", 7)...)
	expect("jti -1\njti 8\n", false, "8", 8, -1)
	if got := r.Revoked(); got != "0 subjects, 2 tokens, 0 keys" {
		t.Error(got)
	}
}

// The list is read before keys are fetched, and taken whatever becomes of them.
func TestListIsReadBeforeKeys(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var r *reloaded
	token := sign(t, jwt.SigningMethodEdDSA, private, map[string]any{"kid": "k"}, good(nil))
	fetched := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fetched++; r != nil {
			r.expect(t, "while keys are fetched", token, false)
		}
		fmt.Fprint(w, keySet(okpJWK("k", public)))
	}))
	defer server.Close()
	n := newReloaded(t, auth.Config{Keys: auth.Keys{JWKSURL: server.URL}, RevokedFile: "revoked"}, map[string]string{"revoked": ""})
	n.expect(t, "before", token, true)
	n.write(t, "revoked", "subject ana\n")
	r = n
	if err := r.Reload(t.Context()); err != nil || fetched < 2 {
		t.Errorf("fetched %d times, %v", fetched, err)
	}
}

// Keys in files are replaced by Reload; a file that holds none, or one that New would refuse, changes nothing.
func TestKeysAreReadAgain(t *testing.T) {
	const other = "fedcba9876543210fedcba9876543210"
	r := newReloaded(t, auth.Config{Keys: auth.Keys{HS256File: "key"}, RevokedFile: "revoked"},
		map[string]string{"key": secret, "revoked": ""})
	old := sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(nil))
	next := sign(t, jwt.SigningMethodHS256, []byte(other), nil, good(nil))
	r.expect(t, "before", old, true)
	r.write(t, "key", "short")
	r.write(t, "revoked", "subject bob\n")
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "fewer than 32 bytes") {
		t.Errorf("a short key: %v", err)
	}
	r.expect(t, "after a short key", old, true)
	bob := sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(map[string]any{"sub": "bob"}))
	r.expect(t, "bob, as the list beside it was read", bob, false)
	r.write(t, "key", other)
	r.write(t, "revoked", "kid k1\n")
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "one key") {
		t.Errorf("the name of a key that has none: %v", err)
	}
	r.expect(t, "the key before", old, false)
	r.expect(t, "the key", next, true)

	jwks := newReloaded(t, auth.Config{Keys: auth.Keys{JWKSFile: "keys"}}, map[string]string{"keys": keySet(okpJWK("k", make([]byte, 32)))})
	jwks.write(t, "keys", `{"keys":[]}`)
	if err := jwks.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("a set without keys: %v", err)
	}
}

// A token that lives for longer than is allowed, or does not say for how long, is refused; by default as long as it likes.
func TestLivesOfTokens(t *testing.T) {
	at := func(offset time.Duration) int64 { return now().Add(offset).Unix() }
	for _, c := range []struct {
		name     string
		claims   map[string]any
		believed bool
	}{
		{"a day", map[string]any{"iat": at(-time.Hour), "exp": at(23 * time.Hour)}, true},
		{"a day and a second", map[string]any{"iat": at(-time.Hour), "exp": at(23*time.Hour + time.Second)}, false},
		{"of an old token the rest", map[string]any{"iat": at(-48 * time.Hour), "exp": at(time.Minute)}, false},
		{"without a beginning", map[string]any{"iat": nil, "exp": at(time.Minute)}, false},
		{"that begins later", map[string]any{"iat": at(100 * 24 * time.Hour), "exp": at(100*24*time.Hour + time.Minute)}, false},
		{"of a clock that is ahead", map[string]any{"iat": at(5 * time.Second), "exp": at(time.Hour)}, true},
	} {
		for life, believed := range map[time.Duration]bool{24 * time.Hour: c.believed, 0: true} {
			r := newReloaded(t, auth.Config{Keys: auth.Keys{HS256File: "key"}, MaxLife: life}, map[string]string{"key": secret})
			r.expect(t, c.name, sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(c.claims)), believed)
		}
	}
}

// What is read of a list is what its lines say, and nothing else passes.
func FuzzRevoked(f *testing.F) {
	f.Add("subject ana\njti 7\n# a note\nkid k1")
	f.Add("subject")
	dir := f.TempDir()
	key, list := filepath.Join(dir, "key"), filepath.Join(dir, "revoked")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(list, []byte(text+"\nsubject ana\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := auth.New(t.Context(), auth.Config{Issuer: issuer, Audience: audience, Now: now, Keys: auth.Keys{HS256File: key},
			RevokedFile: list})
		if err != nil {
			return
		}
		if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(nil))); err == nil {
			t.Errorf("%q lets ana in", text)
		}
	})
}

func okpJWK(kid string, key ed25519.PublicKey) string {
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, kid, base64.RawURLEncoding.EncodeToString(key))
}
