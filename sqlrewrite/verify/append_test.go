package verify

import (
	"strings"
	"testing"

	"noisegate.example/catalog"
)

// added sees of the ids that a text adds that they and their numbers are keys of each other.
func added(units string) string {
	ids := strings.NewReplacer(`INSERT INTO "noisegate_prepared"."units_1" (id) `, ``, ` ON CONFLICT DO NOTHING`, ``).Replace(units)
	const rows = `(SELECT u.id, u.unit FROM ONLY "noisegate_prepared"."units_1" AS u OFFSET 0)`
	return `WITH ids AS MATERIALIZED (` + ids + `), theirs AS MATERIALIZED (SELECT u.id, u.unit FROM ` + rows + ` AS u JOIN ids AS i ON i.id = u.id) ` +
		`SELECT NOT EXISTS (SELECT FROM theirs AS t GROUP BY t.id HAVING pg_catalog.count(*) > 1) AND ` +
		`NOT EXISTS (SELECT FROM ` + rows + ` AS u JOIN theirs AS t ON t.unit = u.unit WHERE t.id <> u.id)`
}

// What appends rows to a copy is proven as it is printed, and no longer where any part of it is another.
func TestUnsafeAppends(t *testing.T) {
	const (
		window = ` AND (t."seen" > $1::timestamp with time zone) AND (t."seen" <= $2::timestamp with time zone)`
		units  = `INSERT INTO "noisegate_prepared"."units_1" (id) SELECT DISTINCT t."person_id" AS id FROM ONLY "public"."visits" AS t ` +
			`WHERE (t."person_id" IS NOT NULL)` + window + ` ON CONFLICT DO NOTHING`
		numbered = `SELECT NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY id HAVING pg_catalog.count(*) > 1) AND ` +
			`NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY unit HAVING pg_catalog.count(*) > 1)`
		hash  = `pg_catalog.hashint8extended(t."visit_id"::bigint, pg_catalog.hashint8extended(t."person_id"::bigint, $1::bigint))`
		later = ` AND (t."seen" > $2::timestamp with time zone) AND (t."seen" <= $3::timestamp with time zone)`
		rows  = `SELECT u.unit, r.rn, r.c0, r.h FROM (SELECT t."person_id" AS id, pg_catalog.row_number() OVER (PARTITION BY t."person_id" ORDER BY ` +
			hash + `, t."visit_id") AS rn, t."ward" AS c0, ` + hash + ` AS h FROM ONLY "public"."visits" AS t WHERE (t."person_id" IS NOT NULL)` +
			later + `) AS r JOIN ONLY "noisegate_prepared"."units_1" AS u ON u.id = r.id WHERE r.rn <= 5`
		head  = `INSERT INTO "noisegate_prepared"."visits_7" ("person_id", noisegate_rn, "ward", noisegate_hash) `
		merge = `WITH added (unit, rn, c0, h) AS MATERIALIZED (` + rows + `), ` +
			`least AS MATERIALIZED (SELECT a.unit, pg_catalog.min(a.h) AS h FROM added AS a GROUP BY a.unit), ` +
			`moved (unit, rn, c0, h) AS (DELETE FROM ONLY "noisegate_prepared"."visits_7" AS c USING least AS f WHERE c."person_id" = f.unit ` +
			`AND c.noisegate_hash > f.h RETURNING c."person_id", c.noisegate_rn, c."ward", c.noisegate_hash) ` + head +
			`SELECT m.unit, m.rank, m.c0, m.h FROM (SELECT r.*, COALESCE(pg_catalog.min(r.rn) FILTER (WHERE NOT r.new) OVER (PARTITION BY r.unit) - 1, ` +
			`(SELECT pg_catalog.max(c.noisegate_rn) FROM ONLY "noisegate_prepared"."visits_7" AS c WHERE c."person_id" = r.unit), 0) + ` +
			`pg_catalog.row_number() OVER (PARTITION BY r.unit ORDER BY r.h, r.new, r.rn) AS rank ` +
			`FROM (SELECT k.*, false AS new FROM moved AS k UNION ALL SELECT a.*, true FROM added AS a) AS r) AS m WHERE m.rank <= 5`
	)
	type texts struct{ units, fill, merge string }
	printed := texts{units, head + rows, merge}
	prove := func(x texts, change func(*catalog.Table)) error {
		on, pins := town()
		visits := on.Tables[1]
		seen := &catalog.Column{Name: "seen", AttNum: 10, TypeOID: 110, TypMod: -1, Type: catalog.Timestamptz, NotNull: true}
		visits.Columns = append(visits.Columns, seen)
		pins[1].Columns = append(pins[1].Columns,
			PinnedColumn{Name: seen.Name, AttNum: seen.AttNum, TypeOID: seen.TypeOID, TypMod: -1, NotNull: true})
		pins[1].Columns[0].NotNull = true
		pins[1].Keys = pins[1].Keys[:1]
		over, _ := copied()
		c := over.Tables[0]
		c.Columns[3] = &catalog.Column{Name: catalog.HashColumn, AttNum: 4, Type: catalog.Int8}
		if change != nil {
			change(c)
		}
		return Build(Copying{Units: x.units, Numbered: numbered, Added: added(x.units), Insert: x.fill, Merge: x.merge, Copy: c,
			UnitsTable: "units_1", Pins: pins}, on)
	}
	if err := prove(printed, nil); err != nil {
		t.Fatal("as it is printed:", err)
	}
	for name, c := range map[string][2]string{
		"ranks over all units":        {`PARTITION BY r.unit`, `PARTITION BY r.c0`},
		"ranks that tie":              {`r.h, r.new, r.rn`, `r.h`},
		"more rows":                   {`m.rank <= 5`, `m.rank <= 6`},
		"all rows":                    {` WHERE m.rank <= 5`, ``},
		"the rank of before":          {`m.unit, m.rank`, `m.unit, m.rn`},
		"rows of other units":         {`least AS f WHERE c."person_id" = f.unit`, `least AS f WHERE c."ward" = f.unit`},
		"rows before, of other units": {`AS c WHERE c."person_id" = r.unit)`, `AS c)`},
		"rows moved, of other units":  {`OVER (PARTITION BY r.unit) - 1`, `OVER () - 1`},
		"a place by all rows":         {`FROM added AS a GROUP BY a.unit)`, `FROM added AS a)`},
		"rows that are gone":          {`moved AS k UNION ALL`, `moved AS k WHERE false UNION ALL`},
		"rows by another hash":        {`c.noisegate_hash > f.h`, `c.noisegate_hash < f.h`},
		"another copy":                {`DELETE FROM ONLY "noisegate_prepared"."visits_7"`, `DELETE FROM ONLY "noisegate_prepared"."visits_8"`},
		"a column that is not copied": {`RETURNING c."person_id", c.noisegate_rn, c."ward"`, `RETURNING c."person_id", c.noisegate_rn, c."reason"`},
		"another column":              {`m.c0, m.h`, `m.h, m.h`},
		"other rows than are proven":  {rows, strings.Replace(rows, `t."ward" AS c0`, `t."minutes" AS c0`, 1)},
		"a hash that is not the rank's, in the rows that are merged": {`AS c0, ` + hash, `AS c0, 0::bigint`},
		"no statement":      {merge, ``},
		"another statement": {`m.rank <= 5`, `m.rank <= 5; DELETE FROM "public"."visits"`},
	} {
		changed := printed
		if changed.merge = strings.Replace(merge, c[0], c[1], 1); changed.merge == merge {
			t.Errorf("%s: nothing changed", name)
		}
		if prove(changed, nil) == nil {
			t.Errorf("%s: proven", name)
		}
	}
	// What the insertion of new rows must not be, it must not be in both.
	for name, c := range map[string][2]string{
		"the hash in place of a value":   {`r.c0, r.h`, `r.h, r.h`},
		"the seed as a hash":             {`AS c0, ` + hash, `AS c0, $1::bigint`},
		"a hash of another kind":         {`AS c0, ` + hash, `AS c0, 0::integer`},
		"a value over units as the hash": {`AS c0, ` + hash, `AS c0, pg_catalog.count(*) OVER ()`},
		"a time that is no time":         {`$3::timestamp with time zone`, `$3::text`},
		"a time that is not given":       {`$3::`, `$4::`},
		"a column that the copy has not": {`"ward", noisegate_hash)`, `"reason", noisegate_hash)`},
		"a column of hashes by its name": {`"ward", noisegate_hash)`, `"ward", "noisegate_hash")`},
		"a shared number":                {`ON u.id = r.id`, `ON u.unit = r.id`},
		"rows of nobody":                 {`(t."person_id" IS NOT NULL)` + later, `(t."seen" IS NOT NULL)` + later},
	} {
		changed := texts{units, strings.Replace(printed.fill, c[0], c[1], 1), strings.ReplaceAll(merge, c[0], c[1])}
		if changed.fill == printed.fill {
			t.Errorf("%s: nothing changed", name)
		}
		if prove(changed, nil) == nil {
			t.Errorf("%s: proven", name)
		}
	}
	if prove(texts{units, printed.fill, merge}, func(c *catalog.Table) { c.Columns[3].Name = "minutes" }) == nil {
		t.Error("rows are appended to a copy without hashes")
	}
	anew := strings.NewReplacer(window, "", later, "", `, `+hash+` AS h`, ``, `, noisegate_hash)`, `, "reason")`, `r.c0, r.h`, `r.c0, r.c1`,
		`t."ward" AS c0`, `t."ward" AS c0, CASE WHEN (pg_catalog.octet_length(t."reason") <= 9) THEN t."reason" END AS c1`)
	full := func(c *catalog.Table) { c.Columns[3] = &catalog.Column{Name: "reason", AttNum: 4, Type: catalog.Text} }
	if err := prove(texts{anew.Replace(units), anew.Replace(printed.fill), ""}, full); err != nil {
		t.Error("a copy that is made anew:", err)
	}
	if prove(texts{anew.Replace(units), anew.Replace(printed.fill), merge}, full) == nil {
		t.Error("rows are appended to a copy that is made anew")
	}
	if prove(texts{strings.ReplaceAll(units, window, ""), printed.fill, merge}, nil) == nil {
		t.Error("arguments that a text does not name")
	}
}
