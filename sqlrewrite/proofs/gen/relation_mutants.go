package gen

// relationMutants each lack one defence of joins, paths, subqueries or semi-joins.
func relationMutants() []mutant {
	return []mutant{
		{"fan-out taken for a key", `("public"\."people"\)? AS "t1" (?:LEFT )?JOIN )(?:ONLY "public"\."zones"|\(SELECT [^\n]*? FROM ONLY "public"\."zones"\))`,
			`$1(SELECT "k_num", 'inner' AS "zone", 1 AS "weight" FROM "public"."tags")`},
		{"statistics of everybody", `pg_catalog\.(max|min|sum)\("([tw]\d+)"\."(money|n2|n4|c\d+)"\) AS (c\d+)`, `pg_catalog.max(pg_catalog.$1("$2"."$3")) OVER () AS $4`},
		{"DISTINCT across units", `SELECT DISTINCT "t1"\."unit" AS c0`, `SELECT DISTINCT pg_catalog.min("t1"."unit") OVER (PARTITION BY "t1"."nn") AS c0`},
		{"a filter on the sum over units", `WHERE \("(t\d+)"\."c(\d+)" > (\$\d+::integer)\)\) AS`, `WHERE ((SELECT pg_catalog.sum("x"."n4") FROM "public"."events" AS "x") > $3)) AS`},
		{"rows that tie in any order", `(ORDER BY "[tw]\d+"\."(?:k_bool|c\d+)" ASC NULLS LAST), `, `$1, pg_catalog.random(), `},
		{"LIMIT inside a query in FROM", `(FROM (?:ONLY "public"\."events"|\(SELECT [^\n]*? FROM ONLY "public"\."events"\)) AS "t1" WHERE [^()]*(?:\([^()]*\)[^()]*)*)\) AS "t2"`, `$1 ORDER BY "t1"."nn", "t1"."event" LIMIT 5) AS "t2"`},
	}
}
