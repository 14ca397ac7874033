package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"noisegate/api"
)

// pateCommands are about ensembles of teachers.
type pateCommands struct {
	Define   pateDefineCommand   `cmd:"" help:"Begin a version of an ensemble: who votes on what (stewards)."`
	Import   pateImportCommand   `cmd:"" help:"Load the votes of a file, or of a table of the protected database (stewards)."`
	Seal     pateSealCommand     `cmd:"" help:"Make the votes final: labels can be bought from then on (stewards)."`
	Label    pateLabelCommand    `cmd:"" help:"Buy private labels; those that were released before are free."`
	Show     pateShowCommand     `cmd:"" help:"Show an ensemble, and what was spent on it."`
	Analyze  pateAnalyzeCommand  `cmd:"" help:"What labelling a file of votes costs, by every accountant: offline, secret."`
	Simulate pateSimulateCommand `cmd:"" help:"Agreement and cost for a file of votes, before anything is spent: offline, secret."`
}

type pateDefineCommand struct {
	Ensemble             string   `arg:"" help:"The name of the ensemble."`
	Dataset              string   `required:"" help:"The dataset that the teachers were trained on." placeholder:"NAME"`
	Teachers             int64    `required:"" help:"How many teachers vote." placeholder:"N"`
	Classes              []string `required:"" help:"The classes by name, in their order; one number N stands for 0 to N-1." placeholder:"A,B,..."`
	MaxTeachersPerPerson *int64   `help:"In how many teachers' data one person may be; 1 when absent." placeholder:"K"`
	Partition            string   `help:"Declared SHA-256 of how people were dealt out to teachers." placeholder:"HEX"`
	Form                 string   `enum:"approx,pure,zcdp" default:"approx" help:"How the ensemble's budget adds up: approx, pure or zcdp."`
	Epsilon              string   `help:"Cap of the ensemble's budget in epsilon; the first version needs a cap." placeholder:"E"`
	Rho                  string   `help:"Cap in rho (zcdp)." placeholder:"R"`
	Delta                string   `help:"The delta of the promise." placeholder:"D"`
	gatewayFlags
}

func (c *pateDefineCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	definition := api.EnsembleDefinition{Dataset: c.Dataset, Teachers: c.Teachers, Classes: classNames(c.Classes),
		MaxTeachersPerPerson: c.MaxTeachersPerPerson, PartitionSHA256: c.Partition}
	if c.Epsilon != "" || c.Rho != "" {
		definition.Budget = &api.BudgetLimit{Form: c.Form, Epsilon: api.Decimal(c.Epsilon), Rho: api.Decimal(c.Rho), Delta: api.Decimal(c.Delta)}
	}
	ensemble, err := client.DefineEnsemble(ctx, c.Ensemble, definition)
	return a.showEnsemble(c.JSON, ensemble, err)
}

// maxNumbered is the largest number of classes that a number can stand for.
const maxNumbered = 10_000

// classNames are the names as given; one number stands for the numbers below it.
func classNames(given []string) []string {
	n := 0
	if len(given) == 1 {
		n, _ = strconv.Atoi(given[0]) // 0 for a name
	}
	if n < 1 || n > maxNumbered {
		return given
	}
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

type pateImportCommand struct {
	Ensemble string `arg:"" help:"The name of the ensemble."`
	File     string `arg:"" optional:"" help:"A .npy, .csv or .ndjson file." type:"existingfile"`
	Layout   string `enum:",counts,labels_teacher_major,labels_query_major,onehot" default:"" help:"What the axes are, where shape or header do not say: counts, labels_teacher_major, labels_query_major or onehot."`
	Table    string `help:"Instead of a file: SCHEMA.TABLE of the protected database, with one row for each teacher and query." placeholder:"SCHEMA.TABLE"`
	Columns  string `help:"With --table: its columns for teacher, query and label." default:"teacher,query,label" placeholder:"T,Q,L"`
	Seal     bool   `help:"Seal at once."`
	gatewayFlags
}

func (c *pateImportCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	if (c.File == "") == (c.Table == "") {
		return usage(errors.New("give either a file or --table"))
	}
	var ensemble *api.Ensemble
	if c.Table != "" {
		ensemble, err = c.importTable(ctx, client)
	} else {
		ensemble, err = c.importFile(ctx, a, client)
	}
	if err == nil && c.Seal {
		ensemble, err = client.SealEnsemble(ctx, c.Ensemble)
	}
	return a.showEnsemble(c.JSON, ensemble, err)
}

func (c *pateImportCommand) importTable(ctx context.Context, client *api.Client) (*api.Ensemble, error) {
	schema, table, ok := strings.Cut(c.Table, ".")
	columns := strings.Split(c.Columns, ",")
	if !ok || len(columns) != 3 || c.Layout != "" {
		return nil, usage(errors.New("--table is SCHEMA.TABLE, --columns three names, and a table has no layout"))
	}
	return client.LoadVoteTable(ctx, c.Ensemble, api.VoteTable{Schema: schema, Table: table, Teacher: columns[0], Query: columns[1], Label: columns[2]})
}

func (c *pateImportCommand) importFile(ctx context.Context, a *app, client *api.Client) (*api.Ensemble, error) {
	kind, ok := map[string]string{".npy": "application/x-npy", ".csv": "text/csv", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson"}[strings.ToLower(filepath.Ext(c.File))]
	if !ok {
		return nil, usage(errors.New("the name of a file of votes ends in .npy, .csv, .ndjson or .jsonl"))
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, usage(err)
	}
	bar := &progress{from: file, total: info.Size(), to: a.Err, now: a.now, began: a.now(), shown: isTerminal(a.Err)}
	defer bar.end()
	return client.LoadVotes(ctx, c.Ensemble, kind, c.Layout, bar)
}

// progress tells how much of a file was read, once that takes more than a second.
type progress struct {
	from        io.Reader
	done, total int64
	to          io.Writer
	now         func() time.Time
	began, last time.Time
	shown       bool // to people
}

// progressPatience is how long nothing is told; progressInterval, how long between two lines.
const (
	progressPatience = time.Second
	progressInterval = 200 * time.Millisecond
	progressWidth    = 30
)

// Read implements [io.Reader].
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.done += int64(n)
	if now := p.now(); p.shown && p.total > 0 && now.Sub(p.began) > progressPatience && now.Sub(p.last) > progressInterval {
		p.last = now
		full := int(p.done * progressWidth / p.total)
		fmt.Fprintf(p.to, "\r[%s%s] %3d %%", strings.Repeat("=", full), strings.Repeat(" ", progressWidth-full), p.done*100/p.total)
	}
	return n, err
}

// end clears the line.
func (p *progress) end() {
	if !p.last.IsZero() {
		fmt.Fprintf(p.to, "\r%s\r", strings.Repeat(" ", progressWidth+8))
	}
}

type pateSealCommand struct {
	Ensemble string `arg:"" help:"The name of the ensemble."`
	gatewayFlags
}

func (c *pateSealCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	ensemble, err := client.SealEnsemble(ctx, c.Ensemble)
	return a.showEnsemble(c.JSON, ensemble, err)
}

type pateShowCommand struct {
	Ensemble string `arg:"" help:"The name of the ensemble."`
	gatewayFlags
}

func (c *pateShowCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	ensemble, err := client.Ensemble(ctx, c.Ensemble)
	return a.showEnsemble(c.JSON, ensemble, err)
}

// showEnsemble prints an ensemble, or what was said instead.
func (a *app) showEnsemble(asJSON bool, e *api.Ensemble, err error) error {
	if err != nil {
		return a.refused(asJSON, "", err)
	}
	if asJSON {
		return printJSON(a.Out, e)
	}
	t := &table{grouped: a.terminal}
	t.header("ensemble", "version", "state", "teachers", "classes", "queries", "answered", "rejected", "reinforced")
	t.row(e.Ensemble, fmt.Sprint(e.Version), e.State, fmt.Sprint(e.Teachers), fmt.Sprint(len(e.Classes)), fmt.Sprint(e.Queries),
		fmt.Sprint(e.Answered), fmt.Sprint(e.Rejected), fmt.Sprint(e.Reinforced))
	t.write(a.Out)
	if e.Limit != nil {
		fmt.Fprintf(a.Out, " spent %s of %s, over all versions and callers\n", amountsText(e.Spent, up), limitText(*e.Limit))
	}
	return nil
}

// mechanismFlags are the parameters of labels.
type mechanismFlags struct {
	Mechanism  string `enum:"lnmax,gnmax,confident,gumbel" default:"gnmax" help:"How labels are chosen: lnmax, gnmax, confident or gumbel (interactive needs a program)."`
	NoiseScale string `help:"lnmax: scale of the Laplace noise." placeholder:"B"`
	Sigma      string `help:"gnmax: standard deviation of the noise." placeholder:"S"`
	Sigma1     string `name:"sigma1" help:"confident: standard deviation of the check's noise." placeholder:"S"`
	Sigma2     string `name:"sigma2" help:"confident: standard deviation of the answer's noise." placeholder:"S"`
	Threshold  string `help:"confident: votes that the check asks for." placeholder:"T"`
	Gamma      string `help:"gumbel: rate of the exponential mechanism." placeholder:"G"`
}

type pateLabelCommand struct {
	Ensemble       string   `arg:"" help:"The name of the ensemble."`
	Queries        []string `arg:"" optional:"" help:"Names of queries; one a line of standard input when absent or -."`
	Estimate       bool     `help:"Show the price instead. Free."`
	BuyWith        string   `help:"With --estimate: how many labels does this epsilon buy?" placeholder:"E"`
	Delta          string   `help:"With --estimate: the delta at which rho is shown as epsilon." placeholder:"D"`
	IdempotencyKey string   `help:"Name of the request: repeating it is charged once." placeholder:"KEY"`
	mechanismFlags
	gatewayFlags
}

func (c *pateLabelCommand) run(ctx context.Context, a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	queries := c.Queries
	if len(queries) == 0 || len(queries) == 1 && queries[0] == "-" {
		if queries, err = lines(a.In); err != nil {
			return usage(fmt.Errorf("cannot read the queries: %w", err))
		}
	}
	if c.Estimate {
		return c.estimate(ctx, a, client, queries)
	}
	answer, err := client.Labels(ctx, c.Ensemble, api.LabelRequest{Queries: queries, Mechanism: c.Mechanism, NoiseScale: api.Decimal(c.NoiseScale),
		Sigma: api.Decimal(c.Sigma), Sigma1: api.Decimal(c.Sigma1), Sigma2: api.Decimal(c.Sigma2), Threshold: api.Decimal(c.Threshold),
		Gamma: api.Decimal(c.Gamma)}, c.IdempotencyKey)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	t := &table{}
	t.header("query", "status", "label", "replayed")
	for _, l := range answer.Labels {
		t.row(l.Query, l.Status, l.Class, map[bool]string{true: "yes"}[l.Replayed])
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " %s\n spent %s (%s left) · ask again: same labels, free\n", answer.Terms.Meaning, amountsText(answer.Spent, up),
		amountsText(inCurrencyOf(answer.Spent, answer.Remaining), down))
	return nil
}

// inCurrencyOf leaves the ε out of an amount that stands beside one without.
func inCurrencyOf(spent, left api.Amounts) api.Amounts {
	if spent.Epsilon == "" {
		left.Epsilon = ""
	}
	return left
}

func (c *pateLabelCommand) estimate(ctx context.Context, a *app, client *api.Client, queries []string) error {
	e, err := client.EstimateLabels(ctx, c.Ensemble, api.LabelEstimateRequest{Queries: queries, Mechanism: c.Mechanism, NoiseScale: api.Decimal(c.NoiseScale),
		Sigma: api.Decimal(c.Sigma), Sigma1: api.Decimal(c.Sigma1), Sigma2: api.Decimal(c.Sigma2), Threshold: api.Decimal(c.Threshold),
		Gamma: api.Decimal(c.Gamma), Epsilon: api.Decimal(c.BuyWith), Delta: api.Decimal(c.Delta)})
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	if c.JSON {
		return printJSON(a.Out, e)
	}
	t := &table{grouped: a.terminal}
	t.header("queries", "free", "at most", "epsilon at delta "+string(e.Delta), "still buys")
	t.row(fmt.Sprint(e.Queries), fmt.Sprint(e.Replayed), amountsText(e.WorstCase, up), up.shorten(e.Epsilon), fmt.Sprint(e.StillBuys))
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

// lines reads what is not blank, line by line.
func lines(r io.Reader) ([]string, error) {
	var list []string
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		if text := strings.TrimSpace(scanner.Text()); text != "" {
			list = append(list, text)
		}
	}
	return list, scanner.Err()
}
