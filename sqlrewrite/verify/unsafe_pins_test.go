package verify

import (
	"math/big"
	"testing"
)

// What is not pinned is read nowhere: a * of a table gives all of its columns, and a name is looked up in the inner query first, where a
// column that no pin names may have it, or one that every table has.
func TestUnsafeUnderFewerPins(t *testing.T) {
	on, pins := town()
	for i, p := range pins {
		if p.Table == "visits" {
			pins[i].Columns, pins[i].Keys = p.Columns[1:2], nil // person_id
		}
	}
	const people = `SELECT @count(*)::@text FROM (SELECT p.person_id AS age, p.person_id AS tableoid FROM ONLY "public"."people" AS p) AS o WHERE EXISTS `
	for _, c := range []struct {
		proven bool
		sql    string
	}{
		{true, `SELECT @count(*)::@text FROM (SELECT DISTINCT v.person_id FROM ONLY "public"."visits" AS v WHERE v.person_id IS NOT NULL) AS w`},
		{false, `SELECT @count(*)::@text FROM (SELECT DISTINCT v.* FROM ONLY "public"."visits" AS v WHERE v.person_id IS NOT NULL) AS w`},
		{true, people + `(SELECT 1 FROM ONLY "public"."tags" AS v WHERE v.shop_id = o.age)`},
		{false, people + `(SELECT 1 FROM ONLY "public"."tags" AS v WHERE v.shop_id = age)`},
		{false, people + `(SELECT 1 FROM ONLY "public"."tags" AS v WHERE v.shop_id = tableoid)`},
		{false, people + `(SELECT 1 FROM ONLY "public"."tags" AS o WHERE o.shop_id = o.age)`},
		{false, people + `(SELECT 1 FROM (SELECT v.shop_id FROM ONLY "public"."tags" AS v) AS o WHERE o.shop_id = o.age)`},
	} {
		sql, args := expand(c.sql)
		err := Statement(sql, args, on, Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins})
		if (err == nil) != c.proven {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
}

// Shares of a partition add up to its limit only where each of its rows is there once (Lemma 5).
func TestUnsafeShares(t *testing.T) {
	const share = `SELECT u.x::@text, @sum(CASE WHEN u.total > «5»::bigint THEN @div(2 * u.upto * «5»::bigint + u.total, 2 * u.total) - ` +
		`@div(2 * (u.upto - u.n) * «5»::bigint + u.total, 2 * u.total) ELSE u.n END)::@text FROM `
	const runs, rest = `(SELECT v.*, @sum(v.n) FILTER (WHERE v.x IS NOT NULL) OVER (PARTITION BY v.unit) AS total, ` +
		`@sum(v.n) OVER (PARTITION BY v.unit ORDER BY v.x ROWS UNBOUNDED PRECEDING) AS upto FROM `, ` WHERE u.x IS NOT NULL AND u.unit IS NOT NULL GROUP BY u.x`
	const rows = `(SELECT "person_id" AS unit, "minutes" AS x, @count(*) AS n FROM ONLY "public"."visits" WHERE "person_id" IS NOT NULL GROUP BY 1, 2) AS v`
	const twice = `(SELECT w.*, @sum(w.n) FILTER (WHERE w.x IS NOT NULL) OVER (PARTITION BY w.unit) AS total FROM (SELECT v.*, ` +
		`@sum(v.n) OVER (PARTITION BY v.unit ORDER BY v.x ROWS UNBOUNDED PRECEDING) AS upto FROM ` + rows + `) AS w WHERE w.x > «7»::integer) AS u`
	on, pins := town()
	for _, c := range []struct {
		proven bool
		sql    string
	}{
		{true, share + runs + rows + `) AS u` + rest},
		{false, share + runs + rows + `) AS u JOIN ONLY "public"."tags" AS t ON t.shop_id > 0` + rest},
		{false, share + runs + rows + `) AS u LEFT JOIN ONLY "public"."tags" AS t ON t.shop_id = u.x` + rest},
		{false, share + twice + rest},
	} {
		sql, args := expand(c.sql)
		err := Statement(sql, args, on, Claim{Histogram: Together, Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(5)}, Pins: pins})
		if (err == nil) != c.proven {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
}
