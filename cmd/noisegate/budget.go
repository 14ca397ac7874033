package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"noisegate/api"
)

type budgetCommands struct {
	Show budgetShowCommand `cmd:"" help:"Show your own budgets; stewards see accounts with --accounts."`
	Set  budgetSetCommand  `cmd:"" help:"Set the limit of an account (stewards)."`
}

type budgetShowCommand struct {
	Dataset  string `arg:"" optional:"" help:"The dataset; all when absent."`
	Accounts bool   `help:"All accounts of the dataset (stewards)."`
	gatewayFlags
}

func (c *budgetShowCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	if c.Accounts {
		return c.showAccounts(ctx, a, client)
	}
	budgets, err := client.Budget(ctx, c.Dataset)
	if err != nil {
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
	t.header("dataset", "account", "limit", "spent", "reserved", "left")
	for _, b := range budgets.Budgets {
		t.row(b.Dataset, b.Account, limitText(b.Limit), amountsText(b.Spent, up), amountsText(b.Reserved, up), amountsText(b.Remaining, down))
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
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, list)
	}
	a.showAccounts(list.Accounts)
	return nil
}

func (a *app) showAccounts(accounts []api.Account) {
	t := &table{grouped: a.terminal}
	t.header("account", "limit", "set by", "spent", "reserved", "left")
	for _, b := range accounts {
		t.row(b.Account, limitText(b.Limit), b.Origin, amountsText(b.Spent, up), amountsText(b.Reserved, up), amountsText(b.Remaining, down))
	}
	t.write(a.Out)
}

type budgetSetCommand struct {
	Dataset            string `arg:"" help:"The dataset."`
	Account            string `arg:"" help:"dataset, group:NAME or analyst:NAME."`
	Form               string `enum:"approx,pure,zcdp" default:"approx" help:"How the account adds up: approx, pure or zcdp."`
	Epsilon            string `help:"Cap in epsilon (approx, pure)." placeholder:"E"`
	Rho                string `help:"Cap in rho (zcdp)." placeholder:"R"`
	Delta              string `help:"The delta of the promise." placeholder:"D"`
	MaxEpsilonPerQuery string `help:"Cap on one query." placeholder:"E"`
	ReplayOnly         bool   `help:"May only read answers that exist already."`
	gatewayFlags
}

func (c *budgetSetCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	limit := api.BudgetLimit{Form: c.Form, Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta),
		MaxEpsilonPerQuery: api.Decimal(c.MaxEpsilonPerQuery), ReplayOnly: c.ReplayOnly}
	if c.ReplayOnly {
		limit.Form = ""
	}
	account, err := client.SetAccount(ctx, c.Dataset, c.Account, limit)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, account)
	}
	a.showAccounts([]api.Account{*account})
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
	return text
}

// amountsText is a loss in the currency that people read: ε when there is one, else ρ. Digits that nobody reads are rounded
// away: upwards for what was spent, downwards for what is left.
func amountsText(a api.Amounts, digits rounding) string {
	text := "epsilon " + digits.shorten(a.Epsilon)
	if a.Epsilon == "" {
		text = "rho " + digits.shorten(a.Rho)
	}
	if a.Delta != "" && a.Delta != "0" {
		text += ", delta " + string(a.Delta)
	}
	return text
}

// rounding is a direction.
type rounding int

const (
	up   rounding = iota // what was spent
	down                 // what is left
)

// shorten rounds an amount to six decimal places; small ones are left alone.
func (r rounding) shorten(amount api.Decimal) string {
	const places = 6
	value, ok := new(big.Rat).SetString(string(amount))
	_, fraction, _ := strings.Cut(string(amount), ".")
	if !ok || len(fraction) <= places || value.Cmp(big.NewRat(1, 100)) < 0 {
		return string(amount)
	}
	unit := big.NewInt(1_000_000)
	scaled := new(big.Int).Mul(value.Num(), unit)
	if r == up {
		scaled.Add(scaled, new(big.Int).Sub(value.Denom(), big.NewInt(1)))
	}
	scaled.Div(scaled, value.Denom())
	text := new(big.Rat).SetFrac(scaled, unit).FloatString(places)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
