package budget_test

import (
	"math/big"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/mechanisms"
)

// What is released later is spent later: a forecast stops at closed tranches and goes on when they open.
func TestForecast(t *testing.T) {
	const unit, day = mechanisms.EpsilonUnit, 24 * time.Hour
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	on := func(days float64) time.Time { return begin.Add(time.Duration(days * float64(day))) }
	limit := func(spec budget.LimitSpec) budget.Limit {
		t.Helper()
		l, err := budget.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	whole := budget.LimitSpec{Form: budget.Pure, Epsilon: big.NewRat(3, 1)}
	parts := whole
	parts.Tranche = budget.TrancheSpec{Every: 10 * day, Epsilon: big.NewRat(1, 1)}
	rho := budget.LimitSpec{Form: budget.ZCDP, Rho: big.NewRat(2, 1), Tranche: budget.TrancheSpec{Every: 10 * day, Rho: big.NewRat(1, 1)}}
	for name, c := range map[string]struct {
		limit  budget.Limit
		spent  mechanisms.Loss
		now    float64
		pace   float64
		usedUp []time.Time // by window
		counts []int64
		lasts  time.Time
	}{
		"no tranches":              {limit(whole), mechanisms.Loss{Epsilon: unit}, 1, 0.25, []time.Time{on(9)}, []int64{20}, on(9)},
		"nothing is spent":         {limit(whole), mechanisms.Loss{Epsilon: unit}, 1, 0, []time.Time{{}}, []int64{20}, time.Time{}},
		"slower than its tranches": {limit(parts), mechanisms.Loss{}, 0, 0.0625, []time.Time{{}, {}, on(48)}, []int64{10, 20, 30}, on(48)},
		"faster than its tranches": {limit(parts), mechanisms.Loss{}, 0, 0.5, []time.Time{on(2), on(12), on(22)}, []int64{10, 20, 30}, on(22)},
		"all of the first is spent": {limit(parts), mechanisms.Loss{Epsilon: unit}, 5, 0.125, []time.Time{on(5), on(18), on(28)},
			[]int64{0, 10, 20}, on(28)},
		"a cap below what is spent": {limit(parts), mechanisms.Loss{Epsilon: 5 * unit / 2}, 5, 0.25, []time.Time{on(5), on(10), on(22)},
			[]int64{0, 0, 5}, on(22)},
		"all tranches are open":     {limit(parts), mechanisms.Loss{Epsilon: unit}, 25, 1, []time.Time{on(27)}, []int64{20}, on(27)},
		"in ρ":                      {limit(rho), mechanisms.Loss{Rho: 1}, 0, 0.25, []time.Time{on(4), on(14)}, nil, on(14)},
		"more than a hundred years": {limit(whole), mechanisms.Loss{}, 0, 1e-9, []time.Time{on(2 * 36600)}, []int64{30}, time.Time{}},
		"a loss without a finite ε": {limit(whole), mechanisms.Loss{Unbounded: true}, 3, 1, []time.Time{on(3)}, []int64{0}, on(3)},
		"more windows than it shows": {limit(budget.LimitSpec{Form: budget.Pure, Epsilon: big.NewRat(20, 1), Tranche: parts.Tranche}),
			mechanisms.Loss{}, 0, 1, []time.Time{on(1), on(11), on(21)}, []int64{10, 20, 30}, on(191)},
	} {
		b := budget.Balance{Account: budget.Account{Limit: c.limit}, Spent: c.spent, Opened: begin}
		f := b.Forecast(budget.ForecastParameters{Now: on(c.now), PerDay: c.pace, Counts: unit / 10, Windows: 3})
		if !near(f.LastsUntil, c.lasts) || len(f.Windows) != len(c.usedUp) {
			t.Errorf("%s: it lasts until %s, want %s; windows %+v", name, f.LastsUntil, c.lasts, f.Windows)
			continue
		}
		for i, w := range f.Windows {
			if !near(w.UsedUp, c.usedUp[i]) || c.counts != nil && w.Counts != c.counts[i] {
				t.Errorf("%s: window %d: %d counts, used up at %s; want %+v", name, i, w.Counts, w.UsedUp, c.usedUp[i])
			}
		}
	}
}

// near is equal but for floating point.
func near(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }
