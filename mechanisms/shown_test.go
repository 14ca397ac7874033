package mechanisms

import (
	"encoding/csv"
	"errors"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"noisegate.example/internal/testfiles"
)

func shownCount(t testing.TB, epsilon, delta string, perGroup, total int64) *ShownCount {
	t.Helper()
	e, err := ParseEpsilon(epsilon)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDelta(delta)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewShownCount(ShownCountParameters{Epsilon: e, Delta: d, PerGroup: big.NewInt(perGroup), Total: big.NewInt(total)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// slowShown is the law of Z and the least threshold, by sums.
func slowShown(epsilon, delta float64, perGroup, total int64) (k int64, mass []float64) {
	q := math.Exp(-epsilon / float64(total))
	for k = perGroup; ; k++ {
		sum := 0.0
		mass = make([]float64, 2*k+1) // of -k to k
		for z := -k; z <= k; z++ {
			mass[z+k] = math.Pow(q, math.Abs(float64(z)))
			sum += mass[z+k]
		}
		tail := func(d int64) float64 { // P(Z > k-d)
			p := 0.0
			for _, w := range mass[int64(len(mass))-d:] {
				p += w / sum
			}
			return p
		}
		if float64(total/perGroup)*tail(perGroup)+tail(total%perGroup) <= delta {
			for i := range mass {
				mass[i] /= sum
			}
			return k, mass
		}
	}
}

type shownCase struct {
	epsilon, delta  string
	perGroup, total int64
	threshold       int64
}

func shownCases() []shownCase {
	return []shownCase{
		{"1", "1e-6", 1, 1, 14}, {"0.5", "1e-3", 1, 1, 12}, {"2", "1e-5", 1, 3, 18}, {"1", "1e-3", 2, 2, 13}, {"3", "1e-4", 2, 3, 10},
		{"2", "1e-3", 2, 6, 22},
	}
}

// Thresholds are the least that keep to δ, and golden; the law by its closed form is that by sums.
func TestShownCountThresholds(t *testing.T) {
	for _, c := range shownCases() {
		m := shownCount(t, c.epsilon, c.delta, c.perGroup, c.total)
		e, _ := strconv.ParseFloat(c.epsilon, 64)
		d, _ := strconv.ParseFloat(c.delta, 64)
		k, mass := slowShown(e, d, c.perGroup, c.total)
		if m.Threshold() != k || k != c.threshold {
			t.Errorf("%+v: threshold %d, by sums %d", c, m.Threshold(), k)
		}
		above := 0.0
		for z := k; z >= -k-1; z-- {
			if got := m.beyond(z); math.Abs(got-above) > 1e-12*above+1e-15 {
				t.Errorf("%+v: P(Z > %d) = %g, want %g", c, z, got, above)
			}
			if z >= -k {
				above += mass[z+k]
			}
		}
	}
}

// Whatever the parameters, the threshold keeps to δ, and one less does not.
func TestShownCountThresholdIsLeast(t *testing.T) {
	for _, epsilon := range []PicoEpsilon{1, 1_000_000, EpsilonUnit / 3, 40 * EpsilonUnit, MaxEpsilon} {
		for _, delta := range []AttoDelta{1, DeltaUnit / 1_000_000, DeltaUnit / 3, DeltaUnit - 1} {
			for _, bound := range [][2]int64{{1, 1}, {1, 1000}, {3, 7}, {500, 1000}, {1_000_000, 1_000_000}} {
				m, err := NewShownCount(ShownCountParameters{Epsilon: epsilon, Delta: delta,
					PerGroup: big.NewInt(bound[0]), Total: big.NewInt(bound[1])})
				if errors.Is(err, errUnsizable) && epsilon == 1 && delta == 1 { // beyond maxShown
					continue
				}
				if err != nil {
					t.Fatalf("ε %v, δ %v, %v: %v", epsilon, delta, bound, err)
				}
				if k := m.threshold; k < bound[0] || !m.keeps(k) || k > bound[0] && m.keeps(k-1) {
					t.Errorf("ε %v, δ %v, %v: %d is not the least threshold", epsilon, delta, bound, k)
				}
			}
		}
	}
}

// outcome is the law of one group's release: the probability of each noisy count that is shown, by how much it is above k, and at 0
// that of not being shown.
func outcome(m *ShownCount, n, most int64) []float64 {
	law, k := make([]float64, most+1), m.threshold
	law[0] = 1 - m.beyond(k-n)
	for y := k + 1; y <= n+k; y++ {
		law[y-k] = m.beyond(y-n-1) - m.beyond(y-n)
	}
	return law
}

// divergence is the largest δ of two joint laws of independent groups at ε, in both directions.
func divergence(with, without [][]float64, epsilon float64) float64 {
	var walk func(i int, p, q float64) float64
	walk = func(i int, p, q float64) float64 {
		if p == 0 {
			return 0
		}
		if i == len(with) {
			return math.Max(0, p-math.Exp(epsilon)*q)
		}
		sum := 0.0
		for y := range with[i] {
			sum += walk(i+1, p*with[i][y], q*without[i][y])
		}
		return sum
	}
	forward := walk(0, 1, 1)
	with, without = without, with
	return math.Max(forward, walk(0, 1, 1))
}

// The exact privacy loss over up to three groups, in six cases, with counts around every edge: never above δ, and the worst is the bound of
// the threshold but for 2 %.
func TestShownCountIsPrivate(t *testing.T) {
	for _, c := range shownCases() {
		m := shownCount(t, c.epsilon, c.delta, c.perGroup, c.total)
		epsilon, _ := strconv.ParseFloat(c.epsilon, 64)
		delta, _ := strconv.ParseFloat(c.delta, 64)
		k := m.threshold
		bound := float64(c.total/c.perGroup) * m.beyond(k-c.perGroup)
		var moves []int64 // the worst split
		for left := c.total; left > 0; left -= c.perGroup {
			moves = append(moves, min(left, c.perGroup))
		}
		if rest := c.total % c.perGroup; rest > 0 {
			bound += m.beyond(k - rest)
		}
		splits := [][]int64{moves, {1}, {c.perGroup}}
		counts, worst := []int64{0, 1, k / 2, k - 1, k, k + 1, 2 * k}, 0.0
		for _, split := range splits {
			with, without := make([][]float64, len(split)), make([][]float64, len(split))
			var visit func(i, from int)
			visit = func(i, from int) {
				if i == len(split) {
					worst = math.Max(worst, divergence(with, without, epsilon))
					return
				}
				for j := from; j < len(counts); j++ {
					most := counts[j] + split[i] + k
					with[i], without[i] = outcome(m, counts[j]+split[i], most), outcome(m, counts[j], most)
					next := j
					if i+1 < len(split) && split[i+1] != split[i] {
						next = 0
					}
					if len(split) > 2 && testing.Short() {
						next = len(counts) - 1
					}
					visit(i+1, next)
				}
			}
			visit(0, 0)
		}
		if worst > delta || worst > bound*(1+1e-6) || worst < 0.98*bound {
			t.Errorf("%+v: δ %g of %g, the bound is %g", c, worst, delta, bound)
		}
	}
}

// A threshold that is one less loses more than δ: the enumeration sees it.
func TestShownCountOfLowerThresholdIsCaught(t *testing.T) {
	m := shownCount(t, "1", "1e-6", 1, 1)
	m.threshold--
	if got := divergence([][]float64{outcome(m, 1, 40)}, [][]float64{outcome(m, 0, 40)}, 1); got <= 1e-6 {
		t.Errorf("δ %g at a threshold of %d", got, m.threshold)
	}
}

// The law of what is released, at counts around the threshold (false alarm 1e-9 each).
func TestShownCountLaw(t *testing.T) {
	m := shownCount(t, "1", "1e-3", 2, 2)
	for _, n := range []int64{1, 5, 13, 14, 26, 40} {
		most := n + m.threshold
		counts, s := make([]int64, most+1), fixedSampler(t)
		for range 40_000 {
			if noisy, shown := m.Release(s, SealInt64(n)); shown {
				counts[noisy.Int64()-m.threshold]++
			} else {
				counts[0]++
			}
		}
		if law := outcome(m, n, most); law[0] < 0.999 {
			fits(t, counts, law)
		}
	}
	for range 10_000 {
		if _, shown := m.Release(fixedSampler(t), Exact{}); shown {
			t.Fatal("a group without rows is shown")
		}
	}
}

// Among the groups that are shown intervals hold with their level, at every count: by the exact law, nothing is drawn.
func TestShownCountIntervals(t *testing.T) {
	for _, c := range shownCases() {
		m := shownCount(t, c.epsilon, c.delta, c.perGroup, c.total)
		for _, level := range []Confidence{0.5, 0.8, 0.95, 0.999} {
			for n := int64(1); n <= 3*m.threshold+2; n++ {
				law := outcome(m, n, n+m.threshold)
				held := 0.0
				for above := int64(1); above < int64(len(law)); above++ {
					lo, hi := m.Interval(big.NewInt(m.threshold+above), level)
					if lo.Cmp(big.NewInt(n)) <= 0 && hi.Cmp(big.NewInt(n)) >= 0 {
						held += law[above]
					}
				}
				if shown := 1 - law[0]; shown > 1e-12 && held < (float64(level)-1e-9)*shown {
					t.Errorf("%+v: of %d held %g at %g", c, n, held/shown, level)
				}
			}
			// Where a group is shown for sure, the interval is that of the noise.
			y := big.NewInt(10 * m.threshold)
			lo, hi := m.Interval(y, level)
			if width, most := new(big.Int).Sub(hi, lo), m.HalfWidth(level); width.Cmp(most.Lsh(most, 1)) > 0 {
				t.Errorf("%+v: [%s, %s] at %g", c, lo, hi, level)
			}
		}
		if at := m.ShownAt(0.95); m.beyond(m.threshold-at) < 0.95 || m.beyond(m.threshold-at+1) >= 0.95 {
			t.Errorf("%+v: shown at %d", c, at)
		}
	}
}

func TestShownCountCharge(t *testing.T) {
	m := shownCount(t, "1", "1e-6", 1, 1)
	if l := m.Loss(); l.Epsilon != EpsilonUnit || l.Delta != DeltaUnit/1_000_000 || l.Rho != 462_117_157_261 || !l.Pure() {
		t.Errorf("%+v", l)
	}
	p := m.Parameters()
	if want := (Parameters{Mechanism: ShownCounts, Sensitivity: "1", PerGroup: "1", Scale: "1", Epsilon: "1",
		Delta: p.Delta, Count: 14}); p != want || p.Delta == "" {
		t.Errorf("%+v", p)
	}
	in, err := NewShownCount(ShownCountParameters{Rho: 462_117_157_261, Delta: DeltaUnit / 1_000_000, PerGroup: big.NewInt(1),
		Total: big.NewInt(1)})
	if err != nil || in.Loss().Rho > 462_117_157_261 || in.Loss().Epsilon < EpsilonUnit-10_000 {
		t.Errorf("%+v, %v", in, err)
	}
	good := ShownCountParameters{Epsilon: 1, Delta: 1, PerGroup: big.NewInt(2), Total: big.NewInt(3)}
	for name, change := range map[string]func(*ShownCountParameters){
		"no price":     func(p *ShownCountParameters) { p.Epsilon = 0 },
		"two prices":   func(p *ShownCountParameters) { p.Rho = 1 },
		"no delta":     func(p *ShownCountParameters) { p.Delta = 0 },
		"all delta":    func(p *ShownCountParameters) { p.Delta = DeltaUnit },
		"no bound":     func(p *ShownCountParameters) { p.PerGroup = new(big.Int) },
		"less in all":  func(p *ShownCountParameters) { p.Total = big.NewInt(1) },
		"never shown":  func(p *ShownCountParameters) { p.Total = new(big.Int).Lsh(big.NewInt(1), 60) },
		"huge a group": func(p *ShownCountParameters) { p.PerGroup, p.Total = big.NewInt(1<<55), big.NewInt(1<<55) },
	} {
		p := good
		change(&p)
		if _, err := NewShownCount(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The 42 countries of Adult at ε 1 and δ 10⁻⁶, 200 times: more of them are shown than when half of the price selects them and half pays
// for their counts, with half of the error. Noise is the same in each run.
func TestShownCountsOfAdult(t *testing.T) {
	file, err := os.Open(testfiles.FetchedOr(t, "data/adult/adult.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column, people := slices.Index(rows[0], "native_country"), map[string]int64{}
	for _, row := range rows[1:] {
		people[row[column]]++
	}
	var counts []int64
	for _, n := range people {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	noise, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Epsilon: EpsilonUnit / 2})
	if err != nil {
		t.Fatal(err)
	}
	together, selection := shownCount(t, "1", "1e-6", 1, 1), groupSelection(t, "0.5", "1e-6", 1)
	const times = 200
	var seen, held, squares, apart, squaresApart float64
	s := fixedSampler(t)
	for range times {
		for _, n := range counts {
			if noisy, shown := together.Release(s, SealInt64(n)); shown {
				lo, hi := together.Interval(noisy, 0.95)
				if seen++; lo.Int64() <= n && n <= hi.Int64() {
					held++
				}
				squares += float64((noisy.Int64() - n) * (noisy.Int64() - n))
			}
			if selection.Keep(s, SealInt64(n)) {
				off := noiseFloat(noise.Draw(s))
				apart++
				squaresApart += off * off
			}
		}
	}
	off, offApart := math.Sqrt(squares/seen), math.Sqrt(squaresApart/apart)
	t.Logf("together %.2f over %.1f groups, %.3f of intervals hold; apart %.2f over %.1f", off, seen/times, held/seen, offApart, apart/times)
	if len(counts) != 42 || off > 1.6 || seen < 36*times || off > offApart*0.6 || held < 0.95*seen {
		t.Errorf("root mean square error %.2f over %.1f of %d groups, %.3f of the intervals hold", off, seen/times, len(counts), held/seen)
	}
}
