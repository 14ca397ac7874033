package budget

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/exact"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func TestNewLimit(t *testing.T) {
	r := func(text string) *big.Rat { return rational(t, text) }
	const one, micro = 1_000_000_000_000, 1_000_000_000_000 // ε of 1 in pico units, δ of 10⁻⁶ in atto units
	for name, c := range map[string]struct {
		spec LimitSpec
		want Limit
	}{
		"pure": {LimitSpec{Form: Pure, Epsilon: r("1")}, Limit{Form: Pure, Epsilon: one, Rho: Never}},
		"pure, δ": {LimitSpec{Form: Pure, Epsilon: r("1"), Delta: r("1e-6")},
			Limit{Form: Pure, Epsilon: one, Rho: Never, Delta: micro, TotalDelta: micro}},
		"zcdp": {LimitSpec{Form: ZCDP, Rho: r("1")}, Limit{Form: ZCDP, Epsilon: Never, Rho: one}},
		"zcdp, δ": {LimitSpec{Form: ZCDP, Rho: r("1"), Delta: r("1e-6")},
			Limit{Form: ZCDP, Epsilon: Never, Rho: one, Delta: micro, TotalDelta: micro}},
		"approx, no δ": {LimitSpec{Form: Approx, Epsilon: r("1")}, Limit{Form: Approx, Epsilon: one, Rho: Never}},
		"approx, least": {LimitSpec{Form: Approx, Epsilon: r("1"), Delta: r("1e-18")},
			Limit{Form: Approx, Epsilon: one, Rho: Never, TotalDelta: 1}},
		"approx": {LimitSpec{Form: Approx, Epsilon: r("1"), Delta: r("1e-6")},
			Limit{Form: Approx, Epsilon: one, Rho: accounting.RhoFor(one, micro/2), Delta: micro / 2, TotalDelta: micro}},
		"approx, odd δ": {LimitSpec{Form: Approx, Epsilon: r("1"), Delta: r("1001e-18")},
			Limit{Form: Approx, Epsilon: one, Rho: accounting.RhoFor(one, 501), Delta: 500, TotalDelta: 1001}},
		"cap on a query": {LimitSpec{Form: ZCDP, Rho: r("1"), MaxEpsilonPerQuery: r("0.5")},
			Limit{Form: ZCDP, Epsilon: Never, Rho: one, PerQuery: one / 2, PerQueryRho: accounting.RhoFor(one/2, DisplayDelta)}},
		"replay only": {LimitSpec{ReplayOnly: true}, Limit{Form: Pure, Rho: Never, ReplayOnly: true}},
		"replay only, budgeted": {LimitSpec{Form: Pure, Epsilon: r("1"), ReplayOnly: true},
			Limit{Form: Pure, Epsilon: one, Rho: Never, ReplayOnly: true}},
		"rounded down": {LimitSpec{Form: Pure, Epsilon: r("0.0000000000019"), Delta: r("1.9e-18")},
			Limit{Form: Pure, Epsilon: 1, Rho: Never, Delta: 1, TotalDelta: 1}},
		"nothing": {LimitSpec{Form: Pure, Epsilon: r("0")}, Limit{Form: Pure, Rho: Never}},
		"largest": {LimitSpec{Form: Pure, Epsilon: r("1000000")}, Limit{Form: Pure, Epsilon: accounting.MaxAmount * one, Rho: Never}},
	} {
		if got, err := NewLimit(c.spec); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	if l, err := NewLimit(LimitSpec{Form: Approx, Epsilon: r("20"), Delta: r("1e-6")}); err != nil || l.Rho <= 0 {
		t.Errorf("the demo's cap has no ρ: %+v, %v", l, err)
	}
}

func TestNewLimitRefusesNonsense(t *testing.T) {
	r := func(text string) *big.Rat { return rational(t, text) }
	for word, specs := range map[string][]LimitSpec{
		"form": {{}, {Form: "monthly", Epsilon: r("1")}, {Epsilon: r("1"), ReplayOnly: true},
			{Rho: r("1"), ReplayOnly: true}, {Delta: r("0"), ReplayOnly: true}},
		"epsilon is missing": {{Form: Pure}, {Form: Approx, Delta: r("1e-6")}},
		"rho is missing":     {{Form: ZCDP}},
		"not rho":            {{Form: Pure, Epsilon: r("1"), Rho: r("1")}, {Form: Approx, Rho: r("1")}},
		"not epsilon":        {{Form: ZCDP, Epsilon: r("1")}},
		"negative":           {{Form: Pure, Epsilon: r("-1e-30")}, {Form: ZCDP, Rho: r("-1")}},
		"at most 1000000":    {{Form: Pure, Epsilon: r("1000000.000000000001")}, {Form: ZCDP, Rho: r("1e308")}},
		"delta must be":      {{Form: Pure, Epsilon: r("1"), Delta: r("1")}, {Form: Approx, Epsilon: r("1"), Delta: r("-1e-9")}},
		"must be more than 0": {{Form: Pure, Epsilon: r("1"), MaxEpsilonPerQuery: r("0")},
			{Form: Pure, Epsilon: r("1"), MaxEpsilonPerQuery: r("1e-13")}},
		"max_epsilon_per_query ": {{Form: Pure, Epsilon: r("1"), MaxEpsilonPerQuery: r("-1")},
			{Form: Pure, Epsilon: r("1"), MaxEpsilonPerQuery: r("1e9")}},
	} {
		for _, spec := range specs {
			l, err := NewLimit(spec)
			if fault.CodeOf(err) != fault.CodeRequestBudget || !strings.Contains(err.Error(), word) || l != (Limit{}) {
				t.Errorf("%+v: got %+v, %v; want %q", spec, l, err, word)
			}
		}
	}
}

// The promise of an approx budget holds at both ends of its rule: all of the ρ clause spent, or all of the ε clause, and all
// of the spendable δ, add up to no more than was declared.
func TestApproxCapsAddUpToThePromise(t *testing.T) {
	for _, eps := range []string{"0.01", "1", "3", "20", "1000"} {
		for _, delta := range []string{"1e-15", "1e-9", "1e-6", "0.01"} {
			l, err := NewLimit(LimitSpec{Form: Approx, Epsilon: rational(t, eps), Delta: rational(t, delta)})
			if err != nil {
				t.Fatal(err)
			}
			atLimit, ok := accounting.EpsilonFor(l.Rho, l.ConversionDelta())
			if !ok || atLimit > l.Epsilon+2 { // another α than RhoFor's may be a unit worse; each is sound by itself
				t.Errorf("(%s, %s): ρ %d stands for ε %d", eps, delta, l.Rho, atLimit)
			}
			if l.ConversionDelta()+l.Delta != l.TotalDelta || int64(l.TotalDelta) != units(t, delta, int64(mechanisms.DeltaUnit)) {
				t.Errorf("(%s, %s): δ %d and %d", eps, delta, l.ConversionDelta(), l.Delta)
			}
		}
	}
}

// An account that is not open yet has its first tranche, and how much it has by when.
func TestTranchesRelease(t *testing.T) {
	limit, err := NewLimit(LimitSpec{Form: Pure, Epsilon: big.NewRat(1, 1),
		Tranche: TrancheSpec{Every: time.Hour, Epsilon: big.NewRat(3, 10)}})
	if err != nil {
		t.Fatal(err)
	}
	opened := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for after, tenths := range map[time.Duration]int64{
		-48 * time.Hour: 3, 0: 3, time.Hour - 1: 3, time.Hour: 6, 2 * time.Hour: 9, 3*time.Hour - 1: 9, 3 * time.Hour: 10,
		100 * 365 * 24 * time.Hour: 10,
	} {
		want := mechanisms.PicoEpsilon(tenths) * mechanisms.EpsilonUnit / 10
		if got := limit.Released(opened, opened.Add(after)).Epsilon; got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
		if b := (Balance{Account: Account{Limit: limit}, Opened: opened}); b.WorstCase(opened.Add(after)) != (Promise{Epsilon: want,
			Bounded: true}) {
			t.Errorf("after %s: %+v", after, b.WorstCase(opened.Add(after)))
		}
	}
	if got := limit.Released(time.Time{}, opened).Epsilon; got != mechanisms.EpsilonUnit*3/10 {
		t.Errorf("before it is opened: %s", got)
	}
}

func rational(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return r
}

// units is ⌊x·unit⌋.
func units(t testing.TB, text string, unit int64) int64 {
	return exact.FloorUnits(rational(t, text), unit)
}
