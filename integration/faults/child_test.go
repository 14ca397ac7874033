package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/internal/fault"
)

// childCommand makes the test binary a gateway: a process that can be killed.
const childCommand = "gateway-to-be-killed"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childCommand {
		if err := runChild(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if flag.Parse(); testing.Short() {
		return // -short: every test here waits for what it breaks
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's own log
	os.Exit(m.Run())
}

// orders are what a child is told.
type orders struct {
	Databases gatewaytest.Databases
	Address   string
	KillAt    point // "" for never
	Visit     int64 // the how manieth

	Memory      int64  // bytes that it should do with, as GOMEMLIMIT sets them; 0: as many as it wants
	Descriptors uint64 // how many files and connections it may have open; 0: as many as this process
}

// apply makes scarce what is to be scarce.
func (o orders) apply() error {
	if o.Memory > 0 {
		debug.SetMemoryLimit(o.Memory)
	}
	if o.Descriptors == 0 {
		return nil
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: o.Descriptors, Max: o.Descriptors})
}

func runChild(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if err := o.apply(); err != nil {
		return err
	}
	t := newTrap(o.KillAt, o.Visit, func() {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	})
	if o.KillAt == afterCommit {
		relayed, err := t.relay(o.Databases.Ledger)
		if err != nil {
			return err
		}
		o.Databases.Ledger = relayed
	}
	handler, err := assemble(context.Background(), o.Databases, t, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("GET "+goroutinesPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, ours()) })
	return httpapi.Serve(context.Background(), listener, mux, slog.New(slog.DiscardHandler))
}

// goroutinesPath is where a child says how many goroutines it has, see [ours].
const goroutinesPath = "/goroutines"

func (c *child) goroutines(t *testing.T) int {
	t.Helper()
	response, err := http.Get(c.url + goroutinesPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var count int
	if _, err := fmt.Fscan(response.Body, &count); err != nil {
		t.Fatal(err)
	}
	return count
}

// assemble puts a gateway with a trap in its way behind HTTP. Change, if there is one, puts other parts in.
func assemble(ctx context.Context, d gatewaytest.Databases, t *trap, change func(*gateway.Config)) (http.Handler, error) {
	g, err := gatewaytest.Assemble(ctx, d, gatewaytest.Options{Fairness: gateway.Fairness{Places: 64, PerAnalyst: 64},
		Change: func(c *gateway.Config) {
			t.stand(c)
			if change != nil {
				change(c)
			}
		}})
	if err != nil {
		return nil, err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		g.KeepReady(ctx)
	}()
	context.AfterFunc(ctx, func() { <-watched; g.Close() })
	handler, err := httpapi.New(httpapi.Config{Service: g.Service, Labels: g.Labels, Verifier: names{},
		Log: slog.New(defects{slog.NewTextHandler(os.Stderr, nil)})})
	return t.sending(handler), err
}

// defects logs answers that are internal errors alone, which no fault excuses.
type defects struct{ slog.Handler }

func (d defects) Handle(ctx context.Context, r slog.Record) (err error) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "code" && a.Value.String() == string(fault.CodeInternal) {
			err = d.Handler.Handle(ctx, r)
		}
		return true
	})
	return err
}

// names takes a token for the subject's name, who is analyst and steward.
type names struct{}

func (names) Verify(_ context.Context, token string) (auth.Principal, error) {
	p, ok := auth.NewPrincipal(token, []string{"analyst", "steward"}, []string{"analysts"})
	if !ok {
		return auth.Principal{}, fmt.Errorf("no name: %q", token)
	}
	return p, nil
}

// child is a gateway in a separate process.
type child struct {
	url    string
	cmd    *exec.Cmd
	exited chan struct{}
	errors strings.Builder
}

// startChild starts a gateway and waits until it is ready; it says how long that took.
func startChild(t *testing.T, o orders) (*child, time.Duration) {
	t.Helper()
	start := time.Now()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{url: "http://" + o.Address, exited: make(chan struct{})}
	c.cmd = exec.CommandContext(t.Context(), os.Args[0], childCommand, string(text))
	c.cmd.Stderr = &c.errors
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	t.Cleanup(c.kill)
	for time.Since(start) < time.Minute {
		select {
		case <-c.exited:
			t.Fatalf("the gateway ended while it started: %s", c.errors.String())
		default:
		}
		if ready(c.url) {
			return c, time.Since(start)
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("the gateway is not ready: %s", c.errors.String())
	return nil, 0
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// dead reports whether the child has ended.
func (c *child) dead() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

func ready(url string) bool {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
