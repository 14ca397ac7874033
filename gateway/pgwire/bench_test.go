package pgwire

import (
	"crypto/tls"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// BenchmarkDoors is how long a client waits: to connect, in clear and over TLS, and for a replay at this door and at the other.
func BenchmarkDoors(b *testing.B) {
	config, pool := certificate(b)
	d := opened(b, gatewaytest.Options{}, func(c *Config) { c.TLS = config })
	for _, mode := range []string{"disable", "require"} {
		b.Run("connect/sslmode="+mode, func(b *testing.B) {
			for b.Loop() {
				parsed, err := pgconn.ParseConfig(d.url("ana", "sslmode="+mode))
				if err != nil {
					b.Fatal(err)
				}
				if mode == "require" {
					parsed.TLSConfig = &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
				}
				conn, err := pgconn.ConnectConfig(b.Context(), parsed)
				if err != nil {
					b.Fatal(err)
				}
				_ = conn.Close(b.Context())
			}
		})
	}
	conn, client := d.connect(b, priced, nil), d.overHTTP(b)
	b.Run("replay/wire", func(b *testing.B) {
		for b.Loop() {
			if _, err := conn.Exec(b.Context(), grouped, pgx.QueryExecModeSimpleProtocol); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay/HTTP", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.Query(b.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: grouped, Epsilon: "0.1"}, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
}
