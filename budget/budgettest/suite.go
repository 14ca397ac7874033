// Package budgettest is the one suite that every [budget.Ledger] must pass.
//
// It knows what the interface promises: sums, refusals, replays, races, the journal. It does not know how a ledger keeps its
// state, and looks at it through the interface only.
package budgettest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Run runs the suite. Open gives an empty ledger, once per test.
func Run(t *testing.T, open func(t *testing.T) budget.Ledger) {
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"Lifecycle", testLifecycle},
		{"SettleLess", testSettleLess},
		{"SettleApart", testSettleApart},
		{"Levels", testLevels},
		{"VoidGivesBack", testVoidGivesBack},
		{"ExpireKeeps", testExpireKeeps},
		{"Transitions", testTransitions},
		{"A67_F01_CrashedReservationsExpire", testCrash},
		{"ExactExhaustion", testExactExhaustion},
		{"Forms", testForms},
		{"UnboundedLossesAreCounted", testUnboundedLossesAreCounted},
		{"AllAccountsOrNone", testAllAccountsOrNone},
		{"SharedBalancesStaySecret", testSharedBalancesStaySecret},
		{"PerQueryCap", testPerQueryCap},
		{"Ceilings", testCeilings},
		{"ReplayOnly", testReplayOnly},
		{"NoAccount", testNoAccount},
		{"A71_ExtremeLosses", testExtremeLosses},
		{"DefectiveCharges", testDefectiveCharges},
		{"LimitsOfExistingAccounts", testLimitsOfExistingAccounts},
		{"LoweredLimitBlocks", testLoweredLimitBlocks},
		{"A05_SameQuestionIsReplayed", testReplay},
		{"Again", testAgain},
		{"AgainInACrowd", testAgainInACrowd},
		{"SharedAnswers", testSharedAnswers},
		{"SharedVectors", testShares},
		{"ReleasedValues", testReleasedValues},
		{"A68_IdempotencyKeys", testIdempotencyKeys},
		{"InFlight", testInFlight},
		{"A74_ReleasesOfOthers", testReleases},
		{"Journal", testJournal},
		{"GoldenScenarios", testGoldenScenarios},
		{"A66_ExactlyTenOfSixtyFour", testExactlyTen},
		{"A66_OneQuestionAtOnce", testOneQuestionAtOnce},
		{"A68_OneKeyAtOnce", testOneKeyAtOnce},
		{"A66_OverlappingAccounts", testOverlappingAccounts},
		{"Plans", testPlans},
		{"Draws", testDraws},
		{"DrawnSlotsAreGone", testDrawnSlotsAreGone},
		{"DefectivePlans", testDefectivePlans},
		{"TenSlotsForSixtyFour", testTenSlotsForSixtyFour},
		{"OneQuestionDrawsOnce", testOneQuestionDrawsOnce},
		{"AgainstModel", testAgainstModel},
		{"Failures", testFailures},
		{"Freeze", testFreeze},
		{"Refill", testRefill},
		{"SignedRefill", testSignedRefill},
		{"TwoStewards", testTwoStewards},
		{"Chain", testChain},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fixture{T: t, ledger: open(t), charged: map[budget.ReservationID][]budget.AccountID{}}
			test.run(f)
			if !t.Failed() {
				f.checkSums()
				f.checkChain()
			}
		})
	}
}

// fixture is one ledger under test.
type fixture struct {
	*testing.T
	ledger budget.Ledger
	ids    atomic.Int64

	rewound bool // see [Timed]

	mu      sync.Mutex
	charged map[budget.ReservationID][]budget.AccountID // by every charge that was taken
}

// milli is 10⁻³ of ε or ρ in pico units.
const milli = 1_000_000_000

const dataset = "census"

// pure is a loss of n/1000 in ε, with the ρ that every such mechanism has at most: ε²/2.
func pure(n int64) mechanisms.Loss {
	return mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(n * milli), Rho: mechanisms.PicoRho(n * n * milli / 2000)}
}

// gaussian is a loss of n/1000 in ρ, without a finite ε.
func gaussian(n int64) mechanisms.Loss {
	return mechanisms.Loss{Unbounded: true, Rho: mechanisms.PicoRho(n * milli)}
}

func withDelta(l mechanisms.Loss, atto int64) mechanisms.Loss {
	l.Delta = mechanisms.AttoDelta(atto)
	return l
}

// limit fills in a form with amounts as text; "" is none.
func (f *fixture) limit(form budget.Form, amount, delta string) budget.Limit {
	f.Helper()
	return f.made(budget.LimitSpec{Form: form}, amount, delta)
}

// made is the limit of a form that gets its amounts.
func (f *fixture) made(spec budget.LimitSpec, amount, delta string) budget.Limit {
	f.Helper()
	if spec.Form == budget.ZCDP {
		spec.Rho = f.number(amount)
	} else {
		spec.Epsilon = f.number(amount)
	}
	if delta != "" {
		spec.Delta = f.number(delta)
	}
	l, err := budget.NewLimit(spec)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *fixture) number(text string) *big.Rat {
	f.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		f.Fatalf("%q is not a number", text)
	}
	return r
}

func datasetAccount(l budget.Limit) budget.Account {
	return budget.Account{ID: budget.AccountID{Dataset: dataset, Scope: budget.DatasetScope}, Limit: l, Origin: budget.FromPolicy}
}

func groupAccount(name string, l budget.Limit) budget.Account {
	return budget.Account{ID: budget.AccountID{Dataset: dataset, Scope: budget.GroupScope, Name: name}, Limit: l, Origin: budget.FromPolicy}
}

func analystAccount(name string, l budget.Limit) budget.Account {
	return budget.Account{ID: budget.AccountID{Dataset: dataset, Scope: budget.AnalystScope, Name: name}, Limit: l, Origin: budget.FromPolicy}
}

func ensembleAccount(name string, l budget.Limit) budget.Account {
	return budget.Account{ID: budget.AccountID{Dataset: dataset, Scope: budget.EnsembleScope, Name: name}, Limit: l, Origin: budget.FromPolicy}
}

// charge is a new question of ana on the given accounts.
func (f *fixture) charge(loss mechanisms.Loss, accounts ...budget.Account) budget.Charge {
	n := f.ids.Add(1)
	return budget.Charge{
		ID:          budget.ReservationID(fmt.Sprintf("01J%023d", n)),
		Dataset:     dataset,
		Analyst:     "ana",
		Accounts:    accounts,
		Loss:        loss,
		Mechanisms:  []mechanisms.Parameters{{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "1", Scale: "10"}},
		Fingerprint: sha256.Sum256(fmt.Append(nil, "question ", n)),
		Request:     fmt.Appendf(nil, `{"sql": "question %d", "kept":  "as it is"}`, n),
	}
}

// reserve wants a reservation.
func (f *fixture) reserve(c budget.Charge) budget.ReservationID {
	f.Helper()
	got, err := f.ledger.Reserve(f.Context(), c)
	if err != nil || got.Reserved == nil || got.Replay != nil || got.Reserved.ID != c.ID {
		f.Fatalf("Reserve gave %+v, %v; want a reservation", got, err)
	}
	f.took(c)
	return c.ID
}

func (f *fixture) took(c budget.Charge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range c.Accounts {
		f.charged[c.ID] = append(f.charged[c.ID], a.ID)
	}
}

// replayed wants the stored answer.
func (f *fixture) replayed(c budget.Charge) *budget.Stored {
	f.Helper()
	before := f.everything()
	got, err := f.ledger.Reserve(f.Context(), c)
	if err != nil || got.Replay == nil || got.Reserved != nil {
		f.Fatalf("Reserve gave %+v, %v; want a replay", got, err)
	}
	f.unchanged(before)
	return got.Replay
}

// refused wants an error of a code, and nothing changed.
func (f *fixture) refused(c budget.Charge, code fault.Code) *fault.Error {
	f.Helper()
	before := f.everything()
	got, err := f.ledger.Reserve(f.Context(), c)
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != code || got != (budget.Outcome{}) {
		f.Fatalf("Reserve gave %+v, %v; want %s", got, err, code)
	}
	f.unchanged(before)
	return refusal
}

// settle stores an answer that names the charge.
func (f *fixture) settle(id budget.ReservationID, released mechanisms.Loss) []byte {
	f.Helper()
	answer := []byte("answer of " + string(id) + "\x00\xff")
	if err := f.ledger.Settle(f.Context(), id, released, answer); err != nil {
		f.Fatal(err)
	}
	return answer
}

// settleApart is settle of what costs shared accounts less.
func (f *fixture) settleApart(id budget.ReservationID, released budget.Apart) {
	f.Helper()
	if err := f.ledger.SettleApart(f.Context(), id, released, []byte("answer of "+string(id))); err != nil {
		f.Fatal(err)
	}
}

// balance is the balance of one account that exists.
func (f *fixture) balance(id budget.AccountID) budget.Balance {
	f.Helper()
	all, err := f.ledger.Balances(f.Context(), []budget.AccountID{id})
	if err != nil || len(all) != 1 {
		f.Fatalf("Balances gave %v, %v", all, err)
	}
	return all[0]
}

// wantBalance compares spent and reserved sums.
func (f *fixture) wantBalance(a budget.Account, spent, reserved mechanisms.Loss) {
	f.Helper()
	got := f.balance(a.ID)
	if got.Spent != spent || got.Reserved != reserved {
		f.Fatalf("%s: spent %+v, reserved %+v; want %+v, %+v", a.ID.Scope, got.Spent, got.Reserved, spent, reserved)
	}
}

// state is all that the interface shows of a ledger.
type state struct {
	Balances []budget.Balance
	Entries  []budget.Entry
	Releases []budget.ReleaseInfo
}

func (f *fixture) everything() state {
	f.Helper()
	balances, err := f.ledger.DatasetBalances(f.Context(), dataset)
	if err != nil {
		f.Fatal(err)
	}
	releases, err := f.ledger.Releases(f.Context(), "ana", "", 1000)
	if err != nil {
		f.Fatal(err)
	}
	return state{balances, f.entries(), releases}
}

// entries is the whole journal, newest first.
func (f *fixture) entries() []budget.Entry {
	f.Helper()
	var all []budget.Entry
	for page := (budget.Page{Limit: 1000}); ; {
		some, err := f.ledger.Entries(f.Context(), page)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, some...)
		if len(some) < page.Limit {
			return all
		}
		page.Before = some[len(some)-1].Seq
	}
}

func (f *fixture) unchanged(before state) {
	f.Helper()
	if diff := cmp.Diff(before, f.everything()); diff != "" {
		f.Fatalf("the ledger changed (-before +after):\n%s", diff)
	}
}

// checkSums is invariant I4: every balance is the sum of the journal. A charge counts as what its newest entry says.
func (f *fixture) checkSums() {
	f.Helper()
	spent, reserved := map[budget.AccountID]mechanisms.Loss{}, map[budget.AccountID]mechanisms.Loss{}
	counted := map[budget.ReservationID]bool{}
	for _, e := range f.entries() {
		if e.Reservation == "" || counted[e.Reservation] {
			continue
		}
		counted[e.Reservation] = true
		sums := spent
		if e.Kind == budget.EntryReserve {
			sums = reserved
		}
		for _, id := range f.charged[e.Reservation] {
			loss := e.Loss
			if e.Shared != nil && (id.Scope == budget.DatasetScope || id.Scope == budget.EnsembleScope) {
				loss = *e.Shared
			}
			sums[id] = sums[id].Plus(loss)
		}
	}
	for id := range f.charged {
		if !counted[id] {
			f.Errorf("charge %s is not in the journal", id)
		}
	}
	balances, err := f.ledger.DatasetBalances(f.Context(), dataset)
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range balances {
		if b.Spent != spent[b.ID] || b.Reserved != reserved[b.ID] {
			f.Errorf("%+v: the journal says %+v and %+v", b, spent[b.ID], reserved[b.ID])
		}
	}
}

// together runs a function in n goroutines that start at the same time.
func together(n int, run func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	all.Wait()
}

// patience limits what a test waits for.
const patience = 20 * time.Second

func patiently(f *fixture) context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	f.Cleanup(cancel)
	return ctx
}
