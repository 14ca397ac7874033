package pgledger

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/internal/fault"
)

// transactionPatience bounds how long a batch may take to be answered, to find out what became of it, and to be done again,
// retries included; each by itself.
const transactionPatience = 10 * time.Second

// attempt runs a transaction; nil when it is committed.
func (p *Ledger) attempt(ctx context.Context, s *transaction) error {
	err := p.transact(ctx, s)
	if outcomeUnknown(err) && len(s.machine.Written) > 0 {
		err = p.resolve(ctx, s, err)
	}
	return err
}

// tell gives the callers the results of their operations, once these are committed.
func (p *Ledger) tell(s *transaction) {
	if err := p.known.wrote(s.began, s.machine.Written, func() error { return p.acknowledge(s) }); err != nil {
		for _, op := range s.batch {
			p.group.finish(op, fault.DataUnavailable(err))
		}
		return
	}
	for i := range s.machine.Written {
		if l := &s.machine.Written[i]; l.Kind == budget.EntrySettle {
			p.settlements.remember(l)
		}
	}
	for i, op := range s.batch {
		p.group.finish(op, s.errors[i])
	}
}

// resolve finds out whether a transaction was committed whose answer was lost: whether its last entry is there. It locks the dataset first,
// so that the transaction has ended when it looks. It gives nil if it was, and the failure if it was not and may be run again.
func (p *Ledger) resolve(ctx context.Context, s *transaction, failure error) error {
	last := s.machine.Written[len(s.machine.Written)-1]
	if last.Seq == 0 {
		return failure // nothing was sent
	}
	var err error
	for range attempts {
		var there bool
		err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, sqlLock, s.dataset, 0).Scan(nil, nil, nil, nil, nil, &s.postmaster, nil, nil, nil, nil, nil)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return tx.QueryRow(ctx, sqlCommitted, last.Seq, last.Hash[:]).Scan(&there)
		})
		switch {
		case err == nil && there:
			return nil
		case err == nil:
			return failure
		case ctx.Err() != nil:
			return errors.Join(errUndecided, err)
		}
	}
	return errors.Join(errUndecided, err)
}

// transact runs one transaction that looks at the ledger. It is two exchanges with the server, three when an account is opened.
func (p *Ledger) transact(ctx context.Context, s *transaction) (err error) {
	if s.conn, err = p.pool.Acquire(ctx); err != nil {
		return err
	}
	defer s.conn.Release()
	defer func() {
		if err != nil && !s.conn.Conn().IsClosed() {
			_, _ = s.conn.Exec(ctx, "ROLLBACK") // else the pool closes the connection
		}
	}()
	return p.look(ctx, s)
}

// look loads what the batch is about, decides it, and writes it.
func (p *Ledger) look(ctx context.Context, s *transaction) error {
	s.seen, s.own = p.newest(s.dataset), p.own()
	found, err := s.load(ctx)
	if err != nil {
		return err
	}
	if !found {
		if _, err := s.conn.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
		if _, err := s.conn.Exec(ctx, sqlBeginChain, s.dataset); err != nil { // it stays, also if nothing is written now
			return err
		}
		s.machine = machine.New()
		found, err = s.load(ctx)
		if err == nil && !found {
			err = errNoChain
		}
		if err != nil {
			return err
		}
	}
	if err := p.here(s); err != nil {
		return err
	}
	if s.lostIsThere {
		s.lost.postmaster = s.postmaster
		return errCommitted
	}
	if err := p.follows(s); err != nil {
		return err
	}
	if err := p.agrees(ctx, s); err != nil {
		return err
	}
	if s.first != nil {
		if err := s.first(ctx); err != nil {
			return err
		}
	}
	if !s.believed {
		return errClock
	}
	s.decide()
	return s.writeDown(ctx)
}

// decide runs the operations in order of arrival.
func (s *transaction) decide() {
	s.began = s.head
	s.errors = make([]error, len(s.batch))
	for i, op := range s.batch {
		s.errors[i] = op.decide(s.machine)
	}
}

// transaction is one transaction of a dataset's ledger.
type transaction struct {
	conn    *pgxpool.Conn
	dataset string
	schema  int // the number of the last migration that the ledger is written for
	batch   []*operation
	errors  []error // of each operation

	machine *machine.Machine
	numbers map[int64]*machine.Account // accounts by number
	head    budget.Head
	seen    budget.Head // the newest that this process knew to be committed before
	kept    []byte      // the hash that the ledger has at seen, if it goes on after it
	seqs    []int64     // numbers for entries

	postmaster       time.Time // when its server was started
	confirmed, lacks bool      // the ledger was confirmed on that server; an entry of it is lost
	overrules        bool      // it is written although the dataset is held
	// What is done before the operations, in the transaction; nil: nothing.
	first func(context.Context) error

	// What was sent before for the same operations and not answered; nil: nothing was. It may not even have begun.
	lost        *transaction
	lostIsThere bool
	overruled   bool // its operations were decided once more since, and their results are of that

	own      time.Time // this process's clock
	believed bool      // so is the server's

	// Where the journal ended when it decided, and what time the dataset had.
	began   budget.Head
	beganAt time.Time

	// For the next ones: how many numbers there shall be, those that were drawn, and the server's clock, read before readAt.
	stock         int
	next          []int64
	clock, readAt time.Time
}

// outcomeUnknown reports errors after which a transaction may or may not have been committed. The server did not answer, or closed the
// connection after the commit was sent.
func outcomeUnknown(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil, pgconn.SafeToRetry(err), errors.Is(err, pgx.ErrNoRows):
		return false
	case errors.As(err, &pg):
		return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" // Severity is in the server's language
	default:
		return true
	}
}

// mayBeOnesFault recognises errors of the classes "data exception" and "integrity constraint violation": something in
// the batch cannot be written.
func mayBeOnesFault(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

var (
	errNoChain    = errors.New("budget: a dataset's chain does not begin")
	errCommitted  = errors.New("budget: what was not answered is committed")
	errUnanswered = errors.New("budget: a transaction was not answered")
	errSchema     = errors.New("budget: the schema of the control database is another one than this noisegate's")
	errClock      = errors.New("budget: the clock of the control database's server is ahead of the newest entry and of this gateway's clock")
	errUndecided  = errors.New("budget: it is not known whether a transaction was committed")
)
