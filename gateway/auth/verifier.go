package auth

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"noisegate.example/internal/fault"
)

// Config is what tokens are checked against.
type Config struct {
	Issuer   string // required: the iss claim
	Audience string // required: must be among the aud claim
	Keys     Keys
	Claims   Claims
	// RevokedFile lists what is not believed any more, a line each: "subject NAME", "jti ID" or "kid NAME" (not of an hs256_file); "": none.
	RevokedFile string
	// MaxLife is how long a token may live, from its iat to its exp; 0: as long as its issuer says.
	MaxLife time.Duration
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // for failures to fetch keys; nil: discarded
}

// Keys says where keys come from. Exactly one is given.
type Keys struct {
	JWKSURL   string // asymmetric keys, fetched every 30 s and when a token names another; https, or http to this machine
	JWKSFile  string // asymmetric keys
	HS256File string // one symmetric key; see [ReadSecret]
}

// Claims names the claims; a dot leads into an object ("realm_access.roles"). Empty names mean sub, roles, groups.
type Claims struct {
	Subject string
	Roles   string
	Groups  string
}

const (
	maxToken  = 8 << 10     // bytes; RFC 7519 gives no bound, ours fits any sane identity provider
	minRSAKey = 2048        // bits: RFC 7518, section 3.3
	leeway    = time.Minute // for clocks that differ
)

// symmetric and asymmetric are the only algorithms; which list counts follows from the configured key, never from a token.
func symmetric() []string { return []string{"HS256"} }

func asymmetric() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	parser  *jwt.Parser
	config  Config
	keys    atomic.Pointer[keySource]
	revoked atomic.Pointer[revoked]
}

// keySource looks up the key of a token.
type keySource struct {
	lookup func(context.Context) jwt.Keyfunc
	again  func(context.Context) error // reads the keys again where lookup goes on with them; nil: they are read by opening another source
}

// New reads or fetches the keys. The context ends the refreshing of keys from a URL. It refuses configurations under
// which a token could be forged: no issuer or audience, weak keys, keys over an open connection.
func New(ctx context.Context, config Config) (*Verifier, error) {
	if config.Issuer == "" || config.Audience == "" {
		return nil, errors.New("auth: issuer and audience must be configured")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Claims = config.Claims.withDefaults()
	keys, methods, err := config.Keys.open(ctx, config.Log)
	if err != nil {
		return nil, err
	}
	gone, err := readRevoked(config.RevokedFile, config.Keys.HS256File != "")
	if err != nil {
		return nil, err
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods(methods), jwt.WithIssuer(config.Issuer), jwt.WithAudience(config.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(config.Now),
		jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
	)
	v := &Verifier{parser: parser, config: config}
	v.keys.Store(keys)
	v.revoked.Store(gone)
	return v, nil
}

// Reload reads the files of keys and of revoked tokens again, and fetches keys at a URL. What cannot be read, or holds what [New] refuses,
// is an error, and stays as it was: the same tokens are believed as before. Tokens that are checked meanwhile are checked against either.
// Fetching keys, which may take its time, comes last.
func (v *Verifier) Reload(ctx context.Context) error {
	return errors.Join(v.reloadRevoked(), v.reloadKeys(ctx))
}

// Revoked says how much is revoked now, for a log.
func (v *Verifier) Revoked() string { return v.revoked.Load().String() }

func (v *Verifier) reloadKeys(ctx context.Context) error {
	if again := v.keys.Load().again; again != nil {
		return again(ctx)
	}
	keys, _, err := v.config.Keys.open(ctx, v.config.Log)
	if err == nil {
		v.keys.Store(keys)
	}
	return err
}

func (v *Verifier) reloadRevoked() error {
	gone, err := readRevoked(v.config.RevokedFile, v.config.Keys.HS256File != "")
	if err == nil {
		v.revoked.Store(gone)
	}
	return err
}

func (c Claims) withDefaults() Claims {
	or := func(name, standard string) string {
		if name == "" {
			return standard
		}
		return name
	}
	return Claims{Subject: or(c.Subject, "sub"), Roles: or(c.Roles, "roles"), Groups: or(c.Groups, "groups")}
}

// Check reads or fetches the keys once. Its error is why no token could be verified with them now: unlike [New], it does not wait for a
// URL that does not answer yet.
func (k Keys) Check(ctx context.Context) error {
	if err := k.one(); err != nil {
		return err
	}
	if k.JWKSURL != "" {
		return checkJWKS(ctx, k.JWKSURL)
	}
	_, _, err := k.open(ctx, slog.New(slog.DiscardHandler))
	return err
}

// one refuses more than one source, and none.
func (k Keys) one() error {
	given := 0
	for _, source := range []string{k.JWKSURL, k.JWKSFile, k.HS256File} {
		if source != "" {
			given++
		}
	}
	if given != 1 {
		return errors.New("auth: exactly one of jwks_url, jwks_file and hs256_file must be configured")
	}
	return nil
}

// open gives the key lookup and the algorithms that go with it.
func (k Keys) open(ctx context.Context, log *slog.Logger) (*keySource, []string, error) {
	if err := k.one(); err != nil {
		return nil, nil, err
	}
	switch {
	case k.HS256File != "":
		secret, err := ReadSecret(k.HS256File)
		if err != nil {
			return nil, nil, err
		}
		fixed := func(*jwt.Token) (any, error) { return secret, nil }
		return &keySource{lookup: func(context.Context) jwt.Keyfunc { return fixed }}, symmetric(), nil
	case k.JWKSFile != "":
		set, err := readJWKS(ctx, k.JWKSFile)
		if err != nil {
			return nil, nil, err
		}
		return &keySource{lookup: checkedKeys(set.KeyfuncCtx)}, asymmetric(), nil
	default:
		set, err := fetchJWKS(ctx, k.JWKSURL, log)
		if err != nil {
			return nil, nil, err
		}
		return &keySource{lookup: checkedKeys(set.keys), again: set.again}, asymmetric(), nil
	}
}

func readJWKS(ctx context.Context, path string) (keyfunc.Keyfunc, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("auth: the key set: %w", err)
	}
	set, err := keyfunc.NewJWKSetJSON(text)
	if err != nil {
		return nil, fmt.Errorf("auth: %s is not a JSON Web Key Set: %w", path, err)
	}
	keys, err := set.VerificationKeySet(ctx)
	if err != nil {
		return nil, fmt.Errorf("auth: %s: %w", path, err)
	}
	if len(keys.Keys) == 0 {
		return nil, fmt.Errorf("auth: %s holds no key", path)
	}
	for _, key := range keys.Keys {
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("auth: %s: %w", path, err)
		}
	}
	return set, nil
}

// checkedKeys looks keys up by the token's key id and leaves out those that no token should be verified with.
func checkedKeys(lookup func(context.Context) jwt.Keyfunc) func(context.Context) jwt.Keyfunc {
	return func(ctx context.Context) jwt.Keyfunc {
		find := lookup(ctx)
		return func(token *jwt.Token) (any, error) {
			found, err := find(token)
			if err != nil {
				return nil, err
			}
			all, ok := found.(jwt.VerificationKeySet)
			if !ok {
				return found, checkKey(found)
			}
			var good jwt.VerificationKeySet
			for _, key := range all.Keys {
				if checkKey(key) == nil {
					good.Keys = append(good.Keys, key)
				}
			}
			return good, nil
		}
	}
}

func checkKey(key any) error {
	switch key := key.(type) {
	case []byte:
		return errors.New("a key set may not hold symmetric keys")
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSAKey {
			return fmt.Errorf("an RSA key has fewer than %d bits", minRSAKey)
		}
		return nil
	default:
		return nil
	}
}

// Verify checks a token (without "Bearer ") and says who its bearer is. Its errors are auth/missing, auth/expired (only for
// genuine tokens) and auth/invalid, which has one text for everything else that can be wrong, and another for genuine tokens that live too
// long.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, error) {
	if token == "" {
		return Principal{}, fault.AuthMissing()
	}
	if len(token) > maxToken {
		return Principal{}, fault.AuthInvalid(errors.New("auth: the token is too long"))
	}
	claims := jwt.MapClaims{}
	parsed, err := v.parser.ParseWithClaims(token, claims, v.keys.Load().lookup(ctx))
	if errors.Is(err, jwt.ErrTokenExpired) {
		return Principal{}, expired(claims)
	}
	if err != nil {
		return Principal{}, fault.AuthInvalid(err)
	}
	if err := checkStrictly(parsed); err != nil {
		return Principal{}, fault.AuthInvalid(err)
	}
	who, err := v.principal(claims)
	if err != nil {
		return Principal{}, err
	}
	if err := v.revoked.Load().refuse(who.Subject, parsed, claims); err != nil {
		return Principal{}, fault.AuthInvalid(err)
	}
	if err := v.checkLife(claims); err != nil {
		return Principal{}, err
	}
	return who, nil
}

// checkLife refuses a genuine token that lives for too long. One that does not say since when it lives may do so.
func (v *Verifier) checkLife(claims jwt.MapClaims) error {
	if v.config.MaxLife <= 0 {
		return nil
	}
	begun, err1 := claims.GetIssuedAt()
	ends, err2 := claims.GetExpirationTime()
	if err1 != nil || err2 != nil || begun == nil || ends == nil || begun.After(v.config.Now().Add(leeway)) ||
		ends.Sub(begun.Time) > v.config.MaxLife {
		return fault.AuthLongLived(v.config.MaxLife)
	}
	return nil
}

func expired(claims jwt.MapClaims) error {
	at, err := claims.GetExpirationTime()
	if err != nil || at == nil {
		return fault.AuthInvalid(err)
	}
	return fault.AuthExpired(at.Time)
}

func (v *Verifier) principal(claims jwt.MapClaims) (Principal, error) {
	subject, _ := find(claims, v.config.Claims.Subject).(string)
	roles, err := names(find(claims, v.config.Claims.Roles))
	if err != nil {
		return Principal{}, fault.AuthInvalid(err)
	}
	groups, err := names(find(claims, v.config.Claims.Groups))
	if err != nil {
		return Principal{}, fault.AuthInvalid(err)
	}
	p, ok := NewPrincipal(subject, roles, groups)
	if !ok {
		return Principal{}, fault.AuthInvalid(errors.New("auth: the subject cannot name an account, or a group has a name of roles"))
	}
	return p, nil
}
