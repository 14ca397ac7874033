package main

import (
	"context"
	"fmt"
	"strconv"

	"noisegate.example/api"
)

type clusterCommand struct {
	Columns    []string          `arg:"" sep:"none" help:"What is grouped by: numbers of a row, such as age or 'ln(1 + income)'."`
	K          int64             `short:"k" required:"" help:"How many centres: from 2 to 64."`
	Iterations *int64            `help:"Steps of the centres; 4 when absent." placeholder:"N"`
	Weights    map[string]string `name:"weight" help:"What half of a column's range counts in distances; 1 when absent." placeholder:"COLUMN=W"`
	modelFlags
}

func (c *clusterCommand) request() api.ClusterRequest {
	return api.ClusterRequest{Dataset: c.Dataset, From: c.From, Where: c.Where, Columns: c.Columns, K: c.K, Iterations: c.Iterations,
		Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta), Weights: decimals(c.Weights),
		MaxRows: c.MaxRows, AtMost: (*api.Price)(c.AtMost)}
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
		return shown(ctx, a, c.JSON, c.request(), client.EstimateCluster, c.showEstimate)
	}
	return shown(ctx, a, c.JSON, c.request(), named(c.IdempotencyKey, client.Cluster), c.show)
}

func (c *clusterCommand) show(a *app, answer *api.ClusterResponse) {
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
	a.showSale(answer.Sale)
}

func (c *clusterCommand) showEstimate(a *app, e *api.ClusterEstimate) {
	fmt.Fprintf(a.Out, " sizes will have noise with a standard deviation of %s; fewer than %d people are too few for this price\n",
		figure(e.SizeDeviation), e.People)
	a.showQuote(e.Quote)
}
