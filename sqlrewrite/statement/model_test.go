package statement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
)

func TestModelOf(t *testing.T) {
	for text, want := range map[string]*Model{
		"SELECT linregr(hours, ARRAY[1, age, sex]) FROM people": {Function: "linregr", Column: "linregr", Target: "hours",
			Expressions: []string{"age", "sex"}, From: "people"},
		"select LogRegr ( CASE WHEN a[1] = 'FROM' THEN 1 ELSE 0 END,\n array [1, ln(1 + gain), coalesce(a, b) /* c, */ + 1] ) AS \"my fit\"\n" +
			"from public.people p -- all of them\n JOIN (SELECT id FROM x WHERE y) AS q USING (id) WHERE (age > 17 -- grown\n AND b) ; -- end": {
			Function: "logregr", Column: "my fit", Target: "CASE WHEN a[1] = 'FROM' THEN 1 ELSE 0 END",
			Expressions: []string{"ln(1 + gain)", "coalesce(a, b) /* c, */ + 1"},
			From:        "public.people p -- all of them\n JOIN (SELECT id FROM x WHERE y) AS q USING (id)", Where: "(age > 17 -- grown\n AND b)"},
		"SELECT kmeans(ARRAY[age, é, hours], 4) AS centres FROM people": {Function: "kmeans", Column: "centres",
			Expressions: []string{"age", "é", "hours"}, Centres: 4, From: "people"},
		`SELECT kmeans(ARRAY[(SELECT 1 FROM x WHERE y)], -1) "FROM" FROM people`: {Function: "kmeans", Column: "FROM",
			Expressions: []string{"(SELECT 1 FROM x WHERE y)"}, Centres: -1, From: "people"},
		// Other questions, which others answer or refuse.
		"SELECT count(*) AS kmeans FROM people":                     nil,
		"SELECT avg(linregr) FROM people":                           nil,
		"SELECT (linregr(y, ARRAY[1, x])).coef FROM people":         nil,
		"SELECT madlib.linregr(y, ARRAY[1, x]) FROM people":         nil,
		"SELECT linregr(y, ARRAY[1, x]) FROM":                       nil,
		"SELECT linregr(y, ARRAY[1, x]) FROM people; SELECT 1":      nil,
		"SELECT 1 UNION SELECT linregr(y, ARRAY[1, x]) FROM people": nil,
		"UPDATE people SET kmeans = 1":                              nil,
	} {
		got, err := ModelOf(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestModelOfRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT linregr(y, ARRAY[1, x]), count(*) FROM p":            "no other output",
		"SELECT sex, linregr(y, ARRAY[1, x]) FROM p GROUP BY sex":    "no other output",
		"SELECT linregr(y, ARRAY[1, x]) FROM p GROUP BY sex":         "GROUP BY: ask for each group by WHERE",
		"SELECT linregr(y, ARRAY[1, x])":                             "needs FROM",
		"SELECT linregr(y, ARRAY[1, x]) FROM p LIMIT 1":              "nothing but FROM and WHERE",
		"SELECT linregr(y, ARRAY[1, x]) FROM p HAVING true":          "nothing but FROM and WHERE",
		"SELECT DISTINCT linregr(y, ARRAY[1, x]) FROM p":             "nothing but FROM and WHERE",
		"WITH q AS (SELECT 1) SELECT linregr(y, ARRAY[1, x]) FROM p": "nothing but FROM and WHERE",
		"SELECT linregr(y, ARRAY[1, x]) FILTER (WHERE a) FROM p":     "nothing but FROM and WHERE",
		"SELECT linregr(y, ARRAY[1, x]) OVER () FROM p":              "nothing but FROM and WHERE",
		"SELECT linregr(DISTINCT y, ARRAY[1, x]) FROM p":             "nothing but FROM and WHERE",
		"SELECT linregr(y, VARIADIC ARRAY[1, x]) FROM p":             "nothing but FROM and WHERE",
		"SELECT linregr(*) FROM p":                                   "nothing but FROM and WHERE",
		"SELECT linregr(y) FROM p":                                   "has two arguments",
		"SELECT logregr('p', 'y', 'x') FROM p":                       "has two arguments",
		"SELECT (linregr(y, ARRAY[1, x])) FROM p":                    "the first word after SELECT",
		"(SELECT linregr(y, ARRAY[1, x]) FROM p)":                    "the first word after SELECT",
		"SELECT ALL linregr(y, ARRAY[1, x]) FROM p":                  "the first word after SELECT",
		"SELECT linregr(y, ARRAY[x]) FROM p":                         "begins with 1, for the intercept",
		"SELECT linregr(y, x) FROM p":                                "begins with 1, for the intercept",
		"SELECT linregr(y, ARRAY[]) FROM p":                          "begins with 1, for the intercept",
		"SELECT linregr(y, (ARRAY[1, x])) FROM p":                    "begins with 1, for the intercept",
		"SELECT linregr(y, ARRAY[1, x]::double precision[]) FROM p":  "begins with 1, for the intercept",
		"SELECT linregr(y, ARRAY[1]) FROM p":                         "something beside the 1",
		"SELECT kmeans(x, 4) FROM p":                                 "an ARRAY of columns",
		"SELECT kmeans(ARRAY[x], 4.5) FROM p":                        "a whole number",
		"SELECT kmeans(ARRAY[x], k) FROM p":                          "a whole number",
	} {
		m, err := ModelOf(text)
		if m != nil || fault.CodeOf(err) != fault.CodeFit || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", text, m, err, want)
		}
	}
}

// FuzzModelOf: the parts of a statement put together are that statement.
func FuzzModelOf(f *testing.F) {
	for _, text := range []string{"SELECT linregr(y, ARRAY[1, x]) FROM p",
		"SELECT logregr(a[1], ARRAY[1, (b), c /*,*/]) AS \"FROM\" FROM p -- ,\n WHERE x;",
		"SELECT kmeans(ARRAY[a, [b]], 3) FROM p JOIN q ON (SELECT a FROM b WHERE c)", "SELECT linregr(y, ARRAY[1, x]) FROM p GROUP BY g"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ModelOf(text)
		if m == nil {
			if err != nil && fault.CodeOf(err) != fault.CodeFit {
				t.Fatal(err)
			}
			return
		}
		columns := strings.Join(m.Expressions, "\n,")
		arguments := fmt.Sprintf("ARRAY[%s\n], %d", columns, m.Centres)
		if m.Function != KMeans {
			arguments = fmt.Sprintf("%s\n, ARRAY[1, %s\n]", m.Target, columns)
		}
		where := ""
		if m.Where != "" {
			where = "\nWHERE " + m.Where
		}
		column := `"` + strings.ReplaceAll(m.Column, `"`, `""`) + `"`
		again := fmt.Sprintf("SELECT %s(%s) AS %s FROM %s%s", m.Function, arguments, column, m.From, where)
		whole, err := parse.Tree(text, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
		if err != nil {
			t.Fatal(err)
		}
		whole.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Name = m.Column
		made, err := parse.Tree(again, parse.Limits{Bytes: 2 * MaxBytes, Tokens: 2 * maxTokens})
		if err != nil || len(made.Stmts) != 1 || !sameTree(whole.Stmts[0].Stmt, made.Stmts[0].Stmt) {
			t.Fatalf("%q is not %q: %v", again, text, err)
		}
	})
}
