package pate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// TestLookUpsOfOwnPurchases: what PostgreSQL reads to find what a buyer paid for is the same however much others
// bought, with and without statistics; and so is what it reads to tally it, but for a few blocks at the edges of what
// is the buyer's own. 2,000 and 5,000 purchases of others have indexes of the same depth, which is all that may differ.
//
// covers: L9
func TestLookUpsOfOwnPurchases(t *testing.T) {
	c := pgtest.Control(t)
	s := open(t, c)
	define(t, s, "pets")
	var csv strings.Builder
	csv.WriteString("query,cat,dog\n")
	for i := range 5000 {
		fmt.Fprintf(&csv, "q%d,2,1\n", i)
	}
	if _, err := s.Load(t.Context(), "pets", ballots(t, csv.String()), "sam"); err != nil {
		t.Fatal(err)
	}
	v, err := s.Seal(t.Context(), "pets", "sam")
	if err != nil {
		t.Fatal(err)
	}
	question := Question{1}
	buy := func(buyer Buyer, from, to int) (queries []int32) {
		t.Helper()
		var outcomes []Outcome
		for i := from; i < to; i++ {
			queries, outcomes = append(queries, int32(i)), append(outcomes, Outcome{Status: Answered, Label: 0})
		}
		if _, err := s.Record(t.Context(), v, Purchase{buyer, "charge"}, queries, []Question{question}, outcomes); err != nil {
			t.Fatal(err)
		}
		return queries
	}
	asked := buy("mel", 0, 100)
	buy("max", 100, 2000)
	for i := 100; i < 500; i++ {
		asked = append(asked, int32(i))
	}
	reads := func() map[string]int {
		t.Helper()
		blocks := map[string]int{}
		for name, sql := range map[string]struct {
			text string
			args []any
		}{
			"purchases": {sqlPurchases, []any{v.ID, asked, [][]byte{question[:]}, "mel"}},
			"outcomes":  {sqlOutcomes, []any{v.ID, asked[:100], [][]byte{question[:]}}},
			"tally":     {sqlTallyOwn, []any{v.ID, "mel"}},
		} {
			var plans []byte
			if err := s.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, FORMAT JSON) "+sql.text,
				sql.args...).Scan(&plans); err != nil {
				t.Fatal(name, err)
			}
			var explained []struct {
				Plan struct {
					Hit  int `json:"Shared Hit Blocks"`
					Read int `json:"Shared Read Blocks"`
				}
			}
			if err := json.Unmarshal(plans, &explained); err != nil {
				t.Fatal(err)
			}
			p := explained[0].Plan
			if p.Hit+p.Read == 0 {
				t.Fatalf("%s reads nothing: %s", name, plans)
			}
			blocks[name] = p.Hit + p.Read
		}
		return blocks
	}
	same := func(a, b map[string]int) bool {
		const edges = 5
		for name := range a {
			if d := a[name] - b[name]; d > edges || d < -edges {
				return false
			}
		}
		return true
	}
	few := reads()
	c.Exec(t, "ANALYZE noisegate.pate_purchase, noisegate.pate_answer")
	if known := reads(); !same(known, few) {
		t.Errorf("without statistics %v, with them %v", few, known)
	}
	buy("max", 2000, 5000)
	many := reads()
	c.Exec(t, "ANALYZE noisegate.pate_purchase, noisegate.pate_answer")
	if known := reads(); !same(many, few) || !same(known, few) {
		t.Errorf("others have 1,900: %v; others have 4,900: %v, with statistics %v", few, many, known)
	}
	t.Log(few, many)
}
