package server

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"
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

// reloadPatience bounds how long policies are waited for, so that a later signal is not held up.
const reloadPatience = 10 * time.Second

// Reload reads again what may change under a gateway: certificates, keys that tokens are checked with, tokens that are revoked, keys of
// stewards, policies.
// What cannot be read stays as it was, and the log says so; else it says of when the files are. Connections stay open, and requests go on.
func (g *Server) Reload(ctx context.Context) {
	whole := true
	failed := func(what string, err error) {
		if err != nil {
			whole = false
			g.log.ErrorContext(ctx, "it cannot be read, and stays as it was", "what", what, "cause", err.Error())
		}
	}
	read := g.filesAreOf() // before they are read: one that changes meanwhile is not said to be newer than what was read
	failed("auth", g.verifier.Reload(ctx))
	for _, s := range g.secured {
		failed(s.key, s.reload())
	}
	limited, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	for _, dataset := range slices.Sorted(maps.Keys(g.config.Datasets)) {
		if file := "datasets." + dataset + ".steward_keys_file"; g.config.Datasets[dataset].StewardKeysFile != "" {
			failed(file, g.reloadStewards(limited, dataset))
		}
	}
	failed("policies", g.policies.Refresh(limited))
	if whole {
		g.log.InfoContext(ctx, "certificates, keys, revoked tokens and policies were read again",
			append(read, "revoked", g.verifier.Revoked())...)
	}
}

// filesAreOf are the files that a reload reads, by their keys of the configuration, and when each was modified.
func (g *Server) filesAreOf() (list []any) {
	c := g.config
	type named struct{ key, path string }
	files := []named{
		{"auth.revoked_file", c.Auth.RevokedFile}, {"auth.keys.jwks_file", c.Auth.Keys.JWKSFile},
		{"auth.keys.hs256_file", c.Auth.Keys.HS256File}, {"http.tls_cert_file", c.HTTP.TLSCertFile}, {"http.tls_key_file", c.HTTP.TLSKeyFile},
		{"wire.tls_cert_file", c.Wire.TLSCertFile}, {"wire.tls_key_file", c.Wire.TLSKeyFile},
	}
	for _, dataset := range slices.Sorted(maps.Keys(c.Datasets)) {
		files = append(files, named{"datasets." + dataset + ".steward_keys_file", c.Datasets[dataset].StewardKeysFile})
	}
	for _, file := range files {
		if file.path != "" {
			list = append(list, file.key, modified(file.path))
		}
	}
	return list
}

// modified is when a file was last written; "" where that cannot be told.
func modified(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(time.RFC3339)
}
