package pipeline_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/testfiles"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
)

// endsTables and endsPolicy have a unit of each shape: a row, a column, a column of the table that a path leads to; and public tables.
const (
	endsTables = `users
  user_id integer not null unique
  region  text not null
  score   integer
orders
  order_id integer not null unique
  user_id  integer not null
  quantity integer not null
  bought   timestamptz not null
  kind     text
parts
  part_id  integer not null unique
  order_id integer not null references orders(order_id)
  weight   integer not null
marks
  user_id integer
  mark    integer not null
items
  item_id integer not null unique
  price   integer not null
  rows 500
tags
  tag   integer not null
  label text not null
  rows 40
`
	endsPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  users: {unit: {row: user_id}, columns: {region: {domain: [N, S]}, score: {bounds: [0, 100]}}}
  orders:
    unit: {column: user_id}
    max_rows: 20
    max_groups: 10
    max_rows_total: 20
    columns:
      quantity: {bounds: [0, 50]}
      kind: {keys: private}
      bought: {bounds: [2016-01-01, 2020-12-31]}
  parts:
    unit: {via: order_id, to: orders}
    max_rows: 30
    max_groups: 10
    columns: {weight: {domain: [1, 2, 3]}}
  marks:
    unit: {column: user_id}
    max_rows: 400
    max_groups: 400
    columns: {mark: {bounds: [0, 9]}}
  items: {public: true, columns: {price: {bounds: [0, 1000]}}}
  tags: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

// Planning of these went round for ever: a cap of a query in FROM that groups rows was about to be capped itself. Each is planned or
// refused.
func TestCapsOfGroupedRowsEnd(t *testing.T) {
	debug.SetMaxStack(64 << 20) // a recursion without end is found at once
	snapshot := rewritetest.ParseSnapshot(t, endsTables, endsPolicy)
	for name, sql := range map[string]string{
		"computed key": "SELECT count(*) FROM (SELECT user_id, k, count(*) n FROM (SELECT a.user_id, a.quantity + 1 AS k " +
			"FROM orders a JOIN orders b ON a.user_id = b.user_id) e GROUP BY user_id, k) t",
		"path": "SELECT count(*) FROM (SELECT user_id, k, count(*) n FROM (SELECT a.user_id, a.quantity + 1 AS k " +
			"FROM orders a JOIN orders b ON a.user_id = b.user_id JOIN parts p ON p.order_id = a.order_id) e GROUP BY user_id, k) t",
		"many rows": "SELECT sum(n) FROM (SELECT user_id, k, count(*) n FROM (SELECT a.user_id, a.mark * 2 AS k " +
			"FROM marks a JOIN marks b ON a.user_id = b.user_id JOIN marks c ON a.user_id = c.user_id) e GROUP BY user_id, k) t",
		"two levels": "SELECT count(*) FROM (SELECT user_id, max(n) m FROM (SELECT user_id, k, count(*) n FROM " +
			"(SELECT a.user_id, a.quantity + 1 AS k FROM orders a JOIN orders b ON a.user_id = b.user_id) e GROUP BY user_id, k) f " +
			"GROUP BY user_id, n) t",
	} {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil && fault.CodeOf(err) != fault.CodeFanOut {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			for _, s := range rewritetest.StatementsOf(p) {
				t.Logf("%s: %d bytes", name, len(s.SQL))
			}
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// covers: A44
func TestRealTextsEnd(t *testing.T) {
	debug.SetMaxStack(64 << 20)
	for name, on := range map[string]*catalog.Snapshot{
		"ends-computed-key": rewritetest.ParseSnapshot(t, `patient
  row_id integer not null unique
  patient_id integer not null unique
  sex text not null
  born timestamp not null
  birth_year integer not null
stay
  row_id integer not null unique
  patient_id integer not null references patient(patient_id)
  stay_id integer not null unique
  admitted timestamp not null
  discharged timestamp not null
  kind text not null
finding
  row_id integer not null unique
  patient_id integer not null
  stay_id integer not null references stay(stay_id)
  code text
code_list
  code text not null unique
  title text not null
  rows 200
  values code C000 C001
observed
  patient_id integer not null references patient(patient_id)
  from_date date not null
  to_date date not null
  unique patient_id from_date
visit
  visit_id integer not null unique
  patient_id integer not null
  start_date date not null
`, testfiles.Own(t, "corpus/real/ward.policy.yaml")),
		"ends-months": rewritetest.ParseSnapshot(t, `buyers
  buyer_id integer not null unique
  town text not null
  region text not null
  channel text not null
  born date not null
  longitude numeric(6,2) not null
  joined_at timestamptz not null
goods
  good_id integer not null unique
supplies
  supply_id integer not null unique
ratings
  rating_id integer not null unique
purchases
  purchase_id integer not null unique
  buyer_id integer not null references buyers(buyer_id)
  good_id integer not null references goods(good_id)
  total numeric(8,2) not null
  pieces integer not null
  coupon numeric(6,2)
  bought_at timestamptz not null
lines
  purchase_id integer not null references purchases(purchase_id)
  line_no integer not null
  good_id integer not null references goods(good_id)
  pieces integer not null
  unique purchase_id line_no
`, testfiles.Own(t, "corpus/real/shop.policy.yaml")),
	} {
		text := testfiles.Own(t, "corpus/real/"+name+".sql")
		_, sql, _ := strings.Cut(text, "\n")
		if _, err := pipeline.Rewrite(strings.TrimSuffix(strings.TrimSpace(sql), ";"), on, rewritetest.Sharp()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two queries in FROM of several tables each, whose rows are capped before they are joined: what is claimed of one row's tuples is what
// package verify derives, however many tables there are.
func TestJoinsOfCappedJoinsAreProven(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	on := rewritetest.ParseSnapshot(t, endsTables, endsPolicy)
	joins := []string{
		"SELECT a.user_id AS u, a.quantity AS x, b.quantity AS y FROM orders a JOIN orders b ON b.user_id = a.user_id",
		"SELECT a.user_id AS u, a.mark AS x, b.mark AS y FROM marks a LEFT JOIN marks b ON b.user_id = a.user_id",
		"SELECT a.user_id AS u, b.weight AS x, d.quantity AS y FROM orders a LEFT JOIN parts b ON b.order_id = a.order_id " +
			"JOIN parts c ON c.order_id = a.order_id JOIN orders d ON d.user_id = a.user_id WHERE c.weight <> 4",
		"SELECT a.user_id AS u, b.score AS x, c.mark AS y FROM marks a LEFT JOIN users b ON b.user_id = a.user_id " +
			"JOIN marks c ON c.user_id = a.user_id JOIN users d ON d.user_id = c.user_id",
	}
	accepted := 0
	for _, window := range []string{"rank()", "lag(y)", "sum(y)"} {
		for _, left := range joins {
			for _, right := range joins {
				for _, where := range []string{"", " WHERE EXISTS (SELECT 1 FROM marks w WHERE w.user_id = e.u AND w.mark > e.x)"} {
					sql := "SELECT count(*) FROM (SELECT e.u, e.x, f.y FROM (SELECT u, x, " + window + " OVER (PARTITION BY u ORDER BY x) AS y FROM (" +
						left + ") e" + where + ") e JOIN (" + right + ") f ON f.u = e.u) t"
					_, err := pipeline.Rewrite(sql, on, rewritetest.Sharp())
					if err == nil {
						accepted++
					} else if fault.CodeOf(err) != fault.CodeFanOut {
						t.Errorf("%v (%v): %s", err, errors.Unwrap(err), sql)
					}
				}
			}
		}
	}
	t.Logf("%d are accepted", accepted)
	if accepted < 72 {
		t.Errorf("only %d are accepted", accepted)
	}
}

// mostVisits bounds the visits of planning a text of 2 KiB. Each lowering of caps plans the question again.
const mostVisits = 300_000

var endingTexts = flag.Int("ending-texts", 500, "generated texts whose planning must end")

// TestPlansEnd counts what planning generated texts takes, and never how long. A share of them is accepted, so that printing and proving
// are counted too.
//
// covers: A44
func TestPlansEnd(t *testing.T) {
	debug.SetMaxStack(64 << 20)
	on := endsSnapshots(t)
	texts, accepted, most, longest := *endingTexts, 0, 0, ""
	if testing.Short() {
		texts = min(texts, 60)
	}
	for i := range texts {
		w := endsWriter{rand.New(rand.NewPCG(34, uint64(i)))}
		name := w.pick("live", "copied")
		sql := w.text(name == "copied")
		visits, err := visitsOf(sql, on[name])
		if visits > most {
			most, longest = visits, sql
		}
		if err == nil {
			accepted++
		}
		endedWell(t, sql, visits, err)
	}
	t.Logf("%d of %d are accepted; the most visits are %d: %s", accepted, texts, most, longest)
	if accepted*20 < texts {
		t.Errorf("only %d of %d are accepted", accepted, texts)
	}
}

// FuzzPlanEnds is [TestPlansEnd] on choices of the fuzzer's.
func FuzzPlanEnds(f *testing.F) {
	for i := range 20 {
		f.Add(uint64(34), uint64(i), i%2 == 0)
	}
	on := endsSnapshots(f)
	f.Fuzz(func(t *testing.T, seed, stream uint64, copied bool) {
		w := endsWriter{rand.New(rand.NewPCG(seed, stream))}
		name := map[bool]string{false: "live", true: "copied"}[copied]
		sql := w.text(copied)
		visits, err := visitsOf(sql, on[name])
		endedWell(t, sql, visits, err)
	})
}

// endedWell looks at what planning said: a refusal says what the analyst can write instead, and no statement is printed that is not proven.
func endedWell(t *testing.T, sql string, visits int, err error) {
	t.Helper()
	if visits > mostVisits && flag.Lookup("test.fuzz").Value.String() == "" { // the fuzzer looks for what does not end
		t.Errorf("%d visits, want at most %d: %s", visits, mostVisits, sql)
	}
	ill := []fault.Code{fault.CodeSyntax, fault.CodeUnknownTable, fault.CodeUnknownColumn}
	if code := fault.CodeOf(err); strings.HasPrefix(string(code), string(fault.CodeInternal)) || slices.Contains(ill, code) {
		t.Errorf("%v (%v): %s", err, errors.Unwrap(err), sql)
	}
}

func visitsOf(sql string, on *catalog.Snapshot) (visits int, err error) {
	n := new(steps.Count)
	_, err = steps.Bounded(n, func(n *steps.Count) (*plan.Plan, error) {
		return pipeline.RewriteWithin(n, sql, on, rewritetest.Sharp())
	})
	return n.Visits(), err
}

// endsSnapshots are the tables themselves, and another one of which a copy is prepared.
func endsSnapshots(t testing.TB) map[string]*catalog.Snapshot {
	live := rewritetest.ParseSnapshot(t, endsTables, endsPolicy)
	policy := strings.Replace(endsPolicy, "    max_rows: 400\n    max_groups: 400\n",
		"    max_rows: 400\n    max_groups: 400\n    prepare: {max_rows: 9, ranks: [[mark]]}\n", 1)
	on := rewritetest.ParseSnapshot(t, strings.Replace(endsTables, "marks\n  user_id integer\n",
		"marks\n  mark_id integer not null unique\n  user_id integer not null\n", 1), policy)
	table, _ := on.Table("public", "marks")
	v := catalog.Version{Table: catalog.TableName{Schema: "public", Name: "marks"}, Number: 1, OID: 77}
	b, err := pipeline.Prepare(on, table, v)
	if err != nil {
		t.Fatal(err)
	}
	v.Digest = b.Digest
	return map[string]*catalog.Snapshot{"live": live, "copied": pipeline.Serving(on, v)}
}

// endsWriter writes queries of up to six levels of FROM, over joins, self-joins, computed keys, groups and windows.
type endsWriter struct{ *rand.Rand }

func (w endsWriter) pick(all ...string) string { return all[w.IntN(len(all))] }

// one in n.
func (w endsWriter) one(n int) bool { return w.IntN(n) == 0 }

func (w endsWriter) text(copied bool) string {
	for {
		rows := w.rows(copied)
		for range w.IntN(6) {
			rows = w.around(rows, copied)
		}
		top := w.pick("count(*)", "sum(x)", "count(DISTINCT u)", "avg(y)", "count(*), sum(least(greatest(x, 0), 9))")
		sql := "SELECT " + top + " FROM (" + rows + ") t"
		if w.one(3) {
			sql += " WHERE " + w.condition("t", copied)
		}
		if w.one(4) {
			sql = "SELECT x % 4, " + top + " FROM (" + rows + ") t GROUP BY 1"
		}
		if len(sql) <= 2<<10 {
			return sql
		}
	}
}

// number computes with a number.
func (w endsWriter) number(x string) string {
	return strings.ReplaceAll(w.pick("?", "?", "? + 1", "? % 7", "? * 2", "CASE WHEN ? > 3 THEN ? ELSE 0 END", "coalesce(?, 1)",
		"greatest(?, 2)"), "?", x)
}

// rows are those of joined tables: u is the unit's id, x and y are numbers.
func (w endsWriter) rows(copied bool) string {
	type table struct{ name, unit, number, link string }
	tables := []table{{"users", "user_id", "score", "user_id"}, {"orders", "user_id", "quantity", "order_id"},
		{"marks", "user_id", "mark", "user_id"}}
	if copied {
		tables = tables[2:]
	}
	of := tables[w.IntN(len(tables))]
	from, last := of.name+" a", "a"
	numbers := []string{"a." + of.number}
	for i := range w.IntN(4) {
		alias := string(rune('b' + i))
		kind := w.pick(" JOIN ", " JOIN ", " LEFT JOIN ")
		switch other := tables[w.IntN(len(tables))]; {
		case w.one(4):
			from += kind + "items " + alias + " ON " + fmt.Sprintf(w.pick("a.%[1]s = %[2]s.item_id", "%[2]s.item_id < a.%[1]s",
				"%[2]s.price = a.%[1]s + 1"), of.number, alias)
			numbers = append(numbers, alias+".price")
		case of.name == "orders" && w.one(3):
			from += kind + "parts " + alias + " ON " + alias + ".order_id = a.order_id"
			numbers = append(numbers, alias+".weight")
		default:
			from += kind + other.name + " " + alias + " ON " + alias + "." + other.unit + " = " + w.pick("a", last) + ".user_id"
			if w.one(3) {
				from += " AND " + alias + "." + other.number + w.pick(" > ", " = ") + "a." + of.number
			}
			numbers, last = append(numbers, alias+"."+other.number), alias
		}
	}
	sql := "SELECT a." + of.unit + " AS u, " + w.number(w.pick(numbers...)) + " AS x, " + w.number(w.pick(numbers...)) + " AS y FROM " + from
	if w.one(3) {
		sql += " WHERE " + w.pick(numbers...) + w.pick(" > 2", " < 5", " <> 4")
	}
	return sql
}

func (w endsWriter) condition(alias string, copied bool) string {
	other := w.pick("orders", "users", "marks")
	if copied {
		other = "marks"
	}
	number := map[string]string{"orders": "quantity", "users": "score", "marks": "mark"}[other]
	return w.pick(alias+".x > 3", alias+".y <> "+alias+".x",
		"EXISTS (SELECT 1 FROM "+other+" w WHERE w.user_id = "+alias+".u AND w."+number+" > "+alias+".x)",
		alias+".u IN (SELECT user_id FROM "+other+")", "EXISTS (SELECT 1 FROM items i WHERE i.price = "+alias+".x)")
}

// around puts one more level around rows.
func (w endsWriter) around(rows string, copied bool) string {
	inner := " FROM (" + rows + ") e"
	if w.one(3) {
		inner += " WHERE " + w.condition("e", copied)
	}
	other, number := "orders", "quantity"
	if copied {
		other, number = "marks", "mark"
	}
	switch w.IntN(9) {
	case 0:
		return "SELECT u, " + w.number("x") + " AS x, y" + inner
	case 1:
		return "SELECT u, x, " + w.pick("count(*)", "max(y)", "sum(y)") + " AS y" + inner + " GROUP BY u, x"
	case 2:
		return "SELECT u, " + w.pick("max(x)", "sum(x)", "count(x)") + " AS x, count(*) AS y" + inner + " GROUP BY u"
	case 3:
		return "SELECT u, x, " + w.pick("row_number()", "rank()", "lag(y)", "sum(y)") + " OVER (PARTITION BY u ORDER BY x) AS y" + inner
	case 4:
		return "SELECT DISTINCT u, x, y" + inner
	case 5:
		return "SELECT e.u, e.x, o." + number + " AS y FROM (" + rows + ") e JOIN " + other + " o ON o.user_id = e.u"
	case 6:
		return "SELECT u, x, y" + inner + " UNION ALL SELECT user_id, " + number + ", 1 FROM " + other
	case 7:
		return "SELECT e.u, e.x, i.price AS y FROM (" + rows + ") e JOIN items i ON i.item_id = e.x"
	default:
		return "SELECT e.u, e.x, f.y FROM (" + rows + ") e JOIN (" + w.rows(copied) + ") f ON e.u = f.u"
	}
}
