package sqlrewrite

import (
	"math/big"
	"testing"

	"noisegate/catalog"
	"noisegate/mechanisms"
)

// Where groups are selected by their scores, no group is bounded: a unit may move every score, each by at most its claim (A12), and some unit
// moves one that far.
func TestA12ScoresOfTopGroups(t *testing.T) {
	world := newWorld(t, 5, wild, 4)
	n := &neighbours{reached: make(map[string]*big.Rat)}
	sampler := mechanisms.NewSampler()
	for round := range 4 {
		world.fill(t, round%2 == 0)
		for _, sql := range []string{
			"SELECT k_num FROM events GROUP BY k_num ORDER BY count(*) DESC LIMIT 1",
			"SELECT k_text FROM orders GROUP BY k_text ORDER BY count(n4) DESC LIMIT 1",
			"SELECT k_num FROM people GROUP BY k_num ORDER BY count(*) DESC LIMIT 1",
			"SELECT e.k_num FROM events e JOIN tags t ON t.k_num = e.k_num WHERE e.n4 > 0 GROUP BY e.k_num ORDER BY count(*) DESC LIMIT 1",
			"SELECT k_num FROM orders GROUP BY k_num ORDER BY count(DISTINCT n4) DESC LIMIT 1",
		} {
			p, err := Rewrite(sql, world.snapshot, Options{Epsilon: mechanisms.EpsilonUnit, Mechanism: MechanismAuto, Currency: catalog.Approx, Confidence: 0.95})
			if err != nil {
				t.Fatalf("%s\n%s", sql, showFault(err))
			}
			if p.query.top == 0 {
				t.Fatalf("%s: no selection of groups", sql)
			}
			if err := n.compare(t.Context(), world, p, p.Draw(sampler)); err != nil {
				t.Fatalf("%s\n%v", sql, err)
			}
		}
	}
	if len(n.reached) < 2 {
		t.Errorf("only %v was selected by", n.reached)
	}
	for kind, ratio := range n.reached {
		if ratio.Cmp(big.NewRat(99, 100)) < 0 {
			t.Errorf("%s: reached %s of its claim only", kind, ratio.FloatString(3))
		}
	}
}
