package budgettest

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// raiseStep is one action in a sequence of [testOwnRaises].
type raiseStep struct {
	who  string // by their token
	does string
}

// raiseSteps are raises, also by refill, by a policy and with another's signature, lowerings, and spends, of two people.
func raiseSteps() []raiseStep {
	all := []raiseStep{{"sam", "policy"}, {"eve", "refill"}} // either of them is enough: what they do is as in raise, or nothing
	for _, who := range []string{"sam", "eve"} {
		for _, does := range []string{"raise", "raise with a signature", "policy that raises", "lower", "spend"} {
			all = append(all, raiseStep{who, does})
		}
	}
	return all
}

// OwnRaises runs all sequences of the given length, each on a separate dataset, against a model: the steward who alone made the last raise
// is refused, and no other.
func OwnRaises(t *testing.T, length int, ledger func() budget.Ledger) {
	steps, sequence := raiseSteps(), make([]int, length)
	for n := 0; ; n++ {
		run := ownRaises{T: t, ledger: ledger(), dataset: fmt.Sprint("raises", n)}
		run.inForce = run.ledger.(budget.InForce)
		run.begin()
		var done []raiseStep
		for _, i := range sequence {
			done = append(done, steps[i])
			run.step(steps[i])
		}
		run.spend("sam")
		run.spend("eve")
		run.audit()
		if t.Failed() {
			t.Fatalf("after %v", done)
		}
		place := length - 1
		for ; place >= 0 && sequence[place] == len(steps)-1; place-- {
			sequence[place] = 0
		}
		if place < 0 {
			return
		}
		sequence[place]++
	}
}

// ownRaises is one sequence, and the model.
type ownRaises struct {
	*testing.T
	ledger   budget.Ledger
	inForce  budget.InForce
	dataset  string
	policy   int64
	cap      int64 // of the dataset's account
	origin   budget.Origin
	raisedBy string
	charges  int
	signed   bool // a raise was, and then one was not, which an auditor does not take of a dataset with keys of stewards
	mixed    bool
}

func (r *ownRaises) account(origin budget.Origin) budget.Account {
	limit := budget.Limit{Form: budget.Pure, Epsilon: mechanisms.PicoEpsilon(r.cap), Rho: budget.Never}
	a := budget.Account{ID: budget.AccountID{Dataset: r.dataset, Scope: budget.DatasetScope}, Limit: limit, Origin: origin}
	if origin == budget.FromPolicy {
		a.Version = r.policy
	}
	return a
}

// begin applies the first policy, by sam, and opens the accounts: that raises nothing.
func (r *ownRaises) begin() {
	r.Helper()
	r.cap, r.origin, r.policy = 1000, budget.FromPolicy, 1
	r.must(r.apply("sam", true))
	r.spend("sam")
	r.spend("eve")
}

func (r *ownRaises) must(err error) {
	if err != nil {
		r.Helper()
		r.Fatal(err)
	}
}

func (r *ownRaises) apply(by string, raises bool) error {
	p := budget.NewPolicy{Text: "policy", Checked: []byte("{}")}
	p.Dataset, p.Version, p.AppliedBy, p.Raises = r.dataset, r.policy, by, raises
	p.Digest = [32]byte{byte(r.policy)}
	_, err := r.inForce.RecordPolicy(r.Context(), p)
	return err
}

func (r *ownRaises) step(s raiseStep) {
	r.Helper()
	ctx := r.Context()
	switch s.does {
	case "raise":
		r.mixed = r.mixed || r.signed
		r.cap, r.origin, r.raisedBy = r.cap+10, budget.FromSteward, s.who
		r.must(r.ledger.SetLimit(ctx, s.who, r.account(r.origin)))
	case "refill":
		r.mixed = r.mixed || r.signed
		r.cap, r.origin, r.raisedBy = r.cap+10, budget.FromSteward, s.who
		r.must(r.ledger.Refill(ctx, s.who, budget.Refill{Account: r.account(r.origin).ID, Epsilon: 10, Reason: "more"}))
	case "raise with a signature":
		balances, err := r.ledger.Balances(ctx, []budget.AccountID{r.account(r.origin).ID})
		r.must(err)
		before := &balances[0].Limit
		if r.origin == budget.FromPolicy && balances[0].Version != r.policy {
			before = nil
		}
		r.cap, r.origin, r.raisedBy, r.signed = r.cap+10, budget.FromSteward, "", true
		after := r.account(r.origin)
		other := map[string]string{"sam": "eve", "eve": "sam"}[s.who]
		name, err := r.inForce.LedgerName(ctx, r.dataset)
		r.must(err)
		newest, err := r.ledger.Entries(ctx, budget.Page{Limit: 1, Dataset: r.dataset})
		r.must(err)
		r.must(r.ledger.ChangeLimit(ctx, s.who, budget.LimitChange{Account: after, Before: before, Mandate: budget.Mandate{Ledger: name,
			Number: balances[0].Refills + 1, Lifetime: after.Limit.Promise(), At: newest[0].At, Key: "k", Signature: []byte("s"),
			Pair: budget.Pair{Proposer: s.who, Approver: other}}}))
	case "policy that raises", "policy":
		raises := s.does != "policy"
		r.policy++
		r.must(r.apply(s.who, raises))
		if r.origin == budget.FromPolicy { // it gives the account more, if anything
			if raises {
				r.cap += 10
				r.raisedBy = s.who
			}
			r.must(r.ledger.Enforce(ctx, budget.Policy{Version: r.policy, Digest: [32]byte{byte(r.policy)}}, r.account(budget.FromPolicy)))
		}
	case "lower":
		r.cap, r.origin = r.cap-1, budget.FromSteward
		r.must(r.ledger.SetLimit(ctx, s.who, r.account(r.origin)))
	case "spend":
		r.spend(s.who)
	}
}

// spend asks for a little, and is refused by the model as by the ledger.
func (r *ownRaises) spend(who string) {
	r.Helper()
	r.charges++
	own := budget.Account{ID: budget.AccountID{Dataset: r.dataset, Scope: budget.AnalystScope, Name: who},
		Limit: budget.Limit{Form: budget.Pure, Epsilon: 1000, Rho: budget.Never}, Origin: budget.FromPolicy, Version: 1}
	id := budget.ReservationID(fmt.Sprint(r.dataset, " ", r.charges))
	_, err := r.ledger.Reserve(r.Context(), budget.Charge{ID: id, Dataset: r.dataset, Analyst: who, Loss: mechanisms.Loss{Epsilon: 1},
		Accounts: []budget.Account{r.account(budget.FromPolicy), own}, Fingerprint: sha256.Sum256([]byte(id)), Request: []byte("{}")})
	want := fault.Code("")
	if r.raisedBy == who {
		want = fault.CodeBudgetOwnRaise
	}
	if fault.CodeOf(err) != want {
		r.Errorf("%s spends: %v, want %q", who, err, want)
	}
}

// audit replays the entries.
func (r *ownRaises) audit() {
	r.Helper()
	if r.mixed {
		return
	}
	entries, err := r.ledger.Entries(r.Context(), budget.Page{Forward: true, Limit: 1000, Dataset: r.dataset})
	r.must(err)
	auditor := journal.NewAuditor(r.dataset, nil)
	for _, e := range entries {
		if err := auditor.Add(e); err != nil {
			r.Error(err)
		}
	}
}
