package suggest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// textPeople has columns of each type that are written as text or compared with it.
func textPeople(t *testing.T) *catalog.Snapshot {
	t.Helper()
	return rewritetest.ParseSnapshot(t, `people
  id    integer not null unique
  name  text
  mail  text
  code  varchar(8)
  tag   char(3)
  kind  text
  age   integer not null
  cost  numeric(10,2)
  f     double precision
  raw   real
  pay   numeric
  ok    boolean
  born  date
  at    timestamptz
  u     uuid
`, `version: 1
dataset: town
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      name: {keys: private}
      mail: {}
      code: {keys: private}
      tag:  {keys: private}
      kind: {domain: [red, green]}
      age:  {bounds: [0, 100]}
      cost: {bounds: [0, 1000]}
      f:    {bounds: [0, 1]}
      raw:  {}
      pay:  {}
      ok:   {}
      born: {bounds: [2020-01-01, 2020-01-31]}
      at:   {bounds: [2020-01-01, 2020-01-07]}
      u:    {keys: private}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
}

// expression has the parts of a question about texts. In the form X stands for a column or a computed text, and in the question $ for the
// form.
type expression struct{ question, form, x string }

func (e expression) sql() string {
	return strings.ReplaceAll(e.question, "$", strings.ReplaceAll(e.form, "X", e.x))
}

// arguments are those of the call that the form is.
func (e expression) arguments() []string {
	_, list, _ := strings.Cut(strings.TrimSuffix(e.form, ")"), "(")
	return strings.Split(list, ", ")
}

// as is the expression with another form.
func (e expression) as(form string) []expression {
	e.form = form
	return []expression{e}
}

// about is the expression about another value of the same column.
func (e expression) about(x string) []expression {
	e.x = x
	return []expression{e}
}

// asking is another question about the value.
func (e expression) asking(question string) []expression { return []expression{{question, "X", e.x}} }

var namedForm = regexp.MustCompile(`(?:^write |, or )(.+?) for \w+\(([abc, ]*)\)`)

// hintedTexts has what hints say of texts, with how it is carried out: one of the expressions has to be answered.
var hintedTexts = []struct {
	hint string
	ways func(e expression, hint string) []expression
}{
	{" for ", func(e expression, hint string) []expression {
		for _, named := range namedForm.FindAllStringSubmatch(hint, -1) {
			names, values := strings.Split(named[2], ", "), e.arguments()
			if len(names) != len(values) {
				continue
			}
			form := regexp.MustCompile(`\b[abc]\b`).ReplaceAllStringFunc(named[1], func(name string) string {
				return values[slices.Index(names, name)]
			})
			return e.as(form)
		}
		return nil
	}},
	{"write x ~ 'pattern'", func(e expression, _ string) []expression { return e.as("X ~ 'a'") }},
	{"write x LIKE '%part%'", func(e expression, _ string) []expression { return e.as("X LIKE '%a%'") }},
	{"write the pattern as 'a%'", func(e expression, _ string) []expression { return e.as("X LIKE 'a%'") }},
	{"write one comparison for each value, with OR between them for ANY, and AND for ALL", func(e expression, _ string) []expression {
		return e.as("X LIKE 'a%' OR X LIKE 'b%'")
	}},
	{"write x IN (1, 2, 3)", func(e expression, _ string) []expression { return e.as("X IN ('a', 'b')") }},
	{"write || between texts", func(e expression, _ string) []expression { return e.as(strings.ReplaceAll(e.form, "+", "||")) }},
	{"write a || '-' || b, which is NULL where one of them is", func(e expression, _ string) []expression {
		return e.as(e.arguments()[1] + " || '-' || " + e.arguments()[2])
	}},
	{"write to_char(x, 'YYYY-MM') of a time, and 'a' || x of a text", func(e expression, _ string) []expression {
		return append(e.as("to_char(X, 'YYYY-MM')"), e.as("'a' || X")...)
	}},
	{"write x::integer::text", func(e expression, _ string) []expression { return e.about(e.x + "::integer::text") }},
	{"write to_char(x, 'YYYY-MM-DD HH24:MI:SS')", func(e expression, _ string) []expression {
		return e.about("to_char(" + e.x + ", 'YYYY-MM-DD HH24:MI:SS')")
	}},
	{"numbers are cast to text: x::text", func(e expression, _ string) []expression { return e.as("X::text") }},
	{"write DATE '2024-01-31', or x::date of a time", func(e expression, _ string) []expression {
		if e.x == "at" || e.x == "born" {
			return e.as("X::date")
		}
		return e.as("DATE '2024-01-31'")
	}},
	{"'YYYY-MM'", func(e expression, _ string) []expression { return e.as("to_char(X, 'YYYY-MM')") }},
	{"cast to numeric, bigint, integer, double precision or text", func(e expression, _ string) []expression { return e.as("X::text") }},
	{"a replacement has at most 40 bytes and no \\", func(e expression, _ string) []expression {
		return e.as("regexp_replace(X, '(a)', 'b')")
	}},
	{"write 'g' to replace all matches", func(e expression, _ string) []expression { return e.as("regexp_replace(X, 'a', 'b', 'gi')") }},
	{"cast one of them", func(e expression, _ string) []expression {
		of := strings.Fields(e.form)
		return append(e.as(of[0]+"::text "+of[1]+" "+of[2]), e.as(of[0]+" "+of[1]+" "+of[2]+"::text")...)
	}},
	{"texts are compared as the column is declared", func(e expression, _ string) []expression {
		return e.as(strings.ReplaceAll(e.form, ` COLLATE "C"`, ""))
	}},
	{"group by its whole numbers: ", func(_ expression, hint string) []expression {
		_, value, _ := strings.Cut(hint, ": ")
		return []expression{{"SELECT $, count(*) FROM people GROUP BY 1", "X", value}}
	}},
	{"compare it with something", func(e expression, _ string) []expression { return e.as("(" + e.form + ")::text = 'a'") }},
	{"write mode() WITHIN GROUP (ORDER BY x)", func(e expression, _ string) []expression {
		return e.as("mode() WITHIN GROUP (ORDER BY X)")
	}},
	{"group by it, and take the first group by count", func(e expression, _ string) []expression {
		return e.asking("SELECT $, count(*) FROM people GROUP BY $ ORDER BY 2 DESC LIMIT 1")
	}},
	{"group by the column and count", func(e expression, _ string) []expression {
		return e.asking("SELECT $, count(*) FROM people GROUP BY $")
	}},
	{"use count(*) FILTER (WHERE NOT x) = 0", func(e expression, _ string) []expression {
		return e.asking("SELECT count(*) FILTER (WHERE NOT ($)) = 0 FROM people")
	}},
	{"add it to GROUP BY", func(e expression, _ string) []expression {
		return e.asking("SELECT $, count(*) FROM people GROUP BY $")
	}},
}

// helps carries out the hint of a refusal of a question about texts, and of what is refused then.
func (e expression) helps(on *catalog.Snapshot, refusal *fault.Error, steps int) (helped, carried bool) {
	for _, h := range hintedTexts {
		if !strings.Contains(refusal.Hint, h.hint) || h.hint == " for " && !namedForm.MatchString(refusal.Hint) {
			continue
		}
		for _, next := range h.ways(e, refusal.Hint) {
			left := asked{next.sql(), on, rewritetest.Sharp()}.refusal()
			if left == nil {
				return true, true
			}
			if steps > 0 {
				if more, _ := next.helps(on, left, steps-1); more {
					return true, true
				}
			}
		}
		return false, true
	}
	return asked{e.sql(), on, rewritetest.Sharp()}.helps(refusal, 1)
}

// TestHintsOfTextsHelp asks questions with each function, operator and cast of texts, of values of each type, and carries out what their
// refusals say is to be written.
func TestHintsOfTextsHelp(t *testing.T) {
	on := textPeople(t)
	texts := []string{"name", "mail", "code", "tag", "kind", "upper(name)", "name || mail"}
	others := []string{"age", "cost", "f", "raw", "pay", "ok", "born", "u"}
	all := append(slices.Concat(texts, others), "at")
	questions := []string{"SELECT count(*) FILTER (WHERE ($) IS NOT NULL) FROM people", "SELECT $, count(*) FROM people GROUP BY 1"}
	seen, carriedOut := make(map[string]bool), 0
	for _, kind := range []struct{ questions, values, forms []string }{
		{questions, texts, []string{
			"X LIKE name", "X ILIKE mail", "X LIKE ANY (ARRAY['a%', 'b%'])", "X NOT LIKE ALL (ARRAY['a%'])", "X = ANY (ARRAY[name])",
			`X COLLATE "C" = 'a'`, "X + 'a'", "X + age", "regexp_replace(X, '(a)', '\\1')", "regexp_replace(X, 'a', 'b', 'x')",
			"regexp_like(X, 'a')", "regexp_contains(X, 'a')", "regexp_count(X, 'a')", "contains(X, 'a')", "instr(X, 'a')", "charindex('a', X)",
			"locate('a', X)", "mid(X, 2)", "mid(X, 2, 3)", "len(X)", "ucase(X)", "lcase(X)", "octet_length(X)", "nvl(X, 'a')", "ifnull(X, 'a')",
			"isnull(X, 'a')", "isnull(X)", "nvl2(X, 'a', 'b')", "iff(X = 'a', 'b', 'c')", "concat_ws('-', X, name)", "format('%s', X)",
			"to_date(X, 'YYYY')", "to_number(X, '99')", "X::bytea", "X::json"}},
		{questions, others, []string{
			"X::text", "X::varchar(5)", "X || 'a'", "name || X", "concat(X, 'a')", "X || X", "X || age", "X = 'a' || name", "X = name",
			"X = mail", "to_char(X, '999')", "to_char(X, 'YYYY Q!')", "format('%s', X)", "upper(X::text)", "split_part(X::text, '.', 1)",
			"X::text LIKE '1%'", "substr(X::text, 1, 2)", "length(X::text)", "X::bytea"}},
		{questions[:1], []string{"at"}, []string{"X::text", "name || X", "concat(X, 'a')", "to_char(X, '999')", "X || X", "upper(X::text)"}},
		{[]string{"SELECT count(*) FROM people WHERE $"}, all, []string{"X", "coalesce(X, X)"}},
		{[]string{"SELECT count(*) FROM people WHERE $"}, texts, []string{"lower(X)", "X || 'a'", "split_part(X, '@', 2)"}},
		{[]string{"SELECT $ FROM people", "SELECT kind, $ FROM people GROUP BY kind"}, texts, []string{
			"max(X)", "min(X)", "median(X)", "mode() WITHIN GROUP (ORDER BY X)", "string_agg(X, ',')", "array_agg(X)", "listagg(X, ',')",
			"group_concat(X)", "bool_and(X = 'a')", "every(X LIKE 'a%')", "upper(X)", "X || 'a'"}},
	} {
		for _, question := range kind.questions {
			for _, form := range kind.forms {
				for _, x := range kind.values {
					e := expression{question, form, x}
					refusal := asked{e.sql(), on, rewritetest.Sharp()}.refusal()
					if refusal == nil {
						continue
					}
					helped, carried := e.helps(on, refusal, 3)
					if carried {
						carriedOut++
						seen[refusal.Hint] = true
					}
					if carried && !helped {
						t.Errorf("%s\n%v\nhint: %s\ndoes not help", e.sql(), refusal, refusal.Hint)
					}
				}
			}
		}
	}
	t.Logf("%d hints were carried out, of %d kinds", carriedOut, len(seen))
	if carriedOut < 300 || len(seen) < 30 {
		t.Errorf("only %d hints were carried out, of %d kinds", carriedOut, len(seen))
	}
}
