package budget

import (
	"fmt"
	"slices"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Refill raises a cap by an amount. It raises what the account may lose in a lifetime, also when the data are the same: the journal's entry
// and [Balance.Lifetime] say by how much.
type Refill struct {
	Account AccountID
	Epsilon mechanisms.PicoEpsilon // pure, approx
	Rho     mechanisms.PicoRho     // zcdp
	Delta   mechanisms.AttoDelta
	Reason  string   // for the journal
	Mandate *Mandate // nil: nobody signed it
}

// Mandate is a steward's signature under a refill, or under a change of a limit. It holds once: for the next that is signed of the account,
// within a day, and only if the lifetime afterwards is the one that was signed.
type Mandate struct {
	Ledger    string    // that it is for, by its [LedgerName] or [NoLedger]; "": it is older than such names
	Number    int64     // which refill, or change that was signed, of the account it is, from 1
	Lifetime  Promise   // what the account may lose afterwards
	At        time.Time // when it was signed, whole seconds
	Key       string    // which public key checks it: see journal.KeyID
	Signature []byte    // Ed25519, over [Refill.Text] or [LimitChange.Text]
	Pair      Pair      // of a second steward's signature; zero: one steward's is enough
}

// How far the dataset's time may be from when something was signed. The key may be kept on a machine without a network; clocks differ.
const (
	mandateLife = 24 * time.Hour
	mandateSkew = 5 * time.Minute
)

// Text is what a steward signs: lines that people can read, the same for the same refill and for no other. The refill has a mandate.
func (r Refill) Text() []byte {
	title := "noisegate refill/1"
	switch {
	case r.Mandate.Ledger != "":
		title = "noisegate refill/3"
	case r.Mandate.Pair != (Pair{}):
		title = "noisegate refill/2"
	}
	return signedText(title, slices.Concat(ledgerLine(r.Mandate.Ledger), [][2]string{
		{"dataset", quoted(r.Account.Dataset)},
		{"account", quoted(r.Account.String())},
		{"number of the refill", fmt.Sprint(r.Mandate.Number)},
		{"adds epsilon", r.Epsilon.String()},
		{"adds rho", r.Rho.String()},
		{"adds delta", r.Delta.String()},
	}, r.Mandate.lifetimeLines(), [][2]string{{"reason", quoted(r.Reason)}}, r.Mandate.Pair.lines(), signedAt(r.Mandate.At)))
}

// lifetimeLines are what an account may lose afterwards.
func (m Mandate) lifetimeLines() [][2]string {
	lifetime := "unbounded"
	if m.Lifetime.Bounded {
		lifetime = m.Lifetime.Epsilon.String()
	}
	return [][2]string{{"lifetime epsilon afterwards", lifetime}, {"lifetime delta afterwards", m.Lifetime.Delta.String()}}
}

// After is what an account with this limit may lose once it is refilled: what its mandate has to say.
func (l Limit) After(r Refill) (Promise, error) {
	limit, err := l.Plus(r)
	if err != nil {
		return Promise{}, err
	}
	return limit.Promise(), nil
}

// Holds makes sure that a refill is the one that was signed: the account's nth, with that lifetime, at that time.
func (m Mandate) Holds(nth int64, after Limit, now time.Time) error {
	switch age := now.Sub(m.At); {
	case m.Number != nth:
		return fault.BudgetSignature(fmt.Sprintf("it was signed as number %d of the account's refills and signed changes, and would be "+
			"number %d", m.Number, nth))
	case m.Lifetime != after.Promise():
		return fault.BudgetSignature("the account's limit is not what it was when the refill was signed")
	case outdated(age):
		return fault.BudgetSignature(tooOld)
	}
	return nil
}

const tooOld = "it was signed more than a day ago, or in the future"

func outdated(age time.Duration) bool { return age > mandateLife || age < -mandateSkew }

// Raises reports whether a limit promises less privacy than another. Of different forms it is not asked which.
func (l Limit) Raises(other Limit) bool {
	return l.Form != other.Form || l.Epsilon > other.Epsilon || l.Rho > other.Rho || l.Delta > other.Delta || l.TotalDelta > other.TotalDelta
}
