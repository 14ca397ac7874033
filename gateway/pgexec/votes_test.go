package pgexec_test

import (
	"slices"
	"testing"
	"time"

	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/pgtest"
	"noisegate.example/pate"
)

// TestVotesAreText: whatever the type of a column, a vote is what ::text makes of it, also where no cast is written.
func TestVotesAreText(t *testing.T) {
	p := pgtest.Protected(t, `CREATE TYPE animal AS ENUM ('cat', 'dog');
		CREATE DOMAIN flag AS boolean;
		CREATE TABLE votes AS SELECT 7::smallint AS "int2", -8 AS "int4", 9000000000 AS "int8", 'it''s' AS "text", 'x '::varchar(9) AS "varchar", 'y '::char(9) AS "char",
			true AS "boolean", false::flag AS "domain", 'dog'::animal AS "enum", 1.50::numeric AS "numeric", 'n'::name AS "name", inet '10.0.0.1' AS "inet", NULL::int AS "null"`)
	d, err := pgexec.Open(t.Context(), pgexec.Config{DSN: p.ReaderDSN, Connections: 1, StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for columns, want := range map[[3]string]pate.Vote{
		{"int2", "int4", "int8"}:      {Teacher: "7", Query: "-8", Label: "9000000000"},
		{"text", "varchar", "char"}:   {Teacher: "it's", Query: "x ", Label: "y"},
		{"boolean", "domain", "enum"}: {Teacher: "true", Query: "false", Label: "dog"},
		{"numeric", "name", "inet"}:   {Teacher: "1.50", Query: "n", Label: "10.0.0.1/32"},
		{"null", "int2", "boolean"}:   {Teacher: "", Query: "7", Label: "true"},
	} {
		var got []pate.Vote
		for vote, err := range d.Votes(t.Context(), pate.VoteTable{Schema: "public", Table: "votes", Teacher: columns[0], Query: columns[1],
			Label: columns[2]}) {
			if err != nil {
				t.Fatalf("%v: %v", columns, err)
			}
			got = append(got, vote)
		}
		if !slices.Equal(got, []pate.Vote{want}) {
			t.Errorf("%v: %q", columns, got)
		}
	}
}
