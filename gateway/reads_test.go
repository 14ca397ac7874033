package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// unwritable is a ledger that takes no entry of free reads.
type unwritable struct{ budget.InForce }

func (unwritable) RecordFreeReads(context.Context, budget.FreeReads) error {
	return fault.DataUnavailable(errors.New("away"))
}

// Reads of public tables are in the journal before they happen: of a day and a version never fewer than there were, less
// than twice as many, in as many entries as their number has binary digits. Each analyst, day, version and start of a
// gateway is counted by itself.
//
// covers: A76
func TestReadsAreInTheJournalFirst(t *testing.T) {
	r := newRig(t)
	sums := func(who reader) (reads int64, entries int) {
		all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if e.Kind != budget.EntryFree || e.Analyst != who.analyst || e.Dataset != who.dataset {
				continue
			}
			entries++
			var said struct{ Reads int64 }
			if err := json.Unmarshal(e.AccountText, &said); err != nil {
				t.Fatal(err)
			}
			reads += said.Reads
		}
		return reads, entries
	}
	ana, bob := reader{"d", "ana", 1}, reader{"d", "bob", 1}
	for n := int64(1); n <= 1000; n++ {
		if err := r.countRead(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		if got, entries := sums(ana); got < n || got >= 2*n || entries > 11 {
			t.Fatalf("after %d reads the journal says %d, in %d entries", n, got, entries)
		}
	}
	if err := r.countRead(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	if got, entries := sums(bob); got != 1 || entries != 1 {
		t.Errorf("bob: %d reads in %d entries", got, entries)
	}
	_, before := sums(ana)
	ana.version = 2
	for range 2 { // another version, and then another day
		if err := r.countRead(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		if _, after := sums(ana); after != before+1 {
			t.Errorf("%d entries, want %d", after, before+1)
		}
		before++
		r.clock.now = r.clock.now.Add(24 * time.Hour)
	}
	if found, err := r.ledger.Verify(t.Context(), budget.Head{Dataset: "d"}); err != nil || found.Entries == 0 {
		t.Errorf("%+v, %v", found, err)
	}
	r.chain = unwritable{}
	if err := r.countRead(t.Context(), ana); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("without a ledger: %v", err)
	}
}

// readable is data whose public tables are empty.
type readable struct{ *fakeData }

func (readable) Read(context.Context, sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	return nil, []string{"text", "int8"}, nil
}

// The entry of a read of public tables by the outer layer of a question is written before the question's statements run: when
// it was written does not tell how long they took.
//
// covers: A33
func TestEntriesOfReadsTellNoTime(t *testing.T) {
	for _, took := range []time.Duration{0, 61 * time.Millisecond, 93 * time.Millisecond} {
		r := newRig(t)
		r.policies.snapshot.Tables = append(r.policies.snapshot.Tables, &catalog.Table{Schema: "public", Name: "sexes", OID: 2, Public: true,
			Columns: []*catalog.Column{{Name: "code", AttNum: 1, Type: catalog.Text, NotNull: true, Exposed: true}}})
		r.datasets["d"] = Dataset{Data: readable{r.data}, Quantum: testQuantum, Timeout: 30 * time.Second}
		r.data.do = func() ([]sqlrewrite.ExactRow, error) {
			r.clock.Sleep(t.Context(), took)
			return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, nil
		}
		q := count("0.5")
		q.SQL = "SELECT x.code, p.n FROM (SELECT count(*) AS n FROM people) p CROSS JOIN sexes x"
		if _, err := r.Query(t.Context(), principal(t, "ana", "analysts"), q); err != nil {
			t.Fatal(err)
		}
		all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		at := map[budget.EntryKind]time.Time{}
		for _, e := range all {
			at[e.Kind] = e.At
		}
		if free := at[budget.EntryFree]; free.IsZero() || !free.Equal(at[budget.EntryReserve]) {
			t.Errorf("work of %s: the read was entered %s after the charge", took, free.Sub(at[budget.EntryReserve]))
		}
	}
}
