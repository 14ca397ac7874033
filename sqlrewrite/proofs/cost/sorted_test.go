package cost

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// sortedQuestions are forms that PostgreSQL would sort rows of people for.
var sortedQuestions = []string{
	"SELECT count(*), sum(nn) FROM events",
	"SELECT k_num, count(*) FROM events GROUP BY k_num",
	"SELECT count(DISTINCT nn) FROM events",
	"SELECT k_num, count(DISTINCT nn) FROM events GROUP BY k_num",
	"SELECT count(DISTINCT id) FROM people",
	"SELECT median(nn) FROM events",
	"SELECT avg(d) FROM (SELECT unit, count(DISTINCT nn) AS d FROM events GROUP BY unit) q",
	"SELECT count(*) FROM (SELECT unit, row_number() OVER (PARTITION BY unit ORDER BY event) AS n FROM events) q WHERE n = 1",
	"SELECT count(*) FROM events a JOIN events b ON b.unit = a.unit",
	"SELECT count(*) FROM (SELECT DISTINCT unit, nn FROM events) q",
}

// The rows of people are sorted by nothing first but scattered ids, in no statement: a sort that may find its rows in order takes another
// time where one row is not.
//
// needs: postgres
// covers: C1
func TestNoSortFindsPeopleInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	world := gen.NewWorld(t, *gen.ProofSeed, gen.Wild, 4)
	world.Fill(t, true)
	writer := &gen.Writer{Rand: world.Rand, Counts: make(map[string]int)}
	sampler := rewritetest.FixedSampler(t)
	statements, sorts := 0, 0
	ask := func(sql string, from gen.Origin) {
		p, err := pipeline.Rewrite(sql, world.Seen(), gen.RandomOptions(world.Rand, from))
		if err != nil {
			if !gen.Tolerated[string(fault.CodeOf(err))] {
				t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
			}
			return
		}
		if !p.NeedsData() {
			return
		}
		for _, block := range p.Different() {
			for _, s := range block.Statements(block.Draw(sampler)) {
				n, err := sortsOf(t, world, s)
				if err != nil {
					t.Errorf("%s\n%s\n%v", sql, s.SQL, err)
				}
				statements, sorts = statements+1, sorts+n
			}
		}
	}
	for _, sql := range sortedQuestions {
		ask(sql, gen.Origin{})
	}
	if sorts == 0 {
		t.Error("no statement sorts")
	}
	for range *gen.CostQueries {
		ask(writer.Query())
	}
	t.Logf("%d statements, %d sorts", statements, sorts)
}

// sortsOf counts the nodes of a statement's plan that sort rows of people. Its error names one whose rows may be in order already.
func sortsOf(t *testing.T, w *gen.World, s sqlprint.Statement) (sorts int, err error) {
	t.Helper()
	tx, err := w.Conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	text, err := gen.Explained(t.Context(), tx, s, "VERBOSE, COSTS OFF, FORMAT JSON")
	if err != nil {
		t.Fatalf("%s\n%v", s.SQL, err)
	}
	var plans []struct{ Plan planned }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	_, err = plans[0].Plan.sorts(&sorts)
	return sorts, err
}

// planned is a node of EXPLAIN.
type planned struct {
	Type     string   `json:"Node Type"`
	Relation string   `json:"Relation Name"`
	SortKey  []string `json:"Sort Key"`
	GroupKey []string `json:"Group Key"`
	Output   []string
	Plans    []planned
}

// sorts counts the nodes that sort rows of people, and says whether the node has any.
func (p planned) sorts(n *int) (people bool, err error) {
	people = p.Relation != "" && p.Relation != "zones" && p.Relation != "tags"
	for _, below := range p.Plans {
		of, err := below.sorts(n)
		if people = people || of; err != nil {
			return people, err
		}
	}
	keys := p.SortKey
	if distinct := strings.Join(p.Output, ", "); p.Type == "Aggregate" && strings.Contains(distinct, "(DISTINCT ") &&
		!strings.Contains(strings.Join(p.Plans[0].Output, ", "), "(DISTINCT ") {
		if keys = p.GroupKey; strings.Contains(distinct, "(DISTINCT int8xor(") {
			return people, nil // of the numbers of a copy
		}
	} else if len(keys) == 0 {
		return people, nil
	}
	if people {
		*n++
	}
	if people && (len(keys) == 0 || !strings.Contains(keys[0], "int8xor(") && !strings.Contains(keys[0], "extended(")) {
		return people, fmt.Errorf("%s by %q", p.Type, keys)
	}
	return people, nil
}
