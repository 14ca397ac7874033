package server

import (
	"context"
	"crypto/tls"
	"sync/atomic"
)

// secured is the certificate of a door, which may be replaced while the door is open.
type secured struct {
	key  string // of the configuration
	read func() (*tls.Config, error)
	now  atomic.Pointer[tls.Certificate]
}

// secure reads a certificate; nil: the door speaks clear text.
func (g *Server) secure(key string, read func() (*tls.Config, error)) (*tls.Config, error) {
	c, err := read()
	if c == nil || err != nil {
		return nil, err
	}
	s := &secured{key: key, read: read}
	s.now.Store(&c.Certificates[0])
	g.secured = append(g.secured, s)
	c.Certificates = nil
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.now.Load(), nil }
	return c, nil
}

func (s *secured) reload() error {
	c, err := s.read()
	if err == nil {
		s.now.Store(&c.Certificates[0])
	}
	return err
}

// Reload reads again what may change under a gateway: certificates, keys that tokens are checked with, tokens that are revoked, policies.
// What cannot be read stays as it was, and the log says so. Connections stay open, and requests go on.
func (g *Server) Reload(ctx context.Context) {
	whole := true
	failed := func(what string, err error) {
		if err != nil {
			whole = false
			g.log.ErrorContext(ctx, "it cannot be read, and stays as it was", "what", what, "cause", err.Error())
		}
	}
	for _, s := range g.secured {
		failed(s.key, s.reload())
	}
	failed("auth", g.verifier.Reload(ctx))
	g.policies.Refresh(ctx)
	if whole {
		g.log.InfoContext(ctx, "certificates, keys, revoked tokens and policies were read again")
	}
}
