package budgettest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Random is a generator that a test seeds.
type Random interface {
	IntN(int) int
	Int64N(int64) int64
}

// stepped is a run of [ClocksThatStep].
type stepped struct {
	testing.TB
	l              Stepped
	random         Random
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
func ClocksThatStep(t *testing.T, seed uint64, random Random, steps int, l Stepped) (refused, moved, taken int) {
	t.Helper()
	s := &stepped{TB: t, l: l, random: random, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
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
	for _, c := range s.taken { // so that entries can be archived
		if c.open {
			if err := l.Settle(t.Context(), c.id, mechanisms.Loss{Epsilon: steppedCharge}, []byte("answer")); err != nil {
				t.Fatal(err)
			}
		}
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
		open := 1 + (last.at.Sub(s.taken[0].at)+steppedSlack)/time.Hour
		if s.limit.Tranche.Every > 0 && sum > steppedTranche*mechanisms.PicoEpsilon(open) {
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

// SettingBack sets the time of an empty ledger back after its clocks were 400 days ahead: two stewards sign that where the policy has
// anything that takes two; what was written in the future is as old as the time that it was set to; and the auditor finds each part of such
// an entry that is not as it was.
func SettingBack(t *testing.T, l Stepped) {
	t.Helper()
	f := &fixture{T: t, ledger: l.Ledger, charged: map[budget.ReservationID][]budget.AccountID{}}
	inForce := l.Ledger.(budget.InForce)
	sam, eve := f.signerOf(1), f.signerOf(2)
	keys := journal.StewardKeys{{Steward: "sam", Public: sam.Public()}, {Steward: "eve", Public: eve.Public()}}
	pair := budget.Pair{Proposer: "sam", Approver: "eve"}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(when time.Time) { l.Set(when, when) }
	ledger := ""
	policy := func(version int64, approval *budget.Approval) error {
		_, err := inForce.RecordPolicy(f.Context(), budget.NewPolicy{Text: "text", Checked: []byte("{}"), PolicyVersion: budget.PolicyVersion{
			PolicyRow: budget.PolicyRow{Version: version, AppliedBy: "sam"}, Dataset: dataset, TwoFor: []string{"unit"}, Approval: approval}})
		return err
	}
	approval := func(version int64) *budget.Approval {
		a := eve.SignPolicy(budget.PolicyChange{Dataset: dataset, Replaces: version - 1, Document: sha256.Sum256([]byte("text")),
			Approval: &budget.Approval{Pair: pair, At: now, Ledger: ledger}})
		return &a
	}
	failures := func(want int64) {
		f.Helper()
		if n, err := l.Failures(f.Context(), dataset, "ana", budget.FailurePeriod); n != want || err != nil {
			f.Errorf("%d failures, %v; want %d", n, err, want)
		}
	}
	failed := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err, errors.Unwrap(err))
		}
	}

	at(now)
	own := analystAccount("ana", f.limit(budget.Pure, "10", ""))
	own.Version = 1
	failed(policy(1, nil))
	var err error
	ledger, err = inForce.LedgerName(f.Context(), dataset)
	failed(err)
	signed := func(by budget.Pair, signedAt time.Time) budget.SetBack {
		return eve.SignSetBack(budget.SetBack{Dataset: dataset, To: now, Reason: "a clock was wrong",
			Mandate: &budget.Mandate{Pair: by, At: signedAt, Ledger: ledger}})
	}
	before := f.everything()
	if err := l.SetBack(f.Context(), "sam", signed(pair, now)); fault.CodeOf(err) != fault.CodeRequestBody {
		f.Errorf("while the time is right: %v", err)
	}
	f.unchanged(before)
	at(now.Add(400 * 24 * time.Hour))
	failed(l.Fail(f.Context(), f.reserve(f.charge(pure(1), own))))
	open := f.reserve(f.charge(pure(1), own))

	now = now.Add(time.Hour)
	at(now)
	failures(1)
	if err := policy(2, approval(2)); fault.CodeOf(err) != fault.CodePolicySignature {
		f.Errorf("a signature of now, while the time is of the future: %v", err)
	}
	before, here := f.everything(), ledger
	for _, wrong := range []budget.SetBack{{Dataset: dataset, To: now, Reason: "alone"}, signed(budget.Pair{}, now),
		signed(budget.Pair{Proposer: "sam", Approver: "sam"}, now), signed(budget.Pair{Proposer: "eve", Approver: "sam"}, now),
		signed(pair, now.Add(-25*time.Hour)), signed(pair, now.Add(time.Hour))} {
		if err := l.SetBack(f.Context(), "sam", wrong); fault.CodeOf(err) != fault.CodeBudgetSignature {
			f.Errorf("%+v: %v", wrong.Mandate, err)
		}
	}
	for _, ledger = range []string{"", budget.NoLedger, "another"} {
		if err := l.SetBack(f.Context(), "sam", signed(pair, now)); fault.CodeOf(err) != fault.CodeBudgetSignature {
			f.Errorf("for the ledger %q: %v", ledger, err)
		}
	}
	ledger = here
	f.unchanged(before)
	right := signed(pair, now)
	for _, other := range []func(*budget.SetBack){func(c *budget.SetBack) { c.To = c.To.Add(1) }, func(c *budget.SetBack) { c.Reason = "no" },
		func(c *budget.SetBack) { c.Dataset = "other" }} {
		changed := right
		other(&changed)
		if keys.CheckSetBack(changed) == nil {
			f.Errorf("the signature is taken for %+v", changed)
		}
	}
	failed(keys.CheckSetBack(right))
	failed(l.SetBack(f.Context(), "sam", right))
	failures(1)
	failed(policy(2, approval(2)))

	now = now.Add(25 * time.Hour)
	at(now)
	failures(0)
	if n, err := l.ExpireOlder(f.Context(), 24*time.Hour); n != 1 || err != nil {
		f.Errorf("%d charges are expired, %v; want that of %s", n, err, open)
	}
	f.checkSums()
	f.checkChain()
	f.checkSetBack(keys)
}

// checkSetBack follows a journal whose time was set back once, and others in which that is not so.
func (f *fixture) checkSetBack(keys journal.StewardKeys) {
	f.Helper()
	entries := f.entries()
	slices.Reverse(entries)
	clock := slices.IndexFunc(entries, func(e budget.Entry) bool { return e.Kind == budget.EntryClock })
	replace := func(old, new string) func(*budget.Entry) {
		return func(e *budget.Entry) {
			text := strings.Replace(string(e.AccountText), old, new, 1)
			if text == string(e.AccountText) {
				f.Fatalf("%s has no %s", text, old)
			}
			e.AccountText = []byte(text)
		}
	}
	at := func(when time.Time) func(*budget.Entry) {
		return func(e *budget.Entry) {
			replace(fmt.Sprint(e.At.UnixMicro()), fmt.Sprint(when.UnixMicro()))(e)
			e.At = when
		}
	}
	newest := entries[clock-1].At
	for name, c := range map[string]struct {
		edit   func(*budget.Entry)
		signed bool // the signature says so, and nothing else
	}{
		"nothing":             {},
		"no entry":            {edit: func(e *budget.Entry) { *e = entries[clock-1]; e.Kind, e.AccountText = "free", nil }},
		"a time to come":      {edit: at(newest.Add(time.Second))},
		"the newest's time":   {edit: at(newest)},
		"another time":        {edit: at(entries[clock].At.Add(-time.Hour)), signed: true},
		"other times":         {edit: func(e *budget.Entry) { e.At = e.At.Add(time.Second) }},
		"no reason":           {edit: replace(`"reason":"a clock was wrong"`, `"reason":""`)},
		"another reason":      {edit: replace(`"a clock was wrong"`, `"none"`), signed: true},
		"an account":          {edit: func(e *budget.Entry) { e.AccountIDs = []int64{1} }},
		"a charge":            {edit: func(e *budget.Entry) { e.Reservation = "R" }},
		"a loss":              {edit: func(e *budget.Entry) { e.Loss.Epsilon = 1 }},
		"no signature":        {edit: replace(`"approval"`, `"approved"`), signed: true},
		"another proposer":    {edit: replace(`"proposer":"sam"`, `"proposer":"bob"`), signed: true},
		"another approver":    {edit: replace(`"approver":"eve"`, `"approver":"sam"`), signed: true},
		"signed another time": {edit: replace(`"signed_at":`, `"signed_at":1`), signed: true},
		"another ledger":      {edit: replace(`"ledger":"`, `"ledger":"0`), signed: true},
	} {
		auditor, replayed, found, foundByState := journal.NewAuditor(dataset, keys), journal.NewReplayed(dataset), "", ""
		for i, e := range entries {
			if c.edit != nil && i == clock {
				c.edit(&e)
			}
			if err := auditor.Add(e); err != nil && found == "" {
				found = err.Error()
			}
			if what := replayed.Add(e); what != "" && foundByState == "" {
				foundByState = what
			}
		}
		if (found != "") != (c.edit != nil) || (foundByState != "") != (c.edit != nil && !c.signed) {
			f.Errorf("%s: the auditor finds %q, the replayed state %q", name, found, foundByState)
		}
	}
}
