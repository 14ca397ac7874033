package auth

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/internal/fault"
)

// provider is an identity provider with one key at a time, whose address answers without a network.
type provider struct {
	mu      sync.Mutex
	key     ed25519.PrivateKey
	kid     string
	answer  string // instead of the set
	down    bool
	fetches int
}

func (p *provider) RoundTrip(*http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches++
	if p.down {
		return nil, errors.New("connection refused")
	}
	text := p.answer
	if text == "" {
		text = fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}]}`, p.kid,
			base64.RawURLEncoding.EncodeToString(p.key.Public().(ed25519.PublicKey)))
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// rotate takes another key, and gives a token that it signed.
func (p *provider) rotate(t *testing.T, kid string) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, kid
	return p.sign(t, kid)
}

func (p *provider) sign(t *testing.T, kid string) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "i", "aud": "a", "sub": "ana",
		"exp": time.Now().Add(time.Hour).Unix()})
	token.Header["kid"] = kid
	text, err := token.SignedString(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *provider) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// verifierOf is a verifier with keys of a provider.
func verifierOf(r *remoteKeys, options ...jwt.ParserOption) *Verifier {
	v := &Verifier{config: Config{Claims: Claims{}.withDefaults()}, parser: jwt.NewParser(options...)}
	v.keys.Store(&keySource{lookup: checkedKeys(r.keys), again: r.again})
	v.revoked.Store(&revoked{})
	return v
}

// inTime runs a test in made-up time, with a provider that has the key "first" and a verifier of its tokens.
func inTime(t *testing.T, test func(t *testing.T, p *provider, first string, verify func(token string) error)) {
	synctest.Test(t, func(t *testing.T) {
		p := new(provider)
		first := p.rotate(t, "first")
		ctx, stop := context.WithCancel(t.Context())
		r := newRemoteKeys(ctx, "https://issuer.test/jwks", p, slog.New(slog.DiscardHandler))
		v := verifierOf(r, jwt.WithValidMethods(asymmetric()), jwt.WithIssuer("i"), jwt.WithAudience("a"), jwt.WithExpirationRequired())
		test(t, p, first, func(token string) error {
			_, err := v.Verify(ctx, token)
			return err
		})
		stop()
		synctest.Wait()
	})
}

// Keys that replace each other within seconds are believed at their first token, and no longer than 30 s after they were taken away.
//
// covers: A72
func TestKeysRotate(t *testing.T) {
	inTime(t, func(t *testing.T, p *provider, first string, verify func(string) error) {
		if err := verify(first); err != nil {
			t.Fatal(err)
		}
		second := ""
		for i := range 5 { // within ten seconds
			began := time.Now()
			second = p.rotate(t, fmt.Sprint("next ", i))
			if err := verify(second); err != nil || time.Since(began) > fetchGap {
				t.Errorf("key %d after %v: %v", i, time.Since(began), err)
			}
			time.Sleep(time.Second)
		}
		p.rotate(t, "last")
		if err := verify(second); err != nil {
			t.Errorf("before a fetch: %v", err)
		}
		time.Sleep(fetchInterval + fetchTimeout)
		for name, token := range map[string]string{"first": first, "second": second} {
			if err := verify(token); fault.CodeOf(err) != fault.CodeAuthInvalid {
				t.Errorf("the %s key after it was taken away: %v", name, err)
			}
		}
		p.change(func() { p.answer = `{"keys": []}` })
		last := p.sign(t, "last")
		if err := verify(last); err != nil {
			t.Error(err)
		}
		time.Sleep(fetchInterval + fetchTimeout)
		if err := verify(last); fault.CodeOf(err) != fault.CodeAuthInvalid {
			t.Errorf("the only key after it was taken away: %v", err)
		}
	})
}

// A flood of tokens with made-up keys causes one fetch a second, and keeps nobody's new key out.
//
// covers: A72
func TestMadeUpKeysAreNoFlood(t *testing.T) {
	inTime(t, func(t *testing.T, p *provider, first string, verify func(string) error) {
		var flood sync.WaitGroup
		before, began := p.fetched(), time.Now()
		for i := range 2000 {
			flood.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond) // 200 a second, for ten
				if err := verify(p.madeUp(t, i)); fault.CodeOf(err) != fault.CodeAuthInvalid {
					t.Errorf("a made-up key: %v", err)
				}
			})
		}
		time.Sleep(3500 * time.Millisecond)
		asked := time.Now()
		if err := verify(p.rotate(t, "second")); err != nil || time.Since(asked) > 2*fetchGap {
			t.Errorf("a new key, after %v: %v", time.Since(asked), err)
		}
		if err := verify(first); fault.CodeOf(err) != fault.CodeAuthInvalid {
			t.Errorf("the key before: %v", err)
		}
		flood.Wait()
		if took, fetches := time.Since(began), p.fetched()-before; took > 12*time.Second || fetches > 12 {
			t.Errorf("%d fetches in %v", fetches, took)
		}
	})
}

// madeUp is a token of a key that there is not.
func (p *provider) madeUp(t *testing.T, i int) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(t, fmt.Sprint("made up ", i))
}

// While the provider does not answer, or not with a key set, its last keys are believed; none where there were none.
func TestProviderIsDown(t *testing.T) {
	inTime(t, func(t *testing.T, p *provider, first string, verify func(string) error) {
		for name, change := range map[string]func(){
			"down":       func() { p.down = true },
			"an error":   func() { p.down, p.answer = false, `{"error": "try again"}` },
			"a web page": func() { p.down, p.answer = false, "<html>" },
			"null":       func() { p.down, p.answer = false, `{"keys": null}` },
			"too long":   func() { p.down, p.answer = false, `{"keys": [`+strings.Repeat(" ", maxKeySet)+`]}` },
		} {
			p.change(change)
			time.Sleep(2 * fetchInterval)
			if err := verify(first); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &provider{down: true}
		token := p.rotate(t, "first")
		ctx, stop := context.WithCancel(t.Context())
		r := newRemoteKeys(ctx, "https://issuer.test/jwks", p, slog.New(slog.DiscardHandler))
		v := verifierOf(r)
		if _, err := v.Verify(ctx, token); fault.CodeOf(err) != fault.CodeAuthInvalid {
			t.Errorf("without any key: %v", err)
		}
		p.change(func() { p.down = false })
		if _, err := v.Verify(ctx, token); err != nil {
			t.Errorf("once the provider answers: %v", err)
		}
		stop()
		synctest.Wait()
	})
}

// The check of keys at a URL says whether a token could be verified with them now.
func TestKeysAreChecked(t *testing.T) {
	p := &provider{}
	p.rotate(t, "first")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := p.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.Copy(w, response.Body)
	}))
	defer server.Close()
	check := func() error { return Keys{JWKSURL: server.URL}.Check(t.Context()) }
	if err := check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		answer string
		down   bool
		want   string
	}{
		{"", true, "answers 502"},
		{"<html>", false, "not a JSON Web Key Set"},
		{`{"keys":[]}`, false, "no key that tokens may be verified with"},
		{`{"keys":[{"kty":"RSA","kid":"short","n":"` + base64.RawURLEncoding.EncodeToString(make([]byte, 64)) + `","e":"AQAB"}]}`, false,
			"no key that tokens may be verified with"},
	} {
		p.answer, p.down = c.answer, c.down
		if err := check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.answer, err, c.want)
		}
	}
	server.Close()
	if err := check(); err == nil {
		t.Error("keys of a server that is not there are well")
	}
	if err := (Keys{}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "exactly one") {
		t.Errorf("no keys: %v", err)
	}
}
