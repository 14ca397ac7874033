package pgledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// durableServer starts a server that keeps what it commits, as the ledger demands. Its default of synchronous_commit is not
// what the ledger wants.
func durableServer(t testing.TB) *pgserver.Server {
	t.Helper()
	programs, err := pgtest.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, memory := t.(*testing.T) // benchmarks pay for fsync
	server, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: memory, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Open connects as the gateway's role.
func open(t testing.TB, d *pgtest.ControlDatabase) *pgledger.Ledger {
	t.Helper()
	ledger, err := pgledger.Open(t.Context(), d.LedgerDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	return ledger
}

// empty takes everything out of the ledger: a superuser who switches triggers off can.
func empty(t testing.TB, d *pgtest.ControlDatabase) {
	t.Helper()
	d.Exec(t, `SET session_replication_role = replica;
		TRUNCATE noisegate.account, noisegate.charge, noisegate.request_key, noisegate.entry, noisegate.plan, noisegate.chain, noisegate.policy,
			noisegate.gateway, noisegate.lost, noisegate.archive RESTART IDENTITY CASCADE`)
}

func TestPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	server := durableServer(t)
	d := pgtest.On(t, server)
	t.Run("Ledger", func(t *testing.T) {
		budgettest.Run(t, func(t *testing.T) budget.Ledger {
			empty(t, d)
			return open(t, d)
		})
	})
	t.Run("Timed", func(t *testing.T) {
		budgettest.RunTimed(t, func(t *testing.T) budgettest.Timed {
			empty(t, d)
			return timed(t, d)
		})
	})
	for name, test := range map[string]func(*testing.T, *pgtest.ControlDatabase){
		"StatementsPrepare":             testStatementsPrepare,
		"I1_OverspendingIsRefusedTwice": testConstraints,
		"I4_HistoryIsImmutable":         testHistoryIsImmutable,
		"PlansAreKept":                  testPlansAreKept,
		"SharedIsKept":                  testSharedIsKept,
		"ReleasedIsKept":                testReleasedIsKept,
		"OneAfterAnother":               testOneAfterAnother,
		"ReplayBeforeRefusal":           testReplayBeforeRefusal,
		"F06_GivenUp":                   testGivenUp,
		"EndedElsewhere":                testEndedElsewhere,
		"OtherSchema":                   testOtherSchema,
		"ReplayedElsewhere":             testReplayedElsewhere,
		"F13_EditsAreFound":             testEditsAreFound,
		"F13_NewerSchema":               testNewerSchema,
		"A70_F12_OlderLedger":           testOlderLedger,
		"VerificationIsFast":            testVerificationIsFast,
		"F13_StartFromACheckpoint":      testCheckpoint,
		"Archive":                       testArchive,
		"F13_ArchiveAttacked":           testArchiveAttacked,
		"F12_ArchiveAndGateways":        testArchiveAndGateways,
		"F12_ArchiveAndKilled":          testArchiveAndKilled,
		"ArchiveAndReceipts":            testArchiveAndReceipts,
		"F06_ArchiveCutOff":             testArchiveCutOff,
		"CommitsAreSynchronous":         testCommitsAreSynchronous,
		"F04_BackendKilled":             testBackendKilled,
		"F04_LookUpsBeginAnew":          testLookUpsBeginAnew,
		"F04_AnswerLost":                testAnswerLost,
		"F03_NumberGivenTwice":          testNumberGivenTwice,
		"F12_OlderLedgerWrittenOn":      testOlderLedgerWrittenOn,
		"F12_HeldForGateways":           testHeldForGateways,
		"F12_DeadGateways":              testDeadGateways,
		"F12_Recharge":                  testRecharge,
		"F12_RechargeForms":             testRechargeForms,
		"F12_FollowedAndLost":           testFollowedAndLost,
		"F12_LostPlansAreBooked":        testLostPlansAreBooked,
		"F12_LimitsOfALostPolicy":       testLimitsOfALostPolicy,
		"F12_ResumeAndPlans":            testResumeAndPlans,
		"AskedAsItEnds":                 testAskedAsItEnds,
		"Overlap":                       testOverlap,
		"F04_OverlapAnswersLost":        testOverlapAnswersLost,
		"OverlapCommitsRefused":         testOverlapCommitsRefused,
		"FromMemoryAsIfLooked":          testRecall,
		"F21_Crowd":                     testCrowd,
		"F07_LockTimeout":               testLockTimeout,
		"A87_UnsafeIsRefused":           testUnsafeIsRefused,
		"PoliciesAreInTheChain":         testPoliciesAreInTheChain,
		"OlderPoliciesAreEnteredOnce":   testOlderPoliciesAreEnteredOnce,
		"KeysAreInTheChain":             testKeysAreInTheChain,
		"EditsAreNotBelieved":           testEditsAreNotBelieved,
		"OneDatasetIsRead":              testOneDatasetIsRead,
		"OwnRaises":                     testOwnRaises,
	} {
		t.Run(name, func(t *testing.T) {
			empty(t, d)
			test(t, d)
		})
	}
	t.Run("F13_EveryColumnIsCovered", func(t *testing.T) {
		testEveryColumnIsCovered(t, pgtest.On(t, server))
	})
	t.Run("F14_ClocksThatStep", func(t *testing.T) {
		testClocksThatStep(t, pgtest.On(t, server))
	})
	t.Run("BeforeTheChain", func(t *testing.T) {
		testBeforeTheChain(t, pgtest.UnmigratedOn(t, server))
	})
	t.Run("F03_ServerCrashes", func(t *testing.T) {
		empty(t, d)
		testServerCrashes(t, d, server)
	})
}

// timed lets time pass by making what the ledger remembers older, which a superuser can.
func timed(t *testing.T, d *pgtest.ControlDatabase) budgettest.Timed {
	shift := func(table, column string, by time.Duration) {
		d.Exec(t, fmt.Sprintf("SET session_replication_role = replica; UPDATE noisegate.%s SET %s = %[2]s + make_interval(secs => %f)", table,
			column, by.Seconds()))
	}
	l := open(t, d)
	return budgettest.Timed{
		Rewound: true,
		Ledger: older{l, func() {
			d.Exec(t, `SET session_replication_role = replica;
				UPDATE noisegate.account SET opened_at = (SELECT min(at) FROM noisegate.entry WHERE account IS NOT NULL AND account_ids = ARRAY[account_id]);
				UPDATE noisegate.chain c SET at = e.at FROM noisegate.entry e WHERE e.dataset = c.dataset AND e.seq = c.seq`)
		}},
		Advance: func(by time.Duration) {
			shift("account", "opened_at", -by)
			shift("account", "busy_until", -by)
			shift("chain", "at", -by)
			l.Age(by)
		},
		Glimpse: func(by time.Duration) { shift("chain", "at", by) },
	}
}

// older is a ledger whose accounts were made older, which it would find.
type older struct {
	budget.Ledger
	restore func()
}

func (l older) Verify(ctx context.Context, from budget.Head) (budget.Verified, error) {
	l.restore()
	return l.Ledger.Verify(ctx, from)
}

// Every statement is one that PostgreSQL accepts from the ledger's role.
func testStatementsPrepare(t *testing.T, d *pgtest.ControlDatabase) {
	conn := d.Conn(t, d.LedgerDSN)
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Prepare(t.Context(), file, string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func account(scope budget.Scope, name string, epsilon mechanisms.PicoEpsilon) budget.Account {
	return budget.Account{ID: budget.AccountID{Dataset: "d", Scope: scope, Name: name},
		Limit: budget.Limit{Form: budget.Pure, Epsilon: epsilon, Rho: budget.Never}}
}

func charge(id string, loss mechanisms.Loss, accounts ...budget.Account) budget.Charge {
	c := budget.Charge{ID: budget.ReservationID(id), Dataset: "d", Analyst: "ana", Accounts: accounts, Loss: loss}
	copy(c.Fingerprint[:], id)
	return c
}

func reserve(t *testing.T, l budget.Ledger, c budget.Charge) {
	t.Helper()
	if got, err := l.Reserve(t.Context(), c); err != nil || got.Reserved == nil {
		t.Fatalf("Reserve gave %+v, %v", got, err)
	}
}

// sqlState runs a statement as the ledger's role and gives the code of its refusal.
func sqlState(t *testing.T, d *pgtest.ControlDatabase, dsn, sql string) string {
	t.Helper()
	_, err := d.Conn(t, dsn).Exec(t.Context(), sql)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		t.Fatalf("%v for %s", err, sql)
	}
	return pg.Code
}

// A gateway that forgot to check could not overspend: the database has the rule as well.
func testConstraints(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	reserve(t, l, charge("1", mechanisms.Loss{Epsilon: 60}, account(budget.AnalystScope, "ana", 100)))
	const checkViolation, restrictViolation = "23514", "23001"
	for sql, want := range map[string]string{
		"UPDATE noisegate.account SET used_epsilon = 101":                                             checkViolation,
		"UPDATE noisegate.account SET used_unbounded = 1":                                             checkViolation,
		"UPDATE noisegate.account SET used_delta = 1":                                                 checkViolation,
		"UPDATE noisegate.account SET used_rho = -1":                                                  checkViolation,
		"UPDATE noisegate.account SET epsilon_cap = 101":                                              checkViolation, // and not its ceiling
		"UPDATE noisegate.charge SET state = 'settled'":                                               checkViolation, // without an answer
		"UPDATE noisegate.charge SET state = 'expired'":                                               checkViolation, // without a time
		"UPDATE noisegate.charge SET state = 'voided', closed_at = now()":                             checkViolation, // with a loss
		"UPDATE noisegate.charge SET epsilon = 50":                                                    restrictViolation,
		"UPDATE noisegate.charge SET state = 'expired', closed_at = now(), epsilon = 61":              restrictViolation,
		"UPDATE noisegate.charge SET state = 'expired', closed_at = now(), rho = 1":                   restrictViolation,
		"UPDATE noisegate.charge SET state = 'expired', closed_at = now(), delta = 1":                 restrictViolation,
		"UPDATE noisegate.charge SET state = 'expired', closed_at = now(), unbounded=true, epsilon=0": restrictViolation,
	} {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
	if err := l.Expire(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"UPDATE noisegate.charge SET state = 'open', closed_at = NULL", "UPDATE noisegate.charge SET state = 'settled', answer = 'x'",
		"UPDATE noisegate.charge SET epsilon = 1",
	} {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != restrictViolation {
			t.Errorf("of a closed charge: %s: got %s", sql, got)
		}
	}
}

// The gateway's role has no right to rewrite history; triggers stop roles that have it.
func testHistoryIsImmutable(t *testing.T, d *pgtest.ControlDatabase) {
	reserve(t, open(t, d), charge("1", mechanisms.Loss{Epsilon: 60}, account(budget.AnalystScope, "ana", 100)))
	const insufficientPrivilege, restrictViolation = "42501", "23001"
	for _, sql := range []string{
		"UPDATE noisegate.entry SET epsilon = 0", "DELETE FROM noisegate.entry", "TRUNCATE noisegate.entry",
		"DELETE FROM noisegate.charge", "TRUNCATE noisegate.charge CASCADE", "DELETE FROM noisegate.chain", "TRUNCATE noisegate.chain",
	} {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != insufficientPrivilege {
			t.Errorf("as noisegate: %s: got %s", sql, got)
		}
		for _, dsn := range []string{d.OwnerDSN, d.DSN} {
			if got := sqlState(t, d, dsn, sql); got != restrictViolation {
				t.Errorf("as owner or superuser: %s: got %s", sql, got)
			}
		}
	}
	for _, sql := range []string{
		"UPDATE noisegate.chain SET dataset = 'x'", "DELETE FROM noisegate.account", "TRUNCATE noisegate.account",
		"UPDATE noisegate.account SET name = 'eve'",
		"DELETE FROM noisegate.request_key", "UPDATE noisegate.charge SET analyst = 'eve'", "UPDATE noisegate.charge SET fingerprint = ''",
		"UPDATE noisegate.charge SET account_ids = '{}'", "CREATE TABLE noisegate.mine (n int)", "DROP TRIGGER append_only ON noisegate.entry",
		"ALTER TABLE noisegate.entry DISABLE TRIGGER ALL", "SET session_replication_role = replica",
	} {
		if got := sqlState(t, d, d.LedgerDSN, sql); got != insufficientPrivilege {
			t.Errorf("as noisegate: %s: got %s", sql, got)
		}
	}
}

// setForRole changes a default of the ledger's role until the test ends.
func setForRole(t *testing.T, d *pgtest.ControlDatabase, setting string) {
	t.Helper()
	conn := d.Conn(t, d.DSN)
	name, _, _ := strings.Cut(setting, " ")
	d.Exec(t, "ALTER ROLE noisegate IN DATABASE "+d.Name+" SET "+setting)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "ALTER ROLE noisegate IN DATABASE "+d.Name+" RESET "+name); err != nil {
			t.Error(err)
		}
	})
}

// The server's default is off here, and so may a DSN or the role's settings be: the ledger's connections are on.
func testCommitsAreSynchronous(t *testing.T, d *pgtest.ControlDatabase) {
	setForRole(t, d, "synchronous_commit = off")
	dsn := d.LedgerDSN + "&synchronous_commit=off"
	if !strings.Contains(d.LedgerDSN, "?") {
		dsn = d.LedgerDSN + "?synchronous_commit=off"
	}
	l, err := pgledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err) // CheckSafety reads the setting of the ledger's own connection
	}
	l.Close()
}

// A role that could cheat, and a server that could forget, are refused by name before they are used.
func testUnsafeIsRefused(t *testing.T, d *pgtest.ControlDatabase) {
	refused := func(dsn, want string) {
		t.Helper()
		l, err := pgledger.Open(t.Context(), dsn)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refused(d.DSN, "may change noisegate.entry") // a superuser
	for grant, want := range map[string]string{
		"DELETE ON noisegate.charge": "may delete", "TRUNCATE ON noisegate.account": "may delete", "DELETE ON noisegate.plan": "may delete",
		"UPDATE (epsilon) ON noisegate.entry": "may change", "DELETE ON noisegate.entry": "may change",
	} {
		d.Exec(t, "GRANT "+grant+" TO noisegate")
		refused(d.LedgerDSN, want)
		d.Exec(t, "REVOKE "+grant+" FROM noisegate")
	}
	for off, on := range map[string]string{
		"ALTER TABLE noisegate.entry DISABLE TRIGGER append_only": "ALTER TABLE noisegate.entry ENABLE TRIGGER append_only",
		"ALTER TRIGGER transition ON noisegate.charge RENAME TO gone": "ALTER TRIGGER gone ON noisegate.charge RENAME TO " +
			"transition",
		"ALTER TABLE noisegate.account RENAME CONSTRAINT within_the_ceiling TO gone": "ALTER TABLE noisegate.account RENAME CONSTRAINT " +
			"gone TO within_the_ceiling",
	} {
		d.Exec(t, off)
		refused(d.LedgerDSN, "gone or switched off")
		d.Exec(t, on)
	}
	open(t, d)
	refused("postgres://%zz", "cannot be read")
	forgetful := pgtest.Control(t)
	refused(forgetful.LedgerDSN, "=off") // the server that tests share trades durability for speed
}

// waiting waits until a backend waits for a lock, and gives its process id.
func waiting(t *testing.T, d *pgtest.ControlDatabase) int {
	t.Helper()
	conn := d.Conn(t, d.DSN)
	for range 1000 {
		var pid int
		err := conn.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		if pid != 0 {
			return pid
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("nobody waits for a lock")
	return 0
}

// A backend is killed in the middle of a transaction. The gateway finds out that it was not committed, and runs it again.
func testBackendKilled(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, l, charge("first", mechanisms.Loss{Epsilon: 10}, own))
	killed := func(call func() error) error {
		t.Helper()
		blocker := d.Conn(t, d.DSN)
		if _, err := blocker.Exec(t.Context(), "BEGIN; LOCK TABLE noisegate.entry IN EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- call() }()
		d.Exec(t, "SELECT pg_terminate_backend("+strconv.Itoa(waiting(t, d))+")")
		if _, err := blocker.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		return <-done
	}
	err := killed(func() error {
		_, err := l.Reserve(t.Context(), charge("second", mechanisms.Loss{Epsilon: 10}, own))
		return err
	})
	if err != nil {
		t.Errorf("Reserve gave %v", err)
	}
	if err := killed(func() error { return l.Settle(t.Context(), "first", mechanisms.Loss{Epsilon: 5}, []byte("a")) }); err != nil {
		t.Errorf("Settle gave %v", err)
	}
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Spent != (mechanisms.Loss{Epsilon: 5}) || b[0].Reserved != (mechanisms.Loss{Epsilon: 10}) {
		t.Errorf("balance %+v, %v", b, err)
	}
	entries, err := l.Entries(t.Context(), budget.Page{})
	if err != nil || len(entries) != 4 {
		t.Errorf("%d entries, %v; want the limit, two reservations and an end", len(entries), err)
	}
}

// A ledger that does not answer in time is a ledger that cannot be reached: no answer, no charge.
func testLockTimeout(t *testing.T, d *pgtest.ControlDatabase) {
	setForRole(t, d, "lock_timeout = '50ms'")
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, l, charge("first", mechanisms.Loss{Epsilon: 10}, own))
	blocker := d.Conn(t, d.DSN)
	if _, err := blocker.Exec(t.Context(), "BEGIN; SELECT FROM noisegate.account FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(t.Context(), charge("second", mechanisms.Loss{Epsilon: 10}, own)); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("Reserve gave %v", err)
	}
	if _, err := blocker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	reserve(t, l, charge("second", mechanisms.Loss{Epsilon: 90}, own))
}

// The commit happens and its answer is lost on the way. Reserve finds its charge by the id, whatever it is asked next;
// nothing is charged twice.
func testAnswerLost(t *testing.T, d *pgtest.ControlDatabase) {
	wire := newWire(t, d.LedgerDSN)
	l, err := pgledger.Open(t.Context(), wire.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, l, charge("warm", mechanisms.Loss{Epsilon: 1}, own)) // opens the account; the statement is prepared now

	wire.loseNextAnswer()
	reserve(t, l, charge("lost", mechanisms.Loss{Epsilon: 10}, own))
	wire.loseNextAnswer()
	if err := l.Settle(t.Context(), "lost", mechanisms.Loss{Epsilon: 7}, []byte("a")); err != nil {
		t.Errorf("Settle gave %v", err)
	}
	if lost := wire.lost.Load(); lost != 2 {
		t.Errorf("%d answers were lost, want 2", lost)
	}
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Spent != (mechanisms.Loss{Epsilon: 7}) || b[0].Reserved != (mechanisms.Loss{Epsilon: 1}) {
		t.Errorf("balance %+v, %v", b, err)
	}
}

// The server is killed under load and started again. Every reservation that was acknowledged is there (I3), the others are
// there once or not at all, sums hold (I1, I4), and the ledger works again by itself.
func testServerCrashes(t *testing.T, d *pgtest.ControlDatabase, server *pgserver.Server) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 1_000_000)
	reserve(t, l, charge("first", mechanisms.Loss{Epsilon: 1}, own))
	var mu sync.Mutex
	acknowledged := map[budget.ReservationID]bool{"first": true}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c := charge(fmt.Sprintf("c%d-%d", i, n), mechanisms.Loss{Epsilon: 1}, own)
				got, err := l.Reserve(t.Context(), c)
				if err == nil && got.Reserved != nil {
					mu.Lock()
					acknowledged[c.ID] = true
					mu.Unlock()
				} else if fault.CodeOf(err) != fault.CodeDataUnavailable {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	for _, end := range []func(){server.StopImmediate, server.Kill} {
		time.Sleep(300 * time.Millisecond)
		end()
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	clients.Wait()
	reserve(t, l, charge("last", mechanisms.Loss{Epsilon: 1}, own))
	acknowledged["last"] = true

	conn := d.Conn(t, d.DSN)
	rows, err := conn.Query(t.Context(), "SELECT charge_id FROM noisegate.charge JOIN noisegate.entry USING (charge_id)")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[budget.ReservationID])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acknowledged, %d kept", len(acknowledged), len(kept))
	for _, id := range kept {
		delete(acknowledged, id)
	}
	if len(acknowledged) > 0 {
		t.Errorf("acknowledged and lost: %v", acknowledged)
	}
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || int(b[0].Reserved.Epsilon) != len(kept) {
		t.Errorf("balance %+v, %v; want %d", b, err, len(kept))
	}
}
