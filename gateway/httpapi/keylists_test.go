package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// unlisted is a protected database that gives no lists of keys while it is away.
type unlisted struct {
	gateway.Data
	away  atomic.Bool
	reads atomic.Int64
}

func (u *unlisted) Read(ctx context.Context, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	u.reads.Add(1)
	if u.away.Load() {
		return nil, nil, fault.DataUnavailable(errors.New("away"))
	}
	return u.Data.Read(ctx, post)
}

// What was released over more keys than lists leave, as it was before there were lists, is given again, free: the listed groups with the
// values that they had. A list is asked for once by each analyst.
//
// needs: postgres
// covers: E.5
func TestListedGroupsOfAnEarlierRelease(t *testing.T) {
	data := new(unlisted)
	f := newFront(t, gatewaytest.Options{Change: func(c *gateway.Config) {
		d := c.Datasets[gatewaytest.Dataset]
		data.Data, d.Data = d.Data, data
		c.Datasets[gatewaytest.Dataset] = d
	}}, 4)
	f.Protected.Exec(t, `CREATE TABLE places (place int PRIMARY KEY, nation text NOT NULL, continent text NOT NULL);
		INSERT INTO places SELECT g, (ARRAY['CHINA', 'INDIA', 'JAPAN', 'KENYA', 'PERU', 'SPAIN'])[1 + g % 6],
			(ARRAY['ASIA', 'ASIA', 'ASIA', 'AFRICA', 'AMERICA', 'EUROPE'])[1 + g % 6] FROM generate_series(0, 11) g;
		CREATE TABLE trips (traveller int NOT NULL, place int NOT NULL REFERENCES places);
		INSERT INTO trips SELECT g % 30, g % 12 FROM generate_series(1, 300) g`)
	f.Protected.Grant(t)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1, Text: []byte(`version: 1
dataset: census
tables:
  places: {public: true}
  trips: {unit: {column: traveller}, max_rows: 5, max_groups: 2}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7, max_epsilon_per_query: 5}
`)}); err != nil {
		t.Fatal(err)
	}
	ask := func(who, select_, rest string) *api.QueryResponse {
		t.Helper()
		got, err := f.client(who+":analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "1",
			SQL: "SELECT " + select_ + " FROM trips JOIN places USING (place) WHERE continent = 'ASIA' GROUP BY nation" + rest}, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	values := func(r *api.QueryResponse) map[string]string {
		all := make(map[string]string)
		for _, row := range r.Rows {
			all[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
		}
		return all
	}
	data.away.Store(true)
	before := values(ask("ana", "nation, count(*)", ""))
	if len(before) != 6 || f.Charges(t) != 1 {
		t.Fatalf("without lists: %v, %d charges", before, f.Charges(t))
	}
	data.away.Store(false)
	data.reads.Store(0)
	for _, rest := range []string{" ORDER BY nation", " ORDER BY nation DESC", " ORDER BY nation"} {
		got := ask("ana", "nation, count(*) AS n", rest)
		now := values(got)
		if !got.Replayed || len(now) != 3 || f.Charges(t) != 1 {
			t.Errorf("with lists: %v, %d charges, replayed %t", now, f.Charges(t), got.Replayed)
		}
		for nation, n := range now {
			if before[nation] != n {
				t.Errorf("%s has %s, and had %s", nation, n, before[nation])
			}
		}
	}
	if n := data.reads.Load(); n != 1 {
		t.Errorf("the list was asked for %d times", n)
	}
	first := ask("bob", "nation, count(*)", "")
	if len(first.Rows) != 3 || first.Replayed || f.Charges(t) != 2 || data.reads.Load() != 2 {
		t.Errorf("somebody else: %+v, %d charges, %d lists", first, f.Charges(t), data.reads.Load())
	}
	if again := ask("bob", "nation, count(*) AS n", " ORDER BY 2"); len(again.Rows) != 3 || !again.Replayed || f.Charges(t) != 2 {
		t.Errorf("once more: %+v, %d charges", again, f.Charges(t))
	}
	data.away.Store(true)
	both := func(who, select_ string) *api.QueryResponse {
		t.Helper()
		got, err := f.client(who+":analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "1",
			SQL: "SELECT " + select_ + " FROM trips JOIN places USING (place) GROUP BY continent, nation"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := both("eve", "continent, nation, count(*)"); len(got.Rows) != 24 || f.Charges(t) != 3 {
		t.Errorf("without lists: %d rows, %d charges", len(got.Rows), f.Charges(t))
	}
	data.away.Store(false)
	if got := both("eve", "nation, continent, 2 * count(*)"); len(got.Rows) != 6 || !got.Replayed || f.Charges(t) != 3 {
		t.Errorf("with lists: %v, %d charges, replayed %t", got.Rows, f.Charges(t), got.Replayed)
	}
	if got := both("bob", "continent, nation, count(*)"); len(got.Rows) != 6 || got.Replayed || f.Charges(t) != 4 {
		t.Errorf("with lists: %v, %d charges, replayed %t", got.Rows, f.Charges(t), got.Replayed)
	}
	if got := both("bob", "sum(count(*)) OVER (), nation"); len(got.Rows) != 6 || !got.Replayed || f.Charges(t) != 4 {
		t.Errorf("once more: %v, %d charges, replayed %t", got.Rows, f.Charges(t), got.Replayed)
	}
	for _, keys := range []string{"nation", "nation, continent"} { // no row can have any
		for _, shown := range []string{"count(*)", "2 * count(*)", "count(*) FILTER (WHERE place > 3)"} {
			got, err := f.client("bob:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "0.1",
				SQL: "SELECT " + keys + ", " + shown + " FROM trips JOIN places USING (place) WHERE continent = 'ATLANTIS' GROUP BY " + keys}, "")
			if err != nil || len(got.Rows) > 0 || got.Spent.Epsilon != "0" || got.Spent.Rho != "0" || got.Spent.Delta != "0" {
				t.Errorf("%s, %s: %v, %v", keys, shown, got, err)
			}
		}
	}
	none := "FROM trips JOIN places USING (place) WHERE continent = 'ATLANTIS' GROUP BY "
	for sql, want := range map[string]string{ // and which ε is spent
		"SELECT nation, count(*) " + none + "ROLLUP (nation)":                                    "[[ 0]] 0",
		"SELECT nation, count(*) " + none + "nation UNION ALL SELECT 'all', count(*) FROM trips": "[[all ",
	} {
		got, err := f.client("bob:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "0.1", SQL: sql}, "")
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Rows, " ", got.Spent.Epsilon); !strings.HasPrefix(text, want) || len(got.Rows) != 1 {
			t.Errorf("%s: %s", sql, text)
		}
	}
	f.Audit(t)
}
