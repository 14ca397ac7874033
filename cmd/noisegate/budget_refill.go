package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/mechanisms"
)

type budgetRefillCommand struct {
	Dataset string `arg:"" help:"The dataset."`
	Account string `arg:"" help:"dataset, group:NAME, analyst:NAME or ensemble:NAME."`
	Epsilon string `help:"How much epsilon is added (approx, pure)." placeholder:"E"`
	Rho     string `help:"How much rho is added (zcdp)." placeholder:"R"`
	Delta   string `help:"How much delta is added." placeholder:"D"`
	Reason  string `help:"Why; it stands in the journal." placeholder:"TEXT"`
	Key     string `type:"path" help:"Sign with this key, which budget key made; needed where the dataset has keys of stewards. What is signed is shown." placeholder:"FILE"`
	Print   bool   `help:"Sign with --key, print the signature and change nothing: the console sends it."`
	secondFlags
	gatewayFlags
}

func (c *budgetRefillCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	signature, err := c.given(c.Key)
	if err != nil {
		return err
	}
	refill := api.Refill{Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta), Reason: c.Reason,
		Signature: signature}
	if c.Print && c.Key == "" {
		return usage(errors.New("--print prints what --key signs"))
	}
	if c.Key != "" {
		signer, err := readSigner(c.Key)
		if err != nil {
			return err
		}
		before, err := client.Account(ctx, c.Dataset, c.Account)
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		ledger, err := ledgerOf(ctx, client, c.Dataset)
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		if refill.Signature, err = a.signRefill(signer, ledger, *before, refill, c.pair()); err != nil {
			return usage(err)
		}
		if c.For != "" || c.Print {
			return printJSON(a.Out, refill.Signature)
		}
	}
	account, err := client.Refill(ctx, c.Dataset, c.Account, refill)
	return a.showAccount(c.JSON, account, err)
}

// signRefill signs a refill of an account as it is now, and shows what it signs: the lifetime afterwards is computed
// here, and not by the gateway.
func (a *app) signRefill(signer *journal.Signer, ledger string, account api.Account, asked api.Refill,
	pair budget.Pair) (*api.RefillSignature, error) {
	refill := budget.Refill{Account: accountIDOf(account), Reason: asked.Reason}
	for _, err := range []error{
		readDecimal(asked.Epsilon, &refill.Epsilon, mechanisms.ParseEpsilon), readDecimal(asked.Rho, &refill.Rho, mechanisms.ParseRho),
		readDecimal(asked.Delta, &refill.Delta, mechanisms.ParseDelta),
	} {
		if err != nil {
			return nil, err
		}
	}
	limit, err := limitOf(account.Limit)
	if err != nil {
		return nil, err
	}
	lifetime, err := limit.After(refill)
	if err != nil {
		return nil, err
	}
	refill.Mandate = &budget.Mandate{Number: account.Refills + 1, Lifetime: lifetime, At: a.now(), Pair: pair, Ledger: ledger}
	refill = signer.SignRefill(refill)
	if _, err := a.Err.Write(refill.Text()); err != nil {
		return nil, err
	}
	return signatureOf(*refill.Mandate), nil
}

func accountIDOf(account api.Account) budget.AccountID {
	scope, name, _ := strings.Cut(account.Account, ":")
	return budget.AccountID{Dataset: account.Dataset, Scope: budget.Scope(scope), Name: name}
}

// readDecimal reads an amount that may be missing.
func readDecimal[T any](text api.Decimal, into *T, parse func(string) (T, error)) (err error) {
	if text != "" {
		*into, err = parse(string(text))
	}
	return err
}

type budgetKeyCommand struct {
	Out     string `arg:"" type:"path" help:"The file of the private key, which must not exist."`
	Steward string `help:"Whose key it is: the subject of their tokens. Needed where changes take two stewards." placeholder:"NAME"`
}

func (c *budgetKeyCommand) run(_ context.Context, a *app) error {
	if strings.ContainsFunc(c.Steward, unicode.IsControl) || strings.TrimSpace(c.Steward) != c.Steward {
		return usage(errors.New("--steward is the subject of somebody's tokens"))
	}
	private, err := journal.NewKeyText()
	if err != nil {
		return err
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		return err
	}
	public, err := journal.PublicKeyText(signer.Public())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usage(err)
	}
	_, err = file.Write(private)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "the private key %s is in %s; the public key:\n", journal.KeyID(signer.Public()), c.Out)
	if c.Steward != "" {
		public = append([]byte("steward: "+c.Steward+"\n"), public...)
	}
	_, err = a.Out.Write(public)
	return err
}
