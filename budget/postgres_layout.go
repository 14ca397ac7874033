package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate/mechanisms"
)

// layOut locks the dataset and lays out what the batch may look at. It reports false when the dataset has no ledger yet.
func (s *session) layOut(ctx context.Context) (found bool, err error) {
	w := s.wanted()
	s.numbers, s.seqs = map[int64]*tally{}, nil
	s.head = Head{Dataset: s.dataset}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(sqlLock, s.dataset, s.seen.Seq).QueryRow(func(row pgx.Row) error {
		var head []byte
		var schema int
		err := row.Scan(&s.head.Seq, &head, &s.desk.now, &s.kept, &schema)
		if found = err == nil; found && schema != s.schema {
			return fmt.Errorf("%w: it had migration %d last, and %d is known here", errSchema, schema, s.schema)
		}
		copy(s.head.Hash[:], head)
		s.beganAt = s.desk.now
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if s.lost != nil {
		last := s.lost.desk.journal[len(s.lost.desk.journal)-1]
		b.Queue(sqlCommitted, last.Seq, last.Hash[:]).QueryRow(func(row pgx.Row) error { return row.Scan(&s.lostIsThere) })
	}
	b.Queue(sqlNumbers, len(s.batch)).QueryRow(s.layNumbers)
	b.Queue(sqlLayAccounts, s.dataset, w.scopes, w.names, w.ends).Query(s.layAccounts)
	if len(w.charges) > 0 {
		b.Queue(sqlLayCharges, w.charges).Query(s.layCharges)
	}
	if len(w.analysts) > 0 {
		b.Queue(sqlLayQuestions, s.dataset, w.analysts, w.fingerprints).Query(s.layQuestions)
	}
	if len(w.keys) > 0 {
		b.Queue(sqlLayKeys, w.keyOwners, w.keys).Query(s.layKeys)
	}
	if len(w.plans) > 0 {
		b.Queue(sqlLayPlans, w.plans).Query(s.layPlans)
	}
	if err := s.conn.SendBatch(ctx, b).Close(); err != nil || !found {
		return false, err
	}
	for _, op := range s.batch {
		if op.open != nil {
			op.open.layOn(s.desk)
		}
	}
	return true, nil
}

// openCharge is a charge that this process reserved, as long as it has not ended: what a desk needs to end it. Should
// another gateway have ended it, then PostgreSQL refuses to end it again, and it is looked at.
type openCharge struct {
	dataset, analyst string
	id               ReservationID
	held             mechanisms.Loss
	accounts         []AccountID
	opened           time.Time
}

// layOn lays it out, unless the batch asks its question or its key again and it is laid out already: what ends must be what they find.
func (o *openCharge) layOn(d *desk) {
	c := d.charges[o.id]
	if c == nil {
		c = &heldCharge{Charge: Charge{ID: o.id, Dataset: o.dataset, Analyst: o.analyst}, state: open, held: o.held, opened: o.opened}
		d.charges[o.id] = c
	}
	c.accounts = nil
	for _, id := range o.accounts {
		c.accounts = append(c.accounts, d.accounts[id])
	}
}

// wanted is what the operations may look at, as parameters.
type wanted struct {
	scopes, names   []string
	charges, ends   []string // ids of all that are looked at, and of those that are to end
	analysts        []string // of questions
	fingerprints    [][]byte
	keyOwners, keys []string
	plans           []string
}

func (s *session) wanted() wanted {
	w := wanted{ends: []string{}}
	named := map[AccountID]bool{}
	name := func(id AccountID) {
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
		c := op.charge
		if c == nil {
			continue
		}
		w.analysts, w.fingerprints = append(w.analysts, c.Analyst), append(w.fingerprints, c.Fingerprint[:])
		if c.IdempotencyKey != "" {
			w.keyOwners, w.keys = append(w.keyOwners, c.Analyst), append(w.keys, c.IdempotencyKey)
		}
		if c.Draws != nil {
			w.plans = append(w.plans, string(c.Draws.Plan))
		}
	}
	w.charges = slices.Concat(w.ends, w.plans)
	return w
}

func (s *session) layNumbers(row pgx.Row) error {
	var seqs []int64
	var now time.Time
	err := row.Scan(&seqs, &now)
	s.seqs = append(s.seqs, seqs...)
	s.desk.now = later(s.desk.now, now)
	return err
}

func (s *session) layAccounts(rows pgx.Rows) error {
	for rows.Next() {
		a, err := scanTally(rows)
		if err != nil {
			return err
		}
		s.desk.accounts[a.ID], s.numbers[a.number] = a, a
	}
	return rows.Err()
}

func scanTally(row pgx.CollectableRow) (*tally, error) {
	a := &tally{}
	l, used, reserved := &a.Limit, &a.used.added, &a.reserved.added
	var every, per int64
	err := row.Scan(&a.number, &a.ID.Dataset, &a.ID.Scope, &a.ID.Name, &a.Origin, &a.Version, &l.Form, &l.Epsilon, &l.Rho, &l.Delta,
		&l.TotalDelta, &l.PerQuery, &l.PerQueryRho, &l.ReplayOnly, &every, &l.Tranche.Epsilon, &l.Tranche.Rho,
		&per, &l.Rate.Epsilon, &l.Rate.Rho, &a.frozen, &a.opened, &a.busy, &a.refills,
		&used.Epsilon, &a.used.unbounded, &used.Rho, &used.Delta, &used.Tail,
		&reserved.Epsilon, &a.reserved.unbounded, &reserved.Rho, &reserved.Delta, &reserved.Tail)
	l.Tranche.Every, l.Rate.Per = microseconds(every), microseconds(per)
	return a, err
}

func (s *session) layCharges(rows pgx.Rows) error {
	for rows.Next() {
		c := &heldCharge{}
		var numbers []int64
		var fingerprint []byte
		var closed *time.Time
		err := rows.Scan(&c.ID, &c.Dataset, &c.Analyst, &fingerprint, &numbers, &c.state, &c.held.Epsilon, &c.held.Unbounded, &c.held.Rho,
			&c.held.Delta, &c.held.Tail, &c.opened, &closed, &c.answer)
		if err != nil {
			return err
		}
		copy(c.Fingerprint[:], fingerprint)
		if closed != nil {
			c.closed = *closed
		}
		if c.state == open {
			for _, n := range numbers {
				if a := s.numbers[n]; a != nil {
					c.accounts = append(c.accounts, a)
				}
			}
		}
		s.desk.charges[c.ID] = c
	}
	return rows.Err()
}

func (s *session) layQuestions(rows pgx.Rows) error {
	for rows.Next() {
		c, err := s.scanAnswered(rows)
		if err != nil {
			return err
		}
		s.desk.asked[questionOf(c.Charge)] = c
	}
	return rows.Err()
}

func (s *session) layKeys(rows pgx.Rows) error {
	for rows.Next() {
		var name keyName // not the charge's analyst, where an answer was shared
		var digest []byte
		c, err := s.scanAnswered(rows, &name.analyst, &name.key, &digest)
		if err != nil {
			return err
		}
		k := &boundKey{charge: c, known: true}
		copy(k.digest[:], digest)
		s.desk.keys[name] = k
	}
	return rows.Err()
}

// scanAnswered lays out a charge that may be replayed. If the batch ends it as well it is laid out already.
func (s *session) scanAnswered(rows pgx.Rows, before ...any) (*heldCharge, error) {
	c := &heldCharge{}
	var fingerprint []byte
	var closed *time.Time
	err := rows.Scan(append(before, &c.ID, &c.Dataset, &c.Analyst, &fingerprint, &c.attempt, (*[]byte)(&c.Request), &c.state, &c.held.Epsilon,
		&c.held.Unbounded, &c.held.Rho, &c.held.Delta, &c.held.Tail, &closed, &c.answer)...)
	if err != nil {
		return nil, err
	}
	copy(c.Fingerprint[:], fingerprint)
	if closed != nil {
		c.closed = *closed
	}
	if known := s.desk.charges[c.ID]; known != nil {
		known.Request, known.attempt, known.Fingerprint = c.Request, c.attempt, c.Fingerprint
		return known, nil
	}
	s.desk.charges[c.ID] = c
	return c, nil
}

func (s *session) layPlans(rows pgx.Rows) error {
	for rows.Next() {
		var id ReservationID
		var epsilon, rho []int64
		var next int
		if err := rows.Scan(&id, &epsilon, &rho, &next); err != nil {
			return err
		}
		if c := s.desk.charges[id]; c != nil {
			c.Registers, c.drawn = slotsOf(epsilon, rho), next
		}
	}
	return rows.Err()
}
