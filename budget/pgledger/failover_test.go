package pgledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// A server that was started anew, or took over, is not written to until every gateway that is known has found there what
// it knows, or is forgotten. On an unchanged timeline those that are away are not waited for long.
func testHeldForGateways(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	if err := l.Join(t.Context(), "here", "run of here"); err != nil {
		t.Fatal(err)
	}
	own := account(budget.AnalystScope, "ana", 1000)
	reserve(t, l, charge("before", mechanisms.Loss{Epsilon: 10}, own))
	moved := "UPDATE noisegate.chain SET postmaster = 'epoch'"
	gone := func(timeline string) {
		d.Exec(t, `INSERT INTO noisegate.gateway (run, name, system, timeline, postmaster, heads)
			SELECT 'run ' || `+timeline+`, 'gone', system, `+timeline+`, 'epoch', '[]' FROM noisegate.gateway WHERE name = 'here'`, moved)
	}
	held := func(id string) {
		t.Helper()
		var broken *journal.BrokenError
		if _, err := l.Reserve(t.Context(), charge(id, mechanisms.Loss{Epsilon: 10}, own)); !errors.As(err, &broken) || !broken.Held {
			t.Errorf("%s: %v", id, err)
		}
		if err := l.Check(t.Context()); !errors.As(err, &broken) {
			t.Errorf("%s: ready: %v", id, err)
		}
	}
	goesOn := func(id string) {
		t.Helper()
		if err := l.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		reserve(t, l, charge(id, mechanisms.Loss{Epsilon: 10}, own))
		if err := errors.Join(l.Check(t.Context()), l.VerifyAll(t.Context())); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}

	d.Exec(t, moved)
	goesOn("nobody else")

	gone("0") // it was on another timeline
	l.Wait(time.Hour)
	held("another timeline")
	all, err := l.Gateways(t.Context())
	if err != nil || len(all) != 2 || !slices.ContainsFunc(all, func(g pgledger.Gateway) bool { return g.Name == "gone" && !g.Found }) {
		t.Errorf("%+v, %v", all, err)
	}
	if n, err := l.Forget(t.Context(), "sam", "gone"); n != 1 || err != nil {
		t.Error(n, err)
	}
	goesOn("forgotten")

	gone("timeline")
	l.Wait(-time.Hour)
	held("the same timeline")
	l.Wait(2 * time.Hour)
	goesOn("it did not come")

	gone("-1")
	held("once more")
	done, confirmed, err := l.Resume(t.Context(), "sam", budget.Resume{Dataset: "d", Reason: "it burnt"})
	if err != nil || !confirmed || len(done.Lost) != 0 {
		t.Error(done, confirmed, err, errors.Unwrap(err))
	}
	goesOn("a steward confirmed it")
	if err := l.SignOff(t.Context()); err != nil {
		t.Error(err)
	}
	if all, err := l.Gateways(t.Context()); err != nil || slices.ContainsFunc(all, func(g pgledger.Gateway) bool { return g.Name == "here" }) {
		t.Errorf("%+v, %v", all, err)
	}
}

// A gateway that died is not waited for by later failovers, if another one was there; one that only slept is back with
// its next beat. Nobody starts with the anchor of another installation, which would hold this one's datasets.
func testDeadGateways(t *testing.T, d *pgtest.ControlDatabase) {
	l, sleeper := open(t, d), open(t, d)
	for name, g := range map[string]*pgledger.Ledger{"here": l, "sleeper": sleeper} {
		if err := g.Join(t.Context(), name, "run of "+name); err != nil {
			t.Fatal(err)
		}
	}
	own := account(budget.AnalystScope, "ana", 1000)
	reserve(t, l, charge("before", mechanisms.Loss{Epsilon: 10}, own))
	named := func() (names []string) {
		t.Helper()
		if err := l.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := l.Gateways(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			names = append(names, g.Name)
		}
		slices.Sort(names)
		return names
	}
	for name, where := range map[string]string{ // what is not said of a server is as "here" has it
		"dead here": "system, timeline, postmaster, 61", "dead before a restart": "system, timeline, 'epoch', 61",
		"young": "system, timeline, postmaster, 40", "elsewhere": "system, timeline - 1, 'epoch', 61",
		"other": "system + 1, timeline, 'epoch', 61",
	} {
		d.Exec(t, `INSERT INTO noisegate.gateway (name, run, heads, system, timeline, postmaster, seen_at)
			SELECT '`+name+`', '`+name+`', '[]', s, t, p::timestamptz, clock_timestamp() - x * interval '1 second'
			FROM (SELECT `+where+` FROM noisegate.gateway WHERE name = 'here') g (s, t, p, x)`)
	}
	d.Exec(t, "UPDATE noisegate.gateway SET seen_at = clock_timestamp() - interval '2 minutes' WHERE name = 'sleeper'")
	l.Wait(-time.Hour)
	if got := named(); !slices.Equal(got, []string{"dead before a restart", "elsewhere", "here", "other", "young"}) {
		t.Errorf("before patience ends: %q", got)
	}
	l.Wait(2 * time.Hour)
	if err := sleeper.Attend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := named(); !slices.Equal(got, []string{"elsewhere", "here", "other", "sleeper", "young"}) {
		t.Errorf("at last: %q", got)
	}

	anchored := l.Anchored()
	anchored.Server.System++
	err := open(t, d).VerifyAtStart(t.Context(), anchored, nil)
	if err == nil || !strings.Contains(errors.Unwrap(err).Error(), "control.anchor") {
		t.Errorf("an anchor of another installation: %v", err)
	}
	anchored.Server = journal.Server{}
	if err := errors.Join(l.Check(t.Context()), open(t, d).VerifyAtStart(t.Context(), anchored, nil)); err != nil {
		t.Errorf("an anchor without its server: %v", err)
	}
}

// A gateway that only read what another one wrote, for a charge that then came to nothing, misses it like its own.
func testFollowedAndLost(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 1000)
	reserve(t, here, charge("before", mechanisms.Loss{Epsilon: 10}, own))
	if err := there.VerifyAtStart(t.Context(), journal.Anchored{}, nil); err != nil {
		t.Fatal(err)
	}
	restore := save(t, d)
	reserve(t, here, charge("lost", mechanisms.Loss{Epsilon: 10}, own))
	again := charge("lost", mechanisms.Loss{Epsilon: 10}, own)
	again.Fingerprint = [32]byte{'o', 't', 'h', 'e', 'r'}
	if _, err := there.Reserve(t.Context(), again); err == nil {
		t.Error("an id is given twice")
	}
	loseEntries(t, d, restore)
	if err := there.Attend(t.Context()); err != nil {
		t.Fatal(err)
	}
	for dataset, broken := range there.Broken() {
		if !broken.Held {
			t.Errorf("%s: %v", dataset, broken)
		}
	}
	if done, held, err := open(t, d).Resume(t.Context(), "sam", budget.Resume{Dataset: "d", Reason: "booked"}); err != nil || !held ||
		len(done.Lost) != 1 {
		t.Errorf("%+v, %t, %v", done, held, err)
	}
	if err := there.Attend(t.Context()); err != nil {
		t.Fatal(err)
	}
	reserve(t, there, charge("after", mechanisms.Loss{Epsilon: 10}, own))
	if err := audited(t, there); err != nil {
		t.Error(err)
	}
}

// What a lossy failover gave back is booked again from receipts, once each and beyond caps, and then a steward lets the
// dataset go on. Other datasets are not held. A gateway that missed more holds it again.
func testRecharge(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 30)
	elsewhere := account(budget.AnalystScope, "ana", 100)
	elsewhere.ID.Dataset = "e"
	reserve(t, here, charge("kept", mechanisms.Loss{Epsilon: 10}, own))
	restore := save(t, d)
	reserve(t, here, charge("lost", mechanisms.Loss{Epsilon: 20}, own))
	if err := here.Settle(t.Context(), "lost", mechanisms.Loss{Epsilon: 20}, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	settled, err := here.Settlement(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t)
	receipt := signer.Sign(settled, "lost", []byte("answer"))
	fresh := open(t, d) // asks the ledger
	again, err := fresh.Settlement(t.Context(), "lost")
	if err != nil || signer.Sign(again, "lost", []byte("answer")).Charged != receipt.Charged {
		t.Errorf("another gateway's receipt: %+v, %v", again, err)
	}
	loseEntries(t, d, restore)
	reserve(t, there, charge("given back", mechanisms.Loss{Epsilon: 15}, own))
	var broken *journal.BrokenError
	for name, l := range map[string]*pgledger.Ledger{"who knew": here, "who did not": there} {
		if err := here.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := l.Reserve(t.Context(), charge("more of "+name, mechanisms.Loss{Epsilon: 1}, own))
		if !errors.As(err, &broken) || !broken.Held {
			t.Errorf("%s: %v", name, err)
		}
		other := charge("elsewhere of "+name, mechanisms.Loss{Epsilon: 1}, elsewhere)
		other.Dataset = "e"
		reserve(t, l, other)
	}

	recharge, err := signer.Recharge(receipt)
	if err != nil {
		t.Fatal(err)
	}
	forged := receipt
	forged.Reservation = "forged"
	if _, err := signer.Recharge(forged); !errors.Is(err, journal.ErrCharged) {
		t.Errorf("a forged receipt: %v", err)
	}
	for i, want := range []int{1, 0} {
		if n, err := there.Recharge(t.Context(), "sam", []budget.Recharge{recharge}); n != want || err != nil {
			t.Error(i, n, err, errors.Unwrap(err))
		}
	}
	var booked time.Time
	if entries, err := there.Entries(t.Context(), budget.Page{Limit: 1, Dataset: "d"}); err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	} else {
		booked = entries[0].At
	}
	if _, err := there.Reserve(t.Context(), charge("still held", mechanisms.Loss{Epsilon: 1}, own)); !errors.As(err, &broken) || !broken.Held {
		t.Errorf("what is booked is not yet confirmed: %v", err)
	}
	if _, _, err := there.Resume(t.Context(), "sam", budget.Resume{Dataset: "d", Reason: "booked", Freeze: true}); err == nil {
		t.Error("an account that is not there is frozen")
	}
	done, held, err := there.Resume(t.Context(), "sam", budget.Resume{Dataset: "d", Reason: "booked"})
	if since := time.Since(done.Newest); since < 0 || since > time.Hour || !done.Newest.Before(booked) {
		t.Errorf("the newest entry that is left is of %s, what was booked again of %s", done.Newest, booked)
	}
	if err != nil || !held || len(done.Lost) != 1 || done.Lost[0] != settled.Head {
		t.Errorf("%+v, %t, %v, %v", done, held, err, errors.Unwrap(err))
	}
	for _, l := range []*pgledger.Ledger{here, there} {
		if err := errors.Join(l.Attend(t.Context()), l.Check(t.Context()), l.VerifyAll(t.Context())); err != nil {
			t.Error(err)
		}
		b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
		if want := (mechanisms.Loss{Epsilon: 20}); err != nil || b[0].Spent != want || b[0].Reserved.Epsilon != 25 {
			t.Errorf("%+v, %v", b, err)
		}
		if _, err := l.Reserve(t.Context(), charge("beyond", mechanisms.Loss{Epsilon: 1}, own)); errors.As(err, &broken) || err == nil {
			t.Errorf("beyond the cap: %v", err)
		}
		if err := l.Settle(t.Context(), "lost", mechanisms.Loss{Epsilon: 20}, []byte("answer")); err == nil {
			t.Error("a charge that was lost is settled")
		}
	}
	auditor, chain := journal.NewAuditor("d", nil), journal.NewChain(budget.Head{Dataset: "d"})
	entries, err := here.Entries(t.Context(), budget.Page{Limit: 100, Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		if err := errors.Join(chain.Add(e), auditor.Add(e)); err != nil {
			t.Error(err)
		}
	}
	if entries[0].Kind != budget.EntryResume || !slices.ContainsFunc(entries, func(e budget.Entry) bool {
		return e.Kind == budget.EntryRecharge && e.Analyst == "ana" && e.Loss.Epsilon == 20
	}) {
		t.Errorf("%+v", entries)
	}
}

func newSigner(t *testing.T) *journal.Signer {
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

// answered is a settled charge's receipt, read.
func answered(t *testing.T, l *pgledger.Ledger, c budget.Charge) budget.Recharge {
	t.Helper()
	reserve(t, l, c)
	if err := l.Settle(t.Context(), c.ID, c.Loss, []byte("answer")); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	settled, err := l.Settlement(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t)
	recharge, err := signer.Recharge(signer.Sign(settled, c.ID, []byte("answer")))
	if err != nil {
		t.Fatal(err)
	}
	return recharge
}

// loseEntries puts an older state of a ledger in its place.
func loseEntries(t *testing.T, d *pgtest.ControlDatabase, restore func()) {
	t.Helper()
	restore()
	d.Exec(t, `SELECT setval('noisegate.entry_seq_seq', (SELECT max(seq) FROM noisegate.entry)),
		setval('noisegate.account_account_id_seq', (SELECT max(account_id) FROM noisegate.account))`)
}

// Losses of every kind are booked again, on accounts of every form, and where the account was lost too.
func testRechargeForms(t *testing.T, d *pgtest.ControlDatabase) {
	here := open(t, d)
	reserve(t, here, charge("first", mechanisms.Loss{Epsilon: 1}, account(budget.AnalystScope, "first", 1000)))
	accounts := map[string]budget.Account{}
	for _, form := range []budget.Limit{
		{Form: budget.ZCDP, Rho: 1000},
		{Form: budget.Approx, Epsilon: 1e12, Rho: 1e12, Delta: 1e12, TotalDelta: 1e12},
	} {
		for _, known := range []string{"known", "lost"} {
			a := account(budget.AnalystScope, string(form.Form)+" "+known, 0)
			a.Limit = form
			if accounts[a.ID.Name] = a; known == "known" {
				reserve(t, here, charge("opens "+a.ID.Name, mechanisms.Loss{Rho: 1, Unbounded: true}, a))
			}
		}
	}
	restore := save(t, d)
	losses := []mechanisms.Loss{{Rho: 20, Unbounded: true}, {Rho: 20, Epsilon: 30}}
	recharges, want := map[string][]budget.Recharge{}, map[string]mechanisms.Loss{}
	for name, a := range accounts {
		for i, loss := range losses {
			recharges[name] = append(recharges[name], answered(t, here, charge(name+" "+string(rune('a'+i)), loss, a)))
		}
		b, err := here.Balances(t.Context(), []budget.AccountID{a.ID})
		if err != nil {
			t.Fatal(err)
		}
		want[name] = b[0].Spent
	}
	loseEntries(t, d, restore)
	there := open(t, d)
	for name, all := range recharges {
		if all[0].Loss.Tail == 0 && accounts[name].Limit.Form == budget.Approx {
			t.Errorf("%s: no tail was settled", name)
		}
		for range 2 {
			if _, err := there.Recharge(t.Context(), "sam", all); err != nil {
				t.Errorf("%s: %v, %v", name, err, errors.Unwrap(err))
			}
		}
		b, err := there.Balances(t.Context(), []budget.AccountID{accounts[name].ID})
		if err != nil || b[0].Spent != want[name] {
			t.Errorf("%s: %+v, want %+v; %v", name, b, want[name], err)
		}
	}
	wrong := recharges["zcdp known"][0]
	wrong.ID = "negative"
	wrong.Loss.Tail = -1
	if n, err := there.Recharge(t.Context(), "sam", []budget.Recharge{wrong}); n != 0 || err == nil {
		t.Errorf("a negative tail: %d, %v", n, err)
	}
	if err := errors.Join(there.VerifyAll(t.Context()), there.VerifyNew(t.Context())); err != nil {
		t.Error(err)
	}
}
