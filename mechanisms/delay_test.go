package mechanisms

import (
	"math"
	"testing"

	"noisegate.example/internal/exact"
)

// lawOfDelay is the probability of each delay from 0 to 2s, in floating point.
func lawOfDelay(d *Delay) []float64 {
	rate := exact.Float(d.parameters.Epsilon.Rat()) / float64(d.parameters.Unit)
	law, sum := make([]float64, 2*d.shift+1), 0.0
	for i := range law {
		law[i] = math.Exp(-rate * math.Abs(float64(int64(i)-d.shift)))
		sum += law[i]
	}
	for i := range law {
		law[i] /= sum
	}
	return law
}

// TestDelayIsPrivate: times that differ by up to Unit, delayed, have laws that are (ε, δ)-close in both directions, and
// no smaller shift has; outside an event of probability δ they are ε-close.
//
// covers: W.4
func TestDelayIsPrivate(t *testing.T) {
	for _, p := range []DelayParameters{
		{Unit: 1, Epsilon: EpsilonUnit, Delta: DeltaUnit / 10}, {Unit: 3, Epsilon: EpsilonUnit / 2, Delta: DeltaUnit / 100},
		{Unit: 50, Epsilon: EpsilonUnit / 2, Delta: DeltaUnit / 1_000_000_000}, {Unit: 7, Epsilon: 4 * EpsilonUnit, Delta: DeltaUnit / 1000},
		{Unit: 20, Epsilon: EpsilonUnit / 100, Delta: DeltaUnit / 100}, {Unit: 5, Epsilon: EpsilonUnit / 10, Delta: DeltaUnit / 20},
		{Unit: 1, Epsilon: 20 * EpsilonUnit, Delta: DeltaUnit / 3},
	} {
		d, err := NewDelay(p)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		epsilon, delta := exact.Float(p.Epsilon.Rat()), exact.Float(p.Delta.Rat())
		// lost is what the definition of (ε, δ) gives as δ for a shift by m, and whether ratios on the common support keep to ε.
		lost := func(law []float64, m int64) (float64, bool) {
			total, pure := 0.0, true
			for y, mass := range law {
				other := 0.0
				if at := int64(y) - m; at >= 0 && at < int64(len(law)) {
					other = law[at]
				}
				total += max(0, mass-math.Exp(epsilon)*other)
				if ratio := math.Log(mass / other); other > 0 && math.Abs(ratio) > epsilon*(1+1e-9) {
					pure = false
				}
			}
			return total, pure
		}
		law := lawOfDelay(d)
		for m := -p.Unit; m <= p.Unit; m++ {
			if got, pure := lost(law, m); got > delta*(1+1e-9) || !pure {
				t.Errorf("%+v, shift %d: times %d apart lose δ %g, want %g; pure outside: %v", p, d.shift, m, got, delta, pure)
			}
		}
		tail := 0.0
		for _, mass := range law[:p.Unit] {
			tail += mass
		}
		if d.shift > p.Unit {
			d.shift--
			shorter, more := lawOfDelay(d), 0.0
			for _, mass := range shorter[:p.Unit] {
				more += mass
			}
			if more <= delta || tail > delta*(1+1e-9) {
				t.Errorf("%+v: δ %g at the shift %d and %g at one less, want %g between", p, tail, d.shift+1, more, delta)
			}
		}
	}
}

// TestDelayOfPolicies: the example of the documentation, 5 ms in microseconds at ε 0.5 and δ 1e-9, delays by 0.2 s.
//
// covers: W.4
func TestDelayOfPolicies(t *testing.T) {
	d, err := NewDelay(DelayParameters{Unit: 5000, Epsilon: EpsilonUnit / 2, Delta: DeltaUnit / 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if d.Shift() < 190_000 || d.Shift() > 200_000 {
		t.Errorf("%d µs", d.Shift())
	}
	if l := d.Loss(); l.Epsilon != EpsilonUnit/2 || l.Delta != DeltaUnit/1_000_000_000 || l.Unbounded || l.Rho != rhoOfPure(l.Epsilon.Rat()) {
		t.Errorf("%+v", l)
	}
	t.Log(d.Shift())
}

// TestDelayLaw: each delay is as likely as the law says. Hoeffding: with 200,000 draws a share is off by 0.0086 with a probability below
// 2·exp(-2·200000·0.0086²) = 2.9e-13; there are 2s+1 = 45 of them at most.
//
// covers: W.4
func TestDelayLaw(t *testing.T) {
	const draws, off = 200_000, 0.0086
	d, err := NewDelay(DelayParameters{Unit: 3, Epsilon: EpsilonUnit, Delta: DeltaUnit / 50})
	if err != nil {
		t.Fatal(err)
	}
	law, seen, s := lawOfDelay(d), make([]int, 2*d.shift+1), fixedSampler(t)
	if len(law) > 45 {
		t.Fatalf("%d", len(law))
	}
	for range draws {
		seen[d.Draw(s)]++ // beyond the support it panics
	}
	for x, n := range seen {
		if got := float64(n) / draws; math.Abs(got-law[x]) > off {
			t.Errorf("a delay of %d has the share %.4f, want %.4f", x, got, law[x])
		}
	}
}

// TestDelayRefuses what is out of range.
func TestDelayRefuses(t *testing.T) {
	for _, p := range []DelayParameters{
		{Unit: 0, Epsilon: EpsilonUnit, Delta: 1}, {Unit: -1, Epsilon: EpsilonUnit, Delta: 1}, {Unit: 1, Epsilon: 0, Delta: 1},
		{Unit: 1, Epsilon: EpsilonUnit, Delta: 0}, {Unit: 1, Epsilon: EpsilonUnit, Delta: DeltaUnit},
		{Unit: 1, Epsilon: EpsilonUnit / 10, Delta: DeltaUnit / 9},
		{Unit: 1, Epsilon: MaxEpsilon + 1, Delta: 1}, {Unit: 1 << 62, Epsilon: EpsilonUnit, Delta: 1},
		{Unit: 1 << 49, Epsilon: EpsilonUnit / 100, Delta: 1},
	} {
		if d, err := NewDelay(p); err == nil {
			t.Errorf("%+v: shift %d", p, d.shift)
		}
	}
}
