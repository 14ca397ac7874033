package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway/auth"
)

//go:embed demo_policy.yaml
var demoPolicy []byte

// What the demo calls itself in its tokens.
const (
	demoIssuer   = "noisegate-demo"
	demoAudience = "noisegate"
	demoDataset  = "census"
)

type demoCommand struct {
	HTTP    string `name:"http" help:"Listen here; without it 127.0.0.1:8080, or any free port when that is taken." placeholder:"HOST:PORT"`
	PG      string `name:"pg" help:"Speak PostgreSQL's protocol here; without it 127.0.0.1:6432, or any free port when that is taken." placeholder:"HOST:PORT"`
	DSN     string `name:"dsn" help:"Use this server as a superuser instead of starting a private one; what the demo makes there is dropped at the end." placeholder:"URL"`
	Rows    int    `default:"32561" help:"How many people to invent."`
	Once    string `help:"Answer one question and exit." placeholder:"SQL"`
	Epsilon string `default:"0.5" help:"Price of the question of --once."`
	Delta   string `default:"1e-9" help:"Delta of the question of --once; pays for private group keys."`
	JSON    bool   `name:"json" help:"Print one line of JSON when ready; with --once, the answer as JSON."`
	Version string `name:"postgres" help:"Run this major version of PostgreSQL (NOISEGATE_POSTGRES_VERSION), which is fetched unless it is installed; without it the newest installed one, and fetched where there is none." placeholder:"VERSION"`
	Keep    string `type:"path" help:"Keep database, ledger and key in this directory, and use them again next time." placeholder:"DIR"`
}

// demo is a running demo.
type demo struct {
	*app
	options  *demoCommand
	began    time.Time
	steps    io.Writer // where progress is told
	database *demoDatabase
	config   *config.Config
	secret   []byte
	url      string
	pgURL    string // "": PostgreSQL's protocol is not spoken
	codes    *auth.Codes
	tokens   map[auth.Role]string
	files    map[auth.Role]string // that hold the tokens; none on a server of the user's
}

func (c *demoCommand) run(ctx context.Context, a *app) (err error) {
	if c.Rows < demodata.MinRows {
		return usage(fmt.Errorf("--rows must be at least %d", demodata.MinRows))
	}
	if c.DSN != "" && c.Keep != "" {
		return usage(errors.New("--keep is for the private server, not for the server of --dsn"))
	}
	d := &demo{app: a, options: c, began: time.Now(), steps: a.Out, tokens: map[auth.Role]string{}, codes: auth.NewCodes(a.now)}
	switch {
	case c.JSON:
		d.steps = io.Discard
	case c.Once != "":
		d.steps = a.Err
	}
	on, err := d.listen(ctx) // first, since a wrong address should fail at once
	if err != nil {
		return err
	}
	defer on.Close() // for the ways out on which nobody serves on them
	defer func() { err = errors.Join(err, d.closeDatabase(ctx)) }()
	if err := d.prepareDatabase(ctx); err != nil {
		return err
	}
	return d.serve(ctx, on)
}

// step runs one part of the preparation and prints what was done and how long it took. The name is for errors.
func (d *demo) step(name string, work func() (done string, err error)) error {
	begin := time.Now()
	done, err := work()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dots := strings.Repeat(".", max(3, 64-len([]rune(done))))
	fmt.Fprintf(d.steps, "  %s %s %.1f s\n", done, dots, time.Since(begin).Seconds())
	return nil
}

func (d *demo) prepareDatabase(ctx context.Context) error {
	if err := d.step("PostgreSQL", func() (string, error) {
		var version int
		var err error
		if d.options.DSN != "" {
			d.database, version, err = borrowDemoDatabase(ctx, d.options.DSN)
			return fmt.Sprintf("PostgreSQL %d of --dsn: databases %s, %s", version, demoControl, demoProtected), err
		}
		wanted, err := d.wantedServer(d.options.Version)
		if err != nil {
			return "", err
		}
		d.database, version, err = startDemoDatabase(ctx, wanted, d.options.Keep)
		return fmt.Sprintf("PostgreSQL %d started in a private directory", version), err
	}); err != nil {
		return err
	}
	if err := d.step("roles and schema", func() (string, error) {
		if err := d.database.prepare(ctx); err != nil {
			return "", err
		}
		_, err := migrate(ctx, d.database.dsn("noisegate_owner", demoControl))
		return "three roles with the fewest rights; the ledger's schema", err
	}); err != nil {
		return err
	}
	return d.step("data", func() (string, error) {
		done := fmt.Sprintf("%s invented people and their visits loaded", groupThousands(fmt.Sprint(d.options.Rows)))
		if d.database.leftover {
			done = "invented people of last time"
		}
		return done, d.database.load(ctx, d.options.Rows)
	})
}

func (d *demo) closeDatabase(ctx context.Context) error {
	if d.database == nil {
		return nil
	}
	return d.database.close(context.WithoutCancel(ctx))
}

// startGateway starts it as an operator would, with a key from a file. That file is gone by the time anything is shown: a
// demo whose terminal is closed, or whose output is cut off by head, ends without tidying up. (Its server then ends itself.)
func (d *demo) startGateway(ctx context.Context) (*server.Server, error) {
	scratch, err := os.MkdirTemp("", "noisegate-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if err := d.configure(scratch); err != nil {
		return nil, err
	}
	// Errors only: a warning is advice to an operator, and a database that was made a second ago has none.
	return server.Start(ctx, d.config, d.codes, slog.New(slog.NewTextHandler(d.Err, &slog.HandlerOptions{Level: slog.LevelError})))
}

// configure makes the configuration that an operator would write.
func (d *demo) configure(scratch string) error {
	keyFile := filepath.Join(scratch, "hs256.key")
	if d.options.Keep != "" {
		keyFile = filepath.Join(d.options.Keep, "hs256.key")
	}
	secret, err := auth.ReadSecret(keyFile)
	if err != nil { // also where an earlier version wrote it in base32; the demo's tokens are made at each start
		key := make([]byte, 32)
		_, _ = rand.Read(key) // which never fails
		if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
			return err
		}
		secret, err = auth.ReadSecret(keyFile)
	}
	if err != nil {
		return err
	}
	d.secret = secret
	d.config = config.New()
	d.config.Control.DSN = d.database.dsn("noisegate", demoControl)
	d.config.Auth.Issuer, d.config.Auth.Audience, d.config.Auth.Keys.HS256File = demoIssuer, demoAudience, keyFile
	protected := config.NewDataset()
	protected.DSN = d.database.dsn("noisegate_reader", demoProtected)
	protected.PrepareDSN = d.database.dsn("noisegate_prepare", demoProtected)
	protected.CatalogDSN = d.database.dsn(d.database.super, demoCatalog)
	d.config.Datasets[demoDataset] = protected
	return d.makeTokens()
}

// demoSubject is who holds each role in the demo.
func demoSubject(role auth.Role) string {
	switch role {
	case auth.Analyst:
		return "ana"
	case auth.Steward:
		return "sam"
	case auth.ML:
		return "mel"
	default:
		return "nobody"
	}
}

func (d *demo) makeTokens() error {
	for _, role := range []auth.Role{auth.Analyst, auth.Steward, auth.ML} {
		token, err := auth.DevToken{Secret: d.secret, Issuer: demoIssuer, Audience: demoAudience, Subject: demoSubject(role),
			Roles: []auth.Role{role}, Issued: d.now(), Lifetime: 24 * time.Hour}.Sign()
		if err != nil {
			return err
		}
		d.tokens[role] = token
	}
	return nil
}

// writeTokens puts the tokens, which are too long for eyes and command lines, into files next to the private server's.
func (d *demo) writeTokens() error {
	if d.database.server == nil {
		return nil
	}
	d.files = map[auth.Role]string{}
	for role, token := range d.tokens {
		d.files[role] = filepath.Join(d.database.server.Dir(), demoSubject(role)+".token")
		if err := os.WriteFile(d.files[role], []byte(token+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// demoWire is where the demo speaks PostgreSQL's protocol.
const demoWire = "127.0.0.1:6432"

// listen takes the addresses that were asked for, or the usual ones, or any. With --once there is nobody for PostgreSQL's protocol.
func (d *demo) listen(ctx context.Context) (on server.Listeners, err error) {
	if on.HTTP, err = d.listenOn(ctx, "--http", d.options.HTTP, config.New().HTTP.Listen); err != nil || d.options.Once != "" {
		return on, err
	}
	if on.Wire, err = d.listenOn(ctx, "--pg", d.options.PG, demoWire); err != nil {
		return on, errors.Join(err, on.Close())
	}
	return on, nil
}

func (d *demo) listenOn(ctx context.Context, flag, wanted, usual string) (net.Listener, error) {
	var network net.ListenConfig
	switch {
	case wanted != "":
		l, err := network.Listen(ctx, "tcp", wanted)
		if err != nil {
			return nil, usage(fmt.Errorf("%s: %w", flag, err))
		}
		return l, nil
	case d.options.Once == "":
		if l, err := network.Listen(ctx, "tcp", usual); err == nil {
			return l, nil
		}
	}
	return network.Listen(ctx, "tcp", "127.0.0.1:0")
}

// serve runs the gateway, does what was asked, and stays up until the context ends unless one answer was all.
func (d *demo) serve(ctx context.Context, on server.Listeners) error {
	d.url = "http://" + reachable(on.HTTP.Addr())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var g *server.Server
	if err := d.step("gateway", func() (_ string, err error) {
		g, err = d.startGateway(ctx)
		return "gateway started", err
	}); err != nil {
		return err
	}
	defer g.Close()
	if on.Wire != nil {
		d.pgURL = d.postgresURL(on.Wire.Addr())
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, on) }()
	err := d.applyPolicy(ctx)
	if err == nil && d.options.Once == "" {
		if err = d.prepareVisits(ctx); err == nil {
			err = d.loadVotes(ctx)
		}
	}
	if err != nil {
		stop()
		return errors.Join(err, <-served)
	}
	err = d.show(ctx)
	if d.options.Once == "" && err == nil {
		select {
		case err = <-served:
			return err
		case <-ctx.Done():
		}
	}
	stop()
	return errors.Join(err, <-served)
}

// reachable is how a client on this machine reaches an address.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// codeLifetime is how long the code in the console's address works.
const codeLifetime = 10 * time.Minute

// consoleURL is where a browser opens the console as somebody. The code stands in the fragment, which browsers send to nobody.
func (d *demo) consoleURL(role auth.Role) string {
	return d.url + "/#code=" + d.codes.Issue(d.tokens[role], codeLifetime)
}

// postgresURL is how psql and drivers connect as the analyst: the token is the password, and the session has a price.
func (d *demo) postgresURL(at net.Addr) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(demoSubject(auth.Analyst), d.tokens[auth.Analyst]), Host: reachable(at),
		Path: demoDataset, RawQuery: "sslmode=disable&options=-c%20noisegate.epsilon%3D0.1"}).String()
}

// applyPolicy does it as a steward would, over HTTP. A policy of last time (--keep) is replaced only when it differs.
func (d *demo) applyPolicy(ctx context.Context) error {
	steward := api.NewClient(d.url, d.tokens[auth.Steward])
	return d.step("policy", func() (string, error) {
		var version int64
		if _, last, err := steward.Policy(ctx, demoDataset); err == nil {
			version = last
		} else if !errors.As(err, new(*api.Problem)) {
			return "", err
		}
		_, err := steward.SetPolicy(ctx, demoDataset, demoPolicy, version)
		return "policy and budgets applied", err
	})
}

// prepareVisits has a copy made of the visits, as a steward would, over HTTP. One of last time (--keep) stays, and so do its answers.
func (d *demo) prepareVisits(ctx context.Context) error {
	steward := api.NewClient(d.url, d.tokens[auth.Steward])
	return d.step("prepared copy", func() (string, error) {
		if serves, err := d.copyServes(ctx); err != nil || serves {
			return "prepared copy of last time", err
		}
		job, err := steward.Prepare(ctx, demoDataset, api.PrepareRequest{})
		for serves := false; err == nil && !serves; {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if job, err = steward.PrepareJob(ctx, demoDataset, job.JobID); err != nil || job.Ended == nil {
				continue
			}
			if job.State != "done" {
				return "", errors.New(job.Tables[0].Problem)
			}
			serves, err = d.copyServes(ctx) // once the gateway has looked
		}
		return "visits prepared: a copy with few rows of each person", err
	})
}

// copyServes reports whether questions about visits are answered from a copy.
func (d *demo) copyServes(ctx context.Context) (bool, error) {
	estimate, err := api.NewClient(d.url, d.tokens[auth.Analyst]).Estimate(ctx, api.QueryRequest{Dataset: demoDataset,
		SQL: "SELECT count(*) FROM visits", Epsilon: "0.1"})
	return err == nil && estimate.AsOf != nil, err
}

// show does what was asked for: one line for scripts, one answer, or the tour.
func (d *demo) show(ctx context.Context) error {
	switch {
	case d.options.Once != "":
		return d.answerOnce(ctx)
	case d.options.JSON:
		return printJSON(d.Out, struct {
			HTTP     string               `json:"http"`
			Console  string               `json:"console"` // as the analyst
			Postgres string               `json:"postgres"`
			Tokens   map[auth.Role]string `json:"tokens"`
			Datasets []string             `json:"datasets"`
		}{d.url, d.consoleURL(auth.Analyst), d.pgURL, d.tokens, []string{demoDataset}})
	default:
		return d.tour(ctx)
	}
}

func (d *demo) answerOnce(ctx context.Context) error {
	question := api.QueryRequest{Dataset: demoDataset, SQL: d.options.Once,
		Epsilon: api.Decimal(d.options.Epsilon), Delta: api.Decimal(d.options.Delta)}
	answer, err := api.NewClient(d.url, d.tokens[auth.Analyst]).Query(ctx, question, "")
	if err != nil {
		return d.refused(d.options.JSON, question.SQL, err)
	}
	if d.options.JSON {
		return printJSON(d.Out, answer)
	}
	return d.showAnswer(answer, confidenceOf(question))
}
