package integration

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var rowQuestions = flag.Int("row-questions", 24, "random questions of TestOneRowDecidesNoBoundary; make timing asks 200")

// rowQuantum is the default one: one unit's work moves the boundary at which an answer leaves by a tenth of it.
const rowQuantum = 50 * time.Millisecond

// boundaryOf is which boundary an answer left at. The k-th is at 0.9 to 1 times quantum·2ᵏ: what the way to the client takes, up to 0.8
// times the quantum, changes nothing.
func boundaryOf(took time.Duration) int64 {
	k := int64(0)
	for at := 2 * rowQuantum; took >= at-at/10; at *= 2 {
		k++
	}
	return k
}

// rowData is people, 341 public shops and 20 stalls, with the one person of 62 who earns 63, or without.
func rowData(name string, target bool) dataset {
	return dataset{name: name, quantum: rowQuantum.String(), policy: fmt.Sprintf(`version: 1
dataset: %s
neighbours: add-remove
tables:
  people: {unit: {row: person_id}, columns: {age: {bounds: [0, 120]}, sex: {domain: [f, m]}}}
  shops: {public: true}
  stalls: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 1000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 900, delta: 1e-4, max_epsilon_per_query: 1}
`, name), load: func(ctx context.Context, conn *pgx.Conn) error {
		sql := `CREATE TABLE people (person_id int PRIMARY KEY, age int NOT NULL, income int NOT NULL, sex text NOT NULL, name text, weight numeric);
			CREATE TABLE shops (shop_id int PRIMARY KEY); CREATE TABLE stalls (shop_id int PRIMARY KEY);
			INSERT INTO people SELECT i, i % 60, i % 97, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END, repeat('a', 100), 7 FROM generate_series(1, 300) i;
			INSERT INTO shops SELECT generate_series(1, 341); INSERT INTO stalls SELECT generate_series(1, 20);`
		if target {
			sql += `INSERT INTO people VALUES (9999, 62, 63, 'f', repeat('a', 1000), 123456789012345678901234567890.12345678901234567891);`
		}
		_, err := conn.Exec(ctx, sql+"ANALYZE;")
		return err
	}}
}

// slowConditions are of a pair of a person and a shop, made to take long where the person is there.
func slowConditions(r *rand.Rand) string {
	text := func() string {
		most := 1 + r.IntN(300)
		return "('" + strings.Repeat([]string{"a", "ab", "é", "aab"}[r.IntN(4)], most/3+1) + "' || (p.age + s.shop_id)::text)"
	}
	needle := strings.Repeat([]string{"a", "ab", "aab"}[r.IntN(3)], 1+r.IntN(12))
	return []func() string{
		func() string { return text() + " LIKE '%" + needle + "b%'" },
		func() string { return text() + " NOT ILIKE '%" + strings.ToUpper(needle) + "c%'" },
		func() string { return "strpos(" + text() + ", 'b" + needle + "') > 0" },
		func() string { return "strpos(p.name || s.shop_id::text, left(p.name, 50) || 'b') > 0" },
		func() string { return text() + " ~ '" + strings.Repeat("(a|b)", 1+r.IntN(12)) + "x'" },
		func() string { return "length(btrim(" + text() + ", 'zyxwba')) > 3" },
		func() string { return strings.Repeat("p.weight * ", 1+r.IntN(6)) + "s.shop_id > 7" },
		func() string { return "(p.weight * p.weight * p.weight) / (p.weight + s.shop_id) > 7" },
		func() string { return "(p.weight * p.weight * p.weight) % (p.weight + s.shop_id) > 7" },
		func() string { return "upper(lower(initcap(" + text() + "))) = 'x'" },
	}[r.IntN(10)]()
}

// slowQuestion is a question about the one person, in one of several forms: alone, several times, by levels, and by EXISTS.
func slowQuestion(r *rand.Rand) string {
	const from = " FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 62 AND p.income = 63 AND p.income > -%[1]d AND "
	condition := strings.ReplaceAll(slowConditions(r), "%", "%%")
	count := "SELECT count(*)" + from + condition
	switch r.IntN(8) {
	case 0:
		var all []string
		for i := range 2 + r.IntN(3) {
			all = append(all, fmt.Sprintf("(%s AND p.income < 100 + %d)", count, i))
		}
		return "SELECT " + strings.Join(all, ", ")
	case 1:
		return "SELECT p.sex, count(*), count(DISTINCT p.income)" + from + condition + " GROUP BY ROLLUP (p.sex)"
	case 2:
		return "SELECT count(*) FROM people p WHERE p.age = 62 AND p.income = 63 AND p.income > -%[1]d AND EXISTS (SELECT 1 FROM shops s WHERE " +
			condition + ")"
	default:
		return count
	}
}

// Whatever is computed of one row, an answer leaves at the boundary at which it leaves without that row, or is refused. What others do on
// the machine can move an answer too: then it is asked again, as another question, and the earliest answers count.
//
// needs: postgres
// covers: B4 C1
func TestOneRowDecidesNoBoundary(t *testing.T) {
	t.Parallel()
	const pairs = " FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 62 AND p.income = 63 AND p.income > -%[1]d AND "
	long := "('" + strings.Repeat("a", 880) + "' || (p.age + s.shop_id)::text)"
	like := long + " LIKE '%%" + strings.Repeat("a", 190) + "b%%'"
	questions := []string{
		"SELECT count(*)" + pairs + like,
		"SELECT " + strings.TrimSuffix(strings.Repeat("(SELECT count(*)"+pairs+"("+like+" OR p.income = 63)), ", 8), ", "),
		"SELECT p.sex, p.age, count(*), count(DISTINCT p.income)" + pairs + like + " GROUP BY CUBE (p.sex, p.age)",
		"SELECT count(*)" + pairs + "strpos(" + long + ", 'b" + strings.Repeat("a", 190) + "') > 0",
	}
	r := rand.New(rand.NewPCG(60, 3))
	for i := range *rowQuestions {
		question := slowQuestion(r)
		if i%2 == 0 { // of 20 pairs much more is answered
			question = strings.ReplaceAll(question, "shops s", "stalls s")
		}
		questions = append(questions, question)
	}
	s := newStack(t, rowData("with", true), rowData("without", false))
	token := s.token(t, "ana", "analyst")
	asked, refused := 0, 0
	ask := func(question string, earliest map[string]int64) (code string) {
		asked++
		sql := fmt.Sprintf(question, asked)
		for _, name := range []string{"with", "without"} {
			began := time.Now()
			status, p := s.send(t, raw{token: token, body: body(t, sql, "dataset", `"`+name+`"`, "epsilon", `"0.01"`)})
			boundary := boundaryOf(time.Since(began))
			switch {
			case status == http.StatusOK:
			case code != "" && p.Code != code:
				t.Fatalf("%s: %s with the row, %s without", sql, code, p.Code)
			default:
				code = p.Code
			}
			if before, known := earliest[name]; !known || boundary < before {
				earliest[name] = boundary
			}
		}
		return code
	}
	for _, question := range questions {
		earliest := make(map[string]int64)
		code := ask(question, earliest)
		if code != "" {
			if code != "plan/fan-out" {
				t.Errorf("%s: %s", question, code)
			}
			refused++
			continue
		}
		for tries := 0; tries < 20 && earliest["with"] != earliest["without"]; tries++ {
			ask(question, earliest)
		}
		if earliest["with"] != earliest["without"] {
			t.Errorf("with the row it left at boundary %d, without at %d: %s", earliest["with"], earliest["without"], question)
		}
	}
	t.Logf("%d questions, %d refused, asked %d times", len(questions), refused, asked)
	if refused == len(questions) {
		t.Error("every question was refused")
	}
}
