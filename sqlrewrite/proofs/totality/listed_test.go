package totality

import (
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// PostgreSQL lists the keys of random expressions that are refused without lists, and no row has a key that is on no list. Where the keys
// are known without a list, it has no others.
//
// needs: postgres
func TestListedKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	conn, narrow, r := gen.ErrorFreeRows(t, 15+*gen.ProofSeed, 16, 400, "UPDATE public.t SET letter = 'a', grade = 1 WHERE id <= 0; ")
	// More days than are looked at without lists.
	wide := rewritetest.ParseSnapshot(t, gen.ErrorFreeTables,
		strings.Replace(gen.ErrorFreePolicy, "[2020-01-01, 2024-12-31]", "[1960-01-01, 2024-12-31]", 1))
	lists := gen.NewLists(conn)
	want := *gen.TotalExpressions / 5
	listed, compared, equal := 0, 0, 0
	for i := range want {
		text := "SELECT count(*) FROM t GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		if i%3 == 0 {
			text = "SELECT count(*) FROM t WHERE " + gen.RandomExpression(r, "test", 1) + " GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		}
		snapshot := []*catalog.Snapshot{narrow, wide}[i%2]
		list := lists.Now(t, snapshot)
		query, err := parse.Parse(text, "")
		if err != nil {
			continue
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err == nil && len(bound.Keys) == 1 && !bound.Keys[0].Private() && algebra.PlainField(bound.Keys[0].X) == nil {
			all, _, ok := keys.Computed(list, bound.Keys[0].X, bound.Where)
			if !ok {
				continue
			}
			compared++
			among := make(map[catalog.Key]bool)
			for _, k := range bound.Keys[0].Domain {
				among[k] = true
			}
			for _, k := range all {
				if !among[k] {
					t.Fatalf("%s: %v is listed, and not among %d keys", text, k, len(among))
				}
			}
			if slices.Equal(all, bound.Keys[0].Domain) {
				equal++
			}
			continue
		}
		if fault.CodeOf(err) != fault.CodeMissingKeys {
			continue
		}
		opened := algebra.NewOpened("", query, snapshot)
		opened.List = list
		if bound, err = bind.Releasing(opened); err != nil {
			continue
		}
		listed++
		gen.CheckDomain(t, conn, text, bound)
	}
	t.Logf("%d queries with listed keys; of %d others, %d have the same keys on lists", listed, compared, equal)
	if listed*60 < want || compared*8 < want || equal*10 < compared*8 {
		t.Error("too few to tell")
	}
}
