package auth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/internal/fault"
)

const loginIssuer = "https://issuer.test/realm"

// issuer is an identity provider whose addresses answer without a network: its description, and its token endpoint.
type issuer struct {
	key      ed25519.PrivateKey
	asked    []string
	form     url.Values // of the last request for a token
	describe map[string]any
	status   int // of the token endpoint; 0: 200
	answer   map[string]any
	redirect string // where it sends who asks for a token
	down     bool
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.asked = append(i.asked, r.URL.String())
	if i.down {
		return nil, errors.New("connection refused")
	}
	value, status, header := i.describe, http.StatusOK, http.Header{}
	if r.Method == http.MethodPost {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		i.form, _ = url.ParseQuery(string(text))
		value = i.answer
		if i.status != 0 {
			status = i.status
		}
		if i.redirect != "" {
			status = http.StatusTemporaryRedirect
			header.Set("Location", i.redirect)
		}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// fails has the token endpoint answer an error.
func (i *issuer) fails(status int, code string) {
	i.status, i.answer = status, map[string]any{"error": code}
}

func (i *issuer) token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	all := jwt.MapClaims{"iss": loginIssuer, "exp": time.Now().Add(time.Hour).Unix(), "sub": "ana", "aud": "noisegate"}
	maps.Copy(all, claims)
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, all)
	token.Header["kid"] = "k"
	text, err := token.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newIssuer is an issuer with a good answer to everything, a verifier of its tokens, and the log-in that fits.
func newIssuer(t *testing.T) (*issuer, *Provider, Code) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, describe: map[string]any{"issuer": loginIssuer, "authorization_endpoint": "https://issuer.test/realm/auth",
		"token_endpoint": "https://issuer.test/realm/token", "code_challenge_methods_supported": []string{"S256"}}}
	v := &Verifier{config: Config{Issuer: loginIssuer, Audience: "noisegate", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Claims: Claims{}.withDefaults()}, parser: jwt.NewParser(jwt.WithValidMethods(asymmetric()), jwt.WithIssuer(loginIssuer),
		jwt.WithAudience("noisegate"), jwt.WithExpirationRequired())}
	fixed := func(*jwt.Token) (any, error) { return public, nil }
	v.keys.Store(&keySource{lookup: func(context.Context) jwt.Keyfunc { return fixed }})
	v.revoked.Store(&revoked{})
	p, err := NewProvider(v, "console", "openid profile", i)
	if err != nil {
		t.Fatal(err)
	}
	nonce := strings.Repeat("n", minNonce)
	i.answer = map[string]any{"token_type": "Bearer", "access_token": i.token(t, nil),
		"id_token": i.token(t, jwt.MapClaims{"aud": "console", "nonce": nonce})}
	return i, p, Code{Code: "c", Verifier: strings.Repeat("v", 43), Nonce: nonce, RedirectURI: "https://gateway.test/"}
}

// TestLogInAtProvider: a code is exchanged where the issuer says, with what the log-in was begun with, and the token is the issuer's.
func TestLogInAtProvider(t *testing.T) {
	i, p, c := newIssuer(t)
	offer, err := p.Offer(t.Context())
	if want := (Offer{Issuer: loginIssuer, Authorization: "https://issuer.test/realm/auth", ClientID: "console",
		Scopes: "openid profile"}); err != nil || offer != want {
		t.Fatalf("%+v, %v", offer, err)
	}
	token, err := p.Exchange(t.Context(), c)
	if err != nil || token != i.answer["access_token"] {
		t.Fatalf("%q, %v", token, err)
	}
	want := url.Values{"grant_type": {"authorization_code"}, "code": {"c"}, "redirect_uri": {c.RedirectURI}, "client_id": {"console"},
		"code_verifier": {c.Verifier}}
	if i.form.Encode() != want.Encode() {
		t.Errorf("it was asked with %v", i.form)
	}
	asked := "[https://issuer.test/realm/.well-known/openid-configuration https://issuer.test/realm/token]"
	if fmt.Sprint(i.asked) != asked {
		t.Errorf("asked were %v", i.asked)
	}
}

// TestLogInsThatAreNotGood: what is forged, of another log-in or for another client gives no token, and nobody is asked but the issuer.
//
// covers: A72
func TestLogInsThatAreNotGood(t *testing.T) {
	other := strings.Repeat("m", minNonce)
	for name, test := range map[string]struct {
		change func(i *issuer, c *Code)
		want   fault.Code
	}{
		"no code":          {func(_ *issuer, c *Code) { c.Code = "" }, fault.CodeAuthInvalid},
		"a short verifier": {func(_ *issuer, c *Code) { c.Verifier = "short" }, fault.CodeAuthInvalid},
		"a short nonce":    {func(_ *issuer, c *Code) { c.Nonce = "n" }, fault.CodeAuthInvalid},
		"no address":       {func(_ *issuer, c *Code) { c.RedirectURI = "" }, fault.CodeAuthInvalid},
		"used before":      {func(i *issuer, _ *Code) { i.fails(400, "invalid_grant") }, fault.CodeAuthInvalid},
		"another client":   {func(i *issuer, _ *Code) { i.fails(401, "invalid_client") }, fault.CodeAuthProvider},
		"an error page":    {func(i *issuer, _ *Code) { i.status, i.answer = 500, nil }, fault.CodeAuthProvider},
		"an odd error":     {func(i *issuer, _ *Code) { i.fails(400, "<b>") }, fault.CodeAuthProvider},
		"no bearer":        {func(i *issuer, _ *Code) { i.answer["token_type"] = "mac" }, fault.CodeAuthProvider},
		"no token":         {func(i *issuer, _ *Code) { delete(i.answer, "access_token") }, fault.CodeAuthProvider},
		"elsewhere":        {func(i *issuer, _ *Code) { i.redirect = "https://elsewhere.test/token" }, fault.CodeAuthProvider},
		"gone":             {func(i *issuer, _ *Code) { i.down = true }, fault.CodeAuthProvider},
		"too long":         {func(i *issuer, _ *Code) { i.answer["more"] = strings.Repeat("x", maxProviderText) }, fault.CodeAuthProvider},
		"no ID":            {func(i *issuer, _ *Code) { delete(i.answer, "id_token") }, fault.CodeAuthInvalid},
		"another log-in":   {func(_ *issuer, c *Code) { c.Nonce = other }, fault.CodeAuthInvalid},
		"no nonce": {func(i *issuer, _ *Code) {
			i.answer["id_token"] = i.token(t, jwt.MapClaims{"aud": "console"})
		}, fault.CodeAuthInvalid},
		"an ID of another client": {func(i *issuer, c *Code) {
			i.answer["id_token"] = i.token(t, jwt.MapClaims{"nonce": c.Nonce, "aud": "noisegate"})
		}, fault.CodeAuthInvalid},
		"an ID for another party": {func(i *issuer, c *Code) {
			i.answer["id_token"] = i.token(t, jwt.MapClaims{"nonce": c.Nonce, "aud": []string{"console", "x"}, "azp": "x"})
		}, fault.CodeAuthInvalid},
		"an ID of another issuer": {func(i *issuer, c *Code) {
			i.answer["id_token"] = i.token(t, jwt.MapClaims{"nonce": c.Nonce, "aud": "console", "iss": "https://other.test"})
		}, fault.CodeAuthInvalid},
		"an old ID": {func(i *issuer, c *Code) {
			old := time.Now().Add(-time.Hour).Unix()
			i.answer["id_token"] = i.token(t, jwt.MapClaims{"nonce": c.Nonce, "aud": "console", "exp": old})
		}, fault.CodeAuthInvalid},
		"an ID of no signature": {func(i *issuer, c *Code) {
			text, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"iss": loginIssuer, "aud": "console", "nonce": c.Nonce,
				"exp": time.Now().Add(time.Hour).Unix()}).SignedString(jwt.UnsafeAllowNoneSignatureType)
			if err != nil {
				t.Error(err)
			}
			i.answer["id_token"] = text
		}, fault.CodeAuthInvalid},
		"a token for another service": {func(i *issuer, _ *Code) {
			i.answer["access_token"] = i.token(t, jwt.MapClaims{"aud": "elsewhere"})
		}, fault.CodeAuthInvalid},
	} {
		i, p, c := newIssuer(t)
		test.change(i, &c)
		token, err := p.Exchange(t.Context(), c)
		if token != "" || fault.CodeOf(err) != test.want {
			t.Errorf("%s: %q, %v", name, token, err)
		}
		for _, address := range i.asked {
			if !strings.HasPrefix(address, loginIssuer+"/") {
				t.Errorf("%s: %s was asked", name, address)
			}
		}
	}
}

// TestDescriptionsThatAreNotGood: a description is of the issuer itself, and codes go nowhere but to its own origin.
//
// covers: A72
func TestDescriptionsThatAreNotGood(t *testing.T) {
	for key, values := range map[string][]any{
		"issuer": {"https://issuer.test", "https://issuer.test/realm/", nil, 7},
		"authorization_endpoint": {"http://issuer.test/auth", "javascript:alert(1)", "", "https://u:p@issuer.test/auth", "/auth",
			"https://issuer.test/auth#x"},
		"token_endpoint": {"https://169.254.169.254/latest", "http://issuer.test/token", "https://issuer.test:444/token", "",
			"https://issuer.test.evil.test/token"},
		"end_session_endpoint": {"javascript:alert(1)", "http://issuer.test/end"},
	} {
		for _, value := range values {
			i, p, c := newIssuer(t)
			i.describe[key] = value
			if _, err := p.Offer(t.Context()); fault.CodeOf(err) != fault.CodeAuthProvider {
				t.Errorf("%s %v: %v", key, value, err)
			}
			if _, err := p.Exchange(t.Context(), c); fault.CodeOf(err) != fault.CodeAuthProvider || i.form != nil {
				t.Errorf("%s %v: %v, and the token endpoint was asked with %v", key, value, err, i.form)
			}
		}
	}
}

// TestDescriptionIsHeld: who asks how to log in does not have the provider asked each time, and one that is gone for a while is still
// named.
func TestDescriptionIsHeld(t *testing.T) {
	i, p, _ := newIssuer(t)
	now := time.Now()
	p.verifier.config.Now = func() time.Time { return now }
	asks := func(want int, works bool) {
		t.Helper()
		for range 3 {
			if _, err := p.Offer(t.Context()); (err == nil) != works {
				t.Fatal(err)
			}
		}
		if len(i.asked) != want {
			t.Fatalf("it was asked %d times, want %d", len(i.asked), want)
		}
	}
	i.down = true
	asks(1, false)
	now = now.Add(discoveryGap)
	i.down = false
	asks(2, true)
	now = now.Add(discoveryLife)
	i.down = true
	asks(3, true)
	now = now.Add(discoveryGap)
	asks(4, true)
}

// TestProvidersThatAreNone: nobody logs in over an open connection, without the scope that OpenID Connect needs, or without a provider.
func TestProvidersThatAreNone(t *testing.T) {
	for _, c := range []struct{ issuer, secret, client, scopes string }{
		{"http://issuer.test", "", "console", "openid"}, {"noisegate-demo", "", "console", "openid"},
		{"https://issuer.test?x=1", "", "console", "openid"}, {loginIssuer, "key", "console", "openid"},
		{loginIssuer, "", "", "openid"}, {loginIssuer, "", "console", "profile"},
	} {
		v := &Verifier{config: Config{Issuer: c.issuer, Keys: Keys{HS256File: c.secret}}}
		if _, err := NewProvider(v, c.client, c.scopes, nil); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestProviderThatHangs: a provider that hangs is asked once for all who wait, not for one after another; who has its description does not
// wait for it.
func TestProviderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const issuer = "https://idp.example"
		fetches, hangs := 0, true
		p, err := NewProvider(&Verifier{config: Config{Issuer: issuer, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}, "noisegate", "openid",
			transport(func(*http.Request) (*http.Response, error) {
				if fetches++; hangs {
					time.Sleep(fetchTimeout)
					return nil, errors.New("it hangs")
				}
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"issuer":"` + issuer +
					`","authorization_endpoint":"` + issuer + `/a","token_endpoint":"` + issuer + `/t"}`))}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		offers := func() (failed int64, longest time.Duration) {
			began, fails := time.Now(), atomic.Int64{}
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if _, err := p.Offer(t.Context()); err != nil {
						fails.Add(1)
					}
				})
			}
			all.Wait()
			return fails.Load(), time.Since(began)
		}
		if failed, took := offers(); failed != 5 || fetches != 1 || took != fetchTimeout {
			t.Errorf("%d fetches for 5 who asked at once, of whom %d failed, in %v", fetches, failed, took)
		}
		hangs = false
		time.Sleep(discoveryGap)
		if failed, _ := offers(); failed != 0 || fetches != 2 {
			t.Errorf("%d fetches, %d failed", fetches, failed)
		}
		hangs = true
		time.Sleep(discoveryLife)
		var one sync.WaitGroup
		one.Go(func() { _, _ = p.Offer(t.Context()) })
		synctest.Wait() // until it is at the provider, which hangs
		began := time.Now()
		if _, err := p.Offer(t.Context()); err != nil || time.Since(began) != 0 || fetches != 3 {
			t.Errorf("who has the description waits %v for it: %v", time.Since(began), err)
		}
		one.Wait()
	})
}
