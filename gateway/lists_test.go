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
}

func (d slowLists) Read(ctx context.Context, _ sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	d.clock.Sleep(ctx, 4*time.Second)
	return []sqlrewrite.PostRow{{Values: []catalog.Key{{Text: "2000-01-02 00:00:00"}}}}, []string{"text"}, nil
}

// Once an analyst's lists have taken their time of a minute, a question that needs another one is refused until the minute is over, with
// that reason. It was planned without the list before: it had other keys, another price and another name than a minute later, or was
// refused for keys that a steward was to declare.
func TestListsHaveTimeInAMinute(t *testing.T) {
	r := newRig(t)
	born := r.policies.snapshot.Tables[0].Columns[2]
	born.Type, born.Bounds.Hi = catalog.Timestamp, big.NewRat(366*86_400_000_000, 1) // a year of microseconds
	r.datasets["d"] = Dataset{Data: slowLists{r.data, r.clock}}
	r.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, nil }
	ask := func(who string, n int) error {
		q := count("0.01")
		q.SQL = fmt.Sprintf(`SELECT date_trunc('week', born + interval '1 day') - interval '%d day' AS w, count(*) FROM people
			GROUP BY w`, n)
		_, err := r.Query(t.Context(), principal(t, who, "analysts"), q)
		return err
	}
	for n := range 2 {
		if err := ask("ana", n); err != nil {
			t.Fatalf("question %d: %v", n, err)
		}
	}
	before := r.clock.Now()
	err := ask("ana", 2)
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != fault.CodeRequestTooMany || refusal.Details[0].Value != "53" {
		t.Errorf("after 8 s of lists: %v; want a refusal for 53 s", err)
	}
	if !r.clock.Now().Equal(before) {
		t.Error("the server was asked all the same")
	}
	if err := ask("ana", 1); err != nil {
		t.Errorf("a list that is known needs no time: %v", err)
	}
	if err := ask("bob", 2); err != nil {
		t.Errorf("others have time of their own: %v", err)
	}
	r.clock.Sleep(t.Context(), 53*time.Second)
	if err := ask("ana", 2); err != nil {
		t.Errorf("in the next minute: %v", err)
	}
}
