package budget

import (
	"time"

	"noisegate.example/mechanisms"
)

// Forecast is how long an account lasts if it goes on being spent at the same pace.
type Forecast struct {
	// Windows begin now, and whenever more of the cap is released.
	Windows []Window
	// LastsUntil is when the whole cap is used up; zero: not within a hundred years, or never.
	LastsUntil time.Time
}

// Window is a time in which no more of a cap is released.
type Window struct {
	From, Until time.Time // Until is zero when the whole cap is released
	Released    Limit     // the limit with the cap that is released
	Counts      int64     // how many more counts fit at the beginning, if nothing is spent before
	UsedUp      time.Time // when what is released is used up at the pace; zero: not in this window
}

// ForecastParameters say what a forecast starts from.
type ForecastParameters struct {
	Now     time.Time
	PerDay  float64                // the pace, in ε or ρ: see [Balance.InRho]; not negative
	Counts  mechanisms.PicoEpsilon // the ε of the counts that are counted
	Windows int                    // how many to show
}

// How far a forecast looks.
const (
	maxForecast        = 100 * 366 * 24 * time.Hour
	maxForecastWindows = 10_000
)

// InRho reports whether the account's rest is counted in ρ. It is for form zcdp, and after a charge without a finite ε.
func (b Balance) InRho() bool { return b.Limit.Form == ZCDP || b.Used().Unbounded }

// Forecast walks over the tranches that are still to come. It knows the cap as it is: refills that come later are nobody's to know.
func (b Balance) Forecast(p ForecastParameters) Forecast {
	var f Forecast
	used := b.inCurrency(b.Used().Epsilon, b.Used().Rho)
	for from, n := p.Now, 0; n < maxForecastWindows && from.Sub(p.Now) < maxForecast; n++ {
		w := Window{From: from, Released: b.Limit.Released(b.Opened, from)}
		if until, more := b.Limit.NextTranche(b.Opened, from); more {
			w.Until = until
		}
		w.UsedUp, used = w.spend(used, b.inCurrency(w.Released.Epsilon, w.Released.Rho), p.PerDay)
		if n < p.Windows {
			w.Counts = b.Counts(p.Counts, from)
			f.Windows = append(f.Windows, w)
		}
		if w.Until.IsZero() {
			if w.UsedUp.Sub(p.Now) < maxForecast {
				f.LastsUntil = w.UsedUp
			}
			return f
		}
		from = w.Until
	}
	return f
}

// inCurrency is an amount in ε or ρ, as a number.
func (b Balance) inCurrency(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) float64 {
	if b.InRho() {
		return float64(rho) / float64(mechanisms.RhoUnit)
	}
	return float64(epsilon) / float64(mechanisms.EpsilonUnit)
}

// spend goes through the window at a pace, and gives what is used at its end.
func (w Window) spend(used, released, perDay float64) (usedUp time.Time, after float64) {
	const day = float64(24 * time.Hour)
	left := released - used
	switch {
	case left <= 0:
		return w.From, used
	case perDay <= 0:
		return time.Time{}, used
	}
	// Rather too early than out of range, and rather a little early than late.
	lasts := time.Duration(min(left/perDay*day, float64(2*maxForecast)))
	if w.Until.IsZero() || lasts < w.Until.Sub(w.From) {
		return w.From.Add(lasts), released
	}
	return time.Time{}, used + perDay*float64(w.Until.Sub(w.From))/day
}
