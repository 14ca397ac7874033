package main

import (
	"bytes"
	"math/big"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
)

// A forecast walks over the tranches that open: with a cap of 3, 1 more of it released every 30 days, and 0.05 spent a day.
func TestForecastText(t *testing.T) {
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	opened := now.AddDate(0, 0, -10)
	next := opened.AddDate(0, 0, 30)
	account := api.Account{
		Dataset: "census", Account: "analyst:ana", Origin: "policy",
		Limit: api.BudgetLimit{Form: "approx", Epsilon: "3", Delta: "1e-7", MaxEpsilonPerQuery: "1",
			Tranche: &api.Tranche{Every: "30d", Epsilon: "1"}},
		Spent: api.Amounts{Epsilon: "0.4", Rho: "0.04", Delta: "0"}, Reserved: api.Amounts{Epsilon: "0.1", Rho: "0.004995837496", Delta: "0"},
		Remaining: api.Amounts{Epsilon: "0.5", Rho: "0", Delta: "5e-8"}, Usage: api.Usage{Rule: "epsilon", Percent: "50"},
		Lifetime: api.Promise{Epsilon: "3", Delta: "1e-7"}, WorstCase: api.Promise{Epsilon: "3", Delta: "1e-7"}, NextTranche: &next,
		Advice: "about 5 more counts at epsilon 0.1, and more from 2026-12-11 18:00:00 UTC",
	}
	spent := amountsMade{Epsilon: big.NewRat(1, 2), Rho: big.NewRat(45, 1000)}
	all := []movement{{At: opened, Kind: "limit", Moved: nothing(), Used: nothing()},
		{At: now.AddDate(0, 0, -1), Kind: "reserve", Moved: spent, Used: spent}}
	c := &budgetForecastCommand{Days: 10, Windows: 6}
	f, err := c.foresee(account, all, now)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	(&app{Streams: Streams{Out: &out}}).showForecast(f)
	const want = ` account     | used | spent       | reserved    | left                     | limit                                              | set by | lifetime              | within a year
-------------+------+-------------+-------------+--------------------------+----------------------------------------------------+--------+-----------------------+-----------------------
 analyst:ana | 50 % | epsilon 0.4 | epsilon 0.1 | epsilon 0.5 (delta 5e-8) | approx epsilon 3 delta 1e-7, 1 a query, 1 each 30d | policy | epsilon 3, delta 1e-7 | epsilon 3, delta 1e-7
 analyst:ana: about 5 more counts at epsilon 0.1, and more from 2026-12-11 18:00:00 UTC
 epsilon 0.05 a day in the last 10 days
 from                | released  | worst case            | counts at 0.1 | at this pace
---------------------+-----------+-----------------------+---------------+-----------------------------
 now                 | epsilon 1 | epsilon 1, delta 1e-7 |             5 | used up 2026-12-01 18:00:00
 2026-12-11 18:00:00 | epsilon 2 | epsilon 2, delta 1e-7 |            15 | used up 2026-12-31 18:00:00
 2027-01-10 18:00:00 | epsilon 3 | epsilon 3, delta 1e-7 |            25 | used up 2027-01-30 18:00:00
 at this pace the cap lasts until 2027-01-30; counts are those that fit if nothing is spent before
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// A limit of an older policy is said to be one.
func TestDueText(t *testing.T) {
	for _, due := range []bool{true, false} {
		var out bytes.Buffer
		(&app{Streams: Streams{Out: &out}}).showAccounts([]api.Account{{Account: "analyst:ana", Due: due}})
		if got := strings.Contains(out.String(), "\n analyst:ana: the limit is of an older policy; "); got != due {
			t.Errorf("due %t: %s", due, out.String())
		}
	}
}
