package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// No row that counts has a key that is off its list: groups of the statement over all keys, in PostgreSQL, are all on the lists. These are
// parts of what there is without them.
//
// needs: postgres
func TestListsHoldEveryRow(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 31, gen.Wild, 1000)
	w.Fill(t, true)
	lists := gen.NewLists(w.Conn)
	r := rand.New(rand.NewPCG(5, 6)) // reproducible on purpose
	narrowed, groups := 0, 0
	for range *gen.ListQueries {
		sql := listQuery(r)
		p, err := lists.Plan(sql, w.Snapshot, rewritetest.Sharp())
		if fault.CodeOf(err) == fault.CodeFanOut {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v: %v", sql, err, errors.Unwrap(err))
		}
		wide := p.Unlisted()
		if wide == nil {
			continue
		}
		narrowed++
		all, left := tuplesOf(t, wide), tuplesOf(t, p)
		for _, row := range rewritetest.Sealed(t, w.Conn, wide.Statements(&plan.Draws{})) {
			groups++
			if id := scalar.KeyIdentity(row.Keys); all[id] && !left[id] {
				t.Fatalf("%s: rows have the keys %v, which are on no list of %d", sql, row.Keys, len(left))
			}
		}
		for id := range left {
			if !all[id] {
				t.Fatalf("%s: %q is on a list, and no key without it", sql, id)
			}
		}
	}
	t.Logf("%d of %d queries were narrowed; without lists they have %d groups", narrowed, *gen.ListQueries, groups)
	if narrowed < *gen.ListQueries/4 || groups < *gen.ListQueries {
		t.Errorf("only %d queries were narrowed, of %d groups", narrowed, groups)
	}
}

// tuplesOf are the tuples of keys that a plan releases, each once, in their order.
func tuplesOf(t *testing.T, p *plan.Plan) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	var before []catalog.Key
	if err := plan.EachPublicTuple(p.Query, func(i int, keys []catalog.Key) error {
		if before != nil && plan.CompareKeys(p.Query, before, keys) >= 0 || i != len(all) {
			t.Fatalf("tuple %d, %v, does not come after %v", i, keys, before)
		}
		all[scalar.KeyIdentity(keys)], before = true, keys
		return nil
	}); err != nil || int64(len(all)) != p.Query.PublicTuples().Int64() {
		t.Fatalf("%d tuples of %s, %v", len(all), p.Query.PublicTuples(), err)
	}
	return all
}

// listQuery writes a query of one count.
func listQuery(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	from := pick("events e JOIN zones z ON z.k_num = e.k_num JOIN tags t ON t.k_num = z.k_num",
		"events e, zones z, tags t", "events e JOIN zones z ON z.k_num = e.k_num AND (z.weight > 0 OR e.k_num = 2) CROSS JOIN tags t",
		"events e JOIN zones z ON z.k_num = e.k_num LEFT JOIN tags t ON t.k_num = z.k_num AND z.weight < 5",
		"tags t RIGHT JOIN (events e JOIN zones z ON z.k_num <> e.k_num) ON t.k_num = e.k_num AND t.tag <> 'red'",
		"zones z JOIN events e ON true JOIN tags t ON t.k_num > z.k_num")
	keys := []string{"z.zone", "t.tag", "e.k_text", "e.k_num", "z.k_num", "t.k_num", "e.k_bool", "z.opened"}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	by := strings.Join(keys[:1+r.IntN(3)], ", ")
	sql := fmt.Sprintf("SELECT %s, count(*) FROM %s", by, from)
	return sql + " WHERE " + listCondition(r, 3) + " GROUP BY " + by
}

// listCondition writes a condition, on public columns, on declared keys and on what neither list knows.
func listCondition(r *rand.Rand, depth int) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	if depth > 0 && r.IntN(4) > 0 {
		return fmt.Sprintf(pick("(%s AND %s)", "(%s OR %s)", "(NOT (%s AND %s))", "(NOT %s OR %s)"), listCondition(r, depth-1),
			listCondition(r, depth-1))
	}
	return pick("z.zone = 'inner'", "z.zone <> 'inner'", "z.weight > 0", "z.weight BETWEEN -5 AND 7", "z.opened >= DATE '2024-01-01'",
		"extract(year FROM z.opened) = 2024", "t.tag IN ('red', 'blue')", "t.tag LIKE 'r%'", "t.tag IS NULL", "t.k_num = z.k_num",
		"z.k_num = e.k_num", "e.k_text = 'a' OR e.k_text = 'c'", "e.k_text IS NULL", "e.k_text > 'a'", "coalesce(e.k_text, 'b') = 'b'",
		"e.k_num = 2 OR e.k_num = 3", "e.k_num + 1 > 2", "e.k_bool", "NOT e.k_bool", "e.k_bool IS NOT TRUE", "e.n4 > 3", "e.note LIKE '%a%'",
		"e.k_num * z.k_num > 2", "z.zone || t.tag <> 'innerred'", "length(z.zone) = 5", "e.k_num IN (SELECT k_num FROM tags WHERE tag = 'red')",
		"e.nn = z.weight", "1 = 2", "CASE WHEN z.weight > 0 THEN t.tag = 'red' ELSE e.k_bool END")
}

// starTables are a small star schema: sales of one buyer each, with three public dimensions.
const starTables = `
CREATE TABLE public.day(day_key int PRIMARY KEY, year int NOT NULL, month_key int NOT NULL);
CREATE TABLE public.item(item_key int PRIMARY KEY, maker varchar(6) NOT NULL, category varchar(7) NOT NULL, brand varchar(9) NOT NULL);
CREATE TABLE public.vendor(vendor_key int PRIMARY KEY, town varchar(12) NOT NULL, nation varchar(15) NOT NULL, continent varchar(12) NOT NULL);
CREATE TABLE public.sale(sale_key int PRIMARY KEY, buyer_key int NOT NULL, item_key int NOT NULL, vendor_key int NOT NULL, day_key int NOT NULL,
  channel text NOT NULL, revenue int NOT NULL);
CREATE TABLE public.buyer(buyer_key int PRIMARY KEY, town varchar(12) NOT NULL, nation varchar(15) NOT NULL, segment text NOT NULL);
INSERT INTO public.vendor SELECT g, n || g % 10, n, c FROM generate_series(1, 100) g JOIN (VALUES (0, 'CANADA', 'AMERICA'), (1, 'CHINA', 'ASIA'),
  (2, 'GREECE', 'EUROPE'), (3, 'INDIA', 'ASIA'), (4, 'JAPAN', 'ASIA'), (5, 'PERU', 'AMERICA')) AS land(i, n, c) ON i = g / 10 % 6;
INSERT INTO public.item SELECT g, 'M' || g % 5, 'M' || g % 5 || g / 5 % 5, 'M' || g % 5 || g / 5 % 5 || g / 25 % 4 FROM generate_series(1, 200) g;
INSERT INTO public.day SELECT to_char(d, 'YYYYMMDD')::int, extract(year FROM d)::int, to_char(d, 'YYYYMM')::int
  FROM generate_series(date '1996-01-01', date '1998-12-31', '1 day') d;`

const starPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  day: {public: true}
  item: {public: true}
  vendor: {public: true}
  buyer:
    unit: {row: buyer_key}
    domains: [{columns: [town, nation], table: vendor, values: [town, nation]}]
    columns:
      segment: {domain: [CARS, HOME]}
  sale:
    unit: {column: buyer_key}
    max_rows: 12
    max_groups: 12
    columns:
      channel: {domain: [search, mail, friend, advert]}
      revenue: {bounds: [0, 100000]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// Public knowledge narrows keys: WHERE on one column of a dimension leaves those of the others that stand beside it.
//
// needs: postgres
func TestListsNarrow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, starTables)
	snapshot := gen.SnapshotOf(t, db, starPolicy)
	lists := gen.NewLists(db.Conn(t, db.DSN))
	const star = "sale s, day d, item i, vendor v WHERE s.day_key = d.day_key AND s.item_key = i.item_key AND s.vendor_key = v.vendor_key"
	for sql, want := range map[string]string{
		"SELECT v.nation, sum(s.revenue) FROM " + star + " AND v.continent = 'ASIA' GROUP BY 1":                             "3 of 6",
		"SELECT v.nation, sum(s.revenue) FROM " + star + " AND NOT (v.continent <> 'ASIA' OR s.revenue < 3) GROUP BY 1":     "3 of 6",
		"SELECT v.nation, sum(s.revenue) FROM " + star + " AND (v.continent = 'ASIA' OR s.revenue < 3) GROUP BY 1":          "6 of 6",
		"SELECT v.town, sum(s.revenue) FROM " + star + " AND (v.town = 'CHINA1' OR v.town = 'CHINA6') GROUP BY 1":           "2 of 60",
		"SELECT d.year, i.brand, sum(s.revenue) FROM " + star + " AND i.category = 'M12' AND d.year < 1998 GROUP BY 1, 2":   "8 of 300",
		"SELECT i.maker, i.category, count(*) FROM sale s JOIN item i USING (item_key) GROUP BY 1, 2":                       "25 of 125",
		"SELECT i.maker, v.nation, i.category, v.continent, count(*) FROM " + star + " GROUP BY 1, 2, 3, 4":                 "150 of 2250",
		"SELECT s.channel, v.town, v.nation, count(*) FROM " + star + " AND v.continent = 'ASIA' GROUP BY 1, 2, 3":          "120 of 1440",
		"SELECT d.month_key, count(*) FROM sale s JOIN day d USING (day_key) WHERE d.year = 1997 GROUP BY 1":                "12 of 36",
		"SELECT s.channel, count(*) FROM sale s WHERE s.channel = 'mail' OR s.channel LIKE 'f%' GROUP BY 1":                 "2 of 4",
		"SELECT s.channel, count(*) FROM sale s WHERE s.channel = 'mail' OR s.revenue > 3 GROUP BY 1":                       "4 of 4",
		"SELECT v.nation, count(*) FROM sale s LEFT JOIN vendor v USING (vendor_key) WHERE v.continent = 'ASIA' GROUP BY 1": "3 of 7",
		"SELECT v.continent, v.nation, count(*) FROM sale s LEFT JOIN vendor v USING (vendor_key) GROUP BY 1, 2":            "7 of 28",
		"SELECT b.town, count(*) FROM buyer b WHERE b.nation = 'CHINA' GROUP BY 1":                                          "10 of 60",
		"SELECT b.town, count(*) FROM buyer b WHERE b.nation = 'CHINA' OR b.segment = 'CARS' GROUP BY 1":                    "60 of 60",
		"SELECT b.town, b.nation, count(*) FROM buyer b GROUP BY 1, 2":                                                      "60 of 360",
		"SELECT b.town, count(*) FROM sale s LEFT JOIN buyer b USING (buyer_key) WHERE b.nation = 'PERU' GROUP BY 1":        "10 of 61",

		"SELECT v.nation, count(*) FROM sale s LEFT JOIN vendor v ON v.vendor_key = s.vendor_key AND continent = 'ASIA' GROUP BY 1": "4 of 7",
		"SELECT v.nation, count(*) FROM " + star + " AND v.continent = 'NOWHERE' GROUP BY 1":                                        "0 of 6",
	} {
		p, err := lists.Plan(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s: %v: %v", sql, err, errors.Unwrap(err))
		}
		wide := p
		if p.Unlisted() != nil {
			wide = p.Unlisted()
		}
		if got := fmt.Sprintf("%s of %s", p.Query.PublicTuples(), wide.Query.PublicTuples()); got != want {
			t.Errorf("%s: %s keys, want %s", sql, got, want)
		}
		holdsNames(t, sql, snapshot, p)
	}
	of := func(by string) [32]byte {
		p, err := lists.Plan("SELECT "+by+", count(*) FROM sale s JOIN item i USING (item_key) WHERE i.maker <> 'M3' GROUP BY "+by, snapshot,
			rewritetest.Sharp())
		if err != nil || p.Query.PublicTuples().Int64() != 20 {
			t.Fatalf("%v, %s tuples", err, p.Query.PublicTuples())
		}
		return p.ReleaseIdentity()
	}
	if of("maker, category") != of("category, maker") {
		t.Error("the order of keys is part of the name of a release over a list of tuples")
	}
}

// holdsNames checks that what was asked and released without lists is found by a plan with lists, under a name that is not its own if they
// leave out a key.
func holdsNames(t *testing.T, sql string, snapshot *catalog.Snapshot, p *plan.Plan) {
	t.Helper()
	before, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	narrowed := before.Query.PublicTuples().Cmp(p.Query.PublicTuples()) != 0
	forms := p.Forms()
	at := slices.IndexFunc(forms, func(form *plan.Plan) bool { return form.ReleaseIdentity() == before.ReleaseIdentity() })
	if at < 0 || (at > 0) != narrowed {
		t.Errorf("%s: the release without lists is form %d of %d", sql, at, len(forms))
	}
	if wide := p.Unlisted(); (wide != nil) != narrowed || wide != nil && (wide.Fingerprint() != before.Fingerprint() ||
		wide.Fingerprint() == p.Fingerprint()) {
		t.Errorf("%s: the question without lists is not found by its name", sql)
	}
}
