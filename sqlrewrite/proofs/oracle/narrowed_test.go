package oracle

import (
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// narrowing writes sums over joins and queries in FROM, with conditions everywhere.
type narrowing struct {
	*rand.Rand
	most string // the column that most of a question is about
}

func (w narrowing) pick(all ...string) string { return all[w.IntN(len(all))] }

// value is a column that has bounds, or what is computed of it.
func (w narrowing) value(alias string) string {
	c := alias + "." + w.most
	if w.IntN(6) == 0 {
		c = alias + "." + w.pick("n4", "nn", "money")
	}
	return w.pick(c, c, c, c, c, "coalesce("+c+", "+w.pick("1", "-3", "6")+")",
		"abs("+c+")", "-"+c, "("+c+" + 2)", "nullif("+c+", 7)", "("+c+" / 2)")
}

// condition is one on columns of the aliases.
func (w narrowing) condition(depth int, aliases ...string) string {
	if depth > 0 && w.IntN(2) == 0 {
		a, b := w.condition(depth-1, aliases...), w.condition(depth-1, aliases...)
		return w.pick("("+a+" AND "+b+")", "("+a+" OR "+b+")", "(NOT "+a+")", "("+a+" IS NOT TRUE)", "("+a+" IS FALSE)",
			"("+a+" IS NOT FALSE)",
			"(CASE WHEN "+a+" THEN "+b+" END)", "(CASE WHEN "+a+" THEN "+b+" ELSE true END)")
	}
	x, c, d := w.value(w.pick(aliases...)), w.pick("0", "3", "4", "5", "8", "-2"), w.pick("5", "7", "8")
	return "(" + w.pick(x+" "+w.pick("<", "<=", ">", ">=", ">", "<>")+" "+c, x+" "+w.pick("<=", ">=")+" "+d, x+" BETWEEN "+c+" AND "+d,
		x+" IN ("+c+", "+d+")", x+" NOT IN ("+c+", "+d+")",
		x+" IS NULL", x+" IS NOT NULL",
		x+" IS NOT DISTINCT FROM "+c, x+" NOT BETWEEN "+c+" AND "+d, c+" <= "+x) + ")"
}

// rows is an item of FROM with the columns unit, n4, nn, n2, n8 and money.
func (w narrowing) rows(table, unit string) string {
	from := "(SELECT " + unit + " AS unit, n4, nn, n2, n8, money, k_num FROM " + table + ")"
	if w.IntN(3) > 0 {
		from = "(SELECT x." + unit + " AS unit, " +
			w.pick("x.n4", "x.n4", "x.nn AS n4", "5 AS n4", "CASE WHEN "+w.condition(1, "x")+" THEN x.n4 ELSE x.nn END AS n4") +
			", x.nn, x.n2, x.n8, x.money, x.k_num FROM " + table + " AS x WHERE " + w.condition(1, "x") + ")"
	}
	if w.IntN(5) == 0 {
		from = "(SELECT * FROM " + from + " AS a UNION ALL SELECT * FROM " + w.rows(table, unit) + " AS b)"
	}
	return from
}

func (w narrowing) question() string {
	var from string
	aliases := []string{"p"}
	switch people, events := w.rows("people", "id"), w.rows(w.pick("events", "cards"), "unit"); w.IntN(6) {
	case 0:
		from = w.pick(people+" AS p", "zones AS z FULL JOIN "+events+" AS p ON z.k_num = p.k_num")
	case 1:
		from = events + " AS p JOIN zones AS z ON z.k_num = p.k_num AND " + w.condition(1, "p")
	case 2:
		from = events + " AS p LEFT JOIN zones AS z ON z.k_num = p.k_num AND " + w.condition(1, "p")
	default:
		aliases = append(aliases, "e")
		from = people + " AS p " + w.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT JOIN") + " " + events + " AS e ON e.unit = p.unit" +
			w.pick("", " AND "+w.condition(1, aliases...), " AND "+w.condition(1, "e"))
	}
	x := w.value(w.pick(aliases...))
	if w.IntN(3) == 0 {
		x = "CASE WHEN " + w.condition(1, aliases...) + " THEN " + x + w.pick("", " ELSE "+w.value(w.pick(aliases...)), " ELSE 0") + " END"
	}
	q := "SELECT " + w.pick("sum", "sum", "avg", "min", "max") + "(" + x + ")"
	if w.IntN(3) == 0 {
		q += " FILTER (WHERE " + w.condition(1, aliases...) + ")"
	}
	q += " AS v FROM " + from
	if w.IntN(4) > 0 {
		q += " WHERE " + w.condition(1, aliases...)
	}
	return q
}

// Conditions narrow bounds wherever they stand, in joins, on sides that may be absent and in queries in FROM: where the policy's bounds
// leave nothing out, narrowed ones do not either, so that without noise an answer is PostgreSQL's own.
//
// needs: postgres
func TestNarrowedBoundsLeaveNothingOut(t *testing.T) {
	t.Parallel()
	world := gen.NewWorld(t, 81+*gen.ProofSeed, gen.Calm, 1000)
	w := narrowing{Rand: world.Rand}
	asked, taken, narrowed, of := randomtest.Part(600, 6_000), 0, 0, 0
	for i := range asked {
		if i%gen.QueriesPerDatabase == 0 {
			world.Fill(t, i%20 == 0)
			rewritetest.MustExec(t, world.Conn, "DELETE FROM store.events WHERE unit IS NULL; DELETE FROM store.cards WHERE unit IS NULL")
		}
		w.most = w.pick("n4", "nn", "money")
		sql := w.question()
		p, err := pipeline.Rewrite(sql, world.Snapshot, plan.Options{Epsilon: 1000 * mechanisms.EpsilonUnit, Delta: 1000,
			Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95})
		if err != nil {
			continue
		}
		if taken++; p.Wide() == nil {
			continue
		}
		narrowed++
		truth := strings.Replace(sql, "FULL JOIN", "RIGHT JOIN", 1) // rows of zones that meet nobody's are left out of answers
		want, got := gen.PlainAnswer(t, world.Plain, truth).Rows[0][0], gen.NoiselessAnswer(t, world.Conn, p).Rows[0][0]
		if want != "NULL" {
			of++
		} else if p.Releases[0].Selection != nil || strings.HasPrefix(sql, "SELECT avg") || gen.SameValue(got, "0.0") {
			continue // of no rows
		}
		if !gen.SameValue(want, got) {
			t.Errorf("%s\n%s, PostgreSQL has %s", sql, got, want)
		}
	}
	t.Logf("%d questions, %d taken, %d with narrowed bounds, %d of these of some rows", asked, taken, narrowed, of)
	if narrowed*6 < asked || of*4 < narrowed {
		t.Error("too few bounds are narrowed, or of rows that there are")
	}
}
