package gateway

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// fakeCopies are versions as they were looked at last, and as they are.
type fakeCopies struct {
	seen, now []catalog.Version
	looks     int
}

func (f *fakeCopies) Copies() []catalog.Version { return f.seen }

func (f *fakeCopies) Look(context.Context, string) error {
	f.looks++
	f.seen = f.now
	return nil
}

// visitsSnapshot is a snapshot with a table that the policy wants prepared.
func visitsSnapshot() *catalog.Snapshot {
	on := testSnapshot()
	on.Tables = append(on.Tables, &catalog.Table{
		Schema: "public", Name: "visits", OID: 2, Unit: catalog.Unit{Kind: catalog.ColumnUnit, Column: "person", Of: "person"},
		MaxRows: 4, MaxGroups: 4, Prepare: 4, Unique: [][]string{{"id"}},
		Columns: []*catalog.Column{
			{Name: "id", AttNum: 1, TypeOID: 23, TypMod: -1, Type: catalog.Int4, NotNull: true},
			{Name: "person", AttNum: 2, TypeOID: 23, TypMod: -1, Type: catalog.Int4, Identifies: "person"},
			{Name: "minutes", AttNum: 3, TypeOID: 23, TypMod: -1, Type: catalog.Int4, NotNull: true, Exposed: true,
				Bounds: &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(100, 1)}},
		},
	})
	return on
}

// versionOf is a version of the copy of visits.
func versionOf(t *testing.T, on *catalog.Snapshot, number int64) catalog.Version {
	t.Helper()
	table, _ := on.Table("", "visits")
	b, err := sqlrewrite.Prepare(on, table, catalog.Version{Number: number})
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Version{Table: catalog.TableName{Schema: "public", Name: "visits"}, Number: number, OID: 100 + uint32(number),
		Digest: b.Digest, AsOf: time.Date(2026, 11, 20+int(number), 0, 0, 0, 0, time.UTC)}
}

// preparedRig is a rig whose table of visits has version 1 of a copy.
func preparedRig(t *testing.T) (*rig, *fakeCopies) {
	t.Helper()
	r := newRig(t)
	r.policies.snapshot = visitsSnapshot()
	copies := &fakeCopies{}
	copies.seen = []catalog.Version{versionOf(t, r.policies.snapshot, 1)}
	copies.now = copies.seen
	d := r.datasets["d"]
	d.Copies = copies
	r.datasets["d"] = d
	return r, copies
}

func askVisits() Request {
	r := count("0.5")
	r.SQL = "SELECT count(*) FROM visits"
	return r
}

// A version that is dropped while a question waits is no failure: nothing was read, and the question is planned on the next version, once,
// and pays once.
func TestVersionsGoneAreReplaced(t *testing.T) {
	gone := fault.Untouched(fault.DataUnavailable(errors.New("no such table")))
	for name, c := range map[string]struct {
		now  int64 // the version that there is after the refresh
		err  error // of the first run
		want string
		runs int
	}{
		"another version":        {now: 2, err: gone, want: "visits prepared 2", runs: 2},
		"the same version":       {now: 1, err: gone, runs: 1},
		"rows were read":         {now: 2, err: fault.DataUnavailable(errors.New("lost")), runs: 1},
		"no version":             {now: 0, err: gone, want: "live", runs: 2},
		"nothing happened to it": {now: 1, want: "visits prepared 1", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			if copies.now = nil; c.now > 0 {
				copies.now = []catalog.Version{versionOf(t, r.policies.snapshot, c.now)}
			}
			failures := []error{c.err}
			r.data.do = func() ([]sqlrewrite.ExactRow, error) {
				err := error(nil)
				if len(failures) > 0 {
					err, failures = failures[0], nil
				}
				return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, err
			}
			answer, err := r.Query(t.Context(), principal(t, "ana"), askVisits())
			if r.data.runs != c.runs {
				t.Errorf("%d runs, want %d", r.data.runs, c.runs)
			}
			switch {
			case c.want == "":
				if fault.CodeOf(err) != fault.CodeDataUnavailable {
					t.Errorf("got %v", err)
				}
			case err != nil:
				t.Error(err)
			case c.want == "live":
				if !answer.AsOf.IsZero() {
					t.Errorf("as of %s", answer.AsOf)
				}
			case !strings.HasPrefix(answer.Data, c.want):
				t.Errorf("answered from %q, want %q", answer.Data, c.want)
			}
			paid := "0.5"
			if c.want == "" && c.err != nil && fault.IsUntouched(c.err) {
				paid = "0"
			}
			if spent := r.spentEpsilon(t); spent != paid {
				t.Errorf("%s spent, want %s", spent, paid)
			}
		})
	}
}

// Of several versions the newest that is what the policy asks for answers, also where a run that began under another policy made a later
// one.
func TestNewestVersionOfThePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		others []int64 // versions, of 1 to 3, that another policy asked for
		want   string
	}{
		"all fit":              {want: "visits prepared 3"},
		"the newest does not":  {others: []int64{3}, want: "visits prepared 2"},
		"only the oldest does": {others: []int64{3, 2}, want: "visits prepared 1"},
		"none does":            {others: []int64{3, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			copies.seen = nil
			for _, number := range []int64{3, 2, 1} {
				v := versionOf(t, r.policies.snapshot, number)
				if slices.Contains(c.others, number) {
					v.Digest[0]++
				}
				copies.seen = append(copies.seen, v)
			}
			answer, err := r.Query(t.Context(), principal(t, "ana"), askVisits())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(answer.Data, c.want) || answer.AsOf.IsZero() != (c.want == "") {
				t.Errorf("answered from %q as of %s, want %q", answer.Data, answer.AsOf, c.want)
			}
		})
	}
}

// A charge that was not taken back stands, and the question is not asked again: not where it lasted until the timeout, nor where the ledger
// could not void it.
func TestChargesThatStandAreNotMadeTwice(t *testing.T) {
	gone := fault.Untouched(fault.DataUnavailable(errors.New("no such table")))
	for name, c := range map[string]struct {
		prepare         func(*rig)
		spent, reserved string
	}{
		"until the timeout": {func(r *rig) {
			d := r.datasets["d"]
			d.Quantum, d.Timeout = testQuantum, 2*time.Second
			r.datasets["d"] = d
			r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
				r.clock.Sleep(ctx, time.Hour)
				return nil, gone
			}
		}, "0.5", "0"},
		"not voided": {func(r *rig) { r.meter.ledger, r.data.do = brittle{Ledger: r.ledger, before: "void"}, fails(gone) }, "0", "0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			copies.now = []catalog.Version{versionOf(t, r.policies.snapshot, 2)}
			c.prepare(r)
			if _, err := r.Query(t.Context(), principal(t, "ana"), askVisits()); fault.CodeOf(err) != fault.CodeDataUnavailable {
				t.Errorf("got %v", err)
			}
			all, err := r.Budget(t.Context(), principal(t, "ana"), "d")
			if err != nil {
				t.Fatal(err)
			}
			if b := all.Budgets[0]; string(b.Spent.Epsilon) != c.spent || string(b.Reserved.Epsilon) != c.reserved || r.data.runs != 1 {
				t.Errorf("%d runs, spent %s, reserved %s, want 1, %s, %s", r.data.runs, b.Spent.Epsilon, b.Reserved.Epsilon, c.spent, c.reserved)
			}
		})
	}
}

// A table that is read in its copy only answers what the copy does, with whatever errors, and refuses the rest before anything is charged
// or read; what was bought before is given again.
func TestRequirePrepared(t *testing.T) {
	const perPerson = "SELECT count(*) FROM (SELECT person, max(minutes) AS minutes FROM visits GROUP BY person) p"
	no, most := false, map[string]api.Decimal{"count": "40"}
	for name, c := range map[string]struct {
		edit  func(*Request)
		none  bool   // no version serves
		where string // makes it another question than the one that was bought
		code  fault.Code
	}{
		"from the copy":    {edit: func(*Request) {}},
		"with more errors": {edit: func(r *Request) { r.MaxRows = new(int64(1)) }},
		"no version":       {edit: func(*Request) {}, none: true, code: fault.CodeNotPrepared},
		"live":             {edit: func(r *Request) { r.Prepared = &no }, code: fault.CodePreparedOnly},
		"per person":       {edit: func(r *Request) { r.SQL = perPerson }, code: fault.CodePreparedOnly},
		"an error":         {edit: func(r *Request) { r.Epsilon, r.MaxError = "", most }, code: fault.CodePreparedOnly},
		"another table":    {edit: func(r *Request) { r.SQL = "SELECT count(*) FROM people" }, none: true, where: " WHERE age > 3"},
	} {
		if c.where == "" {
			c.where = " WHERE minutes > 3"
		}
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			ana, question := principal(t, "ana"), askVisits()
			c.edit(&question)
			if c.code != "" {
				if _, err := r.Query(t.Context(), ana, question); err != nil && question.SQL != perPerson {
					t.Fatal(err)
				}
			}
			bought, runs := r.spentEpsilon(t), r.data.runs
			r.policies.snapshot.Tables[1].PreparedOnly = true
			if c.none {
				copies.seen, copies.now = nil, nil
			}
			other := question
			other.SQL += c.where
			answer, err := r.Query(t.Context(), ana, other)
			if fault.CodeOf(err) != c.code || c.code == "" && err != nil || name == "per person" && !strings.Contains(err.Error(), "several rows") {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if c.code == "" {
				if copied := !answer.AsOf.IsZero(); copied == c.none {
					t.Errorf("as of %s", answer.AsOf)
				}
				return
			}
			if r.data.runs != runs || r.spentEpsilon(t) != bought {
				t.Errorf("%d runs, %s spent by a refusal", r.data.runs-runs, r.spentEpsilon(t))
			}
			if _, err := r.Estimate(t.Context(), ana, other.QueryRequest); fault.CodeOf(err) != c.code {
				t.Errorf("the estimate says %v", err)
			}
			if again, err := r.Query(t.Context(), ana, question); name == "live" && (err != nil || !again.Replayed) {
				t.Errorf("what was bought before: %v", err)
			}
		})
	}
}

// The log has once that something is not proven over a copy, however often it is asked; what is remembered of it is bounded.
func TestNotProvenIsLoggedOnce(t *testing.T) {
	var k serving
	one := fault.Unverified(errors.New("a rule: a statement"))
	if !k.first(one) || k.first(one) || !k.first(fault.Unverified(errors.New("another"))) {
		t.Error("not once each")
	}
	for i := range 3 * mostTold {
		k.first(fault.Unverified(errors.New(strings.Repeat("x", i))))
	}
	if len(k.told) > mostTold {
		t.Errorf("%d are remembered", len(k.told))
	}
}
