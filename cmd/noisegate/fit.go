package main

import (
	"context"
	"fmt"

	"noisegate.example/api"
)

type fitCommand struct {
	Features   []string          `arg:"" sep:"none" help:"Features: numbers of a row, such as age or 'ln(1 + income)'."`
	Target     string            `required:"" help:"What is predicted: a number of a row; 0 or 1 for a logistic model." placeholder:"EXPRESSION"`
	Model      string            `enum:"linear,ridge,logistic" default:"linear" help:"linear, ridge or logistic."`
	Method     string            `enum:"auto,moments,gradient" default:"auto" help:"auto, moments, or gradient (of logistic models, for which it is auto)."`
	Iterations *int64            `help:"Passes over the rows by gradients; 30 when absent." placeholder:"N"`
	OneHot     []string          `name:"one-hot" sep:"none" help:"A feature with one column for each value of its domain; may be repeated." placeholder:"COLUMN"`
	Weights    map[string]string `name:"weight" help:"A feature with a larger weight has less noise, and the others more." placeholder:"FEATURE=W"`
	Confidence *float64          `help:"Level of the intervals; 0.95 when absent." placeholder:"P"`
	modelFlags
}

func (c *fitCommand) request() api.FitRequest {
	r := api.FitRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Target: c.Target, Model: c.Model, Method: c.Method,
		Iterations: c.Iterations, Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta),
		Confidence: c.Confidence, MaxRows: c.MaxRows, Weights: decimals(c.Weights),
		AtMost: (*api.Price)(c.AtMost)}
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
		return shown(ctx, a, c.JSON, c.request(), client.EstimateFit, c.showEstimate)
	}
	return shown(ctx, a, c.JSON, c.request(), named(c.IdempotencyKey, client.Fit), c.show)
}

func (c *fitCommand) show(a *app, answer *api.FitResponse) {
	level := 0.95
	if c.Confidence != nil {
		level = *c.Confidence
	}
	t := &table{}
	t.header("feature", "value", percent(level)+" interval", "scaled")
	for _, k := range append([]api.FitCoefficient{answer.Intercept}, answer.Coefficients...) {
		ends := ""
		if k.Interval != nil {
			ends = interval(*k.Interval)
		}
		t.row(k.Name, figure(k.Value), ends, figure(k.Scaled))
	}
	t.write(a.Out)
	a.showSale(answer.Sale)
}

func (c *fitCommand) showEstimate(a *app, e *api.FitEstimate) {
	t := &table{}
	t.header("feature", "noise (standard deviation)")
	for _, k := range e.Coefficients {
		t.row(k.Name, figure(k.Deviation))
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " among %d people whose features spread evenly over their ranges; fewer are too few for this price\n", e.People)
	a.showQuote(e.Quote)
}
