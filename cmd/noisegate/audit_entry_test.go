package main

import (
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/mechanisms"
)

// An entry that counts as less for shared accounts is read with both losses, so that its hash is that of the ledger.
func TestEntriesWithTwoLosses(t *testing.T) {
	e := budget.Entry{Seq: 3, At: time.Unix(1_700_000_000, 0).UTC(), Kind: budget.EntrySettle, Dataset: "d", Analyst: "mel", Reservation: "R",
		AccountIDs: []int64{1, 2}, Loss: mechanisms.Loss{Epsilon: 5, Rho: 20_000_000_000, Tail: 5},
		Shared: &mechanisms.Loss{Epsilon: 3, Rho: 10_000_000_000, Tail: 5}, Digest: []byte{1}}
	shown := api.AuditEntry{Seq: 3, At: e.At, Kind: "settle", Dataset: "d", Subject: "mel", ReleaseID: "R", AccountIDs: []int64{1, 2},
		Digest:  "01",
		Amounts: api.Amounts{Epsilon: "5e-12", Rho: "0.02", Delta: "0", Tail: "5e-18"},
		Shared:  &api.Amounts{Epsilon: "3e-12", Rho: "0.01", Delta: "0", Tail: "5e-18"}}
	read, err := entryOf(shown)
	if err != nil || journal.HashAfter(read, [32]byte{}) != journal.HashAfter(e, [32]byte{}) {
		t.Errorf("%+v, %v", read, err)
	}
	shown.Shared.Rho = "much"
	if _, err := entryOf(shown); err == nil {
		t.Error("an amount that is none is read")
	}
}
