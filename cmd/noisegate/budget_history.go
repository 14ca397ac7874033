package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"noisegate/api"
)

// movement is one entry of an account's history.
type movement struct {
	At        time.Time   `json:"at"`
	Kind      string      `json:"kind"`
	Subject   string      `json:"subject"`
	ReleaseID string      `json:"release_id,omitempty"`
	Moved     amountsMade `json:"moved"` // negative when a charge ended as less than was reserved
	Used      amountsMade `json:"used"`  // spent and reserved, from here on
}

// amountsMade are amounts that were added up. Losses without a finite ε count in ρ only.
type amountsMade struct {
	Epsilon *big.Rat
	Rho     *big.Rat
}

// MarshalJSON writes decimals, as the API does.
func (m amountsMade) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]api.Decimal{"epsilon": decimalOf(m.Epsilon), "rho": decimalOf(m.Rho)})
}

func decimalOf(r *big.Rat) api.Decimal {
	places, _ := r.FloatPrec() // amounts are decimals, and so are their sums
	return api.Decimal(r.FloatString(places))
}

func (m amountsMade) plus(o amountsMade) amountsMade {
	return amountsMade{new(big.Rat).Add(m.Epsilon, o.Epsilon), new(big.Rat).Add(m.Rho, o.Rho)}
}

func (m amountsMade) minus(o amountsMade) amountsMade {
	return amountsMade{new(big.Rat).Sub(m.Epsilon, o.Epsilon), new(big.Rat).Sub(m.Rho, o.Rho)}
}

// nothing is the sum of no amounts.
func nothing() amountsMade { return amountsMade{new(big.Rat), new(big.Rat)} }

func readAmounts(a api.Amounts) (amountsMade, error) {
	sum := nothing()
	for _, part := range []struct {
		text api.Decimal
		to   *big.Rat
	}{{a.Epsilon, sum.Epsilon}, {a.Rho, sum.Rho}} {
		if part.text == "" {
			continue
		}
		if _, ok := part.to.SetString(string(part.text)); !ok {
			return sum, fmt.Errorf("the journal has an amount that is none: %s", part.text)
		}
	}
	return sum, nil
}

// movements finds an account's history in a journal.
func (j *journal) movements(account string) (all []movement, err error) {
	number := int64(-1) // of the account; its first entry opens it and says who it is
	counts := map[string]amountsMade{}
	used := nothing()
	for _, e := range j.entries {
		if e.Account != "" && len(e.AccountIDs) == 1 {
			name, err := nameOf(e.Account)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.Seq, err)
			}
			if name == account {
				number = e.AccountIDs[0]
			}
		}
		if !slices.Contains(e.AccountIDs, number) {
			continue
		}
		m := movement{At: e.At, Kind: e.Kind, Subject: e.Subject, ReleaseID: e.ReleaseID, Moved: nothing(), Used: used}
		if e.ReleaseID != "" {
			now, err := readAmounts(e.Amounts)
			if err != nil {
				return nil, err
			}
			before, ok := counts[e.ReleaseID]
			if !ok {
				before = nothing()
			}
			m.Moved, counts[e.ReleaseID] = now.minus(before), now
			used = used.plus(m.Moved)
			m.Used = used
		}
		all = append(all, m)
	}
	return all, nil
}

// nameOf is an account as the journal keeps it, as people name it.
func nameOf(text string) (string, error) {
	var record struct{ Scope, Name string }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", err
	}
	if record.Name == "" {
		return record.Scope, nil
	}
	return record.Scope + ":" + record.Name, nil
}

type budgetHistoryCommand struct{ accountFlags }

func (c *budgetHistoryCommand) run(ctx context.Context, a *app) error {
	all, err := c.movements(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, m := range all {
			if err := printJSON(a.Out, m); err != nil {
				return err
			}
		}
		return nil
	}
	t := &table{grouped: a.terminal}
	t.header("at", "what", "who", "release", "epsilon", "epsilon used", "rho used")
	for _, m := range all {
		moved := ""
		if m.ReleaseID != "" {
			moved = up.shorten(decimalOf(m.Moved.Epsilon))
		}
		t.row(m.At.UTC().Format(time.DateTime), m.Kind, m.Subject, m.ReleaseID, moved, up.shorten(decimalOf(m.Used.Epsilon)),
			up.shorten(decimalOf(m.Used.Rho)))
	}
	t.write(a.Out)
	return nil
}

func (c *accountFlags) movements(ctx context.Context, a *app) ([]movement, error) {
	client, err := c.client(a)
	if err != nil {
		return nil, err
	}
	j, err := fetchJournal(ctx, client, c.Dataset)
	if err != nil {
		return nil, a.refused(c.JSON, "", err)
	}
	return j.movements(c.Account)
}

type budgetForecastCommand struct {
	Days int `default:"7" help:"How many days back the pace is taken from."`
	accountFlags
}

// forecast is how long an account lasts.
type forecast struct {
	Account    api.Account `json:"account"`
	Currency   string      `json:"currency"`    // epsilon or rho
	Days       int         `json:"days"`        // that were looked at
	SpentADay  api.Decimal `json:"spent_a_day"` // in the mean
	LastsUntil *time.Time  `json:"lasts_until"` // null: nothing was spent, or more than a century
}

func (c *budgetForecastCommand) run(ctx context.Context, a *app) error {
	if c.Days < 1 || c.Days > 3660 {
		return usage(fmt.Errorf("--days must be from 1 to 3660"))
	}
	client, err := c.client(a)
	if err != nil {
		return err
	}
	account, err := client.Account(ctx, c.Dataset, c.Account)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	all, err := c.movements(ctx, a)
	if err != nil {
		return err
	}
	f, err := foresee(*account, all, c.Days, a.now())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Out, f)
	}
	a.showAccounts([]api.Account{*account})
	until := "at this pace it lasts for more than a century"
	if f.LastsUntil != nil {
		until = "at this pace it lasts until " + f.LastsUntil.Format(time.DateOnly)
	}
	_, err = fmt.Fprintf(a.Out, " %s %s a day in the last %d days; %s\n", f.Currency, f.SpentADay, f.Days, until)
	return err
}

// foresee divides what is left by the pace of the last days. Tranches that open meanwhile are not counted: it errs on the early side.
func foresee(account api.Account, all []movement, days int, now time.Time) (*forecast, error) {
	f := &forecast{Account: account, Currency: "epsilon", Days: days}
	left := account.Remaining.Epsilon
	of := func(m amountsMade) *big.Rat { return m.Epsilon }
	if account.Limit.Form == "zcdp" {
		f.Currency, left = "rho", account.Remaining.Rho
		of = func(m amountsMade) *big.Rat { return m.Rho }
	}
	pace := new(big.Rat)
	for _, m := range all {
		if m.At.After(now.AddDate(0, 0, -days)) {
			pace.Add(pace, of(m.Moved))
		}
	}
	pace.Quo(pace, big.NewRat(int64(days), 1))
	f.SpentADay = api.Decimal(up.shorten(api.Decimal(pace.FloatString(9))))
	if pace.Sign() == 0 {
		f.SpentADay = "0"
	}
	rest, ok := new(big.Rat).SetString(string(left))
	if !ok && left != "" {
		return nil, fmt.Errorf("what is left is no amount: %s", left)
	}
	if ok && pace.Sign() > 0 {
		const century = 36525
		if lasts, _ := new(big.Rat).Quo(rest, pace).Float64(); lasts < century {
			until := now.Add(time.Duration(lasts * 24 * float64(time.Hour))).UTC()
			f.LastsUntil = &until
		}
	}
	return f, nil
}
