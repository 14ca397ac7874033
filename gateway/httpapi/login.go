package httpapi

import (
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/connlimit"
	"noisegate.example/internal/fault"
)

const (
	loginPattern    = "/v1/login"          // POST: one-time codes, where there are some
	providerPattern = "/v1/login/provider" // codes of an identity provider, where there is one
)

func loginRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: loginPattern, public: true, handle: operation(nothing, (*server).loginOffer, asJSON)},
		{method: http.MethodPost, pattern: loginPattern, public: true,
			handle: operation(object[api.LoginRequest](maxLogin), (*server).login, asJSON)},
		{method: http.MethodPost, pattern: providerPattern, public: true,
			handle: operation(object[api.ProviderLogin](maxLogin), (*server).loginAtProvider, asJSON)},
	}
}

// login exchanges a one-time code for its token.
func (s *server) login(_ *exchange, r *api.LoginRequest) (*api.Login, error) {
	token, err := s.codes.Redeem(r.Code)
	return &api.Login{Token: token}, err
}

// loginOffer says where people log in. It uses the provider's description that the server holds, so that a request does not reach the
// provider.
func (s *server) loginOffer(x *exchange, _ struct{}) (*api.LoginOffer, error) {
	if s.provider == nil {
		return &api.LoginOffer{}, nil
	}
	o, err := s.provider.Offer(x.r.Context())
	return &api.LoginOffer{Provider: &api.LoginProvider{Issuer: o.Issuer, AuthorizationEndpoint: o.Authorization, ClientID: o.ClientID,
		Scope: o.Scopes, EndSessionEndpoint: o.EndSession}}, err
}

// loginAtProvider has the provider asked: so often for one address, and for so many at a time.
func (s *server) loginAtProvider(x *exchange, r *api.ProviderLogin) (*api.Login, error) {
	leave, err := s.logins.enter(connlimit.Client(x.r.RemoteAddr), time.Now())
	if err != nil {
		return nil, err
	}
	defer leave()
	token, err := s.provider.Exchange(x.r.Context(), auth.Code{Code: r.Code, Verifier: r.CodeVerifier, Nonce: r.Nonce,
		RedirectURI: r.RedirectURI})
	return &api.Login{Token: token}, err
}

// What log-ins at the provider one address may begin, and have under way, and all together have under way.
const (
	loginsAtOnce    = 100  // of one address, which may be that of a proxy
	loginsPerSecond = 2    // after these
	loginsUnderWay  = 64   // of all
	loginsOfOne     = 16   // of these, of one address
	loginAddresses  = 4096 // that are known apart; the others share what one has
)

// attempts counts log-ins by address; the zero value has none.
type attempts struct {
	mu       sync.Mutex
	underWay int
	of       map[netip.Prefix]bucket
}

// bucket is what an address has left, and since when, and what it has under way.
type bucket struct {
	left     float64
	at       time.Time
	underWay int
}

func (b bucket) now(at time.Time) float64 {
	return min(b.left+max(at.Sub(b.at), 0).Seconds()*loginsPerSecond, loginsAtOnce)
}

// enter counts a log-in until leave is called. Its error is request/too-many.
func (a *attempts) enter(address netip.Prefix, now time.Time) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.underWay >= loginsUnderWay {
		return nil, fault.RequestLogins(1)
	}
	b, known := a.of[address]
	if !known {
		address = a.place(address, now)
		if b, known = a.of[address]; !known {
			b = bucket{left: loginsAtOnce, at: now}
		}
	}
	if b.underWay >= loginsOfOne {
		return nil, fault.RequestLogins(1)
	}
	left := b.now(now)
	if left < 1 {
		return nil, fault.RequestLogins(int(math.Ceil((1 - left) / loginsPerSecond)))
	}
	a.of[address] = bucket{left - 1, now, b.underWay + 1}
	a.underWay++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.underWay--
		b := a.of[address]
		b.underWay--
		a.of[address] = b
	}, nil
}

// place is where an address is counted that is not known yet: by itself while there is room, else with others. The lock is held.
func (a *attempts) place(address netip.Prefix, now time.Time) netip.Prefix {
	if a.of == nil {
		a.of = map[netip.Prefix]bucket{}
	}
	if len(a.of) >= loginAddresses {
		for other, b := range a.of {
			if b.now(now) >= loginsAtOnce && b.underWay == 0 {
				delete(a.of, other) // it has all, as one that is not known
			}
		}
	}
	if len(a.of) >= loginAddresses {
		return netip.Prefix{}
	}
	return address
}
