package integration

import (
	"strings"
	"testing"

	"noisegate.example/api"
)

// TestJourneys asks the questions of people's first day as they typed them. One with the verdict "answer" is answered. One with the verdict
// "hint" is answered, or refused at no charge with a suggestion that is answered when it is sent unchanged. What is answered about the
// census means what the author meant: at ε = 100 it agrees with PostgreSQL's own result.
func TestJourneys(t *testing.T) {
	t.Parallel()
	s := newStack(t, census(t), pagila(t))
	asked := 0
	for _, q := range corpus(t, "journeys.sql") {
		asked++
		t.Run(q.id, func(t *testing.T) {
			client := s.analyst(t, "journey-"+strings.ToLower(q.id))
			answers := func(sql, epsilon string) (*api.QueryResponse, error) {
				return client.Query(t.Context(), api.QueryRequest{Dataset: q.dataset, SQL: sql, Epsilon: api.Decimal(epsilon), Delta: "1e-9",
					Confidence: api.Level(confidence)}, "")
			}
			accepted, before := q.sql, s.entries(t)
			answer, err := answers(q.sql, "0.5")
			if err != nil && q.verdict == "hint" {
				p := problemOf(t, err)
				if accepted = p.Extra["suggestion"]; accepted == "" || s.entries(t) != before {
					t.Fatalf("%s\n%v: it suggests nothing, or cost something", q.sql, p)
				}
				if answer, err = answers(accepted, "0.5"); err == nil && p.Extra["then"] != "" {
					accepted = strings.ReplaceAll(p.Extra["then"], "<answer>", answer.Rows[0][0].String())
					answer, err = answers(accepted, "0.5")
				}
			}
			if err != nil {
				t.Fatalf("%s\n%s\n%v", q.sql, accepted, err)
			}
			if len(answer.Rows) == 0 {
				t.Errorf("%s\nno rows", accepted)
			}
			if q.dataset != "census" {
				return // a customer's rows beyond the bounds are left out
			}
			if answer, err = answers(accepted, "100"); err != nil {
				t.Fatal(err)
			}
			if q.sql = accepted; meanings()[q.id] != "" {
				q.sql = meanings()[q.id]
			}
			s.compare(t, q, answer)
		})
	}
	if asked != 40 {
		t.Errorf("%d questions, want 40", asked)
	}
}

// meanings are, in words of PostgreSQL, what questions mean that it does not take, or takes in another form.
func meanings() map[string]string {
	return map[string]string{
		"J05": "SELECT sex, percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM people GROUP BY sex",
		"J31": "SELECT count(CASE WHEN sex = 'Male' THEN 1 END) FROM people",
		"J32": "SELECT sum(CASE WHEN income = '>50K' THEN 1 ELSE 0 END)::float / count(*) FROM people",
		"J33": "SELECT avg(capital_gain) FROM people",
		"J34": "SELECT count(*) FROM (SELECT DISTINCT occupation FROM people WHERE occupation IS NOT NULL) o",
		"J37": "SELECT education, count(*) FROM people GROUP BY education ORDER BY count(*) DESC LIMIT 5",
		"J38": "SELECT education, count(*) FROM people GROUP BY education",
		"J39": "SELECT education, count(*) AS n FROM people GROUP BY education ORDER BY n DESC LIMIT 3",
	}
}
