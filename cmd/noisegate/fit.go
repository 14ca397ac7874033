package main

import (
	"context"
	"fmt"

	"noisegate/api"
)

type fitCommand struct {
	Features       []string          `arg:"" sep:"none" help:"Features: numbers of a row, such as age or 'ln(1 + income)'."`
	From           string            `required:"" help:"The table, or tables and joins, as after FROM." placeholder:"TABLE"`
	Where          string            `help:"A condition on rows." placeholder:"CONDITION"`
	Target         string            `required:"" help:"What is predicted: a number of a row; 0 or 1 for a logistic model." placeholder:"EXPRESSION"`
	Model          string            `enum:"linear,ridge,logistic" default:"linear" help:"linear, ridge or logistic."`
	Method         string            `enum:"auto,moments,gradient" default:"auto" help:"auto, moments, or gradient (of logistic models, for which it is auto)."`
	Iterations     *int64            `help:"Passes over the rows by gradients; 30 when absent." placeholder:"N"`
	OneHot         []string          `name:"one-hot" sep:"none" help:"A feature with one column for each value of its domain; may be repeated." placeholder:"COLUMN"`
	Weights        map[string]string `name:"weight" help:"A feature with a larger weight has less noise, and the others more." placeholder:"FEATURE=W"`
	Dataset        string            `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon        string            `help:"Price in epsilon, with --delta. Without any price, the policy's default; none: refused." placeholder:"E" xor:"price"`
	Rho            string            `help:"Price in rho (zCDP)." placeholder:"R" xor:"price"`
	Delta          string            `help:"Delta at which epsilon is turned into rho; the policy's default when absent." placeholder:"D"`
	Confidence     *float64          `help:"Level of the intervals; 0.95 when absent." placeholder:"P"`
	MaxRows        *int64            `help:"At most that many rows per person; tightens the policy's bound." placeholder:"N"`
	Estimate       bool              `help:"Show the price and the expected noise instead. Free."`
	IdempotencyKey string            `help:"Name of the request: repeating it gives the first answer, free." placeholder:"KEY"`
	gatewayFlags
}

func (c *fitCommand) request() api.FitRequest {
	r := api.FitRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Target: c.Target, Model: c.Model, Method: c.Method,
		Iterations: c.Iterations, Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta),
		Confidence: c.Confidence, MaxRows: c.MaxRows, Weights: decimals(c.Weights)}
	for _, f := range c.Features {
		r.Features = append(r.Features, api.FitFeature{Column: f})
	}
	for _, f := range c.OneHot {
		r.Features = append(r.Features, api.FitFeature{Column: f, Encode: "one-hot"})
	}
	return r
}

func (c *fitCommand) run(ctx context.Context, a *app) error {
	client, err := c.clientFor(ctx, a, &c.Dataset)
	if err != nil {
		return err
	}
	if c.Estimate {
		estimate, err := client.EstimateFit(ctx, c.request())
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		return c.showEstimate(a, estimate)
	}
	answer, err := client.Fit(ctx, c.request(), c.IdempotencyKey)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	return c.show(a, answer)
}

func (c *fitCommand) show(a *app, answer *api.FitResponse) error {
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	level := 0.95
	if c.Confidence != nil {
		level = *c.Confidence
	}
	t := &table{}
	t.header("feature", "value", percent(level)+" interval", "scaled")
	for _, k := range append([]api.FitCoefficient{answer.Intercept}, answer.Coefficients...) {
		interval := ""
		if k.Interval != nil {
			interval = figure(k.Interval[0]) + " to " + figure(k.Interval[1])
		}
		t.row(k.Name, figure(k.Value), interval, figure(k.Scaled))
	}
	t.write(a.Out)
	a.showNotes(answer.Notes)
	a.showPaid(paid{answer.ReleaseID, answer.Replayed, answer.Spent, answer.Remaining})
	return nil
}

// paid is what an answer cost.
type paid struct {
	release          string
	replayed         bool
	spent, remaining api.Amounts
}

func (a *app) showPaid(p paid) {
	if p.replayed {
		fmt.Fprintf(a.Out, " replay of %s: nothing spent (%s left)\n", p.release, amountsText(p.remaining, down))
		return
	}
	fmt.Fprintf(a.Out, " spent %s (%s left) · %s · ask again: same answer, free\n", priceText(p.spent, p.remaining),
		amountsText(inCurrencyOf(p.spent, p.remaining), down), p.release)
}

func (a *app) showPrice(price, remaining api.Amounts, affordable bool) {
	afford := "not affordable"
	if affordable {
		afford = "affordable"
	}
	fmt.Fprintf(a.Out, " price %s: %s (%s left) · nothing was spent\n", priceText(price, remaining), afford,
		amountsText(inCurrencyOf(price, remaining), down))
}

func (c *fitCommand) showEstimate(a *app, e *api.FitEstimate) error {
	if c.JSON {
		return printJSON(a.Out, e)
	}
	t := &table{}
	t.header("feature", "noise (standard deviation)")
	for _, k := range e.Coefficients {
		t.row(k.Name, figure(k.Deviation))
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " among %d people whose features spread evenly over their ranges; fewer are too few for this price\n", e.People)
	a.showNotes(e.Notes)
	a.showPrice(e.Price, e.Remaining, e.Affordable)
	return nil
}
