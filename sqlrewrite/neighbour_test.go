package sqlrewrite

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate/catalog"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// The tables of the neighbour test: one with a row unit, one with a column unit whose id may be NULL. Analysts' tables are views
// that leave one unit out, so that every neighbour of a database is one setting away.
const (
	neighbourTables = `events
  id      integer not null unique
  unit    integer
  k_text  text
  k_num   integer not null
  k_bool  boolean
  secret  text
  n2      smallint
  n4      integer
  n8      bigint
  nn      integer not null
  money   numeric(10,2)
  free    numeric
  f4      real
  f8      double
  coarse  double
  odd     integer
  day     date
people
  id      integer not null unique
  unit    integer
  k_text  text
  k_num   integer not null
  k_bool  boolean
  secret  text
  n2      smallint
  n4      integer
  n8      bigint
  nn      integer not null
  money   numeric(10,2)
  free    numeric
  f4      real
  f8      double
  coarse  double
  odd     integer
  day     date`
	neighbourColumns = `
      k_text: {domain: [a, b, c, null]}
      k_num:  {domain: [1, 2, 3]}
      secret: {keys: private}
      n2:     {bounds: [-32768, 10]}
      n4:     {bounds: [-5, 20]}
      n8:     {bounds: [-4000000000, 9000000000]}
      nn:     {bounds: [3, 9]}
      money:  {bounds: [-1.5, 12], step: 0.01}
      free:   {bounds: [-1, 1]}
      f4:     {bounds: [-0.5, 2.5], step: 0.25}
      f8:     {bounds: [0, 1]}
      coarse: {bounds: [-1000, 1000], step: 10}
      odd:    {bounds: [-7, 13], step: 5}`
	neighbourPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  events:
    unit: {column: unit}
    max_rows: 4
    max_groups: 4
    columns:` + neighbourColumns + `
  people:
    unit: {row: id}
    columns:` + neighbourColumns + `
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
	neighbourDDL = `
CREATE SCHEMA store;
CREATE TABLE store.events (id serial PRIMARY KEY, unit integer, k_text text, k_num integer NOT NULL, k_bool boolean, secret text,
  n2 smallint, n4 integer, n8 bigint, nn integer NOT NULL, money numeric(10,2), free numeric, f4 real, f8 double precision,
  coarse double precision, odd integer, day date);
CREATE TABLE store.people (LIKE store.events INCLUDING ALL);
CREATE VIEW public.events AS SELECT * FROM store.events
  WHERE COALESCE(unit::text, 'null') <> pg_catalog.current_setting('test.without');
CREATE VIEW public.people AS SELECT * FROM store.people
  WHERE id::text <> pg_catalog.current_setting('test.without');`
)

// specials are the values that a bound column can hold beyond the ordinary: NULL, NaN, infinities, extremes, both ends of the bounds.
var specials = map[string][]string{
	"k_text": {"NULL", "'a'", "'b'", "'c'", "'z'", "''", "'A'"},
	"k_num":  {"1", "2", "3", "4", "-2147483648"},
	"k_bool": {"NULL", "true", "false"},
	"secret": {"NULL", "'x'", "'y'", "'é'", "'e'", "''"},
	"n2":     {"NULL", "0", "10", "11", "-32768", "32767"},
	"n4":     {"NULL", "0", "-5", "20", "-2147483648", "2147483647"},
	"n8":     {"NULL", "7", "-9223372036854775808", "9223372036854775807", "9000000000"},
	"nn":     {"0", "3", "9", "2147483647", "-2147483648"},
	"money":  {"NULL", "0.1", "-1.5", "12", "'NaN'", "99999999.99", "0.01"},
	"free":   {"NULL", "0.333333333333333333333", "'NaN'", "'Infinity'", "'-Infinity'", "1e-130", "1e130", "-1", "1"},
	"f4":     {"NULL", "0.1", "'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4e38", "-0.5", "2.5", "'-0'"},
	"f8":     {"NULL", "0.1", "'NaN'", "'Infinity'", "'-Infinity'", "5e-324", "1.7e308", "0", "1", "0.9999999999999999"},
	"coarse": {"NULL", "4.9", "5", "-5", "'NaN'", "'Infinity'", "'-Infinity'", "1e300", "-1000", "1000", "995"},
	"odd":    {"NULL", "0", "2", "3", "-7", "13", "-2147483648", "2147483647"},
	"day":    {"NULL", "'2024-01-01'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'"},
}

// fillTables makes a new database: sparse ones with 0 to 2 rows a unit, dense ones where some units have many.
func fillTables(r *rand.Rand, dense bool) string {
	columns := []string{"k_text", "k_num", "k_bool", "secret", "n2", "n4", "n8", "nn", "money", "free", "f4", "f8", "coarse", "odd", "day"}
	row := func(unit string) string {
		values := []string{unit}
		for _, c := range columns {
			values = append(values, specials[c][r.IntN(len(specials[c]))])
		}
		return "(" + strings.Join(values, ", ") + ")"
	}
	var events, people []string
	for u := range units + 1 {
		unit, n := fmt.Sprint(u), r.IntN(3)
		if u == units {
			unit = "NULL"
		}
		if dense && r.IntN(4) == 0 {
			n = 10 + r.IntN(15)
		}
		for range n {
			events = append(events, row(unit))
		}
		people = append(people, row(unit))
	}
	insert := func(table string, rows []string) string {
		if len(rows) == 0 {
			return ""
		}
		return "INSERT INTO store." + table + " (unit, " + strings.Join(columns, ", ") + ") VALUES " + strings.Join(rows, ", ") + ";"
	}
	return "TRUNCATE store.events, store.people RESTART IDENTITY;" + insert("events", events) + insert("people", people)
}

// randomQuery writes a query of the grammar that is taken.
func randomQuery(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	numbers := []string{"n2", "n4", "n8", "nn", "money", "free", "f4", "f8", "coarse", "odd"}
	condition := func(depth int) string {
		if depth > 0 && r.IntN(2) == 0 {
			return pick("(%s AND %s)", "(%s OR %s)", "(NOT %s OR NOT %s)", "((%s) IS UNKNOWN OR (%s) IS TRUE)")
		}
		return pick("n4 > 3", "n4 BETWEEN -5 AND n2", "n8 <= n4", "f8 < 0.5", "f8 > f4", "money >= 0.1", "free <> 0", "k_text = 'a'",
			"k_text IN ('a', 'b', NULL)", "k_text NOT IN ('a')", "secret LIKE '%x%'", "secret ILIKE 'E'", "k_text < secret", "k_bool",
			"k_bool IS NOT TRUE", "n4 IS NULL", "f8 < money", "n8 > free", "n2 IS DISTINCT FROM n4", "day >= '2024-01-01'", "coarse = 'NaN'", "nn IN (3, 9)", "k_num <> 1")
	}
	var where func(depth int) string
	where = func(depth int) string {
		c := condition(depth)
		for strings.Contains(c, "%s") {
			c = strings.Replace(c, "%s", where(depth-1), 1)
		}
		return c
	}
	var items, keys []string
	for _, k := range []string{"k_text", "k_num", "k_bool", "secret"} {
		if r.IntN(4) == 0 {
			keys = append(keys, k)
		}
	}
	items = append(items, keys...)
	for range 1 + r.IntN(4) {
		a := pick("count(*)", "count("+pick(append(numbers, "k_text", "day")...)+")", "sum("+pick(numbers...)+")", "avg("+pick(numbers...)+")",
			"count(DISTINCT %unit)")
		if r.IntN(3) == 0 {
			a += " FILTER (WHERE " + where(1) + ")"
		}
		items = append(items, a)
	}
	table, unit := "events", "unit"
	if r.IntN(4) == 0 {
		table, unit = "people", "id"
	}
	sql := "SELECT " + strings.ReplaceAll(strings.Join(items, ", "), "%unit", unit) + " FROM " + table
	if r.IntN(2) == 0 {
		sql += " WHERE " + where(2)
	}
	if len(keys) > 0 {
		sql += " GROUP BY " + strings.Join(keys, ", ")
	}
	return sql
}

// exactRows runs a statement and gives its sealed integers in the open, as only a test may, by key tuple.
func exactRows(ctx context.Context, conn *pgx.Conn, s Statement) (map[string][]*big.Int, error) {
	rows, err := conn.Query(ctx, s.SQL, s.Args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string][]*big.Int)
	for rows.Next() {
		raw := rows.RawValues()
		if len(raw) != s.Keys+s.Values {
			return nil, fmt.Errorf("%d columns", len(raw))
		}
		var keys []catalog.Key
		for _, k := range raw[:s.Keys] {
			keys = append(keys, catalog.Key{Text: string(k), Null: k == nil})
		}
		id := keyIdentity(keys)
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("group %v twice", keys)
		}
		out[id] = nil
		for _, v := range raw[s.Keys:] {
			n, ok := new(big.Int).SetString(string(v), 10)
			if !ok {
				return nil, fmt.Errorf("%q is not an integer", v)
			}
			out[id] = append(out[id], n)
		}
	}
	return out, rows.Err()
}

// neighbours runs random queries over random databases and their neighbours, and stops at the first broken claim. mutate
// changes the statement before it runs.
type neighbours struct {
	databases, queries int
	mutate             func(sql string) string
	reached            map[string]*big.Rat // by kind of release: the largest move as a part of its claim
	ran                int
}

// units of a test database; beside them there are rows without a unit.
const units = 8

func (n *neighbours) run(t *testing.T) error {
	t.Helper()
	ctx, db := t.Context(), pgtest.New(t)
	db.Exec(t, neighbourDDL)
	conn := db.Conn(t, db.DSN)
	mustExec(t, conn, "SET search_path = ''")
	snapshot := parseSnapshot(t, neighbourTables, neighbourPolicy)
	r := rand.New(rand.NewPCG(1, 2)) // reproducible on purpose
	sampler := mechanisms.NewSampler()
	n.reached = make(map[string]*big.Rat)
	for d := range n.databases {
		mustExec(t, conn, fillTables(r, d%2 == 0))
		for range n.queries {
			sql := randomQuery(r)
			o := Options{Epsilon: mechanisms.EpsilonUnit, Delta: 1, Currency: catalog.Approx, Mechanism: MechanismAuto, Confidence: 0.95}
			if strings.Contains(sql, "events") {
				o.MaxRows, o.MaxGroups = int64(1+r.IntN(4)), int64(1+r.IntN(4))
			}
			p, err := Rewrite(sql, snapshot, o)
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			n.ran++
			if err := n.compare(ctx, conn, p, p.Statement(p.Draw(sampler))); err != nil {
				return fmt.Errorf("query %d: %s\n%w", n.ran, sql, err)
			}
		}
	}
	return nil
}

// compare runs a statement on a database and on all its neighbours.
func (n *neighbours) compare(ctx context.Context, conn *pgx.Conn, p *Plan, s Statement) error {
	s.SQL = n.mutate(s.SQL)
	base, err := runWithout(ctx, conn, s, "nobody")
	if err != nil {
		return fmt.Errorf("%s\nA29: %w", s.SQL, err)
	}
	for u := range units + 1 {
		without := fmt.Sprint(u)
		if u == units {
			without = "null" // A17: all rows without a unit
		}
		neighbour, err := runWithout(ctx, conn, s, without)
		if err != nil {
			return fmt.Errorf("%s\nA29: without unit %s: %w", s.SQL, without, err)
		}
		if err := n.checkClaims(p, base, neighbour); err != nil {
			return fmt.Errorf("%s\nwithout unit %s: %w", s.SQL, without, err)
		}
	}
	return nil
}

// Neighbours, in miniature (A08, A12 to A18, A20, A29): whichever unit is taken out of whichever database, no query raises an error,
// no sealed integer moves by more than its claim, and no more groups move than claimed. The claims are tight: for every kind of
// release some unit reaches its claim exactly, else the test would have no power.
func TestA17A18A20A29Neighbours(t *testing.T) {
	n := &neighbours{databases: 60, queries: 12, mutate: func(sql string) string { return sql }}
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	for kind, ratio := range n.reached {
		if ratio.Cmp(big.NewRat(99, 100)) < 0 {
			t.Errorf("%s: reached %s of its claim only", kind, ratio.FloatString(3))
		}
	}
	if len(n.reached) < 10 {
		t.Errorf("only %d kinds of release were exercised: %v", len(n.reached), n.reached)
	}
}

// Each mutant lacks one defence, and the neighbour test must notice: that is what its silence about the product is worth.
func TestNeighboursKillMutants(t *testing.T) {
	for name, mutant := range map[string]struct{ pattern, replacement string }{
		"no cap on rows":             {`(u\.a\d+) > (\$\d+::bigint) THEN`, `$1 > 1000000 * $2 THEN`},
		"no cap on groups":           {`u\.place <= `, `u.place <= 1000 * `},
		"groups ranked over units":   {`PARTITION BY v\.unit`, `PARTITION BY 1`},
		"groups chosen by random()":  {`ORDER BY pg_catalog\.hash`, `ORDER BY pg_catalog.random(), pg_catalog.hash`},
		"no clamp below":             {`WHEN ("\w+" < )`, `WHEN false AND $1`},
		"no clamp above":             {`WHEN ("\w+" > )`, `WHEN false AND $1`},
		"integers not clamped above": {`int(\d)smaller`, `int${1}larger`},
		"integers not clamped below": {`int(\d)larger`, `int${1}smaller`},
		"NULL escapes the clamp":     {`sum\(CASE WHEN ("\w+")`, `sum(CASE WHEN $1 IS NULL THEN 1000000000 WHEN $1`},
		"means of sums not centred":  {` - (\$\d+::\w+ \* pg_catalog\.count)`, ` - 0 * $1`},
		"rows of a unit not grouped": {`GROUP BY "unit"`, `GROUP BY pg_catalog.random()`},
	} {
		t.Run(name, func(t *testing.T) {
			pattern := regexp.MustCompile(mutant.pattern)
			n := &neighbours{databases: 60, queries: 12, mutate: func(sql string) string { return pattern.ReplaceAllString(sql, mutant.replacement) }}
			err := n.run(t)
			if err == nil {
				t.Fatalf("survived %d queries", n.ran)
			}
			t.Logf("killed at query %d", n.ran)
		})
	}
}

func runWithout(ctx context.Context, conn *pgx.Conn, s Statement, unit string) (map[string][]*big.Int, error) {
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.set_config('test.without', $1, false)", unit); err != nil {
		return nil, err
	}
	return exactRows(ctx, conn, s)
}

// checkClaims compares the sealed integers of two neighbouring databases.
func (n *neighbours) checkClaims(p *Plan, a, b map[string][]*big.Int) error {
	claims, kinds := make([]*big.Int, p.statement.Values), make([]string, p.statement.Values)
	for i := range claims {
		claims[i], kinds[i] = big.NewInt(1), "units"
		if i < len(p.releases) {
			claims[i] = p.releases[i].perGroup
			kinds[i] = fmt.Sprint(p.shape.kind == flat, p.releases[i].measure.kind)
		}
	}
	changed := make(map[string]bool)
	for id := range union(a, b) {
		for i, claim := range claims {
			move := new(big.Int).Sub(at(a, id, i), at(b, id, i))
			if move.Sign() == 0 {
				continue
			}
			changed[id] = true
			ratio := new(big.Rat).SetFrac(move.Abs(move), claim)
			if ratio.Cmp(one()) > 0 {
				return fmt.Errorf("group %s, column %d: moved by %s, claim %s", id, i, move, claim)
			}
			if best := n.reached[kinds[i]]; best == nil || ratio.Cmp(best) > 0 {
				n.reached[kinds[i]] = ratio
			}
		}
	}
	if int64(len(changed)) > p.shape.maxGroups {
		return fmt.Errorf("%d groups moved, claim %d", len(changed), p.shape.maxGroups)
	}
	return nil
}

func union(a, b map[string][]*big.Int) map[string]bool {
	ids := make(map[string]bool)
	for id := range a {
		ids[id] = true
	}
	for id := range b {
		ids[id] = true
	}
	return ids
}

// at is a group's value; a missing group is zero.
func at(rows map[string][]*big.Int, id string, i int) *big.Int {
	if row, ok := rows[id]; ok {
		return row[i]
	}
	return new(big.Int)
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
