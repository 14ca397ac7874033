package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"noisegate.example/budget/accounting"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// voteFileFlags name a file of votes and who cast them. Nothing of it leaves the machine.
type voteFileFlags struct {
	File                 string   `arg:"" help:"A .npy, .csv or .ndjson file of votes." type:"existingfile"`
	Layout               string   `enum:",counts,labels_teacher_major,labels_query_major,onehot" default:"" help:"What the axes are, where shape or header do not say."`
	Teachers             int64    `required:"" help:"How many teachers vote." placeholder:"N"`
	Classes              []string `required:"" help:"The classes by name, in their order; one number N stands for 0 to N-1." placeholder:"A,B,..."`
	MaxTeachersPerPerson int64    `default:"1" help:"In how many teachers' data one person may be." placeholder:"K"`
	First                int      `help:"Only the first queries." placeholder:"N"`
	Rows                 string   `help:"Only the queries whose numbers, from 0, are in this file, one a line." type:"existingfile" placeholder:"FILE"`
}

// offlineFlags are a mode for votes in a local file.
type offlineFlags struct {
	mechanismFlags
	Delta string `default:"1e-5" help:"The delta at which epsilon is shown." placeholder:"D"`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// read takes the votes out of the file, with the names of their queries.
func (f voteFileFlags) read() (*pate.Ballots, error) {
	format, err := formatOf(f.File)
	if err != nil {
		return nil, err
	}
	e, err := pate.NewEnsemble(pate.EnsembleParameters{Classes: classNames(f.Classes), Teachers: f.Teachers,
		MaxTeachersPerPerson: f.MaxTeachersPerPerson})
	if err != nil {
		return nil, err
	}
	file, err := os.Open(f.File)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	return e.Read(file, format, pate.Layout(f.Layout))
}

// rows are the queries that are looked at, of so many.
func (f voteFileFlags) rows(queries int) ([]int, error) {
	switch {
	case f.Rows != "" && f.First != 0:
		return nil, usage(errors.New("give --rows or --first, not both"))
	case f.Rows != "":
		return numbers(f.Rows)
	case f.First < 0 || f.First > queries:
		return nil, usage(fmt.Errorf("--first is at most the number of queries, %d", queries))
	case f.First > 0:
		queries = f.First
	}
	rows := make([]int, queries)
	for i := range rows {
		rows[i] = i
	}
	return rows, nil
}

// numbers reads a file of whole numbers, one a line.
func numbers(name string) ([]int, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	texts, err := lines(file)
	if err != nil {
		return nil, usage(fmt.Errorf("cannot read %s: %w", name, err))
	}
	list := make([]int, len(texts))
	for i, text := range texts {
		if list[i], err = strconv.Atoi(text); err != nil {
			return nil, usage(fmt.Errorf("%s: line %d is not a whole number", name, i+1))
		}
	}
	return list, nil
}

// offlineVotes are votes from a local file, the mode to analyze them in and, for interactive, the student.
type offlineVotes struct {
	table    *pate.Table
	mode     *pate.Mode
	students []pate.Student
}

func (f offlineFlags) load(file voteFileFlags) (v offlineVotes, err error) {
	ballots, err := file.read()
	if err != nil {
		return v, err
	}
	rows, err := file.rows(ballots.Queries())
	if err != nil {
		return v, err
	}
	if v.table, err = ballots.Table().Select(rows); err != nil {
		return v, err
	}
	if v.mode, err = pate.NewMode(v.table.Ensemble(), f.settings()); err != nil {
		return v, err
	}
	said, err := f.students(v.table.Ensemble())
	if err != nil || said == nil {
		return v, err
	}
	queries := make([]string, len(rows))
	for i, row := range rows {
		queries[i] = ballots.Keys()[row]
	}
	if said, err = pate.StudentsFor(queries, said); err != nil {
		return v, err
	}
	for _, row := range said {
		v.students = append(v.students, row.Student)
	}
	return v, nil
}

type pateAnalyzeCommand struct {
	Noise   string `enum:"discrete,continuous" default:"discrete" help:"The law of the noise: discrete, as Noisegate draws it, or continuous, as in the papers."`
	Moments int    `default:"64" help:"lnmax: how many moments the moments accountant has." placeholder:"L"`
	Exact   bool   `help:"Also the exact divergence to every neighbour: milliseconds a query."`
	Plot    string `help:"Write a plot of epsilon against queries (SVG)." placeholder:"FILE"`
	voteFileFlags
	offlineFlags
}

func (c *pateAnalyzeCommand) run(_ context.Context, a *app) error {
	votes, err := c.load(c.voteFileFlags)
	if err != nil {
		return err
	}
	delta, err := strconv.ParseFloat(c.Delta, 64)
	if err != nil {
		return usage(errors.New("--delta is a number"))
	}
	analysis, err := votes.mode.Analyse(votes.table, pate.AnalysisParameters{
		Delta: delta, Noise: pate.Noise(c.Noise), Moments: c.Moments, Students: votes.students, Exact: c.Exact,
	})
	if err != nil {
		return err
	}
	if err := writePlot(c.Plot, analysis); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Out, analysis)
	}
	showAnalysis(a.Out, votes.table.Queries(), analysis)
	return nil
}

// showAnalysis prints the methods side by side.
func showAnalysis(w io.Writer, queries int, analysis *pate.Analysis) {
	t := &table{}
	t.header("method", "epsilon", "order", "depends on votes")
	for _, l := range analysis.Lines {
		order := ""
		if l.Order != 0 {
			order = strconv.FormatFloat(l.Order, 'g', 6, 64)
		}
		t.row(string(l.Method), strconv.FormatFloat(l.Total(), 'g', 7, 64), order, map[bool]string{true: "yes: secret"}[l.Secret])
	}
	t.write(w)
	fmt.Fprintf(w, " %d queries, %.6g answered; epsilon at delta %g, %s noise\n", queries, analysis.Answered, analysis.Delta, analysis.Noise)
}

type pateSimulateCommand struct {
	Rounds int    `default:"10" help:"How often every query is labelled." placeholder:"N"`
	Truth  string `help:"The true classes by number from 0, one a line." type:"existingfile" placeholder:"FILE"`
	voteFileFlags
	offlineFlags
}

func (c *pateSimulateCommand) run(_ context.Context, a *app) error {
	votes, err := c.load(c.voteFileFlags)
	if err != nil {
		return err
	}
	p := pate.SimulationParameters{Rounds: c.Rounds, Students: votes.students}
	if c.Truth != "" {
		if p.Truth, err = numbers(c.Truth); err != nil {
			return err
		}
	}
	delta, err := mechanisms.ParseDelta(c.Delta)
	if err != nil || delta == 0 {
		return usage(errors.New("--delta must be between 0 and 1"))
	}
	s, err := votes.mode.Simulate(mechanisms.NewSampler(), votes.table, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Out, map[string]any{"simulation": s, "delta": c.Delta,
			"epsilon": epsilonText(s.Mean, delta), "worst_case_epsilon": epsilonText(s.Worst, delta)})
	}
	t := &table{}
	t.header("queries", "answered", "labelled", "agreement", "epsilon", "at most")
	row := []string{strconv.Itoa(s.Queries), share(s.Answered), share(s.Labelled), share(s.Agreement), epsilonText(s.Mean, delta),
		epsilonText(s.Worst, delta)}
	if p.Truth != nil {
		t.heads = append(t.heads, "accuracy", "without noise")
		row = append(row, share(s.Accuracy), share(s.Plurality))
	}
	t.row(row...)
	t.write(a.Out)
	fmt.Fprintf(a.Out, " epsilon at delta %s; only \"at most\" holds whatever the votes: keep the other figures with the votes\n", c.Delta)
	return nil
}

// epsilonText is what a loss is worth at δ: the smaller of its pure ε and that of its ρ.
func epsilonText(l mechanisms.Loss, delta mechanisms.AttoDelta) string {
	epsilon, ok := accounting.EpsilonFor(l.Rho, delta)
	if !l.Unbounded && (!ok || l.Epsilon < epsilon) {
		epsilon, ok = l.Epsilon, true
	}
	if !ok {
		return ""
	}
	return strconv.FormatFloat(float64(epsilon)/float64(mechanisms.EpsilonUnit), 'g', 4, 64)
}

func share(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

// writePlot writes what was analysed as a picture; "" writes none.
func writePlot(file string, analysis *pate.Analysis) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, analysis.SVG(), 0o600); err != nil {
		return fmt.Errorf("cannot write the plot: %w", err)
	}
	return nil
}
