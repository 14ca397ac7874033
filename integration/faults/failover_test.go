package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/integration/invariants"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

var failovers = flag.Int("failovers", 2, "how often an asynchronous standby takes over under load")

// pair is a server and its asynchronous standby, which take turns.
type pair struct {
	programs pgserver.Programs
	dirs     [2]string
	servers  [2]*pgserver.Server
	primary  int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	programs, err := pgtest.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Need(t, "sudo apt-get install -y postgresql", filepath.Join(programs.Bin, "pg_basebackup"))
	parent, err := os.MkdirTemp(pgserver.MemoryDir(), "noisegate-pair-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &pair{programs: programs, dirs: [2]string{filepath.Join(parent, "a"), filepath.Join(parent, "b")}}
	p.start(t, 0, nil)
	t.Cleanup(func() {
		for _, s := range p.servers {
			if s != nil {
				_ = s.Stop()
			}
		}
	})
	return p
}

func (p *pair) start(t *testing.T, which int, follows *pgserver.Server) {
	t.Helper()
	var err error
	p.servers[which], err = pgserver.Start(t.Context(), pgserver.Options{Programs: p.programs, Dir: p.dirs[which], Follows: follows,
		Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "wal_level": "replica", "max_wal_senders": "4",
			"wal_receiver_timeout": "2s", "hot_standby": "on"}})
	if err != nil {
		t.Fatal(err)
	}
}

// both is a connection string that leads to the one of both that takes connections as wanted.
func (p *pair) both(t *testing.T, dsn, wanted string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", p.dirs[0]+","+p.dirs[1])
	q.Set("port", q.Get("port")+","+q.Get("port"))
	q.Set("target_session_attrs", wanted)
	u.RawQuery = q.Encode()
	return u.String()
}

func (p *pair) query(t *testing.T, which int, sql string, into ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.servers[which].DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	return conn.QueryRow(t.Context(), sql).Scan(into...)
}

// follow makes the server that is not the primary its standby, anew.
func (p *pair) follow(t *testing.T) {
	t.Helper()
	standby := 1 - p.primary
	if p.servers[standby] != nil {
		_ = p.servers[standby].Stop()
	}
	if err := os.RemoveAll(filepath.Join(p.dirs[standby], "data")); err != nil {
		t.Fatal(err)
	}
	p.start(t, standby, p.servers[p.primary])
	within(t, "the standby does not follow", func() bool {
		var following bool
		err := p.query(t, p.primary, "SELECT count(*) > 0 AND bool_and(replay_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication", &following)
		return err == nil && following
	})
}

// sender is the process that sends the standby what the primary commits.
func (p *pair) sender(t *testing.T) int {
	t.Helper()
	var pid int
	if err := p.query(t, p.primary, "SELECT pid FROM pg_stat_replication", &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// failOver ends the primary as a power failure would, and lets the standby take over.
func (p *pair) failOver(t *testing.T, sender int) {
	t.Helper()
	killed := make(chan struct{})
	go func() {
		p.servers[p.primary].Kill()
		close(killed)
	}()
	time.Sleep(5 * time.Millisecond)
	_ = syscall.Kill(sender, syscall.SIGKILL) // it may have been stopped
	<-killed
	p.primary = 1 - p.primary
	var promoted bool
	if err := p.query(t, p.primary, "SELECT pg_promote()", &promoted); err != nil || !promoted {
		t.Fatal(promoted, err)
	}
}

// holders are clients that keep their receipts.
type holders struct {
	mu       sync.Mutex
	receipts map[string]gatewaytest.Receipt // by release
	when     map[string]time.Time
	codes    map[string]int
	odd      string
	kept     map[string]bool // those that an earlier round found in the ledger
}

func (h *holders) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.receipts)
}

// since is how many answers came after a time.
func (h *holders) since(at time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, when := range h.when {
		if when.After(at) {
			n++
		}
	}
	return n
}

// ask asks one question, and keeps the receipt of its answer.
func (h *holders) ask(ctx context.Context, at, analyst string, question api.QueryRequest) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/query", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+analyst)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if response.StatusCode != http.StatusOK {
		var p api.Problem
		_ = json.Unmarshal(text, &p)
		h.codes[p.Code]++
		h.odd = string(text)
		return errors.New(p.Code)
	}
	var r gatewaytest.Receipt
	if err := json.Unmarshal([]byte(response.Header.Get("Noisegate-Receipt")), &r); err != nil {
		return fmt.Errorf("an answer without a receipt: %w", err)
	}
	h.receipts[string(r.Reservation)], h.when[string(r.Reservation)] = r, time.Now()
	return nil
}

// draw asks questions under registered plans, one plan after another.
func (h *holders) draw(ctx context.Context, at, analyst string, n *numbers) {
	client, plan := api.NewClient(at, analyst), ""
	for ctx.Err() == nil {
		if plan == "" {
			count := int64(10)
			registered, err := client.RegisterPlan(ctx, api.PlanRequest{Dataset: gatewaytest.Dataset, Delta: "1e-18",
				Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.01", Count: &count}}}, "")
			if err == nil {
				plan = registered.PlanID
			} else {
				time.Sleep(2 * time.Millisecond)
			}
			continue
		}
		q := question(n.next())
		q.Epsilon, q.Plan = "", plan
		if err := h.ask(ctx, at, analyst, q); err != nil {
			if strings.HasPrefix(err.Error(), "plan/") {
				plan = ""
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// TestFailover lets an asynchronous standby take over under load, again and again, with two gateways at work. What it
// lacks is found, by whichever gateway knew it, and both hold the dataset until every receipt is booked: no answer is
// in no ledger, none is sold beyond a cap from what the failover gave back, and no slot of a plan is drawn twice.
//
// covers: F12
func TestFailover(t *testing.T) {
	p := newPair(t)
	s := siteOn(t, p.servers[0])
	s.databases.Ledger = p.both(t, s.databases.Ledger, "read-write")
	signer := gatewaytest.NewSigner(t)
	var ledgers []*pgledger.Ledger
	var urls []string
	for i := range 2 {
		urls = append(urls, s.inProcess(t, never(), func(c *gateway.Config) {
			l := c.Values.(*pgledger.Ledger)
			c.Signer = signer
			if err := l.VerifyAll(t.Context()); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			if err := l.Join(t.Context(), fmt.Sprint("gateway ", i), fmt.Sprint("run ", i)); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			ledgers = append(ledgers, l)
		}))
	}
	ctx, stop := context.WithCancel(t.Context())
	var attending sync.WaitGroup
	for _, l := range ledgers {
		attending.Go(func() {
			for ctx.Err() == nil {
				_ = l.Attend(ctx)
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	defer attending.Wait()
	defer stop()

	n, all := &numbers{}, &holders{receipts: map[string]gatewaytest.Receipt{}, when: map[string]time.Time{}, codes: map[string]int{}}
	lossy, lost, retired, plans := 0, 0, 0, 0
	for round := range *failovers {
		p.follow(t)
		for i, l := range ledgers { // as each minute
			if err := l.VerifyNew(t.Context()); err != nil {
				t.Errorf("round %d: gateway %d: %v", round, i, err)
			}
		}
		s.raise(t, all, urls)
		loading, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for i := range 6 {
			load.Go(func() {
				if i < 2 {
					all.draw(loading, urls[i], fmt.Sprint("ana", i), n)
				}
				for loading.Err() == nil {
					if err := all.ask(loading, urls[i%2], fmt.Sprint("ana", i%2), question(n.next())); err != nil {
						time.Sleep(2 * time.Millisecond)
					}
				}
			})
		}
		before := all.count()
		defer func() {
			if t.Failed() {
				t.Log(all.codes, ledgers[0].Broken(), ledgers[1].Broken(), all.odd)
			}
		}()
		within(t, "nobody is answered", func() bool { return all.count() > before+10 })
		sender := p.sender(t)
		if stops := round%3 != 2; stops { // else the standby lags as it happens to
			_ = syscall.Kill(sender, syscall.SIGSTOP)
			before = all.count()
			within(t, "nobody is answered once the standby is cut off", func() bool { return all.count() > before+5+rand.IntN(20) })
		}
		p.failOver(t, sender)
		took := time.Now()
		time.Sleep(500 * time.Millisecond) // under load: what the failover gave back is asked for
		missing := s.missing(t, p, all)
		if len(missing) > 0 {
			lossy, lost = lossy+1, lost+len(missing)
			for i, l := range ledgers {
				within(t, fmt.Sprintf("round %d: gateway %d does not hold the dataset of which %d answers are missing", round, i, len(missing)),
					func() bool {
						held := l.Broken()[gatewaytest.Dataset]
						return held != nil && held.Held
					})
			}
			if sold := all.since(took.Add(100 * time.Millisecond)); sold > 0 {
				t.Errorf("round %d: %d answers are missing, and %d were sold since", round, len(missing), sold)
			}
		}
		if s.reconcile(t, all, signer) {
			retired++
		}
		within(t, "a gateway does not go on", func() bool { return len(ledgers[0].Broken())+len(ledgers[1].Broken()) == 0 })
		cancel()
		load.Wait()
		plans = s.everythingIsCharged(t, p, all, signer, round)
		t.Logf("round %d: %d answers of %d were lost", round, len(missing), all.count())
	}
	t.Logf("%d failovers, %d lost something: %d answers of %d, from %d plans among others; %d of them ended all plans; refusals: %v",
		*failovers, lossy, lost, all.count(), plans, retired, all.codes)
	if lossy == 0 || plans == 0 {
		t.Error("no failover lost anything: the test asked nothing")
	}
	for p.primary != 0 { // whose databases the test drops
		p.follow(t)
		p.failOver(t, p.sender(t))
	}
}

// raise leaves the dataset and the analysts a few hundred questions, whatever they have used.
func (s *site) raise(t *testing.T, all *holders, urls []string) {
	t.Helper()
	_ = all
	deadline := time.Now().Add(time.Minute)
	for {
		err := func() error {
			steward := api.NewClient(urls[0], "sam")
			for _, account := range []string{"dataset", "analyst:ana0", "analyst:ana1"} {
				amounts := []string{"100"}
				if now, err := steward.Account(t.Context(), gatewaytest.Dataset, account); err == nil {
					amounts = append(amounts, string(now.Spent.Epsilon), string(now.Reserved.Epsilon))
				}
				limit := api.BudgetLimit{Form: "pure", Epsilon: api.Decimal(plus(t, amounts...))}
				if _, err := steward.SetAccount(t.Context(), gatewaytest.Dataset, account, limit); err != nil {
					return err
				}
			}
			return nil
		}()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no cap can be set: ", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// primary connects to the server that took over.
func (s *site) primary(t *testing.T, p *pair) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.both(t, s.super, "read-write"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// missing are the answers that clients hold and the ledger does not have.
func (s *site) missing(t *testing.T, p *pair, all *holders) (missing []string) {
	t.Helper()
	all.mu.Lock() // first: answers come meanwhile
	told := slices.Collect(maps.Keys(all.receipts))
	all.mu.Unlock()
	conn := s.primary(t, p)
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), "SELECT charge_id FROM noisegate.charge")
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(there)
	for _, id := range told {
		if _, found := slices.BinarySearch(there, id); !found {
			missing = append(missing, id)
		}
	}
	return missing
}

// reconcile books what clients hold, twice, and lets the dataset go on, as long as it is held. It reports whether that drew plans out.
func (s *site) reconcile(t *testing.T, all *holders, signer *gatewaytest.Signer) bool {
	t.Helper()
	operator, err := pgledger.Open(t.Context(), s.databases.Ledger)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	defer operator.Close()
	all.mu.Lock()
	var recharges []budget.Recharge
	named := map[budget.ReservationID]bool{} // plans of receipts
	for id, r := range all.receipts {
		charged, err := signer.Charged(r)
		if err != nil {
			t.Fatal(err)
		}
		if charged.Plan != nil {
			named[charged.Plan.ID] = true
		}
		if all.kept[id] {
			continue
		}
		recharge, err := signer.Recharge(r)
		if err != nil {
			t.Fatal(err)
		}
		recharges = append(recharges, recharge)
	}
	all.mu.Unlock()
	for try := range 2 {
		booked, err := operator.Recharge(t.Context(), "sam", recharges)
		if err != nil || try > 0 && booked > 0 {
			t.Fatal(try, booked, err, errors.Unwrap(err))
		}
	}
	done, held, err := operator.Resume(t.Context(), "sam", budget.Resume{Dataset: gatewaytest.Dataset, Reason: "every receipt is booked"})
	// A plan may be drawn by a question that dies with the primary: no receipt names it, so that no recharge can pay it.
	if err != nil || slices.ContainsFunc(done.Unpaid, func(plan budget.ReservationID) bool { return named[plan] }) {
		t.Fatal(done, err, errors.Unwrap(err))
	}
	return held && done.Retires
}

// everythingIsCharged has the ledger verified, audited and judged, and compares it with what clients hold, also of plans, which it
// counts.
func (s *site) everythingIsCharged(t *testing.T, p *pair, all *holders, signer *gatewaytest.Signer, round int) (plans int) {
	t.Helper()
	if missing := s.missing(t, p, all); len(missing) > 0 {
		t.Errorf("round %d: %d answers are in no ledger", round, len(missing))
	}
	ledger, err := pgledger.Open(t.Context(), s.databases.Ledger)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	defer ledger.Close()
	if err := ledger.VerifyAll(t.Context()); err != nil {
		t.Errorf("round %d: %v", round, err)
	}
	whole := wholeJournal()
	if err := audit(t, ledger, journal.NewAuditor(gatewaytest.Dataset, nil), &whole); err != nil {
		t.Errorf("round %d: audit verify: %v", round, err)
	}
	conn := s.primary(t, p)
	defer conn.Close(context.WithoutCancel(t.Context()))
	judge := invariants.Judge{Told: &invariants.Answered{}}
	if err := judge.Check(t.Context(), conn); err != nil {
		t.Errorf("round %d: %v", round, err)
	}
	balances, err := ledger.DatasetBalances(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	told, drawn := mechanisms.PicoEpsilon(0), map[budget.ReservationID]map[int]bool{}
	all.mu.Lock()
	for id, r := range all.receipts {
		charged, err := signer.Charged(r)
		if err != nil {
			t.Fatal(err)
		}
		if told += charged.Loss.Epsilon; charged.Plan == nil {
			continue
		}
		if drawn[charged.Plan.ID] == nil {
			told, drawn[charged.Plan.ID] = told+charged.Plan.Loss.Epsilon, map[int]bool{}
		}
		for slot := range charged.Plan.Count {
			if slot += charged.Plan.From; drawn[charged.Plan.ID][slot] {
				t.Errorf("round %d: slot %d of plan %s is drawn twice, the second time perhaps by %s", round, slot, charged.Plan.ID, id)
			}
			drawn[charged.Plan.ID][slot] = true
		}
	}
	all.kept = map[string]bool{}
	for id := range all.receipts {
		all.kept[id] = true
	}
	all.mu.Unlock()
	for _, b := range balances {
		if b.ID.Scope == budget.DatasetScope && b.Spent.Epsilon+b.Reserved.Epsilon < told {
			t.Errorf("round %d: clients hold answers of %d pico-ε, and the ledger counts %+v", round, told, b.Spent)
		}
	}
	return len(drawn)
}
