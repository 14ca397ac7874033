package sqlrewrite

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/stability"
)

// relationMutants each lack one defence of joins, paths, subqueries or semi-joins.
func relationMutants() []mutant {
	return []mutant{
		{"fan-out taken for a key", `("public"\."people"\)? AS "t1" (?:LEFT )?JOIN )(?:ONLY "public"\."zones"|\(SELECT [^\n]*? FROM ONLY "public"\."zones"\))`,
			`$1(SELECT "k_num", 'inner' AS "zone", 1 AS "weight" FROM "public"."tags")`},
		{"statistics of everybody", `pg_catalog\.(max|min|sum)\("(t\d+)"\."(money|n2|n4)"\) AS (c\d+)`, `pg_catalog.max(pg_catalog.$1("$2"."$3")) OVER () AS $4`},
		{"DISTINCT across units", `SELECT DISTINCT "t1"\."unit" AS c0`, `SELECT DISTINCT pg_catalog.min("t1"."unit") OVER (PARTITION BY "t1"."nn") AS c0`},
		{"a filter on the sum over units", `WHERE \("(t\d+)"\."c(\d+)" > (\$\d+::integer)\)\) AS`, `WHERE ((SELECT pg_catalog.sum("x"."n4") FROM "public"."events" AS "x") > $3)) AS`},
		{"rows that tie in any order", `(ORDER BY "t\d+"\."k_bool" ASC NULLS LAST), `, `$1, pg_catalog.random(), `},
		{"LIMIT inside a query in FROM", `(FROM (?:ONLY "public"\."events"|\(SELECT [^\n]*? FROM ONLY "public"\."events"\)) AS "t1" WHERE [^()]*(?:\([^()]*\)[^()]*)*)\) AS "t2"`, `$1 ORDER BY "t1"."nn", "t1"."event" LIMIT 5) AS "t2"`},
	}
}

// Where a unique key of unit and group keys takes the place of bounding, that key is all that the claim rests on: without it the claim
// breaks on the first database.
//
// covers: A12
func TestOneRowInEachGroup(t *testing.T) {
	world := newWorld(t, 1, wild, 4)
	world.fill(t, true)
	p, err := pipeline.Rewrite(`SELECT g.kk, count(*), sum(g.c) FROM people p
		JOIN (SELECT unit, k_num AS kk, count(*) AS c FROM events GROUP BY unit, k_num) g ON g.unit = p.id GROUP BY g.kk`, world.snapshot, sharp())
	if err != nil {
		t.Fatal(parsetest.ShowFault(err))
	}
	if p.Bounding.Kind != stability.Flat || p.Bounding.MaxGroups != 3 {
		t.Fatalf("the bounding is %v, want flat in 3 groups", p.Bounding)
	}
	draws := p.Draw(fixedSampler(t))
	for _, m := range []struct {
		mutate func(string) string
		broken bool
	}{
		{nil, false},
		{func(sql string) string { return strings.Replace(sql, `"k_num") AS`, `"k_num", "t2"."event") AS`, 1) }, true},
	} {
		n := &neighbours{defect: defect{sql: m.mutate}, reached: make(map[string]*big.Rat)}
		claims, _ := n.defect.claims(p, draws)
		if err := n.compare(t.Context(), world, claims); errors.Is(err, errNotSQL) || (err != nil) != m.broken {
			t.Errorf("broken = %v: got %v", m.broken, err)
		}
	}
}
