package main

import (
	"context"
	"fmt"
	"strconv"

	"noisegate/api"
)

type clusterCommand struct {
	Columns        []string          `arg:"" sep:"none" help:"What is grouped by: numbers of a row, such as age or 'ln(1 + income)'."`
	K              int64             `short:"k" required:"" help:"How many centres: from 2 to 64."`
	From           string            `required:"" help:"The table, or tables and joins, as after FROM." placeholder:"TABLE"`
	Where          string            `help:"A condition on rows." placeholder:"CONDITION"`
	Iterations     *int64            `help:"Steps of the centres; 4 when absent." placeholder:"N"`
	Weights        map[string]string `name:"weight" help:"What half of a column's range counts in distances; 1 when absent." placeholder:"COLUMN=W"`
	Dataset        string            `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon        string            `help:"Price in epsilon, with --delta. Without any price, the policy's default; none: refused." placeholder:"E" xor:"price"`
	Rho            string            `help:"Price in rho (zCDP)." placeholder:"R" xor:"price"`
	Delta          string            `help:"Delta at which epsilon is turned into rho; the policy's default when absent." placeholder:"D"`
	MaxRows        *int64            `help:"At most that many rows per person; tightens the policy's bound." placeholder:"N"`
	Estimate       bool              `help:"Show the price and the expected noise instead. Free."`
	IdempotencyKey string            `help:"Name of the request: repeating it gives the first answer, free." placeholder:"KEY"`
	gatewayFlags
}

func (c *clusterCommand) request() api.ClusterRequest {
	return api.ClusterRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Columns: c.Columns, K: c.K, Iterations: c.Iterations,
		Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta), Weights: decimals(c.Weights),
		MaxRows: c.MaxRows}
}

// decimals are numbers by name, as they are written; nil for none.
func decimals(texts map[string]string) map[string]api.Decimal {
	var all map[string]api.Decimal
	for name, text := range texts {
		if all == nil {
			all = map[string]api.Decimal{}
		}
		all[name] = api.Decimal(text)
	}
	return all
}

func (c *clusterCommand) run(ctx context.Context, a *app) error {
	client, err := c.clientFor(ctx, a, &c.Dataset)
	if err != nil {
		return err
	}
	if c.Estimate {
		estimate, err := client.EstimateCluster(ctx, c.request())
		if err != nil {
			return a.refused(c.JSON, "", err)
		}
		return c.showEstimate(a, estimate)
	}
	answer, err := client.Cluster(ctx, c.request(), c.IdempotencyKey)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	return c.show(a, answer)
}

func (c *clusterCommand) show(a *app, answer *api.ClusterResponse) error {
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	t := &table{}
	t.header(append(append([]string{"centre"}, answer.Columns...), "size")...)
	for i, centre := range answer.Centers {
		row := []string{strconv.Itoa(i + 1)}
		for _, x := range centre {
			row = append(row, figure(x))
		}
		t.row(append(row, figure(answer.Sizes[i]))...)
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " sizes have noise with a standard deviation of %s\n", figure(answer.SizeDeviation))
	a.showNotes(answer.Notes)
	a.showPaid(paid{answer.ReleaseID, answer.Replayed, answer.Spent, answer.Remaining})
	return nil
}

func (c *clusterCommand) showEstimate(a *app, e *api.ClusterEstimate) error {
	if c.JSON {
		return printJSON(a.Out, e)
	}
	fmt.Fprintf(a.Out, " sizes will have noise with a standard deviation of %s; fewer than %d people are too few for this price\n",
		figure(e.SizeDeviation), e.People)
	a.showNotes(e.Notes)
	a.showPrice(e.Price, e.Remaining, e.Affordable)
	return nil
}
