package plan_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// The files of testdata/stored hold questions with the fingerprints under which 7c2e952 stored their answers: every query of its golden
// files. A stored answer is found by its fingerprint, and what was released of a question by that question, so that what is printed today
// may differ from what was printed then, and these may not. They are never rewritten. A query that is refused by now says so with
// "refused", and one whose relation is another by now with "renewed".
//
// covers: E.5
func TestStoredQuestionsStay(t *testing.T) {
	t.Parallel()
	for _, clause := range []string{
		"from", "join", "path", "subquery", "unitwindow", "semijoin", "union", "select", "where", "expr", "groupby", "keys", "aggregate",
		"having",
		"orderby", "limit", "bounding", "grid", "price", "moments", "distinct", "quantile", "topk", "post",
	} {
		t.Run(clause, func(t *testing.T) {
			rewritetest.RunGoldenFile(t, "stored/"+clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
				switch d.Cmd {
				case "plan":
					p, err := pipeline.Rewrite(d.Input, snapshot, rewritetest.ParseOptions(t, d))
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					return fmt.Sprintf("fingerprint %x\nquestion %x\n", earlier.Fingerprint(p), earlier.Question(p))
				case "renewed": // its rows are capped by now, which is another relation: the old answer is not one to it
					p, err := pipeline.Rewrite(d.Input, snapshot, rewritetest.ParseOptions(t, d))
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					fingerprint, question := earlier.Fingerprint(p), earlier.Question(p)
					if strings.Contains(d.Expected, fmt.Sprintf("%x", fingerprint)) || strings.Contains(d.Expected, fmt.Sprintf("%x", question)) {
						d.Fatalf(t, "it is the same question again: name it plan")
					}
					return d.Expected
				case "refused":
					if _, err := pipeline.Rewrite(d.Input, snapshot, rewritetest.ParseOptions(t, d)); err == nil {
						d.Fatalf(t, "it is taken again: name it plan")
					}
					return d.Expected
				default:
					d.Fatalf(t, "unknown command %q", d.Cmd)
					return ""
				}
			})
		})
	}
}

// storedExpressions are random questions with computed values, one per line: the first eight digits of fingerprint and question, and the
// text.
const storedExpressions = "stored/expressions.txt"

// The same for random expressions, in sums, filters and keys.
//
// covers: E.5
func TestStoredExpressionsStay(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, gen.ErrorFreeTables, gen.ErrorFreePolicy)
	if os.Getenv("NOISEGATE_STORE") != "" { // on 7c2e952, once
		writeStored(t, snapshot)
	}
	text, err := os.ReadFile(rewritetest.GoldenFile(storedExpressions))
	if err != nil {
		t.Fatal(err)
	}
	n, stride := 0, randomtest.Part(4, 1)*rewritetest.OneIn(2)
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if i%stride > 0 {
			continue
		}
		identity, query, _ := strings.Cut(line, " ")
		got, err := shortIdentity(query, snapshot)
		switch {
		case err != nil:
			t.Errorf("%s: %v", query, err)
		case got != identity:
			t.Errorf("%s: stored as %s, now %s", query, identity, got)
		}
		n++
	}
	if n < 1000/stride {
		t.Errorf("only %d questions", n)
	}
}

func shortIdentity(query string, snapshot *catalog.Snapshot) (string, error) {
	p, err := pipeline.Rewrite(query, snapshot, plan.Options{Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95,
		Epsilon: mechanisms.EpsilonUnit, Delta: 1_000_000_000})
	if err != nil {
		return "", err
	}
	fingerprint, question := earlier.Fingerprint(p), earlier.Question(p)
	return fmt.Sprintf("%x%x", fingerprint[:4], question[:4]), nil
}

func writeStored(t *testing.T, snapshot *catalog.Snapshot) {
	t.Helper()
	w := gen.ExpressionWriter{Rand: rand.New(rand.NewPCG(7, 8))}
	var b strings.Builder
	for i := range 4000 {
		x := []func(int) string{w.Number, w.Number, w.Text, w.Time}[i%4](1 + i%3)
		query := []string{
			"SELECT count(" + x + ") FROM t",
			"SELECT sum(" + x + ") FROM t",
			"SELECT count(*) FROM t WHERE " + w.Condition(1+i%3) + " AND small < 5",
			"SELECT avg(small) FILTER (WHERE " + w.Condition(1+i%2) + "), count(" + x + ") FROM t GROUP BY letter",
			"SELECT count(*) FROM t GROUP BY " + x,
		}[i%5]
		if identity, err := shortIdentity(query, snapshot); err == nil {
			b.WriteString(identity + " " + query + "\n")
		}
	}
	if err := os.WriteFile(rewritetest.GoldenFile(storedExpressions), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
