package sqlprint_test

import (
	"fmt"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

const pinTables = `
customer
  customer_id  integer not null unique
  store_id     integer not null
rental
  rental_id    integer not null unique
  customer_id  integer
payment
  payment_id   integer not null unique
  rental_id    integer references rental(rental_id)
  amount       integer
store
  store_id     integer not null unique
  region       text`

const pinPolicy = `version: 1
dataset: shop
neighbours: add-remove
tables:
  customer: {unit: {row: customer_id}}
  rental: {unit: {column: customer_id}, max_rows: 5, max_groups: 2}
  payment: {unit: {via: rental_id, to: rental}, max_rows: 5, max_groups: 2, columns: {amount: {bounds: [0, 9]}}}
  store: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// A59: a statement is pinned to every column that it names and to every key that a proof of it used, and to no more: a policy is
// not stale because of what a query does not need.
//
// covers: A59
func TestPreconditionsOfRelations(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, pinTables, pinPolicy)
	for sql, want := range map[string]string{
		"SELECT count(*) FROM customer": "customer customer_id! " +
			"key customer_id",
		"SELECT count(*) FROM rental": "rental customer_id",
		"SELECT count(*) FROM customer c JOIN store s ON s.store_id = c.store_id": "customer customer_id! " +
			"store_id key customer_id; store store_id! key store_id",
		"SELECT sum(amount) FROM payment": "payment rental_id amount; rental rental_id customer_id " +
			"key rental_id",
		"SELECT count(*) FROM payment p JOIN rental r ON r.rental_id = p.rental_id": "payment rental_id; rental rental_id customer_id key " +
			"rental_id",
		"SELECT count(*) FROM payment p JOIN payment q ON q.rental_id = p.rental_id": "payment rental_id; rental rental_id customer_id key " +
			"rental_id",
		"SELECT count(*) FROM rental a JOIN store s ON s.region = 'x'": "rental customer_id; store store_id! region",
		"SELECT count(*) FROM customer c WHERE EXISTS (SELECT 1 FROM rental r WHERE r.customer_id = c.customer_id)": "customer customer_id! " +
			"key customer_id; rental customer_id",
	} {
		p, err := pipeline.Rewrite(sql, snapshot, plan.Options{Epsilon: mechanisms.EpsilonUnit, Mechanism: plan.MechanismAuto,
			Currency:   catalog.Approx,
			Confidence: 0.95})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got := preconditionText(p.Statements(&plan.Draws{})[0].Preconditions); got != want {
			t.Errorf("%s\npreconditions %s\nwant %s", sql, got, want)
		}
	}
}

func preconditionText(preconditions []sqlprint.Precondition) string {
	var all []string
	for _, precondition := range preconditions {
		text := precondition.Table
		for _, c := range precondition.Columns {
			text += " " + c.Name + map[bool]string{true: "!"}[c.NotNull]
		}
		for _, k := range precondition.Keys {
			text += fmt.Sprintf(" key %s", strings.Join(k, " "))
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// A query of WITH is written out wherever it is named: doubling with each link ends at a limit, and not in a statement of any size.
//
// covers: A44
func TestDoublingWith(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, pinTables, pinPolicy)
	sql := "WITH c0 AS (SELECT * FROM rental)"
	for i := 1; i < 8; i++ {
		sql += fmt.Sprintf(", c%d AS (SELECT a.* FROM c%d a JOIN c%d b ON a.customer_id = b.customer_id)", i, i-1, i-1)
	}
	_, err := pipeline.Rewrite(sql+" SELECT count(*) FROM c7", snapshot, plan.Options{Epsilon: mechanisms.EpsilonUnit,
		Mechanism: plan.MechanismAuto,
		Currency:  catalog.Approx, Confidence: 0.95})
	if err == nil || !strings.Contains(err.Error(), "sql/too-complex") {
		t.Errorf("got %v, want sql/too-complex", err)
	}
}
