package sqlprint_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// steadyQueries are about the one person, in each way in which a statement reads a second table.
func steadyQueries() []string {
	var all []string
	for _, forms := range steadyForms() {
		all = append(all, forms.queries...)
	}
	return all
}

// someQueries are all of them, with -short one in six.
func someQueries() []string {
	return slices.DeleteFunc(steadyQueries(), func(sql string) bool { return len(sql)%rewritetest.OneIn(6) > 0 })
}

// forms are queries of one kind.
type forms struct {
	kind    string
	queries []string
}

// steadyForms are these queries by kind, always in one order.
func steadyForms() []forms {
	all := []forms{{"joins", plainForms()}}
	open := openForms()
	for _, kind := range slices.Sorted(maps.Keys(open)) {
		all = append(all, forms{kind, open[kind]})
	}
	return all
}

// plainForms are joins, and EXISTS and IN by equalities.
func plainForms() []string {
	froms := []string{
		"people p JOIN visits v ON v.person_id = p.person_id",
		"visits v JOIN people p ON v.person_id = p.person_id",
		"people p, visits v WHERE v.person_id = p.person_id AND",
		"people p LEFT JOIN visits v ON v.person_id = p.person_id",
		"visits p JOIN visits v ON v.person_id = p.person_id",
		"visits p JOIN visits v ON v.person_id = p.person_id JOIN people q ON q.person_id = v.person_id",
		"people q JOIN (SELECT person_id, age FROM people) p ON p.person_id = q.person_id JOIN visits v ON v.person_id = p.person_id",
		"people p JOIN (SELECT person_id, max(age) AS age FROM visits GROUP BY person_id) v ON v.person_id = p.person_id",
		"(SELECT * FROM people WHERE age > 110) p JOIN (SELECT * FROM visits WHERE age > 110) v ON v.person_id = p.person_id",
		"people p JOIN visits v ON v.person_id = p.person_id JOIN lines l ON l.line = v.paid",
		"lines l JOIN visits v ON l.line = v.paid JOIN people p ON v.person_id = p.person_id",
	}
	var all []string
	add := func(from, where string) {
		word := " WHERE "
		if strings.HasSuffix(from, " AND") {
			word = " "
		}
		all = append(all, "SELECT count(*) FROM "+from+word+where)
	}
	for _, from := range froms {
		add(from, "p.age = 111")
		add(from, "v.age = 111")
		add(from, "p.age > 110 AND v.age > 110 AND p.age + v.age > 220")
		add(from, "p.age = 111 AND EXISTS (SELECT 1 FROM lines e WHERE e.line = p.age)")
	}
	const own = "(SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.age = 111)"
	for _, where := range []string{"EXISTS " + own, "p.age = 111 AND EXISTS " + own, "p.age = 111 AND NOT EXISTS " + own,
		"p.age = 111 AND (EXISTS " + own + " OR p.age < 0)",
		"p.age = 111 AND CASE WHEN p.age > 110 THEN EXISTS " + own + " END",
		"p.age = 111 AND p.person_id IN (SELECT person_id FROM visits WHERE age = 111)",
		"p.age = 111 AND p.person_id NOT IN (SELECT person_id FROM visits)",
		"p.age = 111 AND p.person_id IN (SELECT person_id FROM visits GROUP BY person_id HAVING count(*) > 3)"} {
		add("people p", where)
		add("visits p", where)
		add("people p JOIN visits v ON v.person_id = p.person_id", where)
	}
	return append(all, "SELECT count(*) FROM receipts WHERE total = 99",
		"SELECT count(*) FROM receipts r JOIN visits v ON v.visit_id = r.visit_id WHERE v.age = 111",
		"SELECT count(*) FROM visits v JOIN receipts r ON v.visit_id = r.visit_id WHERE v.age = 111",
		"SELECT count(*) FROM receipts r WHERE r.total = 99 AND EXISTS (SELECT 1 FROM visits v WHERE v.visit_id = r.visit_id AND v.age = 111)",
		"SELECT count(*) FILTER (WHERE EXISTS "+own+") FROM people p WHERE p.age = 111",
		"SELECT place, count(*) FROM visits p WHERE EXISTS "+own+" AND p.age = 111 GROUP BY place",
		"SELECT v.place, sum(v.paid) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.age = 111 GROUP BY v.place")
}

// openForms are forms of which PostgreSQL read one side only if one person's row reached it, by what they were found as.
func openForms() map[string][]string {
	const few = "(SELECT * FROM people WHERE age = 111)"
	return map[string][]string{
		"A1": {
			"SELECT count(*) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id",
			"SELECT count(v.paid) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id AND v.paid > 3 AND p.age > 110",
			"SELECT count(*) FROM visits v RIGHT JOIN " + few + " p ON v.person_id = p.person_id WHERE v.paid IS NULL OR v.paid > 3",
			"SELECT count(*) FROM " + few +
				" p LEFT JOIN visits v ON v.person_id = p.person_id LEFT JOIN people q ON q.person_id = p.person_id AND q.age > v.paid",
			"SELECT sum(v.paid) FROM " + few + " p LEFT JOIN (SELECT * FROM visits WHERE age = 111) v ON v.person_id = p.person_id",
			"SELECT v.place, count(*) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id GROUP BY v.place",
		},
		"A1 conditions from above": {
			"SELECT count(*) FROM people q JOIN (SELECT p.person_id, p.age FROM people p JOIN visits v ON v.person_id = p.person_id) d ON " +
				"d.person_id = q.person_id WHERE d.age = 111",
			"SELECT count(*) FROM people q LEFT JOIN (SELECT p.person_id, p.age FROM people p JOIN visits v ON v.person_id = p.person_id) d ON " +
				"d.person_id = q.person_id AND d.age = 111",
			"SELECT count(*) FROM people q JOIN (SELECT p.person_id, p.age, count(*) AS n FROM people p JOIN visits v ON v.person_id = " +
				"p.person_id GROUP BY p.person_id, p.age) d ON d.person_id = q.person_id WHERE q.age = 111 AND d.age = q.age",
			"SELECT count(*) FROM people p JOIN (visits v JOIN people q ON q.person_id = v.person_id) ON v.person_id = p.person_id AND v.age = " +
				"p.age AND q.age = p.age WHERE p.age = 111",
			"SELECT count(*) FROM people p LEFT JOIN (visits v JOIN people q ON q.person_id = v.person_id) ON v.person_id = p.person_id AND v.age " +
				"= 111 AND q.age > 3",
			"SELECT count(*) FROM people p LEFT JOIN (people q LEFT JOIN visits v ON q.person_id = v.person_id) ON q.person_id = p.person_id AND " +
				"q.age = 111",
			"SELECT count(*) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = " +
				"p.person_id AND e.paid > p.age) WHERE p.age = 111",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = " +
				"p.person_id AND e.paid > v.paid) WHERE p.age = 111",
			"SELECT count(*) FROM (SELECT person_id, age FROM people UNION ALL SELECT v.person_id, v.age FROM visits v JOIN people p ON " +
				"p.person_id = v.person_id) d WHERE age = 111",
		},
		"A2": {
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid > " +
				"p.paid)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid > " +
				"p.paid)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND (p.age < 0 OR EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND " +
				"e.paid < p.age))",
			"SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid < p.age)) FROM people p " +
				"WHERE p.age = 111",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND CASE WHEN p.age > 110 THEN EXISTS (SELECT 1 FROM visits e WHERE e.person_id = " +
				"p.person_id AND e.paid <> p.age) END",
			"SELECT count(*) FROM " + few + " p WHERE EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid < p.age)",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits e " +
				"WHERE e.person_id = p.person_id AND e.paid > v.paid AND e.age = p.age)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND (p.place IS " +
				"NULL OR e.place > p.place))",
		},
		"A3": {
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.paid < 0 OR (p.person_id, p.paid) IN (SELECT person_id, paid FROM visits " +
				"WHERE place = 2))",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.person_id, p.paid) NOT IN (SELECT person_id, paid FROM visits WHERE place = 2)",
			"SELECT count(*) FILTER (WHERE (p.person_id, p.paid) IN (SELECT person_id, paid FROM visits)) FROM visits p WHERE p.age = 111",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND CASE WHEN p.paid < 99 THEN (p.person_id, p.paid, p.place) IN (SELECT person_id, " +
				"paid, place FROM visits) END",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.person_id, p.paid, p.place, p.age) " +
				"NOT IN (SELECT person_id, paid, place, age FROM visits WHERE place = 2)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.paid, p.place, p.age) NOT IN (SELECT zone, kind, street FROM streets)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.person_id, p.paid) IN (SELECT person_id, paid FROM visits)",
		},
		"A4": {
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM streets s WHERE s.street = p.age)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM streets s WHERE s.street = p.age)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM streets s WHERE s.kind = p.age AND s.street > p.age + 5)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND p.age IN (SELECT kind FROM streets)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND p.age NOT IN (SELECT kind FROM streets)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND p.age NOT IN (SELECT zone FROM streets)",
			"SELECT count(*) FROM " + few + " p WHERE p.age IN (SELECT zone FROM streets WHERE kind < 500)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM streets s WHERE s.kind = 8999 AND s.street < 10)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.place, p.paid) IN (SELECT zone, kind FROM streets)",
		},
		"A5": {
			"SELECT count(*) FROM people p LEFT JOIN streets s ON s.street = p.age WHERE p.age = 111",
			"SELECT count(s.kind) FROM " + few + " p LEFT JOIN streets s ON s.street = p.age",
			"SELECT count(*) FROM people p JOIN streets s ON s.street = p.age WHERE p.age = 111",
			"SELECT count(*) FROM streets s JOIN people p ON s.kind = p.age WHERE p.age = 111 AND s.street > 100",
			"SELECT count(*) FROM " + few + " p JOIN streets s ON s.street = p.age",
			"SELECT count(*) FROM " + few + " p JOIN (SELECT street, kind FROM streets WHERE kind > 5) s ON s.street = p.age",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND p.age < (SELECT max(kind) FROM streets)",
			"SELECT count(*) FROM " + few + " p WHERE p.age < (SELECT max(kind) FROM streets)",
			"SELECT count(*) FROM " + few + " p WHERE p.age < (SELECT avg(kind) FROM streets) AND p.age < (SELECT avg(zone) FROM streets)",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.age = 111 AND v.paid < (SELECT avg(kind) FROM " +
				"streets)",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.age = 111 AND v.paid < (SELECT avg(kind) FROM " +
				"streets) AND p.age < (SELECT avg(zone) FROM streets)",
		},
		"conditions over both sides": func() []string {
			var all []string
			for _, c := range bothSides() {
				all = append(all, "SELECT count(v.paid) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND "+c+" WHERE p.age = 111",
					"SELECT count(v.paid) FROM "+few+" p LEFT JOIN visits v ON v.person_id = p.person_id AND "+c)
			}
			return append(all,
				"SELECT count(v.kind) FROM people p LEFT JOIN lines v ON v.line = p.age AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = "+
					"p.person_id AND e.paid > v.kind + p.age) WHERE p.age = 111",
				"SELECT count(v.total) FROM visits p LEFT JOIN receipts v ON v.visit_id = p.visit_id AND EXISTS (SELECT 1 FROM visits e WHERE "+
					"e.person_id = p.person_id AND e.paid > v.total + p.age) WHERE p.age = 111",
				"SELECT count(*) FROM people p LEFT JOIN (visits v JOIN people q ON q.person_id = v.person_id AND NOT EXISTS (SELECT 1 FROM "+
					"visits e WHERE e.person_id = q.person_id AND e.paid > v.paid + q.age)) ON v.person_id = p.person_id WHERE p.age = 111",
				"SELECT count(*) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND NOT EXISTS (SELECT 1 FROM visits e WHERE "+
					"e.person_id = p.person_id AND e.paid > p.age) AND EXISTS (SELECT 1 FROM visits e "+
					"WHERE e.person_id = p.person_id AND e.paid > v.paid + p.age) LEFT JOIN visits w ON w.person_id = p.person_id AND EXISTS (SELECT "+
					"1 FROM visits e WHERE e.person_id = p.person_id AND e.paid > w.paid + v.paid) WHERE p.age = 111",
				"SELECT count(*) FROM people p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.line = p.age AND EXISTS (SELECT 1 "+
					"FROM visits v WHERE v.person_id = p.person_id AND v.paid > l.kind))",
			)
		}(),
		"over public columns": {
			"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits e WHERE " +
				"e.person_id = p.person_id AND e.paid < p.age + l.kind)",
			"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits e WHERE " +
				"e.person_id = p.person_id AND e.paid < l.kind)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM lines l WHERE l.line > p.age AND l.line < 120 AND " +
				"EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.paid > l.kind))",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits v JOIN lines l ON l.line = v.age WHERE l.kind < " +
				"p.paid AND v.person_id = p.person_id)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits v JOIN people q ON q.person_id = v.person_id " +
				"WHERE v.paid + q.age < p.paid AND v.person_id = p.person_id)",
		},
		"conditions over small tables that are printed twice": {
			"SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM lines l WHERE l.line > 9 AND r.total IS NOT NULL)) FROM receipts r WHERE " +
				"(NOT EXISTS (SELECT 1 FROM lines l WHERE l.line = r.total)) IS TRUE",
			"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY r.total), sum(r.total) FROM receipts r WHERE " +
				"(NOT EXISTS (SELECT 1 FROM lines l WHERE l.line = r.total)) IS TRUE",
			"SELECT count(DISTINCT r.total), count(*) FROM receipts r WHERE (NOT EXISTS (SELECT 1 FROM lines l WHERE l.line = r.total)) IS TRUE",
		},
		"by values of other types": {
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND " +
				"e.paid::float8 = p.age::float8)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.person_id, p.age::float4) NOT IN (SELECT person_id, paid::float8 FROM visits)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.paid, p.age::float8) IN (SELECT kind, zone::float4 FROM streets)",
			"SELECT count(*) FROM visits p WHERE p.age = 111 AND (p.person_id, p.mood) NOT IN (SELECT person_id, mood FROM visits WHERE paid > 3)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND " +
				"e.paid::numeric = p.age)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND NOT EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid " +
				"+ 1 = p.age)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND (p.age + 1) IN (SELECT kind::numeric FROM streets)",
		},
		"by constants": {
			"SELECT count(*) FROM " + few + " p WHERE EXISTS (SELECT 1 FROM streets s WHERE s.kind = 8999 AND s.street < 10)",
			"SELECT count(*) FROM " + few + " p WHERE p.age > 3 AND NOT EXISTS (SELECT 1 FROM streets s WHERE s.kind = 8999 AND s.street < 10)",
			"SELECT count(v.paid) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id AND EXISTS (SELECT 1 FROM streets s WHERE " +
				"s.kind = 8999 AND s.street < 10)",
		},
		"beside small public tables": {
			"SELECT count(*) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id " +
				"WHERE p.age NOT IN (SELECT l.line - 1 FROM lines l WHERE l.line < 101)",
			"SELECT count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.paid > 98) " +
				"AND p.age NOT IN (SELECT l.line - 1 FROM lines l WHERE l.line < 101)",
			"SELECT count(*) FROM people p WHERE p.age NOT IN (SELECT l.line - 1 FROM lines l WHERE l.line < 101) " +
				"AND EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.paid > p.age - 99)",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id " +
				"WHERE p.age = 111 AND (p.age + v.paid) IN (SELECT l.line FROM lines l)",
			"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.age = 111 " +
				"AND EXISTS (SELECT 1 FROM lines l WHERE l.kind = p.age + v.paid)",
			"SELECT count(*) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id WHERE p.age IN (SELECT e1.kind FROM lines e1)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM streets s WHERE s.kind = p.age + 1 AND s.zone < p.age - 115)",
			"SELECT count(l.kind) FROM people p LEFT JOIN lines l ON l.line = p.age AND EXISTS (SELECT 1 FROM streets s WHERE s.kind = p.age + 1 " +
				"AND s.kind < p.age - 115) WHERE p.age = 111",
		},
		"small public tables alone": noneLeft(),
		"what takes long over a small public table": {
			"SELECT count(*) FROM people p JOIN (SELECT line, " + costly("line", 30) + " AS x FROM lines) l ON l.x = p.age WHERE p.age = 111",
			"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age AND " + costly("l.kind", 30) + " > 1 WHERE p.age = 111",
			"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age WHERE p.age = 111 AND " + costly("l.kind", 30) + " > 1",
			"SELECT count(l.kind) FROM people p LEFT JOIN lines l ON l.line = p.age AND " + costly("l.kind", 30) + " > 1 WHERE p.age = 111",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM lines l WHERE l.line = p.age AND " + costly("l.kind", 30) +
				" > 1)",
			"SELECT count(*) FROM people p WHERE p.age = 111 AND (p.age < 0 OR p.age IN (SELECT l.line FROM lines l WHERE " +
				costly("l.kind", 30) + " > 1))",
			"SELECT count(*) FROM " + few + " p JOIN lines l ON l.line = p.age WHERE " + costly("l.kind", 30) + " > 1",
		},
		"by what is chosen": {
			"SELECT mode() WITHIN GROUP (ORDER BY p.place) FILTER (WHERE p.age = 111) FROM visits p JOIN people q ON q.person_id = p.person_id",
			"SELECT mode() WITHIN GROUP (ORDER BY CASE WHEN p.age = 111 THEN v.paid END) FROM people p LEFT JOIN visits v ON v.person_id = " +
				"p.person_id",
			"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY CASE WHEN p.age = 111 THEN p.paid END) FROM visits p WHERE EXISTS (SELECT 1 FROM " +
				"people q WHERE q.person_id = p.person_id)",
			"SELECT p.place, percentile_cont(0.5) WITHIN GROUP (ORDER BY p.paid) FILTER (WHERE p.age = 111) FROM visits p JOIN people q ON " +
				"q.person_id = p.person_id GROUP BY p.place",
			"SELECT max(p.paid) FILTER (WHERE p.age = 111) FROM visits p JOIN people q ON q.person_id = p.person_id",
			"SELECT count(DISTINCT p.paid) FILTER (WHERE p.age = 111) FROM visits p JOIN people q ON q.person_id = p.person_id",
			"SELECT mode() WITHIN GROUP (ORDER BY l.kind) FILTER (WHERE p.age = 111) FROM people p JOIN lines l ON l.line = p.age JOIN people q " +
				"ON q.person_id = p.person_id",
		},
		"beside a row": {
			"SELECT count(*) FROM people p JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.paid > " +
				"p.age) AS b) d ON d.b WHERE p.age = 111",
			"SELECT count(*) FROM (SELECT person_id, row_number() OVER (PARTITION BY person_id ORDER BY CASE WHEN EXISTS (SELECT 1 FROM visits " +
				"e WHERE e.person_id = p.person_id AND e.paid > p.paid) " +
				"THEN 1 ELSE 0 END, visit_id) AS n, age FROM visits p) d WHERE n = 1 AND age = 111",
		},
	}
}

// noneLeft are forms in which rows of people meet those of a small public table, of which a condition leaves none.
func noneLeft() []string {
	return []string{
		"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age WHERE l.kind = 77",
		"SELECT count(*) FROM people p JOIN lines l ON l.line = p.age AND l.kind = 77 WHERE p.age < 50",
		"SELECT count(*) FROM lines l JOIN people p ON l.line < p.age - 60 WHERE l.kind = 77",
		"SELECT count(*) FROM people p LEFT JOIN lines l ON l.line = p.age WHERE l.kind = 77",
		"SELECT count(*) FROM visits p, lines l, lines m WHERE l.line = p.age AND m.line = l.kind AND m.kind = 77",
		"SELECT count(*) FROM visits p JOIN (SELECT line FROM lines WHERE kind = 77) l ON l.line = p.age OR l.line = p.paid",
		"SELECT count(*) FROM (SELECT line FROM lines WHERE kind = 77) l CROSS JOIN visits p",
		"SELECT count(*) FROM people p WHERE p.age IN (SELECT line FROM lines WHERE kind = 77)",
		"SELECT count(*) FROM visits p WHERE (p.age, p.paid) IN (SELECT line, kind FROM lines WHERE kind = 77)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM lines l WHERE l.line = p.age AND l.kind = 77)",
		"SELECT count(*) FROM visits p WHERE EXISTS (SELECT 1 FROM lines l WHERE l.line = p.age AND l.kind > 77 + p.paid)",
		"SELECT place, sum(paid) FROM visits p JOIN lines l ON l.line = p.age WHERE l.kind = 77 AND EXISTS (SELECT 1 FROM lines m WHERE " +
			"m.line = p.paid) GROUP BY place",
		"SELECT count(*) FROM (SELECT p.person_id FROM visits p JOIN lines l ON l.line = p.age WHERE l.kind = 77) d",
		"SELECT count(*) FROM (SELECT line FROM lines WHERE kind = 77) l JOIN visits p ON l.line = p.age",
	}
}

// bothSides are conditions that read rows of p and of v, which are people and visits or both visits.
func bothSides() []string {
	return []string{
		"EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid > v.paid + p.age)",
		"NOT EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid > v.paid + p.age)",
		"(p.age < v.paid OR EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid < v.paid - p.age))",
		"CASE WHEN v.paid > 2 THEN EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.place = v.place AND e.paid > p.age) " +
			"ELSE v.paid = p.age END",
		"(v.paid + p.age) IN (SELECT zone FROM streets)",
		"(v.paid + p.age) NOT IN (SELECT zone FROM streets)",
		"(p.age, v.place) IN (SELECT kind, zone FROM streets)",
		"((p.person_id, v.paid + p.age) IN (SELECT person_id, paid FROM visits)) IS NULL",
		"EXISTS (SELECT 1 FROM streets s WHERE s.kind = p.age AND s.zone > v.paid)",
	}
}

// A condition of an outer join that reads rows of both its sides is tested ahead of the join, in a query of its own: what comes of it is
// what PostgreSQL gives for the join as it was written, whatever is NULL on either side.
//
// needs: postgres
// covers: C1
func TestConditionsOverBothSidesAreJoins(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, `;DELETE FROM receipts; DELETE FROM visits; DELETE FROM people WHERE person_id > 20;
		UPDATE people SET age = person_id % 4;
		INSERT INTO visits SELECT row_number() OVER (), NULLIF((row_number() OVER ()) % 14, 0), a, NULLIF(b, 3), NULLIF(c, 3)
		FROM generate_series(1, 3) a, generate_series(1, 4) b, generate_series(1, 5) c;
		INSERT INTO receipts SELECT 2 * visit_id, visit_id, paid FROM visits WHERE visit_id % 3 > 0;
		DELETE FROM streets WHERE street > 1500;
		UPDATE streets SET kind = street % 3, zone = CASE WHEN street % 2 = 0 THEN 2 + street % 3 END WHERE street < 5`)
	var queries []string
	for _, c := range bothSides() {
		for i, from := range []string{
			"people p LEFT JOIN visits v ON v.person_id = p.person_id AND %s",
			"visits p LEFT JOIN visits v ON v.person_id = p.person_id AND v.place = p.place AND %s",
			"visits p LEFT JOIN visits v ON v.visit_id = p.visit_id AND %s AND v.paid > 1",
			"people q JOIN (people p LEFT JOIN visits v ON v.person_id = p.person_id AND %s) ON q.person_id = p.person_id",
			"people q LEFT JOIN (people p JOIN visits v ON v.person_id = p.person_id AND %s) ON q.person_id = p.person_id",
			"(SELECT * FROM people WHERE age > 1) p LEFT JOIN (SELECT * FROM visits WHERE age < 3) v ON v.person_id = p.person_id AND %s",
			"people p LEFT JOIN visits w ON w.person_id = p.person_id AND NOT EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id " +
				"AND e.paid > w.paid + p.age) LEFT JOIN visits v ON v.person_id = p.person_id AND %s",
		} {
			if !testing.Short() || i == len(c)%7 {
				queries = append(queries, fmt.Sprintf(from, c))
			}
		}
	}
	taken, some := 0, 0
	for _, from := range queries {
		for _, count := range []string{"count(*)", "count(v.paid)", "count(v.place) FILTER (WHERE v.place > 1)"} {
			p, err := pipeline.Rewrite("SELECT "+count+" FROM "+from, snapshot, rewritetest.SteadyOptions)
			if err != nil {
				if fault.CodeOf(err) != fault.CodeFanOut {
					t.Errorf("%s: %s %v", from, parsetest.ShowFault(err), errors.Unwrap(err))
				}
				continue
			}
			taken++
			s := p.Statements(p.Draw(rewritetest.FixedSampler(t)))[0]
			if strings.Contains(s.SQL, "EXISTS (") || strings.Contains(s.SQL, " IN (SELECT") {
				t.Errorf("%s is evaluated row by row\n%s", from, s.SQL)
			}
			var got, want string
			if err := conn.QueryRow(t.Context(), s.SQL, s.Args...).Scan(&got); err != nil {
				t.Fatalf("%s: %v\n%s", from, err, s.SQL)
			}
			plain := regexp.MustCompile(`\b(visits|people|streets)\b`).ReplaceAllString(from, "public.$1")
			unit := "p.person_id"
			if strings.HasPrefix(from, "people q") {
				unit = "q.person_id"
			}
			most := "n"
			if strings.Contains(s.SQL, "u.a0 > $1::bigint THEN $1") {
				most = fmt.Sprintf("least(n, %v)", s.Args[0])
			}
			perUnit := "SELECT " + count + " AS n FROM " + plain + " WHERE " + unit + " IS NOT NULL GROUP BY " + unit
			if err := conn.QueryRow(t.Context(), "SELECT coalesce(sum("+most+"), 0)::text FROM ("+perUnit+") u").Scan(&want); err != nil {
				t.Fatalf("%s: %v", plain, err)
			}
			if got != want {
				t.Errorf("SELECT %s FROM %s: %s, PostgreSQL gives %s\n%s", count, from, got, want, s.SQL)
			}
			if got != "0" {
				some++
			}
		}
	}
	if t.Logf("%d of %d queries are taken, %d count rows", taken, 3*len(queries), some); taken < 2*len(queries) || some < taken/2 {
		t.Error("too few say anything")
	}
}

// EXISTS and IN over rows of people, or a large public table, that PostgreSQL would evaluate row by row are refused.
//
// needs: postgres
// covers: C1
func TestRowByRowIsRefused(t *testing.T) {
	_, snapshot := rewritetest.SteadyWorld(t, "")
	for in, refused := range map[string]bool{
		"(p.paid, p.place, p.age) NOT IN (SELECT zone, zone, zone FROM streets)":                                             false,
		"(p.paid, p.place, p.age, p.paid) NOT IN (SELECT zone, zone, zone, zone FROM streets)":                               true,
		"(p.paid, p.place, p.age, coalesce(p.paid, 0)) NOT IN (SELECT zone, zone, zone, kind FROM streets)":                  false,
		"(p.paid, p.place, p.age, p.paid) NOT IN (SELECT kind, kind, kind, kind FROM lines)":                                 false,
		"EXISTS (SELECT 1 FROM visits v JOIN lines l ON l.line = v.age AND l.kind < p.paid WHERE v.person_id = p.person_id)": true,
		"EXISTS (SELECT 1 FROM visits v JOIN lines l ON l.line = v.age WHERE l.kind < p.paid AND v.person_id = p.person_id)": false,
		"EXISTS (SELECT 1 FROM streets s LEFT JOIN lines l ON l.line = p.age WHERE s.kind = p.paid)":                         true,
	} {
		_, err := pipeline.Rewrite("SELECT count(*) FROM visits p WHERE "+in, snapshot, rewritetest.SteadyOptions)
		if code := fault.CodeOf(err); (err != nil) != refused || refused && code != fault.CodeUnsupported {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// moved is by how many rows the target moves the work of a statement, in one plan, and what its rows can move it by.
func moved(ctx context.Context, conn *pgx.Conn, s sqlprint.Statement, pairs float64) (by, most float64, err error) {
	var work [2]float64
	nodes := 0
	for i, delete := range []string{"", rewritetest.SteadyWithout} {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return 0, 0, err
		}
		if i == 1 {
			if _, err := tx.Exec(ctx, "SET LOCAL search_path = public; "+delete+"; SET LOCAL search_path = ''"); err != nil {
				return 0, 0, err
			}
		}
		plan, _, err := gen.ExecutionOf(ctx, conn, s)
		if err != nil {
			return 0, 0, err
		}
		var n int
		work[i], n, _ = plan.Work()
		nodes = max(nodes, n)
		if err := tx.Rollback(ctx); err != nil {
			return 0, 0, err
		}
	}
	return max(work[0]-work[1], work[1]-work[0]), (rewritetest.SteadyRows*(1+pairs) + rewritetest.SteadyPublic) * float64(nodes), nil
}

// One person, whom a condition leaves alone, does not decide whether or how far PostgreSQL reads a table of people: what it looks at moves
// by that person's rows, what these meet, and public tables, not by the thousands of rows of others.
//
// needs: postgres
// covers: C1
func TestTablesAreReadWhateverOneUnitHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, "")
	settings := randomtest.Part(1, 6) // of six, in turn: of half of the questions one, or all of all
	asked := func(t *testing.T, i int, sql string) {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Errorf("%s: %s", sql, parsetest.ShowFault(err))
			return
		}
		for j, setting := range []string{"", "SET enable_mergejoin = off", "SET work_mem = '64kB'"} {
			if (i+j)%6 >= settings {
				continue
			}
			rewritetest.MustExec(t, conn, "RESET enable_mergejoin; RESET work_mem;"+setting)
			for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
				by, most, err := moved(t.Context(), conn, s, float64(scalar.ClampInt64(p.Query.Pairs)))
				if err != nil || by > most {
					t.Errorf("%s\n%s\n%s\nmoved the work by %.0f rows, its own are %.0f: %v", setting, sql, s.SQL, by, most, err)
				}
			}
		}
	}
	for _, forms := range steadyForms() {
		t.Run(forms.kind, func(t *testing.T) {
			for i, sql := range forms.queries {
				asked(t, i, sql)
			}
		})
	}
}

// Where a condition leaves no row of a small public table, PostgreSQL reads the rows of people in every plan: else statistics, which one
// person can move, would decide whether it does.
//
// needs: postgres
// covers: C1
func TestPeopleAreReadWhereNoPublicRowIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, "")
	for _, sql := range noneLeft() {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Errorf("%s: %s", sql, parsetest.ShowFault(err))
			continue
		}
		for _, setting := range []string{"", "SET enable_hashjoin = off", "SET work_mem = '64kB'", "SET enable_seqscan = off"} {
			rewritetest.MustExec(t, conn, "RESET enable_hashjoin; RESET work_mem; RESET enable_seqscan;"+setting)
			for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
				plan, _, err := gen.ExecutionOf(t.Context(), conn, s)
				unread := plan.Unread()
				if err != nil || slices.Contains(unread, "people") || slices.Contains(unread, "visits") {
					t.Errorf("%s\n%s\n%s\ndoes not read %v: %v", setting, sql, s.SQL, unread, err)
				}
			}
		}
	}
}

// What takes long to compute over a small public table is computed also where a condition leaves no row of people.
//
// needs: postgres
// covers: C1 W.1
func TestWhatTakesLongIsComputedInAnyCase(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, rewritetest.SteadyWithout)
	for _, sql := range openForms()["what takes long over a small public table"] {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Errorf("%s: %s", sql, parsetest.ShowFault(err))
			continue
		}
		for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
			plan, _, err := gen.ExecutionOf(t.Context(), conn, s)
			if unread := plan.Unread(); err != nil || len(unread) > 0 {
				t.Errorf("%s\n%s\ndoes not read %v: %v", sql, s.SQL, unread, err)
			}
		}
	}
}

// planOf is the plan of a statement.
func planOf(ctx context.Context, conn *pgx.Conn, s sqlprint.Statement, settings ...string) (string, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return "", err
	}
	plan, err := gen.Explained(ctx, tx, s, "COSTS OFF, FORMAT TEXT", settings...)
	return plan, errors.Join(err, tx.Rollback(ctx))
}

var hiddenColumn = regexp.MustCompile(`coalesce\(("\w+"\.\w+|"\w+"\."\w+"), ("\w+"\.\w+|"\w+"\."\w+")\)`)

// Which side of a join PostgreSQL hashes, and in what order it reads, does not follow the statistics that one person moves: the most
// frequent values, and how many rows fulfil a condition. With columns and constants in its sight it does.
//
// needs: postgres
// covers: C1
func TestPlansDoNotFollowOneUnit(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	with, snapshot := rewritetest.SteadyWorld(t, rewritetest.SteadyMore)
	without, _ := rewritetest.SteadyWorld(t, rewritetest.SteadyWithout)
	differ := func(s sqlprint.Statement, settings ...string) string {
		one, err := planOf(t.Context(), with, s, settings...)
		if err != nil {
			t.Fatalf("%s\n%v", s.SQL, err)
		}
		other, err := planOf(t.Context(), without, s, settings...)
		if err != nil {
			t.Fatalf("%s\n%v", s.SQL, err)
		}
		if one == other {
			return ""
		}
		return "with one person\n" + one + "\nwithout\n" + other
	}
	all, seen := 0, 0
	// These are joined with the values that they were found by, sides of one size, of which either may be hashed.
	bothSides := slices.Concat(openForms()["conditions over both sides"], openForms()["over public columns"])
	for _, sql := range steadyQueries() {
		if slices.Contains(bothSides, sql) {
			continue
		}
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Fatalf("%s: %s", sql, parsetest.ShowFault(err))
		}
		for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
			all++
			if plans := differ(s); plans != "" {
				t.Errorf("%s\n%s\n%s", sql, s.SQL, plans)
			}
			s.SQL, s.Blind = hiddenColumn.ReplaceAllString(s.SQL, "$1"), false
			if differ(s, "SET LOCAL enable_sort = on") != "" { // next to what PostgreSQL adds for a sort these tables cost nothing
				seen++
			}
		}
	}
	t.Logf("%d statements; with columns and constants in sight %d plans differ", all, seen)
	if seen < 5 {
		t.Errorf("with columns and constants in sight only %d plans of %d differ", seen, all)
	}
}

// Without the rule PostgreSQL reads no further than it must: the test above would notice that.
//
// needs: postgres
// covers: C1
func TestPowerOfTablesAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, "")
	caught, all, parts := 0, 0, randomtest.Part(1, 3) // of three, of the questions
	for i, sql := range someQueries() {
		if i%3 >= parts {
			continue
		}
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.Parts {
			s := rewritetest.Printed(p, part, lower.ReadBothSides).Statement
			if s.SQL == part.Statement.WithSeed(0).SQL {
				continue
			}
			all++
			by, most, err := moved(t.Context(), conn, s, float64(scalar.ClampInt64(p.Query.Pairs)))
			if err != nil {
				t.Fatal(err)
			}
			if by > most {
				caught++
			}
		}
	}
	t.Logf("%d of %d", caught, all)
	if caught < all/2 {
		t.Errorf("%d of %d statements are noticed", caught, all)
	}
}

// EXISTS by other comparisons than equalities is a join for tables on several servers as well, whose statements have a form of their own.
//
// needs: postgres
// covers: C1 E.4
func TestExistsIsAJoinOnSeveralServers(t *testing.T) {
	snapshot := gen.NewWorld(t, 555, gen.Wild, 4).Snapshot
	for _, sql := range []string{
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM events ee WHERE ee.unit = p.id AND ee.n4 < p.nn)",
		"SELECT p.n2 > 3, sum(p.odd / nullif(p.odd, 0)), avg(round(p.odd::numeric, 1)) FROM people p JOIN zones z USING (k_num) WHERE EXISTS " +
			"(SELECT * FROM events ee WHERE ee.unit = p.id AND (p.n2 IS NULL OR ee.n4 < p.n2)) AND p.free::float8 * p.free::float8 * p.coarse " +
			"< 2 GROUP BY 1",
	} {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		id := p.Fingerprint()
		for _, distributed := range []bool{false, true} {
			if distributed {
				if err := p.Distribute(); err != nil {
					t.Fatal(err, errors.Unwrap(err))
				}
			}
			if text := p.Parts[0].Statement.SQL; strings.Contains(text, "EXISTS (") || distributed && strings.Contains(text, "HAVING CASE") {
				t.Errorf("%s, distributed %v:\n%s", sql, distributed, text)
			} else if hiddenColumn.MatchString(text) == distributed {
				t.Errorf("%s, distributed %v, hides which columns are compared: %v\n%s", sql, distributed, distributed, text)
			}
		}
		if p.Fingerprint() != id {
			t.Error("the question is another one")
		}
	}
}

// IN over three columns that may be NULL, printed as joins, is what PostgreSQL's own IN is for every combination of NULL and values on
// both sides.
//
// needs: postgres
// covers: C1
func TestInOfNullsIsAJoin(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, `;DELETE FROM receipts; DELETE FROM visits;
		INSERT INTO visits SELECT row_number() OVER (), 1 + (row_number() OVER ()) % 5, NULLIF(a, 3), NULLIF(b, 3), NULLIF(c, 3)
		FROM generate_series(1, 3) a, generate_series(1, 3) b, generate_series(1, 3) c, generate_series(1, 2)`)
	for i, test := range []string{
		"(p.person_id, p.age, p.paid, p.place) NOT IN (SELECT person_id, age, paid, place FROM visits WHERE place = 2)",
		"(p.person_id, p.age, p.paid, p.place) NOT IN (SELECT person_id, age, paid, place FROM visits WHERE age = 1 AND paid IS NULL)",
		"((p.person_id, p.age, p.paid, p.place) IN (SELECT person_id, age, paid, place FROM visits WHERE place = 1 AND paid = 2)) IS NULL",
	} {
		if i%rewritetest.OneIn(3) > 0 {
			continue
		}
		p, err := pipeline.Rewrite("SELECT count(*) FROM visits p WHERE "+test, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Fatalf("%s: %s", test, parsetest.ShowFault(err))
		}
		s := p.Statements(p.Draw(rewritetest.FixedSampler(t)))[0]
		if strings.Contains(s.SQL, " IN (SELECT") {
			t.Errorf("%s is evaluated row by row\n%s", test, s.SQL)
		}
		var got, want string
		if err := conn.QueryRow(t.Context(), s.SQL, s.Args...).Scan(&got); err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("FROM visits", "FROM public.visits").Replace(test)
		if err := conn.QueryRow(t.Context(), "SELECT sum(least(n, 4))::text FROM (SELECT count(*) AS n FROM public.visits p WHERE "+plain+
			" GROUP BY person_id) u").
			Scan(&want); err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %s", test, got); got != want || want == "" {
			t.Errorf("%s: %s, PostgreSQL's own IN gives %s", test, got, want)
		}
	}
}
