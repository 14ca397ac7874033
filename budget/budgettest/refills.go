package budgettest

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// signer is a steward's key.
func (f *fixture) signer() *journal.Signer { return f.signerOf(0) }

// signerOf is the key of one of several stewards.
func (f *fixture) signerOf(which byte) *journal.Signer {
	f.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = which
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		f.Fatal(err)
	}
	signer, err := journal.NewSigner(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		f.Fatal(err)
	}
	return signer
}

// testSignedRefill: a signed refill holds once, for the account as it was when it was signed; the journal alone proves who allowed what.
func testSignedRefill(f *fixture) {
	const unit = mechanisms.EpsilonUnit
	own, signer := analystAccount("ana", f.limit(budget.Pure, "1", "")), f.signer()
	f.reserve(f.charge(pure(1000), own))
	ledger := budget.NoLedger
	sign := func(number int64, adds, lifetime mechanisms.PicoEpsilon, at time.Time) budget.Refill {
		return signer.SignRefill(budget.Refill{Account: own.ID, Epsilon: adds, Reason: "the second wave", Mandate: &budget.Mandate{
			Number: number, Lifetime: budget.Promise{Epsilon: lifetime, Bounded: true}, At: at,
			Ledger: ledger}})
	}
	refill := func(r budget.Refill, want fault.Code) {
		f.Helper()
		if err := f.ledger.Refill(f.Context(), "stella", r); fault.CodeOf(err) != want {
			f.Errorf("%+v: %v, want %q", r.Mandate, err, want)
		}
	}
	now := f.entries()[0].At
	first := sign(1, unit/2, unit*3/2, now)
	refill(sign(2, unit/2, unit*3/2, now), fault.CodeBudgetSignature)
	refill(sign(1, unit/2, unit*2, now), fault.CodeBudgetSignature)
	refill(sign(1, unit/2, unit*3/2, now.Add(-25*time.Hour)), fault.CodeBudgetSignature)
	refill(sign(1, unit/2, unit*3/2, now.Add(time.Hour)), fault.CodeBudgetSignature)
	for _, ledger = range []string{"", strings.Repeat("ab", 32)} {
		refill(sign(1, unit/2, unit*3/2, now), fault.CodeBudgetSignature)
	}
	ledger = budget.NoLedger
	refill(first, "")
	refill(first, fault.CodeBudgetSignature)
	refill(sign(2, unit/2, unit*2, now), "")
	if b := f.balance(own.ID); b.Refills != 2 || b.Lifetime().Epsilon != 2*unit || b.Origin != budget.FromSteward {
		f.Errorf("%+v", b)
	}

	// A limit that may not be raised may be lowered, and kept.
	lower := func(epsilon, delta string, form budget.Form, want fault.Code) {
		f.Helper()
		account := budget.Account{ID: own.ID, Limit: f.limit(form, epsilon, delta), Origin: budget.FromSteward}
		if err := f.ledger.LowerLimit(f.Context(), "stella", account); fault.CodeOf(err) != want {
			f.Errorf("to %s: %v, want %q", epsilon, err, want)
		}
	}
	before := f.everything()
	lower("2.1", "", budget.Pure, fault.CodeBudgetSignature)
	lower("2", "1e-9", budget.Pure, fault.CodeBudgetSignature)
	lower("0.1", "", budget.ZCDP, fault.CodeBudgetSignature)
	f.unchanged(before)
	lower("1.5", "", budget.Pure, "")
	refill(sign(3, unit/2, unit*5/2, now), fault.CodeBudgetSignature) // the lifetime would be another one
	refill(sign(3, unit/2, unit*2, now), "")
	f.checkAuditor(signer)
}

// checkAuditor follows the journal with the stewards' keys, and wants another key's owner to find that nobody of theirs signed.
func (f *fixture) checkAuditor(signer *journal.Signer) {
	f.Helper()
	entries := f.entries()
	follow := func(keys journal.StewardKeys) (*journal.Auditor, error) {
		auditor := journal.NewAuditor(dataset, keys)
		for i := len(entries) - 1; i >= 0; i-- {
			if err := auditor.Add(entries[i]); err != nil {
				return auditor, err
			}
		}
		return auditor, nil
	}
	if auditor, err := follow(journal.StewardKeys{{Public: signer.Public()}}); err != nil || auditor.Signed != 3 || auditor.Unsigned != 0 {
		f.Errorf("%+v, %v", auditor, err)
	}
	if _, err := follow(journal.StewardKeys{{Public: make(ed25519.PublicKey, ed25519.PublicKeySize)}}); err == nil {
		f.Error("another key signed the refills")
	}
}
