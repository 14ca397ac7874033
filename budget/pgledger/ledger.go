package pgledger

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/migrations"
)

// Ledger is the [budget.Ledger] in a PostgreSQL database. Every reservation is durably committed before Reserve returns: it keeps separate
// connections, with synchronous_commit on whatever the server's default.
type Ledger struct {
	pool        *pgxpool.Pool
	health      *pgxpool.Pool    // one connection, for [Ledger.Check]
	own         func() time.Time // this process's clock
	schema      int              // the number of the last migration that it is written for: it writes to no other schema
	group       groupCommit
	open        sync.Map // ReservationID to *openCharge
	settlements settlements
	repeats     joined[*repeat]
	lookups     joined[lookup]
	heads       heads
	known       known

	ahead      atomic.Int64 // see [Ledger.Ahead]
	attending  sync.Mutex   // guards attendance, and lets one at a time compare the ledger with what is known
	attendance attendance
	attended   atomic.Pointer[time.Time] // when it was compared last; nil: never

	caches struct {
		mu        sync.Mutex
		byDataset map[string]*cache
	}

	sweeping sync.Mutex
	swept    time.Time // no charge from before is open
}

// sweepMargin is how much older than it should be a charge may be that [Ledger.ExpireOlder] had not seen: clocks
// differ, and transactions take time. What is older still is found when the next gateway starts; until then it counts
// as spent, as it does afterwards.
const sweepMargin = 24 * time.Hour

// attempts bounds how often a transaction is run that lost a race or a connection.
const attempts = 3

// Open connects as the gateway's role (see deploy/roles.sql) and refuses what [Ledger.CheckSafety] refuses.
// The DSN may set pool_max_conns. The caller closes the ledger.
func Open(ctx context.Context, dsn string) (*Ledger, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("budget: the DSN of the control database cannot be read") // without the DSN: it may hold a password
	}
	for name, value := range map[string]string{
		"application_name":   "noisegate ledger",
		"search_path":        "",
		"synchronous_commit": "on",
		// The statements are written for it: a row that was waited for is seen as it is then.
		"default_transaction_isolation": "read committed",
		// They touch few rows by key, whatever statistics say of tables that grow from nothing; planning them takes longer.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	// A gateway attends each second, on the connection that was used last: that asks no second time whether it is alive.
	config.ShouldPing = func(_ context.Context, of pgxpool.ShouldPingParams) bool { return of.IdleDuration > 2*time.Second }
	p := &Ledger{schema: migrations.Newest(), own: time.Now}
	config.PrepareConn = p.replan
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	alone := config.Copy()
	alone.MaxConns, alone.ShouldPing = 1, always
	health, err := pgxpool.NewWithConfig(ctx, alone)
	if err != nil {
		pool.Close()
		return nil, fault.DataUnavailable(err)
	}
	p.pool, p.health, p.group.open = pool, health, p.newPipeline
	if err := p.CheckSafety(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// MaxAhead bounds how far the server's clock may be ahead of both a dataset's newest entry and this process's clock.
const MaxAhead = machine.MaxAhead

// SetClock gives the ledger another clock than the machine's to hold the server's against, before it is used.
func (p *Ledger) SetClock(now func() time.Time) { p.own = now }

// Ahead gives how far the server's clock or a dataset's time was ahead of this process's clock at the last look; 0: it was not.
func (p *Ledger) Ahead() time.Duration { return max(time.Duration(p.ahead.Load()), 0) }

// plannedKey is, in a connection's custom data, how many entries the journal had when its statements were planned.
const plannedKey = "noisegate planned"

// replan has a connection forget its plans whenever the journal has twice as many entries as when they were made: those of a ledger that
// was small may read all of one that is large, until somebody analyses its tables.
func (p *Ledger) replan(ctx context.Context, conn *pgx.Conn) (bool, error) {
	p.heads.mu.Lock()
	entries := p.heads.newest
	p.heads.mu.Unlock()
	data := conn.PgConn().CustomData()
	planned, used := data[plannedKey].(int64)
	if used && entries < 2*max(planned, 1) {
		return true, nil
	}
	data[plannedKey] = entries
	if !used {
		return true, nil
	}
	_, err := conn.Exec(ctx, "DISCARD PLANS")
	return err == nil, err
}

// always lets a pool ask each connection whether it is alive before it is given out.
func always(context.Context, pgxpool.ShouldPingParams) bool { return true }

// Close closes the connections. Reservations that are open stay so, until they are expired.
func (p *Ledger) Close() {
	p.health.Close()
	p.pool.Close()
}

// CheckSafety refuses a server that may forget what it committed (fsync or full_page_writes off, a standby) and a role that could
// rewrite history. It names what is wrong.
func (p *Ledger) CheckSafety(ctx context.Context) error {
	var s safety
	err := p.pool.QueryRow(ctx, sqlSafety).
		Scan(&s.fsync, &s.fullPageWrites, &s.synchronousCommit, &s.recovering, &s.rewrites, &s.deletes, &s.unguarded)
	if err != nil {
		return fault.DataUnavailable(err)
	}
	return s.refuse()
}

// Reserve implements [budget.Ledger].
func (p *Ledger) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	if err := c.Check(); err != nil {
		return budget.Outcome{}, err
	}
	c = c.InLedger()
	op := &operation{dataset: c.Dataset, charge: &c, draws: c.Draws, accounts: make([]budget.AccountID, len(c.Accounts))}
	for i, a := range c.Accounts {
		op.accounts[i] = a.ID
	}
	var outcome budget.Outcome // the writer's until do returns without an error of the context
	var opened time.Time
	var lastClock int64
	op.decide = func(s *machine.Machine) (err error) {
		opened, lastClock = s.Now, s.LastClock
		outcome, err = s.Reserve(c)
		return err
	}
	op.undo = func(ctx context.Context) {
		if outcome.Reserved != nil {
			_ = p.close(ctx, c.ID, machine.Voiding()) // else it stays open, and is expired later
		}
	}
	if err := p.do(ctx, op); err != nil {
		return budget.Outcome{}, err
	}
	if outcome.Reserved != nil {
		p.open.Store(c.ID, &openCharge{dataset: c.Dataset, analyst: c.Analyst, id: c.ID, held: c.Loss, accounts: op.accounts, opened: opened,
			lastClock: lastClock, draws: c.Draws})
	}
	return outcome, nil
}

// do runs an operation. An error that the state machine did not give is data/unavailable.
func (p *Ledger) do(ctx context.Context, op *operation) error {
	if err := p.intact(op.dataset); err != nil {
		return err
	}
	err := p.group.do(ctx, op)
	var refused *fault.Error
	if err == nil || errors.As(err, &refused) || errors.Is(err, budget.ErrSlotTaken) || errors.Is(err, budget.ErrPolicyTaken) {
		return err
	}
	return fault.DataUnavailable(err)
}

// intact refuses a dataset whose ledger is known to be broken.
func (p *Ledger) intact(dataset string) error {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if broken := p.heads.broken[dataset]; broken != nil {
		return fault.DataUnavailable(broken)
	}
	return nil
}

// whole is intact of a dataset that is not held either, as far as this process knows.
func (p *Ledger) whole(dataset string) error {
	if err := p.intact(dataset); err != nil {
		return err
	}
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if held := p.heads.held[dataset]; held != nil {
		return fault.DataUnavailable(held)
	}
	return nil
}

// Replay implements [budget.Ledger].
func (p *Ledger) Replay(ctx context.Context, c budget.Charge) (*budget.Stored, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := p.whole(c.Dataset); err != nil {
		return nil, err
	}
	stored, err := p.earlier(ctx, c)
	if stored == nil || err != nil {
		return nil, err
	}
	if _, err := p.lookAtHead(ctx, stored.Dataset); err != nil { // another gateway may have settled it, on a server that took over
		return nil, err
	}
	return stored, nil
}

// Plan implements [budget.Ledger].
func (p *Ledger) Plan(ctx context.Context, analyst string, id budget.ReservationID) (*budget.Plan, error) {
	plan := &budget.Plan{ID: id}
	var epsilon, rho []int64
	err := p.pool.QueryRow(ctx, sqlPlan, analyst, id).Scan(&plan.Dataset, &plan.Loss.Epsilon, &plan.Loss.Unbounded, &plan.Loss.Rho,
		&plan.Loss.Delta, &plan.Loss.Tail, &epsilon, &rho, &plan.Next, &plan.RegisteredAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fault.PlanUnknown()
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	plan.Slots = machine.SlotsOf(epsilon, rho)
	return plan, nil
}

// earlier gives the answer that the request was given before, and makes its key stand for that answer.
func (p *Ledger) earlier(ctx context.Context, c budget.Charge) (*budget.Stored, error) {
	rows, err := p.pool.Query(ctx, sqlEarlier, c.Dataset, c.Analyst, c.Fingerprint[:], orNull(c.IdempotencyKey), c.Shared)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	before, err := pgx.CollectRows(rows, scanPast)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	found, err := machine.Resolve(c, before)
	if err != nil || found == nil {
		return nil, err
	}
	if c.IdempotencyKey != "" && !found.ByKey {
		var bound budget.ReservationID
		err := p.pool.QueryRow(ctx, sqlBindKey, c.Analyst, c.IdempotencyKey, c.RequestDigest[:], found.Stored.ID).Scan(&bound)
		if errors.Is(err, pgx.ErrNoRows) { // another request took the key just now
			return p.earlier(ctx, c)
		}
		if err != nil {
			return nil, fault.DataUnavailable(err)
		}
	}
	return found.Stored, nil
}

func scanPast(row pgx.CollectableRow) (machine.Past, error) {
	var p machine.Past
	var place int
	var digest []byte
	var closed *time.Time
	s := &budget.Stored{}
	err := row.Scan(&place, &digest, &p.State, &s.ID, &s.Dataset, &s.Analyst, (*[]byte)(&s.Request), &s.Answer,
		&s.Loss.Epsilon, &s.Loss.Unbounded, &s.Loss.Rho, &s.Loss.Delta, &s.Loss.Tail, &closed)
	p.ByKey = place == 0
	copy(p.Digest[:], digest)
	if p.State == machine.Settled && closed != nil {
		s.SettledAt, p.Stored = *closed, s
	}
	return p, err
}

// Settle implements [budget.Ledger].
func (p *Ledger) Settle(ctx context.Context, id budget.ReservationID, released mechanisms.Loss, answer []byte) error {
	end, err := machine.Settling(released, answer)
	if err != nil {
		return err
	}
	return p.close(ctx, id, end)
}

// SettleApart implements [budget.Ledger].
func (p *Ledger) SettleApart(ctx context.Context, id budget.ReservationID, released budget.Apart, answer []byte) error {
	end, err := machine.SettlingApart(released, answer)
	if err != nil {
		return err
	}
	return p.close(ctx, id, end)
}

// Void implements [budget.Ledger].
func (p *Ledger) Void(ctx context.Context, id budget.ReservationID) error {
	return p.close(ctx, id, machine.Voiding())
}

// Expire implements [budget.Ledger].
func (p *Ledger) Expire(ctx context.Context, id budget.ReservationID) error {
	return p.close(ctx, id, machine.Expiring())
}

// close ends an open charge.
func (p *Ledger) close(ctx context.Context, id budget.ReservationID, end machine.Ending) error {
	var draws *budget.Draw
	op := &operation{ends: id, decide: func(s *machine.Machine) error {
		if c := s.Charges[id]; c != nil {
			c.Draws = draws
		}
		_, err := s.Close(id, end)
		return err
	}}
	if known, ok := p.open.Load(id); ok {
		op.open = known.(*openCharge)
		op.dataset, draws = op.open.dataset, op.open.draws
	} else { // another gateway reserved it, or one that is no more
		err := p.pool.QueryRow(ctx, sqlDatasetOf, id).Scan(&op.dataset)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return machine.UnknownCharge(id)
		case err != nil:
			return fault.DataUnavailable(err)
		}
	}
	err := p.do(ctx, op)
	if err == nil {
		p.open.Delete(id)
	}
	return err
}

// ExpireOlder implements [budget.Ledger].
func (p *Ledger) ExpireOlder(ctx context.Context, age time.Duration) (int, error) {
	p.sweeping.Lock()
	defer p.sweeping.Unlock()
	before := time.Now() // by this machine's clock: the margin is far wider than the difference
	if p.swept.After(before) {
		p.swept = time.Time{} // that was wrong
	}
	stale, err := collect(ctx, p.pool, pgx.RowToStructByPos[staleCharge], sqlStale, p.swept, age)
	if err != nil {
		return 0, err
	}
	count := 0
	var waits error
	for _, c := range stale {
		var expired bool
		op := &operation{dataset: c.Dataset, ends: c.ID, decide: func(s *machine.Machine) (err error) {
			expired, err = s.Close(c.ID, machine.Expiring())
			return err
		}}
		if known, ok := p.open.Load(c.ID); ok {
			op.open = known.(*openCharge)
		}
		err := p.do(ctx, op)
		var broken *journal.BrokenError
		if errors.As(err, &broken) { // it waits, others need not
			waits = err
			continue
		}
		if fault.CodeOf(err) == fault.CodeDataUnavailable {
			return count, err
		}
		if err == nil && expired { // else it ended by itself in between
			count++
		}
		p.open.Delete(c.ID)
	}
	if waits != nil {
		return count, waits
	}
	p.swept = before.Add(-age - sweepMargin)
	return count, nil
}

type staleCharge struct {
	ID      budget.ReservationID
	Dataset string
}

// Balances implements [budget.Ledger].
func (p *Ledger) Balances(ctx context.Context, ids []budget.AccountID) ([]budget.Balance, error) {
	return lookUp(ctx, p, func(b *pgx.Batch, into *[]budget.Balance) { queueAccounts(b, ids, nil, nil, into, new(bool)) })
}

// Caller implements [budget.Ledger].
func (p *Ledger) Caller(ctx context.Context, ids []budget.AccountID, dataset, analyst string,
	within time.Duration) ([]budget.Balance, int64, error) {
	if err := p.intact(dataset); err != nil {
		return nil, 0, err
	}
	found, err := lookUp(ctx, p, func(b *pgx.Batch, c *caller) { queueAccounts(b, ids, &dataset, &analyst, &c.balances, &c.failed) })
	if err != nil {
		return nil, 0, err
	}
	count, err := p.failuresOf(ctx, found, dataset, analyst, within)
	return found.balances, count, err
}

// caller has what a look-up found of an analyst: the accounts that exist, and, where there are some, whether a charge ever failed.
type caller struct {
	balances []budget.Balance
	failed   bool
}

// failuresOf is [Ledger.Failures] for an analyst of whom so much was found.
func (p *Ledger) failuresOf(ctx context.Context, found caller, dataset, analyst string, within time.Duration) (int64, error) {
	switch {
	case found.failed:
		return p.countFailures(ctx, dataset, analyst, within)
	case len(found.balances) == 0: // a charge to accounts of an earlier policy may have failed
		return p.Failures(ctx, dataset, analyst, within)
	default:
		return 0, nil
	}
}

// queueAccounts looks up accounts, and whether a charge of an analyst ever failed; nil: not looked up. Where none of the accounts exists,
// it does not say whether one failed.
func queueAccounts(b *pgx.Batch, ids []budget.AccountID, dataset, analyst *string, into *[]budget.Balance, failed *bool) {
	datasets, scopes, names := make([]string, len(ids)), make([]string, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		datasets[i], scopes[i], names[i] = id.Dataset, string(id.Scope), id.Name
	}
	b.Queue(sqlBalances, datasets, scopes, names, dataset, analyst).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, balanceAnd(failed))
		return err
	})
}

// DatasetBalances implements [budget.Ledger].
func (p *Ledger) DatasetBalances(ctx context.Context, dataset string) ([]budget.Balance, error) {
	return collect(ctx, p.pool, scanBalance, sqlDatasetBalances, dataset)
}

func scanBalance(row pgx.CollectableRow) (budget.Balance, error) { return balanceAnd()(row) }

// balanceAnd scans a balance, and further columns after it.
func balanceAnd(columns ...any) pgx.RowToFunc[budget.Balance] {
	return func(row pgx.CollectableRow) (b budget.Balance, err error) {
		l, spent, reserved := &b.Limit, &b.Spent, &b.Reserved
		var every, per int64
		err = row.Scan(append([]any{&b.ID.Dataset, &b.ID.Scope, &b.ID.Name, &b.Origin, &b.Version, &l.Form, &l.Epsilon, &l.Rho, &l.Delta,
			&l.TotalDelta, &l.PerQuery, &l.PerQueryRho, &l.ReplayOnly, &every, &l.Tranche.Epsilon, &l.Tranche.Rho, &per, &l.Rate.Epsilon,
			&l.Rate.Rho, &b.Frozen, &b.Opened, &b.Busy, &b.Refills, &spent.Epsilon, &spent.Unbounded, &spent.Rho, &spent.Delta,
			&spent.Tail, &reserved.Epsilon, &reserved.Unbounded, &reserved.Rho, &reserved.Delta, &reserved.Tail}, columns...)...)
		l.Tranche.Every, l.Rate.Per = microseconds(every), microseconds(per)
		return b, err
	}
}

// SetLimit implements [budget.Ledger].
func (p *Ledger) SetLimit(ctx context.Context, by string, account budget.Account) error {
	if err := account.Check(by); err != nil {
		return err
	}
	return p.change(ctx, account.ID, func(s *machine.Machine) error { return s.SetLimit(by, account) })
}

// Enforce implements [budget.Ledger].
func (p *Ledger) Enforce(ctx context.Context, policy budget.Policy, account budget.Account) error {
	if err := account.Check(budget.ByPolicy); err != nil {
		return err
	}
	return p.change(ctx, account.ID, func(s *machine.Machine) error { return s.Enforce(policy, account) })
}

// ChangeLimit implements [budget.Ledger].
func (p *Ledger) ChangeLimit(ctx context.Context, by string, c budget.LimitChange) error {
	if err := c.Check(by); err != nil {
		return err
	}
	return p.change(ctx, c.Account.ID, func(s *machine.Machine) error { return s.ChangeLimit(by, c) })
}

// LowerLimit implements [budget.Ledger].
func (p *Ledger) LowerLimit(ctx context.Context, by string, account budget.Account) error {
	if err := account.Check(by); err != nil {
		return err
	}
	return p.change(ctx, account.ID, func(s *machine.Machine) error { return s.LowerLimit(by, account) })
}

// Refill implements [budget.Ledger].
func (p *Ledger) Refill(ctx context.Context, by string, r budget.Refill) error {
	if err := r.Check(by); err != nil {
		return err
	}
	return p.change(ctx, r.Account, func(s *machine.Machine) error { return s.Refill(by, r) })
}

// Freeze implements [budget.Ledger].
func (p *Ledger) Freeze(ctx context.Context, by string, id budget.AccountID, frozen bool) error {
	if err := id.CheckedBy(by); err != nil {
		return err
	}
	return p.change(ctx, id, func(s *machine.Machine) error { return s.Freeze(by, id, frozen) })
}

func (p *Ledger) change(ctx context.Context, id budget.AccountID, decide func(*machine.Machine) error) error {
	return p.do(ctx, &operation{dataset: id.Dataset, accounts: []budget.AccountID{id}, inForce: &inForce{caps: true}, decide: decide})
}

// Releases implements [budget.Ledger].
func (p *Ledger) Releases(ctx context.Context, analyst string, before budget.ReservationID, limit int) ([]budget.ReleaseInfo, error) {
	return collect(ctx, p.pool, func(row pgx.CollectableRow) (r budget.ReleaseInfo, err error) {
		err = row.Scan(&r.ID, &r.Dataset, (*[]byte)(&r.Request), &r.Loss.Epsilon, &r.Loss.Unbounded, &r.Loss.Rho, &r.Loss.Delta,
			&r.Loss.Tail, &r.SettledAt)
		return r, err
	}, sqlReleases, analyst, before, budget.Page{Limit: limit}.Lines())
}

// Bought implements [budget.Ledger].
func (p *Ledger) Bought(ctx context.Context, b budget.Bought) (id budget.ReservationID, err error) {
	err = p.pool.QueryRow(ctx, sqlBought, b.Analyst, b.Dataset, string(b.Request), b.Since).Scan(&id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fault.DataUnavailable(err)
	}
	return id, nil
}

// Release implements [budget.Ledger].
func (p *Ledger) Release(ctx context.Context, analyst string, id budget.ReservationID) (*budget.Stored, error) {
	s := &budget.Stored{}
	err := p.pool.QueryRow(ctx, sqlRelease, analyst, id).Scan(&s.ID, &s.Dataset, &s.Analyst, (*[]byte)(&s.Request), &s.Answer,
		&s.Loss.Epsilon, &s.Loss.Unbounded, &s.Loss.Rho, &s.Loss.Delta, &s.Loss.Tail, &s.SettledAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fault.BudgetUnknownRelease()
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	if err := p.whole(s.Dataset); err != nil {
		return nil, err
	}
	return s, nil
}

// Requests implements [budget.Ledger].
func (p *Ledger) Requests(ctx context.Context, ids []budget.ReservationID, bytes int) ([]json.RawMessage, error) {
	return collect(ctx, p.pool, func(row pgx.CollectableRow) (request json.RawMessage, err error) {
		err = row.Scan((*[]byte)(&request))
		return request, err
	}, sqlRequests, ids, bytes)
}

// Entries implements [budget.Ledger].
func (p *Ledger) Entries(ctx context.Context, page budget.Page) ([]budget.Entry, error) {
	if page.Forward {
		return collect(ctx, p.pool, scanEntry, sqlEntriesAfter, page.After, page.Dataset, page.Lines())
	}
	return collect(ctx, p.pool, scanEntry, sqlEntries, page.Before, page.Dataset, page.Lines())
}

func scanEntry(row pgx.CollectableRow) (e budget.Entry, err error) {
	if e, err = scanChained(row); err != nil {
		return e, err
	}
	e.At = e.At.UTC()
	return e, machine.ReadTexts(&e)
}

// collect runs a statement that reads.
func collect[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	return all, nil
}
