package journal

import (
	"encoding/hex"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/mechanisms"
)

// What entries are hashed as never changes: the hashes were computed by other means (Python's hashlib and struct) from
// what [HashAfter] says.
func TestHashesOfEntries(t *testing.T) {
	e := budget.Entry{Seq: 7, At: time.UnixMicro(1_700_000_000_000_001), Kind: budget.EntrySettle, Dataset: "census", Analyst: "ana",
		Reservation: "01J", AccountIDs: []int64{1, 2, 9},
		Loss: mechanisms.Loss{Epsilon: 5, Rho: 3, Delta: 2}, Digest: []byte{0xab}, MechanismText: nil, AccountText: []byte("{}")}
	tailed, apart, nothing := e, e, e
	tailed.Loss.Tail = 4
	apart.Shared = &mechanisms.Loss{Unbounded: true, Rho: 1, Tail: 0}
	apart.Loss.Tail = 4
	nothing.Shared = &mechanisms.Loss{}
	for _, test := range []struct {
		entry budget.Entry
		want  string
	}{
		{e, "5bf2a0aba9ea5fd4edd11b40db05b1f4ce8880547244b8e87777b37a4f774e6b"},
		{tailed, "c2797f7cfce64d22d17d2b4e550f1c48d59b6b252028410c7d3c9b1ad26073c3"},
		{apart, "dbfc805df985691b6a709a53541fba6e9007c05e6e5b169a114f1eb7b4a12af4"},
		{nothing, "c3426975c55db9fb0094da81b4b4e97047a4b5e02b7b13da14af13a7ded67caf"},
	} {
		if got := HashAfter(test.entry, [32]byte{31: 1}); hex.EncodeToString(got[:]) != test.want {
			t.Errorf("%+v: %x", test.entry, got)
		}
	}
}
