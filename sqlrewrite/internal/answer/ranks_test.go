package answer_test

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

var ranksNote = regexp.MustCompile(`\{ranks n: of (\d+) groups noise alone reaches about ± ([0-9.]+): `)

// Among so many groups noise reaches as far as the note says, or farther, as seldom as intervals miss, and not much more seldom. The
// randomness is fixed.
func TestNoiseReachesAsFarAsRanksSay(t *testing.T) {
	const repeats, groups = 1000, 12
	s := rewritetest.FixedSampler(t)
	for _, sql := range []string{"count(*)", "round(3 * count(*) + 1, 0)", "count(*) FILTER (WHERE minutes > 3) - count(*)"} {
		o := rewritetest.Sharp()
		o.Epsilon = mechanisms.EpsilonUnit / 100
		p, err := pipeline.Rewrite("SELECT ward, season, "+sql+" AS n FROM visits GROUP BY 1, 2 ORDER BY n DESC LIMIT 3",
			rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy), o)
		if err != nil {
			t.Fatal(err)
		}
		said := ranksNote.FindStringSubmatch(fmt.Sprint(explain.Explain(p).Notes))
		if said == nil || said[1] != fmt.Sprint(groups) {
			t.Fatalf("%s: %v", sql, explain.Explain(p).Notes)
		}
		reach, beyond := rewritetest.Number(t, said[2]), 0
		for range repeats {
			far := false
			for range groups {
				noise := new(big.Int)
				for i, r := range p.Releases {
					one := r.Mechanism.Draw(s).Release(mechanisms.Seal(new(big.Int)))
					switch {
					case strings.HasPrefix(sql, "round"):
						one.Mul(one, big.NewInt(3))
					case i == 1:
						one.Neg(one)
					}
					noise.Add(noise, one)
				}
				far = far || new(big.Rat).SetInt(noise.Abs(noise)).Cmp(reach) > 0
			}
			if far {
				beyond++
			}
		}
		if share := float64(beyond) / repeats; share > 0.08 || share < 0.02 {
			t.Errorf("%s: noise reaches beyond ± %s in %v of draws, want 0.05 or little less", sql, said[2], share)
		}
	}
}

// Of private keys it is known only with the answer among how many groups noise reached.
func TestRanksOfPrivateKeys(t *testing.T) {
	p, err := pipeline.Rewrite("SELECT minutes, count(*) AS n FROM visits GROUP BY minutes ORDER BY n DESC LIMIT 2",
		rewritetest.ParseSnapshot(t, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "minutes: {bounds: [0, 40]}",
			"minutes: {keys: private}", 1)),
		rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(explain.Explain(p).Notes); strings.Contains(text, "ranks") {
		t.Errorf("before there is an answer: %s", text)
	}
	for shown, want := range map[int]string{2: "", 7: "7"} {
		r := &plan.Released{Plan: p}
		for i := range shown {
			r.Rows = append(r.Rows, plan.ReleasedRow{Keys: []catalog.Key{{Text: fmt.Sprint(i)}}, Noisy: []*big.Int{big.NewInt(int64(100 + i))}})
		}
		rows := make([]answer.PostRow, 2)
		for i := range rows {
			rows[i] = answer.PostRow{Ordinal: shown - i, Values: []catalog.Key{{Text: fmt.Sprint(shown - i - 1)},
				{Text: fmt.Sprint(100 + shown - i - 1)}}}
		}
		answer, err := answer.Complete(r, rows, []string{"integer", "bigint"})
		if err != nil {
			t.Fatal(err)
		}
		said := ranksNote.FindStringSubmatch(fmt.Sprint(answer.Notes))
		if (said == nil) != (want == "") || said != nil && said[1] != want {
			t.Errorf("%d groups: %v", shown, answer.Notes)
		}
	}
}
