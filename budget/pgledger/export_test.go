package pgledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Believe makes the ledger one that is written for another schema, whose last migration is so much newer.
func (p *Ledger) Believe(newer int) { p.schema += newer }

// Age makes the charges that the process has open older.
func (p *Ledger) Age(by time.Duration) {
	p.open.Range(func(id, known any) bool {
		o := known.(*openCharge)
		p.open.Store(id, &openCharge{dataset: o.dataset, analyst: o.analyst, id: o.id, held: o.held, accounts: o.accounts,
			opened: o.opened.Add(-by), lastClock: o.lastClock, draws: o.draws, kept: o.kept})
		return true
	})
}

// Reads makes a process one that reads entries of a dataset, until it is told to end.
func (p *Ledger) Reads(dataset string) (end func()) {
	f := p.known.of(dataset)
	f.mu.Lock()
	return f.mu.Unlock
}

// Wait lets so much time pass since the process first looked at the server of the control database.
func (p *Ledger) Wait(d time.Duration) {
	p.attending.Lock()
	defer p.attending.Unlock()
	p.attendance.since = p.attendance.since.Add(-d)
}

// OnTheWay are the statements that a question meets, by name.
func OnTheWay() map[string]string {
	return map[string]string{
		"advance": sqlAdvance, "again": sqlAgain, "balances": sqlBalances, "best": sqlBest, "bind": sqlBind,
		"committed": sqlCommitted, "earlier": sqlEarlier, "end": sqlEnd, "failed": sqlFailed, "failures": sqlFailures,
		"find_latest": sqlFindLatest, "find_own": sqlFindOwn, "find_released": sqlFindReleased, "in_force": sqlInForce, "keep": sqlKeep,
		"keep_released": sqlKeepReleased, "load_accounts": sqlLoadAccounts, "load_charges": sqlLoadCharges,
		"load_keys": sqlLoadKeys, "load_plans": sqlLoadPlans, "load_questions": sqlLoadQuestions, "lock": sqlLock, "move": sqlMove,
		"numbers": sqlNumbers, "open": sqlOpen, "settlement": sqlSettlement, "write": sqlWrite,
	}
}

// Acquire takes one of the ledger's connections.
func (p *Ledger) Acquire(ctx context.Context) (*pgxpool.Conn, error) { return p.pool.Acquire(ctx) }

// Replan prepares an acquired connection as the pool does when the journal has the given number of entries.
func (p *Ledger) Replan(ctx context.Context, conn *pgx.Conn, entries int64) error {
	p.heads.mu.Lock()
	p.heads.newest = entries
	p.heads.mu.Unlock()
	_, err := p.replan(ctx, conn)
	return err
}

// Uncache lets the process decide nothing from memory until it has looked at the ledger again.
func (p *Ledger) Uncache() {
	p.caches.mu.Lock()
	defer p.caches.mu.Unlock()
	clear(p.caches.byDataset)
}

// Joined is a queue of look-ups that are texts.
type Joined struct{ joined joined[string] }

func (j *Joined) Do(ctx context.Context, of string, exchange func(context.Context, []string) error) error {
	return j.joined.do(ctx, of, exchange)
}

// Waiting gives the number of look-ups that wait.
func (j *Joined) Waiting() int { return j.joined.waits() }

func (j *joined[T]) waits() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting)
}

// LookUp runs a look-up that collects numbers.
func (p *Ledger) LookUp(ctx context.Context, queue func(*pgx.Batch, *[]int)) ([]int, error) {
	return lookUp(ctx, p, queue)
}

// LookUpsWaiting gives the number of look-ups that wait for a round trip.
func (p *Ledger) LookUpsWaiting() int { return p.lookups.waits() }
