package pgledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"noisegate.example/budget"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// make faults gives 100000.
var operations = flag.Int("operations", 5_000, "length of the histories that TestLedgerIsLinearizable records")

// TestLedgerIsLinearizable records what concurrent clients asked of a ledger in PostgreSQL and what they were told, and has porcupine
// look for an order in which accounts that are asked one question at a time would have told them the same.
//
// covers: A66
func TestLedgerIsLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	server := durableServer(t)
	d := pgtest.On(t, server)
	for _, of := range []traffic{
		{name: "one hot account", accounts: 1, clients: 64, operations: *operations},
		{name: "F03 twenty accounts, server stopped", accounts: 20, clients: 64, operations: *operations * 2 / 5, disturbed: server},
	} {
		t.Run(of.name, func(t *testing.T) {
			empty(t, d)
			checkHistory(t, journaled{open(t, d)}, of, porcupine.Ok)
		})
	}
	t.Run("control: read, then update", func(t *testing.T) {
		checkHistory(t, newReadThenUpdate(t, d), traffic{accounts: 1, clients: 16, operations: 2_000}, porcupine.Illegal)
	})
}

// checkDeadline is ample: a history of 100,000 operations takes about 10 s. A check that does not end proves nothing and fails.
const checkDeadline = 2 * time.Minute

func checkHistory(t *testing.T, l subject, of traffic, want porcupine.CheckResult) {
	t.Helper()
	h := record(t, l, of)
	recorded := time.Since(h.start)
	counts := h.recall(t, l)
	start := time.Now()
	got := porcupine.CheckOperationsTimeout(model(), h.operations, checkDeadline)
	t.Logf("%d operations in %v (%s): %s after %v", len(h.operations), recorded.Round(time.Millisecond), counts, got,
		time.Since(start).Round(time.Millisecond))
	if got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
}

// verb is what a client does to an account.
type verb int

const (
	reserves verb = iota
	gives         // a charge ends that counts as less from then on
	reads
	limits
)

// Question is the input of an operation.
type Question struct {
	account string
	verb    verb
	charge  budget.ReservationID
	amount  mechanisms.PicoEpsilon // reserved, given back, or the new limit
}

// reply is the output of an operation.
type reply struct {
	lost    bool                   // the client was not told: it happens at any time after the call, or never
	refused bool                   // nothing happened, and left is what the account had left
	left    mechanisms.PicoEpsilon // of refusals
	used    mechanisms.PicoEpsilon // right after the operation
	balance bool                   // the client was told what was used
	at      int                    // it was the account's so manieth operation; see [sequence]
}

// changes reports whether an operation changed its account.
func changes(o porcupine.Operation) bool {
	return o.Input.(Question).verb != reads && !o.Output.(*reply).refused
}

const firstLimit = 500

// funds is the state of an account.
type funds struct {
	operations  int // how many there were
	used, limit mechanisms.PicoEpsilon
}

// model is accounts that are asked one question at a time.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: byAccount,
		Init:      func() any { return funds{limit: firstLimit} },
		Step: func(state, input, output any) (bool, any) {
			after, possible := input.(Question).applied(state.(funds), *output.(*reply))
			return possible && output.(*reply).at == after.operations, after
		},
	}
}

// applied says what a question makes of an account, and whether the account as it was would have given the reply.
func (q Question) applied(f funds, told reply) (after funds, possible bool) {
	after = f
	after.operations++
	switch q.verb {
	case reserves:
		if told.refused {
			return after, f.used+q.amount > f.limit && told.left == max(f.limit-f.used, 0)
		}
		after.used += q.amount
		return after, after.used <= f.limit && after.used == told.used
	case gives:
		after.used -= q.amount
		return after, after.used >= 0 && after.used == told.used
	case limits:
		after.limit = q.amount
		return after, after.used == told.used
	case reads:
		return after, after.used == told.used
	default:
		return after, false
	}
}

func byAccount(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	of := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(Question).account
		of[name] = append(of[name], o)
	}
	for _, part := range of {
		parts = append(parts, part)
	}
	return parts
}

// traffic is what clients do to a ledger.
type traffic struct {
	name                          string
	accounts, clients, operations int
	disturbed                     *pgserver.Server // stopped as by pg_ctl stop -m immediate half-way, and started again
}

// subject is the part of a [budget.Ledger] that the traffic needs, and what it says afterwards.
type subject interface {
	Reserve(context.Context, budget.Charge) (budget.Outcome, error)
	Settle(context.Context, budget.ReservationID, mechanisms.Loss, []byte) error
	Void(context.Context, budget.ReservationID) error
	Balances(context.Context, []budget.AccountID) ([]budget.Balance, error)
	SetLimit(ctx context.Context, by string, account budget.Account) error
	// Written gives the changes that took effect, in order, and what was used right after each of them.
	journal(*testing.T) []change
}

// change is a line of a journal.
type change struct {
	charge budget.ReservationID
	verb   verb
	used   mechanisms.PicoEpsilon
}

// unlimited is a cap on single queries that none of them meets. What is added to it names a change of limit, as a charge's id names
// the charge.
const unlimited = mechanisms.PicoEpsilon(1 << 40)

func changeOf(l budget.Limit) budget.ReservationID {
	return budget.ReservationID(fmt.Sprint("limit ", l.PerQuery))
}

// journaled is a ledger that is held to its journal's order.
type journaled struct{ *pgledger.Ledger }

func (l journaled) journal(t *testing.T) (all []change) {
	t.Helper()
	entries := entriesOf(t, l)
	used := map[string]mechanisms.PicoEpsilon{}
	counts := map[budget.ReservationID]mechanisms.PicoEpsilon{}
	for _, e := range slices.Backward(entries) {
		made := change{charge: e.Reservation, verb: gives}
		switch e.Kind {
		case budget.EntryLimit:
			made = change{charge: changeOf(*e.Limit), verb: limits}
		case budget.EntryReserve:
			made.verb = reserves
		default:
		}
		used[e.Dataset] += e.Loss.Epsilon - counts[e.Reservation]
		counts[e.Reservation] = e.Loss.Epsilon
		made.used = used[e.Dataset]
		all = append(all, made)
	}
	return all
}

// entriesOf gives a ledger's whole journal, newest first.
func entriesOf(t *testing.T, l budget.Ledger) (entries []budget.Entry) {
	t.Helper()
	for page := (budget.Page{Limit: 1000}); ; page.Before = entries[len(entries)-1].Seq {
		some, err := l.Entries(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		if entries = append(entries, some...); len(some) < page.Limit {
			return entries
		}
	}
}

// history is what was asked and told.
type history struct {
	start      time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
	told       int // how many had an outcome
}

// record lets clients loose on a ledger until so many operations are done.
func record(t *testing.T, l subject, of traffic) *history {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	accounts := make([]budget.Account, of.accounts)
	for i := range accounts {
		accounts[i] = account(budget.AnalystScope, "ana", firstLimit)
		accounts[i].ID.Dataset, accounts[i].Origin = fmt.Sprint("d", i), budget.FromSteward
		if err := l.SetLimit(ctx, "sam", accounts[i]); err != nil {
			t.Fatal(err)
		}
	}
	h := &history{start: time.Now()}
	var all sync.WaitGroup
	for i := range of.clients {
		c := &client{history: h, ledger: l, id: i, random: rand.New(rand.NewPCG(uint64(i), 1))}
		all.Go(func() {
			for n := 0; h.done() < of.operations && ctx.Err() == nil; n++ {
				c.step(ctx, n, accounts[c.random.IntN(len(accounts))])
			}
		})
	}
	if of.disturbed != nil {
		for h.done() < of.operations/2 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		of.disturbed.StopImmediate()
		if err := of.disturbed.Restart(ctx); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	return h
}

func (h *history) done() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told
}

// ask records one operation.
func (h *history) ask(client int, q Question, call func() reply) {
	called := time.Since(h.start)
	told := call()
	returned := int64(time.Since(h.start))
	if told.lost {
		returned = math.MaxInt64
		time.Sleep(100 * time.Millisecond) // the server is away: do not spin
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !told.lost {
		h.told++
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: q, Call: int64(called), Output: &told, Return: returned})
}

// recall completes the replies by what the subject knows afterwards. A change that was reported to a client and that the subject does not
// know is lost (I3). One that was reported to no client has happened, at any time after the call, if the subject knows it, and else not.
func (h *history) recall(t *testing.T, l subject) (counts string) {
	t.Helper()
	type name struct {
		charge budget.ReservationID
		verb   verb
	}
	nth, journal := map[name]int{}, l.journal(t)
	for i, c := range journal {
		nth[name{c.charge, c.verb}] = i
	}
	var refused, lost int
	h.operations = slices.DeleteFunc(h.operations, func(o porcupine.Operation) bool {
		asked, told := o.Input.(Question), o.Output.(*reply)
		i, known := nth[name{asked.charge, asked.verb}]
		switch {
		case told.refused:
			refused++
		case told.lost && !known:
			lost++
			return true
		case asked.verb == reads:
		case known:
			if told.balance && told.used != journal[i].used {
				t.Errorf("%+v was told %+v, and the journal says %+v", asked, told, journal[i])
			}
			told.at, told.used = i, journal[i].used
		default:
			t.Errorf("%+v was acknowledged and is not in the journal", asked)
		}
		return false
	})
	for _, part := range byAccount(h.operations) {
		sequence(part)
	}
	return fmt.Sprintf("%d refused, %d without an outcome", refused, lost)
}

// client asks one question at a time.
type client struct {
	*history
	ledger subject
	id     int
	random *rand.Rand
	open   []Question // its reservations
}

// step asks for something: mostly for budget, and the first client, as the steward, for more of it.
func (c *client) step(ctx context.Context, n int, a budget.Account) {
	switch pick := c.random.IntN(100); {
	case c.id == 0:
		c.raise(ctx, n, a)
	case pick < 5:
		c.read(ctx, a)
	case pick < 50 && len(c.open) > 0:
		c.end(ctx)
	default:
		c.reserve(ctx, n, a)
	}
}

func (c *client) reserve(ctx context.Context, n int, a budget.Account) {
	amount := mechanisms.PicoEpsilon(2 + c.random.IntN(20))
	asked := charge(fmt.Sprintf("%s-%d-%d", a.ID.Dataset, c.id, n), mechanisms.Loss{Epsilon: amount}, a)
	asked.Dataset = a.ID.Dataset
	q := Question{a.ID.Dataset, reserves, asked.ID, amount}
	c.ask(c.id, q, func() reply {
		outcome, err := c.ledger.Reserve(ctx, asked)
		var refusal *fault.Error
		switch {
		case err == nil && outcome.Reserved != nil:
			c.open = append(c.open, q)
			if used := outcome.Reserved.Used; len(used) == 1 {
				return reply{used: used[0].Epsilon, balance: true}
			}
			return reply{}
		case errors.As(err, &refusal) && refusal.Code == fault.CodeBudgetExhausted:
			left, err := mechanisms.ParseEpsilon(refusal.Details[2].Value)
			return reply{refused: err == nil, lost: err != nil, left: left}
		default:
			return reply{lost: true}
		}
	})
}

// end takes a charge back, or settles it for half of what it reserved.
func (c *client) end(ctx context.Context) {
	i := c.random.IntN(len(c.open))
	q := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	end := func() error { return c.ledger.Void(ctx, q.charge) }
	if c.random.IntN(2) == 0 {
		kept := q.amount / 2
		q.amount -= kept
		end = func() error { return c.ledger.Settle(ctx, q.charge, mechanisms.Loss{Epsilon: kept}, []byte("{}")) }
	}
	q.verb = gives
	c.ask(c.id, q, func() reply { return reply{lost: end() != nil} })
}

func (c *client) read(ctx context.Context, a budget.Account) (used mechanisms.PicoEpsilon) {
	c.ask(c.id, Question{account: a.ID.Dataset, verb: reads}, func() reply {
		balances, err := c.ledger.Balances(ctx, []budget.AccountID{a.ID})
		if err != nil || len(balances) != 1 {
			return reply{lost: true}
		}
		used = balances[0].Used().Epsilon
		return reply{used: used}
	})
	return used
}

// raise leaves the others some budget, and not much.
func (c *client) raise(ctx context.Context, n int, a budget.Account) {
	a.Limit.Epsilon = c.read(ctx, a) + mechanisms.PicoEpsilon(c.random.IntN(firstLimit))
	a.Limit.PerQuery = unlimited + mechanisms.PicoEpsilon(n)
	c.ask(c.id, Question{a.ID.Dataset, limits, changeOf(a.Limit), a.Limit.Epsilon}, func() reply {
		return reply{lost: c.ledger.SetLimit(ctx, "sam", a) != nil}
	})
}
