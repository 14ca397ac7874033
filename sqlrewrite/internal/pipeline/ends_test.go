package pipeline_test

import (
	"runtime/debug"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/testfiles"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
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

// Planning of these went round for ever: a cap of a query in FROM that groups rows was about to be capped itself. Each is planned or refused.
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
