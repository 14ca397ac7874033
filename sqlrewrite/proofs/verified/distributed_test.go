package verified

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// What is printed for a distributed database is proven as well, and is another text only where a flat statement computes keys,
// a join hides which columns it compares, or ids are scattered.
//
// covers: E.3 E.4
func TestDistributedStatementsAreProven(t *testing.T) {
	others := 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		identity := p.Fingerprint()
		before := proposals(d.Pos, p, p.Snapshot)
		if err := p.Distribute(); err != nil {
			t.Errorf("%s: %v", d.Pos, err)
			return
		}
		if p.Fingerprint() != identity {
			t.Errorf("%s: the question is another one when its tables are distributed", d.Pos)
		}
		for i, s := range proposals(d.Pos, p, p.Snapshot) {
			if s.statement.SQL == before[i].statement.SQL {
				continue
			}
			if others++; p.Bounding.Kind != stability.Flat && !before[i].statement.Blind && !strings.Contains(s.statement.SQL, "int8xor(") {
				t.Errorf("%s: another text\n%s", d.Pos, s.statement.SQL)
			}
			if err := s.proven(s.claim); err != nil {
				t.Errorf("%s: %v\n%s\n%v", d.Pos, err, s.statement.SQL, s.statement.Args)
			}
		}
	})
	if others < 30 {
		t.Errorf("only %d statements are others", others)
	}
}

// Rows that are held against the domain of their key give the groups that are held against it.
//
// needs: postgres
// covers: W7
func TestDistributedStatementsGiveTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	w := gen.NewWorld(t, 23, gen.Wild, 4)
	for _, key := range []string{"k_num", "k_bool, k_text", "k_text", "n2 / 7", "n4 > 3", "CASE WHEN n4 > 3 THEN 'a' ELSE 'b' END",
		"extract(month FROM day)",
		"coalesce(k_text, 'none')", "width_bucket(n4, 0, 10, 3)", "NOT k_bool"} {
		sql := "SELECT " + key + ", count(*), sum(n4) FROM people GROUP BY " + key
		p, err := pipeline.Rewrite(sql, w.Snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s: %v", sql, parsetest.ShowFault(err))
		}
		for range 3 {
			w.Fill(t, true)
			want := statementOf(t, w, p)
			if err := p.Distribute(); err != nil {
				t.Fatal(err)
			}
			if got := statementOf(t, w, p); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: rows give %v, groups give %v", sql, got, want)
			}
			p, _ = pipeline.Rewrite(sql, w.Snapshot, rewritetest.Sharp())
		}
	}
}

// statementOf runs the only statement of a plan.
func statementOf(t *testing.T, w *gen.World, p *plan.Plan) gen.ExactTable {
	t.Helper()
	s := p.Parts[0].Statement
	tables, err := gen.RunOnAll(t.Context(), w.Conn, s, []string{"nobody"})
	if err != nil || len(p.Parts) != 1 || p.Bounding.Kind != stability.Flat {
		t.Fatalf("%s\n%v", s.SQL, err)
	}
	return tables[0]
}
