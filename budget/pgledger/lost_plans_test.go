package pgledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// planPayer is the account of the plans.
func planPayer() budget.Account { return account(budget.AnalystScope, "ana", 1000) }

// registerPlan pays 100 for a plan of five slots.
func registerPlan(t *testing.T, l *pgledger.Ledger, id string) {
	t.Helper()
	c := charge(id, mechanisms.Loss{Epsilon: 100}, planPayer())
	c.Registers = slices.Repeat([]mechanisms.Slot{{Epsilon: 50}}, 5)
	reserve(t, l, c)
	if err := l.Settle(t.Context(), c.ID, c.Loss, []byte("null")); err != nil {
		t.Fatal(err)
	}
}

// drawing asks a question that takes one slot.
func drawing(plan string, from int) budget.Charge {
	c := charge(fmt.Sprintf("draws %d of %s", from, plan), mechanisms.Loss{}, planPayer())
	c.Draws = &budget.Draw{Plan: budget.ReservationID(plan), From: from, Count: 1}
	return c
}

// audited has a ledger verified, and its entries audited.
func audited(t *testing.T, l *pgledger.Ledger) error {
	t.Helper()
	entries, err := l.Entries(t.Context(), budget.Page{Limit: 1000, Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	auditor, chain := journal.NewAuditor("d", nil), journal.NewChain(budget.Head{Dataset: "d"})
	for _, e := range slices.Backward(entries) {
		err = errors.Join(err, chain.Add(e), auditor.Add(e))
	}
	return errors.Join(err, l.VerifyNew(t.Context()), l.VerifyAll(t.Context()))
}

// Receipts of draws book what a failover lost: the price of each plan once, and the slots as far as anybody holds an
// answer of them, in whatever order they are handed in. Those from before that say nothing of the plan are refused.
func testLostPlansAreBooked(t *testing.T, d *pgtest.ControlDatabase) {
	here, signer := open(t, d), newSigner(t)
	receipt := func(c budget.Charge) budget.Recharge {
		t.Helper()
		reserve(t, here, c)
		if err := here.Settle(t.Context(), c.ID, mechanisms.Loss{}, []byte("answer")); err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		settled, err := here.Settlement(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		signed := signer.Sign(settled, c.ID, []byte("answer"))
		elsewhere, err := open(t, d).Settlement(t.Context(), c.ID)
		if err != nil || signer.Sign(elsewhere, c.ID, []byte("answer")).Charged != signed.Charged {
			t.Errorf("another gateway's receipt: %+v, %v", elsewhere, err)
		}
		recharge, err := signer.Recharge(signed)
		if err != nil {
			t.Fatal(err)
		}
		return recharge
	}
	registerPlan(t, here, "kept")
	receipt(drawing("kept", 0))
	registerPlan(t, here, "opened") // its first draw is lost
	restore := save(t, d)
	kept, opened := []budget.Recharge{receipt(drawing("kept", 1)), receipt(drawing("kept", 2))}, receipt(drawing("opened", 0))
	registerPlan(t, here, "lost")
	lost := []budget.Recharge{receipt(drawing("lost", 0)), receipt(drawing("lost", 1)), receipt(drawing("lost", 2))}
	registerPlan(t, here, "other")
	other := receipt(drawing("other", 0))
	registerPlan(t, here, "unheard of")
	receipt(drawing("unheard of", 0))
	for name, c := range map[string]struct {
		receipts []budget.Recharge
		booked   int
		spent    mechanisms.PicoEpsilon
		next     map[string]int // of plans that are left
	}{
		"none":           {nil, 0, 200, map[string]int{"kept": 1, "opened": 0}},
		"a middle slot":  {kept[:1], 1, 200, map[string]int{"kept": 2, "opened": 0}},
		"a later slot":   {kept[1:], 1, 200, map[string]int{"kept": 3, "opened": 0}},
		"a first slot":   {[]budget.Recharge{opened}, 1, 200, map[string]int{"kept": 1, "opened": 1}},
		"a plan":         {lost[1:2], 2, 300, map[string]int{"kept": 1, "opened": 0}},
		"a plan, thrice": {[]budget.Recharge{lost[2], lost[0], lost[1]}, 4, 300, map[string]int{"kept": 1}},
		"two plans":      {[]budget.Recharge{lost[0], other}, 4, 400, map[string]int{"kept": 1}},
		"all": {[]budget.Recharge{other, kept[1], lost[1], opened, kept[0], lost[2], lost[0]}, 9, 400,
			map[string]int{"kept": 3, "opened": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			loseEntries(t, d, restore)
			there := open(t, d)
			for i, want := range []int{c.booked, 0} {
				if n, err := there.Recharge(t.Context(), "sam", c.receipts); n != want || err != nil {
					t.Errorf("time %d: %d are booked, not %d: %v, %v", i, n, want, err, errors.Unwrap(err))
				}
			}
			b, err := there.Balances(t.Context(), []budget.AccountID{planPayer().ID})
			if err != nil || b[0].Spent != (mechanisms.Loss{Epsilon: c.spent}) {
				t.Errorf("%+v, %v", b, err)
			}
			for plan, next := range c.next {
				if p, err := there.Plan(t.Context(), "ana", budget.ReservationID(plan)); err != nil || p.Next != next {
					t.Errorf("%s: %+v, %v", plan, p, err)
				}
			}
			if err := audited(t, there); err != nil {
				t.Error(err)
			}
			// What is booked is drawn, and no more of a plan than that is gone.
			d.Exec(t, "UPDATE noisegate.chain SET postmaster = pg_postmaster_start_time()")
			if next := c.next["kept"]; next > 1 {
				if _, err := there.Reserve(t.Context(), drawing("kept", 1)); !errors.Is(err, budget.ErrSlotTaken) {
					t.Errorf("a slot is drawn twice: %v", err)
				}
				c := drawing("kept", next)
				c.ID, c.Fingerprint = "fresh", [32]byte{1}
				reserve(t, there, c)
			}
			if err := audited(t, there); err != nil {
				t.Error(err)
			}
			d.Exec(t, "SET session_replication_role = replica; UPDATE noisegate.plan SET next_slot = next_slot - 1 WHERE next_slot > 0")
			if err := there.VerifyAll(t.Context()); err == nil {
				t.Error("slots are given back, and nobody sees it")
			}
		})
	}
	loseEntries(t, d, restore)
	old := lost[0]
	old.Plan = nil
	if n, err := open(t, d).Recharge(t.Context(), "sam", []budget.Recharge{old}); n != 0 || !errors.Is(err, budget.ErrDrawn) {
		t.Errorf("a receipt that names no plan: %d, %v", n, err)
	}
	for name, spoil := range map[string]func(*budget.PaidPlan){
		"itself":          func(p *budget.PaidPlan) { p.ID = old.ID },
		"no plan":         func(p *budget.PaidPlan) { p.ID = "" },
		"negative":        func(p *budget.PaidPlan) { p.From = -1 },
		"beyond any plan": func(p *budget.PaidPlan) { p.From = 1000 },
		"another dataset": func(p *budget.PaidPlan) { p.Accounts = []budget.AccountID{{Dataset: "e", Scope: budget.DatasetScope}} },
		"free":            func(p *budget.PaidPlan) { p.Loss = mechanisms.Loss{} },
	} {
		spoiled, plan := lost[0], *lost[0].Plan
		spoil(&plan)
		spoiled.Plan = &plan
		if n, err := open(t, d).Recharge(t.Context(), "sam", []budget.Recharge{spoiled}); n != 0 || err == nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// Plans that are left go on after what gateways know to be drawn, even if clients hold receipts. Where a gateway may know more than it
// reported, nothing is drawn any more.
func testResumeAndPlans(t *testing.T, d *pgtest.ControlDatabase) {
	absent := func(timeline string) string {
		return `INSERT INTO noisegate.gateway (run, name, system, timeline, postmaster, heads)
			SELECT 'run of absent', 'absent', system, ` + timeline + `, 'epoch', '[]' FROM noisegate.gateway WHERE name = 'here'`
	}
	for name, c := range map[string]struct {
		before, after, last func(t *testing.T, here, there *pgledger.Ledger) // the draws, the loss, and gateways finding it
		retires             bool
	}{
		"both tell": {},
		"one does not come": {retires: true, last: func(t *testing.T, _, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline"))
		}},
		"one is forgotten": {retires: true, last: func(t *testing.T, here, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline - 1"))
			if n, err := here.Forget(t.Context(), "sam", "absent"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}},
		"one was forgotten before": {last: func(t *testing.T, _, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline - 1"),
				"UPDATE noisegate.gateway SET ended_at = 'epoch', ended_by = 'sam', ended_on = timeline WHERE name = 'absent'")
		}},
		"one is forgotten, and the server changes again": {retires: true, last: func(t *testing.T, _, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline - 2"),
				"UPDATE noisegate.gateway SET ended_at = 'epoch', ended_by = 'sam', ended_on = timeline + 1 WHERE name = 'absent'")
		}},
		"one was forgotten in an earlier failover": {last: func(t *testing.T, _, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline - 2"),
				"UPDATE noisegate.gateway SET ended_at = 'epoch', ended_by = 'sam', ended_on = timeline + 1 WHERE name = 'absent'",
				`INSERT INTO noisegate.lost (dataset, seq, hash, gateway, found_at, accepted_at, accepted_by)
					VALUES ('d', 1, sha256('lost'), 'here', 'epoch', now(), 'sam')`)
		}},
		"one of another cluster is forgotten": {retires: true, last: func(t *testing.T, here, _ *pgledger.Ledger) {
			d.Exec(t, `INSERT INTO noisegate.gateway (run, name, system, timeline, postmaster, heads)
				SELECT 'run of absent', 'absent', system + 1, timeline, 'epoch', '[]' FROM noisegate.gateway WHERE name = 'here'`)
			if n, err := here.Forget(t.Context(), "sam", "absent"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}},
		"one is forgotten, and a loss was accepted by a clock ahead": {retires: true, last: func(t *testing.T, here, _ *pgledger.Ledger) {
			d.Exec(t, absent("timeline - 1"), `INSERT INTO noisegate.lost (dataset, seq, hash, gateway, found_at, accepted_at, accepted_by)
				VALUES ('d', 1, sha256('lost'), 'here', 'epoch', now() + interval '2 minutes', 'sam')`)
			if n, err := here.Forget(t.Context(), "sam", "absent"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}},
		"one has not looked since": {retires: true, last: func(t *testing.T, _, _ *pgledger.Ledger) {
			d.Exec(t, "UPDATE noisegate.gateway SET seen_at = 'epoch' WHERE name = 'there'")
		}},
		"one began after the loss": {retires: true, after: func(t *testing.T, here, _ *pgledger.Ledger) {
			late := open(t, d)
			_ = late.VerifyAtStart(t.Context(), here.Anchored(), nil)
			if err := late.Join(t.Context(), "late", "run of late"); err != nil {
				t.Fatal(err)
			}
		}},
		"one saw more than anybody followed": {retires: true, before: func(t *testing.T, here, there *pgledger.Ledger) {
			gone := open(t, d)
			answered(t, gone, drawing("kept", 4))
			if err := errors.Join(here.Attend(t.Context()), there.Attend(t.Context())); err != nil {
				t.Fatal(err)
			}
		}},
		"one followed it in time": {before: func(t *testing.T, here, there *pgledger.Ledger) {
			gone := open(t, d)
			answered(t, gone, drawing("kept", 4))
			if err := errors.Join(here.Attend(t.Context()), there.Attend(t.Context()), there.VerifyNew(t.Context())); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			empty(t, d)
			here, there := open(t, d), open(t, d)
			registerPlan(t, here, "kept")
			registerPlan(t, here, "untouched")
			answered(t, here, drawing("kept", 0))
			for gateway, l := range map[string]*pgledger.Ledger{"here": here, "there": there} {
				if err := errors.Join(l.VerifyAtStart(t.Context(), journal.Anchored{}, nil),
					l.Join(t.Context(), gateway, "run of "+gateway)); err != nil {
					t.Fatal(err)
				}
			}
			restore := save(t, d)
			answered(t, here, drawing("kept", 1))
			answered(t, there, drawing("kept", 2))
			answered(t, here, drawing("kept", 3))
			registerPlan(t, there, "lost")
			answered(t, there, drawing("lost", 0))
			registerPlan(t, there, "lost and never drawn from")
			next := 4
			for i, step := range []func(t *testing.T, here, there *pgledger.Ledger){c.before, nil, c.after, c.last} {
				switch i {
				case 1:
					loseEntries(t, d, restore)
				case 3:
					for _, l := range []*pgledger.Ledger{here, there, here} { // the first one sees that the second found it later
						if err := l.Attend(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				default:
				}
				if step != nil {
					step(t, here, there)
				}
			}
			if c.before != nil {
				next = 5
			}
			operator := open(t, d)
			done, held, err := operator.Resume(t.Context(), "sam", budget.Resume{Dataset: "d", Reason: "booked"})
			if err != nil || !held || done.Retires != c.retires || len(done.Lost) == 0 {
				t.Fatalf("%+v, %t, %v, %v", done, held, err, errors.Unwrap(err))
			}
			if !c.retires && (!slices.Equal(done.Draws, []budget.Draw{{Plan: "kept", Count: next}, {Plan: "lost", Count: 1}}) ||
				!slices.Equal(done.Unpaid, []budget.ReservationID{"lost"})) {
				t.Errorf("%+v", done)
			}
			left := 0
			if c.retires {
				next, left = 5, 5
			}
			for plan, next := range map[string]int{"kept": next, "untouched": left} {
				if p, err := operator.Plan(t.Context(), "ana", budget.ReservationID(plan)); err != nil || p.Next != next {
					t.Errorf("%s: %+v, %v", plan, p, err)
				}
			}
			fresh := open(t, d)
			for from := range 5 {
				c := drawing("kept", from)
				c.ID, c.Fingerprint = budget.ReservationID(fmt.Sprint("again ", from)), [32]byte{byte(from), 1}
				if _, err := fresh.Reserve(t.Context(), c); (err == nil) != (from >= next) || err != nil && !errors.Is(err, budget.ErrSlotTaken) {
					t.Errorf("slot %d of a plan drawn up to %d: %v", from, next, err)
				}
			}
			registerPlan(t, fresh, "later")
			reserve(t, fresh, drawing("later", 0))
			for _, l := range []*pgledger.Ledger{here, there} {
				if err := l.Attend(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for _, l := range []*pgledger.Ledger{here, there, fresh} {
				if err := audited(t, l); err != nil {
					t.Error(err)
				}
			}
			d.Exec(t, "SET session_replication_role = replica; UPDATE noisegate.plan SET next_slot = 1 WHERE plan_id = 'kept'")
			if err := fresh.VerifyAll(t.Context()); err == nil {
				t.Error("slots are given back, and nobody sees it")
			}
		})
	}
}

// A gateway that still has a policy which a failover lost gives nobody that policy's limits, and answers nothing under it, also where
// another version has since taken its number: the ledger compares with what is stored.
func testLimitsOfALostPolicy(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	digest := [32]byte{'a'}
	if _, err := l.RecordPolicy(t.Context(), budget.NewPolicy{Text: "text", Checked: []byte("{}"), PolicyVersion: budget.PolicyVersion{
		Dataset: "d", TwoFor: []string{budget.ForCaps}, PolicyRow: budget.PolicyRow{Version: 1, Digest: digest, AppliedBy: "sam"}}}); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	policy := budget.Policy{Version: 1, Digest: digest}
	stored := budget.Account{ID: budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}, Origin: budget.FromPolicy, Version: 1,
		Limit: budget.Limit{Form: budget.Pure, Epsilon: 100, Rho: budget.Never}}
	if err := l.Enforce(t.Context(), policy, stored); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	reserved := func(id string, under budget.Policy, accounts ...budget.Account) error {
		c := charge(id, mechanisms.Loss{Epsilon: 1}, accounts...)
		c.Policy = under
		_, err := l.Reserve(t.Context(), c)
		return err
	}
	for i := range 2 * 8 { // from some on, the next is decided without a look at the ledger
		if err := reserved(fmt.Sprint("before ", i), policy, stored); err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
	}
	before, err := l.Head(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	same, later := stored, stored
	same.Limit.Epsilon, later.Limit.Epsilon, later.Version = 1000, 1000, 2
	own := later
	own.ID = budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}
	steward := stored
	steward.Origin, steward.Version = budget.FromSteward, 0
	other, next := budget.Policy{Version: 1, Digest: [32]byte{'b'}}, budget.Policy{Version: 2, Digest: digest}
	for name, try := range map[string]func() error{
		"a limit of a later version":             func() error { return l.Enforce(t.Context(), next, later) },
		"a limit of a later version, by itself":  func() error { return l.SetLimit(t.Context(), budget.ByPolicy, later) },
		"a limit of another one with its number": func() error { return l.Enforce(t.Context(), other, same) },
		"a charge under a later version":         func() error { return reserved("q", next, later) },
		"a charge that opens an account":         func() error { return reserved("q", next, stored, own) },
		"a charge under another one":             func() error { return reserved("q", other, same) },
		"a charge to what stewards set":          func() error { return reserved("q", other, steward) },
	} {
		if err := try(); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := l.Head(t.Context(), "d"); err != nil || after != before {
		t.Errorf("the ledger changed: %+v, %v", after, err)
	}
	if err := reserved("q", policy, stored); err != nil {
		t.Errorf("by the policy that is there: %v", err)
	}
}
