package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

type budgetCommands struct {
	Show          budgetShowCommand          `cmd:"" help:"Show your own budgets; stewards see accounts with --accounts."`
	Set           budgetSetCommand           `cmd:"" help:"Set the limit of an account (stewards)."`
	Refill        budgetRefillCommand        `cmd:"" help:"Raise the cap of an account, and with it what it may lose in a lifetime (stewards)."`
	Freeze        budgetFreezeCommand        `cmd:"" help:"Stop all charges on an account; replays stay free (stewards)."`
	Thaw          budgetThawCommand          `cmd:"" help:"Let charges on an account go on (stewards)."`
	ResetFailures budgetResetFailuresCommand `cmd:"" help:"Let an analyst's failures until now count no more (stewards)."`
	Clock         budgetClockCommand         `cmd:"" help:"Let the time of a ledger go on from now, after a clock was wrong (stewards)."`
	History       budgetHistoryCommand       `cmd:"" help:"Show what moved an account, oldest first (stewards)."`
	Forecast      budgetForecastCommand      `cmd:"" help:"Show how long an account lasts at the pace of the last days (stewards)."`
	Key           budgetKeyCommand           `cmd:"" help:"Make a steward's key, which signs refills, and print the public key for datasets.NAME.steward_keys_file."`
}

type budgetShowCommand struct {
	Dataset  string `arg:"" optional:"" help:"The dataset; all when absent."`
	Named    string `name:"dataset" hidden:"" help:"The dataset, as query takes it."`
	Accounts bool   `help:"All accounts of the dataset (stewards)."`
	gatewayFlags
}

func (c *budgetShowCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	c.Dataset = cmp.Or(c.Dataset, c.Named)
	if c.Accounts {
		return c.showAccounts(ctx, a, client)
	}
	budgets, err := client.Budget(ctx, c.Dataset)
	if err != nil {
		if problem := (*api.Problem)(nil); errors.As(err, &problem) && problem.Code == string(fault.CodeAuthForbidden) {
			problem.Hint = "stewards have no budget of their own: noisegate budget show DATASET --accounts shows those of a dataset"
		}
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, budgets)
	}
	if len(budgets.Budgets) == 0 {
		fmt.Fprintln(a.Out, "you have no budget; ask the data steward")
		return nil
	}
	t := &table{grouped: a.terminal}
	t.header("dataset", "account", "used", "spent", "reserved", "left", "limit")
	for _, b := range budgets.Budgets {
		t.row(append(append([]string{b.Dataset, b.Account}, usageCells(b.Usage, b.Spent, b.Reserved, b.Remaining)...), limitText(b.Limit))...)
		for _, s := range b.Shared {
			t.row(b.Dataset, s.Account, "", "", "", "", sharedText(s))
		}
	}
	t.write(a.Out)
	for _, b := range budgets.Budgets {
		if b.Advice != "" {
			fmt.Fprintf(a.Out, " %s: %s\n", b.Dataset, b.Advice)
		}
	}
	return nil
}

func (c *budgetShowCommand) showAccounts(ctx context.Context, a *app, client *api.Client) error {
	if c.Dataset == "" {
		return usage(errors.New("--accounts needs a dataset"))
	}
	list, err := client.Accounts(ctx, c.Dataset)
	if said, err := a.said(c.JSON, list, err); said {
		return err
	}
	a.showAccounts(list.Accounts)
	return nil
}

func (a *app) showAccounts(accounts []api.Account) {
	t := &table{grouped: a.terminal}
	t.header("account", "used", "spent", "reserved", "left", "limit", "set by", "lifetime", "within a year")
	for _, b := range accounts {
		t.row(append(append([]string{b.Account}, usageCells(b.Usage, b.Spent, b.Reserved, b.Remaining)...),
			limitText(b.Limit), b.Origin, promiseText(b.Lifetime), promiseText(b.WorstCase))...)
	}
	t.write(a.Out)
	for _, b := range accounts {
		if b.Due {
			fmt.Fprintf(a.Out, " %s: the limit is of an older policy; the one in force counts from the next charge on\n", b.Account)
		}
		if b.Advice != "" {
			fmt.Fprintf(a.Out, " %s: %s\n", b.Account, b.Advice)
		}
	}
}

// promiseText is the most that can be lost, for people.
func promiseText(p api.Promise) string {
	return amountsText(api.Amounts{Epsilon: p.Epsilon, Rho: "without bound", Delta: p.Delta}, up)
}

// showAccount shows what became of an account.
func (a *app) showAccount(asJSON bool, account *api.Account, err error) error {
	if said, err := a.said(asJSON, account, err); said {
		return err
	}
	a.showAccounts([]api.Account{*account})
	return nil
}

type accountFlags struct {
	Dataset string `arg:"" help:"The dataset."`
	Account string `arg:"" help:"dataset, group:NAME, analyst:NAME or ensemble:NAME."`
	gatewayFlags
}

func (c *accountFlags) freeze(ctx context.Context, a *app, frozen bool) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	account, err := client.Freeze(ctx, c.Dataset, c.Account, frozen)
	return a.showAccount(c.JSON, account, err)
}

type budgetFreezeCommand struct{ accountFlags }

func (c *budgetFreezeCommand) run(ctx context.Context, a *app) error { return c.freeze(ctx, a, true) }

type budgetThawCommand struct{ accountFlags }

func (c *budgetThawCommand) run(ctx context.Context, a *app) error { return c.freeze(ctx, a, false) }

type budgetResetFailuresCommand struct {
	Dataset string `arg:"" help:"The dataset."`
	Account string `arg:"" help:"analyst:NAME."`
	gatewayFlags
}

func (c *budgetResetFailuresCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	reset, err := client.ResetFailures(ctx, c.Dataset, c.Account)
	if said, err := a.said(c.JSON, reset, err); said {
		return err
	}
	fmt.Fprintf(a.Out, "%s had %d failures on %s within 24 hours; none of them counts any more (%d stop further questions)\n",
		reset.Account, reset.Reset, reset.Dataset, reset.MaxFailures)
	return nil
}

// limitText is a cap in few words.
func limitText(l api.BudgetLimit) string {
	text := l.Form
	switch {
	case l.ReplayOnly:
		return "replays only"
	case l.Rho != "":
		text += " rho " + string(l.Rho)
	case l.Epsilon != "":
		text += " epsilon " + string(l.Epsilon)
	}
	if l.Delta != "" && l.Delta != "0" {
		text += " delta " + string(l.Delta)
	}
	if l.MaxEpsilonPerQuery != "" {
		text += ", " + string(l.MaxEpsilonPerQuery) + " a query"
	}
	if t := l.Tranche; t != nil {
		text += ", " + string(t.Epsilon+t.Rho) + " each " + t.Every
	}
	if r := l.Rate; r != nil {
		text += ", at most " + string(r.Epsilon) + " in " + r.Per
	}
	return text
}

// usageCells are the used share of a cap, and what is spent, reserved and left. All are in the currency of the rule that binds. They also
// show what the other rule counts, as long as the account could go on by it.
func usageCells(u api.Usage, spent, reserved, left api.Amounts) []string {
	if u.Rule == "" { // an older gateway
		return []string{"", amountsText(spent, up), amountsText(reserved, up), amountsText(left, down)}
	}
	return []string{string(u.Percent) + " %", inRule(u.Rule, spent, left, up), inRule(u.Rule, reserved, left, up),
		inRule(u.Rule, left, left, down)}
}

// inRule writes amounts in the currency of a rule. The other currencies that the account has some left of follow.
func inRule(rule string, a, left api.Amounts, digits rounding) string {
	amount, beside := "", []string{}
	for _, c := range []struct {
		name     string
		is, left api.Decimal
	}{{"epsilon", a.Epsilon, left.Epsilon}, {"rho", a.Rho, left.Rho}, {"delta", a.Delta, left.Delta}} {
		text := c.name + " " + digits.shorten(c.is)
		if c.name == rule {
			amount = text
		} else if isAmount(c.is) && isAmount(c.left) {
			beside = append(beside, text)
		}
	}
	if len(beside) > 0 {
		amount += " (" + strings.Join(beside, ", ") + ")"
	}
	return amount
}

// isAmount reports whether there is a number, and not 0.
func isAmount(d api.Decimal) bool { return d != "" && d != "0" }

// sharedText says of an account that others draw on too what may refuse a question.
func sharedText(s api.SharedAccount) string {
	text := "shared; figures are not shown"
	switch {
	case s.ReplayOnly:
		text += ", replays only"
	case s.MaxEpsilonPerQuery != "":
		text += ", " + string(s.MaxEpsilonPerQuery) + " a query"
	}
	return text
}

// amountsText is a loss in the currency that people read: ε when there is one, else ρ. Digits that nobody reads are rounded
// away: upwards for what was spent, downwards for what is left.
func amountsText(a api.Amounts, digits rounding) string {
	text := "epsilon " + digits.shorten(a.Epsilon)
	if !inEpsilon(a) {
		text = "rho " + digits.shorten(a.Rho)
	}
	if a.Delta != "" && a.Delta != "0" {
		text += ", delta " + string(a.Delta)
	}
	return text
}

// priceText is what is charged to an account with so much left. It is in the currency of the latter, and with the ε of a ρ.
func priceText(price, left api.Amounts) string {
	inRho := inCurrencyOf(left, price)
	text := amountsText(inRho, up)
	if inRho.Epsilon == "" && inEpsilon(price) && isAmount(price.Epsilon) {
		text += " for epsilon " + up.shorten(price.Epsilon)
	}
	return text
}

// inCurrencyOf leaves the ε out of an amount that is shown with one in ρ.
func inCurrencyOf(beside, a api.Amounts) api.Amounts {
	if !inEpsilon(beside) && a.Rho != "" {
		a.Epsilon = ""
	}
	return a
}

// inEpsilon reports whether the amounts are shown in ε. Sums with a tail have noise without a pure ε in them. An account of the form approx
// that paid for noise without a finite ε has none left, and goes on in ρ: "epsilon 0" would look as if it were used up.
func inEpsilon(a api.Amounts) bool {
	rho, bounded := new(big.Rat).SetString(string(a.Rho))
	return a.Epsilon != "" && a.Tail == "" && (a.Epsilon != "0" || !bounded || rho.Sign() == 0)
}

// rounding is a direction.
type rounding int

const (
	nearest rounding = iota
	up               // what was spent, and upper ends
	down             // what is left, and lower ends
)

// shorten rounds an amount to six decimal places, or to more where it has fewer than four digits that way. What is written
// with an exponent is left alone.
func (r rounding) shorten(amount api.Decimal) string {
	places := 6
	value, ok := new(big.Rat).SetString(string(amount))
	_, fraction, _ := strings.Cut(string(amount), ".")
	if !ok || value.Sign() <= 0 || strings.ContainsAny(fraction, "eE") {
		return string(amount)
	}
	unit := big.NewInt(1_000_000)
	for least := big.NewRat(1000, 1); places < len(fraction) && new(big.Rat).Mul(value, new(big.Rat).SetInt(unit)).Cmp(least) < 0; places++ {
		unit.Mul(unit, big.NewInt(10))
	}
	if len(fraction) <= places {
		return string(amount)
	}
	return strings.TrimRight(strings.TrimRight(r.text(value, places), "0"), ".")
}
