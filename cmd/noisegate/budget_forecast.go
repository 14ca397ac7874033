package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
)

type budgetForecastCommand struct {
	Days    int `default:"7" help:"How many days back the pace is taken from."`
	Windows int `default:"6" help:"How many tranches to show, the present one among them."`
	accountFlags
}

// forecast is how long an account lasts.
type forecast struct {
	Account    api.Account      `json:"account"`
	Currency   string           `json:"currency"`    // epsilon or rho
	Days       int              `json:"days"`        // that were looked at
	SpentADay  api.Decimal      `json:"spent_a_day"` // in the mean
	Counts     api.Decimal      `json:"counts_epsilon"`
	Windows    []forecastWindow `json:"windows"`     // the present tranche and those that open next
	LastsUntil *time.Time       `json:"lasts_until"` // when all of the cap is used up at that pace; null: not within a century, or never
}

// forecastWindow is a time in which no more of the cap is released.
type forecastWindow struct {
	From      time.Time   `json:"from"`
	Until     *time.Time  `json:"until"`      // when more is released; null: all is
	Released  api.Amounts `json:"released"`   // of the cap
	WorstCase api.Promise `json:"worst_case"` // what can be lost until the window ends
	Counts    int64       `json:"counts"`     // that fit at its beginning, if nothing is spent before
	UsedUp    *time.Time  `json:"used_up"`    // when what is released is used up at the pace; null: not in this window
}

func (c *budgetForecastCommand) run(ctx context.Context, a *app) error {
	if c.Days < 1 || c.Days > 3660 || c.Windows < 1 || c.Windows > 1000 {
		return usage(errors.New("--days must be from 1 to 3660, --windows from 1 to 1000"))
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
	f, err := c.foresee(*account, all, a.now().UTC().Truncate(time.Second))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Out, f)
	}
	a.showForecast(f)
	return nil
}

// foresee takes the pace from the last days and walks over the tranches that open.
func (c *budgetForecastCommand) foresee(account api.Account, all []movement, now time.Time) (*forecast, error) {
	b, err := balanceOf(account, all)
	if err != nil {
		return nil, err
	}
	f := &forecast{Account: account, Currency: "epsilon", Days: c.Days}
	of := func(m amountsMade) *big.Rat { return m.Epsilon }
	if b.InRho() {
		f.Currency, of = "rho", func(m amountsMade) *big.Rat { return m.Rho }
	}
	pace := new(big.Rat)
	for _, m := range all {
		if m.At.After(now.AddDate(0, 0, -c.Days)) {
			pace.Add(pace, of(m.Moved))
		}
	}
	pace.Quo(pace, big.NewRat(int64(c.Days), 1))
	f.SpentADay = "0"
	if pace.Sign() != 0 {
		f.SpentADay = api.Decimal(up.shorten(api.Decimal(pace.FloatString(9))))
	}
	each := mechanisms.EpsilonUnit / 10
	if b.Limit.PerQuery > 0 {
		each = min(each, b.Limit.PerQuery)
	}
	perDay, _ := pace.Float64()
	walked := b.Forecast(budget.ForecastParameters{Now: now, PerDay: perDay, Counts: each, Windows: c.Windows})
	f.Counts, f.LastsUntil = api.Decimal(each.String()), known(walked.LastsUntil)
	for _, w := range walked.Windows {
		f.Windows = append(f.Windows, windowOf(w, f.Currency))
	}
	return f, nil
}

func windowOf(w budget.Window, currency string) forecastWindow {
	shown := forecastWindow{From: w.From, Until: known(w.Until), Counts: w.Counts, UsedUp: known(w.UsedUp)}
	if shown.Released.Rho = api.Decimal(w.Released.Rho.String()); currency == "epsilon" {
		shown.Released.Epsilon = api.Decimal(w.Released.Epsilon.String())
	}
	promise := w.Released.Promise()
	if shown.WorstCase.Delta = api.Decimal(promise.Delta.String()); promise.Bounded {
		shown.WorstCase.Epsilon = api.Decimal(promise.Epsilon.String())
	}
	return shown
}

// known is a time, or nil for none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// balanceOf is an account as the ledger has it. The first movement opened it.
func balanceOf(account api.Account, all []movement) (b budget.Balance, err error) {
	b.ID, b.Frozen = accountIDOf(account), account.Frozen
	if b.Limit, err = limitOf(account.Limit); err != nil {
		return b, err
	}
	var spentErr, reservedErr error
	b.Spent, spentErr = lossOf(account.Spent)
	b.Reserved, reservedErr = lossOf(account.Reserved)
	if len(all) > 0 {
		b.Opened = all[0].At
	}
	return b, errors.Join(spentErr, reservedErr)
}

// limitOf reads a limit that the gateway shows; of the rate nothing is needed, which promises nothing.
func limitOf(l api.BudgetLimit) (budget.Limit, error) {
	spec := budget.LimitSpec{Form: budget.Form(l.Form), ReplayOnly: l.ReplayOnly}
	tranche := api.Tranche{}
	if l.Tranche != nil {
		var ok bool
		tranche = *l.Tranche
		if spec.Tranche.Every, ok = catalog.ParsePeriod(tranche.Every); !ok {
			return budget.Limit{}, fmt.Errorf("the account's limit has a tranche each %q", tranche.Every)
		}
	}
	for _, part := range []struct {
		text api.Decimal
		into **big.Rat
	}{
		{l.Epsilon, &spec.Epsilon}, {l.Rho, &spec.Rho}, {l.Delta, &spec.Delta}, {l.MaxEpsilonPerQuery, &spec.MaxEpsilonPerQuery},
		{tranche.Epsilon, &spec.Tranche.Epsilon}, {tranche.Rho, &spec.Tranche.Rho},
	} {
		if err := readDecimal(part.text, part.into, mechanisms.ParseDecimal); err != nil {
			return budget.Limit{}, fmt.Errorf("the account's limit: %w", err)
		}
	}
	return budget.NewLimit(spec)
}

func (a *app) showForecast(f *forecast) {
	a.showAccounts([]api.Account{f.Account})
	fmt.Fprintf(a.Out, " %s %s a day in the last %d days\n", f.Currency, f.SpentADay, f.Days)
	t := &table{grouped: a.terminal}
	t.header("from", "released", "worst case", "counts at "+string(f.Counts), "at this pace")
	for i, w := range f.Windows {
		from, pace := w.From.Format(time.DateTime), "not used up"
		if i == 0 {
			from = "now"
		}
		switch {
		case w.UsedUp == nil:
		case w.UsedUp.Equal(w.From):
			pace = "used up before"
		default:
			pace = "used up " + w.UsedUp.Format(time.DateTime)
		}
		t.row(from, amountsText(w.Released, down), promiseText(w.WorstCase), fmt.Sprint(w.Counts), pace)
	}
	t.write(a.Out)
	until := "at this pace the cap lasts for more than a century"
	if f.LastsUntil != nil {
		until = "at this pace the cap lasts until " + f.LastsUntil.Format(time.DateOnly)
	}
	fmt.Fprintf(a.Out, " %s; counts are those that fit if nothing is spent before\n", until)
}
