package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/mechanisms"
)

// HashAfter is an entry's link in its dataset's chain: SHA-256 over the hash of the entry before (32 zero bytes for the first) and
// every other field of this one. Integers are 8 bytes, the highest first; a list or a text is preceded by its length (0
// where there is none), so that no two entries have the same bytes:
//
//	"noisegate/1" · hash before · seq · at (µs since 1970) · kind · dataset · analyst · reservation · account ids · ε · unbounded · ρ · δ ·
//	digest · mechanisms · account
//
// An entry with a tail begins with "noisegate/2" instead, and has the tail after δ. One that counts as less for shared
// Accounts begins with "noisegate/3", and has after δ the tail, and then ε, unbounded, ρ, δ and tail of what it counts
// as for those. Texts are hashed as they are stored.
func HashAfter(e budget.Entry, before [32]byte) [32]byte {
	return hashAfter(&e, before, &fields{buffer: make([]byte, 0, 1024)})
}

// hashAfter collects the bytes in w, which may be used again.
func hashAfter(e *budget.Entry, before [32]byte, w *fields) [32]byte {
	w.buffer = w.buffer[:0]
	version := "noisegate/1"
	switch {
	case e.Shared != nil:
		version = "noisegate/3"
	case e.Loss.Tail != 0:
		version = "noisegate/2"
	}
	w.buffer = append(w.buffer, version...)
	w.buffer = append(w.buffer, before[:]...)
	w.number(e.Seq)
	w.number(e.At.UnixMicro())
	w.text(string(e.Kind))
	w.text(e.Dataset)
	w.text(e.Analyst)
	w.text(string(e.Reservation))
	w.number(int64(len(e.AccountIDs)))
	for _, id := range e.AccountIDs {
		w.number(id)
	}
	w.loss(e.Loss)
	if e.Loss.Tail != 0 || e.Shared != nil {
		w.number(int64(e.Loss.Tail))
	}
	if e.Shared != nil {
		w.loss(*e.Shared)
		w.number(int64(e.Shared.Tail))
	}
	w.text(string(e.Digest))
	w.text(string(e.MechanismText))
	w.text(string(e.AccountText))
	return sha256.Sum256(w.buffer)
}

// fields are collected to be hashed or signed.
type fields struct{ buffer []byte }

func (w *fields) number(n int64) { w.buffer = binary.BigEndian.AppendUint64(w.buffer, uint64(n)) }

// loss is ε, unbounded, ρ and δ.
func (w *fields) loss(l mechanisms.Loss) {
	unbounded := int64(0)
	if l.Unbounded {
		unbounded = 1
	}
	w.number(int64(l.Epsilon))
	w.number(unbounded)
	w.number(int64(l.Rho))
	w.number(int64(l.Delta))
}

func (w *fields) text(s string) {
	w.number(int64(len(s)))
	w.buffer = append(w.buffer, s...)
}

// Seal numbers the lines of one dataset, chains them after a head, and gives the new head. There is a number for each line.
func Seal(head budget.Head, lines []machine.Line, numbers []int64) budget.Head {
	w := &fields{buffer: make([]byte, 0, 1024)}
	for i, number := range numbers[:len(lines)] {
		e := &lines[i].Entry
		for _, a := range lines[i].About {
			e.AccountIDs = append(e.AccountIDs, a.Number)
		}
		e.Seq = number
		e.Hash = hashAfter(e, head.Hash, w)
		head = budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}
	}
	return head
}

// BrokenError says that a ledger was changed by other means than its gateways: an entry edited, removed, moved or put
// in, a balance or a charge that its entries do not explain, or an older state put back. Its text is for stewards and
// operators.
type BrokenError struct {
	Dataset string
	Seq     int64 // the first entry that does not agree; 0 when no single one is to blame
	What    string
	Held    bool // nobody changed it, and it is held: entries are missing, or may be
}

// Error implements error.
func (e *BrokenError) Error() string {
	is, at := "broken", ""
	if e.Held {
		is = "held"
	}
	if e.Seq != 0 {
		at = fmt.Sprintf(" at entry %d", e.Seq)
	}
	return fmt.Sprintf("budget: the ledger of %s is %s%s: %s", e.Dataset, is, at, e.What)
}

// Chain compares entries with each other. It is fed a dataset's entries in their order, from wherever they come: a ledger or an export.
type Chain struct {
	budget.Verified
	started bool
}

// NewChain starts after a head that is known to be good; the empty one stands for the beginning.
func NewChain(from budget.Head) *Chain {
	return &Chain{Verified: budget.Verified{Head: from}, started: from.Seq > 0}
}

// Add takes the next entry. Only before the first that is chained may there be entries without a hash, which are older than the chain.
func (c *Chain) Add(e budget.Entry) error {
	broken := func(what string) error { return &BrokenError{Dataset: c.Head.Dataset, Seq: e.Seq, What: what} }
	switch {
	case e.Dataset != c.Head.Dataset:
		return broken("it belongs to another dataset")
	case e.Seq <= c.Head.Seq && c.started:
		return broken("it is out of order")
	case e.Hash == [32]byte{} && !c.started:
		c.Unchained++
		return nil
	case e.Hash != HashAfter(e, c.Head.Hash):
		return broken("its hash does not follow from it and the entry before")
	}
	c.started = true
	c.Entries++
	c.Head.Seq, c.Head.Hash = e.Seq, e.Hash
	return nil
}

// EndsAt compares where the entries end with where they should.
func (c *Chain) EndsAt(head budget.Head) error {
	switch {
	case c.Head.Seq < head.Seq:
		return &BrokenError{Dataset: head.Dataset, Seq: head.Seq, What: "entries are missing from the end"}
	case c.Head != head:
		return &BrokenError{Dataset: head.Dataset, Seq: c.Head.Seq, What: "it does not end where the chain does"}
	}
	return nil
}
