package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// slowLists is data that takes 4 s for each list of keys.
type slowLists struct {
	*fakeData
	clock *manualClock
	row   []catalog.Key // of each list
}

func (d slowLists) Read(ctx context.Context, _ sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	d.clock.Sleep(ctx, 4*time.Second)
	return []sqlrewrite.PostRow{{Values: d.row}}, nil, nil
}

// Once an analyst's lists have taken their time of a minute, a question that is refused without another list is refused for that, until the
// minute is over: its policy lacks nothing. One that is answered without lists is answered.
func TestListsHaveTimeInAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		sql     string
		row     []catalog.Key
		refused bool
	}{
		"computed keys": {"SELECT date_trunc('week', born + interval '1 day') - interval '%d day' AS w, count(*) FROM people GROUP BY w",
			[]catalog.Key{{Text: "2000-01-02 00:00:00"}}, true},
		"narrowed keys": {"SELECT sex, grade, count(*) FROM people WHERE sex = 'm' OR grade = %d GROUP BY sex, grade",
			[]catalog.Key{{Text: "m"}, {Text: "1"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			table := r.policies.snapshot.Tables[0]
			born := table.Columns[2]
			born.Type, born.Bounds.Hi = catalog.Timestamp, big.NewRat(366*86_400_000_000, 1) // a year of microseconds
			table.Columns = append(table.Columns, &catalog.Column{Name: "grade", AttNum: 6, Type: catalog.Int4, NotNull: true, Exposed: true,
				Domain: []catalog.Key{{Text: "0"}, {Text: "1"}, {Text: "2"}}})
			r.datasets["d"] = Dataset{Data: slowLists{r.data, r.clock, c.row}}
			r.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, nil }
			asked := func(who string, n int) (took time.Duration, err error) {
				q, before := count("0.01"), r.clock.Now()
				q.SQL = fmt.Sprintf(c.sql, n)
				_, err = r.Query(t.Context(), principal(t, who, "analysts"), q)
				return r.clock.Now().Sub(before), err
			}
			expect := func(who string, n int, want time.Duration) {
				t.Helper()
				if took, err := asked(who, n); err != nil || took != want {
					t.Fatalf("%s's question %d: %s of lists, %v; want %s", who, n, took, err, want)
				}
			}
			expect("ana", 0, 4*time.Second)
			expect("ana", 1, 4*time.Second)
			if took, err := asked("ana", 2); took != 0 {
				t.Errorf("after 8 s of lists the server was asked for another one: %v", err)
			} else if c.refused {
				var refusal *fault.Error
				if !errors.As(err, &refusal) || refusal.Code != fault.CodeRequestTooMany || refusal.Details[0].Value != "53" {
					t.Errorf("after 8 s of lists: %v; want a refusal for 53 s", err)
				}
			} else if err != nil {
				t.Errorf("answered without lists, and refused after 8 s of them: %v", err)
			}
			expect("ana", 1, 0)
			expect("bob", 2, 4*time.Second)
			r.clock.Sleep(t.Context(), 49*time.Second)
			if c.refused {
				expect("ana", 2, 4*time.Second)
			}
		})
	}
}

// What the cached lists of an analyst take is bounded in bytes, however long their keys are.
func TestListsAreCachedByBytes(t *testing.T) {
	on := &catalog.Snapshot{Dataset: "d"}
	list := func(keys, letters int) (tuples sqlrewrite.Tuples) {
		for i := range keys {
			tuples = append(tuples, []catalog.Key{{Text: fmt.Sprintf("%0*d", letters, i)}})
		}
		return tuples
	}
	var own keyLists
	for i, c := range []struct{ keys, letters, cached int }{
		{10, 5, 1}, {1000, 1000, 2}, {7000, 1000, 3}, {20_000, 500, 3}, {100_000, 5, 1}, {50_000, 5, 2}, {0, 0, 3}, {8000, 1000, 1},
	} {
		own.keep(on, sqlrewrite.ListName{byte(i)}, list(c.keys, c.letters))
		known, all := own.known(on), 0
		for _, tuples := range known.Known {
			for _, tuple := range tuples {
				all += len(tuple[0].Text)
			}
		}
		if len(known.Known) != c.cached || all > mostListed || own.kept > mostListed {
			t.Errorf("after list %d: %d lists of %d letters, %d bytes counted; want %d lists", i, len(known.Known), all, own.kept, c.cached)
		}
	}
}
