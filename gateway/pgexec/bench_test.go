package pgexec_test

import (
	"testing"
	"time"

	"noisegate/gateway/pgexec"
	"noisegate/internal/pgtest"
	"noisegate/sqlrewrite"
)

// BenchmarkRun is what a statement costs beside its own work: transaction, locks, pins, COMMIT.
func BenchmarkRun(b *testing.B) {
	p := pgtest.Protected(b, ddl)
	d, err := pgexec.Open(b.Context(), pgexec.Config{DSN: p.ReaderDSN, Connections: 1, StatementTimeout: 20 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	statement := sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.people", Values: 1, Pins: pins(b, d, "people", "id", "age")}
	for b.Loop() {
		for _, err := range d.Run(b.Context(), statement) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
