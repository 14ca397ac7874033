package main

import (
	"context"
	"fmt"

	"noisegate.example/api"
)

// modelFlags are those of commands that buy a model of rows: a fit, clusters, scores.
type modelFlags struct {
	From           string `required:"" help:"The table, or tables and joins, as after FROM." placeholder:"TABLE"`
	Where          string `help:"A condition on rows." placeholder:"CONDITION"`
	Dataset        string `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon        string `help:"Price in epsilon, with --delta. Without any price, the policy's default; none: refused." placeholder:"E" xor:"price"`
	Rho            string `help:"Price in rho (zCDP)." placeholder:"R" xor:"price"`
	Delta          string `help:"Delta at which epsilon is turned into rho; the policy's default when absent." placeholder:"D"`
	MaxRows        *int64 `help:"At most that many rows per person; tightens the policy's bound." placeholder:"N"`
	Estimate       bool   `help:"Show the price and the expected noise instead. Free."`
	IdempotencyKey string `help:"Name of the request: repeating it gives the first answer, free." placeholder:"KEY"`
	atMostFlag
	gatewayFlags
}

// shown asks for something and shows it: as JSON, or for people.
func shown[R, A any](ctx context.Context, a *app, asJSON bool, request R, ask func(context.Context, R) (*A, error),
	show func(*app, *A)) error {
	answer, err := ask(ctx, request)
	if said, err := a.said(asJSON, answer, err); said {
		return err
	}
	show(a, answer)
	return nil
}

// named buys under a name: repeating it gives the first answer.
func named[R, A any](key string, buy func(context.Context, R, string) (*A, error)) func(context.Context, R) (*A, error) {
	return func(ctx context.Context, r R) (*A, error) { return buy(ctx, r, key) }
}

func (a *app) showSale(s api.Sale) {
	a.showNotes(s.Notes)
	if s.Replayed {
		fmt.Fprintf(a.Out, " replay of %s: nothing spent (%s left)\n", s.ReleaseID, amountsText(s.Remaining, down))
		return
	}
	fmt.Fprintf(a.Out, " spent %s (%s left) · %s · ask again: same answer, free\n", priceText(s.Spent, s.Remaining),
		amountsText(inCurrencyOf(s.Spent, s.Remaining), down), s.ReleaseID)
}

func (a *app) showQuote(q api.Quote) {
	a.showNotes(q.Notes)
	afford := "not affordable"
	if q.Affordable {
		afford = "affordable"
	}
	fmt.Fprintf(a.Out, " price %s: %s (%s left) · nothing was spent\n", priceText(q.Price, q.Remaining), afford,
		amountsText(inCurrencyOf(q.Price, q.Remaining), down))
}
