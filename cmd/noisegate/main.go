// Command noisegate is the gateway and everything around it: it serves, shows itself (demo), prepares its databases
// (migrate, policy), is its own client (query, estimate, budget), and its own examiner (audit).
//
// It knows the command line. It does not know SQL, noise or budgets: it only hands values from one package to the next.
// What the configuration says is in internal/config, how the other packages fit together in internal/server.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"noisegate.example/cmd/noisegate/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := Run(ctx, os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr}, config.ParseEnvironment(os.Environ()))
	stop()
	os.Exit(code)
}

// Streams are the process's own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run executes one command line and gives the exit code. The context ends long-running commands in an orderly way.
func Run(ctx context.Context, args []string, streams Streams, env config.Environment) int {
	a := &app{Streams: streams, env: env, now: time.Now, terminal: isTerminal(streams.Out)}
	return a.run(ctx, args)
}

// isTerminal reports whether people are likely to read what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
