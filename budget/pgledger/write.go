package pgledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/mechanisms"
)

// writeDown writes what changed in the state machine, and commits.
func (s *transaction) writeDown(ctx context.Context) error {
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
	if len(s.machine.Written) > 0 {
		b.QueuedQueries[0].QueryRow(func(row pgx.Row) error { return row.Scan(nil, &s.next, &s.clock, &s.postmaster) }) // sql/advance.sql
	}
	b.Queue("COMMIT").Exec(committed)
	err := s.conn.SendBatch(ctx, b).Close()
	s.readAt = time.Now()
	return err
}

// changes are the statements that write what changed in the state machine. Where anything is written down in the journal, the
// first is sql/advance.sql.
func (s *transaction) changes() *pgx.Batch {
	b := &pgx.Batch{}
	if len(s.machine.Written) > 0 {
		left := len(s.seqs) - len(s.machine.Written)
		b.Queue(sqlAdvance, s.dataset, s.head.Seq, s.head.Hash[:], s.machine.Now, s.began.Seq, s.began.Hash[:], s.beganAt,
			max(s.stock-left, 0), s.schema, s.overrules)
	}
	s.queueCharges(b)
	s.queueKeys(b)
	s.queueMoves(b)
	s.queueBack(b)
	s.queuePolicies(b)
	if len(s.machine.Written) > 0 {
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
func (s *transaction) defineAccounts(ctx context.Context) error {
	b := &pgx.Batch{}
	for _, a := range s.inOrder(func(a *machine.Account) bool { return a.Defined }) {
		l, used, reserved := a.Limit, a.Used, a.Reserved
		b.Queue(sqlDefine, s.dataset, a.ID.Scope, a.ID.Name, a.Origin, a.Version, l.Form, l.Epsilon, l.Rho, l.Delta, l.TotalDelta,
			l.PerQuery, l.PerQueryRho, l.ReplayOnly, l.Tranche.Every.Microseconds(), l.Tranche.Epsilon, l.Tranche.Rho,
			l.Rate.Per.Microseconds(), l.Rate.Epsilon, l.Rate.Rho, a.Frozen, a.Opened, a.Ceiling.Epsilon, a.Ceiling.Rho, a.Ceiling.Delta,
			used.Added.Epsilon, used.Unbounded, used.Added.Rho, used.Added.Delta,
			reserved.Added.Epsilon, reserved.Unbounded, reserved.Added.Rho, reserved.Added.Delta, busyStored(a.Busy), a.Refills,
			used.Added.Tail, reserved.Added.Tail, a.RaisedBy).
			QueryRow(func(row pgx.Row) error { return row.Scan(&a.Number) })
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

// inOrder gives the accounts that are picked, in lock order.
func (s *transaction) inOrder(pick func(*machine.Account) bool) []*machine.Account {
	var all []*machine.Account
	for _, a := range s.machine.Accounts {
		if pick(a) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *machine.Account) int { return a.ID.Compare(b.ID) })
	return all
}

// seal completes the entries. There are as many numbers as operations; those that open accounts write more.
func (s *transaction) seal(ctx context.Context) error {
	if missing := len(s.machine.Written) - len(s.seqs); missing > 0 {
		now := s.machine.Now
		if err := s.loadNumbers(s.conn.QueryRow(ctx, sqlNumbers, missing, s.dataset)); err != nil {
			return err
		}
		s.machine.Now = now // it is later now, but not for this batch
	}
	s.head = journal.Seal(s.head, s.machine.Written, s.seqs)
	return nil
}

func (s *transaction) queueCharges(b *pgx.Batch) {
	var fresh, ended []*machine.Charge
	for _, op := range s.batch { // in order, each once
		if op.charge != nil {
			if c := s.machine.Charges[op.charge.ID]; c != nil && c.Fresh && !slices.Contains(fresh, c) {
				fresh = append(fresh, c)
			}
		}
		if d := op.draws; d != nil && s.machine.Charges[d.Plan] != nil && s.machine.Charges[d.Plan].Drew {
			plan := s.machine.Charges[d.Plan]
			plan.Drew = false
			b.Queue(sqlDrawn, plan.ID, plan.Drawn)
		}
		if c := s.machine.Charges[op.books]; c != nil && c.Fresh {
			fresh, ended = append(fresh, c), append(ended, c)
		}
		if c := s.machine.Charges[op.ends]; c != nil && c.Ended && !slices.Contains(ended, c) {
			ended = append(ended, c)
		}
	}
	if len(fresh) > 0 {
		n := len(fresh)
		ids, analysts, accounts, requests := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		fingerprints, attempts, losses := make([][]byte, n), make([]int32, n), newLossColumns(n)
		for i, c := range fresh {
			ids[i], analysts[i], accounts[i], requests[i] = string(c.ID), c.Analyst, arrayText(c.Numbers()), string(c.Request)
			fingerprints[i], attempts[i] = c.Fingerprint[:], int32(c.Attempt)
			losses.add(c.Loss)
		}
		b.Queue(sqlOpen, s.dataset, s.machine.Now, ids, analysts, accounts, losses.epsilon, losses.unbounded, losses.rho, losses.delta,
			fingerprints, attempts, requests, losses.tail)
	}
	for _, c := range fresh {
		if len(c.Registers) > 0 {
			epsilon, rho := machine.SlotColumns(c.Registers)
			b.Queue(sqlRegister, c.ID, epsilon, rho)
		}
	}
	if len(ended) > 0 {
		n := len(ended)
		ids, states, answers, losses := make([]string, n), make([]string, n), make([][]byte, n), newLossColumns(n)
		shared := make([]*string, n)
		for i, c := range ended {
			ids[i], states[i], answers[i], shared[i] = string(c.ID), string(c.State), c.Answer, sharedText(c.SharedHeld)
			losses.add(c.Held)
		}
		b.Queue(sqlEnd, s.machine.Now, ids, states, losses.epsilon, losses.unbounded, losses.rho, losses.delta, answers, losses.tail, shared)
		s.queueReleased(b)
	}
}

// queueReleased keeps what the charges that end released, but for those that are taken back.
func (s *transaction) queueReleased(b *pgx.Batch) {
	var kept []budget.Released
	for _, op := range s.batch {
		if op.open == nil {
			continue
		}
		if c := s.machine.Charges[op.ends]; c != nil && c.Ended && c.State != machine.Voided {
			kept = append(kept, op.open.released()...)
		}
	}
	if len(kept) > 0 {
		b.Queue(sqlKeepReleased, releasedColumns(kept)...)
	}
}

func (s *transaction) queueKeys(b *pgx.Batch) {
	type columns struct {
		analysts, keys, charges []string
		digests                 [][]byte
	}
	var fresh, moved columns
	for name, k := range s.machine.Keys {
		if !k.Moved {
			continue
		}
		c := &fresh
		if k.Known {
			c = &moved
		}
		c.analysts, c.keys = append(c.analysts, name.Analyst), append(c.keys, name.Key)
		c.digests, c.charges = append(c.digests, k.Digest[:]), append(c.charges, string(k.Charge.ID))
	}
	if len(fresh.keys) > 0 {
		b.Queue(sqlBind, fresh.analysts, fresh.keys, fresh.digests, fresh.charges)
	}
	if len(moved.keys) > 0 {
		b.Queue(sqlRebind, moved.analysts, moved.keys, moved.digests, moved.charges)
	}
}

func (s *transaction) queueMoves(b *pgx.Batch) {
	moved := s.inOrder(func(a *machine.Account) bool { return a.Moved && !a.Defined })
	if len(moved) == 0 {
		return
	}
	var numbers []int64
	var used, reserved sumColumns
	var busy []time.Time
	for _, a := range moved {
		numbers, busy = append(numbers, a.Number), append(busy, busyStored(a.Busy))
		used.add(a.Used)
		reserved.add(a.Reserved)
	}
	b.Queue(sqlMove, numbers, used.epsilon, used.unbounded, used.rho, used.delta,
		reserved.epsilon, reserved.unbounded, reserved.rho, reserved.delta, busy, used.tail, reserved.tail)
}

// sumColumns are sums as parameters.
type sumColumns struct{ epsilon, unbounded, rho, delta, tail []int64 }

func (c *sumColumns) add(s machine.Sums) {
	c.epsilon, c.unbounded = append(c.epsilon, int64(s.Added.Epsilon)), append(c.unbounded, s.Unbounded)
	c.rho, c.delta = append(c.rho, int64(s.Added.Rho)), append(c.delta, int64(s.Added.Delta))
	c.tail = append(c.tail, int64(s.Added.Tail))
}

func (s *transaction) queueJournal(b *pgx.Batch) {
	n := len(s.machine.Written)
	seqs, hashes, digests := make([]int64, n), make([][]byte, n), make([][]byte, n)
	kinds, analysts, accounts := make([]string, n), make([]string, n), make([]string, n)
	charges, made, records, shared := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	losses := newLossColumns(n)
	for i, l := range s.machine.Written {
		e := &s.machine.Written[i].Entry
		seqs[i], hashes[i], digests[i] = e.Seq, e.Hash[:], e.Digest
		kinds[i], analysts[i], accounts[i] = string(e.Kind), e.Analyst, arrayText(e.AccountIDs)
		charges[i], made[i], records[i] = orNull(string(e.Reservation)), orNull(string(e.MechanismText)), orNull(string(e.AccountText))
		losses.add(l.Loss)
		shared[i] = sharedText(l.Shared)
	}
	b.Queue(sqlWrite, s.dataset, s.machine.Now, seqs, kinds, analysts, accounts, charges, losses.epsilon, losses.unbounded, losses.rho,
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
	s := machine.SumOf(*l)
	return new(arrayText([]int64{int64(s.Added.Epsilon), s.Unbounded, int64(s.Added.Rho), int64(s.Added.Delta), int64(s.Added.Tail)}))
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
