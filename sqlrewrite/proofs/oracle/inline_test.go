package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// A column of a query in FROM is its expression: a question has the same verdict, price, keys and bounds whether expressions and conditions
// stand in it or in one to three queries in FROM or WITH, and PostgreSQL finds the same groups.
//
// needs: postgres
func TestColumnsOfQueriesInFromAreTheirExpressions(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 31, gen.Wild, 200)
	w.Fill(t, true)
	lists := gen.NewLists(w.Conn)
	r := rand.New(rand.NewPCG(7, 8)) // reproducible on purpose
	o := rewritetest.Sharp()
	answered, narrowed, private := 0, 0, 0
	const queries = 300
	for range queries {
		q := newLevels(r)
		place, through := q.inPlace(), q.through(r)
		want, refused := lists.Plan(place, w.Snapshot, o)
		got, err := lists.Plan(through, w.Snapshot, o)
		if (refused == nil) != (err == nil) {
			t.Fatalf("%s: %v\n%s: %v", place, refused, through, err)
		}
		if err != nil {
			if fault.CodeOf(err) == fault.CodeInternal {
				t.Fatalf("%s: %v", through, err)
			}
			continue
		}
		answered++
		if a, b := factsOf(want), factsOf(got); a != b {
			t.Fatalf("%s: %s\n%s: %s", place, a, through, b)
		}
		if want.Query.Private() {
			private++
			continue
		}
		if a, b := tuplesOf(t, want), tuplesOf(t, got); !maps.Equal(a, b) {
			t.Fatalf("%s: %d tuples of keys\n%s: %d", place, len(a), through, len(b))
		}
		if got.Unlisted() != nil {
			narrowed++
		}
		a := fmt.Sprint(rewritetest.Sealed(t, w.Conn, want.Statements(&plan.Draws{})))
		if b := fmt.Sprint(rewritetest.Sealed(t, w.Conn, got.Statements(&plan.Draws{}))); len(a) != len(b) {
			t.Fatalf("%s: %s\n%s: %s", place, a, through, b)
		}
	}
	t.Logf("%d of %d queries are answered, %d over fewer keys than without conditions, %d over private keys", answered, queries, narrowed,
		private)
	if answered < queries/2 || narrowed < queries/10 {
		t.Errorf("only %d queries are answered, %d over fewer keys", answered, narrowed)
	}
}

// factsOf are the price, the number of keys and the bounds of a plan.
func factsOf(p *plan.Plan) string {
	text := fmt.Sprint(p.Loss(), p.Query.Private(), p.Bounding.MaxGroups, p.Bounding.MaxRows)
	for _, m := range p.Query.Statistics {
		if m.Grid != nil {
			text += fmt.Sprint(" ", m.Grid.Lo, m.Grid.Hi, m.Grid.Step)
		}
	}
	if !p.Query.Private() {
		text += fmt.Sprint(" ", p.Query.PublicTuples())
	}
	return text
}

// levels are a question whose keys and conditions may stand on several levels. Columns are written as {name}.
type levels struct {
	from       string
	base       []string // alias.name
	keys       []string
	sum        string
	conditions []string
}

func newLevels(r *rand.Rand) levels {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	q := levels{base: []string{"e.unit", "e.k_text", "e.k_num", "e.k_bool", "e.secret", "e.n2", "e.n4", "e.nn", "e.f8", "e.day", "e.at"}}
	of := []string{"{k_text}", "{k_num}", "{k_bool}", "{n4}", "extract(month FROM {at})", "extract(year FROM {day})::int",
		"date_trunc('month', {at})", "to_char({day}, 'YYYY-MM')", "CASE WHEN {n4} < 3 THEN 'low' ELSE 'high' END", "{nn} % 3", "{n4} > 3",
		"{k_num} * 1.5", "coalesce({k_text}, 'none')", "lower({k_text})", "floor({f8})", "{k_num}::numeric / 2", "{secret}", "lower({secret})",
		"{f8}", "{at}", "{at} - {day}", "{k_num}::text || {k_text}"}
	conditions := []string{"{k_text} <> 'a'", "{k_text} IN ('a', 'b')", "{k_num} = 2 OR {k_num} = 3", "{n4} BETWEEN 1 AND 6", "{n4} > 2",
		"{k_bool}", "{day} >= DATE '2024-02-01'", "{at} < TIMESTAMP '2024-05-01'", "{n2} IS NOT NULL", "{nn} < 4", "{k_text} = 'a' OR {n4} > 3",
		"{k_num} + 1 > 2"}
	switch q.from = "events e"; r.IntN(3) {
	case 0:
		q.from = "events e JOIN zones z ON z.k_num = e.k_num"
		q.base = append(q.base, "z.zone", "z.weight")
		of = append(of, "{zone}", "{zone}", "{zone}")
		conditions = append(conditions, "{weight} > 0", "{zone} <> 'inner'", "{zone} = 'inner' OR {k_num} = 2")
	case 1:
		q.from = "events e LEFT JOIN tags t ON t.k_num = e.k_num AND t.tag <> 'red'"
		q.base = append(q.base, "t.tag")
		of = append(of, "{tag}", "{tag}", "coalesce({tag}, 'none')")
		conditions = append(conditions, "{tag} IN ('red', 'blue')", "{tag} IS NULL")
	}
	for range 1 + r.IntN(2) {
		if key := pick(of...); !slices.Contains(q.keys, key) { // in place it would be one key
			q.keys = append(q.keys, key)
		}
	}
	for range r.IntN(4) {
		q.conditions = append(q.conditions, "("+pick(conditions...)+")")
	}
	q.sum = pick("{n4}", "{n2} + {n4}", "abs({n4})", "{nn}")
	return q
}

// named writes columns by the name that they have on a level; level 0 is that of the tables.
func (q levels) named(text string, level int) string {
	for _, column := range q.base {
		_, name, _ := strings.Cut(column, ".")
		as := column
		if level > 0 {
			as = fmt.Sprintf("%s_%d", name, level)
		}
		text = strings.ReplaceAll(text, "{"+name+"}", as)
	}
	return text
}

func where(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(all, " AND ")
}

// inPlace writes the question without queries in FROM.
func (q levels) inPlace() string {
	keys := strings.Join(q.keys, ", ")
	return q.named(fmt.Sprintf("SELECT %s, count(*), sum(%s) FROM %s%s GROUP BY %s", keys, q.sum, q.from, where(q.conditions), keys), 0)
}

// through writes the question through queries in FROM or WITH. Each key and each condition stands on one of their levels, or in the
// question.
func (q levels) through(r *rand.Rand) string {
	depth := 1 + r.IntN(3)
	keyAt, conditionAt := make([]int, len(q.keys)), make([]int, len(q.conditions))
	for i := range keyAt {
		keyAt[i] = r.IntN(depth + 1)
	}
	for i := range conditionAt {
		conditionAt[i] = r.IntN(depth + 1)
	}
	here := func(level int) string {
		var all []string
		for i, c := range q.conditions {
			if conditionAt[i] == level {
				all = append(all, q.named(c, level))
			}
		}
		return where(all)
	}
	key := func(i, level int) string {
		if keyAt[i] < level {
			return fmt.Sprintf("key%d", i)
		}
		return q.named(q.keys[i], level)
	}
	from, with := q.from, ""
	for level := range depth {
		var outputs []string
		for _, column := range q.base {
			_, name, _ := strings.Cut(column, ".")
			outputs = append(outputs, q.named("{"+name+"}", level)+fmt.Sprintf(" AS %s_%d", name, level+1))
		}
		for i := range q.keys {
			if keyAt[i] <= level {
				outputs = append(outputs, fmt.Sprintf("%s AS key%d", key(i, level), i))
			}
		}
		query := "SELECT " + strings.Join(outputs, ", ") + " FROM " + from + here(level)
		name := fmt.Sprintf("q%d", level)
		if from = "(" + query + ") " + name; r.IntN(2) == 0 {
			with, from = with+", "+name+" AS ("+query+")", name
		}
	}
	if with != "" {
		with = "WITH " + with[2:] + " "
	}
	var keys []string
	for i := range q.keys {
		keys = append(keys, key(i, depth))
	}
	by := strings.Join(keys, ", ")
	return with + fmt.Sprintf("SELECT %s, count(*), sum(%s) FROM %s%s GROUP BY %s", by, q.named(q.sum, depth), from, here(depth), by)
}
