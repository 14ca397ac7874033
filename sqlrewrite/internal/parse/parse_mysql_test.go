package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mysql "github.com/xwb1989/sqlparser"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/syntax"
)

// everythingMySQL is a query that visits every conversion of MySQL's dialect.
const everythingMySQL = `SELECT DISTINCT a AS x, t.b, COUNT(*), SUM(DISTINCT d), t.*, CASE a WHEN 1 THEN 'x' ELSE 'y' END, -c, a / 2,
	CAST(a AS DECIMAL(10, 2)), IF(a = 1, b, c), NULL, TRUE
	, SUBSTR(a, 1, 2), (SELECT 1) FROM s.t AS t LEFT JOIN (v) USING (k) JOIN w ON w.a = u.a JOIN (SELECT a FROM v) AS d ON d.a = u.a
	WHERE (a = 1 AND NOT b OR c IS NOT NULL) AND a IN (1, 2) AND a NOT BETWEEN 1 AND 2 AND a LIKE 'x%' AND a <=> b AND EXISTS (SELECT 1 FROM v) AND (a, b) NOT IN (SELECT a, b FROM v)
	GROUP BY a, 2 HAVING COUNT(*) > 10 ORDER BY 1 DESC, a LIMIT 2, 5`

// As TestNothingIsDropped, for the nodes of the other parser. Only comments may go, and the word before a charset when
// there is no charset.
func TestNothingIsDroppedFromMySQL(t *testing.T) {
	want, err := convertMySQL(t, everythingMySQL, func(any) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		var touched string
		got, err := convertMySQL(t, everythingMySQL, func(root any) { touched = setEmptyField(root, i, mysqlSamples) })
		if touched == "" {
			if i < 30 { // 36 when written: fewer mean that the walk misses nodes
				t.Errorf("only %d fields were set", i)
			}
			break
		}
		if err == nil && cmp.Equal(got, want) && touched != "Select.Comments" && touched != "ConvertType.Operator" {
			t.Errorf("%s: dropped silently", touched)
		}
	}
}

func mysqlSamples() []any {
	name := mysql.NewColIdent("something")
	return []any{
		mysql.BoolVal(true), name, mysql.NewTableIdent("something"), mysql.TableName{Name: mysql.NewTableIdent("something")},
		mysql.Columns{name}, mysql.Partitions{name}, mysql.Comments{[]byte("/* x */")}, mysql.NewIntVal([]byte("3")),
	}
}

func convertMySQL(t *testing.T, text string, change func(root any)) (query *syntax.Query, err error) {
	t.Helper()
	words, err := mySQLWords(text)
	if err != nil {
		t.Fatal(err)
	}
	statement, err := mysql.ParseStrictDDL(text)
	if err != nil {
		t.Fatal(err)
	}
	change(statement)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	c := &mySQLConverter{conversion: conversion{text: text}, words: words}
	query = c.statement(statement)
	if c.refusal != nil {
		return nil, c.refusal
	}
	return query, nil
}

// A46, A48: version comments, of which the tokenizer panics on some.
//
// covers: A46
func TestVersionComments(t *testing.T) {
	for _, comment := range []string{"/*!*/", "/*!", "/*!40101 FROM secrets*/", "/*!*", "/*!\x00*/", "/* /*!*/ */", "'/*!*/'"} {
		for _, text := range []string{comment, "SELECT " + comment + " 1", "SELECT 1 " + comment} {
			if _, err := Parse(text, DialectMySQL); fault.CodeOf(err) != fault.CodeUnsupported && fault.CodeOf(err) != fault.CodeSyntax {
				t.Errorf("%q: got %v", text, err)
			}
		}
	}
}

// A47: a literal's value in the tree is what MySQL reads between the quotes, or it is refused.
//
// covers: A47
func TestMySQLLiterals(t *testing.T) {
	parts := []string{`\\`, `\'`, `''`, `"`, "$$", "`", "\u2019", "\uFF07", "%27", " union select 1 -- ", "/*", "*/", "--", ";", "\n", "x", `\n`, "#", "||", "?", ":a"}
	decode := strings.NewReplacer(`\\`, `\`, `\'`, `'`, `''`, `'`, `\n`, "\n")
	for _, a := range parts {
		for _, b := range parts {
			query, err := Parse("SELECT count(*) FROM t WHERE a = '"+a+b+"' AND b = 1", DialectMySQL)
			if err != nil {
				t.Fatalf("%q: %v", a+b, err)
			}
			comparison := query.Where.(*syntax.Binary).L.(*syntax.Binary)
			want := decode.Replace(a) + decode.Replace(b)
			if got := comparison.R.(*syntax.Literal); got.Kind != syntax.StringLiteral || got.Text != want {
				t.Fatalf("%q became %q, want %q", a+b, got.Text, want)
			}
		}
	}
}

// covers: A49
func TestMySQLStackedStatements(t *testing.T) {
	for _, separator := range []string{";", "; ", ";\n", ";;", "; -- c\n", ";/* ' */", "# c\n;", "/*;*/;"} {
		for _, second := range []string{"DROP TABLE people", "SELECT 2", "COMMIT", "SET a = 1", "INSERT INTO t VALUES (1)"} {
			for _, text := range []string{"SELECT count(*) FROM people" + separator + second, second + separator + "SELECT count(*) FROM people"} {
				if _, err := Parse(text, DialectMySQL); fault.CodeOf(err) != fault.CodeUnsupported {
					t.Errorf("%q: got %v, want sql/unsupported", text, err)
				}
			}
		}
	}
}

func TestUnknownDialect(t *testing.T) {
	if _, err := Parse(parsetest.Harmless, "oracle"); fault.CodeOf(err) != fault.CodeUnsupported {
		t.Errorf("got %v, want sql/unsupported", err)
	}
}
