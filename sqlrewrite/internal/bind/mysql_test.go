package bind_test

import (
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// One question in both dialects is one plan: what is sent, what it claims and what it costs. An output is named by its text in MySQL.
func TestMySQLBindsAsPostgreSQL(t *testing.T) {
	snapshot := rewritetest.PostSnapshot(t)
	for mysqlText, text := range map[string]string{
		"SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t": "SELECT avg(n) FROM (SELECT person_id, " +
			"count(*) AS n FROM visits GROUP BY person_id) t",
		"SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)": "SELECT count(*) FROM people WHERE person_id NOT " +
			"IN (SELECT person_id FROM visits)",
		"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.ward = 2)": `SELECT count(*) FROM people p
			WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.ward = 2)`,
		"SELECT COUNT(*) FROM (SELECT person_id FROM visits UNION ALL SELECT person_id FROM visits) AS t": "SELECT count(*) FROM (SELECT " +
			"person_id FROM visits UNION ALL SELECT person_id FROM visits) t",
		"SELECT COUNT(*) FROM people JOIN visits USING (person_id)": "SELECT count(*) FROM people JOIN visits " +
			"USING (person_id)",
		"SELECT COUNT(*) FROM shops s RIGHT JOIN visits v ON v.ward = s.shop_id": "SELECT count(*) FROM shops s RIGHT JOIN " +
			"visits v ON v.ward = s.shop_id",
		"SELECT COUNT(*) FROM people WHERE LEFT(country, 1) = 'P' AND SUBSTR(country, 2, 1) = 'e'": `SELECT count(*) FROM people WHERE "left"(country, 1) = 'P' AND substring(country, 2, 1) = 'e'`,
	} {
		options := rewritetest.Sharp()
		name, _, _ := strings.Cut(strings.TrimPrefix(mysqlText, "SELECT "), " FROM")
		want, err := pipeline.Rewrite(strings.Replace(text, " FROM", ` AS "`+name+`" FROM`, 1), snapshot, options)
		if err != nil {
			t.Errorf("%s\n%s", text, parsetest.ShowFault(err))
			continue
		}
		options.Dialect = parse.DialectMySQL
		got, err := pipeline.Rewrite(mysqlText, snapshot, options)
		if err != nil {
			t.Errorf("%s\n%s", mysqlText, parsetest.ShowFault(err))
			continue
		}
		if got.Fingerprint() != want.Fingerprint() {
			t.Errorf("%s\nsends %s", mysqlText, got.Parts[0].Statement.SQL)
		}
	}
	for text, code := range map[string]fault.Code{
		"SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)":          "",
		"SELECT COUNT(*) FROM people WHERE age > (SELECT STDDEV(age) FROM people)":       fault.CodeUnsupported,
		"SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 5) AS t":                     fault.CodeUnsupported,
		"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v)":            fault.CodeUnitJoin,
		"SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age":                   fault.CodeUnitJoin,
		"SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t": "",
	} {
		options := rewritetest.Sharp()
		options.Dialect = parse.DialectMySQL
		if _, err := pipeline.Rewrite(text, snapshot, options); fault.CodeOf(err) != code {
			t.Errorf("%s: got %v, want %s", text, err, code)
		}
	}
}

// Outputs have the names that MySQL gives them: aliases, columns, and the text of what else there is.
func TestMySQLNamesOutputs(t *testing.T) {
	options := rewritetest.Sharp()
	options.Dialect = parse.DialectMySQL
	for text, want := range map[string]string{
		"SELECT YEAR(born), COUNT(*) , AVG( age ) AS mean, 1 + MAX(age) FROM people GROUP BY YEAR(born)": "YEAR(born)|COUNT(*)|mean|1 + MAX(age)",
		"SELECT DISTINCT sex FROM people": "sex",
		"select p.sex, coalesce(sum(p.age), 0) from people p group by p.sex order by 2 limit 1": "sex|coalesce(sum(p.age), 0)",
	} {
		p, err := pipeline.Rewrite(text, rewritetest.PostSnapshot(t), options)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var names []string
		for _, c := range answer.Columns(p) {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, "|"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
