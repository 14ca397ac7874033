package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/stattest"
)

// Hard limits of an audit. More draws could use up the budget of its dataset; a smaller ε needs larger tables and more draws
// than that, and a larger one promises nothing.
const (
	maxAuditDraws = 1_000_000
	// maxAuditConfidence leaves a rate of false alarms that floating point still resolves.
	maxAuditConfidence = 0.999999999999
	minAuditEpsilon    = 0.05
	maxAuditEpsilon    = 20
)

type auditCommands struct {
	Verify    auditVerifyCommand    `cmd:"" help:"Check the ledger's hash chain, and receipts against it: of a running gateway, or offline, of a file that export wrote."`
	Export    auditExportCommand    `cmd:"" help:"Write the ledger's whole journal, a line of JSON for each entry, oldest first (stewards)."`
	Archive   auditArchiveCommand   `cmd:"" help:"Move the oldest entries of a dataset's journal to a signed file, as far as nothing but audits needs them."`
	Tail      auditTailCommand      `cmd:"" help:"Show the newest entries of the ledger's journal (stewards)."`
	Refusals  auditRefusalsCommand  `cmd:"" help:"Show how often each analyst was refused, by code, since the gateway started (stewards)."`
	Gateways  auditGatewaysCommands `cmd:"" help:"Who writes to the ledger: after a failover of the control database each is waited for."`
	Reconcile auditReconcileCommand `cmd:"" help:"Book charges again that the ledger lost, from receipts: each once, also beyond a cap."`
	Resume    auditResumeCommand    `cmd:"" help:"Let a dataset go on that is held after a failover: what it lost stays lost, or was booked."`
	DP        auditDPCommand        `cmd:"" name:"dp" help:"Ask about two tables that differ by one person, and prove from the answers how much privacy is lost at least."`
}

type auditDPCommand struct {
	Epsilon          []string `default:"0.1,0.5,1,2,4" help:"Claims to audit."`
	Draws            int      `default:"10000" help:"Answers about either table for each line, a thousand per request."`
	Confidence       float64  `default:"0.999" help:"Of each certified number: the probability that it is not above what is true."`
	Private          bool     `help:"Audit a private gateway with a private PostgreSQL; the default unless NOISEGATE_AUDIT_DSN is set, the connection of a role that may create a schema in the protected database."`
	Dataset          string   `default:"audit" help:"A dataset of the gateway for nothing but audits, in that database."`
	StewardTokenFile string   `type:"path" placeholder:"FILE" help:"File with a steward's token, who applies the policy; or the token itself in NOISEGATE_STEWARD_TOKEN."`
	gatewayFlags
}

// auditFailed is the finding that the command is for.
type auditFailed struct{ above, lines int }

func (e auditFailed) Error() string {
	return fmt.Sprintf("%d of %d lines lose more privacy than was claimed", e.above, e.lines)
}

// auditLoss is a privacy loss, claimed or certified. Rho counts where no ε without δ was charged.
type auditLoss struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Rho     float64 `json:"rho,omitempty"`
}

// auditLine is what was found out about one mechanism at one price.
type auditLine struct {
	Mechanism string    `json:"mechanism"`
	Claim     auditLoss `json:"claim"`
	Certified auditLoss `json:"certified"` // the loss is at least this
	Draws     int       `json:"draws"`     // of either table
	Deciding  int       `json:"deciding"`  // of them, those that did not choose what to count
	Seconds   float64   `json:"seconds"`
	Above     bool      `json:"above"` // more is certified than was claimed
}

func (c *auditDPCommand) run(ctx context.Context, a *app) (err error) {
	highest, err := c.check()
	if err != nil {
		return err
	}
	site, err := c.site(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	scratch, err := newAuditScratch(ctx, site, highest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.drop(ctx)) }()

	u := &auditor{dataset: site.dataset, schema: scratch.schema, maxUnits: scratch.units,
		ask: func(ctx context.Context, q api.QueryRequest) (*api.QueryResponse, error) {
			return site.analyst.Query(ctx, q, "")
		}}
	return c.report(ctx, a, u)
}

// check refuses flags that prove nothing, and gives the number of units that the smallest claim needs.
func (c *auditDPCommand) check() (units int, err error) {
	if c.Draws < 1 || c.Draws > maxAuditDraws {
		return 0, usage(fmt.Errorf("--draws must be between 1 and %d", maxAuditDraws))
	}
	if !config.ValidDataset(c.Dataset) {
		return 0, usage(errors.New("--dataset: a dataset's name is made of a-z, 0-9, _ and -, and begins with a letter"))
	}
	if !(c.Confidence >= 0.5 && c.Confidence <= maxAuditConfidence) {
		return 0, usage(errors.New("--confidence must be between 0.5 and 0.999999999999"))
	}
	for _, text := range c.Epsilon {
		epsilon, err := strconv.ParseFloat(text, 64)
		if err != nil || !(epsilon >= minAuditEpsilon && epsilon <= maxAuditEpsilon) {
			return 0, usage(fmt.Errorf("--epsilon: each must be between %g and %d", minAuditEpsilon, maxAuditEpsilon))
		}
		units = max(units, selectionUnits(epsilon))
	}
	return units, nil
}

// report audits line by line, and prints each when it is known: the whole may take minutes.
func (c *auditDPCommand) report(ctx context.Context, a *app, u *auditor) error {
	if !c.JSON {
		fmt.Fprintf(a.Out, " %-23s %-25s %-26s %9s %8s\n", "mechanism", "claimed", "certified", "draws", "time")
	}
	var lines []auditLine
	failed := auditFailed{}
	u.rate = stattest.FalseAlarm(1 - c.Confidence)
	for _, p := range auditProbes() {
		for _, epsilon := range c.Epsilon {
			line, err := u.audit(ctx, p, epsilon, c.Draws)
			if err != nil {
				return err
			}
			if line.Above {
				failed.above++
			}
			lines = append(lines, line)
			if !c.JSON {
				fmt.Fprintln(a.Out, line)
			}
		}
	}
	if c.JSON {
		if err := printJSON(a.Out, struct {
			Confidence float64     `json:"confidence"` // of each certified number
			Lines      []auditLine `json:"lines"`
		}{c.Confidence, lines}); err != nil {
			return err
		}
	}
	if failed.lines = len(lines); failed.above > 0 {
		return failed
	}
	return nil
}

func (l auditLine) String() string {
	verdict := ""
	if l.Above {
		verdict = "  ABOVE THE CLAIM"
	}
	claimed, certified := fmt.Sprintf("ε %g", l.Claim.Epsilon), fmt.Sprintf("ε >= %.3f", l.Certified.Epsilon)
	if l.Claim.Delta > 0 {
		claimed += fmt.Sprintf(", δ %g", l.Claim.Delta)
	}
	if l.Claim.Rho > 0 {
		claimed += fmt.Sprintf("; ρ %.4f", l.Claim.Rho)
		certified += fmt.Sprintf("; ρ >= %.4f", l.Certified.Rho)
	}
	return fmt.Sprintf(" %-23s %-25s %-26s %9s %6.1f s%s", l.Mechanism, claimed, certified, groupThousands(strconv.Itoa(l.Draws)),
		l.Seconds, verdict)
}

// audit draws answers about both tables and certifies what they prove.
func (u *auditor) audit(ctx context.Context, p auditProbe, epsilon string, draws int) (auditLine, error) {
	begin := time.Now()
	seen, charged, err := u.draw(ctx, p, epsilon, draws)
	if err != nil {
		return auditLine{}, err
	}
	asked, err := strconv.ParseFloat(epsilon, 64)
	if err != nil {
		return auditLine{}, err
	}
	line := auditLine{Mechanism: p.name, Claim: auditLoss{Epsilon: asked, Delta: p.delta}, Draws: len(seen.With)}
	// What was charged is the claim; a gateway that charges more than it was asked for does not get away with more.
	if charged.Epsilon == "" {
		line.Claim.Rho, err = strconv.ParseFloat(string(charged.Rho), 64)
	} else {
		line.Claim.Epsilon, err = strconv.ParseFloat(string(charged.Epsilon), 64)
		line.Claim.Epsilon = math.Min(line.Claim.Epsilon, asked)
	}
	if err != nil {
		return auditLine{}, fmt.Errorf("the charge cannot be read: %w", err)
	}
	proof, err := seen.Certify(p.delta, u.rate)
	if err != nil {
		return auditLine{}, err
	}
	line.Certified = auditLoss{Epsilon: proof.Epsilon, Delta: p.delta}
	if line.Claim.Rho > 0 {
		line.Certified.Rho = proof.Rho
	}
	line.Above = line.Certified.Epsilon > line.Claim.Epsilon || line.Certified.Rho > line.Claim.Rho
	line.Deciding, line.Seconds = proof.Draws, time.Since(begin).Seconds()
	return line, nil
}
