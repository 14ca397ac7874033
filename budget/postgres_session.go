package budget

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessionPatience bounds how long a batch may take to be answered, to find out what became of it, and to be done again,
// retries included; each by itself.
const sessionPatience = 10 * time.Second

// attempt runs a transaction; nil when it is committed.
func (p *Postgres) attempt(ctx context.Context, s *session) error {
	err := p.transact(ctx, s)
	if outcomeUnknown(err) && len(s.desk.journal) > 0 {
		err = p.resolve(ctx, s, err)
	}
	return err
}

// tell tells the callers what became of their operations, once that is committed.
func (p *Postgres) tell(s *session) {
	p.saw(s.head)
	for i := range s.desk.journal {
		if e := &s.desk.journal[i].Entry; e.Kind == EntrySettle {
			p.settlements.remember(e)
		}
	}
	for i, op := range s.batch {
		p.writers.finish(op, s.errors[i])
	}
}

// resolve finds out whether a transaction was committed whose answer was lost: whether its last entry is there. The
// dataset is locked first, so that the transaction has ended by then. It gives nil if it was, and the failure if it was
// not and may be run again.
func (p *Postgres) resolve(ctx context.Context, s *session, failure error) error {
	last := s.desk.journal[len(s.desk.journal)-1]
	if last.Seq == 0 {
		return failure // nothing was sent
	}
	var err error
	for range attempts {
		var there bool
		err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlLock, s.dataset, 0); err != nil {
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
func (p *Postgres) transact(ctx context.Context, s *session) (err error) {
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

// look lays out what the batch is about, decides it, and writes it down.
func (p *Postgres) look(ctx context.Context, s *session) error {
	s.seen = p.newest(s.dataset)
	found, err := s.layOut(ctx)
	if err != nil {
		return err
	}
	if !found {
		if _, err := s.conn.Exec(ctx, sqlBeginChain, s.dataset); err != nil {
			return err
		}
		s.desk = newDesk()
		found, err = s.layOut(ctx)
		if err == nil && !found {
			err = errNoChain
		}
		if err != nil {
			return err
		}
	}
	if s.lostIsThere {
		return errCommitted
	}
	if err := p.follows(s); err != nil {
		return err
	}
	s.decide()
	return s.writeDown(ctx)
}

// decide runs the operations in order of arrival.
func (s *session) decide() {
	s.began = s.head
	s.errors = make([]error, len(s.batch))
	for i, op := range s.batch {
		s.errors[i] = op.decide(s.desk)
	}
}

// session is one transaction of a dataset's ledger.
type session struct {
	conn    *pgxpool.Conn
	dataset string
	schema  int // the number of the last migration that the ledger is written for
	batch   []*operation
	errors  []error // of each operation

	desk    *desk
	numbers map[int64]*tally // accounts by number
	head    Head
	seen    Head    // the newest that this process knew to be committed before
	kept    []byte  // the hash that the ledger has at seen, if it goes on after it
	seqs    []int64 // numbers for entries

	// What was sent before for the same operations and not answered; nil: nothing was. It may not even have begun.
	lost        *session
	lostIsThere bool
	overruled   bool // its operations were decided once more since, and their results are of that

	// Where the journal ended when it decided, and what time the dataset had.
	began   Head
	beganAt time.Time

	// For the next ones: how many numbers there shall be, those that were drawn, and the server's clock, read before readAt.
	stock         int
	next          []int64
	clock, readAt time.Time
}

// outcomeUnknown reports errors after which a transaction may or may not have been committed: the server did not answer,
// or said goodbye while the commit was on its way.
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
	errUndecided  = errors.New("budget: it is not known whether a transaction was committed")
)
