package gatewaytest

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/mechanisms"
)

// Keys are stewards' own, by their names, and the ledger that they sign for.
type Keys struct {
	of     map[string]*journal.Signer
	Ledger string // see [budget.LedgerName]
}

// NoLedger is [budget.NoLedger].
const NoLedger = budget.NoLedger

// Pair is who signs as the second steward, and for whom.
type Pair struct{ For, By string }

func (p Pair) names() budget.Pair { return budget.Pair{Proposer: p.For, Approver: p.By} }

func accountOf(name string) budget.AccountID {
	scope, owner, _ := strings.Cut(name, ":")
	return budget.AccountID{Dataset: Dataset, Scope: budget.Scope(scope), Name: owner}
}

// NewKeys makes them, and what a gateway knows of them.
func NewKeys(t testing.TB, names ...string) (Keys, *gateway.Stewards) {
	t.Helper()
	keys, public := Keys{of: map[string]*journal.Signer{}}, journal.StewardKeys{}
	for _, name := range names {
		text, err := journal.NewKeyText()
		if err != nil {
			t.Fatal(err)
		}
		if keys.of[name], err = journal.NewSigner(text); err != nil {
			t.Fatal(err)
		}
		public = append(public, journal.StewardKey{Steward: name, Public: keys.of[name].Public()})
	}
	stewards := &gateway.Stewards{}
	stewards.Set(public)
	return keys, stewards
}

// Approve signs a policy's text for its proposer.
func (k Keys) Approve(pair Pair, replaces int64, text string, at time.Time) *api.Approval {
	a := k.of[pair.By].SignPolicy(budget.PolicyChange{Dataset: Dataset, Replaces: replaces, Document: sha256.Sum256([]byte(text)),
		Approval: &budget.Approval{Pair: pair.names(), At: at, Ledger: k.Ledger}})
	return &api.Approval{Proposer: a.Proposer, Approver: a.Approver, SignedAt: a.At, Key: a.Key, Ledger: a.Ledger,
		Signature: base64.StdEncoding.EncodeToString(a.Signature)}
}

// Limit signs a limit of an account that is, or is not there yet (nil), for its proposer.
func (k Keys) Limit(t testing.TB, pair Pair, name string, before *api.Account, limit api.BudgetLimit) *api.RefillSignature {
	t.Helper()
	after, err := amounts.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	change := budget.LimitChange{Account: budget.Account{ID: accountOf(name), Limit: after},
		Mandate: budget.Mandate{Number: 1, Lifetime: after.Promise(), At: time.Now(), Pair: pair.names(), Ledger: k.Ledger}}
	if before != nil {
		change.Mandate.Number = before.Refills + 1
	}
	if before != nil && !before.Due {
		was, err := amounts.ParseLimit(before.Limit)
		if err != nil {
			t.Fatal(err)
		}
		change.Before = &was
	}
	return signature(k.of[pair.By].SignLimit(change).Mandate)
}

// Refill signs a refill; for nobody, as one steward does.
func (k Keys) Refill(t testing.TB, pair Pair, before *api.Account, adds api.Decimal) *api.RefillSignature {
	t.Helper()
	epsilon, err := mechanisms.ParseEpsilon(string(adds))
	if err != nil {
		t.Fatal(err)
	}
	was, err := amounts.ParseLimit(before.Limit)
	if err != nil {
		t.Fatal(err)
	}
	refill := budget.Refill{Account: accountOf(before.Account), Epsilon: epsilon}
	lifetime, err := was.After(refill)
	if err != nil {
		t.Fatal(err)
	}
	refill.Mandate = &budget.Mandate{Number: before.Refills + 1, Lifetime: lifetime, At: time.Now(), Ledger: k.Ledger}
	if pair.For != "" {
		refill.Mandate.Pair = pair.names()
	}
	return signature(*k.of[pair.By].SignRefill(refill).Mandate)
}

func signature(m budget.Mandate) *api.RefillSignature {
	s := &api.RefillSignature{Number: m.Number, Lifetime: api.Promise{Delta: api.Decimal(m.Lifetime.Delta.String())}, SignedAt: m.At,
		Key: m.Key, Signature: base64.StdEncoding.EncodeToString(m.Signature), Proposer: m.Pair.Proposer, Approver: m.Pair.Approver,
		Ledger: m.Ledger}
	if m.Lifetime.Bounded {
		s.Lifetime.Epsilon = api.Decimal(m.Lifetime.Epsilon.String())
	}
	return s
}

// SetBack signs from when a dataset's time goes on, for its proposer.
func (k Keys) SetBack(pair Pair, clock api.Clock) *api.Approval {
	m := k.of[pair.By].SignSetBack(budget.SetBack{Dataset: Dataset, To: clock.To, Reason: clock.Reason,
		Mandate: &budget.Mandate{At: time.Now(), Pair: pair.names(), Ledger: k.Ledger}}).Mandate
	return &api.Approval{Proposer: pair.For, Approver: pair.By, SignedAt: m.At, Key: m.Key, Ledger: m.Ledger,
		Signature: base64.StdEncoding.EncodeToString(m.Signature)}
}
