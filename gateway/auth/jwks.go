package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	fetchTimeout  = 5 * time.Second
	fetchInterval = 30 * time.Second // a key that was taken away is believed for that long, and one fetch
	fetchGap      = time.Second      // between two fetches for keys that are not known
	maxKeySet     = 1 << 20          // bytes
	maxRedirects  = 3
)

// remoteKeys are the keys at a URL: the last set that was fetched. Sets are fetched every 30 s, and when a token names a key that is not
// known. While the URL does not answer, the last set stays.
type remoteKeys struct {
	address string
	client  *http.Client
	log     *slog.Logger
	set     atomic.Pointer[keySet]    // nil: none was fetched yet
	fetched atomic.Pointer[time.Time] // when the fetch of the set began
	turn    chan struct{}             // of one place: who fetches has it
	began   time.Time                 // the last fetch; of who has the turn
}

type keySet struct{ keyfunc.Keyfunc }

// fetchJWKS fetches a first time and goes on until the context ends. A URL that does not answer yet is logged and tried again: until it
// does, no token is valid.
func fetchJWKS(ctx context.Context, address string, log *slog.Logger) (*remoteKeys, error) {
	if err := checkURL(address); err != nil {
		return nil, err
	}
	return newRemoteKeys(ctx, address, http.DefaultTransport, log), nil
}

// checkJWKS fetches once. Its error is why no token could be verified with what came.
func checkJWKS(ctx context.Context, address string) error {
	if err := checkURL(address); err != nil {
		return err
	}
	set, err := (&remoteKeys{address: address, client: keyClient(http.DefaultTransport)}).fetch(ctx)
	if err != nil {
		return err
	}
	keys, err := set.VerificationKeySet(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys.Keys {
		if checkKey(key) == nil {
			return nil
		}
	}
	return errors.New("auth: the key set's address gives no key that tokens may be verified with")
}

func checkURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return errors.New("auth: jwks_url is not a URL")
	}
	return checkAddress(parsed)
}

func newRemoteKeys(ctx context.Context, address string, transport http.RoundTripper, log *slog.Logger) *remoteKeys {
	r := &remoteKeys{address: address, log: log, turn: make(chan struct{}, 1), client: keyClient(transport)}
	r.newer(ctx, time.Now())
	go r.keep(ctx)
	return r
}

func keyClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Timeout: fetchTimeout, Transport: transport, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		if len(before) > maxRedirects {
			return errors.New("auth: the key set's address is redirected too often")
		}
		return checkAddress(to.URL)
	}}
}

// checkAddress refuses an address from which anybody on the way could give keys.
func checkAddress(u *url.URL) error {
	local := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return errors.New("auth: jwks_url must be https: keys that come over an open connection can be anyone's")
	}
	return nil
}

// keep fetches every 30 s until the context ends.
func (r *remoteKeys) keep(ctx context.Context) {
	ticker := time.NewTicker(fetchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			r.newer(ctx, now)
		}
	}
}

// keys looks a token's key up; if it is not known, in a newer set.
func (r *remoteKeys) keys(ctx context.Context) jwt.Keyfunc {
	return func(token *jwt.Token) (any, error) {
		asked := time.Now()
		if set := r.set.Load(); set != nil {
			key, err := set.KeyfuncCtx(ctx)(token)
			if !errors.Is(err, jwkset.ErrKeyNotFound) {
				return key, err
			}
		}
		r.newer(ctx, asked)
		if set := r.set.Load(); set != nil {
			return set.KeyfuncCtx(ctx)(token)
		}
		return nil, errors.New("auth: no key set was fetched yet")
	}
}

// again fetches now. Its error is that the last set stays.
func (r *remoteKeys) again(ctx context.Context) error {
	asked := time.Now()
	r.newer(ctx, asked)
	if fetched := r.fetched.Load(); fetched == nil || fetched.Before(asked) {
		return errors.New("auth: the key set could not be fetched")
	}
	return nil
}

// newer returns when a fetch has ended that began after a time, or after 5 s. All who wait at the same time wait for the same fetch, and
// there is one a second at most: tokens that name keys which do not exist neither keep others from new keys, nor ask the URL more often.
func (r *remoteKeys) newer(ctx context.Context, than time.Time) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-r.turn }()
	if r.began.After(than) {
		return
	}
	pause := time.NewTimer(time.Until(r.began.Add(fetchGap)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	}
	began := time.Now()
	r.began = began
	set, err := r.fetch(context.WithoutCancel(ctx)) // which others wait for
	if err != nil {
		r.log.ErrorContext(ctx, "fetching the key set failed", "error", err)
		return
	}
	r.set.Store(set)
	r.fetched.Store(&began)
}

// fetch reads the set as it is now. One without keys is a set; a document without a list of keys is none.
func (r *remoteKeys) fetch(ctx context.Context) (*keySet, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("auth: the key set's address answers %d", response.StatusCode)
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxKeySet))
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Keys == nil {
		return nil, errors.New("auth: what the key set's address gives is not a JSON Web Key Set")
	}
	set, err := keyfunc.NewJWKSetJSON(text)
	if err != nil {
		return nil, err
	}
	return &keySet{set}, nil
}
