package gen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// aroundPosts put SELECTs around a release block. They look at group keys and counts only: of the other values some are one of several
// right answers, and a sum over no rows is 0 here and NULL in PostgreSQL. /*post*/ tells the oracle that rows meet one another.
func aroundPosts() []postProduction {
	around := func(name string, forms ...string) postProduction {
		return postProduction{"post/" + name, func(w *Writer, q block) string {
			n := q.count()
			if n == "" {
				return q.with + q.sql
			}
			form := w.Pick(forms...)
			if q.hides() && aggregateForms.MatchString(form) {
				return q.with + q.sql
			}
			first := q.aliases[0]
			if len(q.keys) == 0 {
				first = n
			}
			before := q.with
			if strings.HasPrefix(form, "WITH ") && before != "" {
				before = strings.TrimPrefix(strings.TrimSpace(before), "WITH ") + ", "
			}
			// %[1]s: the block; %[2]s: a count; %[3]s: a key, or the count without keys; %[4]s: what the block's own WITH defines
			return "/*post*/" + fmt.Sprintf(form, q.sql, n, first, before)
		}}
	}
	return []postProduction{
		around("subquery", "%[4]sSELECT * FROM (%[1]s) t", "%[4]sSELECT t.%[2]s + 1, %[3]s FROM (%[1]s) AS t WHERE t.%[2]s > 1 OR %[3]s IS NULL"),
		around("aggregate", "%[4]sSELECT count(*), min(%[2]s), max(t.%[2]s), sum(%[2]s), avg(%[2]s) FROM (%[1]s) t",
			"%[4]sSELECT t.%[3]s, count(*) AS n, count(DISTINCT %[2]s) FROM (%[1]s) t GROUP BY t.%[3]s HAVING count(*) > 0 ORDER BY n, 1",
			"%[4]sSELECT %[2]s %% 2 AS odd, stddev_pop(%[2]s), bool_or(%[2]s > 3) FROM (%[1]s) t GROUP BY odd"),
		around("window", "%[4]sSELECT %[3]s, %[2]s, rank() OVER (ORDER BY %[2]s DESC), sum(%[2]s) OVER () FROM (%[1]s) t",
			"%[4]sSELECT %[2]s, dense_rank() OVER w, ntile(3) OVER (ORDER BY %[2]s) > 0 FROM (%[1]s) t WINDOW w AS (PARTITION BY %[2]s %% 2 ORDER "+
				"BY %[2]s)",
			"%[4]sSELECT %[2]s, lag(%[2]s, 1, 0) OVER (ORDER BY %[2]s), count(*) OVER (ORDER BY %[2]s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) "+
				"FROM (%[1]s) t",
			"%[4]sSELECT percent_rank() OVER (ORDER BY %[2]s), cume_dist() OVER (ORDER BY %[2]s), max(%[2]s) OVER (ORDER BY %[2]s ROWS UNBOUNDED "+
				"PRECEDING) FROM (%[1]s) t"),
		around("used twice", "WITH %[4]sc AS (%[1]s) SELECT a.%[2]s - b.%[2]s FROM c a JOIN c b ON a.%[3]s IS NOT DISTINCT FROM b.%[3]s",
			"WITH %[4]sc AS (%[1]s) SELECT a.%[2]s, b.%[2]s FROM c AS a LEFT JOIN c AS b ON a.%[2]s < b.%[2]s",
			"WITH %[4]sc AS (%[1]s), d AS (SELECT %[2]s AS n FROM c WHERE %[2]s > 0) SELECT x.n + y.n FROM d x, d y"),
		around("set operation", "WITH %[4]sc AS (%[1]s) SELECT %[2]s FROM c UNION ALL SELECT sum(%[2]s) FROM c ORDER BY 1",
			"WITH %[4]sc AS (%[1]s) SELECT %[3]s FROM c EXCEPT SELECT %[3]s FROM c WHERE %[2]s > 2",
			"WITH %[4]sc AS (%[1]s) SELECT %[2]s AS n FROM c INTERSECT SELECT weight FROM zones ORDER BY n DESC"),
		around("distinct", "%[4]sSELECT DISTINCT %[2]s FROM (%[1]s) t",
			"%[4]sSELECT DISTINCT %[2]s %% 2 AS odd, %[3]s IS NULL FROM (%[1]s) t ORDER BY odd DESC",
			"%[4]sSELECT DISTINCT ON (%[2]s) %[2]s FROM (%[1]s) t ORDER BY %[2]s DESC, %[3]s"),
		around("public join", "%[4]sSELECT t.%[2]s, z.zone FROM (%[1]s) t LEFT JOIN zones z ON z.k_num = t.%[2]s",
			"%[4]sSELECT tag, %[2]s FROM (%[1]s) t JOIN tags ON k_num = %[2]s WHERE tag <> 'blue'",
			"%[4]sSELECT z.zone, sum(t.%[2]s) FROM (%[1]s) t CROSS JOIN zones z GROUP BY z.zone"),
		around("subquery in expression", "WITH %[4]sc AS (%[1]s) SELECT %[2]s, (SELECT max(%[2]s) FROM c) FROM c",
			"WITH %[4]sc AS (%[1]s) SELECT %[2]s FROM c WHERE %[2]s IN (SELECT k_num FROM tags) OR NOT EXISTS (SELECT 1 FROM zones WHERE weight > "+
				"%[2]s)",
			"WITH %[4]sc AS (%[1]s) SELECT %[3]s FROM c x WHERE %[2]s >= (SELECT avg(y.%[2]s) FROM c y WHERE y.%[2]s <= x.%[2]s)"),
		around("functions", "%[4]sSELECT sqrt(abs(%[2]s)), round(%[2]s / 7.0, 2), width_bucket(%[2]s, 0, 10, 5), CASE WHEN %[2]s > 2 THEN "+
			"'many' END, upper(%[2]s::text) || 'x' FROM (%[1]s) t",
			"%[4]sSELECT greatest(%[2]s, 2), nullif(%[2]s, 1), coalesce(nullif(%[2]s, 0), -1), %[2]s::float8 / 3, length(%[2]s::text) FROM "+
				"(%[1]s) t"),
		{"post/window in the block", func(w *Writer, q block) string {
			if q.totals { // over groups that are released one by one there is none
				return q.with + q.sql
			}
			over := w.Pick("rank() OVER (ORDER BY count(*))", "sum(count(*)) OVER ()", "count(*) - max(count(*)) OVER ()")
			return "/*post*/" + q.with + "SELECT " + over + " AS w, " + strings.TrimPrefix(q.sql, "SELECT ")
		}},
	}
}

// count is the alias of a count; "" for none.
func (q block) count() string {
	for i, call := range q.calls {
		if strings.HasPrefix(call, "count(") {
			return q.aliases[len(q.keys)+i]
		}
	}
	return ""
}

// hides reports whether groups can be left out, which no aggregate around them is taken over.
func (q block) hides() bool {
	return slices.ContainsFunc(q.keys, undeclared)
}

// undeclared reports whether a key may have other values than the policy names.
func undeclared(key string) bool {
	return slices.ContainsFunc([]string{"secret", "brand", "note", "code"}, func(name string) bool { return strings.Contains(key, name) })
}

var aggregateForms = regexp.MustCompile(`\b(count|min|max|sum|avg|stddev_pop|bool_or)\([^()]*\)( FROM|,|$| AS)|GROUP BY`)

// postMutants put under the noise what belongs above it.
func postMutants() []mutant {
	grouped := `(?s)\A(SELECT .*\nGROUP BY [^\n]*)\z`
	return []mutant{
		{"HAVING before the noise", grouped, "$1\nHAVING pg_catalog.count(*) > 2"},
		{"LIMIT inside", `(?s)\A(SELECT .*)\z`, "$1\nLIMIT 1"},
		{"OFFSET inside", grouped, "$1\nOFFSET 1"},
		{"the largest groups by exact counts", grouped, "$1\nORDER BY pg_catalog.count(*) DESC LIMIT 2"},
		{"a total over all groups inside", `(?s)\A(SELECT .*?)pg_catalog\.count\(\*\)::pg_catalog\.text(.*\nGROUP BY [^\n]*)\z`,
			"${1}(pg_catalog.sum(pg_catalog.count(*)) OVER ())::pg_catalog.text$2"},
		{"a rank among groups inside", `(?s)\A(SELECT .*?)pg_catalog\.count\(\*\)::pg_catalog\.text(.*\nGROUP BY [^\n]*)\z`,
			"${1}(1000 * pg_catalog.rank() OVER (ORDER BY pg_catalog.count(*)))::pg_catalog.text$2"},
		{"a scalar subquery in the filter", `\nWHERE `, "\nWHERE (SELECT pg_catalog.count(*) FROM public.people) % 2 = 0 AND "},
		{"LIMIT in a subquery", `FROM ONLY "public"\."(\w+)"\n`, "FROM (SELECT * FROM public.$1 ORDER BY pg_catalog.random() LIMIT 5) AS few\n"},
	}
}
