package main

import (
	"context"
	"errors"
	"fmt"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

type budgetSetCommand struct {
	Dataset            string `arg:"" help:"The dataset."`
	Account            string `arg:"" help:"dataset, group:NAME, analyst:NAME or ensemble:NAME."`
	Form               string `enum:"approx,pure,zcdp," default:"" help:"How the account adds up: approx, pure or zcdp; as it does when absent, approx for a new one."`
	Epsilon            string `help:"Cap in epsilon (approx, pure)." placeholder:"E"`
	Rho                string `help:"Cap in rho (zcdp)." placeholder:"R"`
	Delta              string `help:"The delta of the promise." placeholder:"D"`
	MaxEpsilonPerQuery string `help:"Cap on one query." placeholder:"E"`
	ReplayOnly         bool   `help:"May only read answers that exist already."`
	TrancheEvery       string `help:"Release the cap in parts, one each period: 12h, 30d." placeholder:"PERIOD"`
	TrancheEpsilon     string `help:"How much each part is (approx, pure)." placeholder:"E"`
	TrancheRho         string `help:"How much each part is (zcdp)." placeholder:"R"`
	RateEpsilon        string `help:"A brake: at most this much within --rate-per." placeholder:"E"`
	RatePer            string `help:"How long it takes to wear off: 1m, 1h." placeholder:"PERIOD"`
	New                bool   `help:"Open an account that nobody has yet."`
	Replace            bool   `help:"Forget what the limit says and is not given here; otherwise the rest stays."`
	Key                string `type:"path" help:"The key to sign with, for --for." placeholder:"FILE"`
	secondFlags
	gatewayFlags
}

// run changes what is given and keeps the rest of the limit, so that nothing is dropped by not being repeated.
func (c *budgetSetCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	before, err := client.Account(ctx, c.Dataset, c.Account)
	var problem *api.Problem
	switch {
	case errors.As(err, &problem) && problem.Code == string(fault.CodeRequestNotFound):
		if !c.New {
			return usage(fmt.Errorf("nobody has the account %s of %s: --new opens it, if the name is right", c.Account, c.Dataset))
		}
		before = nil
	case err != nil:
		return a.refused(c.JSON, "", err)
	}
	limit := api.BudgetLimit{}
	if before != nil && !c.Replace {
		limit = before.Limit
	}
	change := api.LimitChange{BudgetLimit: c.change(limit)}
	if change.Signature, err = c.given(c.Key); err != nil {
		return err
	}
	if c.Key != "" {
		return c.sign(ctx, a, client, before, change.BudgetLimit)
	}
	account, err := client.ChangeAccount(ctx, c.Dataset, c.Account, change)
	if err == nil && before != nil && !c.JSON {
		fmt.Fprintf(a.Out, "%s: %s → %s\n", account.Account, limitText(before.Limit), limitText(account.Limit))
	}
	return a.showAccount(c.JSON, account, err)
}

// sign signs the change as the second steward, and prints the signature.
func (c *budgetSetCommand) sign(ctx context.Context, a *app, client *api.Client, before *api.Account, limit api.BudgetLimit) error {
	if c.For == "" {
		return usage(errors.New("--key signs as the second steward for --for NAME"))
	}
	signer, err := readSigner(c.Key)
	if err != nil {
		return err
	}
	ledger, err := ledgerOf(ctx, client, c.Dataset)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	id := accountIDOf(api.Account{Dataset: c.Dataset, Account: c.Account})
	signature, err := a.signLimit(signer, ledger, before, id, limit, c.pair())
	if err != nil {
		return usage(err)
	}
	return printJSON(a.Out, signature)
}

// change applies what is given to a limit. Another form has other amounts: those of the old one go.
func (c *budgetSetCommand) change(limit api.BudgetLimit) api.BudgetLimit {
	set := func(to *api.Decimal, text string) {
		if text != "" {
			*to = api.Decimal(text)
		}
	}
	switch {
	case c.ReplayOnly:
		return api.BudgetLimit{ReplayOnly: true}
	case c.Form != "" && c.Form != limit.Form:
		limit = api.BudgetLimit{Form: c.Form, Delta: limit.Delta, MaxEpsilonPerQuery: limit.MaxEpsilonPerQuery, Rate: limit.Rate}
		if c.Form == "pure" {
			limit.Delta = ""
		}
	case limit.Form == "":
		limit.Form = "approx"
	}
	limit.ReplayOnly = false
	set(&limit.Epsilon, c.Epsilon)
	set(&limit.Rho, c.Rho)
	set(&limit.Delta, c.Delta)
	set(&limit.MaxEpsilonPerQuery, c.MaxEpsilonPerQuery)
	if c.TrancheEvery != "" || c.TrancheEpsilon != "" || c.TrancheRho != "" {
		tranche := api.Tranche{}
		if limit.Tranche != nil {
			tranche = *limit.Tranche
		}
		if c.TrancheEvery != "" {
			tranche.Every = c.TrancheEvery
		}
		set(&tranche.Epsilon, c.TrancheEpsilon)
		set(&tranche.Rho, c.TrancheRho)
		limit.Tranche = &tranche
	}
	if c.RateEpsilon != "" || c.RatePer != "" {
		rate := api.Rate{}
		if limit.Rate != nil {
			rate = *limit.Rate
		}
		if c.RatePer != "" {
			rate.Per = c.RatePer
		}
		set(&rate.Epsilon, c.RateEpsilon)
		limit.Rate = &rate
	}
	return limit
}
