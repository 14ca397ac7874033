package pgledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// load locks the dataset and loads what the batch may look at. It reports false when the dataset has no ledger yet.
func (s *transaction) load(ctx context.Context) (found bool, err error) {
	w := s.wanted()
	s.numbers, s.seqs = map[int64]*machine.Account{}, nil
	s.head = budget.Head{Dataset: s.dataset}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(sqlLock, s.dataset, s.seen.Seq).QueryRow(func(row pgx.Row) error {
		var head, digest []byte
		var schema int
		err := row.Scan(&s.head.Seq, &head, &s.machine.Now, &s.kept, &schema, &s.postmaster, &s.confirmed, &s.lacks,
			&s.machine.Newest.Version, &digest, &s.machine.Raised)
		if found = err == nil; found && schema != s.schema {
			return fmt.Errorf("%w: it had migration %d last, and %d is known here", errSchema, schema, s.schema)
		}
		copy(s.head.Hash[:], head)
		copy(s.machine.Newest.Digest[:], digest)
		s.beganAt = s.machine.Now
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if s.lost != nil {
		last := s.lost.machine.Written[len(s.lost.machine.Written)-1]
		b.Queue(sqlCommitted, last.Seq, last.Hash[:]).QueryRow(func(row pgx.Row) error { return row.Scan(&s.lostIsThere) })
	}
	b.Queue(sqlNumbers, len(s.batch), s.dataset).QueryRow(s.loadNumbers)
	b.Queue(sqlLoadAccounts, s.dataset, w.scopes, w.names, w.ends).Query(s.loadAccounts)
	if len(w.charges) > 0 {
		b.Queue(sqlLoadCharges, w.charges).Query(s.loadCharges)
	}
	if len(w.analysts) > 0 {
		b.Queue(sqlLoadQuestions, s.dataset, w.analysts, w.fingerprints).Query(s.loadQuestions)
	}
	if len(w.keys) > 0 {
		b.Queue(sqlLoadKeys, w.keyOwners, w.keys).Query(s.loadKeys)
	}
	if len(w.plans) > 0 {
		b.Queue(sqlLoadPlans, w.plans).Query(s.loadPlans)
	}
	s.queueInForce(b)
	if err := s.conn.SendBatch(ctx, b).Close(); err != nil || !found {
		return false, err
	}
	for _, op := range s.batch {
		if op.open != nil {
			op.open.loadInto(s.machine)
		}
	}
	return true, nil
}

// openCharge is a charge that this process reserved, as long as it has not ended: what the state machine needs to end it. Should
// another gateway have ended it, then PostgreSQL refuses to end it again, and it is looked at.
type openCharge struct {
	dataset, analyst string
	id               budget.ReservationID
	held             mechanisms.Loss
	accounts         []budget.AccountID
	opened           time.Time
	lastClock        int64 // as machine.Machine had it then
	draws            *budget.Draw

	mu   sync.Mutex
	kept []budget.Released // what it released, to be written when it ends
}

// keep takes what the charge released, each thing once.
func (o *openCharge) keep(v budget.Released) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Dataset != o.dataset || v.Analyst != o.analyst ||
		slices.ContainsFunc(o.kept, func(k budget.Released) bool { return k.Identity == v.Identity }) {
		return fault.Internal(errKept)
	}
	o.kept = append(o.kept, v)
	return nil
}

// released gives the kept releases.
func (o *openCharge) released() []budget.Released {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept
}

var errKept = errors.New("budget: released values of another charge, or twice")

// loadInto loads it, unless the batch asks its question or its key again and it is loaded already: what ends must be
// what they find.
func (o *openCharge) loadInto(s *machine.Machine) {
	c := s.Charges[o.id]
	if c == nil {
		c = &machine.Charge{Charge: budget.Charge{ID: o.id, Dataset: o.dataset, Analyst: o.analyst}, State: machine.Open, Held: o.held,
			Opened: o.opened}
		s.Charges[o.id] = c
	}
	if o.lastClock != s.LastClock {
		c.Opened = time.Time{} // the time was set back since: rates get nothing back
	}
	c.Accounts = nil
	for _, id := range o.accounts {
		c.Accounts = append(c.Accounts, s.Accounts[id])
	}
}

// wanted is what the operations may look at, as parameters.
type wanted struct {
	scopes, names   []string
	charges, ends   []string // ids of all that are looked at, and of those that are to end
	analysts        []string // of questions
	fingerprints    [][]byte
	keyOwners, keys []string
	plans, books    []string
}

func (s *transaction) wanted() wanted {
	w := wanted{ends: []string{}}
	named := map[budget.AccountID]bool{}
	name := func(id budget.AccountID) {
		if !named[id] {
			named[id] = true
			w.scopes, w.names = append(w.scopes, string(id.Scope)), append(w.names, id.Name)
		}
	}
	for _, op := range s.batch {
		for _, id := range op.accounts {
			name(id)
		}
		switch {
		case op.open != nil:
			for _, id := range op.open.accounts {
				name(id)
			}
		case op.ends != "":
			w.ends = append(w.ends, string(op.ends))
		}
		if op.books != "" {
			w.books = append(w.books, string(op.books))
		}
		if op.draws != nil {
			w.plans = append(w.plans, string(op.draws.Plan))
		}
		c := op.charge
		if c == nil {
			continue
		}
		w.analysts, w.fingerprints = append(w.analysts, c.Analyst), append(w.fingerprints, c.Fingerprint[:])
		if c.IdempotencyKey != "" {
			w.keyOwners, w.keys = append(w.keyOwners, c.Analyst), append(w.keys, c.IdempotencyKey)
		}
	}
	w.charges = slices.Concat(w.ends, w.plans, w.books)
	return w
}

func (s *transaction) loadNumbers(row pgx.Row) error {
	var seqs []int64
	var now time.Time
	err := row.Scan(&seqs, &now, &s.machine.LastClock)
	s.seqs = append(s.seqs, seqs...)
	if err != nil {
		return err
	}
	s.machine.Clocks = machine.Clocks{Newest: s.newestAt(), Server: now, Own: s.own}
	s.machine.Now, s.believed = s.machine.Clocks.Time()
	return nil
}

// newestAt is when the newest entry was written; zero: there is none.
func (s *transaction) newestAt() time.Time {
	if s.head.Seq == 0 {
		return time.Time{}
	}
	return s.machine.Now
}

func (s *transaction) loadAccounts(rows pgx.Rows) error {
	for rows.Next() {
		a, err := scanTally(rows)
		if err != nil {
			return err
		}
		s.machine.Accounts[a.ID], s.numbers[a.Number] = a, a
	}
	return rows.Err()
}

func scanTally(row pgx.CollectableRow) (*machine.Account, error) {
	a := &machine.Account{}
	l, used, reserved := &a.Limit, &a.Used.Added, &a.Reserved.Added
	var every, per int64
	err := row.Scan(&a.Number, &a.ID.Dataset, &a.ID.Scope, &a.ID.Name, &a.Origin, &a.Version, &l.Form, &l.Epsilon, &l.Rho, &l.Delta,
		&l.TotalDelta, &l.PerQuery, &l.PerQueryRho, &l.ReplayOnly, &every, &l.Tranche.Epsilon, &l.Tranche.Rho,
		&per, &l.Rate.Epsilon, &l.Rate.Rho, &a.Frozen, &a.Opened, &a.Busy, &a.Refills, &a.RaisedBy,
		&used.Epsilon, &a.Used.Unbounded, &used.Rho, &used.Delta, &used.Tail,
		&reserved.Epsilon, &a.Reserved.Unbounded, &reserved.Rho, &reserved.Delta, &reserved.Tail)
	l.Tranche.Every, l.Rate.Per = microseconds(every), microseconds(per)
	return a, err
}

func (s *transaction) loadCharges(rows pgx.Rows) error {
	for rows.Next() {
		c := &machine.Charge{}
		var numbers []int64
		var fingerprint []byte
		var closed *time.Time
		err := rows.Scan(&c.ID, &c.Dataset, &c.Analyst, &fingerprint, &numbers, &c.State, &c.Held.Epsilon, &c.Held.Unbounded, &c.Held.Rho,
			&c.Held.Delta, &c.Held.Tail, &c.Opened, &closed, &c.Answer)
		if err != nil {
			return err
		}
		copy(c.Fingerprint[:], fingerprint)
		if closed != nil {
			c.Closed = *closed
		}
		if s.machine.LastClock > 0 {
			c.Opened = time.Time{} // as in openCharge.loadInto: it may be from before
		}
		if c.State == machine.Open {
			for _, n := range numbers {
				if a := s.numbers[n]; a != nil {
					c.Accounts = append(c.Accounts, a)
				}
			}
		}
		s.machine.Charges[c.ID] = c
	}
	return rows.Err()
}

func (s *transaction) loadQuestions(rows pgx.Rows) error {
	for rows.Next() {
		c, err := s.scanAnswered(rows)
		if err != nil {
			return err
		}
		s.machine.Asked[machine.QuestionOf(c.Charge)] = c
	}
	return rows.Err()
}

func (s *transaction) loadKeys(rows pgx.Rows) error {
	for rows.Next() {
		var name machine.KeyName // not the charge's analyst, where an answer was shared
		var digest []byte
		c, err := s.scanAnswered(rows, &name.Analyst, &name.Key, &digest)
		if err != nil {
			return err
		}
		k := &machine.Key{Charge: c, Known: true}
		copy(k.Digest[:], digest)
		s.machine.Keys[name] = k
	}
	return rows.Err()
}

// scanAnswered loads a charge that may be replayed. If the batch ends it as well it is loaded already.
func (s *transaction) scanAnswered(rows pgx.Rows, before ...any) (*machine.Charge, error) {
	c := &machine.Charge{}
	var fingerprint []byte
	var closed *time.Time
	err := rows.Scan(append(before, &c.ID, &c.Dataset, &c.Analyst, &fingerprint, &c.Attempt, (*[]byte)(&c.Request), &c.State, &c.Held.Epsilon,
		&c.Held.Unbounded, &c.Held.Rho, &c.Held.Delta, &c.Held.Tail, &closed, &c.Answer)...)
	if err != nil {
		return nil, err
	}
	copy(c.Fingerprint[:], fingerprint)
	if closed != nil {
		c.Closed = *closed
	}
	if known := s.machine.Charges[c.ID]; known != nil {
		known.Request, known.Attempt, known.Fingerprint = c.Request, c.Attempt, c.Fingerprint
		return known, nil
	}
	s.machine.Charges[c.ID] = c
	return c, nil
}

func (s *transaction) loadPlans(rows pgx.Rows) error {
	for rows.Next() {
		var id budget.ReservationID
		var epsilon, rho []int64
		var next int
		if err := rows.Scan(&id, &epsilon, &rho, &next); err != nil {
			return err
		}
		if c := s.machine.Charges[id]; c != nil {
			c.Registers, c.Drawn = machine.SlotsOf(epsilon, rho), next
		}
	}
	return rows.Err()
}

// microseconds is a duration as the ledger keeps it.
func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
