package verify

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// How many rows one row meets is derived of joins, EXISTS, IN and windows.
func TestUnsafeWork(t *testing.T) {
	const count, bounded = `@count(*)`, `SELECT COALESCE(@sum(CASE WHEN u.n > «5»::bigint THEN «5»::bigint ELSE u.n END), 0)::@text FROM (SELECT `
	of := func(call, unit, from string) string {
		return bounded + call + ` AS n FROM ` + from + ` GROUP BY ` + unit + `) AS u`
	}
	const tagged, other = `EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t WHERE t.shop_id = p.ward)`,
		`EXISTS (SELECT 1 FROM ONLY "public"."tags" AS u WHERE u.shop_id = p.age)`
	people := func(more string) string { return of(count, "p.person_id", `ONLY "public"."people" AS p `+more) }
	const visits, there = `ONLY "public"."visits" AS v `, `v.person_id IS NOT NULL AND v.visit_id IS NOT NULL`
	const cap5 = `(SELECT b.person_id, b.ward, b.visit_id FROM (SELECT v.person_id, v.ward, v.visit_id, @row_number() OVER ` +
		`(PARTITION BY v.person_id ORDER BY v.visit_id) AS place FROM ` + visits + `WHERE ` + there + `) AS b WHERE b.place <= «5»::bigint)`
	const tagged5 = `(SELECT b.person_id, b.shop_id FROM (SELECT v.person_id, t.shop_id, @row_number() OVER (PARTITION BY v.person_id ORDER BY ` +
		`v.visit_id, t.shop_id) AS place FROM ` + visits + `JOIN ONLY "public"."tags" AS t ON t.shop_id = v.ward WHERE ` + there +
		`) AS b WHERE b.place <= «5»::bigint)`
	window := func(from, call, frame string) string {
		return of(count, "w.person_id", `(SELECT v.person_id, @`+call+` OVER (PARTITION BY v.person_id ORDER BY v.visit_id `+frame+`) AS m FROM `+from+
			` AS v WHERE `+there+`) AS w WHERE w.m > 3`)
	}
	all := func(frame string) string { return window(`ONLY "public"."visits"`, `min(v.ward)`, frame) }
	const shops = `JOIN (ONLY "public"."shops" AS s LEFT JOIN ONLY "public"."shops" AS z ON z.shop_id = s.shop_id) ON p.ward `
	const own = `(SELECT w.person_id AS unit, q.visit_id AS visit, @count(*) AS n FROM ONLY "public"."payments" AS q JOIN ONLY "public"."visits" ` +
		`AS w ON w.visit_id = q.visit_id WHERE w.person_id IS NOT NULL GROUP BY w.person_id, q.visit_id) AS g `
	on, pins := town()
	for i, p := range pins {
		switch p.Table {
		case "tags":
			pins[i].MostRows, pins[i].Columns[0].MostEqual = 40, 3
		case "shops":
			pins[i].MostRows, pins[i].Columns[2].MostEqual, pins[i].Columns[0].NotNull = 10, 1, true
		}
	}
	const none = 0
	for _, c := range []struct {
		pairs int64
		sql   string
	}{
		{1, people("")},
		{3, people(`JOIN ONLY "public"."tags" AS t ON t.shop_id = p.ward`)},
		{40, people(`JOIN ONLY "public"."tags" AS t ON t.shop_id > p.ward`)},
		// Rows of UNION ALL are those of both sides; what has no FROM is one row.
		{41, people(`JOIN (SELECT t.shop_id AS x FROM ONLY "public"."tags" AS t UNION ALL SELECT «5»::integer AS x) AS u ON u.x > p.ward`)},
		{50, people(`JOIN (SELECT s.shop_id AS x FROM ONLY "public"."shops" AS s UNION ALL SELECT t.shop_id AS x FROM ONLY "public"."tags" AS t) AS u ` +
			`ON u.x = p.ward`)},
		// Different rows of constants are no more than these; those of a table may be found anew for each row of people.
		{2, people(`JOIN (SELECT DISTINCT u.x FROM (SELECT «5»::integer AS x UNION ALL SELECT «6»::integer AS x) AS u) AS w ON w.x > p.ward`)},
		{none, people(`JOIN (SELECT DISTINCT t.shop_id FROM ONLY "public"."tags" AS t) AS w ON w.shop_id > p.ward`)},
		// Of the groups of tags a shop has as many as it has tags.
		{3, people(`JOIN (SELECT t.shop_id, t.tag FROM ONLY "public"."tags" AS t GROUP BY t.shop_id, t.tag OFFSET 0) AS g ON g.shop_id = p.ward`)},
		{40, people(`JOIN (SELECT t.shop_id, t.tag, @count(*) AS n FROM ONLY "public"."tags" AS t GROUP BY t.shop_id, t.tag OFFSET 0) AS g ON ` +
			`g.n = p.big`)},
		{1, people(`JOIN ` + visits + `ON v.person_id = p.person_id`)},
		{none, of(count, "v.person_id", visits+`JOIN ONLY "public"."visits" AS w ON v.person_id = w.person_id`)},
		{5, of(count, "v.person_id", visits+`JOIN `+cap5+` AS w ON v.person_id = w.person_id`)},
		// A payment's visit is one person's, and has one group; a person has any number of visits.
		{1, of(count, "g.unit", `ONLY "public"."payments" AS p JOIN `+own+`ON g.visit = p.visit_id`)},
		{none, of(count, "v.person_id", visits+`JOIN `+own+`ON g.unit = v.person_id`)},
		{1, people(`LEFT JOIN ` + visits + `ON v.person_id = p.person_id`)},
		// A visit meets one person and three tags; a person without visits, all of them.
		{40, people(`CROSS JOIN ONLY "public"."tags" AS t LEFT JOIN ` + visits + `ON v.person_id = p.person_id AND t.shop_id = v.ward`)},
		{3, people(`CROSS JOIN ONLY "public"."tags" AS t JOIN ` + visits + `ON v.person_id = p.person_id AND t.shop_id = v.ward`)},
		{1, people(shops + `= z.shop_id`)},
		{10, people(shops + `> z.shop_id`)},
		// Three tags of each of ten shops, and tags of no shop.
		{40, people(`JOIN (ONLY "public"."tags" AS t LEFT JOIN ONLY "public"."shops" AS z ON z.shop_id = t.shop_id) ON p.ward > t.shop_id`)},
		{3, people(`LEFT JOIN (` + visits + `CROSS JOIN ONLY "public"."tags" AS t) ON v.person_id = p.person_id AND t.shop_id = 3`)},
		{4, people(`WHERE ` + tagged)},
		{41, of(count+` FILTER (WHERE `+tagged+`)`, "p.person_id", `ONLY "public"."people" AS p`)},
		{81, people(`WHERE ` + tagged + ` OR ` + other)},
		{41, people(`WHERE ` + tagged + ` OR ` + tagged)},
		{12, people(`JOIN ONLY "public"."tags" AS x ON x.shop_id = p.ward WHERE ` + tagged)},
		{42, people(`JOIN ONLY "public"."tags" AS x ON x.shop_id = p.ward AND ` + tagged + ` AND p.age IN (SELECT s.shop_id FROM ONLY "public"."shops" AS s WHERE s.shop_id > p.ward)`)},
		{124, people(`WHERE EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t WHERE t.shop_id = p.ward AND EXISTS (SELECT 1 FROM ONLY "public"."tags" AS u WHERE u.tag = t.tag))`)},
		{41, people(`LEFT JOIN ONLY "public"."shops" AS x ON x.shop_id = p.ward AND ` + tagged)},
		{4, people(`LEFT JOIN ONLY "public"."shops" AS x ON x.shop_id = p.ward AND EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t WHERE t.shop_id = x.shop_id)`)},
		{1, people(`WHERE p.age > 9 OR EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t WHERE t.shop_id > «5»::bigint)`)},
		{41, people(`CROSS JOIN LATERAL (SELECT ` + tagged + ` AS b) AS l WHERE l.b`)},
		{41, people(`WHERE EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t WHERE t.shop_id = p.ward OFFSET 0)`)},
		{31, people(`WHERE EXISTS (SELECT 1 FROM ONLY "public"."tags" AS t JOIN ONLY "public"."shops" AS s ON s.shop_id = p.age WHERE ` +
			`t.shop_id = p.ward AND s.shop_id = t.shop_id)`)},
		{41, people(`WHERE NOT (p.age IN (SELECT t.shop_id FROM ONLY "public"."tags" AS t WHERE t.shop_id > p.ward))`)},
		{41, people(`WHERE EXISTS (SELECT @count(*) FROM ONLY "public"."tags" AS t WHERE t.shop_id = p.ward)`)},
		{1, people(`WHERE p.at IN (SELECT s.opened FROM ONLY "public"."shops" AS s)`)},
		{11, people(`WHERE p.born IN (SELECT s.opened FROM ONLY "public"."shops" AS s)`)},
		// With a NULL among several values PostgreSQL looks at all rows for one that is equal but for it.
		{11, people(`WHERE (p.age, p.ward) IN (SELECT s.shop_id, s.shop_id FROM ONLY "public"."shops" AS s)`)},
		{1, people(`WHERE (p.person_id, p.person_id) IN (SELECT s.shop_id, s.shop_id FROM ONLY "public"."shops" AS s)`)},
		{11, people(`WHERE (p.person_id, p.name) IN (SELECT s.shop_id, s.name FROM ONLY "public"."shops" AS s)`)},
		{11, people(`WHERE (p.person_id, p.age) IN (SELECT s.shop_id, s.shop_id FROM ONLY "public"."shops" AS s)`)},
		{41, people(`WHERE (p.person_id, p.person_id) IN (SELECT t.shop_id, t.shop_id FROM ONLY "public"."tags" AS t)`)},
		{11, people(`WHERE (p.person_id, NULL::integer) IN (SELECT s.shop_id, s.shop_id FROM ONLY "public"."shops" AS s)`)},
		// A visit has 3 tags; a cut leaves 5 visits with a tag, of both together.
		{3, of(count, "a.person_id", tagged5+` AS a`)},
		{15, of(count, "a.person_id", tagged5+` AS a JOIN `+tagged5+` AS w ON w.person_id = a.person_id`)},
		{150, of(count, "a.person_id", tagged5+` AS a JOIN `+tagged5+` AS w ON w.person_id = a.person_id CROSS JOIN ONLY "public"."shops" AS s`)},
		{1, window(cap5, `count(v.ward)`, `ROWS 100 PRECEDING`)},
		{1, window(cap5, `min(v.ward)`, `ROWS UNBOUNDED PRECEDING`)},
		{6, window(cap5, `min(v.ward)`, `ROWS 100 PRECEDING`)},
		{4, window(cap5, `min(v.ward)`, `ROWS 2 PRECEDING`)},
		{6, window(cap5, `min(v.ward)`, `RANGE BETWEEN «2»::bigint PRECEDING AND CURRENT ROW`)},
		{102, all(`ROWS 100 PRECEDING`)},
		{52, all(`ROWS BETWEEN 100 PRECEDING AND 50 PRECEDING`)},
		{7, all(`ROWS BETWEEN 5 FOLLOWING AND 10 FOLLOWING`)},
		{12, all(`ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING`)},
		{2, all(`ROWS BETWEEN 5 PRECEDING AND 9 PRECEDING`)},
		{none, all(`ROWS BETWEEN 5 PRECEDING AND UNBOUNDED FOLLOWING`)},
		{none, all(`ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING`)},
	} {
		sql, args := expand(c.sql)
		got, err := Derive(sql, args, on, Claim{Pins: pins})
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if n := got.PairsPerRow; (n == nil) != (c.pairs == none) || n != nil && n.Int64() != c.pairs {
			t.Errorf("%s: one row meets %v rows, want %d", c.sql, n, c.pairs)
		}
		wrong := got
		if wrong.PairsPerRow = big.NewInt(c.pairs - 1); c.pairs == none {
			wrong.PairsPerRow = big.NewInt(1 << 60)
		}
		if Statement(sql, args, on, wrong) == nil {
			t.Errorf("%s: fewer are proven", c.sql)
		}
		if wrong.PairsPerRow = nil; Statement(sql, args, on, wrong) != nil {
			t.Errorf("%s: what was derived is not proven", c.sql)
		}
	}
}

// A stored text may have 2^30 bytes, and no operation reads one whole: each is refused over a column of which nothing says how long its
// texts are, and is proven over what has at most 1,024 bytes.
func TestStoredTextsAreNotReadWhole(t *testing.T) {
	on, pins := town()
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins,
		Work: Work{RowWork: big.NewInt(40_000), UnitWork: big.NewInt(10_000_000)}}
	for _, operation := range []string{
		`%s LIKE «%%a%%»::@text`, `%s ILIKE «%%a%%»::@text`, `%s ~ «a»::@text`, `%s < «a»::@text`, `%s = «a»::@text`, `%[1]s || %[1]s = «a»::@text`, `@lower(%s) = «a»::@text`, `@"left"(%s, 5) = «a»::@text`,
		`@length(%s) > 5`, `@substr(%s, 2, 3) = «a»::@text`, `@strpos(%s, «a»::@text) > 1`, `@btrim(%s) = «a»::@text`, `@starts_with(%s, «a»::@text)`, `GREATEST(%s, «a»::@text) = «b»::@text`,
		`%s IN («a»::@text, «b»::@text)`, `%s = ANY («a,b»::@text[])`, `COALESCE(%s, «a»::@text) LIKE «b»::@text`, `CASE WHEN age > 5 THEN %s ELSE «a»::@text END LIKE «b»::@text`,
	} {
		proven := func(x string) error {
			sql, args := expand(`SELECT @count(*) FILTER (WHERE ((` + fmt.Sprintf(operation, x) + `) IS NULL))::@text FROM ONLY "public"."people"`)
			return Statement(sql, args, on, claim)
		}
		if err := proven(`"name"`); err == nil {
			t.Errorf("%s of a whole text is proven", operation)
		}
		if err := proven(`CASE WHEN (@octet_length("name") <= 1024) THEN "name" END`); err != nil {
			t.Errorf("%s of a short text: %v", operation, err)
		}
	}
}

// A search takes as long as its pattern makes it begin again: over 1,024 bytes a pattern that repeats itself takes more than is proven.
func TestUnsafePatterns(t *testing.T) {
	on, pins := town()
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins,
		Work: Work{RowWork: big.NewInt(100_000), UnitWork: big.NewInt(100_000)}}
	for _, operator := range []string{"LIKE", "~"} {
		for pattern, cheap := range map[string]bool{"%a%": true, "%" + strings.Repeat("a", 40) + "%": false} {
			sql, args := expand(`SELECT @count(*) FILTER (WHERE (CASE WHEN (@octet_length("name") <= 1024) THEN "name" END) ` + operator + ` «` + pattern +
				`»::@text)::@text FROM ONLY "public"."people"`)
			if err := Statement(sql, args, on, claim); (err == nil) != cheap {
				t.Errorf("%s %s: %v", operator, pattern, err)
			}
		}
	}
}

// numericUses are operations over a numeric, %s, in the places of a statement, each with one operation or none that is cheap.
var (
	numericUses = []string{
		`%s`, `@trim_scale(%s)`, `@abs(%s)`, `@round(%s, 2)`, `@trunc(%s)`, `@numeric_larger(@numeric_smaller(%s, «9»::numeric), «0»::numeric)`, `COALESCE(%s, «1»::numeric)`,
		`GREATEST(%s, «1»::numeric)`, `LEAST(«1»::numeric, %s)`, `NULLIF(%s, «1»::numeric)`, `CASE WHEN "age" > 5 THEN %s ELSE «1»::numeric END`, `CASE WHEN %s > «5»::numeric THEN «1»::numeric END`,
		`CASE WHEN @numeric_smaller(%s, «9»::numeric) > «5»::numeric THEN @round(%[1]s) END`, `@hash_numeric_extended(%s, «7»::bigint)`, `(@numeric_larger(@numeric_smaller(%s, «9»::numeric), «0»::numeric) * «3»::numeric)`, `%s::@text`,
		`(%s > «5»::integer)::integer`, `(%s IN («1»::numeric, «2»::numeric))::integer`, `(%s IS DISTINCT FROM «2»::numeric)::integer`, `@sign(%s)`,
	}
	numericPlaces = []string{
		`SELECT @count(*) FILTER (WHERE (%s) IS NOT NULL)::@text FROM FROM_`,
		`SELECT @count(*)::@text FROM FROM_ WHERE (%s) IS NULL`,
		`SELECT @count(*)::@text FROM FROM_ JOIN ONLY "public"."shops" AS s ON s.shop_id = "age" AND (%s) IS NULL`,
		`SELECT @count(*)::@text FROM (SELECT %s AS x FROM FROM_) AS q WHERE q.x IS NULL`,
		`SELECT @count(*)::@text FROM (SELECT "person_id", %s AS x FROM FROM_) AS q JOIN ONLY "public"."shops" AS s ON s.shop_id = q."person_id" WHERE COALESCE(q.x, q.x) IS NULL`,
		`SELECT @count(*)::@text FROM (SELECT "person_id", @min(%s) AS n FROM FROM_ GROUP BY "person_id") AS u WHERE u.n IS NULL`,
		`SELECT COALESCE(@sum(CASE WHEN u.n > «5»::bigint THEN «5»::bigint ELSE u.n END), 0)::@text FROM (SELECT @count(%s) AS n FROM FROM_ GROUP BY "person_id") AS u`,
		`SELECT @count(*)::@text FROM (SELECT @row_number() OVER (PARTITION BY "person_id" ORDER BY %s) AS n FROM FROM_) AS q WHERE q.n <= «1»::bigint`,
		`SELECT @count(*)::@text FROM (SELECT @lag(%s) OVER (PARTITION BY "person_id" ORDER BY "age") AS n FROM FROM_) AS q WHERE q.n IS NULL`,
		`SELECT @count(*)::@text FROM (SELECT DISTINCT "person_id", %s AS x FROM FROM_) AS q`,
	}
)

// shortNumeric is a numeric that is NULL where it is long.
const shortNumeric = `CASE WHEN (@pg_column_size(%[1]s) <= 112) AND (@pg_column_compression(%[1]s) IS NULL) AND ((@abs(%[1]s) < '1e100'::numeric) ` +
	`OR (@abs(%[1]s) >= 'Infinity'::numeric)) AND (@round(%[1]s, 100) = %[1]s) THEN @trim_scale(%[1]s) END`

// Only the one form is taken for a short numeric: not one with another limit, nor with conditions on another column.
func TestUnsafeShortNumerics(t *testing.T) {
	on, pins := town()
	work := big.NewInt(50_000)
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins, Work: Work{RowWork: work, UnitWork: work}}
	short := fmt.Sprintf(shortNumeric, `"ratio"`)
	for _, c := range []struct{ old, new string }{
		{"", ""}, {"112", "1120"}, {"1e100", "1e1000"}, {`, 100)`, `, 1000)`}, {">=", ">"}, {"THEN @trim_scale(", "THEN @abs("},
		{`@pg_column_size("ratio")`, `@pg_column_size("balance")`}, {`@trim_scale("ratio")`, `@trim_scale("long")`},
	} {
		sql, args := expand(`SELECT @count(*)::@text FROM (SELECT ` + strings.Replace(short, c.old, c.new, 1) +
			` AS x FROM ONLY "public"."people") AS q WHERE q.x IS NULL`)
		if err := Statement(sql, args, on, claim); (err == nil) != (c.old == "") {
			t.Errorf("%q for %q: %v", c.new, c.old, err)
		}
	}
}

// A numeric whose type fixes no digits may have 131,072 of them, which are read wherever it is named: beside 341 public rows eight
// comparisons took 184 ms. In each place and each operation a statement that names a stored one takes more than 50 µs, which are not
// proven; with what leaves short ones in its place it takes less.
func TestStoredNumericsAreNotReadWhole(t *testing.T) {
	on, pins := town()
	for i, p := range pins {
		if p.Table == "shops" {
			pins[i].MostRows = 341
		}
	}
	work := big.NewInt(50_000)
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(5)}, Pins: pins, Work: Work{RowWork: work, UnitWork: work}}
	proven := func(place, use, from string) error {
		use = fmt.Sprintf(use, `"ratio"`)
		sql, args := expand(strings.Replace(fmt.Sprintf(place, use), "FROM_", from, 1))
		return Statement(sql, args, on, claim)
	}
	for _, place := range numericPlaces {
		for _, use := range numericUses {
			bare := proven(place, use, `ONLY "public"."people"`)
			guarded := proven(place, use, `(SELECT "person_id", "age", `+fmt.Sprintf(shortNumeric, `"ratio"`)+` AS "ratio" FROM ONLY "public"."people") AS people`)
			if bare == nil || !strings.Contains(bare.Error(), " takes ") || guarded != nil {
				t.Errorf("%s in %s: of a whole numeric %v; of a short one %v", use, place, bare, guarded)
			}
		}
	}
}
