package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// choosing writes questions whose rows, or groups, are chosen by the groups of another question.
type choosing struct{ *rand.Rand }

func (c choosing) pick(all ...string) string { return all[c.IntN(len(all))] }

// groups is a question that gives some keys: of those that it counts, the first few.
func (c choosing) groups(names ...string) string {
	items, keys := "", ""
	for i, name := range names {
		items += fmt.Sprintf("%s AS k%d, ", name, i)
		keys += ", " + name
	}
	return fmt.Sprintf("SELECT %s%s AS m FROM sales%s GROUP BY %s%s ORDER BY m %s%s LIMIT %d", items,
		c.pick("count(*)", "sum(items)", "count(DISTINCT items)"), c.pick("", " WHERE items > 20", " WHERE price > 3"), keys[2:],
		c.pick("", " HAVING count(*) > 5"), c.pick("DESC", ""), keys, 1+c.IntN(4))
}

// question is one with a condition of each form. Whether it may be answered is told by chosen: not where the condition reads a column that
// is no group key, or the answer has windows, over all groups.
func (c choosing) question() (sql string, chosen bool) {
	keys := []string{"region", "grade", "shop", "mailed"}
	c.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	k, other := keys[0], keys[1]
	chosen = true
	grouped := k + ", " + other
	if c.IntN(6) == 0 {
		grouped, chosen = keys[2]+", "+other, false
	}
	by := c.pick(grouped, "1, 2", k+", second")
	if by == k+", second" && chosen {
		grouped += " AS second"
	} else {
		by = c.pick(grouped, "1, 2")
	}
	items := grouped + ", count(*) AS n, " + c.pick("sum(items)", "avg(price)", "count(DISTINCT grade) + 1") + " AS v"
	if c.IntN(8) == 0 {
		items, chosen = items+", rank() OVER (ORDER BY count(*))", false
	}
	not := c.pick("", "", "NOT ")
	from, where, with := "sales s", c.pick("", "s.items < 90 AND "), ""
	keysOf := func(names ...string) string { return "SELECT k0 FROM (" + c.groups(names...) + ") g" }
	switch c.IntN(7) {
	case 0:
		where += fmt.Sprintf("%s %sIN (%s)", k, not, keysOf(k))
	case 1:
		from += fmt.Sprintf(" JOIN (%s) g ON %s", c.groups(k), c.pick(k+" = k0", "g.k0 = s."+k))
	case 2:
		from += fmt.Sprintf(" JOIN (%s) g ON s.%s = g.k0 AND k1 = s.%s", c.groups(k, other), k, other)
	case 3:
		where += fmt.Sprintf("%sEXISTS (SELECT 1 FROM (%s) g WHERE s.%s = g.k0)", not, c.groups(k), k)
	case 4:
		with, from = "WITH g AS ("+c.groups(k)+") ", from+" JOIN g ON g.k0 = s."+k
	case 5:
		inner := c.pick("*", "region AS region, grade, shop, mailed, items, price")
		from = fmt.Sprintf("(SELECT %s FROM sales x WHERE x.price > 1 AND x.%s IN (%s)) s", inner, k, keysOf(k))
	case 6: // several groups have one key
		from, chosen = from+fmt.Sprintf(" JOIN (%s) g ON s.%s = g.k0", c.groups(k, other), k), false
	}
	if where = strings.TrimSuffix(where, " AND "); where != "" {
		where = " WHERE " + where
	}
	sql = fmt.Sprintf("%sSELECT %s FROM %s%s GROUP BY %s%s", with, items, from, where, by, c.pick("", " HAVING count(*) > 3"))
	return sql + c.pick(" ORDER BY 1, 2", fmt.Sprintf(" ORDER BY n DESC, 1, 2 LIMIT %d", 1+c.IntN(5)),
		" ORDER BY sum(items) - count(*), v, 2, 1"), chosen
}

// Conditions that read nothing of a row but group keys choose among groups: the answer is PostgreSQL's. Others are refused.
//
// needs: postgres
func TestConditionsOnGroupKeysChooseGroups(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, oracleDDL)
	plain, private := db.Conn(t, db.DSN), db.Conn(t, db.DSN)
	rewritetest.MustExec(t, private, "SET search_path = ''")
	snapshot := rewritetest.ParseSnapshot(t, oracleTables, fmt.Sprintf(oraclePolicy, "{row: id}"))
	c := choosing{rand.New(rand.NewPCG(26, 11))} // reproducible on purpose
	answered, refused := 0, 0
	const questions = 200
	for range questions {
		sql, chosen := c.question()
		p, err := pipeline.Rewrite(sql, snapshot, plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: maxOracleBlocks,
			Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95})
		switch {
		case chosen != (err == nil), fault.CodeOf(err) == fault.CodeInternal:
			t.Errorf("%s: %v", sql, err)
		case err != nil:
			refused++
		default:
			answered++
			compareAnswers(t, sql, gen.PlainAnswer(t, plain, sql), gen.NoiselessAnswer(t, private, p))
		}
	}
	if answered < questions/3 || refused < questions/10 {
		t.Errorf("%d of %d questions are answered, %d refused", answered, questions, refused)
	}
}
