package neighbours

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Where a unique key of unit and group keys takes the place of bounding, that key is all that the claim rests on: without it the claim
// breaks on the first database.
//
// covers: A12
func TestOneRowInEachGroup(t *testing.T) {
	world := gen.NewWorld(t, 1, gen.Wild, 4)
	world.Fill(t, true)
	p, err := pipeline.Rewrite(`SELECT g.kk, count(*), sum(g.c) FROM people p
		JOIN (SELECT unit, k_num AS kk, count(*) AS c FROM events GROUP BY unit, k_num) g ON g.unit = p.id GROUP BY g.kk`, world.Snapshot, rewritetest.Sharp())
	if err != nil {
		t.Fatal(parsetest.ShowFault(err))
	}
	if p.Bounding.Kind != stability.Flat || p.Bounding.MaxGroups != 3 {
		t.Fatalf("the bounding is %v, want flat in 3 groups", p.Bounding)
	}
	draws := p.Draw(rewritetest.FixedSampler(t))
	for _, m := range []struct {
		mutate func(string) string
		broken bool
	}{
		{nil, false},
		{func(sql string) string { return strings.Replace(sql, `"k_num") AS`, `"k_num", "t2"."event") AS`, 1) }, true},
	} {
		n := &gen.Neighbours{Defect: gen.Defect{SQL: m.mutate}, Reached: make(map[string]*big.Rat)}
		claims, _ := n.Defect.Claims(p, draws)
		if err := n.Compare(t.Context(), world, claims); errors.Is(err, gen.ErrNotSQL) || (err != nil) != m.broken {
			t.Errorf("broken = %v: got %v", m.broken, err)
		}
	}
}
