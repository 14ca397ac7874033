package integration

import (
	"flag"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/api"
)

var silhouettes = flag.Int("silhouettes", 2, "runs of TestScoresOfPublicCentres of the silhouette; make asked takes 20")

// TestScoresOfPublicCentres asks the queries of docs/scores.md, as they stand there, of the Adult data at ε 1: over 2 runs the
// simplified silhouette has a root mean square error of at most 0.0005, and over 20 Calinski-Harabasz of at most 3.5 %. A right gateway's
// are 0.0001 and 1.6 %, so that it fails less than once in 10^9 (chi-square with 2 degrees of freedom above 50, with 20 above 90).
func TestScoresOfPublicCentres(t *testing.T) {
	t.Parallel()
	s := newStack(t, census(t))
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(read(t, "../docs/scores.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d queries", len(blocks))
	}
	for i, name := range []string{"silhouette", "calinski_harabasz"} {
		sql := blocks[i][1]
		truth, err := strconv.ParseFloat(s.plain(t, "census", sql)[0][0], 64)
		if err != nil {
			t.Fatal(err)
		}
		square, runs := 0.0, []int{*silhouettes, 20}[i]
		for run := range runs {
			// Another price is another release, and each analyst has a budget of their own.
			answer, err := s.analyst(t, fmt.Sprintf("%s-%d", name, run)).Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql,
				Epsilon: api.Decimal(fmt.Sprintf("1.0000%02d", run)), Delta: "1e-6", Mechanism: "gaussian"}, "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := strconv.ParseFloat(answer.Rows[0][0].String(), 64)
			if err != nil || answer.Columns[0].Name != name {
				t.Fatalf("%v, %+v", err, answer)
			}
			square += (got - truth) * (got - truth)
		}
		rmse := math.Sqrt(square / float64(runs))
		t.Logf("%s: %.6g without noise, rmse %.3g", name, truth, rmse)
		if most := []float64{0.0005, 0.035 * truth}[i]; rmse > most {
			t.Errorf("%s: rmse %g, want at most %g", name, rmse, most)
		}
	}
}

// TestCommandsOfScores runs the commands of docs/scores.md, as they stand there, on the Adult data: what is estimated is affordable, both
// scores are resolved, and asking again is free.
func TestCommandsOfScores(t *testing.T) {
	t.Parallel()
	outputs := commandsTwice(t, newStack(t, census(t)), "../docs/scores.md")
	for i, wants := range [][]string{
		{"affordable", "nothing was spent"}, {"nothing was spent"},
		{" calinski_harabasz ", " simplified_silhouette ", " to ", "spent rho ", "same answer, free"}, {"nothing spent", " to "},
	} {
		for _, want := range wants {
			if i >= len(outputs) || !strings.Contains(outputs[i], want) {
				t.Errorf("command %d: %q is missing in %q", i, want, outputs)
			}
		}
	}
	t.Log(outputs[2])
}
