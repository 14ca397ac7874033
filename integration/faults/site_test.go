package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/integration/invariants"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// How long the campaign is. The defaults are for make test; make faults-short and make faults give their own.
var (
	killsPerPoint = flag.Int("kills-per-point", 1, "how often the gateway is killed at each point")
	restarts      = flag.Int("restarts", 2, "how often PostgreSQL is stopped under load")
	rounds        = flag.Int("rounds", 1, "how often each other fault is made")
)

// site is a server with the databases of a gateway, and the judge of its ledger.
type site struct {
	server    *pgserver.Server
	control   *pgtest.ControlDatabase
	protected *pgtest.ProtectedDatabase
	databases gatewaytest.Databases
	super     string // DSN of the control database for a superuser
	judge     invariants.Judge
	verified  budget.Head // how far the chain was verified
	auditor   *journal.Auditor
	audited   budget.Page // what it reads next
}

// common is a server that keeps what it commits, for all sites but those whose tests stop theirs. It ends with this process.
var common = sync.OnceValues(func() (*pgserver.Server, error) { return gatewaytest.Server(context.Background()) })

// newSite makes databases on a server that must not be stopped.
func newSite(t *testing.T) *site {
	t.Helper()
	server, err := common()
	if err != nil {
		t.Fatal(err)
	}
	return siteOn(t, server)
}

// ownSite starts a server that may be stopped.
func ownSite(t *testing.T) *site {
	t.Helper()
	server, err := gatewaytest.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return siteOn(t, server)
}

func siteOn(t *testing.T, server *pgserver.Server) *site {
	t.Helper()
	g := gatewaytest.New(t, server, gatewaytest.Options{})
	return &site{server: server, control: g.Control, protected: g.Protected, super: g.Control.DSN,
		databases: gatewaytest.Databases{Ledger: g.Control.LedgerDSN, Reader: g.Protected.ReaderDSN},
		judge:     invariants.Judge{Told: &invariants.Answered{}},
		verified:  budget.Head{Dataset: gatewaytest.Dataset},
		auditor:   journal.NewAuditor(gatewaytest.Dataset, nil),
		audited:   wholeJournal()}
}

// inProcess serves a gateway from this process until the test ends, and gives its URL.
func (s *site) inProcess(t *testing.T, trapped *trap, change func(*gateway.Config)) string {
	t.Helper()
	handler, err := assemble(t.Context(), s.databases, trapped, change)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return serveHTTP(t, handler)
}

// Check has the ledger judged, and its chain verified from where it was verified last.
func (s *site) check(t *testing.T, after string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := s.judge.Check(t.Context(), conn); err != nil {
		t.Fatalf("after %s:\n%v", after, err)
	}
	ledger, err := pgledger.Open(t.Context(), s.control.LedgerDSN)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	defer ledger.Close()
	verified, err := ledger.Verify(t.Context(), s.verified)
	if err != nil {
		t.Fatalf("I5: after %s: %v", after, err)
	}
	s.verified = verified.Head
	if err := audit(t, ledger, s.auditor, &s.audited); err != nil {
		t.Fatalf("after %s: audit verify: %v", after, err)
	}
}

// wholeJournal asks for entries from the first on.
func wholeJournal() budget.Page {
	return budget.Page{Forward: true, Limit: 1000, Dataset: gatewaytest.Dataset}
}

// audit replays the entries of a ledger from a page on, as noisegate audit verify does.
func audit(t *testing.T, ledger *pgledger.Ledger, auditor *journal.Auditor, from *budget.Page) error {
	t.Helper()
	for {
		entries, err := ledger.Entries(t.Context(), *from)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if err := auditor.Add(e); err != nil {
				return err
			}
			from.After = e.Seq
		}
	}
}

// load is clients that ask one question after another, some of them twice.
type load struct {
	url    string
	told   *invariants.Answered
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	refusals map[string]int   // by code; "" for a broken connection
	waits    invariants.Waits // for answers
	strange  []error
}

// Within waits until a condition holds, for a minute: no machine takes so long for what tests wait for.
func within(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal(otherwise)
		}
	}
}

// Numbers makes the questions of a whole campaign different from each other.
type numbers struct {
	mu   sync.Mutex
	last int
}

func (n *numbers) next() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return n.last
}

func (s *site) load(t *testing.T, n *numbers, url string, clients int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{url: url, told: s.judge.Told, cancel: cancel, refusals: map[string]int{}}
	for i := range clients {
		client := api.NewClient(url, fmt.Sprint("ana", i%2))
		l.all.Go(func() {
			for ctx.Err() == nil {
				l.ask(ctx, client, n.next())
			}
		})
	}
	return l
}

// question gives another question for each number. Each fourth buys a mean first, and compares with it.
func question(i int) api.QueryRequest {
	sql := fmt.Sprintf("SELECT count(*) FROM people WHERE age <> %d", 1000+i)
	if i%4 == 0 {
		sql += fmt.Sprintf(" AND age > (SELECT avg(age) FROM people WHERE age <> %d)", 1000+i)
	}
	return api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "0.1"}
}

// ask asks question i, again under the same key, and something else under the same key.
func (l *load) ask(ctx context.Context, client *api.Client, i int) {
	key := fmt.Sprint("key-", i)
	l.told.Asked()
	answered := l.once(ctx, client, question(i), key)
	if i%3 == 0 || !answered && i%2 == 0 {
		l.once(ctx, client, question(i), key) // the same bytes, or the first ones
	}
	if answered && i%7 == 0 {
		if _, err := client.Query(ctx, question(-i), key); err == nil {
			l.note(errors.New("another question got an answer under a key that was used"))
		}
	}
}

// once reports whether there was an answer.
func (l *load) once(ctx context.Context, client *api.Client, q api.QueryRequest, key string) bool {
	start := time.Now()
	answer, err := client.Query(ctx, q, key)
	if err == nil {
		l.told.Told(key, answer)
		l.mu.Lock()
		l.waits = append(l.waits, time.Since(start))
		l.mu.Unlock()
		return true
	}
	code := codeOf(err)
	l.mu.Lock()
	l.refusals[code]++
	l.mu.Unlock()
	time.Sleep(2 * time.Millisecond) // nobody is there, or nothing is left: do not spin
	return false
}

// codeOf is the code of a refusal; "" for a connection that broke.
func codeOf(err error) string {
	var p *api.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// refused is how often a code came so far.
func (l *load) refused(code string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals[code]
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strange = append(l.strange, err)
}

// stop waits for the clients and fails the test for what must not happen to them, and for codes that are not expected.
func (l *load) stop(t *testing.T, expected ...string) {
	t.Helper()
	l.cancel()
	l.all.Wait()
	for _, err := range l.strange {
		t.Error(err)
	}
	allowed := map[string]bool{"": true, "budget/exhausted": true, "budget/lost-answer": true, "request/in-flight": true,
		"data/unavailable": true}
	for _, code := range expected {
		allowed[code] = true
	}
	for code, n := range l.refusals {
		if !allowed[code] {
			t.Errorf("%d answers were %s", n, code)
		}
	}
}

// refill leaves both analysts and the dataset about so many questions: enough to be answered, and so few that they compete.
func (s *site) refill(t *testing.T, url string, questions int) {
	t.Helper()
	steward := api.NewClient(url, "sam")
	for _, account := range []string{"dataset", "analyst:ana0", "analyst:ana1"} {
		amounts := []string{fmt.Sprintf("%d/10", questions)}
		if now, err := steward.Account(t.Context(), gatewaytest.Dataset, account); err == nil {
			amounts = append(amounts, string(now.Spent.Epsilon), string(now.Reserved.Epsilon))
		}
		limit := api.BudgetLimit{Form: "pure", Epsilon: api.Decimal(plus(t, amounts...))}
		if _, err := steward.SetAccount(t.Context(), gatewaytest.Dataset, account, limit); err != nil {
			t.Fatal(err)
		}
	}
}

func plus(t *testing.T, amounts ...string) string {
	t.Helper()
	sum := new(big.Rat)
	for _, text := range amounts {
		a, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no amount", text)
		}
		sum.Add(sum, a)
	}
	return sum.FloatString(12)
}

func serveHTTP(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- httpapi.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return "http://" + listener.Addr().String()
}
