package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"noisegate/api"
)

type scoreCommand struct {
	Columns        []string          `arg:"" sep:"none" help:"What is grouped by: numbers of a row, such as age or 'ln(1 + income)'."`
	Centers        []string          `name:"center" sep:"none" required:"" help:"A centre: a number for each column, with commas." placeholder:"X,Y"`
	From           string            `required:"" help:"The table, or tables and joins, as after FROM." placeholder:"TABLE"`
	Where          string            `help:"A condition on rows." placeholder:"CONDITION"`
	Score          []string          `help:"calinski_harabasz or simplified_silhouette; both when absent." placeholder:"SCORE"`
	Weights        map[string]string `name:"weight" help:"What half of a column's range counts in distances; 1 when absent." placeholder:"COLUMN=W"`
	Dataset        string            `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon        string            `help:"Price in epsilon, with --delta. Without any price, the policy's default; none: refused." placeholder:"E" xor:"price"`
	Rho            string            `help:"Price in rho (zCDP)." placeholder:"R" xor:"price"`
	Delta          string            `help:"Delta at which epsilon is turned into rho; the policy's default when absent." placeholder:"D"`
	Confidence     *float64          `help:"Level of the intervals; 0.95 when absent." placeholder:"C"`
	MaxRows        *int64            `help:"At most that many rows per person; tightens the policy's bound." placeholder:"N"`
	Estimate       bool              `help:"Show the price and the expected noise instead. Free."`
	IdempotencyKey string            `help:"Name of the request: repeating it gives the first answer, free." placeholder:"KEY"`
	gatewayFlags
}

func (c *scoreCommand) request() (api.ScoreRequest, error) {
	r := api.ScoreRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Columns: c.Columns, Score: c.Score,
		Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta), Weights: decimals(c.Weights),
		Confidence: c.Confidence, MaxRows: c.MaxRows}
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
		estimate, err := client.EstimateScore(ctx, request)
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		return c.showEstimate(a, estimate)
	}
	answer, err := client.Score(ctx, request, c.IdempotencyKey)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	return c.show(a, answer)
}

func (c *scoreCommand) show(a *app, answer *api.ScoreResponse) error {
	if c.JSON {
		return printJSON(a.Out, answer)
	}
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
		t.row(s.Score, figure(*s.Value), figure(s.Interval[0])+" to "+figure(s.Interval[1]))
	}
	t.write(a.Out)
	a.showNotes(answer.Notes)
	a.showPaid(paid{answer.ReleaseID, answer.Replayed, answer.Spent, answer.Remaining})
	return nil
}

func (c *scoreCommand) showEstimate(a *app, e *api.ScoreEstimate) error {
	if c.JSON {
		return printJSON(a.Out, e)
	}
	fmt.Fprintf(a.Out, " sizes will have noise with a standard deviation of %s\n", figure(e.SizeDeviation))
	a.showNotes(e.Notes)
	a.showPrice(e.Price, e.Remaining, e.Affordable)
	return nil
}
