package budget

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate/mechanisms"
)

// writeDown writes what changed on the desk, and commits.
func (s *session) writeDown(ctx context.Context) error {
	if err := s.defineAccounts(ctx); err != nil {
		return err
	}
	if err := s.seal(ctx); err != nil {
		return err
	}
	b := s.changes()
	if b.Len() == 0 {
		_, err := s.conn.Exec(ctx, "ROLLBACK") // all were refused, or replays
		return err
	}
	if len(s.desk.journal) > 0 {
		b.QueuedQueries[0].QueryRow(func(row pgx.Row) error { return row.Scan(nil, &s.next, &s.clock) }) // sql/advance.sql
	}
	b.Queue("COMMIT").Exec(committed)
	err := s.conn.SendBatch(ctx, b).Close()
	s.readAt = time.Now()
	return err
}

// changes are the statements that write what changed on the desk. Where anything is written down in the journal, the
// first is sql/advance.sql.
func (s *session) changes() *pgx.Batch {
	b := &pgx.Batch{}
	if len(s.desk.journal) > 0 {
		left := len(s.seqs) - len(s.desk.journal)
		b.Queue(sqlAdvance, s.dataset, s.head.Seq, s.head.Hash[:], s.desk.now, s.began.Seq, s.began.Hash[:], s.beganAt,
			max(s.stock-left, 0), s.schema)
	}
	s.queueCharges(b)
	s.queueKeys(b)
	s.queueMoves(b)
	if len(s.desk.journal) > 0 {
		s.queueJournal(b)
	}
	return b
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
			reserved.added.Epsilon, reserved.unbounded, reserved.added.Rho, reserved.added.Delta, busyStored(a.busy), a.refills,
			used.added.Tail, reserved.added.Tail).
			QueryRow(func(row pgx.Row) error { return row.Scan(&a.number) })
	}
	if b.Len() == 0 {
		return nil
	}
	return s.conn.SendBatch(ctx, b).Close()
}

// busyStored is busy as PostgreSQL keeps it; the zero time is older than it can.
func busyStored(busy time.Time) time.Time {
	if busy.IsZero() {
		return time.Unix(0, 0)
	}
	return busy
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
		n := len(fresh)
		ids, analysts, accounts, requests := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		fingerprints, attempts, losses := make([][]byte, n), make([]int32, n), newLossColumns(n)
		for i, c := range fresh {
			ids[i], analysts[i], accounts[i], requests[i] = string(c.ID), c.Analyst, arrayText(c.numbers()), string(c.Request)
			fingerprints[i], attempts[i] = c.Fingerprint[:], int32(c.attempt)
			losses.add(c.Loss)
		}
		b.Queue(sqlOpen, s.dataset, s.desk.now, ids, analysts, accounts, losses.epsilon, losses.unbounded, losses.rho, losses.delta,
			fingerprints, attempts, requests, losses.tail)
	}
	for _, c := range fresh {
		if len(c.Registers) > 0 {
			epsilon, rho := slotColumns(c.Registers)
			b.Queue(sqlRegister, c.ID, epsilon, rho)
		}
	}
	if len(ended) > 0 {
		n := len(ended)
		ids, states, answers, losses := make([]string, n), make([]string, n), make([][]byte, n), newLossColumns(n)
		shared := make([]*string, n)
		for i, c := range ended {
			ids[i], states[i], answers[i], shared[i] = string(c.ID), string(c.state), c.answer, sharedText(c.shared)
			losses.add(c.held)
		}
		b.Queue(sqlEnd, s.desk.now, ids, states, losses.epsilon, losses.unbounded, losses.rho, losses.delta, answers, losses.tail, shared)
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
		numbers, busy = append(numbers, a.number), append(busy, busyStored(a.busy))
		used.add(a.used)
		reserved.add(a.reserved)
	}
	b.Queue(sqlMove, numbers, used.epsilon, used.unbounded, used.rho, used.delta,
		reserved.epsilon, reserved.unbounded, reserved.rho, reserved.delta, busy, used.tail, reserved.tail)
}

// sumColumns are sums as parameters.
type sumColumns struct{ epsilon, unbounded, rho, delta, tail []int64 }

func (c *sumColumns) add(s sums) {
	c.epsilon, c.unbounded = append(c.epsilon, int64(s.added.Epsilon)), append(c.unbounded, s.unbounded)
	c.rho, c.delta = append(c.rho, int64(s.added.Rho)), append(c.delta, int64(s.added.Delta))
	c.tail = append(c.tail, int64(s.added.Tail))
}

func (s *session) queueJournal(b *pgx.Batch) {
	n := len(s.desk.journal)
	seqs, hashes, digests := make([]int64, n), make([][]byte, n), make([][]byte, n)
	kinds, analysts, accounts := make([]string, n), make([]string, n), make([]string, n)
	charges, made, records, shared := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	losses := newLossColumns(n)
	for i, l := range s.desk.journal {
		e := &s.desk.journal[i].Entry
		seqs[i], hashes[i], digests[i] = e.Seq, e.Hash[:], e.Digest
		kinds[i], analysts[i], accounts[i] = string(e.Kind), e.Analyst, arrayText(e.AccountIDs)
		charges[i], made[i], records[i] = orNull(string(e.Reservation)), orNull(string(e.MechanismText)), orNull(string(e.AccountText))
		losses.add(l.Loss)
		shared[i] = sharedText(l.Shared)
	}
	b.Queue(sqlWrite, s.dataset, s.desk.now, seqs, kinds, analysts, accounts, charges, losses.epsilon, losses.unbounded, losses.rho,
		losses.delta, digests, made, records, hashes, losses.tail, shared)
}

// lossColumns are losses as parameters.
type lossColumns struct {
	epsilon, rho, delta, tail []int64
	unbounded                 []bool
}

// newLossColumns has room for so many.
func newLossColumns(n int) *lossColumns {
	column := func() []int64 { return make([]int64, 0, n) }
	return &lossColumns{epsilon: column(), rho: column(), delta: column(), tail: column(), unbounded: make([]bool, 0, n)}
}

func (l *lossColumns) add(x mechanisms.Loss) {
	l.epsilon, l.unbounded = append(l.epsilon, int64(x.Epsilon)), append(l.unbounded, x.Unbounded)
	l.rho, l.delta = append(l.rho, int64(x.Rho)), append(l.delta, int64(x.Delta))
	l.tail = append(l.tail, int64(x.Tail))
}

// sharedText is what a charge counts as for shared accounts, as the ledger keeps it: ε, unbounded, ρ, δ and tail; nil
// (NULL) where it is the same as for others.
func sharedText(l *mechanisms.Loss) *string {
	if l == nil {
		return nil
	}
	s := sumOf(*l)
	return new(arrayText([]int64{int64(s.added.Epsilon), s.unbounded, int64(s.added.Rho), int64(s.added.Delta), int64(s.added.Tail)}))
}

// sharedOf reads it. What the ledger cannot have written is a loss that no entry and no charge has.
func sharedOf(n []int64) *mechanisms.Loss {
	switch {
	case n == nil:
		return nil
	case len(n) != 5 || n[1] < 0 || n[1] > 1:
		return &mechanisms.Loss{Epsilon: -1}
	}
	return &mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(n[0]), Unbounded: n[1] == 1, Rho: mechanisms.PicoRho(n[2]),
		Delta: mechanisms.AttoDelta(n[3]),
		Tail:  mechanisms.AttoDelta(n[4])}
}

// arrayText writes numbers as PostgreSQL does: lists of lists of different lengths are no parameter.
func arrayText(numbers []int64) string {
	text := append(make([]byte, 0, 64), '{')
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return string(append(text, '}'))
}

// orNull is the text, or nil (NULL) for the empty one.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
