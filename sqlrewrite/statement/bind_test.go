package statement

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pg "github.com/pganalyze/pg_query_go/v6"
	"pgregory.net/rapid"
)

func TestBind(t *testing.T) {
	one := func(kind, text string) []Argument { return []Argument{{Type: kind, Text: text}} }
	for _, c := range []struct {
		query     string
		arguments []Argument
		want      string
	}{
		{"SELECT count(*) FROM t WHERE a > $1", one("int4", "5"), "SELECT count(*) FROM t WHERE a > 5"},
		{"SELECT count(*) FROM t WHERE a > $1", one("int8", " -5000000000 "), "SELECT count(*) FROM t WHERE a > -5000000000"},
		{"SELECT count(*) FROM t WHERE a - $1 > 0", one("int4", "-5"), "SELECT count(*) FROM t WHERE (a - -5) > 0"},
		{"SELECT count(*) FROM t WHERE a > $1", one("numeric", "+05"), "SELECT count(*) FROM t WHERE a > 5"},
		{"SELECT count(*) FROM t WHERE a > $1", one("numeric", "5.50"), "SELECT count(*) FROM t WHERE a > 5.50"},
		{"SELECT count(*) FROM t WHERE a > $1", one("float8", "-1.5e+300"), "SELECT count(*) FROM t WHERE a > -1.5e+300"},
		{"SELECT count(*) FROM t WHERE a", one("int4", "1"), "SELECT count(*) FROM t WHERE a"},
		{"SELECT count(*) FROM t WHERE a = $1", one("text", "it's"), "SELECT count(*) FROM t WHERE a = 'it''s'"},
		{"SELECT count(*) FROM t WHERE a = $1", one("text", `\'; DROP TABLE t; --`),
			`SELECT count(*) FROM t WHERE a = '\''; DROP TABLE t; --'`},
		{"SELECT count(*) FROM t WHERE a = $1", one("varchar", "$2"), "SELECT count(*) FROM t WHERE a = '$2'"},
		{"SELECT count(*) FROM t WHERE a = $1", one("bool", "on"), "SELECT count(*) FROM t WHERE a = true"},
		{"SELECT count(*) FROM t WHERE a = $1", []Argument{{Type: "int4", Null: true}}, "SELECT count(*) FROM t WHERE a = NULL"},
		{"SELECT count(*) FROM t WHERE a = $1", one("date", "2020-02-29"), "SELECT count(*) FROM t WHERE a = '2020-02-29'::date"},
		{"SELECT count(*) FROM t WHERE a = $1::date", one("date", "2020-02-29"), "SELECT count(*) FROM t WHERE a = '2020-02-29'::date"},
		{"SELECT count(*) FROM t WHERE a = $1", one("timestamptz", "2020-02-29 00:00:00+00"),
			"SELECT count(*) FROM t WHERE a = '2020-02-29 00:00:00+00'::timestamp with time zone"},
		{"SELECT count(*) FROM t WHERE a IN ($2, $1) LIMIT $1", []Argument{{Type: "int4", Text: "1"}, {Type: "int4", Text: "2"}},
			"SELECT count(*) FROM t WHERE a IN (2, 1) LIMIT 1"},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", one("_int4", "{1, -2,NULL}"), "SELECT count(*) FROM t WHERE a = ANY(ARRAY[1, -2, NULL])"},
		{"SELECT count(*) FROM t WHERE a = ANY($1::int[])", one("_int4", "{1}"), "SELECT count(*) FROM t WHERE a = ANY(ARRAY[1]::int[])"},
		{"SELECT count(*) FROM t WHERE a <> ALL($1)", one("_text", `{"it's, \"x\\",null,"null"}`),
			`SELECT count(*) FROM t WHERE a <> ALL(ARRAY['it''s, "x\', NULL, 'null'])`},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", one("_date", `{2020-02-29}`),
			"SELECT count(*) FROM t WHERE a = ANY(ARRAY['2020-02-29'::date])"},
		{"SELECT count(*) FROM t WHERE a = ANY($1::date[])", one("_date", `{2020-02-29}`),
			"SELECT count(*) FROM t WHERE a = ANY(ARRAY['2020-02-29']::date[])"},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", []Argument{{Type: "_int4", Null: true}}, "SELECT count(*) FROM t WHERE a = ANY(NULL)"},
	} {
		got, err := Bind(c.query, c.arguments)
		if err != nil || got != c.want {
			t.Errorf("%s %v: %q, %v; want %q", c.query, c.arguments, got, err, c.want)
		}
	}
	for _, c := range []struct {
		query, kind, text, state string
	}{
		{"SELECT count(*) FROM t WHERE a > $1", "int4", "5000000000", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "int2", "40000", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "int4", "1 OR true", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "numeric", "NaN", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "numeric", "1e99999", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "float8", "0x10", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $1", "bool", "maybe", stateBadText},
		{"SELECT count(*) FROM t WHERE a > $2", "int4", "1", stateNoParameter},
		{"SELECT count(*) FROM t WHERE a > $0", "int4", "1", stateNoParameter},
		{"SELEKT $1", "int4", "1", stateSyntax},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", "_int4", "{}", stateUnsupported},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", "_int4", "{{1,2},{3,4}}", stateBadText},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", "_int4", "{1,}", stateBadText},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", "_int4", "{1) OR (true}", stateBadText},
		{"SELECT count(*) FROM t WHERE a = ANY($1)", "_int4", "1", stateBadText},
	} {
		_, err := Bind(c.query, []Argument{{Type: c.kind, Text: c.text}})
		var refused *Refusal
		if !errors.As(err, &refused) || refused.SQLState != c.state || refused.Position != 0 {
			t.Errorf("%s %s %q: %v, want %s", c.query, c.kind, c.text, err, c.state)
		}
	}
}

// TestBoundArraysAreConstants: the elements of a bound array are those of the parameter, whatever they hold.
func TestBoundArraysAreConstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ -~é\n\t]{0,9}`), 1, 5).Draw(t, "texts")
		var quoted []string
		for _, text := range texts {
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
		}
		got, err := Bind("SELECT count(*) FROM t WHERE a = ANY($1) AND b < 3",
			[]Argument{{Type: "_text", Text: "{" + strings.Join(quoted, ",") + "}"}})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := pg.Parse(got)
		if err != nil || len(tree.Stmts) != 1 {
			t.Fatalf("%q: %v", got, err)
		}
		where := tree.Stmts[0].Stmt.GetSelectStmt().WhereClause.GetBoolExpr()
		var held []string
		for _, e := range where.Args[0].GetAExpr().Rexpr.GetAArrayExpr().GetElements() {
			held = append(held, e.GetAConst().GetSval().GetSval())
		}
		if !cmp.Equal(held, texts) {
			t.Fatalf("%q became %q in %q", texts, held, got)
		}
	})
}

// TestBoundTextsAreConstants: whatever a text parameter holds, the bound query is the query with one string constant, which is that text.
func TestBoundTextsAreConstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~é\n\t]{0,20}`).Draw(t, "text")
		got, err := Bind("SELECT count(*) FROM t WHERE a = $1 AND b < 3", []Argument{{Type: "text", Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := pg.Parse(got)
		if err != nil || len(tree.Stmts) != 1 {
			t.Fatalf("%q: %v", got, err)
		}
		where := tree.Stmts[0].Stmt.GetSelectStmt().WhereClause.GetBoolExpr()
		if held := where.Args[0].GetAExpr().Rexpr.GetAConst().GetSval().GetSval(); held != text {
			t.Fatalf("%q became %q in %q", text, held, got)
		}
	})
}

func TestParameterTypes(t *testing.T) {
	columns := map[string][]string{"age": {"integer"}, "big": {"bigint"}, "region": {"text"}, "mood": {"enum"}, "day": {"date"},
		"at": {"timestamp with time zone"}, "x": {"integer", "text"}, "f": {"double precision"}}
	for query, want := range map[string][]string{
		"SELECT 1 FROM t WHERE age > $1":                                       {"int4"},
		"SELECT 1 FROM t WHERE $2 < age AND big = $1":                          {"int8", "int4"},
		"SELECT 1 FROM t WHERE t.age BETWEEN $1 AND $2 LIMIT $3 OFFSET $4":     {"int4", "int4", "int8", "int8"},
		"SELECT 1 FROM t WHERE region IN ($1, $2) OR mood = $3":                {"text", "text", "text"},
		"SELECT 1 FROM t WHERE region LIKE $1":                                 {"text"},
		"SELECT 1 FROM t WHERE day >= $1 AND at < $2 AND f > $3":               {"date", "timestamptz", "float8"},
		"SELECT 1 FROM t WHERE x = $1":                                         nil,
		"SELECT 1 FROM t WHERE x = $1::numeric AND a = CAST($2 AS date)":       {"numeric", "date"},
		"SELECT 1 FROM t WHERE age + $1 > 2 * $2":                              {"int4", "int4"},
		"SELECT 1 FROM t GROUP BY region HAVING count(*) > $1 AND sum(a) > $2": {"int8", "numeric"},
		"SELECT 1 FROM t WHERE date_trunc('month', at) = $1":                   {"timestamptz"},
		"SELECT 1 FROM t WHERE date_bin('7 days', at, '2024-01-07') = $1":      {"timestamptz"},
		"SELECT 1 FROM t WHERE age = ANY($1) AND region <> ALL ($2)":           {"_int4", "_text"},
		"SELECT 1 FROM t WHERE x = ANY($1::bigint[]) AND x = ANY($2)":          {"_int8"},
		"SELECT 1 FROM t WHERE x = ANY($1::int[][])":                           nil,
	} {
		got, err := ParameterTypes(query, columns)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", query, got, err, want)
		}
	}
}

// FuzzBind: a query and a text give a query with one string constant more and one parameter less, or a refusal.
func FuzzBind(f *testing.F) {
	f.Add("SELECT count(*) FROM t WHERE a > $1", "numeric", "5")
	f.Add("SELECT $1::interval, E'a\\n' || $1", "text", "\\")
	f.Fuzz(func(t *testing.T, query, kind, text string) {
		got, err := Bind(query, []Argument{{Type: kind, Text: text}})
		if err != nil {
			if refused := new(Refusal); !errors.As(err, &refused) || refused.SQLState == stateInternal {
				t.Fatalf("%q %q: %v", query, text, err)
			}
			return
		}
		if again, err := Bind(got, nil); err != nil || again != got {
			t.Fatalf("%q is printed as %q, %v", got, again, err)
		}
	})
}
