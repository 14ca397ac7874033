package bind_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// What conditions imply of a column of a query in FROM is found once, however often, and through however many levels, it is asked for.
//
// covers: A44
func TestBoundsThroughManyLevels(t *testing.T) {
	t.Parallel()
	levels := []string{"l0 AS (SELECT age AS x, age + 1 AS y FROM people WHERE age < 30)"}
	for i := range 40 {
		levels = append(levels, fmt.Sprintf("l%d AS (SELECT greatest(x, y) AS x, least(x, y) AS y FROM l%d)", i+1, i))
	}
	text := "WITH " + strings.Join(levels, ", ") + " SELECT sum(x) FROM l40"
	snapshot := rewritetest.TownSnapshot(t)
	done := make(chan *plan.Plan, 1)
	go func() {
		p, err := pipeline.Rewrite(text, snapshot, plan.Options{Epsilon: mechanisms.EpsilonUnit, Mechanism: plan.MechanismAuto, Confidence: 0.95})
		if err != nil {
			t.Error(err)
		}
		done <- p
	}()
	select {
	case p := <-done:
		if p != nil && !p.Query.Narrowed() {
			t.Error("its bounds are not narrowed")
		}
	case <-time.After(time.Minute):
		t.Fatal("a minute has passed, and it is not planned")
	}
}
