package auth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

const (
	issuer   = "https://issuer.test"
	audience = "noisegate"
	secret   = "0123456789abcdef0123456789abcdef"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func verifier(t *testing.T, keys auth.Keys) *auth.Verifier {
	t.Helper()
	v, err := auth.New(t.Context(), auth.Config{Issuer: issuer, Audience: audience, Keys: keys, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// good gives the claims of a valid token, changed by edits: a nil value takes the claim away.
func good(edits map[string]any) jwt.MapClaims {
	claims := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "ana", "roles": []string{"analyst"},
		"iat": now().Add(-time.Minute).Unix(), "nbf": now().Add(-time.Minute).Unix(), "exp": now().Add(time.Hour).Unix(),
	}
	for name, value := range edits {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func sign(t *testing.T, method jwt.SigningMethod, key any, header map[string]any, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for name, value := range header {
		token.Header[name] = value
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rawHS256 signs texts that no encoder would write.
func rawHS256(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	body := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return body + "." + encode(mac.Sum(nil))
}

func TestPrincipalOfToken(t *testing.T) {
	v := verifier(t, auth.Keys{HS256File: write(t, "key", secret+"\n")})
	for name, c := range map[string]struct {
		edits map[string]any
		want  auth.Principal
	}{
		"analyst": {nil, auth.Principal{Subject: "ana", Roles: []auth.Role{"analyst"},
			Groups: []string{"analysts", "role:analysts"}}},
		"all roles and a group": {map[string]any{"roles": []string{"steward", "ml", "analyst", "analyst", "root"}, "groups": []string{"north"}},
			auth.Principal{Subject: "ana", Roles: []auth.Role{"analyst", "ml", "steward"},
				Groups: []string{"analysts", "ml", "north", "role:analysts", "role:ml"}}},
		"roles as words": {map[string]any{"roles": "analyst ml"},
			auth.Principal{Subject: "ana", Roles: []auth.Role{"analyst", "ml"},
				Groups: []string{"analysts", "ml", "role:analysts", "role:ml"}}},
		"groups that look like a role's": {map[string]any{"roles": nil, "groups": []string{"Role:analysts", "role", "my role:ml", " role:ml"}},
			auth.Principal{Subject: "ana", Groups: []string{" role:ml", "Role:analysts", "my role:ml", "role"}}},
		"no roles":           {map[string]any{"roles": nil}, auth.Principal{Subject: "ana"}},
		"several audiences":  {map[string]any{"aud": []string{"other", audience}, "roles": nil}, auth.Principal{Subject: "ana"}},
		"clocks that differ": {map[string]any{"nbf": now().Add(5 * time.Second).Unix(), "roles": nil}, auth.Principal{Subject: "ana"}},
		"no nbf":             {map[string]any{"nbf": nil, "roles": nil}, auth.Principal{Subject: "ana"}},
		"composed letters, scripts and spaces": {map[string]any{"sub": "José Ñandú 李 עברית ana@x.test", "roles": nil},
			auth.Principal{Subject: "José Ñandú 李 עברית ana@x.test"}},
		"unprintable group": {map[string]any{"roles": nil, "groups": []string{"a\x00b", "ok"}},
			auth.Principal{Subject: "ana", Groups: []string{"ok"}}},
		"groups of other forms, which may have caps": {map[string]any{"roles": nil, "groups": []string{"a\u200bb", "A\u0308", "R＆D"}},
			auth.Principal{Subject: "ana", Groups: []string{"A\u0308", "R＆D", "a\u200bb"}}},
		"role names are exact": {map[string]any{"roles": []string{"Steward", "STEWARD", " steward"}}, auth.Principal{Subject: "ana"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(c.edits)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A group of the identity provider does not take the name of a role's group: its token is refused, and no cap is left out.
func TestNoGroupIsARole(t *testing.T) {
	v := verifier(t, auth.Keys{HS256File: write(t, "key", secret)})
	for _, group := range []string{"role:analysts", "role:ml", "role:", "role:new", "role:steward"} {
		for _, groups := range []any{group, []string{"north", group}} {
			token := sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(map[string]any{"groups": groups}))
			if p, err := v.Verify(t.Context(), token); fault.CodeOf(err) != fault.CodeAuthInvalid {
				t.Errorf("%v: %+v, %v", groups, p, err)
			}
		}
	}
}

func TestClaimsMapping(t *testing.T) {
	v, err := auth.New(t.Context(), auth.Config{
		Issuer: issuer, Audience: audience, Now: now, Keys: auth.Keys{HS256File: write(t, "key", secret)},
		Claims: auth.Claims{Subject: "email", Roles: "realm_access.roles", Groups: "https://x.test/groups"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), nil, good(map[string]any{
		"email": "ana@x.test", "realm_access": map[string]any{"roles": []string{"steward"}}, "https://x.test/groups": []string{"g"},
	})))
	if err != nil {
		t.Fatal(err)
	}
	want := auth.Principal{Subject: "ana@x.test", Roles: []auth.Role{"steward"}, Groups: []string{"g"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDevTokenIsAccepted(t *testing.T) {
	v := verifier(t, auth.Keys{HS256File: write(t, "key", secret)})
	text, err := auth.DevToken{Secret: []byte(secret), Issuer: issuer, Audience: audience, Subject: "sam",
		Roles: []auth.Role{auth.Steward}, Issued: now(), Lifetime: time.Hour}.Sign()
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), text)
	if err != nil || got.Subject != "sam" || !got.Has(auth.Steward) || got.Has(auth.Analyst) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestForgedTokens shows every kind of forged token that we know to a verifier with a symmetric key and to one with
// asymmetric keys. All get the same text.
//
// covers: A72
func TestForgedTokens(t *testing.T) {
	rsaKey, weakKey := newRSA(t, 2048), newRSA(t, 1024)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := publicKeyPEM(t, &rsaKey.PublicKey)
	hs := verifier(t, auth.Keys{HS256File: write(t, "key", secret)})
	jwks := verifier(t, auth.Keys{JWKSFile: write(t, "jwks.json", keySet(rsaJWK("r1", &rsaKey.PublicKey), ecJWK("e1", &ecKey.PublicKey)))})

	hmacOf := func(method jwt.SigningMethod, header, edits map[string]any) string {
		return sign(t, method, []byte(secret), header, good(edits))
	}
	rsaOf := func(key *rsa.PrivateKey, header map[string]any) string {
		return sign(t, jwt.SigningMethodRS256, key, header, good(nil))
	}
	valid := hmacOf(jwt.SigningMethodHS256, nil, nil)
	head, rest, _ := strings.Cut(valid, ".")
	body, signature, _ := strings.Cut(rest, ".")
	goodJSON, err := json.Marshal(good(nil))
	if err != nil {
		t.Fatal(err)
	}
	doubled := func(extra string) string { return strings.TrimSuffix(string(goodJSON), "}") + "," + extra + "}" }
	none := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, good(nil))
	encode := base64.RawURLEncoding.EncodeToString
	const hsHeader = `{"alg":"HS256","typ":"JWT"}`

	forged := map[string]string{
		"alg none":                   none,
		"alg none with a signature":  none + signature,
		"alg None":                   encode([]byte(`{"alg":"None"}`)) + "." + body + ".",
		"alg missing":                rawHS256(`{"typ":"JWT"}`, string(goodJSON)),
		"alg not text":               rawHS256(`{"alg":["HS256"]}`, string(goodJSON)),
		"alg unknown":                rawHS256(`{"alg":"HS257"}`, string(goodJSON)),
		"HS384":                      hmacOf(jwt.SigningMethodHS384, nil, nil),
		"HS512":                      hmacOf(jwt.SigningMethodHS512, nil, nil),
		"another secret":             sign(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), nil, good(nil)),
		"empty secret":               sign(t, jwt.SigningMethodHS256, []byte{}, nil, good(nil)),
		"public key as secret":       sign(t, jwt.SigningMethodHS256, publicPEM, map[string]any{"kid": "r1"}, good(nil)),
		"modulus as secret":          sign(t, jwt.SigningMethodHS256, rsaKey.N.Bytes(), map[string]any{"kid": "r1"}, good(nil)),
		"stranger's RSA key":         rsaOf(newRSA(t, 2048), map[string]any{"kid": "r1"}),
		"stranger's RSA key, no kid": rsaOf(newRSA(t, 2048), nil),
		"weak RSA key":               rsaOf(weakKey, map[string]any{"kid": "r1"}),
		"kid of another key":         rsaOf(rsaKey, map[string]any{"kid": "e1"}),
		"kid unknown":                rsaOf(rsaKey, map[string]any{"kid": "zz"}),
		"kid path":                   rsaOf(rsaKey, map[string]any{"kid": "../../dev/null"}),
		"kid SQL":                    rsaOf(rsaKey, map[string]any{"kid": "r1' or '1'='1"}),
		"kid URL":                    rsaOf(rsaKey, map[string]any{"kid": "http://evil.test/key"}),
		"kid number":                 rsaOf(rsaKey, map[string]any{"kid": 1}),
		"jku":                        rsaOf(newRSA(t, 2048), map[string]any{"jku": "http://evil.test/jwks", "kid": "evil"}),
		"x5u":                        rsaOf(newRSA(t, 2048), map[string]any{"x5u": "http://evil.test/cert", "kid": "evil"}),
		"embedded jwk":               embedded(t),
		"crit":                       hmacOf(jwt.SigningMethodHS256, map[string]any{"crit": []string{"exp"}}, nil),
		"b64 false and crit":         hmacOf(jwt.SigningMethodHS256, map[string]any{"b64": false, "crit": []string{"b64"}}, nil),
		"typ of another token":       hmacOf(jwt.SigningMethodHS256, map[string]any{"typ": "logout+jwt"}, nil),
		"typ not text":               hmacOf(jwt.SigningMethodHS256, map[string]any{"typ": 1}, nil),
		"header twice alg":           rawHS256(`{"alg":"none","alg":"HS256"}`, string(goodJSON)),
		"no exp":                     hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"exp": nil}),
		"exp text":                   hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"exp": "tomorrow"}),
		"exp null": rawHS256(hsHeader, strings.Replace(string(goodJSON),
			fmt.Sprintf(`"exp":%d`, now().Add(time.Hour).Unix()), `"exp":null`, 1)),
		"nbf in the future":               hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"nbf": now().Add(time.Hour).Unix()}),
		"nbf text":                        hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"nbf": "now"}),
		"iss missing":                     hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"iss": nil}),
		"iss of another":                  hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"iss": "https://evil.test"}),
		"iss with a slash more":           hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"iss": issuer + "/"}),
		"iss a list":                      hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"iss": []string{issuer}}),
		"aud missing":                     hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"aud": nil}),
		"aud of another":                  hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"aud": "billing"}),
		"aud a prefix":                    hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"aud": "noise"}),
		"aud empty":                       hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"aud": []string{}}),
		"sub missing":                     hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": nil}),
		"sub empty":                       hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": ""}),
		"sub number":                      hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": 7}),
		"sub with a line break":           hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ana\nroot"}),
		"sub with a zero-width space":     hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ana\u200b"}),
		"sub with a space before":         hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": " ana"}),
		"sub with a space after":          hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ana "}),
		"sub with a soft hyphen":          hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "an\u00ada"}),
		"sub from right to left":          hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "\u202eana"}),
		"sub with a variation selector":   hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ana\ufe0f"}),
		"sub with a grapheme joiner":      hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "an\u034fa"}),
		"sub with a line separator":       hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ana\u2028"}),
		"sub in full width":               hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "ａna"}),
		"sub with a ligature":             hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "\ufb01na"}),
		"sub in another normal form":      hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": "Jose\u0301"}),
		"sub too long":                    hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"sub": strings.Repeat("a", 257)}),
		"roles an object":                 hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"roles": map[string]any{"steward": true}}),
		"roles with a number":             hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"roles": []any{"analyst", 1}}),
		"groups a number":                 hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"groups": 1}),
		"sub twice":                       rawHS256(hsHeader, doubled(`"sub":"root"`)),
		"exp twice":                       rawHS256(hsHeader, doubled(`"exp":99999999999`)),
		"nested member twice":             rawHS256(hsHeader, doubled(`"x":[{"a":1,"a":2}]`)),
		"claims a list":                   rawHS256(hsHeader, `[1]`),
		"claims null":                     rawHS256(hsHeader, `null`),
		"claims cut off":                  rawHS256(hsHeader, string(goodJSON[:len(goodJSON)-1])),
		"claims with something after":     rawHS256(hsHeader, string(goodJSON)+"x{"),
		"signature cut off":               valid[:len(valid)-2],
		"signature missing":               head + "." + body + ".",
		"signature of other claims":       head + "." + encode([]byte(doubled(`"x":1`))) + "." + signature,
		"two parts":                       head + "." + body,
		"four parts":                      valid + "." + signature,
		"only dots":                       strings.Repeat(".", 100_000),
		"a megabyte":                      strings.Repeat("a", 1<<20),
		"a megabyte of valid claims":      hmacOf(jwt.SigningMethodHS256, nil, map[string]any{"pad": strings.Repeat("a", 1<<20)}),
		"padded base64":                   head + "." + body + "." + signature + "=",
		"not base64":                      "a.b.!",
		"one letter":                      "x",
		"ES256 zero signature":            zeroECDSA(t),
		"ES256 zero signature, known key": zeroECDSA(t, "e1"),
	}
	if len(forged) < 60 {
		t.Fatalf("only %d forged tokens", len(forged))
	}
	want := fault.AuthInvalid(nil)
	for name, token := range forged {
		for kind, v := range map[string]*auth.Verifier{"hs256": hs, "jwks": jwks} {
			got, err := v.Verify(t.Context(), token)
			if err == nil {
				t.Errorf("%s: %s: accepted as %v", kind, name, got)
				continue
			}
			if err.Error() != want.Error() {
				t.Errorf("%s: %s: %v", kind, name, err)
			}
		}
	}
	// The control: with the right key and claims, both verifiers accept.
	for name, text := range map[string]string{
		"RS256": rsaOf(rsaKey, map[string]any{"kid": "r1"}),
		"PS256": sign(t, jwt.SigningMethodPS256, rsaKey, map[string]any{"kid": "r1"}, good(nil)),
		"ES256": sign(t, jwt.SigningMethodES256, ecKey, map[string]any{"kid": "e1"}, good(nil)),
	} {
		if _, err := jwks.Verify(t.Context(), text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := hs.Verify(t.Context(), valid); err != nil {
		t.Error(err)
	}
}

func TestMissingAndExpired(t *testing.T) {
	v := verifier(t, auth.Keys{HS256File: write(t, "key", secret)})
	if _, err := v.Verify(t.Context(), ""); fault.CodeOf(err) != fault.CodeAuthMissing {
		t.Errorf("empty: %v", err)
	}
	old := good(map[string]any{"exp": now().Add(-time.Minute).Unix()})
	_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), nil, old))
	if fault.CodeOf(err) != fault.CodeAuthExpired || !strings.Contains(err.Error(), "2026-11-21T11:59:00Z") {
		t.Errorf("expired: %v", err)
	}
	// A forger does not learn that the forged token would be too old.
	_, err = v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), nil, old))
	if fault.CodeOf(err) != fault.CodeAuthInvalid {
		t.Errorf("forged and expired: %v", err)
	}
}

func TestEdDSA(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"d1","x":%q}`, base64.RawURLEncoding.EncodeToString(public))
	v := verifier(t, auth.Keys{JWKSFile: write(t, "jwks.json", keySet(jwk))})
	text := sign(t, jwt.SigningMethodEdDSA, private, map[string]any{"kid": "d1"}, good(nil))
	if _, err := v.Verify(t.Context(), text); err != nil {
		t.Error(err)
	}
}

func TestKeysFromURL(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this waits for fetches")
	}
	key := newRSA(t, 2048)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(keySet(rsaJWK("r1", &key.PublicKey))))
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	v, err := auth.New(ctx, auth.Config{Issuer: issuer, Audience: audience, Now: now, Keys: auth.Keys{JWKSURL: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, key, map[string]any{"kid": "r1"}, good(nil))); err != nil {
		t.Error(err)
	}
	// An unknown key id causes a fetch, after a second at most.
	unknown := sign(t, jwt.SigningMethodRS256, key, map[string]any{"kid": "r2"}, good(nil))
	began := time.Now()
	for range 2 {
		if _, err := v.Verify(t.Context(), unknown); fault.CodeOf(err) != fault.CodeAuthInvalid {
			t.Errorf("unknown key id: %v", err)
		}
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("unknown key ids took %v", took)
	}
}

// A server that redirects cannot make the gateway fetch keys over an open connection.
func TestKeysAreNotRedirected(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://issuer.test/jwks", http.StatusFound))
	defer server.Close()
	log := new(bytes.Buffer)
	_, err := auth.New(t.Context(), auth.Config{Issuer: issuer, Audience: audience, Keys: auth.Keys{JWKSURL: server.URL},
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil || !strings.Contains(log.String(), "must be https") {
		t.Errorf("%v, %s", err, log)
	}
}

// TestWeakConfigurations: what would let tokens be forged is refused at start.
//
// covers: A87
func TestWeakConfigurations(t *testing.T) {
	strong := write(t, "key", secret)
	for name, c := range map[string]struct {
		config auth.Config
		want   string
	}{
		"no issuer":   {auth.Config{Audience: audience, Keys: auth.Keys{HS256File: strong}}, "issuer and audience"},
		"no audience": {auth.Config{Issuer: issuer, Keys: auth.Keys{HS256File: strong}}, "issuer and audience"},
		"no keys":     {auth.Config{Issuer: issuer, Audience: audience}, "exactly one"},
		"two sources": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: strong, JWKSFile: strong}}, "exactly one"},
		"short secret": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", secret[:31]+"\n\n")}}, "fewer than 32 bytes"},
		"one letter": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", strings.Repeat("a", 64)+"\n")}}, "can be guessed"},
		"seven letters": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", strings.Repeat("abcdefgfedacbgf", 4))}}, "can be guessed"},
		"a word again and again": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", strings.Repeat("correct horse", 5))}}, "can be guessed"},
		"a phrase in two cases": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", "CorrectHorseBatteryStapleIsThatComic")}}, "can be guessed"},
		"a phrase of all letters": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", "TheQuickBrownFoxJumpsOverTheLazyDog")}}, "can be guessed"},
		"text that ends with a space": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", secret+" \n")}}, "openssl rand -base64"},
		"bytes that end with a line feed": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: write(t, "key", "\xff\x00"+secret+"\n")}}, "openssl rand -base64"},
		"no such file": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{HS256File: "/nonexistent"}}, "no such file"},
		"open URL": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSURL: "http://issuer.test/jwks"}}, "must be https"},
		"no URL": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSURL: "jwks"}}, "not a URL"},
		"not a key set": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSFile: write(t, "jwks", "{")}}, "not a JSON Web Key Set"},
		"empty key set": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSFile: write(t, "jwks", `{"keys":[]}`)}}, "no key"},
		"symmetric key in a set": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSFile: write(t, "jwks", keySet(`{"kty":"oct","kid":"o","k":"`+base64.RawURLEncoding.EncodeToString([]byte(secret))+`"}`))}},
			"symmetric"},
		"weak RSA key in a set": {auth.Config{Issuer: issuer, Audience: audience,
			Keys: auth.Keys{JWKSFile: write(t, "jwks", keySet(rsaJWK("w", &newRSA(t, 1024).PublicKey)))}}, "2048 bits"},
	} {
		_, err := auth.New(t.Context(), c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), secret[:16]) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}

func FuzzVerify(f *testing.F) {
	path := filepath.Join(f.TempDir(), "key")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	v, err := auth.New(f.Context(), auth.Config{Issuer: issuer, Audience: audience, Now: now, Keys: auth.Keys{HS256File: path}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"alg":"HS256"}`, `{"iss":"https://issuer.test","aud":"noisegate","sub":"ana","exp":1795262400}`)
	f.Add(`{"alg":"none"}`, `{"sub":{"a":[1,{"a":1}]},"exp":1e9}`)
	f.Fuzz(func(t *testing.T, header, claims string) {
		p, err := v.Verify(t.Context(), rawHS256(header, claims))
		if err == nil && p.Subject == "" {
			t.Error("accepted without a subject")
		}
	})
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicKeyPEM(t *testing.T, key *rsa.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func keySet(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func rsaJWK(kid string, key *rsa.PublicKey) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":%q}`, kid, base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()))
}

func ecJWK(kid string, key *ecdsa.PublicKey) string {
	point, err := key.Bytes()
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":%q,"x":%q,"y":%q}`, kid, encode(point[1:33]), encode(point[33:]))
}

// embedded is a token that brings its own key along.
func embedded(t *testing.T) string {
	key := newRSA(t, 2048)
	var jwk map[string]any
	if err := json.Unmarshal([]byte(rsaJWK("evil", &key.PublicKey)), &jwk); err != nil {
		t.Fatal(err)
	}
	return sign(t, jwt.SigningMethodRS256, key, map[string]any{"jwk": jwk, "kid": "evil"}, good(nil))
}

// zeroECDSA is a token whose signature is r = s = 0 (CVE-2022-21449).
func zeroECDSA(t *testing.T, kid ...string) string {
	t.Helper()
	header := map[string]any{"alg": "ES256", "typ": "JWT"}
	if len(kid) > 0 {
		header["kid"] = kid[0]
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(good(nil))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(h) + "." + encode(c) + "." + encode(make([]byte, 64))
}
