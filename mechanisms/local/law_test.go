package local

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
)

// everyProtocol is one of each mechanism, for an ε.
func everyProtocol(t testing.TB, epsilon string) []*Protocol {
	t.Helper()
	return []*Protocol{
		protocol(t, Choice, KRR, epsilon, 5), protocol(t, Choice, SUE, epsilon, 5), protocol(t, Choice, OUE, epsilon, 5),
		protocol(t, Choice, OLH, epsilon, 5), protocol(t, Number, Duchi, epsilon, 1), protocol(t, Number, Piecewise, epsilon, 1),
		protocol(t, Number, Laplace, epsilon, 1), protocol(t, Vector, Laplace, epsilon, 3),
	}
}

// apart are two values whose laws differ most.
func (p *Protocol) apart() (one, other []int64) {
	switch p.parameters.Kind {
	case Choice:
		return []int64{0}, []int64{int64(p.parameters.Size - 1)}
	case Number:
		return []int64{0}, []int64{Grid}
	default:
		one, other = make([]int64, p.parameters.Size), make([]int64, p.parameters.Size)
		one[0], other[1] = Whole, Whole
		return one, other
	}
}

func sampler(t testing.TB, names ...string) *mechanisms.Sampler {
	return mechanisms.NewSamplerFrom(randomtest.Source(append([]string{t.Name()}, names...)...))
}

func mustReport(t testing.TB, p *Protocol, s *mechanisms.Sampler, truth []int64) Report {
	t.Helper()
	r, err := p.Report(s, truth)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRatioIsAtMostTheClaim computes, for many ε, the largest ratio of probabilities from the integers that coins are decided with: it
// is at most e^ε, and at least e^ε less what rounding to 2⁻⁵³ may cost.
func TestRatioIsAtMostTheClaim(t *testing.T) {
	one := big.NewRat(1, 1)
	odds := func(p *big.Rat) *big.Rat { return new(big.Rat).Quo(p, new(big.Rat).Sub(one, p)) }
	const bits = 400
	for _, epsilon := range []string{"0.01", "0.1", "0.5", "1", "1.7", "2", "3", "4", "8", "16"} {
		for _, p := range everyProtocol(t, epsilon)[:6] {
			var ratio *big.Rat
			switch s := p.scheme.(type) {
			case response:
				ratio = new(big.Rat).Quo(s.hit(), s.miss())
			case hashed:
				ratio = new(big.Rat).Quo(s.hit(), s.miss())
			case sign:
				ratio = new(big.Rat).Quo(s.hit(), s.miss())
			case piecewise:
				ratio = new(big.Rat).Quo(s.hit(), s.miss())
			case unary:
				ratio = new(big.Rat).Quo(odds(s.chance(s.set)), odds(s.chance(s.other)))
			}
			// ratio·e^-ε, between its bounds.
			lo, hi := exact.ExpNeg(p.parameters.Epsilon.Rat(), bits)
			scale := new(big.Int).Lsh(big.NewInt(1), bits)
			most := new(big.Rat).Mul(ratio, new(big.Rat).SetFrac(hi, scale))
			least := new(big.Rat).Mul(ratio, new(big.Rat).SetFrac(lo, scale))
			if most.Cmp(one) > 0 {
				t.Errorf("%s at ε %s: ratio %s of e^ε", p.parameters.Mechanism, epsilon, most.FloatString(20))
			}
			if float(least) < 1-1e-6 {
				t.Errorf("%s at ε %s gives away %s of e^ε", p.parameters.Mechanism, epsilon, least.FloatString(20))
			}
		}
		for _, p := range everyProtocol(t, epsilon)[6:] {
			if got := p.scheme.(additive).law.Loss().Epsilon; got != p.parameters.Epsilon {
				t.Errorf("%s: ε %s, want %s", p.parameters.Kind, got, epsilon)
			}
		}
	}
}

// event turns a report into a number on which the two values of apart differ most.
func (p *Protocol) event(r Report) float64 {
	one, other := p.apart()
	switch s := p.scheme.(type) {
	case unary:
		first, last := slices.Contains(r, one[0]), slices.Contains(r, other[0])
		return bit(first)*2 + bit(last)
	case hashed:
		return bit(s.hash(r[0], r[1], one[0]) == r[2])*2 + bit(s.hash(r[0], r[1], other[0]) == r[2])
	case additive:
		if len(r) > 1 {
			return float64(min(max(r[0], 0), Whole) - min(max(r[1], 0), Whole)) // the likelihood ratio is a function of it
		}
		return float64(r[0])
	case piecewise:
		return float64(uint64(r[0])/s.width) + bit(uint64(r[0]) >= Grid)/2
	default:
		return float64(r[0])
	}
}

func bit(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// TestAuditOfReports: what 30,000 reports of either of two values prove is at most the claimed ε, and most of it; and a device with twice
// the ε is found out. The randomness is fixed; drawn anew, each certificate errs with probability 1e-9.
func TestAuditOfReports(t *testing.T) {
	const draws, rate = 30_000, stattest.FalseAlarm(1e-9)
	certify := func(t *testing.T, p *Protocol, name string) float64 {
		s, d := sampler(t, name), stattest.Draws{}
		one, other := p.apart()
		for range draws {
			d.With = append(d.With, p.event(mustReport(t, p, s, one)))
			d.Without = append(d.Without, p.event(mustReport(t, p, s, other)))
		}
		c, err := d.Certify(0, rate)
		if err != nil {
			t.Fatal(err)
		}
		return c.Epsilon
	}
	for i, p := range everyProtocol(t, "1") {
		t.Run(string(p.parameters.Kind+" "+Kind(p.parameters.Mechanism)), func(t *testing.T) {
			if got := certify(t, p, "right"); got > 1 || got < 0.7 {
				t.Errorf("certified ε %.3f of a claim of 1", got)
			}
			if got := certify(t, everyProtocol(t, "2")[i], "wrong"); got <= 1 {
				t.Errorf("twice the ε is certified as %.3f", got)
			}
		})
	}
}

// fits fails the test if counts were not drawn from the law; false alarm 1e-9.
func fits(t *testing.T, counts []int64, probabilities []float64) {
	t.Helper()
	fit, err := stattest.ChiSquare(counts, probabilities)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Rejects(stattest.PerTest) {
		t.Errorf("not the law: %+v\ncounts %v", fit, counts)
	}
}

// TestLawOfReports: reports are drawn from the law that the constants say, for every truth of a small domain.
func TestLawOfReports(t *testing.T) {
	const draws = 20_000
	for truth := range int64(5) {
		for _, m := range []Mechanism{KRR, SUE, OUE, OLH} {
			p := protocol(t, Choice, m, "1.5", 5)
			c := supportOf(t, p)
			s, tally := sampler(t, string(m), string(rune('0'+truth))), p.NewTally()
			for range draws {
				p.Add(&tally, mustReport(t, p, s, []int64{truth}))
			}
			for i, count := range tally.Cells {
				chance := c.q
				if int64(i) == truth {
					chance = c.p
				}
				fits(t, []int64{count, draws - count}, []float64{chance, 1 - chance})
			}
		}
	}
	for _, truth := range []int64{0, 1, Grid / 3, Grid} {
		s, counts := sampler(t, "piecewise", big.NewInt(truth).String()), make([]int64, 3)
		p := protocol(t, Number, Piecewise, "1.5", 1)
		w := p.scheme.(piecewise).window
		for range draws {
			switch r := mustReport(t, p, s, []int64{truth}); {
			case r[0] < truth:
				counts[0]++
			case uint64(r[0]) < uint64(truth)+w.width:
				counts[1]++
			default:
				counts[2]++
			}
		}
		hit, miss := float(w.hit()), float(w.miss())
		before := float64(truth) * miss
		inside := float64(w.width) * hit
		fits(t, counts, []float64{before, inside, 1 - before - inside})

		p = protocol(t, Number, Duchi, "1.5", 1)
		tally := p.NewTally()
		for range draws {
			p.Add(&tally, mustReport(t, p, s, []int64{truth}))
		}
		chance := 0.5 + (2*float64(truth)/Grid-1)*math.Tanh(0.75)/2
		fits(t, []int64{tally.Cells[0], draws - tally.Cells[0]}, []float64{chance, 1 - chance})
	}
}

// TestHashesArePairwiseIndependent: over all functions, two values have one class as often as two of g faces agree. The count is
// exact for a small prime; for the protocol's it follows from residues that differ by one at most.
func TestHashesArePairwiseIndependent(t *testing.T) {
	const small, g = 101, 4
	together := 0
	for a := range small {
		for b := range small {
			if (a*3+b)%small%g == (a*8+b)%small%g {
				together++
			}
		}
	}
	if share := float64(together) / (small * small); math.Abs(share-1.0/g) > 1.0/small {
		t.Errorf("two values collide with probability %g", share)
	}
	for _, g := range []float64{2, 4, 2982, 8886112} { // of ε from 0.01 to 16
		over := math.Mod(prime, g)
		floor := math.Floor(prime / g)
		collide := (over*(floor+1)*(floor+1) + (g-over)*floor*floor) / (prime * prime)
		if math.Abs(collide-1/g) > 1.0/(1<<30) {
			t.Errorf("g %g: two values collide with probability 1/g + %g", g, collide-1/g)
		}
	}
}

// TestAutoIsTheBest: auto chooses the mechanism of the least variance; where it counts bytes, the variance of OLH is that of OUE.
func TestAutoIsTheBest(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		epsilon string
		size    int
		want    Mechanism
	}{
		{Choice, "1", 7, KRR}, {Choice, "1", 10, KRR}, {Choice, "1", 11, OUE}, {Choice, "1", 16, OUE}, {Choice, "1", 42, OUE},
		{Choice, "4", 42, KRR}, {Choice, "1", 1000, OUE}, {Choice, "1", 1001, OLH}, {Choice, "16", 10_000, KRR},
		{Number, "0.5", 1, Duchi}, {Number, "1", 1, Duchi}, {Number, "2", 1, Piecewise}, {Number, "4", 1, Piecewise},
		{Number, "16", 1, Piecewise}, {Vector, "1", 10, Laplace},
	} {
		p := protocol(t, c.kind, Auto, c.epsilon, c.size)
		if got := p.Parameters().Mechanism; got != c.want {
			t.Errorf("%s of %d at ε %s: %s, want %s", c.kind, c.size, c.epsilon, got, c.want)
		}
		for _, m := range []Mechanism{KRR, OUE, Duchi, Piecewise, Laplace} {
			other, err := New(Parameters{Kind: c.kind, Mechanism: m, Epsilon: p.parameters.Epsilon, Size: c.size})
			if err == nil && c.size <= maxUnary && other.scheme.worst() < p.scheme.worst()*(1-1e-12) {
				t.Errorf("%s of %d at ε %s: %s has variance %g, %s %g", c.kind, c.size, c.epsilon, m, other.scheme.worst(), c.want,
					p.scheme.worst())
			}
		}
	}
}

func TestParametersAreChecked(t *testing.T) {
	const one = mechanisms.EpsilonUnit
	for name, c := range map[string]struct {
		p    Parameters
		want error
	}{
		"no kind":            {Parameters{Mechanism: Auto, Epsilon: one, Size: 2}, ErrKind},
		"no ε":               {Parameters{Kind: Choice, Mechanism: Auto, Size: 2}, ErrEpsilon},
		"too much ε":         {Parameters{Kind: Choice, Mechanism: Auto, Epsilon: 17 * one, Size: 2}, ErrEpsilon},
		"one value":          {Parameters{Kind: Choice, Mechanism: Auto, Epsilon: one, Size: 1}, ErrSize},
		"too many values":    {Parameters{Kind: Choice, Mechanism: Auto, Epsilon: one, Size: MaxChoices + 1}, ErrSize},
		"too many bits":      {Parameters{Kind: Choice, Mechanism: OUE, Epsilon: one, Size: maxUnary + 1}, ErrSize},
		"two numbers":        {Parameters{Kind: Number, Mechanism: Auto, Epsilon: one, Size: 2}, ErrSize},
		"one coordinate":     {Parameters{Kind: Vector, Mechanism: Auto, Epsilon: one, Size: 1}, ErrSize},
		"noise on a choice":  {Parameters{Kind: Choice, Mechanism: Laplace, Epsilon: one, Size: 2}, ErrMechanism},
		"a choice's, number": {Parameters{Kind: Number, Mechanism: KRR, Epsilon: one, Size: 1}, ErrMechanism},
		"a choice's, vector": {Parameters{Kind: Vector, Mechanism: KRR, Epsilon: one, Size: 2}, ErrMechanism},
		"no mechanism":       {Parameters{Kind: Choice, Epsilon: one, Size: 2}, ErrMechanism},
	} {
		if _, err := New(c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestTruthsAndReportsAreChecked: values and reports that are none are refused, and every report that is made is one.
func TestTruthsAndReportsAreChecked(t *testing.T) {
	s := sampler(t)
	truths := map[Kind][][]int64{
		Choice: {nil, {-1}, {5}, {0, 1}}, Number: {nil, {-1}, {Grid + 1}, {0, 1}},
		Vector: {nil, {Whole}, {Whole, 1, 0}, {Whole + 1, -1, 0}, {Whole, 0, 0, 0}, {math.MaxInt64, math.MaxInt64, 2}},
	}
	reports := map[Mechanism][]Report{
		KRR: {nil, {-1}, {5}, {1, 2}}, SUE: {{5}, {-1}, {1, 1}, {2, 1}}, OUE: {{5}, {-1, 0}, {0, 0}, {3, 0}},
		OLH:   {nil, {1, 2}, {prime, 0, 0}, {0, prime, 0}, {0, 0, 4}, {-1, 0, 0}, {0, 0, 0, 0}},
		Duchi: {nil, {2}, {-1}, {0, 0}}, Piecewise: {nil, {-1}, {Grid * 2}, {0, 0}},
		Laplace: {nil, {math.MaxInt64}, {math.MinInt64}, {0, 0}, {0, 0, math.MaxInt64}},
	}
	for _, p := range everyProtocol(t, "1") {
		for _, truth := range truths[p.parameters.Kind] {
			if _, err := p.Report(s, truth); !errors.Is(err, ErrTruth) {
				t.Errorf("%s reports %v: %v", p.parameters.Mechanism, truth, err)
			}
		}
		for _, r := range reports[p.parameters.Mechanism] {
			if err := p.Check(r); !errors.Is(err, ErrReport) {
				t.Errorf("%s accepts %v", p.parameters.Mechanism, r)
			}
		}
		one, other := p.apart()
		for range 200 {
			for _, truth := range [][]int64{one, other} {
				if r := mustReport(t, p, s, truth); p.Check(r) != nil {
					t.Errorf("%s refuses its own %v", p.parameters.Mechanism, r)
				}
			}
		}
	}
}

// FuzzCheck: what is accepted as a report can be counted, and moves no cell by more than its bound.
func FuzzCheck(f *testing.F) {
	protocols := everyProtocol(f, "1")
	f.Add(uint8(0), []byte{3})
	f.Add(uint8(1), []byte{1, 2, 4})
	f.Add(uint8(3), []byte{1, 2, 3})
	f.Add(uint8(7), []byte{1, 200, 3})
	f.Fuzz(func(t *testing.T, which uint8, numbers []byte) {
		p := protocols[int(which)%len(protocols)]
		r := Report{}
		for _, n := range numbers {
			r = append(r, int64(n)-2)
		}
		if p.Check(r) != nil {
			return
		}
		tally := p.NewTally()
		if p.Add(&tally, r); tally.Reports != 1 || !p.Fits(tally) {
			t.Errorf("%s: %+v", p.parameters.Mechanism, tally)
		}
		for _, cell := range tally.Cells {
			if float64(max(cell, -cell))*MaxReports > math.MaxInt64 {
				t.Errorf("%s: %d reports of %v overflow", p.parameters.Mechanism, MaxReports, r)
			}
		}
	})
}

// TestExtremeReportsFit: so many of the largest reports as a tally may count fit 64 bits.
func TestExtremeReportsFit(t *testing.T) {
	for _, epsilon := range []string{"0.01", "16"} {
		for _, p := range everyProtocol(t, epsilon)[4:] {
			largest := make(Report, len(p.NewTally().Cells))
			switch s := p.scheme.(type) {
			case sign:
				largest = Report{1}
			case piecewise:
				largest = Report{int64(s.classes - 1)}
			case additive:
				for i := range largest {
					largest[i] = s.whole + s.reach
				}
			}
			tally := p.NewTally()
			if p.Check(largest) != nil {
				t.Fatalf("%s refuses %v", p.parameters.Mechanism, largest)
			}
			p.Add(&tally, largest)
			for _, cell := range tally.Cells {
				if cell > math.MaxInt64/MaxReports {
					t.Errorf("%s at ε %s: a cell of %d", p.parameters.Mechanism, epsilon, cell)
				}
			}
		}
	}
}
