package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/pate"
)

// runFlags name a run: queries that were labelled under one mode.
type runFlags struct {
	Ensemble string   `arg:"" help:"The name of the ensemble."`
	Queries  []string `arg:"" optional:"" help:"The run; when absent those of the student's file, else all that were released under these parameters."`
	mechanismFlags
	gatewayFlags
}

// request is the run as the API takes it.
func (f *runFlags) request(ctx context.Context, a *app, client *api.Client) (api.AnalysisRequest, error) {
	r := api.AnalysisRequest{Mechanism: f.Mechanism, NoiseScale: api.Decimal(f.NoiseScale), Sigma: api.Decimal(f.Sigma),
		Sigma1: api.Decimal(f.Sigma1),
		Sigma2: api.Decimal(f.Sigma2), Threshold: api.Decimal(f.Threshold), Gamma: api.Decimal(f.Gamma),
		StudentConfidence: api.Decimal(f.StudentConfidence)}
	if len(f.Queries) == 0 && f.Student == "" {
		return r, nil
	}
	q, err := f.questions(ctx, a, client, f.Ensemble, f.Queries)
	r.Queries, r.Student = q.queries, q.student
	return r, err
}

type pateOdometerCommand struct {
	All   bool   `help:"All queries of the version, released or not."`
	Exact bool   `help:"Also the exact divergence to every neighbour, for at most 2000 queries."`
	Delta string `help:"The delta at which epsilon is shown; 1e-5 when absent." placeholder:"D"`
	Plot  string `help:"Write a plot of epsilon against queries (SVG)." placeholder:"FILE"`
	runFlags
}

func (c *pateOdometerCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	if c.All && (len(c.Queries) > 0 || c.Student != "") {
		return usage(errors.New("give queries or --all, not both"))
	}
	request, err := c.request(ctx, a, client)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	request.All, request.Exact, request.Delta = c.All, c.Exact, api.Decimal(c.Delta)
	answer, err := client.AnalyseVotes(ctx, c.Ensemble, request)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	analysis, err := analysisOf(answer, c.settings())
	if err != nil {
		return err
	}
	if err := writePlot(c.Plot, analysis); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	showAnalysis(a.Out, answer.Queries, analysis)
	return nil
}

// analysisOf is an analysis as it was before it went over the wire.
func analysisOf(answer *api.Analysis, settings pate.Settings) (*pate.Analysis, error) {
	delta, err := strconv.ParseFloat(string(answer.Delta), 64)
	if err != nil || len(answer.Points) == 0 {
		return nil, errors.New("the gateway's analysis is not as it should be")
	}
	analysis := &pate.Analysis{Mode: pate.Description{Settings: settings}, Delta: delta, Noise: pate.Discrete, Answered: answer.Answered,
		Points: answer.Points}
	for _, l := range answer.Lines {
		line := pate.Line{Method: pate.Method(l.Method), Secret: l.Secret, Order: l.Order}
		for _, value := range l.Epsilon {
			epsilon, err := strconv.ParseFloat(value.String(), 64) // also Inf, which JSON has as a text
			if err != nil {
				return nil, errors.New("the gateway's analysis is not as it should be")
			}
			line.Epsilon = append(line.Epsilon, epsilon)
		}
		if len(line.Epsilon) != len(answer.Points) {
			return nil, errors.New("the gateway's analysis is not as it should be")
		}
		analysis.Lines = append(analysis.Lines, line)
	}
	return analysis, nil
}

type pateEpsilonCommand struct {
	Estimate bool `help:"Show the price, the least epsilon that can come out, and the one that is free. Free."`
	runFlags
}

func (c *pateEpsilonCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	request, err := c.request(ctx, a, client)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.Estimate {
		return c.estimate(ctx, a, client, request)
	}
	e, err := client.SanitisedEpsilon(ctx, c.Ensemble, request)
	if said, err := a.said(c.JSON, e, err); said {
		return err
	}
	t := &table{}
	t.header("queries", "answered", "epsilon", "delta", "order", "beta", "sigma_ss", "drawn before")
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 7, 64) }
	t.row(fmt.Sprint(e.Queries), fmt.Sprint(e.Answered), number(e.Epsilon), string(e.Delta), number(e.Order), number(e.Beta),
		number(e.SigmaSS),
		map[bool]string{true: "yes"}[e.Replayed])
	t.write(a.Out)
	fmt.Fprintf(a.Out, " spent %s · may be published; it is at least the bound that it hides with a probability of %s\n",
		amountsText(e.Spent, up), number(cmp.Or(e.Confidence, 0.5)))
	return nil
}

// estimate shows what an ε would cost, and what is known of it without a vote.
func (c *pateEpsilonCommand) estimate(ctx context.Context, a *app, client *api.Client, request api.AnalysisRequest) error {
	e, err := client.EstimateEpsilon(ctx, c.Ensemble, request)
	if said, err := a.said(c.JSON, e, err); said {
		return err
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 7, 64) }
	fmt.Fprintf(a.Out, " costs %s · between %s and %s, which is free (delta %s, %d queries)\n", amountsText(e.Price, up), number(e.Least),
		number(e.Independent), e.Delta, e.Queries)
	return nil
}
