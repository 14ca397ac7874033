package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/fault"
)

// Exit codes. Scripts rely on them.
const (
	exitOK = 0
	// An audit found a ledger that was changed, or more privacy lost than was claimed; the doctor, what must be mended; reconcile, what it
	// cannot book.
	exitAbove   = 1
	exitUsage   = 2 // the command line, the configuration or the token is wrong
	exitBudget  = 3 // refused by a budget
	exitRefused = 4 // refused by policy, or as SQL
	exitBackend = 5 // the gateway or a database cannot be reached, or failed
)

// app is what every command may use of the world.
type app struct {
	Streams
	env      config.Environment
	now      func() time.Time
	terminal bool
}

type commandLine struct {
	Demo     demoCommand     `cmd:"" help:"Start a private PostgreSQL with invented people and a gateway in front, and show it."`
	Serve    serveCommand    `cmd:"" help:"Run the gateway."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the control database's schema up to date."`
	Doctor   doctorCommand   `cmd:"" help:"Look at an installation: databases, roles, keys, files, limits; say what to mend."`
	Policy   policyCommands  `cmd:"" help:"Check, apply and export the policy of a dataset."`
	Prepare  prepareCommand  `cmd:"" help:"Make bounded copies of tables, over which questions cost what plain SQL does."`
	Token    tokenCommand    `cmd:"" help:"Make a token for development (only with auth.keys.hs256_file)."`
	Datasets datasetsCommand `cmd:"" help:"Show tables, columns, bounds and keys: what may be asked about."`
	Query    queryCommand    `cmd:"" help:"Ask a question and pay for the answer."`
	Estimate estimateCommand `cmd:"" help:"Show the price and the expected error of a question. Free."`
	Fit      fitCommand      `cmd:"" help:"Fit a regression and pay for it, or show its price."`
	Cluster  clusterCommand  `cmd:"" help:"Group rows by k-means and pay for it, or show its price."`
	Score    scoreCommand    `cmd:"" help:"Score centres of a grouping and pay for it, or show its price."`
	Bounds   boundsCommand   `cmd:"" help:"Buy histograms of people's rows, groups and values: what bounds of a policy would keep."`
	Budget   budgetCommands  `cmd:"" help:"Show what is left, or set a limit."`
	Pate     pateCommands    `cmd:"" help:"Private labels from votes of teachers."`
	Collect  collectCommands `cmd:"" help:"Local differential privacy: devices randomise, the gateway estimates."`
	Calc     calcCommands    `cmd:"" help:"Compute with noise and budgets: needs no gateway."`
	Audit    auditCommands   `cmd:"" help:"Check the ledger's journal; test a gateway's guarantee from outside."`
	Schema   schemaCommands  `cmd:"" help:"Print JSON Schemas, for editors."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// command is a leaf of the command line; gatewayCommand is one that begins with a client.
type command interface {
	run(ctx context.Context, a *app) error
}

type gatewayCommand interface {
	client(a *app) (*api.Client, error)
	ask(ctx context.Context, a *app, client *api.Client) error
}

func (a *app) run(ctx context.Context, args []string) int {
	var line commandLine
	exited := false // help was printed
	parser, err := kong.New(&line,
		kong.Name("noisegate"),
		kong.Description("Differentially private answers to SQL. Exit codes: 0 ok, 1 failed audit, 2 usage, 3 budget, 4 policy or SQL, 5 "+
			"backend."),
		kong.Writers(a.Out, a.Err),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Resolvers(a.variables()),
	)
	if err != nil {
		panic(err) // the structs above are wrong; every test finds it
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		return a.report(usage(mistyped(err)))
	}
	switch chosen := parsed.Selected().Target.Addr().Interface().(type) {
	case command:
		err = chosen.run(ctx, a)
	case gatewayCommand:
		var client *api.Client
		if client, err = chosen.client(a); err == nil {
			err = chosen.ask(ctx, a, client)
		}
	default:
		panic("noisegate: a command without run or ask: " + parsed.Command())
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	return a.report(err)
}

// mistyped is a mistake in a command line, with the help to ask for.
func mistyped(err error) error {
	help := "noisegate"
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		help = wrong.Context.Selected().FullPath()
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		err = fmt.Errorf("%s: %w", file.Path, file.Err)
	}
	return fmt.Errorf("%w; see %s --help", err, help)
}

// variables gives flags that were not given the value of their environment variable.
func (a *app) variables() kong.Resolver {
	names := map[string]string{"config": "NOISEGATE_CONFIG", "url": "NOISEGATE_URL", "token-file": "NOISEGATE_TOKEN_FILE"}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if value := a.env[names[flag.Name]]; value != "" {
			return value, nil
		}
		return nil, nil
	})
}

// usageError is a mistake in the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(err error) error { return usageError{err} }

// report prints what went wrong, if anything did, and chooses the exit code.
func (a *app) report(err error) int {
	var problem *api.Problem
	var refusal *fault.Error
	var wrong usageError
	var misconfigured config.Error
	var policy policyError
	var changed auditBroken
	var audit auditFailed
	var ill illness
	var left unbooked
	var foreign unbelieved
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &audit), errors.As(err, &changed), errors.As(err, &ill), errors.As(err, &left), errors.As(err, &foreign),
		errors.Is(err, journal.ErrReceipt):
		fmt.Fprintf(a.Err, "noisegate: %s\n", err)
		return exitAbove
	case errors.As(err, &policy):
		policy.say(a)
		return exitRefused
	case errors.As(err, &problem):
		var question questionError
		_ = errors.As(err, &question) // without a question there is nothing to point into
		a.sayProblem(problem, question.sql)
		return exitCode(problem.Code)
	case errors.As(err, &refusal):
		// The user of this command reads the log as well: the cause may be shown.
		fmt.Fprintf(a.Err, "noisegate: %s\n", err)
		if refusal.Err != nil {
			fmt.Fprintf(a.Err, "  cause: %s\n", refusal.Err)
		}
		if refusal.Hint != "" {
			fmt.Fprintf(a.Err, "  hint: %s\n", refusal.Hint)
		}
		return exitCode(string(refusal.Code))
	case errors.As(err, &wrong), errors.As(err, &misconfigured):
		fmt.Fprintf(a.Err, "noisegate: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nnoisegate: "))
		return exitUsage
	default:
		fmt.Fprintf(a.Err, "noisegate: %s\n", err)
		return exitBackend
	}
}

// exitCode is the exit code of a fault, by the area of its code.
func exitCode(code string) int {
	area, _, _ := strings.Cut(code, "/")
	switch {
	case code == "request/in-flight": // ask again later
		return exitBackend
	case area == "budget":
		return exitBudget
	case area == "sql" || area == "policy" || area == "plan" || area == "pate" || area == "collect":
		return exitRefused
	case area == "request" || area == "auth":
		return exitUsage
	default:
		return exitBackend
	}
}

// sayProblem prints a problem document for people, and points into the question when it can.
func (a *app) sayProblem(p *api.Problem, sql string) {
	at := ""
	if p.Position != nil {
		at = fmt.Sprintf("%d:%d: ", p.Position.Line, p.Position.Column)
	}
	fmt.Fprintf(a.Err, "noisegate: %s: %s%s\n", p.Code, at, p.Detail)
	fmt.Fprint(a.Err, excerpt(sql, p.Position))
	if p.Hint != "" {
		fmt.Fprintf(a.Err, "  hint: %s\n", p.Hint)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		if name == "near" {
			continue // the excerpt points at it
		}
		fmt.Fprintf(a.Err, "  %s: %s\n", strings.ReplaceAll(name, "_", " "), p.Extra[name])
	}
	if p.Status >= 500 && p.RequestID != "" {
		fmt.Fprintf(a.Err, "  request id: %s\n", p.RequestID)
	}
}
