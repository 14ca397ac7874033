package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/api"
	"noisegate.example/pate"
)

type mechanismFlags struct {
	Mechanism         string `enum:"lnmax,gnmax,confident,interactive,gumbel" default:"gnmax" help:"How labels are chosen: lnmax, gnmax, confident, interactive or gumbel."`
	NoiseScale        string `help:"lnmax: scale of the Laplace noise." placeholder:"B"`
	Sigma             string `help:"gnmax: standard deviation of the noise." placeholder:"S"`
	Sigma1            string `name:"sigma1" help:"confident, interactive: standard deviation of the check's noise." placeholder:"S"`
	Sigma2            string `name:"sigma2" help:"confident, interactive: standard deviation of the answer's noise." placeholder:"S"`
	Threshold         string `help:"confident, interactive: votes that the check asks for." placeholder:"T"`
	Gamma             string `help:"gumbel: rate of the exponential mechanism." placeholder:"G"`
	StudentConfidence string `help:"interactive: above it the student's own label stands." placeholder:"P"`
	Student           string `help:"interactive: .npy, .csv or .ndjson file of the student's probabilities, a row for each query." type:"existingfile" placeholder:"FILE"`
}

func (f mechanismFlags) settings() pate.Settings {
	return pate.Settings{
		Mode: pate.ModeName(f.Mechanism), NoiseScale: f.NoiseScale, Sigma: f.Sigma, Sigma1: f.Sigma1, Sigma2: f.Sigma2,
		Threshold: f.Threshold, Gamma: f.Gamma, StudentConfidence: f.StudentConfidence,
	}
}

// students reads the student's file, if there is one.
func (f mechanismFlags) students(e pate.Ensemble) ([]pate.StudentRow, error) {
	if f.Student == "" {
		return nil, nil
	}
	format, err := formatOf(f.Student)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(f.Student)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	return e.ReadStudents(file, format)
}

// questions are queries and, for interactive, what the student says of each.
type questions struct {
	queries []string
	student map[string][]api.Decimal
}

// questions finds the queries: those that are given; else those of the student's file, where it names them; else, as for "-", a line each
// of standard input.
func (f mechanismFlags) questions(ctx context.Context, a *app, client *api.Client, ensemble string, given []string) (q questions,
	err error) {
	var rows []pate.StudentRow
	if f.Student != "" {
		shown, err := client.Ensemble(ctx, ensemble)
		if err != nil {
			return q, err
		}
		e, err := pate.NewEnsemble(pate.EnsembleParameters{Classes: shown.Classes, Teachers: shown.Teachers})
		if err != nil {
			return q, err
		}
		if rows, err = f.students(e); err != nil {
			return q, err
		}
	}
	switch {
	case len(given) > 1 || len(given) == 1 && given[0] != "-":
		q.queries = given
	case len(given) == 0 && len(rows) > 0 && rows[0].Query != "":
		for _, row := range rows {
			q.queries = append(q.queries, row.Query)
		}
	default:
		if q.queries, err = lines(a.In); err != nil {
			return q, usage(fmt.Errorf("cannot read the queries: %w", err))
		}
	}
	if rows == nil {
		return q, nil
	}
	if rows, err = pate.StudentsFor(q.queries, rows); err != nil {
		return q, err
	}
	q.student = make(map[string][]api.Decimal, len(rows))
	for i, row := range rows {
		for _, p := range row.Probabilities {
			q.student[q.queries[i]] = append(q.student[q.queries[i]], api.Decimal(p))
		}
	}
	return q, nil
}

type pateLabelCommand struct {
	Ensemble       string   `arg:"" help:"The name of the ensemble."`
	Queries        []string `arg:"" optional:"" help:"Names of queries; when absent those of the student's file, else, as for -, one a line of standard input."`
	Return         string   `enum:"label,histogram" default:"label" help:"What leaves: label, or histogram, which is every noisy count for the same price."`
	Out            string   `help:"Write the labels to a file as well: .npy (32-bit integers, -1 where there is none) or .csv." placeholder:"FILE"`
	Estimate       bool     `help:"Show the price instead. Free."`
	Count          *int64   `help:"With --estimate: how many queries, instead of their names." placeholder:"N"`
	AnswerRate     *float64 `help:"With --estimate: assumed share of queries that pass the check; 1 when absent." placeholder:"P"`
	BuyWith        string   `help:"With --estimate: how many labels does this epsilon buy?" placeholder:"E"`
	Delta          string   `help:"With --estimate: the delta at which rho is shown as epsilon." placeholder:"D"`
	IdempotencyKey string   `help:"Name of the request: repeating it is charged once." placeholder:"KEY"`
	atMostFlag
	mechanismFlags
	gatewayFlags
}

func (c *pateLabelCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	if c.Estimate {
		return c.estimate(ctx, a, client)
	}
	if c.Count != nil || c.AnswerRate != nil || c.BuyWith != "" || c.Delta != "" {
		return usage(errors.New("--count, --answer-rate, --buy-with and --delta are about --estimate"))
	}
	write, err := labelWriter(c.Out)
	if err != nil {
		return err
	}
	q, err := c.questions(ctx, a, client, c.Ensemble, c.Queries)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	answer, err := client.Labels(ctx, c.Ensemble, api.LabelRequest{Queries: q.queries, Mechanism: c.Mechanism,
		NoiseScale: api.Decimal(c.NoiseScale),
		Sigma:      api.Decimal(c.Sigma), Sigma1: api.Decimal(c.Sigma1), Sigma2: api.Decimal(c.Sigma2), Threshold: api.Decimal(c.Threshold),
		Gamma: api.Decimal(c.Gamma), StudentConfidence: api.Decimal(c.StudentConfidence), Student: q.student, Return: c.Return,
		AtMost: (*api.Price)(c.AtMost)}, c.IdempotencyKey)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if write != nil {
		if err := os.WriteFile(c.Out, write(answer.Labels), 0o600); err != nil {
			return fmt.Errorf("the labels were released, and cannot be written; ask again, free: %w", err)
		}
	}
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	t := &table{}
	t.heads = append([]string{"query", "status", "label", "replayed"}, countHeads(answer.Labels)...)
	for _, l := range answer.Labels {
		t.row(append([]string{l.Query, l.Status, l.Class, map[bool]string{true: "yes", false: "no"}[l.Replayed]}, counts(l)...)...)
	}
	t.write(a.Out)
	spent := "spent " + priceText(answer.Spent, answer.Remaining)
	if !isAmount(answer.Spent.Epsilon) && !isAmount(answer.Spent.Rho) && !isAmount(answer.Spent.Delta) {
		spent = "free: nothing spent"
	}
	fmt.Fprintf(a.Out, " %s\n %s (%s left) · ask again: same labels, free\n", answer.Terms.Meaning, spent,
		amountsText(inCurrencyOf(answer.Spent, answer.Remaining), down))
	return nil
}

// countHeads head the noisy counts, by number of the class: there are none where only labels left.
func countHeads(labels []api.Label) []string {
	classes := 0
	for _, l := range labels {
		classes = max(classes, len(l.Histogram))
	}
	heads := make([]string, classes)
	for i := range heads {
		heads[i] = "count " + strconv.Itoa(i)
	}
	return heads
}

// counts are the noisy counts of a label, if it has them.
func counts(l api.Label) []string {
	list := make([]string, len(l.Histogram))
	for i, n := range l.Histogram {
		list[i] = n.String()
	}
	return list
}

// labelWriter is how labels are written to a file of that name; nil for none.
func labelWriter(file string) (func([]api.Label) []byte, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".npy":
		return labelsNPY, nil
	case ".csv":
		return labelsCSV, nil
	}
	if file != "" {
		return nil, usage(errors.New("the name of --out ends in .npy or .csv"))
	}
	return nil, nil
}

func labelsNPY(labels []api.Label) []byte {
	numbers := make([]int32, len(labels))
	for i, l := range labels {
		if numbers[i] = pate.NoLabel; l.Label != nil {
			numbers[i] = int32(*l.Label)
		}
	}
	return pate.LabelsNPY(numbers)
}

func labelsCSV(labels []api.Label) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b) // into memory: it cannot fail
	heads := countHeads(labels)
	_ = w.Write(append([]string{"query", "status", "label"}, heads...))
	for _, l := range labels {
		cells := counts(l)
		_ = w.Write(slices.Concat([]string{l.Query, l.Status, l.Class}, cells, make([]string, len(heads)-len(cells))))
	}
	w.Flush()
	return b.Bytes()
}

// estimate prices labels. What the student says has no price, so that its file is not looked at but for names of queries.
func (c *pateLabelCommand) estimate(ctx context.Context, a *app, client *api.Client) error {
	if c.Out != "" || c.IdempotencyKey != "" {
		return usage(errors.New("an estimate has no --out and no --idempotency-key"))
	}
	var q questions
	if c.Count == nil {
		var err error
		if q, err = c.questions(ctx, a, client, c.Ensemble, c.Queries); err != nil {
			return a.refused(c.JSON, "", err)
		}
	} else if len(c.Queries) > 0 {
		return usage(errors.New("give queries or --count, not both"))
	}
	e, err := client.EstimateLabels(ctx, c.Ensemble, api.LabelEstimateRequest{Queries: q.queries, Count: c.Count, Mechanism: c.Mechanism,
		NoiseScale: api.Decimal(c.NoiseScale), Sigma: api.Decimal(c.Sigma), Sigma1: api.Decimal(c.Sigma1), Sigma2: api.Decimal(c.Sigma2),
		Threshold: api.Decimal(c.Threshold), Gamma: api.Decimal(c.Gamma), StudentConfidence: api.Decimal(c.StudentConfidence), Return: c.Return,
		AnswerRate: c.AnswerRate, Epsilon: api.Decimal(c.BuyWith), Delta: api.Decimal(c.Delta)})
	if said, err := a.said(c.JSON, e, err); said {
		return err
	}
	t := &table{grouped: a.terminal}
	t.header("queries", "free", "at most", "expected", "epsilon at delta "+string(e.Delta), "still buys")
	t.row(fmt.Sprint(e.Queries), fmt.Sprint(e.Replayed), amountsText(e.WorstCase, up), amountsText(e.Expected, up),
		up.shorten(e.Epsilon), fmt.Sprint(e.StillBuys))
	t.write(a.Out)
	if e.EpsilonBuys != nil {
		fmt.Fprintf(a.Out, " epsilon %s at delta %s buys %d labels\n", c.BuyWith, e.Delta, *e.EpsilonBuys)
	}
	a.showNotes(e.Notes)
	verdict := "affordable"
	if !e.Affordable {
		verdict = "more than is left"
	}
	fmt.Fprintf(a.Out, " %s: %s · nothing was spent\n", e.Terms.Meaning, verdict)
	return nil
}
