package stability_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
)

// pairedSnapshot is people beside 341 public shops, which no condition ties to them, and visits that a cap can bound.
func pairedSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	return rewritetest.ParseSnapshot(t, `people
  person_id integer not null unique
  age integer
  income integer
  sex text
  weight numeric
  name text
visits
  visit_id integer not null unique
  person_id integer not null
  paid integer
shops
  shop_id integer not null unique
  rows 341
`, `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: person_id}, columns: {age: {domain: [0, 1, 2, 3]}, income: {bounds: [0, 100]}, sex: {domain: [f, m]}}}
  visits: {unit: {column: person_id}, max_rows: 64, max_groups: 4}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
}

// found are questions of which one row decided when an answer left, by far more than its price said.
func found() map[string]string {
	const pairs = " FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND p.income = 63 AND "
	long := "'" + strings.Repeat("a", 880) + "' || (p.age + s.shop_id)::text"
	like := "(" + long + ") LIKE '%" + strings.Repeat("a", 190) + "b%'"
	var several []string
	for i := range 8 {
		several = append(several, fmt.Sprintf("(SELECT count(*) FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND "+
			"p.income = %d AND (p.age + s.shop_id)::text LIKE '%%x%%')", i))
	}
	return map[string]string{
		"the pattern":  "SELECT count(*)" + pairs + like,
		"its negation": "SELECT count(*)" + pairs + "NOT (" + like + ")",
		"ILIKE":        "SELECT count(*)" + pairs + strings.Replace(like, "LIKE", "ILIKE", 1),
		"CUBE": "SELECT p.age, p.sex, count(*), count(DISTINCT p.income)" + pairs +
			"(p.age + s.shop_id)::text LIKE '%x%' GROUP BY CUBE (p.age, p.sex)",
		"eight-fold": "SELECT " + strings.Join(several, ", "),
		"strpos":     "SELECT count(*)" + pairs + "strpos(" + long + ", p.name) > 0",
		"its needle": "SELECT count(*)" + pairs + "strpos(" + long + ", 'b" + strings.Repeat("a", 190) + "') > 0",
		"a quotient": "SELECT count(*)" + pairs + strings.Repeat(
			"(p.weight * p.weight * p.weight * p.weight * p.weight) / (p.weight * p.weight) > "+
				"s.shop_id AND ", 3) + "true",
	}
}

// What one row could make slow is refused, with what would make it faster.
//
// covers: B4 C1
func TestNoRowDecidesABoundary(t *testing.T) {
	t.Parallel()
	snapshot := pairedSnapshot(t)
	for name, sql := range found() {
		_, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if fault.CodeOf(err) != fault.CodeFanOut {
			t.Errorf("%s: %v, want %s\n%s", name, err, fault.CodeFanOut, sql)
			continue
		}
		t.Logf("%s: %s", name, parsetest.ShowFault(err))
	}
	for name, hint := range map[string]string{"the pattern": "pattern", "strpos": "constant needle"} {
		_, err := pipeline.Rewrite(found()[name], snapshot, rewritetest.Sharp())
		if shown := parsetest.ShowFault(err); !strings.Contains(shown, hint) {
			t.Errorf("%s: %s, want %q", name, shown, hint)
		}
	}
	for _, sql := range []string{
		"SELECT count(*) FROM people WHERE name LIKE '%smith%' AND name NOT ILIKE '%jones%'",
		"SELECT count(*) FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND p.income = 63",
		"SELECT age, sex, count(*) FROM people WHERE name LIKE '%smith%' GROUP BY CUBE (age, sex)",
		"SELECT count(*) FROM people WHERE strpos(name, 'smith') > 0 AND weight / 3 * weight > 7",
	} {
		if _, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp()); err != nil {
			t.Errorf("%s\n%s", sql, parsetest.ShowFault(err))
		}
	}
}

// Statements of one question have one limit together: their caps are lowered, the largest first, until they fit.
//
// covers: B4 C1
func TestStatementsShareOneLimit(t *testing.T) {
	t.Parallel()
	snapshot := pairedSnapshot(t)
	pairs := func(sql string) *big.Int {
		t.Helper()
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
		}
		return p.Different()[0].Query.Pairs
	}
	const block = "SELECT count(*) AS n FROM visits a JOIN visits b ON a.person_id = b.person_id WHERE a.paid > b.paid + %d"
	one := pairs(fmt.Sprintf(block, 0))
	var several []string
	for i := range 8 {
		several = append(several, fmt.Sprintf("(%s)", fmt.Sprintf(block, i)))
	}
	all := pairs("SELECT " + strings.Join(several, ", "))
	t.Logf("a row meets %v rows, in each of eight releases %v", one, all)
	if all.Cmp(one) >= 0 {
		t.Errorf("each of eight releases pairs a row with %v others, as one does alone (%v)", all, one)
	}
}

// A question has no more regular expressions than PostgreSQL remembers: of more each evaluation would compile one.
func TestRegularExpressionsAreRemembered(t *testing.T) {
	t.Parallel()
	snapshot := pairedSnapshot(t)
	for n, want := range map[int]fault.Code{32: "", 33: fault.CodeTooComplex} {
		sql := "SELECT count(*) FROM people WHERE "
		for i := range n {
			sql += fmt.Sprintf("name ~ 'a%d' OR name ~ 'a%d' OR ", i, i)
		}
		_, err := pipeline.Rewrite(sql+"age = 1", snapshot, rewritetest.Sharp())
		if fault.CodeOf(err) != want {
			t.Errorf("%d regular expressions: %v", n, err)
		}
	}
}

// Every operation that the binder takes over every type has a price: what has none would be refused.
func TestEveryOperationIsPriced(t *testing.T) {
	t.Parallel()
	columns := []string{"i2", "i4", "i8", "f4", "f8", "n", "nf", "t", "v", "c", "d", "ts", "tz", "u", "b", "e", "(ts - tz::timestamp)"}
	snapshot := rewritetest.ParseSnapshot(t, `t
  id integer not null unique
  i2 smallint
  i4 integer
  i8 bigint
  f4 real
  f8 double
  n numeric
  nf numeric(8,2)
  t text
  v text
  c char(3)
  d date
  ts timestamp
  tz timestamptz
  u uuid
  b boolean
  e enum(sad,ok)
`, `version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	var expressions []string
	one := []string{"%s IS NULL", "NOT %s", "-%s", "%s::text LIKE 'a%%'", "%s::integer", "%s::bigint", "%s::numeric", "%s::numeric(5,1)",
		"%s::float8", "%s::date", "%s::timestamp", "%s::timestamptz", "%s LIKE '%%a%%'", "%s ILIKE '%%a%%'", "%s ~ 'a+b'",
		"to_char(%s, 'YYYY-MM')", "date_trunc('month', %s)", "extract(year FROM %s)", "date(%s)", "%s + interval '1 day'",
		"%s IN (NULL)", "round(%s, 1)", "power(%s, 2)", "width_bucket(%s, 0, 10, 5)", "left(%s, 3)", "substr(%s, 2, 3)",
		"trim('x' FROM %s)", "%s SIMILAR TO 'a%%'", "%s BETWEEN %[1]s AND %[1]s"}
	for _, f := range []string{"abs", "sign", "round", "trunc", "floor", "ceil", "ceiling", "sqrt", "ln",
		"log", "log10", "exp", "length", "upper",
		"lower", "initcap", "btrim", "ltrim", "rtrim", "concat", "char_length"} {
		one = append(one, f+"(%s)")
	}
	two := []string{"%s = %s", "%s <> %s", "%s < %s", "%s IS DISTINCT FROM %s", "%s + %s", "%s - %s", "%s * %s", "%s / %s", "%s %% %s",
		"%s || %s", "coalesce(%s, %s)", "nullif(%s, %s)", "greatest(%s, %s)", "least(%s, %s)", "div(%s, %s)", "mod(%s, %s)",
		"strpos(%s, %s)", "concat(%s, %s)", "starts_with(%s, %s)", "CASE WHEN b THEN %s ELSE %s END"}
	for _, a := range columns {
		for _, form := range one {
			expressions = append(expressions, fmt.Sprintf(form, a))
		}
		for _, b := range columns {
			for _, form := range two {
				expressions = append(expressions, fmt.Sprintf(form, a, b))
			}
		}
	}
	taken := 0
	for _, x := range expressions {
		_, err := pipeline.Rewrite("SELECT count(*) FILTER (WHERE ("+x+") IS NOT NULL) FROM t", snapshot, rewritetest.Sharp())
		switch {
		case err == nil:
			taken++
		case fault.CodeOf(err) == fault.CodeFanOut && strings.Contains(parsetest.ShowFault(err), "whose time nothing bounds"):
			t.Errorf("%s: %s", x, parsetest.ShowFault(err))
		case fault.CodeOf(err) == fault.CodeUnverified || fault.CodeOf(err) == fault.CodeInternal:
			t.Errorf("%s: %v", x, err)
		}
	}
	if t.Logf("%d of %d expressions are taken", taken, len(expressions)); taken < 1000 {
		t.Errorf("only %d expressions are taken", taken)
	}
}

// Where tables are joined PostgreSQL goes along all public keys for each row, and for each value along those that a mode is chosen from:
// the rows of one unit do that within the limits.
//
// covers: B4 C1
func TestKeysAreSearchedWithinTheLimit(t *testing.T) {
	t.Parallel()
	const each = 13 // ns, the least that was measured
	for _, most := range []int64{9, 99, 999, 9_999, 15_000} {
		snapshot := pairedSnapshot(t)
		visits, _ := snapshot.Table("", "visits")
		paid := visits.Columns[2]
		paid.Exposed, paid.Bounds = true, &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(most, 1)}
		people, _ := snapshot.Table("", "people")
		sex := people.Columns[3]
		for i := range min(most, 9_000) {
			sex.Domain = append(sex.Domain, catalog.Key{Text: strconv.FormatInt(i, 10)})
		}
		for _, sql := range []string{
			"SELECT v.paid, count(*) FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY v.paid",
			"SELECT mode() WITHIN GROUP (ORDER BY p.sex) FROM visits v JOIN people p ON v.person_id = p.person_id",
			"SELECT p.age, v.paid, count(*) FROM visits v, people p WHERE v.person_id = p.person_id GROUP BY CUBE (p.age, v.paid)",
			"SELECT paid, count(*) FROM visits WHERE EXISTS (SELECT 1 FROM people p WHERE p.person_id = visits.person_id) GROUP BY paid",
			"SELECT paid, count(*) FROM visits GROUP BY paid",
		} {
			p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
			if err != nil {
				t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
			}
			for _, block := range p.Different() {
				rows := int64(0)
				for _, c := range block.Query.Shared().Caps {
					if c.Active() {
						rows = max(rows, c.Rows)
					}
				}
				for _, part := range block.Parts {
					ns := int64(0)
					for _, a := range part.Statement.Args {
						if list, ok := a.([]string); ok && (part.Statement.Blind || strings.Contains(part.Statement.SQL, "array_position")) {
							ns += each * int64(len(list))
						}
					}
					if rows == 0 && ns > stability.MaxRowWork || rows*ns > stability.MaxUnitWork {
						t.Errorf("one row of %d searches lists for %d ns: %s\n%s", rows, ns, sql, part.Statement.SQL)
					}
				}
			}
		}
	}
}
