// Package doctor looks at an installation before and while it serves: files, keys, databases, roles, limits. What it
// finds it says with what to do about it.
//
// It knows what makes an installation unsafe, fragile or slow, beyond what a gateway refuses at its start. It changes
// nothing and reads no rows of protected tables. It does not know the command line.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/fault"
)

// Level says how bad a finding is.
type Level string

const (
	OK   Level = "ok"
	Warn Level = "warn" // it serves, and something is missing or could go wrong
	Fail Level = "fail" // it does not serve, or not safely
)

// Finding is what one look found.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"` // a key of the configuration, or what was looked at
	Text    string `json:"text"`
	Fix     string `json:"fix,omitempty"` // what to do; "" for what is well
}

// Limits of what is taken as well.
const (
	patience     = 10 * time.Second // for one database
	skew         = 2 * time.Second  // between this machine's clock and a server's
	certificates = 30 * 24 * time.Hour
	descriptors  = 4096
)

// doctor gathers findings.
type doctor struct {
	config   *config.Config
	file     string // of the configuration; "": there is none
	now      func() time.Time
	findings []Finding
}

// Examine looks at an installation: file is the configuration's own file, "" where variables say it all. Every look gives
// a finding, also a good one. It ends early when the context does.
func Examine(ctx context.Context, c *config.Config, file string, now func() time.Time) []Finding {
	d := &doctor{config: c, file: file, now: now}
	d.files()
	d.certificates()
	d.machine()
	d.keys(ctx)
	governed := d.control(ctx)
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		if ctx.Err() != nil {
			break
		}
		d.dataset(ctx, name, c.Datasets[name], governed)
	}
	return d.findings
}

func (d *doctor) ok(subject, format string, args ...any) {
	d.findings = append(d.findings, Finding{Level: OK, Subject: subject, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(subject, fix, format string, args ...any) {
	d.findings = append(d.findings, Finding{Level: Warn, Subject: subject, Text: fmt.Sprintf(format, args...), Fix: fix})
}

func (d *doctor) fail(subject, fix, format string, args ...any) {
	d.findings = append(d.findings, Finding{Level: Fail, Subject: subject, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// failed is a failure for each line of an error; what stands behind the first "; " of a line, or the hint of a fault, says
// what to do, else otherwise.
func (d *doctor) failed(subject string, err error, otherwise string) {
	var refusal *fault.Error
	message := err.Error()
	if errors.As(err, &refusal) {
		if refusal.Hint != "" {
			otherwise = refusal.Hint
		}
		if refusal.Err != nil { // who runs this reads the log as well
			message += ": " + strings.ReplaceAll(refusal.Err.Error(), "\n", " ")
		}
	}
	for line := range strings.SplitSeq(message, "\n") {
		text, fix, told := strings.Cut(line, "; ")
		if !told {
			fix = otherwise
		}
		d.fail(subject, fix, "%s", text)
	}
}
