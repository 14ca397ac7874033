package journal

import (
	"crypto/hmac"
	"crypto/sha256"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

// Opening opens the commitment of a charge: HMAC-SHA256 of its id under a key derived from the signing key. Auditors see it with each
// settlement. Without it a receipt's commitment reveals nothing: neither the price for shared accounts nor the place in the chain can be
// guessed.
func (s *Signer) Opening(id budget.ReservationID) (r Digest) {
	mac := hmac.New(sha256.New, s.openings)
	mac.Write([]byte(id))
	mac.Sum(r[:0])
	return r
}

// Commitment binds a settled charge, as its entry has it, to what a receipt shows of it: SHA-256 over "noisegate charge/1", the opening,
// and dataset, number, id, analyst, how many accounts, of each its scope, name and loss (ε, unbounded, ρ, δ, tail), and the time; as
// [HashAfter] writes them. The accounts are those of the entry, in its order.
func Commitment(opening Digest, e budget.Entry, accounts []budget.AccountID) Digest {
	w := fields{buffer: []byte("noisegate charge/1")}
	w.buffer = append(w.buffer, opening[:]...)
	w.text(e.Dataset)
	w.number(e.Seq)
	w.text(string(e.Reservation))
	w.text(e.Analyst)
	w.number(int64(len(accounts)))
	for _, id := range accounts {
		w.text(string(id.Scope))
		w.text(id.Name)
		loss := machine.Counts(id.Scope, e.Loss, e.Shared)
		w.loss(loss)
		w.number(int64(loss.Tail))
	}
	w.number(e.At.UnixMicro())
	return sha256.Sum256(w.buffer)
}

// commitment is the one of a settlement; zero where it is not known what was charged.
func (s *Signer) commitment(of budget.Settlement, id budget.ReservationID) Digest {
	if of.Charged == nil {
		return Digest{}
	}
	e := budget.Entry{Seq: of.Seq, At: of.At, Dataset: of.Dataset, Analyst: of.Charged.Analyst, Reservation: id, Loss: of.Charged.Loss,
		Shared: of.Shared}
	return Commitment(s.Opening(id), e, of.Charged.Accounts)
}

// Shown is a settlement as receipts show it, with its opening. Computing it needs the signing key.
type Shown struct {
	Head    Digest // [Signer.Opaque]
	Opening Digest // [Signer.Opening]; zero: what wrote it knew of no commitments
}

// Shown is both of a settlement; zero of other entries.
func (s *Signer) Shown(e budget.Entry) Shown {
	if e.Kind != budget.EntrySettle {
		return Shown{}
	}
	return Shown{s.Opaque(budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}), s.Opening(e.Reservation)}
}
