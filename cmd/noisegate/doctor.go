package main

import (
	"context"
	"fmt"

	"noisegate.example/cmd/noisegate/internal/doctor"
)

// doctorCommand looks at an installation. It changes nothing.
type doctorCommand struct {
	JSON bool `help:"Print JSON, for programs."`
	configFlag
}

// illness is the finding that the command is for.
type illness struct{ failed, looks int }

func (e illness) Error() string {
	return fmt.Sprintf("%d of %d looks found what must be mended", e.failed, e.looks)
}

func (c *doctorCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	findings := doctor.Examine(ctx, config, c.Config, a.now)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := 0
	for _, f := range findings {
		if f.Level == doctor.Fail {
			failed++
		}
	}
	if c.JSON {
		err = printJSON(a.Out, findings)
	} else {
		for _, f := range findings {
			fmt.Fprintf(a.Out, "%-4s  %s: %s\n", f.Level, f.Subject, f.Text)
			if f.Fix != "" {
				fmt.Fprintf(a.Out, "      fix: %s\n", f.Fix)
			}
		}
	}
	if err == nil && failed > 0 {
		err = illness{failed, len(findings)}
	}
	return err
}
