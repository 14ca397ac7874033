package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/stattest"
)

// auditKeys is how many groups one request asks about: each is a separate draw.
const auditKeys = 1000

// hollow is a dataset with the given number of people in each of auditKeys public groups.
func hollow(name string, people int) dataset {
	keys := make([]string, auditKeys)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	return dataset{name: name, policy: fmt.Sprintf(`version: 1
dataset: %s
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns: {id: {expose: false}, k: {domain: [%s]}}
budgets:
  - {dataset: true, form: approx, epsilon: 1000, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000, delta: 1e-6}
`, name, strings.Join(keys, ", ")), load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`
			CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL);
			INSERT INTO t SELECT i, i %% %d FROM generate_series(0, %d) AS i`, auditKeys, auditKeys*people-1)).ReadAll()
		return err
	}}
}

// TestAuditEpsilonOverHTTP looks at the gateway as an attacker with 10,000 draws on either of two neighbours does, a group
// with one person and a group with none, and certifies a lower bound on ε. It must not exceed what was charged (a correct
// gateway fails with a probability of at most 1e-6); and it must come close to it, or noise is wasted and the test is blind.
// Noise that is half of what it should be gives a bound near 1.8.
func TestAuditEpsilonOverHTTP(t *testing.T) {
	t.Parallel()
	s := newStack(t, hollow("somebody", 1), hollow("nobody", 0))
	client := s.analyst(t, "ana")
	seen := stattest.Draws{With: s.counts(t, client, "somebody"), Without: s.counts(t, client, "nobody")}
	proof, err := seen.Certify(0, stattest.PerTest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("charged ε = 1; certified ε >= %.3f with %d answers about either dataset", proof.Epsilon, proof.Draws)
	if proof.Epsilon > 1 {
		t.Errorf("ε is at least %.3f, and 1 was charged", proof.Epsilon)
	}
	if proof.Epsilon < 0.7 { // a tight mechanism gives 0.865 with a standard deviation of 0.021
		t.Errorf("ε of only %.3f can be certified where 1 was charged: noise is wasted, or the test is blind", proof.Epsilon)
	}
}

// counts are the answers of ten requests for all groups.
func (s *stack) counts(t *testing.T, client *api.Client, dataset string) []float64 {
	t.Helper()
	var counts []float64
	for i := range 10 {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: dataset, Epsilon: "1",
			SQL: fmt.Sprintf("SELECT k, count(*) FROM t WHERE k <> %d GROUP BY k", -1-i)}, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Rows) != auditKeys {
			t.Fatalf("%d groups, want the %d of the domain", len(answer.Rows), auditKeys)
		}
		for _, row := range answer.Rows {
			n, err := strconv.ParseFloat(row[1].String(), 64)
			if err != nil {
				t.Fatalf("%s is not a number", row[1])
			}
			counts = append(counts, n)
		}
	}
	return counts
}
