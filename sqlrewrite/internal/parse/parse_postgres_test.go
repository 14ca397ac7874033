package parse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/syntax"
)

// testdata/parse lists what is accepted, with the tree; testdata/unsupported what is refused, as the user sees it. The
// files that begin with mysql_ do the same for MySQL's dialect.
func TestParse(t *testing.T) {
	for _, file := range []struct {
		path    string
		dialect Dialect
		refused bool
	}{
		{"testdata/parse", DialectPostgres, false}, {"testdata/unsupported", DialectPostgres, true},
		{"testdata/mysql_parse", DialectMySQL, false}, {"testdata/mysql_unsupported", DialectMySQL, true},
	} {
		datadriven.RunTest(t, file.path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "parse" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			query, err := Parse(d.Input, file.dialect)
			if file.refused != (err != nil) {
				d.Fatalf(t, "wrong file: err = %v", err)
			}
			if err != nil {
				return parsetest.ShowFault(err)
			}
			return showQuery(query)
		})
	}
}

// Nothing that the parser reports may be dropped silently: whatever field of whatever node holds something that it did
// not hold, the query is refused or our tree differs. The test sets every empty field of every node, one at a time.
func TestNothingIsDropped(t *testing.T) {
	for _, text := range parsetest.Everything {
		want, err := convert(t, text, func(any) {})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			var touched string
			got, err := convert(t, text, func(root any) { touched = setEmptyField(root, i, postgresSamples) })
			if touched == "" {
				if i < 80 { // 84 and 113 when written: fewer mean that the walk misses nodes
					t.Errorf("only %d fields were set", i)
				}
				break
			}
			if err == nil && cmp.Equal(got, want) {
				t.Errorf("%s: dropped silently", touched)
			}
		}
	}
}

// postgresSamples are values for fields that a string, a number or an empty struct cannot fill.
func postgresSamples() []any {
	boolean := &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: true}}}
	return []any{
		&pg.Node{Node: &pg.Node_AConst{AConst: boolean}}, &pg.Alias{Aliasname: "something"},
		[]*pg.Node{{Node: &pg.Node_String_{String_: &pg.String{Sval: "something"}}}},
	}
}

func convert(t *testing.T, text string, change func(root any)) (query *syntax.Query, err error) {
	t.Helper()
	tree, err := pg.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	change(tree.Stmts[0].Stmt)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	c := &converter{conversion: conversion{text: text}}
	query = c.statement(tree.Stmts)
	if c.refusal != nil {
		return nil, c.refusal
	}
	return query, nil
}

// A47, A48, A50: a literal's value in the tree is what the analyst meant between the quotes, byte for byte, whatever it
// looks like to another database's eyes; and it never becomes more than one literal.
//
// covers: A47
func TestLiteralsKeepTheirValue(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	parts := []string{`\`, `'`, `"`, "$", "$$", "$a$", "`", "\u2019", "\uFF07", "%27", `\'`, ` union select max(a) from t -- `, "/*", "*/",
		"--", ";", "\n", "\u200b", "x", "\\x27", "U&", "E", "#", "||", "/*!", "\u202e", "{}", "?", ":a", "$1"}
	for i, a := range parts {
		for j, b := range parts {
			for _, c := range parts {
				value := a + b + c
				query, err := Parse("SELECT count(*) FROM t WHERE a = '"+strings.ReplaceAll(value, "'", "''")+"' AND b = 1", DialectPostgres)
				if err != nil {
					t.Fatalf("%d,%d %q: %v", i, j, value, err)
				}
				comparison := query.Where.(*syntax.Binary).L.(*syntax.Binary)
				if got := comparison.R.(*syntax.Literal); got.Kind != syntax.StringLiteral || got.Text != value {
					t.Fatalf("%q became %+v", value, got)
				}
			}
		}
	}
}

// A49: 100 and more ways to say two things at once.
//
// covers: A49
func TestStackedStatements(t *testing.T) {
	second := []string{"DROP TABLE people", "SELECT 2", "COMMIT", "SET ROLE x", "COPY people TO STDOUT", "DO $$ BEGIN END $$",
		"INSERT INTO t VALUES (1)",
		"CREATE TABLE x (a int)", "TRUNCATE people", "VACUUM", "BEGIN"}
	for _, separator := range []string{";", "; ", ";\n", ";;", " ; -- c\n", ";/* ' */", ";\t;", ";\r\n", "--\n;", "/*;*/;"} {
		for _, s := range second {
			for _, text := range []string{"SELECT count(*) FROM people" + separator + s, s + separator + "SELECT count(*) FROM people"} {
				if _, err := Parse(text, DialectPostgres); fault.CodeOf(err) != fault.CodeUnsupported {
					t.Errorf("%q: got %v, want sql/unsupported", text, err)
				}
			}
		}
	}
}

// A62 and A40: statements and clauses that write, lock or remember.
//
// covers: A62
func TestOnlyPlainSelectPasses(t *testing.T) {
	for _, text := range []string{
		"WITH x AS (DELETE FROM people RETURNING *) SELECT count(*) FROM x",
		"WITH x AS (INSERT INTO people VALUES (1) RETURNING 1) SELECT 1 FROM x",
		"WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT count(*) FROM r", "SELECT count(*) INTO t FROM people",
		"SELECT count(*) INTO TEMP t FROM people", "CREATE TABLE t AS SELECT 1", "SELECT 1 FROM people FOR NO KEY UPDATE",
		"SELECT 1 FROM people FOR SHARE NOWAIT",
		"SELECT 1 FROM people FOR KEY SHARE SKIP LOCKED",
		"VALUES (1)", "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE ALL", "DECLARE c CURSOR FOR SELECT 1", "FETCH c", "EXPLAIN SELECT 1",
		"EXPLAIN ANALYZE SELECT 1", "SHOW ALL", "SET x = 1", "RESET ALL", "DISCARD ALL", "LISTEN a", "NOTIFY a", "LOCK people", "CALL f()",
		"COPY people TO STDOUT",
		"COPY (SELECT 1) TO PROGRAM 'sh'", "LOAD 'x'", "CHECKPOINT", "REINDEX TABLE people", "GRANT ALL ON people TO public",
		"ALTER ROLE a SUPERUSER",
		"DELETE FROM people", "UPDATE people SET a = 1", "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE",
		"SELECT * FROM pg_sleep(1)",
		"SELECT 1 FROM ROWS FROM (f()) x", "SELECT 1 FROM XMLTABLE('/' PASSING a COLUMNS b int) x",
		"SELECT 1 FROM JSON_TABLE(a, '$' COLUMNS (b int)) x", "SELECT ctid FROM people", "SELECT count(*) FROM people p WHERE p.xmin IS NULL",
		"SELECT count(*) FROM people WHERE people.*::text LIKE 'x'", "SELECT count(people.*) FROM people", "SELECT (people).age FROM people",
	} {
		if _, err := Parse(text, DialectPostgres); fault.CodeOf(err) != fault.CodeUnsupported {
			t.Errorf("%s: got %v, want sql/unsupported", text, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	const typical = `SELECT marital_status, count(*) AS n, avg(age) FROM people
		WHERE sex = 'Female' AND hours_per_week BETWEEN 20 AND 60 AND native_country IN ('Peru', 'Cuba')
		GROUP BY marital_status HAVING count(*) > 100 ORDER BY n DESC LIMIT 10`
	long := "SELECT count(*) FROM people WHERE age IN (1" + strings.Repeat(", 1000000", 450) + ")"
	for name, text := range map[string]string{"typical": typical, "count": "SELECT count(*) FROM people", "scanned": long} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, DialectPostgres); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/pg_query", func(b *testing.B) {
			for b.Loop() {
				if _, err := pg.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/scan", func(b *testing.B) {
			for b.Loop() {
				if _, err := pg.Scan(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// seeds are texts from every corner, for the fuzzers.
func seeds() []string {
	texts := append([]string{"", ";", "SELECT", parsetest.Harmless, "SELECT $1", "SELECT E'\\x41'", "SELECT U&'\\0041'", "SELECT N'a'",
		"SELECT B'1'", "select 1e999999999",
		"SELECT 'é' AS ü FROM \"Ä\"", "SELECT a.b.c.d", "TABLE people", "SELECT -(-1)", "SELECT - - 1.5::int", "SELECT 1 LIMIT ALL",
		"SELECT x.* FROM people x", "SELECT ''''", "/*/**/*/SELECT 1--", "SELECT 1 FETCH FIRST 3 ROWS ONLY",
		"SELECT a FROM b ORDER BY c USING <"}, parsetest.Everything...)
	for _, shape := range parsetest.Bombs {
		texts = append(texts, shape(3))
	}
	return texts
}

func FuzzParse(f *testing.F)      { fuzzParse(f, DialectPostgres) }
func FuzzParseMySQL(f *testing.F) { fuzzParse(f, DialectMySQL) }

func fuzzParse(f *testing.F, dialect Dialect) {
	for _, text := range seeds() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := Parse(text, dialect)
		var refused *fault.Error
		switch {
		case err == nil:
			showQuery(query) // every node is known to the printer, and every list is whole
		case !errors.As(err, &refused) || refused.Code == fault.CodeInternal:
			t.Fatalf("%v: %v", err, errors.Unwrap(err))
		case refused.Pos.Line > 1+strings.Count(text, "\n"):
			t.Fatalf("position %v lies outside the text", refused.Pos)
		}
		if took, _ := parseTime(text, dialect); took > parsetest.Longest {
			t.Fatalf("took %v", took)
		}
	})
}
