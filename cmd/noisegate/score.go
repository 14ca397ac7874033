package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"noisegate.example/api"
)

type scoreCommand struct {
	Columns    []string          `arg:"" sep:"none" help:"What is grouped by: numbers of a row, such as age or 'ln(1 + income)'."`
	Centers    []string          `name:"center" sep:"none" required:"" help:"A centre: a number for each column, with commas." placeholder:"X,Y"`
	Score      []string          `help:"calinski_harabasz or simplified_silhouette; both when absent." placeholder:"SCORE"`
	Weights    map[string]string `name:"weight" help:"What half of a column's range counts in distances; 1 when absent." placeholder:"COLUMN=W"`
	Confidence *float64          `help:"Level of the intervals; 0.95 when absent." placeholder:"C"`
	modelFlags
}

func (c *scoreCommand) request() (api.ScoreRequest, error) {
	r := api.ScoreRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Columns: c.Columns, Score: c.Score,
		Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta), Weights: decimals(c.Weights),
		Confidence: c.Confidence, MaxRows: c.MaxRows, AtMost: (*api.Price)(c.AtMost)}
	for _, text := range c.Centers {
		var centre []float64
		for number := range strings.SplitSeq(text, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || x-x != 0 {
				return r, usage(fmt.Errorf("--center=%s: a number for each column is wanted, with commas", text))
			}
			centre = append(centre, x)
		}
		r.Centers = append(r.Centers, centre)
	}
	return r, nil
}

func (c *scoreCommand) run(ctx context.Context, a *app) error {
	client, err := c.clientFor(ctx, a, &c.Dataset)
	if err != nil {
		return err
	}
	request, err := c.request()
	if err != nil {
		return err
	}
	if c.Estimate {
		return shown(ctx, a, c.JSON, request, client.EstimateScore, c.showEstimate)
	}
	return shown(ctx, a, c.JSON, request, named(c.IdempotencyKey, client.Score), c.show)
}

func (c *scoreCommand) show(a *app, answer *api.ScoreResponse) {
	level := 0.95
	if c.Confidence != nil {
		level = *c.Confidence
	}
	t := &table{}
	t.header("score", "value", percent(level)+" interval")
	for _, s := range answer.Scores {
		if s.Value == nil || s.Interval == nil {
			t.row(s.Score, "not resolvable", "")
			continue
		}
		t.row(s.Score, figure(*s.Value), interval(*s.Interval))
	}
	t.write(a.Out)
	a.showSale(answer.Sale)
}

func (c *scoreCommand) showEstimate(a *app, e *api.ScoreEstimate) {
	what := "sizes"
	if len(c.Score) == 1 && c.Score[0] == "simplified_silhouette" {
		what = "the number of rows"
	}
	fmt.Fprintf(a.Out, " %s will have noise with a standard deviation of %s\n", what, figure(e.SizeDeviation))
	a.showQuote(e.Quote)
}
