package budgettest

import (
	"fmt"
	"math/big"

	"pgregory.net/rapid"

	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// model is a ledger told in the plainest way: all charges ever, added up anew in big integers for each decision.
type model struct {
	limits  map[budget.AccountID]budget.Limit
	charges []modelCharge
}

type modelCharge struct {
	budget.Charge
	state  string           // open, settled, expired; voided ones are dropped
	shared *mechanisms.Loss // settled apart
}

// lossOn is what a charge counts as in an account.
func (c modelCharge) lossOn(id budget.AccountID) mechanisms.Loss {
	loss := c.Loss
	if c.shared != nil && (id.Scope == budget.DatasetScope || id.Scope == budget.EnsembleScope) {
		loss = *c.shared
	}
	if loss = kept(loss); loss.Tail > 0 {
		loss.Tail = mechanisms.AttoDelta(max(c.Levels, 1))
	}
	return loss
}

// admits restates the rule of [budget.Limit] from its definition.
func (m *model) admits(id budget.AccountID, l budget.Limit, charge budget.Charge) bool {
	epsilon, rho, delta, tail := big.NewInt(0), big.NewInt(0), big.NewInt(0), big.NewInt(0)
	bounded := true
	add := func(loss mechanisms.Loss) {
		epsilon.Add(epsilon, big.NewInt(int64(loss.Epsilon)))
		rho.Add(rho, big.NewInt(int64(loss.Rho)))
		delta.Add(delta, big.NewInt(int64(loss.Delta)))
		tail.Add(tail, big.NewInt(int64(loss.Tail)))
		bounded = bounded && !loss.Unbounded
	}
	add(modelCharge{Charge: charge}.lossOn(id))
	for _, c := range m.charges {
		for _, a := range c.Accounts {
			if a.ID == id {
				add(c.lossOn(id))
			}
		}
	}
	room := int64(0)
	if l.Form == budget.Approx {
		room = int64(l.TotalDelta) / 32
	}
	within := func(sum *big.Int, limit int64) bool { return limit != budget.Never && sum.Cmp(big.NewInt(limit)) <= 0 }
	byEpsilon := bounded && within(epsilon, int64(l.Epsilon)) && within(tail, room)
	if !within(tail, room) {
		tail = big.NewInt(room)
	}
	return within(delta.Add(delta, tail), int64(l.Delta)) && (byEpsilon || within(rho, int64(l.Rho)))
}

// kept is a loss as a ledger shows it: what has no pure ε has one of (ε, 10⁻¹⁸)-DP.
func kept(l mechanisms.Loss) mechanisms.Loss {
	if !l.Unbounded {
		return l
	}
	epsilon, ok := accounting.EpsilonFor(l.Rho, 1)
	if !ok {
		return l
	}
	return mechanisms.Loss{Epsilon: epsilon, Rho: l.Rho, Delta: l.Delta, Tail: 1}
}

func (m *model) open() []int {
	var open []int
	for i, c := range m.charges {
		if c.state == "open" {
			open = append(open, i)
		}
	}
	return open
}

// testAgainstModel runs random histories on the ledger and on the model: they make the same decisions.
func testAgainstModel(f *fixture) {
	world := 0
	rapid.Check(f.T, func(t *rapid.T) {
		world++
		m := &model{limits: map[budget.AccountID]budget.Limit{}}
		name := func(s string) string { return fmt.Sprint(s, world) }
		accounts := []budget.Account{
			groupAccount(name("all"), anyLimit(t)), ensembleAccount(name("some"), anyLimit(t)), analystAccount(name("ana"), anyLimit(t)),
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				chosen := accounts
				if skip := rapid.IntRange(0, 3).Draw(t, "left out"); skip < 3 {
					chosen = append(append([]budget.Account{}, accounts[:skip]...), accounts[skip+1:]...)
				}
				c := f.charge(anyLoss(t), chosen...)
				c.Levels = rapid.SampledFrom([]int64{0, 1, 2, 30_000_000}).Draw(t, "levels")
				f.reserveInModel(t, m, c)
			},
			"settle": func(t *rapid.T) {
				if open := m.open(); len(open) > 0 {
					c := &m.charges[rapid.SampledFrom(open).Draw(t, "charge")]
					released := c.Loss
					if rapid.Bool().Draw(t, "less") {
						released.Epsilon, released.Rho = released.Epsilon/2, released.Rho/2
					}
					f.settle(c.ID, released)
					c.state, c.Loss = "settled", released
				}
			},
			"settle apart": func(t *rapid.T) {
				if open := m.open(); len(open) > 0 {
					c := &m.charges[rapid.SampledFrom(open).Draw(t, "charge")]
					own := c.Loss
					own.Epsilon, own.Rho = own.Epsilon/2, own.Rho/2
					shared := mechanisms.Loss{}
					if rapid.Bool().Draw(t, "some") {
						shared = own
						shared.Epsilon, shared.Rho, shared.Delta = own.Epsilon/3, own.Rho/3, 0
					}
					f.settleApart(c.ID, budget.Apart{Own: own, Shared: shared})
					c.state, c.Loss, c.shared = "settled", own, &shared
				}
			},
			"void": func(t *rapid.T) {
				if open := m.open(); len(open) > 0 {
					i := rapid.SampledFrom(open).Draw(t, "charge")
					f.end(t, f.ledger.Void(f.Context(), m.charges[i].ID))
					m.charges = append(m.charges[:i:i], m.charges[i+1:]...)
				}
			},
			"expire": func(t *rapid.T) {
				if open := m.open(); len(open) > 0 {
					c := &m.charges[rapid.SampledFrom(open).Draw(t, "charge")]
					f.end(t, f.ledger.Expire(f.Context(), c.ID))
					c.state = "expired"
				}
			},
			"fail": func(t *rapid.T) {
				if open := m.open(); len(open) > 0 {
					c := &m.charges[rapid.SampledFrom(open).Draw(t, "charge")]
					before, err := f.ledger.Failures(f.Context(), dataset, "ana", budget.FailurePeriod)
					f.end(t, err)
					f.end(t, f.ledger.Fail(f.Context(), c.ID))
					c.state = "expired"
					if after, err := f.ledger.Failures(f.Context(), dataset, "ana", budget.FailurePeriod); err != nil || after != before+1 {
						t.Fatalf("%d failures, then %d, %v", before, after, err)
					}
				}
			},
			"reset": func(t *rapid.T) {
				f.end(t, f.ledger.ResetFailures(f.Context(), "stella", budget.Reset{Dataset: dataset, Analyst: "ana"}))
				if n, err := f.ledger.Failures(f.Context(), dataset, "ana", budget.FailurePeriod); err != nil || n != 0 {
					t.Fatalf("%d failures after they were reset, %v", n, err)
				}
			},
			"import": func(t *rapid.T) {
				f.end(t, f.ledger.RecordImport(f.Context(), "stella", budget.Import{Dataset: dataset, Ensemble: "digits", Version: 1,
					Source: "public.votes"}))
			},
			"limit": func(t *rapid.T) {
				a := rapid.SampledFrom(accounts).Draw(t, "account")
				a.Limit, a.Origin = anyLimit(t), budget.FromSteward
				f.end(t, f.ledger.SetLimit(f.Context(), "stella", a))
				m.limits[a.ID] = a.Limit
			},
		})
	})
}

func (f *fixture) reserveInModel(t *rapid.T, m *model, c budget.Charge) {
	want := true
	for _, a := range c.Accounts {
		l, exists := m.limits[a.ID]
		if !exists {
			l = a.Limit
		}
		want = want && m.admits(a.ID, l, c)
	}
	_, err := f.ledger.Reserve(f.Context(), c)
	if (err == nil) != want || err != nil && fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Fatalf("reserve %+v: %v, want admitted = %v", c.Loss, err, want)
	}
	if want {
		f.took(c)
		m.charges = append(m.charges, modelCharge{Charge: c, state: "open"})
		for _, a := range c.Accounts {
			if _, exists := m.limits[a.ID]; !exists {
				m.limits[a.ID] = a.Limit
			}
		}
	}
}

func (f *fixture) end(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// anyLimit is small enough that charges of anyLoss meet it from both sides.
func anyLimit(t *rapid.T) budget.Limit {
	spec := budget.LimitSpec{Form: rapid.SampledFrom([]budget.Form{budget.Pure, budget.ZCDP, budget.Approx}).Draw(t, "form")}
	amount := big.NewRat(rapid.Int64Range(0, 40).Draw(t, "cap"), 10)
	if spec.Form == budget.ZCDP {
		spec.Rho = amount
	} else {
		spec.Epsilon = amount
	}
	spec.Delta = big.NewRat(rapid.Int64Range(0, 40).Draw(t, "δ"), 1_000_000_000)
	l, err := budget.NewLimit(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func anyLoss(t *rapid.T) mechanisms.Loss {
	n := rapid.Int64Range(0, 1500).Draw(t, "size")
	l := pure(n)
	if rapid.Bool().Draw(t, "gaussian") {
		l = gaussian(n / 10)
	}
	if rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		l.Delta = mechanisms.AttoDelta(rapid.Int64Range(1, 5_000_000_000).Draw(t, "δ"))
	}
	return l
}
