package server

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
)

// silentStore is a control database that does not answer, or has no policies.
type silentStore struct {
	gateway.PolicyStore
	silent bool
}

func (s *silentStore) Versions(ctx context.Context) (map[string]catalog.Applied, error) {
	if s.silent {
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

// A reload says of when its files are and how much is revoked; with a control database that does not answer it ends in time, has read the
// list, and does not say that policies were read.
func TestReloadSaysWhatItRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		key, list := filepath.Join(dir, "key"), filepath.Join(dir, "revoked")
		write := func(path, text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(key, "0123456789abcdef0123456789abcdef")
		write(list, "")
		v, err := auth.New(t.Context(), auth.Config{Issuer: "https://issuer.test", Audience: "noisegate", Keys: auth.Keys{HS256File: key},
			RevokedFile: list})
		if err != nil {
			t.Fatal(err)
		}
		said := new(bytes.Buffer)
		log := slog.New(slog.NewJSONHandler(said, nil))
		store := new(silentStore)
		c := &config.Config{}
		c.Auth.RevokedFile, c.Auth.Keys.HS256File = list, key
		g := &Server{config: c, verifier: v, policies: gateway.NewLivePolicies(store, nil, log), log: log}

		write(list, "subject ana\njti 7\n")
		at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		if err := os.Chtimes(list, at, at); err != nil {
			t.Fatal(err)
		}
		g.Reload(t.Context())
		for _, want := range []string{"were read again", `"auth.revoked_file":"2026-11-26T12:00:00Z"`, `"auth.keys.hs256_file":"20`,
			`"revoked":"1 subjects, 1 tokens, 0 keys"`} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, said)
			}
		}

		said.Reset()
		store.silent = true
		write(list, "subject ana\n")
		before := time.Now()
		g.Reload(t.Context())
		if took := time.Since(before); took != reloadPatience {
			t.Errorf("a later signal waits for %v", took)
		}
		if got := v.Revoked(); got != "1 subjects, 0 tokens, 0 keys" {
			t.Errorf("revoked: %s", got)
		}
		if s := said.String(); strings.Contains(s, "were read again") || !strings.Contains(s, `"what":"policies"`) {
			t.Errorf("the log says:\n%s", s)
		}
	})
}

// Clients without a token learn the provider where there is one.
func TestProviders(t *testing.T) {
	const issuer = "https://issuer.test"
	for _, c := range []struct {
		keys config.Keys
		want string
	}{{config.Keys{JWKSURL: issuer + "/keys"}, issuer}, {config.Keys{JWKSFile: "keys"}, issuer}, {config.Keys{HS256File: "key"}, ""}} {
		if got := providerOf(config.Auth{Issuer: issuer, Keys: c.keys}); got != c.want {
			t.Errorf("%+v: %q", c.keys, got)
		}
	}
}
