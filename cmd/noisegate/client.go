package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"noisegate.example/api"
)

// gatewayFlags say which gateway a client command talks to, and as whom. The token itself is never a flag: other users
// of a machine can read command lines.
type gatewayFlags struct {
	URL       string `name:"url" default:"http://127.0.0.1:8080" help:"The gateway. NOISEGATE_URL."`
	TokenFile string `name:"token-file" type:"path" placeholder:"FILE" help:"File with the bearer token (NOISEGATE_TOKEN_FILE); or the token itself in NOISEGATE_TOKEN."`
	JSON      bool   `name:"json" help:"Print the response as JSON."`
}

func (f gatewayFlags) client(a *app) (*api.Client, error) {
	token := a.env["NOISEGATE_TOKEN"]
	if f.TokenFile != "" {
		content, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return nil, usage(fmt.Errorf("cannot read the token: %w", err))
		}
		token = string(content)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return nil, usage(errors.New("no token: set NOISEGATE_TOKEN_FILE (or --token-file) to the file that has it, or NOISEGATE_TOKEN"))
	}
	return api.NewClient(f.URL, token), nil
}

// clientFor is [gatewayFlags.client] of a command about one dataset: a name that is left out becomes that of the only one.
func (f gatewayFlags) clientFor(ctx context.Context, a *app, dataset *string) (*api.Client, error) {
	client, err := f.client(a)
	if err == nil && *dataset == "" {
		*dataset, err = onlyDataset(ctx, client)
	}
	return client, err
}

// questionFlags are what query and estimate have in common.
type questionFlags struct {
	SQL           string            `arg:"" optional:"" help:"The question; read from standard input when absent or -."`
	Param         []string          `help:"Value of $1, then of $2, ...: JSON as in the API, or text." placeholder:"VALUE" sep:"none"`
	Dataset       string            `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon       string            `help:"Price in epsilon. Without any price, the policy's default; none: refused." placeholder:"E" xor:"price"`
	Rho           string            `help:"Price in rho (zCDP)." placeholder:"R" xor:"price"`
	MaxError      map[string]string `help:"Instead of a price: the cheapest one at which the half-width of OUTPUT stays within N." placeholder:"OUTPUT=N" xor:"price"`
	Delta         string            `help:"Delta, for private group keys or Gaussian noise priced in epsilon; the policy's default when absent." placeholder:"D"`
	Mechanism     string            `enum:"auto,laplace,gaussian,exponential,permute_and_flip,report_noisy_max" default:"auto" help:"Noise: auto, laplace or gaussian; a selection where the question only selects."`
	Selection     string            `enum:"auto,exponential,permute_and_flip,report_noisy_max" default:"auto" help:"How quantiles, modes and first groups are chosen: auto, exponential, permute_and_flip or report_noisy_max."`
	Confidence    *float64          `help:"Level of the intervals; 0.95 when absent." placeholder:"P"`
	Simultaneous  bool              `help:"Intervals that all hold together with the level, instead of one by one."`
	RequireUseful *float64          `help:"Least share of useful rows, up to 1: a question that cannot reach it is refused and costs nothing. Needs a policy that says how many people there are." placeholder:"P"`
	Dialect       string            `enum:"postgresql,mysql" default:"postgresql" help:"What the question is written in: postgresql or mysql."`
	MaxGroups     *int64            `help:"At most that many groups per person; tightens the policy's bound." placeholder:"N"`
	MaxRows       *int64            `help:"At most that many rows per person and group; tightens the policy's bound." placeholder:"N"`
	MaxRowsTotal  *int64            `help:"At most that many rows per person in all groups together; less noise where people are in many groups." placeholder:"N"`
	Report        string            `enum:",kept" default:"" help:"Bought beside the answer, at a part of its price: kept, which part of the rows is in the figures." placeholder:"kept"`
	Prepared      bool              `negatable:"" default:"true" help:"From a prepared copy, where that is no worse; --no-prepared asks the table itself."`
	Latest        bool              `help:"From the rows that there are now, and paid for each time; of a prepared copy, its newest version."`
	gatewayFlags
}

func (f questionFlags) request(ctx context.Context, a *app, client *api.Client) (api.QueryRequest, error) {
	sql := f.SQL
	if sql == "" || sql == "-" {
		content, err := io.ReadAll(a.In)
		if err != nil {
			return api.QueryRequest{}, usage(fmt.Errorf("cannot read the question: %w", err))
		}
		sql = string(content)
	}
	if f.Dataset == "" {
		name, err := onlyDataset(ctx, client)
		if err != nil {
			return api.QueryRequest{}, err
		}
		f.Dataset = name
	}
	var maxError map[string]api.Decimal
	for output, bound := range f.MaxError {
		if maxError == nil {
			maxError = map[string]api.Decimal{}
		}
		maxError[output] = api.Decimal(bound)
	}
	var params []json.RawMessage
	for _, value := range f.Param {
		if !json.Valid([]byte(value)) { // text without quotes
			quoted, err := json.Marshal(value)
			if err != nil {
				return api.QueryRequest{}, usage(err)
			}
			value = string(quoted)
		}
		params = append(params, json.RawMessage(value))
	}
	version := ""
	if f.Latest {
		version = "latest"
	}
	var prepared *bool // absent: wherever a copy can answer
	if !f.Prepared {
		prepared = &f.Prepared
	}
	return api.QueryRequest{
		Prepared: prepared,
		Dataset:  f.Dataset, SQL: sql, Params: params, MaxError: maxError,
		Epsilon: api.Decimal(f.Epsilon), Rho: api.Decimal(f.Rho), Delta: api.Decimal(f.Delta),
		Mechanism: f.Mechanism, Selection: strings.TrimPrefix(f.Selection, "auto"), Confidence: f.confidence(), Dialect: f.Dialect,
		MaxGroups: f.MaxGroups, MaxRows: f.MaxRows, MaxRowsTotal: f.MaxRowsTotal, Report: f.Report, Version: version,
		RequireUseful: f.RequireUseful,
	}, nil
}

// confidence is which intervals are asked for; nil for the default.
func (f questionFlags) confidence() *api.Confidence {
	if f.Confidence == nil && !f.Simultaneous {
		return nil
	}
	return &api.Confidence{Level: f.Confidence, Simultaneous: f.Simultaneous}
}

func onlyDataset(ctx context.Context, client *api.Client) (string, error) {
	list, err := client.Datasets(ctx)
	if err != nil {
		return "", err
	}
	switch len(list.Datasets) {
	case 0:
		return "", errors.New("the gateway has no dataset with a policy yet")
	case 1:
		return list.Datasets[0].Name, nil
	}
	names := make([]string, 0, len(list.Datasets))
	for _, d := range list.Datasets {
		names = append(names, d.Name)
	}
	return "", usage(fmt.Errorf("which dataset? --dataset is one of: %s", strings.Join(names, ", ")))
}

// atMostFlag is the most that a request may be charged.
type atMostFlag struct {
	AtMost *ceilingText `help:"Refuse, free, what would be charged more: epsilon=E or rho=R, and delta=D, which is 0 when absent." placeholder:"epsilon=E,delta=D"`
}

// ceilingText is a price as a flag.
type ceilingText api.Price

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *ceilingText) UnmarshalText(text []byte) error {
	to := map[string]*api.Decimal{"epsilon": &p.Epsilon, "rho": &p.Rho, "delta": &p.Delta}
	for part := range strings.SplitSeq(string(text), ",") {
		currency, amount, _ := strings.Cut(part, "=")
		if to[currency] == nil || *to[currency] != "" || amount == "" {
			return errors.New("a price is epsilon=E or rho=R, and delta=D, each once")
		}
		*to[currency] = api.Decimal(amount)
	}
	return nil
}

type queryCommand struct {
	IdempotencyKey string `help:"Name of the request: repeating it gives the first answer, free." placeholder:"KEY"`
	atMostFlag
	questionFlags
}

func (c *queryCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	request, err := c.request(ctx, a, client)
	if err != nil {
		return err
	}
	request.AtMost = (*api.Price)(c.AtMost)
	answer, err := client.Query(ctx, request, c.IdempotencyKey)
	if ctx.Err() != nil {
		return errors.New("interrupted: the question may have been paid for; asking it again then shows its answer, free")
	}
	if err != nil {
		return a.refused(c.JSON, request.SQL, err)
	}
	if c.JSON {
		return printJSON(a.Out, answer)
	}
	return a.showAnswer(answer, confidenceOf(request))
}

type estimateCommand struct {
	questionFlags
}

func (c *estimateCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	request, err := c.request(ctx, a, client)
	if err != nil {
		return err
	}
	estimate, err := client.Estimate(ctx, request)
	if err != nil {
		return a.refused(c.JSON, request.SQL, err)
	}
	if c.JSON {
		return printJSON(a.Out, estimate)
	}
	return a.showEstimate(estimate)
}

// refused prints a problem document for machines; for people it passes on the error together with the question.
func (a *app) refused(asJSON bool, sql string, err error) error {
	var problem *api.Problem
	if asJSON && errors.As(err, &problem) {
		err = errors.Join(printJSON(a.Out, problem), err)
	}
	return questionError{err, sql}
}

// said reports an error, or prints the answer as JSON where asked to. false: it did neither, and the caller shows the answer to people.
func (a *app) said(asJSON bool, answer any, err error) (bool, error) {
	switch {
	case err != nil:
		return true, a.refused(asJSON, "", err)
	case asJSON:
		return true, printJSON(a.Out, answer)
	default:
		return false, nil
	}
}

// questionError is an error about a question, which its position points into.
type questionError struct {
	error
	sql string
}

func (e questionError) Unwrap() error { return e.error }

// excerpt is the line that a position points at, with a caret under the column; "" when there is no such place.
func excerpt(text string, at *api.Position) string {
	lines := strings.Split(text, "\n")
	if at == nil || at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	line := []rune(strings.TrimRight(lines[at.Line-1], "\r"))
	// A tab stays a tab, so that the caret stands under its column.
	blank := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(line[:min(max(at.Column-1, 0), len(line))]))
	return "  " + string(line) + "\n  " + blank + "^\n"
}

func confidenceOf(request api.QueryRequest) float64 {
	if c := request.Confidence; c != nil && c.Level != nil {
		return *c.Level
	}
	return 0.95
}

// printJSON writes one line of JSON.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
