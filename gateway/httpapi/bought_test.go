package httpapi

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
)

// boughtFront is a gateway whose accounts pay for answers with next to no noise.
func boughtFront(t *testing.T, more string) *front {
	t.Helper()
	f := newFront(t, gatewaytest.Options{Quantum: time.Millisecond}, 4)
	policy := `version: 1
dataset: census
neighbours: add-remove
` + more + `tables:
  visits:
    unit: {column: person}
    max_rows: 5
    max_groups: 3
    columns:
      shop:   {domain: [shop0, shop1, shop2]}
      amount: {bounds: [0, 10]}
  people:
    unit: {row: id, of: person}
    columns:
      age:    {bounds: [0, 100]}
      income: {bounds: [0, 10000], step: 100}
      region: {domain: [north, south]}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-7}
`
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1, Text: []byte(policy)}
	if _, err := f.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	return f
}

var boughtValue = regexp.MustCompile(`^(.+) was released first: (\S+); `)

// boughtOf gives the values that an answer says were released first.
func boughtOf(notes []api.Note) (values []string) {
	for _, n := range notes {
		if m := boughtValue.FindStringSubmatch(n.Text); n.Code == "bought-first" && m != nil {
			values = append(values, m[2])
		}
	}
	return values
}

// With hardly any noise, an answer is PostgreSQL's to the text that has the released value where the question has a query. Both aggregates
// are random.
func TestBoughtFirstIsPostgreSQLsAnswer(t *testing.T) {
	f := boughtFront(t, "")
	ana, conn := f.client("ana:analyst"), f.Protected.Conn(t, f.Protected.DSN)
	r := rand.New(rand.NewPCG(11, 30))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	asked := 0
	for range 40 {
		column, scale := pick("age", "income"), pick("", "0.5 * ", "1.25 * ")
		aggregate := fmt.Sprintf(pick("avg(%s)", "min(%s)", "max(%s)", "median(%s)", "percentile_cont(0.75) WITHIN GROUP (ORDER BY %s)"), column)
		quantile := strings.HasPrefix(aggregate, "median") || strings.HasPrefix(aggregate, "percentile")
		if column == "income" && quantile { // what is computed with a quantile is no number that decimals meet
			scale = ""
		}
		from := " FROM people" + pick("", " WHERE region = 'north'", " WHERE age BETWEEN 30 AND 60") + ")"
		value := pick("(SELECT "+scale+aggregate+from, scale+"(SELECT "+aggregate+from)
		operator := pick(" > ", " <= ", " <> ")
		outer := pick("SELECT count(*) AS n FROM people WHERE %s", "SELECT count(*) FILTER (WHERE %s) AS n FROM people",
			"SELECT sum(age) AS n FROM people WHERE region = 'south' AND %s", "SELECT count(*) AS n FROM people WHERE NOT (%s)",
			"SELECT count(DISTINCT v.person) AS n FROM visits v JOIN people p ON p.id = v.person WHERE %s",
			"SELECT count(*) AS n FROM people WHERE age > 25 OR %s")
		sql := fmt.Sprintf(outer, column+operator+value)
		answer, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "10000"}, "")
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		values := boughtOf(answer.Notes)
		if len(values) != 1 || answer.Spent.Epsilon != "10000" && !answer.Replayed && answer.Spent.Epsilon != "5000" {
			t.Fatalf("%s: %v, spent %s", sql, answer.Notes, answer.Spent.Epsilon)
		}
		asked++
		written := fmt.Sprintf(outer, column+operator+scale+values[0]+"::numeric")
		var want float64
		if err := conn.QueryRow(t.Context(), "SELECT coalesce(n, 0)::float8 FROM ("+written+") x").Scan(&want); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if got, err := strconv.ParseFloat(answer.Rows[0][0].String(), 64); err != nil || math.Abs(got-want) > 0.5 {
			t.Errorf("%s\nis %v, PostgreSQL says %v of\n%s", sql, got, want, written)
		}
	}
	if asked < 40 {
		t.Errorf("%d questions", asked)
	}
}

// The price pays for both releases, once. Each is found again by itself: the question and its views are free, of a question whose value
// was bought before the other half is paid, and what is refused leaves the ledger as it is.
func TestBoughtFirstIsPaidOnce(t *testing.T) {
	f := boughtFront(t, "")
	ana, bob := f.client("ana:analyst"), f.client("bob:analyst")
	ask := func(who *api.Client, sql, epsilon string) *api.QueryResponse {
		t.Helper()
		answer, err := who.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: api.Decimal(epsilon)}, "")
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return answer
	}
	const sql = "SELECT count(*) AS n FROM people WHERE age > (SELECT avg(age) FROM people)"
	estimate, err := ana.Estimate(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "1"})
	if err != nil || estimate.Price.Epsilon != "1" || textOf(estimate.Notes, "bought-first") !=
		"avg(age) is released first, at an equal share of the price; the query compares with its noisy value" {
		t.Fatalf("%+v, %v", estimate, err)
	}
	first := ask(ana, sql, "1")
	value := boughtOf(first.Notes)
	if first.Spent.Epsilon != "1" || len(value) != 1 {
		t.Fatalf("%+v", first)
	}
	for _, again := range []string{sql, strings.Replace(sql, "AS n", "AS older", 1),
		"SELECT 2 * count(*) AS n" + sql[len("SELECT count(*) AS n"):]} {
		answer := ask(ana, again, "1")
		if !answer.Replayed || answer.Spent.Epsilon != "0" || !slices.Equal(boughtOf(answer.Notes), value) {
			t.Errorf("%s: %+v", again, answer)
		}
	}
	// Another comparison with the same value costs half of the price: the value is paid.
	below := ask(ana, strings.Replace(sql, ">", "<", 1), "1")
	if below.Spent.Epsilon != "0.5" || !slices.Equal(boughtOf(below.Notes), value) {
		t.Errorf("%+v", below)
	}
	mean := ask(bob, "SELECT avg(age) FROM people", "0.5")
	answer := ask(bob, sql, "1")
	if answer.Spent.Epsilon != "0.5" || !slices.Equal(boughtOf(answer.Notes), []string{mean.Rows[0][0].String()}) {
		t.Errorf("%+v after %v", answer, mean.Rows)
	}
	before := ask(bob, sql, "1").Remaining
	for condition, code := range map[string]string{
		"age > (SELECT stddev(age) FROM people)":                                                        "sql/unsupported",
		"age > (SELECT avg(q.age) FROM people q WHERE q.region = people.region)":                        "sql/unsupported",
		"age > (SELECT avg(nosuch) FROM people)":                                                        "sql/unsupported",
		"age > (SELECT avg(age) FROM nosuch)":                                                           "sql/unknown-table",
		"id > (SELECT avg(age) FROM people)":                                                            "policy/unit-column",
		"EXISTS (SELECT 1 FROM visits WHERE person = id AND amount > (SELECT avg(amount) FROM visits))": "sql/unsupported",
	} {
		text := "SELECT count(*) FROM people WHERE " + condition
		_, err := bob.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: text, Epsilon: "1"}, "")
		if p := new(api.Problem); !errors.As(err, &p) || p.Code != code {
			t.Errorf("%s: %v, want %s", text, err, code)
		}
	}
	weighed := api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "1", Weights: map[string]api.Decimal{"n": "2"}}
	if _, err := bob.Query(t.Context(), weighed, ""); err == nil {
		t.Error("weights divide the price of one release")
	}
	if after := ask(bob, sql, "1").Remaining; !reflect.DeepEqual(after, before) {
		t.Errorf("%+v are left, were %+v", after, before)
	}
}

// Where releases are shared, what others bought is given, with the value that it was released with.
func TestBoughtFirstIsShared(t *testing.T) {
	f := boughtFront(t, "share_releases: true\n")
	const sql = "SELECT count(*) AS n FROM people WHERE age > (SELECT avg(age) FROM people)"
	request := api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "1"}
	first, err := f.client("ana:analyst").Query(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.client("bob:analyst").Query(t.Context(), request, "")
	if err != nil || again.Spent.Epsilon != "0" || !slices.Equal(boughtOf(again.Notes), boughtOf(first.Notes)) {
		t.Errorf("%+v, %v", again, err)
	}
}
