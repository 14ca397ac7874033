package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Postgres is the [Ledger] in a PostgreSQL database. Every reservation is durably committed before Reserve returns: it keeps
// connections of its own, on which synchronous_commit is on whatever the server's default.
type Postgres struct {
	pool  *pgxpool.Pool
	turns turns
}

// attempts bounds how often a request looks again after it lost a race, or after a connection broke.
const attempts = 3

// OpenPostgres connects as the gateway's role (see deploy/roles.sql) and refuses what [Postgres.CheckSafety] refuses.
// The DSN may set pool_max_conns. The caller closes the ledger.
func OpenPostgres(ctx context.Context, dsn string) (*Postgres, error) {
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
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	p := &Postgres{pool: pool}
	if err := p.CheckSafety(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return p, nil
}

// Close closes the connections. Reservations that are open stay so, until they are expired.
func (p *Postgres) Close() { p.pool.Close() }

// CheckSafety refuses a server that may forget what it committed (fsync or full_page_writes off, a standby) and a role that could
// rewrite history. It names what is wrong.
func (p *Postgres) CheckSafety(ctx context.Context) error {
	var s safety
	err := p.pool.QueryRow(ctx, sqlSafety).
		Scan(&s.fsync, &s.fullPageWrites, &s.synchronousCommit, &s.recovering, &s.rewrites, &s.deletes)
	if err != nil {
		return fault.DataUnavailable(err)
	}
	return s.refuse()
}

// querier is the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Reserve implements [Ledger].
func (p *Postgres) Reserve(ctx context.Context, c Charge) (Outcome, error) {
	if err := c.check(); err != nil {
		return Outcome{}, err
	}
	c = c.inLedger()
	for range attempts {
		tried, err := p.reserveInTurn(ctx, c)
		switch {
		case outcomeUnknown(err):
			return p.afterLostConnection(ctx, c.ID, err)
		case err != nil:
			return Outcome{}, fault.DataUnavailable(err)
		case tried.opened:
			return Outcome{Reserved: &Reservation{ID: c.ID}}, nil
		case tried.slotTaken:
			return Outcome{}, ErrSlotTaken
		}
		// Also after a refusal: what took the budget may have been the same question.
		if stored, err := p.earlier(ctx, c); err != nil || stored != nil {
			return Outcome{Replay: stored}, err
		}
		if !tried.answered {
			if err := p.explain(ctx, c); err != nil {
				return Outcome{}, err
			}
		}
		// What stood in the way is gone: a charge that ended without an answer, or one that was refunded. Ask again.
	}
	return Outcome{}, fault.DataUnavailable(fmt.Errorf("budget: no decision about charge %s; its id may have been used before", c.ID))
}

// attempt is what sql/reserve.sql says.
type attempt struct {
	opened   bool // the charge is reserved
	answered bool // an earlier charge decides
	accounts int  // else: how many of the charge's accounts exist
	// slotTaken: the accounts would take the charge, but the plan that it draws from moved on.
	slotTaken bool
}

// reserve runs the statement once.
func reserve(ctx context.Context, q querier, c Charge) (attempt, error) {
	scopes, names := make([]string, len(c.Accounts)), make([]string, len(c.Accounts))
	for i, a := range c.Accounts {
		scopes[i], names[i] = string(a.ID.Scope), a.ID.Name
	}
	made, err := json.Marshal(append([]mechanisms.Parameters{}, c.Mechanisms...))
	if err != nil {
		return attempt{}, err
	}
	plan, from, count := c.drawing()
	epsilon, rho := c.registering()
	var tried attempt
	err = q.QueryRow(ctx, sqlReserve, c.ID, c.Dataset, c.Analyst, scopes, names,
		c.Loss.Epsilon, c.Loss.Unbounded, c.Loss.Rho, c.Loss.Delta, made, c.Fingerprint[:], c.key(), c.RequestDigest[:], []byte(c.Request),
		plan, from, count, epsilon, rho,
	).Scan(&tried.opened, &tried.answered, &tried.accounts, &tried.slotTaken)
	if isForeignKeyViolation(err) {
		// The key was taken together with a question that another request had just opened: that one decides.
		return attempt{answered: true}, nil
	}
	return tried, err
}

// key is the Idempotency-Key, or nil (NULL).
func (c Charge) key() *string {
	if c.IdempotencyKey == "" {
		return nil
	}
	return &c.IdempotencyKey
}

// drawing is the plan that the charge draws from, or nil (NULL), and which slots.
func (c Charge) drawing() (plan *ReservationID, from, count int) {
	if c.Draws == nil {
		return nil, 0, 0
	}
	return &c.Draws.Plan, c.Draws.From, c.Draws.Count
}

// registering is the ε and the ρ of the slots that the charge registers, or nil (NULL).
func (c Charge) registering() (epsilon, rho []int64) {
	for _, s := range c.Registers {
		epsilon, rho = append(epsilon, int64(s.Epsilon)), append(rho, int64(s.Rho))
	}
	return epsilon, rho
}

// Replay implements [Ledger].
func (p *Postgres) Replay(ctx context.Context, c Charge) (*Stored, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return p.earlier(ctx, c)
}

// Plan implements [Ledger].
func (p *Postgres) Plan(ctx context.Context, analyst string, id ReservationID) (*Plan, error) {
	plan := &Plan{ID: id}
	var epsilon, rho []int64
	err := p.pool.QueryRow(ctx, sqlPlan, analyst, id).Scan(&plan.Dataset, &plan.Loss.Epsilon, &plan.Loss.Unbounded, &plan.Loss.Rho,
		&plan.Loss.Delta, &epsilon, &rho, &plan.Next, &plan.RegisteredAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fault.PlanUnknown()
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	for i := range epsilon {
		plan.Slots = append(plan.Slots, mechanisms.Slot{Epsilon: mechanisms.PicoEpsilon(epsilon[i]), Rho: mechanisms.PicoRho(rho[i])})
	}
	return plan, nil
}

// reserveInTurn reserves, and opens the accounts if need be, when the dataset's turn comes.
func (p *Postgres) reserveInTurn(ctx context.Context, c Charge) (attempt, error) {
	done, err := p.turns.take(ctx, c.Dataset)
	if err != nil {
		return attempt{}, err
	}
	defer done()
	tried, err := reserve(ctx, p.pool, c)
	if err == nil && !tried.opened && !tried.answered && tried.accounts < len(c.Accounts) {
		return p.reserveOpening(ctx, c)
	}
	return tried, err
}

// reserveOpening reserves on accounts of which some do not exist yet. They stay open only if the charge is taken.
func (p *Postgres) reserveOpening(ctx context.Context, c Charge) (tried attempt, err error) {
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		for _, a := range c.Accounts { // in lock order
			a.Origin = FromPolicy
			if err := setLimit(ctx, tx, byPolicy, a, true); err != nil {
				return err
			}
		}
		if tried, err = reserve(ctx, tx, c); err == nil && !tried.opened {
			return errRollback
		}
		return err
	})
	if errors.Is(err, errRollback) {
		err = nil
	}
	return tried, err
}

// errRollback ends a transaction that is to leave nothing behind, without being a failure.
var errRollback = errors.New("roll back")

// explain says why the accounts, as they are by now, do not take the charge; nil when they would.
func (p *Postgres) explain(ctx context.Context, c Charge) error {
	ids := make([]AccountID, len(c.Accounts))
	for i, a := range c.Accounts {
		ids[i] = a.ID
	}
	balances, err := p.Balances(ctx, ids)
	if err != nil {
		return err
	}
	exists := map[AccountID]bool{}
	for _, b := range balances {
		exists[b.ID] = true
	}
	for _, a := range c.Accounts {
		if !exists[a.ID] {
			balances = append(balances, Balance{Account: a})
		}
	}
	return refusal(balances, c.Analyst, c.Loss)
}

// earlier gives the answer that the request was given before, and makes its key stand for that answer.
func (p *Postgres) earlier(ctx context.Context, c Charge) (*Stored, error) {
	rows, err := p.pool.Query(ctx, sqlEarlier, c.Dataset, c.Analyst, c.Fingerprint[:], c.key())
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	before, err := pgx.CollectRows(rows, scanPast)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	found, err := resolve(c, before)
	if err != nil || found == nil {
		return nil, err
	}
	if key := c.key(); key != nil && !found.byKey {
		var bound ReservationID
		err := p.pool.QueryRow(ctx, sqlBindKey, c.Analyst, *key, c.RequestDigest[:], found.stored.ID).Scan(&bound)
		if errors.Is(err, pgx.ErrNoRows) { // another request took the key just now
			return p.earlier(ctx, c)
		}
		if err != nil {
			return nil, fault.DataUnavailable(err)
		}
	}
	return found.stored, nil
}

func scanPast(row pgx.CollectableRow) (past, error) {
	var p past
	var digest []byte
	var closed *time.Time
	s := &Stored{}
	err := row.Scan(&p.byKey, &digest, &p.state, &s.ID, &s.Dataset, &s.Analyst, (*[]byte)(&s.Request), &s.Answer,
		&s.Loss.Epsilon, &s.Loss.Unbounded, &s.Loss.Rho, &s.Loss.Delta, &closed)
	copy(p.digest[:], digest)
	if p.state == settled && closed != nil {
		s.SettledAt, p.stored = *closed, s
	}
	return p, err
}

// outcomeUnknown reports errors after which a statement may or may not have been committed: the server did not answer,
// or said goodbye while the commit was on its way.
func outcomeUnknown(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil, pgconn.SafeToRetry(err), errors.Is(err, pgx.ErrNoRows):
		return false
	case errors.As(err, &pg):
		return pg.Severity == "FATAL" || pg.Severity == "PANIC"
	default:
		return true
	}
}

func isForeignKeyViolation(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23503"
}

// afterLostConnection finds out, by its id, whether a charge was committed. It never reserves again: a reservation that
// commits after this look stays open and is expired later.
func (p *Postgres) afterLostConnection(ctx context.Context, id ReservationID, cause error) (Outcome, error) {
	var last error
	for range attempts {
		is, _, err := p.state(ctx, id)
		if err == nil && is == open {
			return Outcome{Reserved: &Reservation{ID: id}}, nil
		}
		if last = err; err == nil || errors.Is(err, pgx.ErrNoRows) || ctx.Err() != nil {
			break
		}
	}
	return Outcome{}, fault.DataUnavailable(errors.Join(cause, last))
}

func (p *Postgres) state(ctx context.Context, id ReservationID) (is state, answer []byte, err error) {
	err = p.pool.QueryRow(ctx, sqlState, id).Scan(&is, &answer)
	return is, answer, err
}

// Settle implements [Ledger].
func (p *Postgres) Settle(ctx context.Context, id ReservationID, released mechanisms.Loss, answer []byte) error {
	end, err := settling(released, answer)
	if err != nil {
		return err
	}
	_, err = p.close(ctx, id, end)
	return err
}

// Void implements [Ledger].
func (p *Postgres) Void(ctx context.Context, id ReservationID) error {
	_, err := p.close(ctx, id, voiding())
	return err
}

// Expire implements [Ledger].
func (p *Postgres) Expire(ctx context.Context, id ReservationID) error {
	_, err := p.close(ctx, id, expiring())
	return err
}

// close ends an open charge and reports whether it was this call that did. A statement whose outcome is unknown is sent
// again: it acts on open charges only, so at most one of them has an effect.
func (p *Postgres) close(ctx context.Context, id ReservationID, end ending) (bool, error) {
	var epsilon, rho, delta *int64
	var unbounded *bool
	if l := end.loss; l != nil {
		epsilon, unbounded, rho, delta = (*int64)(&l.Epsilon), &l.Unbounded, (*int64)(&l.Rho), (*int64)(&l.Delta)
	}
	var err error
	for range attempts {
		var closed ReservationID
		err = p.pool.QueryRow(ctx, sqlClose, id, end.to, end.kind, epsilon, unbounded, rho, delta, end.answer).Scan(&closed)
		if !outcomeUnknown(err) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err == nil:
		return true, nil
	case isRestrictViolation(err):
		return false, overReserved(id)
	case !errors.Is(err, pgx.ErrNoRows):
		return false, fault.DataUnavailable(err)
	}
	is, answer, err := p.state(ctx, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, unknownCharge(id)
	case err != nil:
		return false, fault.DataUnavailable(err)
	}
	return false, end.again(id, is, answer)
}

// isRestrictViolation recognises the trigger on noisegate.charge, which on an open charge refuses only larger losses.
func isRestrictViolation(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23001"
}

// ExpireOlder implements [Ledger].
func (p *Postgres) ExpireOlder(ctx context.Context, age time.Duration) (int, error) {
	rows, err := p.pool.Query(ctx, sqlStale, age)
	if err != nil {
		return 0, fault.DataUnavailable(err)
	}
	stale, err := pgx.CollectRows(rows, pgx.RowTo[ReservationID])
	if err != nil {
		return 0, fault.DataUnavailable(err)
	}
	count := 0
	for _, id := range stale {
		closed, err := p.close(ctx, id, expiring())
		if err != nil && fault.CodeOf(err) == fault.CodeDataUnavailable {
			return count, err
		}
		if closed { // else it ended by itself in between
			count++
		}
	}
	return count, nil
}

// Balances implements [Ledger].
func (p *Postgres) Balances(ctx context.Context, ids []AccountID) ([]Balance, error) {
	datasets, scopes, names := make([]string, len(ids)), make([]string, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		datasets[i], scopes[i], names[i] = id.Dataset, string(id.Scope), id.Name
	}
	return collect(ctx, p.pool, scanBalance, sqlBalances, datasets, scopes, names)
}

// DatasetBalances implements [Ledger].
func (p *Postgres) DatasetBalances(ctx context.Context, dataset string) ([]Balance, error) {
	return collect(ctx, p.pool, scanBalance, sqlDatasetBalances, dataset)
}

func scanBalance(row pgx.CollectableRow) (b Balance, err error) {
	l, spent, reserved := &b.Limit, &b.Spent, &b.Reserved
	err = row.Scan(&b.ID.Dataset, &b.ID.Scope, &b.ID.Name, &b.Origin, &b.Version, &l.Form, &l.Epsilon, &l.Rho, &l.Delta, &l.TotalDelta,
		&l.PerQuery, &l.PerQueryRho, &l.ReplayOnly, &spent.Epsilon, &spent.Unbounded, &spent.Rho, &spent.Delta,
		&reserved.Epsilon, &reserved.Unbounded, &reserved.Rho, &reserved.Delta)
	return b, err
}

// SetLimit implements [Ledger].
func (p *Postgres) SetLimit(ctx context.Context, by string, account Account) error {
	if err := account.check(by); err != nil {
		return err
	}
	if err := setLimit(ctx, p.pool, by, account, false); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

func setLimit(ctx context.Context, q querier, by string, a Account, openOnly bool) error {
	record, err := json.Marshal(recordOf(a))
	if err != nil {
		return err
	}
	l := a.Limit
	var seq int64
	err = q.QueryRow(ctx, sqlSetLimit, by, a.ID.Dataset, a.ID.Scope, a.ID.Name, a.Origin, l.Form, l.Epsilon, l.Rho, l.Delta, l.TotalDelta,
		l.PerQuery, l.PerQueryRho, l.ReplayOnly, record, openOnly, a.Version).Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) { // nothing to change
		return nil
	}
	return err
}

// Releases implements [Ledger].
func (p *Postgres) Releases(ctx context.Context, analyst string, page Page) ([]ReleaseInfo, error) {
	return collect(ctx, p.pool, func(row pgx.CollectableRow) (r ReleaseInfo, err error) {
		err = row.Scan(&r.Seq, &r.ID, &r.Dataset, (*[]byte)(&r.Request), &r.Loss.Epsilon, &r.Loss.Unbounded, &r.Loss.Rho, &r.Loss.Delta,
			&r.SettledAt)
		return r, err
	}, sqlReleases, analyst, page.Before, page.lines())
}

// Release implements [Ledger].
func (p *Postgres) Release(ctx context.Context, analyst string, id ReservationID) (*Stored, error) {
	s := &Stored{}
	err := p.pool.QueryRow(ctx, sqlRelease, analyst, id).Scan(&s.ID, &s.Dataset, &s.Analyst, (*[]byte)(&s.Request), &s.Answer,
		&s.Loss.Epsilon, &s.Loss.Unbounded, &s.Loss.Rho, &s.Loss.Delta, &s.SettledAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fault.BudgetUnknownRelease()
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	return s, nil
}

// Entries implements [Ledger].
func (p *Postgres) Entries(ctx context.Context, page Page) ([]Entry, error) {
	return collect(ctx, p.pool, scanEntry, sqlEntries, page.Before, page.lines())
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	var made, record []byte
	err = row.Scan(&e.Seq, &e.At, &e.Kind, &e.Dataset, &e.Analyst, &e.Reservation, &e.Loss.Epsilon, &e.Loss.Unbounded, &e.Loss.Rho,
		&e.Loss.Delta, &made, &record)
	if err == nil && made != nil {
		err = json.Unmarshal(made, &e.Mechanisms)
	}
	if err == nil && record != nil {
		var r limitRecord
		if err = json.Unmarshal(record, &r); err == nil {
			e.Account, e.Limit = r.account(e.Dataset)
		}
	}
	return e, err
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
