// Package copies proves the same of questions that prepared copies answer.
package copies

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/proofs/gen"
)

// copiedProofs is the number of random queries of a proof over copies: each takes as long as five others.
func copiedProofs() int { return gen.Proofs() / 5 }

// As TestNeighbours says, for queries that are answered from prepared copies: each neighbour is prepared from what it holds, and no
// sealed integer moves by more than its claim.
//
// needs: postgres
func TestCopiesNeighbours(t *testing.T) {
	t.Parallel()
	n := &gen.Neighbours{Queries: copiedProofs(), Seed: *gen.ProofSeed, Copied: true}
	if err := n.Run(t); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d queries of %d on %d databases each, refused by size: %v", n.Ran, n.Tried, len(gen.Neighbourhood()), n.Refusals)
	if n.Ran >= gen.EnoughForPower/3 {
		gen.Tight(t, n.Reached)
	}
}

// Each mutant of the text that fills a copy, or of a statement's cut by its ranks, is noticed within 1,000 queries. Two are tried, which
// few queries find; make proofs-mutants tries all.
func TestCopiesNeighboursKillMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	all := map[string]gen.Defect{
		"rank over units":          {Fill: gen.Replacing(`PARTITION BY t\."\w+" ORDER`, `ORDER`)},
		"more rows than the rank":  {Fill: gen.Replacing(`(WHERE \w\.rn <= )6`, `${1}8`)},
		"a number for two units":   {Fill: gen.Replacing(`SELECT u\.unit`, `SELECT u.unit / 2`)},
		"rows of other units":      {Fill: gen.Replacing(`ON u\.id = r\.id`, `ON u.id / 3 = r.id / 3`)},
		"no cut by rank":           {SQL: gen.Replacing(`[^( ]*noisegate_rn"? <= `, `1 <= `)},
		"no cut by rank of groups": {SQL: gen.Replacing(`[^( ]*noisegate_group_\d"? <= `, `1 <= `)},
		"more of the public rows":  {SQL: gen.Replacing(`(v\.place <= \$\d+::bigint)`, `${1} + 1`)},
		"no cut by rank in groups": {SQL: gen.Replacing(`[^( ]*noisegate_row_\d"? <= `, `1 <= `)},
	}
	tried := []string{"no cut by rank of groups", "rows of other units"}
	if *gen.AllMutants {
		tried = slices.Sorted(maps.Keys(all))
	}
	for _, name := range tried {
		defect, known := all[name]
		if !known {
			t.Fatalf("there is no mutant %q", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &gen.Neighbours{Queries: 1000, Seed: *gen.ProofSeed, Defect: defect, Copied: true}
			err := n.Run(t)
			if err == nil {
				t.Fatalf("survived %d queries of %d", n.Ran, n.Tried)
			}
			t.Logf("killed at query %d of %d: %s", n.Ran, n.Tried+1, err.Error()[strings.LastIndexByte(err.Error(), '\n')+1:])
		})
	}
}

// Without noise an answer from a copy that leaves out no row is PostgreSQL's own answer to the analyst's text about the table.
//
// needs: postgres
func TestCopiesOracleRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	gen.Oracle(t, gen.NewCopiedWorld(t, 12, gen.Calm, 1000, 1000), copiedProofs())
}
