package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
)

// tile is a view of a dashboard: what of its block is read, and what is computed from it. Edits replace what is computed.
type tile struct {
	rows, group string
	outputs     []string // over the block, the first one as it is opened
	delta       api.Decimal
	filter      string // which changes what is released
}

// dashboard are six tiles over both tables, with public and private keys.
var dashboard = []tile{
	{rows: "people", outputs: []string{"count(*) AS %s"}, filter: "age > 30"},
	{rows: "people", group: "region", outputs: []string{"region, count(*) AS %s", "count(*) AS %s, region"}, filter: "age > 30"},
	{rows: "people", group: "region", outputs: []string{"region, avg(age) AS %s", "round(avg(age), 1) AS %s, region"}, filter: "income > 100"},
	{rows: "people", outputs: []string{"sum(income) AS %s, count(income) AS n", "count(income) AS n, sum(income) / count(income) AS %s"},
		filter: "region = 'north'"},
	{rows: "visits", group: "shop", outputs: []string{"shop, count(*) AS %s", "2 * count(*) AS %s, shop"}, delta: "1e-8",
		filter: "amount > 2"},
	{rows: "visits", group: "shop", outputs: []string{"shop, sum(amount) AS %s, count(*) AS n", "sum(amount) / count(*) AS %s, shop"},
		delta: "1e-8", filter: "amount > 3"},
}

// sql is the tile after so many edits of its name, order, limit and outer layers.
func (d tile) sql(edit int) string {
	name := fmt.Sprintf("total%d", edit)
	block := "SELECT " + fmt.Sprintf(d.outputs[edit/2%len(d.outputs)], name) + " FROM " + d.rows
	if d.group != "" {
		block += " GROUP BY " + d.group
	}
	switch edit % 5 {
	case 1:
		return block + fmt.Sprintf(" ORDER BY %s DESC LIMIT %d", name, 1+edit)
	case 2:
		return fmt.Sprintf("WITH t AS (%s) SELECT %s + %d AS more FROM t WHERE %s > %d ORDER BY more", block, name, edit, name, -edit)
	case 3:
		if d.delta != "" { // there is no aggregate over groups if some of them are left out
			return fmt.Sprintf("SELECT t.*, rank() OVER (ORDER BY %s) FROM (%s) AS t", name, block)
		}
		return fmt.Sprintf("SELECT max(%s), %d AS edit FROM (%s) AS t", name, edit, block)
	case 4:
		return block + fmt.Sprintf(" ORDER BY 1 OFFSET %d", edit/10)
	default:
		return block
	}
}

// ask asks for a tile at a small price.
func (d tile) ask(t *testing.T, c *api.Client, sql string) *api.QueryResponse {
	t.Helper()
	got, err := c.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "0.4", Delta: d.delta}, "")
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// TestDashboardIsPaidOnce: six tiles, each edited twenty times in its names, ORDER BY, LIMIT and outer layers, are six
// charges. Another filter is another one, and so is what another analyst asks.
//
// needs: postgres
// covers: E.5
func TestDashboardIsPaidOnce(t *testing.T) {
	const edits = 20
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	for i, d := range dashboard {
		first := d.ask(t, ana, d.sql(0))
		if first.Replayed || first.ReleasedAt != nil {
			t.Fatalf("tile %d: %+v", i, first)
		}
		for edit := 1; edit <= edits; edit++ {
			sql := d.sql(edit)
			got := d.ask(t, ana, sql)
			if !got.Replayed || got.ReleaseID != first.ReleaseID || got.Spent.Epsilon != "0" || got.ReleasedAt == nil {
				t.Errorf("tile %d: %s: %+v", i, sql, got)
			}
			if slices.ContainsFunc(got.Notes, func(n api.Note) bool { return n.Code == "outer-layer-failed" }) {
				t.Errorf("tile %d: %s: %+v", i, sql, got.Notes)
			}
		}
		if n := f.Charges(t); n != i+1 {
			t.Errorf("%d charges for %d tiles", n, i+1)
		}
	}
	balance, err := ana.Budget(t.Context(), gatewaytest.Dataset)
	if err != nil || balance.Budgets[0].Spent.Epsilon != "2.399999999999" { // thirds are rounded down
		t.Errorf("%+v, %v", balance, err)
	}
	n := f.Charges(t)
	for i, d := range dashboard {
		narrower := strings.Replace(d.sql(0), " FROM "+d.rows, " FROM "+d.rows+" WHERE "+d.filter, 1)
		if got := d.ask(t, ana, narrower); got.Replayed || f.Charges(t) != n+i+1 {
			t.Errorf("tile %d: %s: %+v", i, narrower, got)
		}
	}
	if got := dashboard[0].ask(t, f.client("bob:analyst"), dashboard[0].sql(1)); got.Replayed {
		t.Errorf("what ana paid for is given to bob: %+v", got)
	}
	f.Audit(t)
}

// TestViewsAgree: what two views of one release show are the same numbers, and the same view again is the same bytes.
func TestViewsAgree(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ask := func(sql string) string {
		t.Helper()
		response, body := f.do(t, call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json", body: fmt.Sprintf(
			`{"dataset":"census","epsilon":1,"sql":%q}`, sql), header: http.Header{"Accept": {"text/csv"}}})
		if response.StatusCode != http.StatusOK {
			t.Fatal(body)
		}
		if sent := response.Header.Get("Noisegate-Released-At"); (sent == "") != (response.Header.Get("Noisegate-Replayed") == "false") {
			t.Errorf("released at %q", sent)
		}
		return body
	}
	first := ask("SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region")
	renamed := ask("SELECT region AS area, count(*) AS people FROM people GROUP BY region ORDER BY area")
	if want := strings.Replace(first, "region,n,n_low,n_high", "area,people,people_low,people_high", 1); renamed != want || want == first {
		t.Errorf("%s\n%s", first, renamed)
	}
	if again := ask("SELECT region AS area, count(*) AS people FROM people GROUP BY region ORDER BY area"); again != renamed {
		t.Errorf("%s\n%s", renamed, again)
	}
	total := ask("SELECT sum(n) FROM (SELECT region, count(*) AS n FROM people GROUP BY region) AS t")
	sum := 0
	for line := range strings.Lines(first[strings.Index(first, "\n")+1:]) {
		var n int
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "%s %d", new(string), &n); err != nil {
			t.Fatal(line, err)
		}
		sum += n
	}
	if !strings.Contains(total, fmt.Sprintf("\n%d", sum)) {
		t.Errorf("the sum of %s is %s", first, total)
	}
}

// TestTilesAtOnce: tiles of one release that are opened at the same time are paid for once.
func TestTilesAtOnce(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 8)
	ana, d := f.client("ana:analyst"), dashboard[1]
	var all sync.WaitGroup
	paid := make(chan *api.QueryResponse, 16)
	for i := range cap(paid) {
		all.Go(func() {
			got, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: d.sql(i), Epsilon: "0.4"}, "")
			if err != nil {
				t.Error(err)
				return
			}
			paid <- got
		})
	}
	all.Wait()
	close(paid)
	charged := 0
	for got := range paid {
		if !got.Replayed {
			charged++
		}
	}
	if n := f.Charges(t); n != 1 || charged != 1 {
		t.Errorf("%d charges, %d answers that cost something", n, charged)
	}
}

// TestBudgetsRenewNothing: a policy that changes budgets alone leaves what was released as it is; another name of the
// data, or other bounds of the table that is read, are other releases. Replays say how old they are.
//
// needs: postgres
// covers: E.5
func TestBudgetsRenewNothing(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana, version := f.client("ana:analyst"), int64(1)
	apply := func(old, next string) {
		t.Helper()
		text := strings.Replace(gatewaytest.Policy, old, next, 1)
		if text == gatewaytest.Policy {
			t.Fatalf("the policy has no %q", old)
		}
		if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: version,
			Text: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		version++
	}
	began := time.Now().Add(-time.Minute)
	const sql = "SELECT region, avg(age) AS a FROM people GROUP BY region"
	ask := func() *api.QueryResponse {
		t.Helper()
		got, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "0.4"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := ask()
	for _, change := range [][2]string{
		{"epsilon: 100", "epsilon: 99"},
		{"max_epsilon_per_query: 5", "max_epsilon_per_query: 4"},
		{"amount: {bounds: [0, 10]}", "amount: {bounds: [0, 11]}"}, // of another table
		{"secret: {expose: false}", "secret: {keys: private}"},     // of a column that is not read
	} {
		apply(change[0], change[1])
		got := ask()
		if !got.Replayed || got.ReleaseID != first.ReleaseID || got.ReleasedAt == nil || got.ReleasedAt.Before(began) || got.DataVersion != "" {
			t.Errorf("after %q: %+v", change[1], got)
		}
		if fmt.Sprint(got.Rows) != fmt.Sprint(first.Rows) || fmt.Sprint(withoutAge(t, got.Notes)) != fmt.Sprint(first.Notes) {
			t.Errorf("after %q: %v, and it was %v", change[1], got.Rows, first.Rows)
		}
	}
	apply("age:    {bounds: [0, 100]}", "age:    {bounds: [0, 99]}")
	if got := ask(); got.Replayed {
		t.Errorf("with other bounds: %+v", got)
	}
	apply("dataset: census\n", "dataset: census\ndata_version: 2026-03\n")
	if got := ask(); got.Replayed {
		t.Errorf("with other data: %+v", got)
	}
	if got := ask(); !got.Replayed || got.DataVersion != "2026-03" {
		t.Errorf("asked again: %+v", got)
	}
	if n := f.Charges(t); n != 3 {
		t.Errorf("%d charges", n)
	}
}
