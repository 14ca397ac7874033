package pgexec_test

import (
	"strings"
	"testing"
	"time"

	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/pgtest"
	"noisegate.example/pate"
	"noisegate.example/sqlrewrite"
)

// BenchmarkRun is what a statement costs beside its own work: transaction, locks, pins, COMMIT.
func BenchmarkRun(b *testing.B) {
	p := pgtest.Protected(b, ddl)
	d, err := pgexec.Open(b.Context(), pgexec.Config{DSN: p.ReaderDSN, Connections: 1, StatementTimeout: 20 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Unproven().Close()
	statement := sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.people", Values: 1,
		Preconditions: pins(b, d, "people", "id", "age")}
	for b.Loop() {
		for _, err := range d.Run(b.Context(), statement) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkVotes counts the votes of a table: 250 teachers on 9,000 queries, 2.25 million rows.
func BenchmarkVotes(b *testing.B) {
	p := pgtest.Protected(b, `CREATE TABLE votes AS SELECT teacher, 'q' || item AS query, (teacher * item) % 10 AS label
		FROM generate_series(1, 250) teacher, generate_series(1, 9000) item`)
	d, err := pgexec.Open(b.Context(), pgexec.Config{DSN: p.ReaderDSN, Connections: 1, StatementTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	e, err := pate.NewEnsemble(pate.EnsembleParameters{Classes: strings.Split("0123456789", ""), Teachers: 250})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ballots, err := e.Collect(d.Votes(b.Context(), pate.VoteTable{Schema: "public", Table: "votes", Teacher: "teacher", Query: "query",
			Label: "label"}))
		if err != nil || ballots.Queries() != 9000 {
			b.Fatal(err)
		}
	}
}
