package budget

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// An account is used up exactly when it admits no charge of either kind, however small; usage grows with what is used; and
// under the rule that it names less than the cap is used.
func TestUsage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, used := anyLimit(t, 20), anyLoss(t, "used", 15)
		usage := UsageOf(limit, used)
		more := UsageOf(limit, used.Plus(anyLoss(t, "more", 15)))
		if usage.Permille < 0 || usage.Permille > 1000 || more.Permille < usage.Permille {
			t.Fatalf("%+v, used %+v: %+v, and %+v after more", limit, used, usage, more)
		}
		byEpsilon := limit.countsEpsilon(used) && used.Epsilon < limit.Epsilon
		open := limit.deltaOf(used) < limit.Delta && (byEpsilon || used.Rho < limit.Rho)
		if open != (usage.Permille < 1000) {
			t.Fatalf("%+v, used %+v: %+v", limit, used, usage)
		}
		if !open {
			return
		}
		below := map[Rule]bool{EpsilonRule: byEpsilon, RhoRule: used.Rho < limit.Rho, DeltaRule: true}
		if !below[usage.Rule] {
			t.Fatalf("%+v, used %+v: %+v, which admits nothing", limit, used, usage)
		}
	})
	const e, r = int64(mechanisms.EpsilonUnit), int64(mechanisms.RhoUnit)
	for _, c := range []struct {
		limit Limit
		used  mechanisms.Loss
		want  Usage
	}{
		{Limit{Form: Pure, Epsilon: 3, Rho: Never}, mechanisms.Loss{}, Usage{EpsilonRule, 0}},
		{Limit{Form: Pure, Epsilon: 3, Rho: Never}, mechanisms.Loss{Epsilon: 1, Rho: 100}, Usage{EpsilonRule, 334}},
		{Limit{Form: ZCDP, Epsilon: Never, Rho: 200}, mechanisms.Loss{Epsilon: 1000, Rho: 100}, Usage{RhoRule, 500}},
		{Limit{Form: ZCDP, Epsilon: Never, Rho: 200}, mechanisms.Loss{Rho: 300}, Usage{RhoRule, 1000}},
		{Limit{Form: Approx, Epsilon: mechanisms.PicoEpsilon(20 * e), Rho: mechanisms.PicoRho(4 * r), Delta: 100},
			mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(100 * e), Rho: mechanisms.PicoRho(r)}, Usage{RhoRule, 250}},
		{Limit{Form: Approx, Epsilon: 20, Rho: 100, Delta: 100}, mechanisms.Loss{Unbounded: true, Rho: 1, Delta: 90}, Usage{DeltaRule, 900}},
		{Limit{Form: Pure, Epsilon: 1 << 62, Rho: Never}, mechanisms.Loss{Epsilon: 1<<62 - 1}, Usage{EpsilonRule, 1000}},
		{Limit{Form: Pure, Rho: Never}, mechanisms.Loss{}, Usage{EpsilonRule, 1000}},
	} {
		if got := UsageOf(c.limit, c.used); got != c.want {
			t.Errorf("%+v, used %+v: %+v", c.limit, c.used, got)
		}
	}
}

// A refusal says what the rule that binds has left: where many small releases have used up Σε, the account goes on in ρ,
// and what is left of it is not 0.
func TestShortageIsOfTheBindingRule(t *testing.T) {
	const milli = int64(mechanisms.EpsilonUnit) / 1000
	eps := func(n int64) mechanisms.PicoEpsilon { return mechanisms.PicoEpsilon(n * milli) }
	rho := func(n int64) mechanisms.PicoRho { return mechanisms.PicoRho(n * milli) }
	approx := Limit{Form: Approx, Epsilon: eps(20_000), Rho: rho(4000), Delta: 100}
	for _, c := range []struct {
		limit        Limit
		used, charge mechanisms.Loss
		want         string
	}{
		{approx, mechanisms.Loss{Epsilon: eps(21_800), Rho: rho(3700)}, mechanisms.Loss{Epsilon: eps(1000), Rho: rho(500)},
			"the query needs rho 0.5 and your budget has 0.3 left"},
		{approx, mechanisms.Loss{Epsilon: eps(19_500), Rho: rho(3990)}, mechanisms.Loss{Epsilon: eps(1000), Rho: rho(500)},
			"the query needs epsilon 1 and your budget has 0.5 left"},
		{approx, mechanisms.Loss{Unbounded: true, Rho: rho(3990)}, mechanisms.Loss{Epsilon: eps(1000), Rho: rho(500)},
			"the query needs rho 0.5 and your budget has 0.01 left"},
		{Limit{Form: Pure, Epsilon: eps(1000), Rho: Never}, mechanisms.Loss{}, mechanisms.Loss{Epsilon: eps(2000), Rho: rho(500)},
			"the query needs epsilon 2 and your budget has 1 left"},
	} {
		own := Balance{Account: Account{ID: AccountID{Scope: AnalystScope, Name: "ana"}, Limit: c.limit}, Spent: c.used}
		err := overCap(own, Charge{Loss: c.charge})
		if err == nil || err.Code != fault.CodeBudgetExhausted || !strings.Contains(err.Msg, c.want) {
			t.Errorf("%+v, used %+v: %v, want %s", c.limit, c.used, err, c.want)
		}
	}
}
