package auth

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/internal/fault"
)

const (
	maxProviderText = 64 << 10         // bytes of what a provider answers
	discoveryLife   = 10 * time.Minute // an endpoint that moved is asked for that long
	discoveryGap    = time.Second      // between two fetches that fail
)

// Provider logs people in at the identity provider that issues the gateway's tokens, by OpenID Connect's code flow with PKCE (S256), as a
// public client: there is no secret. It asks nobody but the configured issuer and the token endpoint that this one names at its own
// origin, follows no redirect, and is safe for concurrent use.
type Provider struct {
	verifier *Verifier
	clientID string
	scopes   string
	client   *http.Client
	ids      *jwt.Parser

	found atomic.Pointer[discovery] // nil: none yet
	turn  chan struct{}             // of one place: who looks at the two below has it
	tried time.Time                 // when the last fetch ended
	err   error                     // of the last fetch
}

// discovery is what counts of the provider's own description (OpenID Connect Discovery 1.0, section 3).
type discovery struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	EndSession    string   `json:"end_session_endpoint"`
	Challenges    []string `json:"code_challenge_methods_supported"`
}

// Offer is what somebody needs who is to be sent to the provider.
type Offer struct {
	Issuer, Authorization, ClientID, Scopes string
	EndSession                              string // where one logs out there; "": the provider names no such place
}

// Code is what came back from the provider, with what only the page has that began the log-in.
type Code struct {
	Code        string
	Verifier    string // of the challenge
	Nonce       string // that the ID token has to name
	RedirectURI string // exactly as the log-in was begun with
}

// NewProvider is the provider of a verifier's tokens for a client that is registered there. A nil transport is the usual one.
func NewProvider(v *Verifier, clientID, scopes string, transport http.RoundTripper) (*Provider, error) {
	issuer, err := url.Parse(v.config.Issuer)
	switch {
	case err != nil || !safe(issuer) || issuer.RawQuery != "" || issuer.Fragment != "":
		return nil, errors.New("auth: people log in at an issuer that is an https URL only")
	case v.config.Keys.HS256File != "":
		return nil, errors.New("auth: nobody logs in where tokens are made with a secret of the operator's own")
	case clientID == "":
		return nil, errors.New("auth: the client has no name")
	case !slices.Contains(strings.Fields(scopes), "openid"):
		return nil, errors.New("auth: the scopes must have openid")
	}
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &Provider{verifier: v, clientID: clientID, scopes: strings.Join(strings.Fields(scopes), " "), turn: make(chan struct{}, 1),
		client: &http.Client{Timeout: fetchTimeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		ids: jwt.NewParser(jwt.WithValidMethods(asymmetric()), jwt.WithIssuer(v.config.Issuer), jwt.WithAudience(clientID),
			jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(v.config.Now), jwt.WithStrictDecoding())}, nil
}

// safe reports whether what comes from an address is what its owner said: it came through TLS, or from this machine.
func safe(u *url.URL) bool {
	local := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && local)
}

// Offer says where people are sent. Its error is auth/provider.
func (p *Provider) Offer(ctx context.Context) (Offer, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return Offer{}, fault.AuthProvider(err)
	}
	return Offer{Issuer: d.Issuer, Authorization: d.Authorization, ClientID: p.clientID, Scopes: p.scopes, EndSession: d.EndSession}, nil
}

// CheckProvider looks once whether people could log in at an issuer now, and whether it says that it takes PKCE by S256, which some take
// and do not say. Its error is why nobody could.
func CheckProvider(ctx context.Context, issuer, clientID, scopes string) (saysPKCE bool, err error) {
	p, err := NewProvider(&Verifier{config: Config{Issuer: issuer}}, clientID, scopes, nil)
	if err != nil {
		return false, err
	}
	d, err := p.fetch(ctx)
	return err == nil && slices.Contains(d.Challenges, "S256"), err
}

// discover is the provider's description: not older than 10 minutes, unless it cannot be fetched. One fetch runs at a time, for which only
// those wait who have none; while fetches fail there is a second between two.
func (p *Provider) discover(ctx context.Context) (*discovery, error) {
	select {
	case p.turn <- struct{}{}:
	default:
		if found := p.found.Load(); found != nil {
			return found, nil
		}
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-p.turn }()
	life := discoveryLife
	if p.err != nil {
		life = discoveryGap
	}
	if now := p.verifier.config.Now(); p.tried.IsZero() || now.Sub(p.tried) >= life {
		var d *discovery
		if d, p.err = p.fetch(context.WithoutCancel(ctx)); p.err == nil { // which others wait for
			p.found.Store(d)
		} else {
			p.verifier.config.Log.ErrorContext(ctx, "fetching the identity provider's configuration failed", "error", p.err)
		}
		p.tried = p.verifier.config.Now()
	}
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	return nil, p.err
}

func (p *Provider) fetch(ctx context.Context) (*discovery, error) {
	address := strings.TrimSuffix(p.verifier.config.Issuer, "/") + "/.well-known/openid-configuration"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	status, text, err := p.ask(request)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("auth: %s answers %d", address, status)
	}
	d := &discovery{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("auth: what %s gives is no description of a provider", address)
	}
	return d, d.check(p.verifier.config.Issuer)
}

// check refuses a description of another issuer, and endpoints to which nothing may be sent: codes go to the issuer's own origin alone.
func (d *discovery) check(issuer string) error {
	home, err := url.Parse(issuer)
	if err != nil {
		return err
	}
	if d.Issuer != issuer {
		return errors.New("auth: the provider describes another issuer than auth.issuer")
	}
	for _, e := range []struct {
		name, address      string
		atHome, mayBeEmpty bool
	}{
		{name: "authorization_endpoint", address: d.Authorization},
		{name: "token_endpoint", address: d.Token, atHome: true},
		{name: "end_session_endpoint", address: d.EndSession, mayBeEmpty: true},
	} {
		if e.address == "" && e.mayBeEmpty {
			continue
		}
		u, err := url.Parse(e.address)
		switch {
		case err != nil || !safe(u) || u.Fragment != "":
			return fmt.Errorf("auth: the provider's %s is no https URL", e.name)
		case e.atHome && (u.Scheme != home.Scheme || u.Host != home.Host):
			return fmt.Errorf("auth: the provider's %s is elsewhere than auth.issuer", e.name)
		}
	}
	return nil
}

// ask sends a request and reads the answer, whatever its status.
func (p *Provider) ask(request *http.Request) (status int, text []byte, err error) {
	request.Header.Set("Accept", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(http.MaxBytesReader(nil, response.Body, maxProviderText))
	return response.StatusCode, text, err
}

var (
	verifierPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`) // RFC 7636, section 4.1
	errorPattern    = regexp.MustCompile(`^[a-z_]{1,64}$`)            // of RFC 6749, as a log may have it
)

// minNonce is the length of a nonce that nobody guesses: 128 bits in base64.
const minNonce = 22

// Exchange gives the token of somebody who logged in, if it is one that the gateway takes. Its errors are auth/invalid, where the log-in
// is not good, and auth/provider.
func (p *Provider) Exchange(ctx context.Context, c Code) (token string, err error) {
	if c.Code == "" || !verifierPattern.MatchString(c.Verifier) || len(c.Nonce) < minNonce || c.RedirectURI == "" {
		return "", fault.AuthLogin(nil)
	}
	d, err := p.discover(ctx)
	if err != nil {
		return "", fault.AuthProvider(err)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {c.Code}, "redirect_uri": {c.RedirectURI},
		"client_id": {p.clientID}, "code_verifier": {c.Verifier}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fault.AuthProvider(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, text, err := p.ask(request)
	if err != nil {
		return "", fault.AuthProvider(err)
	}
	var answer struct {
		Access string `json:"access_token"`
		Kind   string `json:"token_type"`
		ID     string `json:"id_token"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || status != http.StatusOK && !errorPattern.MatchString(answer.Error) {
		return "", fault.AuthProvider(fmt.Errorf("auth: the token endpoint answers %d, and no token", status))
	}
	switch {
	case answer.Error == "invalid_grant": // the code is another client's, was used, is too old, or the verifier is not its own
		return "", fault.AuthLogin(errors.New("auth: the token endpoint says invalid_grant"))
	case status != http.StatusOK:
		return "", fault.AuthProvider(fmt.Errorf("auth: the token endpoint answers %d: %s", status, answer.Error))
	case !strings.EqualFold(answer.Kind, "Bearer") || answer.Access == "":
		return "", fault.AuthProvider(errors.New("auth: the token endpoint gives no bearer token"))
	}
	if err := p.checkID(ctx, answer.ID, c.Nonce); err != nil {
		p.verifier.config.Log.WarnContext(ctx, "a log-in was refused", "error", err)
		return "", fault.AuthLogin(err)
	}
	if _, err := p.verifier.Verify(ctx, answer.Access); err != nil {
		p.verifier.config.Log.WarnContext(ctx, "a log-in gave a token that is not taken", "code", string(fault.CodeOf(err)),
			"error", fault.Cause(err))
		return "", fault.AuthNotTaken(err)
	}
	return answer.Access, nil
}

// checkID refuses an ID token that is not of this issuer, for this client, and of the log-in that its nonce was made for (OpenID Connect
// Core 1.0, section 3.1.3.7).
func (p *Provider) checkID(ctx context.Context, token, nonce string) error {
	if token == "" || len(token) > maxToken {
		return errors.New("auth: the provider gave no ID token, or one that is too long")
	}
	claims := jwt.MapClaims{}
	parsed, err := p.ids.ParseWithClaims(token, claims, p.verifier.keys.Load().lookup(ctx))
	if err != nil {
		return err
	}
	if err := checkStrictly(parsed); err != nil {
		return err
	}
	if named, _ := claims["nonce"].(string); subtle.ConstantTimeCompare([]byte(named), []byte(nonce)) != 1 {
		return errors.New("auth: the ID token is of another log-in")
	}
	if party, ok := claims["azp"]; ok && party != p.clientID {
		return errors.New("auth: the ID token is for another client")
	}
	return nil
}
