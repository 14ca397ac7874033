package budgettest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Stepped is an empty ledger whose clocks a test sets.
type Stepped struct {
	budget.Ledger
	Set func(server, own time.Time)
}

// stepped is a run of [ClocksThatStep].
type stepped struct {
	testing.TB
	l              Stepped
	random         *rand.Rand
	limit          budget.Limit // with a rate, or tranches
	now            time.Time    // the true one
	server, own    time.Duration
	taken          []*takenCharge
	refused, moved int // by clocks; by entries that set the time back
}

// takenCharge is a charge that was admitted.
type takenCharge struct {
	id    budget.ReservationID
	at    time.Time // the true one
	cost  mechanisms.PicoEpsilon
	right bool // the dataset's time was not of the future
	open  bool
}

// What is charged, and released, in [ClocksThatStep].
const (
	steppedCharge  = 4
	steppedRate    = 16
	steppedPer     = 10 * time.Minute
	steppedTranche = 40
	// What clocks may differ by when a charge is taken, and when the time is set back.
	steppedSlack = 2*time.Minute + time.Second
)

// ClocksThatStep lets the clocks of a ledger's server and of its writer step at random, alone and together, and sets the dataset's time
// back at random. Where the time is not of the future, rates and tranches admit no more than by the true time of all charges, also of those
// that were taken while it was; the time is set back where both clocks say so, and nowhere else; and a ledger whose clocks are right again
// goes on, and is whole.
func ClocksThatStep(t *testing.T, seed uint64, steps int, l Stepped) (refused, moved, taken int) {
	t.Helper()
	s := &stepped{TB: t, l: l, random: rand.New(rand.NewPCG(seed, 8)), now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	s.limit = budget.Limit{Form: budget.Pure, Epsilon: 100_000, Rho: budget.Never}
	if seed%2 == 0 {
		s.limit.Tranche = budget.Tranche{Every: time.Hour, Epsilon: steppedTranche}
	} else {
		s.limit.Rate = budget.Rate{Per: steppedPer, Epsilon: steppedRate}
	}
	if s.random.IntN(2) == 0 { // the account is opened at a time of the future, or at the right one
		s.server = s.upTo(2 * time.Hour)
		s.own = s.server
	}
	s.l.Set(s.now.Add(s.server), s.now.Add(s.own))
	s.ask("first")
	for step := range steps {
		s.now = s.now.Add(s.upTo(time.Minute))
		if s.random.IntN(4) == 0 {
			s.step()
		}
		s.l.Set(s.now.Add(s.server), s.now.Add(s.own))
		if s.random.IntN(2) == 0 {
			s.setBack(s.now.Add(s.server).Add(s.upTo(140*time.Second) - 70*time.Second))
		}
		s.end()
		for n := range s.random.IntN(6) {
			s.ask(fmt.Sprint("R", step, "-", n))
		}
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, step)
		}
	}
	s.neverTooMuch(seed)
	s.server, s.own = 0, 0
	s.l.Set(s.now, s.now)
	s.setBack(s.now)
	s.now = s.now.Add(400 * time.Hour)
	s.l.Set(s.now, s.now)
	if before := len(s.taken); !s.ask("last") || len(s.taken) == before {
		t.Fatalf("seed %d: the clocks are right, and nothing goes on", seed)
	}
	if err := Whole(t, l, dataset); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return s.refused, s.moved, len(s.taken)
}

func (s *stepped) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d))).Truncate(time.Microsecond)
}

// step sets one clock, or both; together they are never behind, when nobody could say what time it is.
func (s *stepped) step() {
	far := []time.Duration{2 * time.Minute, time.Hour, 400 * 24 * time.Hour}[s.random.IntN(3)]
	switch off := s.upTo(far); s.random.IntN(6) {
	case 0:
		s.server, s.own = off, 0
	case 1:
		s.server, s.own = 0, off
	case 2:
		s.server, s.own = -s.upTo(5*time.Minute), 0
	case 3:
		s.server, s.own = off, off
	default:
		s.server, s.own = 0, 0
	}
}

// newest is when the newest entry was written.
func (s *stepped) newest() time.Time {
	entries, err := s.l.Entries(s.Context(), budget.Page{Limit: 1, Dataset: dataset})
	if err != nil {
		s.Fatal(err)
	}
	if len(entries) == 0 {
		return time.Time{}
	}
	return entries[0].At
}

func (s *stepped) setBack(to time.Time) {
	before := s.newest()
	near := func(off time.Duration) bool { return s.now.Add(off).Sub(to).Abs() <= time.Minute }
	err := s.l.SetBack(s.Context(), "sam", budget.SetBack{Dataset: dataset, To: to, Reason: "a clock was wrong"})
	if may := to.Before(before) && near(s.server) && near(s.own); may != (err == nil) {
		s.Errorf("from %v to %v, with the clocks %v and %v off %v: %v", before, to, s.server, s.own, s.now, err)
	}
	switch after := s.newest(); {
	case err == nil && !after.Equal(to):
		s.Errorf("the time was set to %v, and is %v", to, after)
	case err == nil:
		s.moved++
	case !after.Equal(before):
		s.Errorf("refused, and the time is %v after %v", after, before)
	}
}

// end ends some open charge, for less than it reserved or for all of it.
func (s *stepped) end() {
	for _, c := range s.taken {
		if !c.open || s.random.IntN(3) > 0 {
			continue
		}
		released := mechanisms.PicoEpsilon(s.random.IntN(steppedCharge + 1))
		err := s.l.Settle(s.Context(), c.id, mechanisms.Loss{Epsilon: released}, []byte("answer"))
		if err == nil {
			c.open, c.cost = false, released
		} else if fault.CodeOf(err) != fault.CodeLedgerClock {
			s.Error(err, errors.Unwrap(err))
		}
	}
}

// ask reports whether the charge was admitted.
func (s *stepped) ask(name string) bool {
	id := budget.ReservationID(name)
	before := s.newest()
	_, err := s.l.Reserve(s.Context(), budget.Charge{ID: id, Dataset: dataset, Analyst: "ana", Loss: mechanisms.Loss{Epsilon: steppedCharge},
		Accounts: []budget.Account{analystAccount("ana", s.limit)}, Fingerprint: sha256.Sum256([]byte(id)), Request: []byte("{}")})
	switch after := s.newest(); {
	case err == nil:
		right := !after.After(s.now.Add(time.Minute + time.Second))
		s.taken = append(s.taken, &takenCharge{id, s.now, steppedCharge, right, true})
	case !after.Equal(before):
		s.Errorf("refused, and the time is %v after %v", after, before)
	case fault.CodeOf(err) == fault.CodeLedgerClock:
		s.refused++
		if s.server <= s.own+time.Minute || !s.now.Add(s.server).After(before.Add(time.Minute)) {
			s.Errorf("refused with the clocks %v and %v off %v, after %v", s.server, s.own, s.now, before)
		}
	case fault.CodeOf(err) != fault.CodeBudgetRateLimited && fault.CodeOf(err) != fault.CodeBudgetTrancheClosed:
		s.Error(err, errors.Unwrap(err))
	}
	return err == nil
}

// neverTooMuch adds up what was admitted until each charge that was taken at a time that was not of the future: since each before it.
func (s *stepped) neverTooMuch(seed uint64) {
	for i, last := range s.taken {
		if !last.right {
			continue
		}
		var sum mechanisms.PicoEpsilon
		for j := i; j >= 0; j-- {
			sum += s.taken[j].cost
			since := last.at.Sub(s.taken[j].at) + steppedSlack
			if most := steppedRate * (1 + float64(since)/float64(steppedPer)); s.limit.Rate.Per > 0 && float64(sum) > most {
				s.Fatalf("seed %d: %d are admitted within %v until %v, where the rate lets through %v", seed, sum, since, last.at, most)
			}
		}
		if open := 1 + (last.at.Sub(s.taken[0].at)+steppedSlack)/time.Hour; s.limit.Tranche.Every > 0 && sum > steppedTranche*mechanisms.PicoEpsilon(open) {
			s.Fatalf("seed %d: %d are admitted by %v, with %d tranches open", seed, sum, last.at, open)
		}
	}
}

// Whole says what is wrong with a dataset's ledger by its own verification, and by its chain and an auditor.
func Whole(t testing.TB, l budget.Ledger, dataset string) error {
	t.Helper()
	_, err := l.Verify(t.Context(), budget.Head{Dataset: dataset})
	chain, auditor := journal.NewChain(budget.Head{Dataset: dataset}), journal.NewAuditor(dataset, nil)
	for page := (budget.Page{Dataset: dataset, Forward: true, Limit: 1000}); err == nil; {
		some, failed := l.Entries(t.Context(), page)
		err = failed
		for _, e := range some {
			err = errors.Join(err, chain.Add(e), auditor.Add(e))
			page.After = e.Seq
		}
		if len(some) == 0 {
			break
		}
	}
	return err
}
