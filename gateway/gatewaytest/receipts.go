package gatewaytest

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
)

// Receipt is what an answer carries.
type Receipt = journal.Receipt

// Signer signs receipts.
type Signer = journal.Signer

// NewSigner is a signer with a new key.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	key, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// Receipt reads a receipt, whose signature must hold and whose head must be that of its settlement in the journal; none
// where it names no release.
func (g *Gateway) Receipt(t testing.TB, signer *Signer, text string) (r Receipt) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("the receipt %q: %v", text, err)
	}
	if err := r.CheckSignature(signer.Public()); err != nil {
		t.Error(err)
	}
	if r.Reservation == "" && r.Head == (budget.Head{Dataset: r.Dataset}) {
		return r
	}
	for _, e := range g.journal(t) {
		if e.Kind == budget.EntrySettle && e.Reservation == r.Reservation &&
			r.Head.Hash == signer.Opaque(budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}) {
			return r
		}
	}
	t.Errorf("the journal does not have the head of %s", text)
	return r
}

// Settled is the digest of a release's answer in the journal.
func (g *Gateway) Settled(t testing.TB, release string) string {
	t.Helper()
	for _, e := range g.journal(t) {
		if e.Kind == budget.EntrySettle && string(e.Reservation) == release {
			return hex.EncodeToString(e.Digest)
		}
	}
	t.Fatalf("release %s is not settled", release)
	return ""
}
