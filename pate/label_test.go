package pate

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
)

// dictated is noise that a trace dictates.
type dictated struct {
	mechanisms.Additive
	noises []mechanisms.Noise
}

func (d *dictated) Draw(*mechanisms.Sampler) mechanisms.Noise {
	n := d.noises[0]
	d.noises = d.noises[1:]
	return n
}

// finest is the factor that makes counts and noise of the traces integers.
const finest = 200

// TestDecisionTracesMeetGoldenVectors runs Label itself with the noise of the traces. Only package mechanisms makes noise: so it is drawn
// until every value of the traces has come up.
func TestDecisionTracesMeetGoldenVectors(t *testing.T) {
	units := func(x float64) int64 { return int64(math.Round(x * finest)) }
	wanted := map[int64]bool{}
	for _, r := range records(t, "f") {
		if strings.HasPrefix(r.ID, "trace/") {
			wanted[units(in[float64](t, r, "noise1"))] = true
			for _, x := range in[[]float64](t, r, "noise2") {
				wanted[units(x)] = true
			}
		}
	}
	source, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(1), Scale: big.NewRat(20*finest, 1)})
	if err != nil {
		t.Fatal(err)
	}
	sampler, found := fixedSampler(t), map[int64]mechanisms.Noise{}
	for len(found) < len(wanted) {
		n := source.Draw(sampler)
		if x := n.Release(mechanisms.SealInt64(0)).Int64(); wanted[x] {
			found[x] = n
		}
	}
	golden(t, "f", "trace/", 18, func(t *testing.T, r record) {
		counts := in[[]int64](t, r, "counts")
		for i := range counts {
			counts[i] *= finest
		}
		e := ensembleOf(t, len(counts), in[int64](t, r, "M")*finest, 1)
		s := Settings{Mode: in[ModeName](t, r, "mode"), Threshold: decimal(in[float64](t, r, "T") * finest), Sigma1: "1", Sigma2: "1"}
		var student Student
		if s.Mode == Interactive {
			s.StudentConfidence = decimal(in[float64](t, r, "gamma"))
			var p []*big.Rat
			for _, x := range in[[]float64](t, r, "student_probabilities") {
				p = append(p, new(big.Rat).SetFloat64(x))
			}
			var err error
			if student, err = NewStudent(e, p); err != nil {
				t.Fatal(err)
			}
		}
		m := modeOf(t, e, s)
		first, second := &dictated{Additive: m.check}, &dictated{Additive: m.noise}
		first.noises = []mechanisms.Noise{found[units(in[float64](t, r, "noise1"))]}
		for _, x := range in[[]float64](t, r, "noise2") {
			second.noises = append(second.noises, found[units(x)])
		}
		m.check, m.noise = first, second
		got, loss, err := m.Label(sampler, mechanisms.SealVector(counts), student)
		if err != nil {
			t.Fatal(err)
		}
		want := Outcome{Status: Status(out[string](t, r, "step1")), Label: NoLabel}
		if label := out[*int](t, r, "label"); label != nil {
			want.Label = *label
		}
		if got.Status != want.Status || got.Label != want.Label {
			t.Errorf("%+v, want %+v", got, want)
		}
		if answered := got.Status == Answered; loss != m.Released(1, map[bool]int64{true: 1}[answered]) {
			t.Errorf("%s costs %+v", got.Status, loss)
		}
	})
}

// TestLabelsOfOthersAreDefects: votes of another ensemble, and students where none belong, are refused.
func TestLabelsOfOthersAreDefects(t *testing.T) {
	e := ensembleOf(t, 3, 10, 1)
	third := big.NewRat(1, 3)
	student, err := NewStudent(e, []*big.Rat{third, third, third})
	if err != nil {
		t.Fatal(err)
	}
	gnmax := modeOf(t, e, Settings{Mode: GNMax, Sigma: "1"})
	interactive := modeOf(t, e, Settings{Mode: Interactive, Threshold: "1", Sigma1: "1", Sigma2: "1", StudentConfidence: "0.5"})
	for name, c := range map[string]struct {
		mode    *Mode
		votes   []int64
		student Student
	}{
		"other classes":       {gnmax, []int64{5, 5}, Student{}},
		"superfluous student": {gnmax, []int64{5, 5, 0}, student},
		"missing student":     {interactive, []int64{5, 5, 0}, Student{}},
	} {
		if out, loss, err := c.mode.Label(fixedSampler(t), mechanisms.SealVector(c.votes), c.student); err == nil || !loss.IsZero() {
			t.Errorf("%s: %+v, %+v", name, out, loss)
		}
	}
}

// TestTablesDoNotLeak: no printer, logger or encoder shows the votes of a table.
func TestTablesDoNotLeak(t *testing.T) {
	table := tableOf(t, [][]uint32{{31_337, 1}, {1, 31_337}})
	holder := struct{ Votes *Table }{table}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		fmt.Fprintf(&shown, verb+"\n"+verb+"\n", table, holder)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("m", "votes", table, "holder", holder)
	}
	for _, form := range []string{"31337", "7a69"} {
		if strings.Contains(shown.String(), form) {
			t.Errorf("a table shows %s in %s", form, shown.String())
		}
	}
	for name, encode := range map[string]func() ([]byte, error){
		"json":   func() ([]byte, error) { return json.Marshal(holder) },
		"text":   table.MarshalText,
		"binary": table.MarshalBinary,
		"gob": func() ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(holder)
			return b.Bytes(), err
		},
	} {
		if out, err := encode(); err == nil {
			t.Errorf("%s encoded a table: %q", name, out)
		}
	}
}

// discreteLaw is the law of the argmax of counts with integer noise, summed term by term: P(i) = Σ_y f(y-n_i)·Π F(y-n_j - [j<i]),
// because an earlier class wins ties.
func discreteLaw(counts []int64, mass func(x int64) float64, reach int64) []float64 {
	below := make([]float64, 2*reach+2) // P(noise <= x) at x+reach
	total := 0.0
	for x := -reach; x <= reach; x++ {
		total += mass(x)
		below[x+reach] = total
	}
	at := func(x int64) float64 {
		switch {
		case x < -reach:
			return 0
		case x > reach:
			return 1
		}
		return below[x+reach] / total
	}
	p := make([]float64, len(counts))
	for i, n := range counts {
		for x := -reach; x <= reach; x++ {
			term := mass(x) / total
			for j, other := range counts {
				switch {
				case j < i:
					term *= at(n + x - other - 1)
				case j > i:
					term *= at(n + x - other)
				}
			}
			p[i] += term
		}
	}
	return p
}

func gaussianMass(sigma float64) func(int64) float64 {
	return func(x int64) float64 { return math.Exp(-float64(x*x) / (2 * sigma * sigma)) }
}

func laplaceMass(scale float64) func(int64) float64 {
	return func(x int64) float64 { return math.Exp(-math.Abs(float64(x)) / scale) }
}

// labelLaw is the exact law of what Label releases: a probability for each class, and for no label.
func labelLaw(m *Mode, counts []int64, student Student) []float64 {
	f := m.floats()
	var p []float64
	switch m.Name() {
	case LNMax:
		p = discreteLaw(counts, laplaceMass(f.scale), int64(45*f.scale)+1)
	case Gumbel:
		weights := make([]float64, len(counts))
		total := 0.0
		for i, n := range counts {
			weights[i] = math.Exp(f.gamma * float64(n-slices.Max(counts)))
			total += weights[i]
		}
		for _, w := range weights {
			p = append(p, w/total)
		}
	default:
		p = discreteLaw(counts, gaussianMass(f.sigma), int64(12*f.sigma)+1)
	}
	p = append(p, 0)
	if m.check == nil {
		return p
	}
	passed, all := 0.0, 0.0
	short := int64(f.threshold) - largestSum(toUint32(counts), student.offsets)
	mass := gaussianMass(f.check)
	for x := -int64(12 * f.check); x <= int64(12*f.check); x++ {
		all += mass(x)
		if x >= short {
			passed += mass(x)
		}
	}
	passed /= all
	for i := range p {
		p[i] *= passed
	}
	other := len(counts)
	if m.NeedsStudent() && student.probabilities[student.best].Cmp(m.certainty) > 0 {
		other = student.best
	}
	p[other] += 1 - passed
	return p
}

func toUint32(counts []int64) []uint32 {
	list := make([]uint32, len(counts))
	for i, n := range counts {
		list[i] = uint32(n)
	}
	return list
}

// audited are modes with little noise, so that neighbours differ visibly, for three classes and 20 teachers.
func audited(t *testing.T) (e Ensemble, modes []*Mode, student Student) {
	t.Helper()
	e = ensembleOf(t, 3, 20, 1)
	for _, s := range []Settings{
		{Mode: LNMax, NoiseScale: "2"},
		{Mode: GNMax, Sigma: "2.5"},
		{Mode: Confident, Threshold: "10", Sigma1: "2", Sigma2: "1.5"},
		{Mode: Interactive, Threshold: "4", Sigma1: "2", Sigma2: "1.5", StudentConfidence: "0.5"},
		{Mode: Gumbel, Gamma: "0.5"},
	} {
		modes = append(modes, modeOf(t, e, s))
	}
	student, err := NewStudent(e, []*big.Rat{big.NewRat(1, 5), big.NewRat(3, 5), big.NewRat(1, 5)})
	if err != nil {
		t.Fatal(err)
	}
	return e, modes, student
}

func (m *Mode) studentIfNeeded(s Student) Student {
	if m.NeedsStudent() {
		return s
	}
	return Student{}
}

// releases draws n outcomes as numbers: the class, or the number of classes for no label.
func releases(t *testing.T, m *Mode, counts []int64, student Student, n int) []int {
	t.Helper()
	s, list := fixedSampler(t), make([]int, n)
	for i := range list {
		out, _, err := m.Label(s, mechanisms.SealVector(slices.Clone(counts)), m.studentIfNeeded(student))
		if err != nil {
			t.Fatal(err)
		}
		if list[i] = out.Label; out.Label == NoLabel {
			list[i] = len(counts)
		}
	}
	return list
}

// TestLabelsFollowTheirExactLaw: in every mode, 10,000 labels of tied, split and unanimous votes fit the law that integer noise has
// (false alarm 1e-6 each).
//
// covers: A83
func TestLabelsFollowTheirExactLaw(t *testing.T) {
	_, modes, student := audited(t)
	for _, m := range modes {
		for _, counts := range [][]int64{{7, 7, 6}, {10, 7, 3}, {12, 3, 5}} {
			t.Run(fmt.Sprintf("%s %v", m.Name(), counts), func(t *testing.T) {
				law := labelLaw(m, counts, m.studentIfNeeded(student))
				seen := make([]int64, len(law))
				for _, label := range releases(t, m, counts, student, 10_000) {
					seen[label]++
				}
				fit, err := stattest.ChiSquare(seen, law)
				if err != nil {
					t.Fatal(err)
				}
				if fit.Rejects(stattest.PerTest) {
					t.Errorf("%v do not fit %v: %+v", seen, law, fit)
				}
			})
		}
	}
}

// TestLabelsLoseNoMoreThanIsCharged: 10,000 labels each of votes that differ in one teacher certify no more than what is charged (false
// alarm 1e-6 a mode, for two bounds on three pairs), and, so that the audit is known to see something, at least a part of it.
//
// covers: A83
func TestLabelsLoseNoMoreThanIsCharged(t *testing.T) {
	_, modes, student := audited(t)
	for _, m := range modes {
		t.Run(string(m.Name()), func(t *testing.T) {
			loss := m.WorstCase(1)
			best := stattest.Certificate{}
			for _, pair := range [][2][]int64{{{8, 7, 5}, {7, 8, 5}}, {{10, 10, 0}, {11, 9, 0}}, {{6, 10, 4}, {5, 11, 4}}} {
				d := stattest.Draws{}
				for _, x := range releases(t, m, pair[0], student, 10_000) {
					d.With = append(d.With, float64(x))
				}
				for _, x := range releases(t, m, pair[1], student, 10_000) {
					d.Without = append(d.Without, float64(x))
				}
				c, err := d.Certify(0, 1e-6/6)
				if err != nil {
					t.Fatal(err)
				}
				best.Epsilon, best.Rho = max(best.Epsilon, c.Epsilon), max(best.Rho, c.Rho)
			}
			epsilon, rho := float64(loss.Epsilon)/float64(mechanisms.EpsilonUnit), float64(loss.Rho)/float64(mechanisms.RhoUnit)
			if !loss.Unbounded && best.Epsilon > epsilon {
				t.Errorf("certified ε %g, charged %g", best.Epsilon, epsilon)
			}
			if best.Rho > rho {
				t.Errorf("certified ρ %g, charged %g", best.Rho, rho)
			}
			if best.Epsilon < 0.02 {
				t.Errorf("certified ε %g only: the audit is blind", best.Epsilon)
			}
			t.Logf("certified ε %.3f and ρ %.4f; charged ε %.3f (unbounded: %v) and ρ %.4f", best.Epsilon, best.Rho, epsilon, loss.Unbounded, rho)
		})
	}
}

// TestChargesDependOnOutcomesOnly: unanimous votes and split ones cost the same unless another status was released.
//
// covers: A83
func TestChargesDependOnOutcomesOnly(t *testing.T) {
	_, modes, student := audited(t)
	sampler := fixedSampler(t)
	for _, m := range modes {
		charged := map[Status]mechanisms.Loss{}
		for _, counts := range [][]int64{{20, 0, 0}, {7, 7, 6}, {0, 20, 0}} {
			for range 200 {
				out, loss, err := m.Label(sampler, mechanisms.SealVector(slices.Clone(counts)), m.studentIfNeeded(student))
				if err != nil {
					t.Fatal(err)
				}
				if before, seen := charged[out.Status]; seen && before != loss {
					t.Fatalf("%s: %s cost %+v and %+v", m.Name(), out.Status, before, loss)
				}
				charged[out.Status] = loss
			}
		}
	}
}

// fixedSampler draws the same noise in each run of a test.
func fixedSampler(t testing.TB) *mechanisms.Sampler {
	return mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))
}
