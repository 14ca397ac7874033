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

	"noisegate.example/api"
	"noisegate.example/pate"
)

// pateCommands are about ensembles of teachers.
type pateCommands struct {
	Define   pateDefineCommand   `cmd:"" help:"Begin a version of an ensemble: who votes on what (stewards)."`
	Import   pateImportCommand   `cmd:"" help:"Load the votes of a file, or of a table of the protected database (stewards)."`
	Seal     pateSealCommand     `cmd:"" help:"Make the votes final: labels can be bought from then on (stewards)."`
	Label    pateLabelCommand    `cmd:"" help:"Buy private labels; those that were released before are free."`
	Show     pateShowCommand     `cmd:"" help:"Show an ensemble, and what was spent on it; without a name all that you may see."`
	Odometer pateOdometerCommand `cmd:"" help:"What the labels of an ensemble cost so far, by every accountant: secret (stewards)."`
	Epsilon  pateEpsilonCommand  `cmd:"" help:"Buy the data-dependent epsilon of labels in a form that may be published (stewards)."`
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
	sanitiseFlags
	gatewayFlags
}

// sanitiseFlags say how the data-dependent epsilon of an ensemble may be published.
type sanitiseFlags struct {
	Order   string `name:"sanitise-order" help:"Order of the epsilon that may be published (pate epsilon), fixed before votes are seen. The policy may fix it." placeholder:"L"`
	Beta    string `name:"sanitise-beta" help:"Smoothness of its sensitivity; 0.4/order when absent." placeholder:"B"`
	SigmaSS string `name:"sanitise-sigma-ss" help:"Its noise, in units of the smooth sensitivity." placeholder:"S"`
	Delta   string `name:"sanitise-delta" help:"Its delta, and that of the charge for it." placeholder:"D"`
}

// sanitise is nil where no flag was given.
func (f sanitiseFlags) sanitise() *api.SanitiseParameters {
	if f == (sanitiseFlags{}) {
		return nil
	}
	return &api.SanitiseParameters{Order: api.Decimal(f.Order), Beta: api.Decimal(f.Beta), SigmaSS: api.Decimal(f.SigmaSS),
		Delta: api.Decimal(f.Delta)}
}

func (c *pateDefineCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	definition := api.EnsembleDefinition{Dataset: c.Dataset, Teachers: c.Teachers, Classes: classNames(c.Classes),
		MaxTeachersPerPerson: c.MaxTeachersPerPerson, PartitionSHA256: c.Partition, Sanitise: c.sanitise()}
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

func (c *pateImportCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	if (c.File == "") == (c.Table == "") {
		return usage(errors.New("give either a file or --table"))
	}
	var ensemble *api.Ensemble
	var err error
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
	return client.LoadVoteTable(ctx, c.Ensemble, api.VoteTable{Schema: schema, Table: table, Teacher: columns[0], Query: columns[1],
		Label: columns[2]})
}

// formatOf is the format of a file by its name.
func formatOf(file string) (pate.Format, error) {
	format, ok := map[string]pate.Format{".npy": pate.NPY, ".csv": pate.CSV, ".ndjson": pate.NDJSON,
		".jsonl": pate.NDJSON}[strings.ToLower(filepath.Ext(file))]
	if !ok {
		return "", usage(fmt.Errorf("%s: the name of a file ends in .npy, .csv, .ndjson or .jsonl", file))
	}
	return format, nil
}

func (c *pateImportCommand) importFile(ctx context.Context, a *app, client *api.Client) (*api.Ensemble, error) {
	format, err := formatOf(c.File)
	if err != nil {
		return nil, err
	}
	kind := map[pate.Format]string{pate.NPY: "application/x-npy", pate.CSV: "text/csv", pate.NDJSON: "application/x-ndjson"}[format]
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

// progress prints how much of a file was read, once that takes more than a second.
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

func (c *pateSealCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	ensemble, err := client.SealEnsemble(ctx, c.Ensemble)
	return a.showEnsemble(c.JSON, ensemble, err)
}

type pateShowCommand struct {
	Ensemble string `arg:"" optional:"" help:"The name of the ensemble."`
	gatewayFlags
}

func (c *pateShowCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	if c.Ensemble == "" {
		list, err := client.Ensembles(ctx)
		return a.showEnsembles(c.JSON, list, err)
	}
	ensemble, err := client.Ensemble(ctx, c.Ensemble)
	return a.showEnsemble(c.JSON, ensemble, err)
}

// showEnsemble prints an ensemble, or what was said instead.
func (a *app) showEnsemble(asJSON bool, e *api.Ensemble, err error) error {
	if said, err := a.said(asJSON, e, err); said {
		return err
	}
	a.tableOfEnsembles(*e)
	if e.Limit != nil {
		used, spent := "", amountsText(e.Spent, up)
		if e.Usage != nil {
			used, spent = string(e.Usage.Percent)+" % is used: ", inRule(e.Usage.Rule, e.Spent, e.Remaining, up)
		}
		fmt.Fprintf(a.Out, " %sspent %s of %s, over all versions and callers\n", used, spent, limitText(*e.Limit))
	}
	return nil
}

func (a *app) showEnsembles(asJSON bool, list *api.EnsembleList, err error) error {
	if said, err := a.said(asJSON, list, err); said {
		return err
	}
	a.tableOfEnsembles(list.Ensembles...)
	return nil
}

func (a *app) tableOfEnsembles(list ...api.Ensemble) {
	t := &table{grouped: a.terminal}
	t.header("ensemble", "version", "state", "teachers", "classes", "queries", "answered", "rejected", "reinforced")
	for _, e := range list {
		t.row(e.Ensemble, fmt.Sprint(e.Version), e.State, fmt.Sprint(e.Teachers), fmt.Sprint(len(e.Classes)), fmt.Sprint(e.Queries),
			fmt.Sprint(e.Answered), fmt.Sprint(e.Rejected), fmt.Sprint(e.Reinforced))
	}
	t.write(a.Out)
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
