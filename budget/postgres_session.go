package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// sessionPatience bounds one batch, retries included.
const sessionPatience = 10 * time.Second

// runBatch decides a batch of one dataset in one transaction, and tells the callers once that is committed.
//
// A failure that one of them may have caused does not touch the others: then each is tried by itself.
func (p *Postgres) runBatch(dataset string, batch []*operation) {
	ctx, cancel := context.WithTimeout(context.Background(), sessionPatience)
	defer cancel()
	var err error
	for range attempts {
		s := &session{dataset: dataset, batch: batch, desk: newDesk()}
		if err = p.transact(ctx, s); outcomeUnknown(err) && len(s.desk.journal) > 0 {
			err = p.resolve(ctx, s, err)
		}
		if err == nil {
			p.saw(s.head)
			for i, op := range batch {
				p.writers.finish(op, s.errors[i])
			}
			return
		}
		if mayBeOnesFault(err) {
			for _, op := range batch {
				op.open = nil // another gateway may have ended it: look
			}
			if len(batch) > 1 {
				for _, op := range batch {
					p.runBatch(dataset, []*operation{op})
				}
				return
			}
		}
		var broken *BrokenError
		if ctx.Err() != nil || errors.Is(err, errUndecided) || errors.As(err, &broken) {
			break
		}
	}
	for _, op := range batch {
		p.writers.finish(op, fault.DataUnavailable(err))
	}
}

// resolve finds out whether a transaction was committed whose answer was lost: whether its last entry is there. The dataset is locked first, so that
// the transaction has ended by then. It gives nil if it was, and the failure if it was not and may be run again.
func (p *Postgres) resolve(ctx context.Context, s *session, failure error) error {
	last := s.desk.journal[len(s.desk.journal)-1].Seq
	if last == 0 {
		return failure // nothing was sent
	}
	var err error
	for range attempts {
		var there bool
		err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlLock, s.dataset); err != nil {
				return err
			}
			return tx.QueryRow(ctx, sqlCommitted, last).Scan(&there)
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

// transact runs one transaction. It is two exchanges with the server, three when an account is opened.
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
	if err := p.follows(s.head); err != nil {
		return err
	}
	s.errors = make([]error, len(s.batch))
	for i, op := range s.batch {
		s.errors[i] = op.decide(s.desk)
	}
	return s.writeDown(ctx)
}

// session is one transaction of a dataset's ledger.
type session struct {
	conn    *pgxpool.Conn
	dataset string
	batch   []*operation
	errors  []error // of each operation

	desk    *desk
	numbers map[int64]*tally // accounts by number
	head    Head
	seqs    []int64 // numbers for entries
}

// layOut locks the dataset and lays out what the batch may look at. It reports false when the dataset has no ledger yet.
func (s *session) layOut(ctx context.Context) (found bool, err error) {
	w := s.wanted()
	s.numbers, s.seqs = map[int64]*tally{}, nil
	s.head = Head{Dataset: s.dataset}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(sqlLock, s.dataset).QueryRow(func(row pgx.Row) error {
		var head []byte
		err := row.Scan(&s.head.Seq, &head, &s.desk.now)
		found = err == nil
		copy(s.head.Hash[:], head)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
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
			s.desk.charges[op.ends] = op.open.on(s.desk)
		}
	}
	return true, nil
}

// openCharge is a charge that this process reserved, as long as it has not ended: what a desk needs to end it. Should another gateway have ended
// it, then PostgreSQL refuses to end it again, and it is looked at.
type openCharge struct {
	dataset, analyst string
	id               ReservationID
	held             mechanisms.Loss
	accounts         []AccountID
}

func (o *openCharge) on(d *desk) *heldCharge {
	c := &heldCharge{Charge: Charge{ID: o.id, Dataset: o.dataset, Analyst: o.analyst}, state: open, held: o.held}
	for _, id := range o.accounts {
		c.accounts = append(c.accounts, d.accounts[id])
	}
	return c
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
	if now.After(s.desk.now) { // else the server's clock was set back
		s.desk.now = now
	}
	s.desk.now = s.desk.now.UTC().Truncate(time.Microsecond)
	return err
}

func (s *session) layAccounts(rows pgx.Rows) error {
	for rows.Next() {
		a := &tally{}
		l, used, reserved := &a.Limit, &a.used.added, &a.reserved.added
		var every, per int64
		err := rows.Scan(&a.number, &a.ID.Dataset, &a.ID.Scope, &a.ID.Name, &a.Origin, &a.Version, &l.Form, &l.Epsilon, &l.Rho, &l.Delta,
			&l.TotalDelta, &l.PerQuery, &l.PerQueryRho, &l.ReplayOnly, &every, &l.Tranche.Epsilon, &l.Tranche.Rho,
			&per, &l.Rate.Epsilon, &l.Rate.Rho, &a.frozen, &a.opened, &a.busy,
			&used.Epsilon, &a.used.unbounded, &used.Rho, &used.Delta,
			&reserved.Epsilon, &a.reserved.unbounded, &reserved.Rho, &reserved.Delta)
		if err != nil {
			return err
		}
		l.Tranche.Every, l.Rate.Per = microseconds(every), microseconds(per)
		s.desk.accounts[a.ID], s.numbers[a.number] = a, a
	}
	return rows.Err()
}

func (s *session) layCharges(rows pgx.Rows) error {
	for rows.Next() {
		c := &heldCharge{}
		var numbers []int64
		var fingerprint []byte
		var closed *time.Time
		err := rows.Scan(&c.ID, &c.Dataset, &c.Analyst, &fingerprint, &numbers, &c.state, &c.held.Epsilon, &c.held.Unbounded, &c.held.Rho,
			&c.held.Delta, &closed, &c.answer)
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
		&c.held.Unbounded, &c.held.Rho, &c.held.Delta, &closed, &c.answer)...)
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

func slotsOf(epsilon, rho []int64) []mechanisms.Slot {
	slots := make([]mechanisms.Slot, len(epsilon))
	for i := range slots {
		slots[i] = mechanisms.Slot{Epsilon: mechanisms.PicoEpsilon(epsilon[i]), Rho: mechanisms.PicoRho(rho[i])}
	}
	return slots
}

// writeDown writes what changed on the desk, and commits.
func (s *session) writeDown(ctx context.Context) error {
	if err := s.defineAccounts(ctx); err != nil {
		return err
	}
	if err := s.seal(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	s.queueCharges(b)
	s.queueKeys(b)
	s.queueMoves(b)
	if len(s.desk.journal) > 0 {
		s.queueJournal(b)
		b.Queue(sqlAdvance, s.dataset, s.head.Seq, s.head.Hash[:], s.desk.now)
	}
	if b.Len() == 0 {
		_, err := s.conn.Exec(ctx, "ROLLBACK") // all were refused, or replays
		return err
	}
	b.Queue("COMMIT").Exec(committed)
	return s.conn.SendBatch(ctx, b).Close()
}

// committed makes sure that COMMIT did: in a failed transaction it says ROLLBACK.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return fmt.Errorf("budget: COMMIT was answered by %s", tag)
	}
	return nil
}

// defineAccounts writes accounts that were opened or changed. That is rare, so each is a statement.
func (s *session) defineAccounts(ctx context.Context) error {
	b := &pgx.Batch{}
	for _, a := range s.inOrder(func(a *tally) bool { return a.defined }) {
		l, used, reserved := a.Limit, a.used, a.reserved
		b.Queue(sqlDefine, s.dataset, a.ID.Scope, a.ID.Name, a.Origin, a.Version, l.Form, l.Epsilon, l.Rho, l.Delta, l.TotalDelta,
			l.PerQuery, l.PerQueryRho, l.ReplayOnly, l.Tranche.Every.Microseconds(), l.Tranche.Epsilon, l.Tranche.Rho,
			l.Rate.Per.Microseconds(), l.Rate.Epsilon, l.Rate.Rho, a.frozen, a.opened, a.ceiling.Epsilon, a.ceiling.Rho, a.ceiling.Delta,
			used.added.Epsilon, used.unbounded, used.added.Rho, used.added.Delta,
			reserved.added.Epsilon, reserved.unbounded, reserved.added.Rho, reserved.added.Delta, a.busyStored()).
			QueryRow(func(row pgx.Row) error { return row.Scan(&a.number) })
	}
	if b.Len() == 0 {
		return nil
	}
	return s.conn.SendBatch(ctx, b).Close()
}

// busyStored is busy as PostgreSQL keeps it; the zero time is older than it can.
func (a *tally) busyStored() time.Time {
	if a.busy.IsZero() {
		return time.Unix(0, 0)
	}
	return a.busy
}

// inOrder gives the accounts of the desk that are picked, in lock order.
func (s *session) inOrder(pick func(*tally) bool) []*tally {
	var all []*tally
	for _, a := range s.desk.accounts {
		if pick(a) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *tally) int { return a.ID.compare(b.ID) })
	return all
}

// seal completes the entries. There are as many numbers as operations; those that open accounts write more.
func (s *session) seal(ctx context.Context) error {
	if missing := len(s.desk.journal) - len(s.seqs); missing > 0 {
		now := s.desk.now
		if err := s.layNumbers(s.conn.QueryRow(ctx, sqlNumbers, missing)); err != nil {
			return err
		}
		s.desk.now = now // it is later now, but not for this batch
	}
	s.head = seal(s.head, s.desk.journal, s.seqs)
	return nil
}

func (s *session) queueCharges(b *pgx.Batch) {
	var fresh, ended []*heldCharge
	for _, op := range s.batch { // in order, each once
		if op.charge != nil {
			if c := s.desk.charges[op.charge.ID]; c != nil && c.fresh && !slices.Contains(fresh, c) {
				fresh = append(fresh, c)
			}
			if d := op.charge.Draws; d != nil && s.desk.charges[d.Plan] != nil && s.desk.charges[d.Plan].drew {
				plan := s.desk.charges[d.Plan]
				plan.drew = false
				b.Queue(sqlDrawn, plan.ID, plan.drawn)
			}
		}
		if c := s.desk.charges[op.ends]; c != nil && c.ended && !slices.Contains(ended, c) {
			ended = append(ended, c)
		}
	}
	if len(fresh) > 0 {
		var ids, analysts, accounts, requests []string
		var fingerprints [][]byte
		var attempts []int
		var losses lossColumns
		for _, c := range fresh {
			ids, analysts, accounts = append(ids, string(c.ID)), append(analysts, c.Analyst), append(accounts, arrayText(c.numbers()))
			losses.add(c.Loss)
			fingerprints, attempts, requests = append(fingerprints, c.Fingerprint[:]), append(attempts, c.attempt), append(requests, string(c.Request))
		}
		b.Queue(sqlOpen, s.dataset, s.desk.now, ids, analysts, accounts, losses.epsilon, losses.unbounded, losses.rho, losses.delta,
			fingerprints, attempts, requests)
	}
	for _, c := range fresh {
		if len(c.Registers) > 0 {
			epsilon, rho := c.registering()
			b.Queue(sqlRegister, c.ID, epsilon, rho)
		}
	}
	if len(ended) > 0 {
		var ids, states []string
		var answers [][]byte
		var losses lossColumns
		for _, c := range ended {
			ids, states, answers = append(ids, string(c.ID)), append(states, string(c.state)), append(answers, c.answer)
			losses.add(c.held)
		}
		b.Queue(sqlEnd, s.desk.now, ids, states, losses.epsilon, losses.unbounded, losses.rho, losses.delta, answers)
	}
}

func (s *session) queueKeys(b *pgx.Batch) {
	type columns struct {
		analysts, keys, charges []string
		digests                 [][]byte
	}
	var fresh, moved columns
	for name, k := range s.desk.keys {
		if !k.moved {
			continue
		}
		c := &fresh
		if k.known {
			c = &moved
		}
		c.analysts, c.keys = append(c.analysts, name.analyst), append(c.keys, name.key)
		c.digests, c.charges = append(c.digests, k.digest[:]), append(c.charges, string(k.charge.ID))
	}
	if len(fresh.keys) > 0 {
		b.Queue(sqlBind, fresh.analysts, fresh.keys, fresh.digests, fresh.charges)
	}
	if len(moved.keys) > 0 {
		b.Queue(sqlRebind, moved.analysts, moved.keys, moved.digests, moved.charges)
	}
}

func (s *session) queueMoves(b *pgx.Batch) {
	moved := s.inOrder(func(a *tally) bool { return a.moved && !a.defined })
	if len(moved) == 0 {
		return
	}
	var numbers []int64
	var used, reserved sumColumns
	var busy []time.Time
	for _, a := range moved {
		numbers, busy = append(numbers, a.number), append(busy, a.busyStored())
		used.add(a.used)
		reserved.add(a.reserved)
	}
	b.Queue(sqlMove, numbers, used.epsilon, used.unbounded, used.rho, used.delta,
		reserved.epsilon, reserved.unbounded, reserved.rho, reserved.delta, busy)
}

// sumColumns are sums as parameters.
type sumColumns struct{ epsilon, unbounded, rho, delta []int64 }

func (c *sumColumns) add(s sums) {
	c.epsilon, c.unbounded = append(c.epsilon, int64(s.added.Epsilon)), append(c.unbounded, s.unbounded)
	c.rho, c.delta = append(c.rho, int64(s.added.Rho)), append(c.delta, int64(s.added.Delta))
}

func (s *session) queueJournal(b *pgx.Batch) {
	n := len(s.desk.journal)
	seqs, hashes, digests := make([]int64, n), make([][]byte, n), make([][]byte, n)
	kinds, analysts, accounts := make([]string, n), make([]string, n), make([]string, n)
	charges, made, records := make([]*string, n), make([]*string, n), make([]*string, n)
	var losses lossColumns
	for i, l := range s.desk.journal {
		e := &s.desk.journal[i].Entry
		seqs[i], hashes[i], digests[i] = e.Seq, e.Hash[:], e.Digest
		kinds[i], analysts[i], accounts[i] = string(e.Kind), e.Analyst, arrayText(e.AccountIDs)
		charges[i], made[i], records[i] = orNull(string(e.Reservation)), orNull(string(e.MechanismText)), orNull(string(e.AccountText))
		losses.add(l.Loss)
	}
	b.Queue(sqlWrite, s.dataset, s.desk.now, seqs, kinds, analysts, accounts, charges, losses.epsilon, losses.unbounded, losses.rho,
		losses.delta, digests, made, records, hashes)
}

// lossColumns are losses as parameters.
type lossColumns struct {
	epsilon, rho, delta []int64
	unbounded           []bool
}

func (l *lossColumns) add(x mechanisms.Loss) {
	l.epsilon, l.unbounded = append(l.epsilon, int64(x.Epsilon)), append(l.unbounded, x.Unbounded)
	l.rho, l.delta = append(l.rho, int64(x.Rho)), append(l.delta, int64(x.Delta))
}

// arrayText writes numbers as PostgreSQL does: lists of lists of different lengths are no parameter.
func arrayText(numbers []int64) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = strconv.FormatInt(n, 10)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// orNull is the text, or nil (NULL) for the empty one.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// outcomeUnknown reports errors after which a transaction may or may not have been committed: the server did not answer,
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

// mayBeOnesFault recognises errors of the classes "data exception" and "integrity constraint violation": something in the batch cannot be written.
func mayBeOnesFault(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

var (
	errNoChain   = errors.New("budget: a dataset's chain does not begin")
	errUndecided = errors.New("budget: it is not known whether a transaction was committed")
)
