package pate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// TestLossesOfModes: what a query costs, by mode and by teachers per person, in exact numbers.
func TestLossesOfModes(t *testing.T) {
	rho := func(num, den int64) mechanisms.PicoRho { // rounded up
		return mechanisms.PicoRho((num*int64(mechanisms.RhoUnit) + den - 1) / den)
	}
	confident := Settings{Mode: Confident, Threshold: "200", Sigma1: "150", Sigma2: "40"}
	interactive := confident
	interactive.Mode, interactive.StudentConfidence = Interactive, "0.9"
	for _, c := range []struct {
		settings  Settings
		perPerson int64
		check     mechanisms.Loss
		answer    mechanisms.Loss
	}{
		// ρ of lnmax is 2·x·tanh(x/2), x = k/b: for each of two counts, that of discrete Laplace noise under a move by k, each rounded up.
		{Settings{Mode: LNMax, NoiseScale: "20"}, 1, mechanisms.Loss{},
			mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 10, Rho: 2_499_479_298}},
		{Settings{Mode: GNMax, Sigma: "40"}, 1, mechanisms.Loss{}, mechanisms.Loss{Unbounded: true, Rho: rho(1, 1600)}},
		{Settings{Mode: GNMax, Sigma: "40"}, 3, mechanisms.Loss{}, mechanisms.Loss{Unbounded: true, Rho: rho(9, 1600)}},
		{Settings{Mode: GNMax, Sigma: "0.3"}, 1, mechanisms.Loss{}, mechanisms.Loss{Unbounded: true, Rho: rho(100, 9)}},
		{confident, 1, mechanisms.Loss{Unbounded: true, Rho: rho(1, 45_000)}, mechanisms.Loss{Unbounded: true, Rho: rho(1, 1600)}},
		{confident, 2, mechanisms.Loss{Unbounded: true, Rho: rho(4, 45_000)}, mechanisms.Loss{Unbounded: true, Rho: rho(4, 1600)}},
		{interactive, 1, mechanisms.Loss{Unbounded: true, Rho: rho(1, 45_000)}, mechanisms.Loss{Unbounded: true, Rho: rho(1, 1600)}},
		{Settings{Mode: Gumbel, Gamma: "0.05"}, 1, mechanisms.Loss{}, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 10, Rho: rho(1, 800)}},
		{Settings{Mode: Gumbel, Gamma: "0.05"}, 5, mechanisms.Loss{}, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 2, Rho: rho(1, 32)}},
	} {
		t.Run(fmt.Sprintf("%s k=%d", c.settings.Mode, c.perPerson), func(t *testing.T) {
			m := modeOf(t, ensembleOf(t, 10, 250, c.perPerson), c.settings)
			for what, pair := range map[string][2]mechanisms.Loss{
				"one check":  {m.Released(1, 0), c.check},
				"one query":  {m.WorstCase(1), c.check.Plus(c.answer)},
				"seven":      {m.WorstCase(7), m.Released(7, 7)},
				"a rejected": {m.Released(7, 6), m.Released(6, 6).Plus(m.Released(1, 0))},
				"none":       {m.WorstCase(0), mechanisms.Loss{}},
				"endless":    {m.WorstCase(math.MaxInt64).Plus(m.WorstCase(1)), m.WorstCase(math.MaxInt64)},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s costs %+v, want %+v", what, pair[0], pair[1])
				}
			}
		})
	}
}

// TestHistogramCostsWhatItsArgmaxCosts: both are post-processing of the same noisy counts.
func TestHistogramCostsWhatItsArgmaxCosts(t *testing.T) {
	e := ensembleOf(t, 3, 100, 1)
	for _, s := range []Settings{{Mode: GNMax, Sigma: "5"}, {Mode: LNMax, NoiseScale: "5"},
		{Mode: Confident, Threshold: "0", Sigma1: "1", Sigma2: "5"}} {
		label := modeOf(t, e, s)
		s.Return = ReturnHistogram
		histogram := modeOf(t, e, s)
		if label.WorstCase(1) != histogram.WorstCase(1) {
			t.Errorf("%s: %+v for a label, %+v for the histogram", s.Mode, label.WorstCase(1), histogram.WorstCase(1))
		}
		out, _, err := histogram.Label(fixedSampler(t), mechanisms.SealVector([]int64{0, 100, 0}), Student{})
		if err != nil || len(out.Histogram) != 3 || out.Label != argmax(out.Histogram) {
			t.Errorf("%s: %+v, %v", s.Mode, out, err)
		}
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	e := ensembleOf(t, 3, 100, 1)
	for name, s := range map[string]Settings{
		"no mode":             {},
		"unknown mode":        {Mode: "majority"},
		"missing noise":       {Mode: GNMax},
		"another's parameter": {Mode: GNMax, Sigma: "1", NoiseScale: "1"},
		"zero noise":          {Mode: GNMax, Sigma: "0"},
		"negative noise":      {Mode: GNMax, Sigma: "-1"},
		"too little noise":    {Mode: LNMax, NoiseScale: "0.0000001"},
		"not a number":        {Mode: Gumbel, Gamma: "NaN"},
		"too much":            {Mode: Gumbel, Gamma: "1e30"},
		"no threshold":        {Mode: Confident, Sigma1: "1", Sigma2: "1"},
		"confidence of two":   {Mode: Interactive, Sigma1: "1", Sigma2: "1", Threshold: "1", StudentConfidence: "2"},
		"histogram of gumbel": {Mode: Gumbel, Gamma: "1", Return: ReturnHistogram},
		"unknown return":      {Mode: Gumbel, Gamma: "1", Return: "votes"},
	} {
		if _, err := NewMode(e, s); fault.CodeOf(err) != fault.CodePateParameters {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnsemblesThatAreRefused(t *testing.T) {
	for name, p := range map[string]EnsembleParameters{
		"no class":          {Teachers: 5},
		"equal names":       {Classes: []string{"a", "a"}, Teachers: 5},
		"no name":           {Classes: []string{"a", ""}, Teachers: 5},
		"not UTF-8":         {Classes: []string{"a", "\xff"}, Teachers: 5},
		"a zero byte":       {Classes: []string{"a", "b\x00"}, Teachers: 5},
		"no teachers":       {Classes: []string{"a", "b"}},
		"too many teachers": {Classes: []string{"a", "b"}, Teachers: MaxTeachers + 1},
		"k above teachers":  {Classes: []string{"a", "b"}, Teachers: 5, MaxTeachersPerPerson: 6},
		"k below 0":         {Classes: []string{"a", "b"}, Teachers: 5, MaxTeachersPerPerson: -1},
	} {
		if _, err := NewEnsemble(p); fault.CodeOf(err) != fault.CodePateEnsemble {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpellingMakesNoOtherQuestion: one question, however it is spelled, is stored under one key, so that asking again gives no fresh
// noise.
//
// covers: A84
func TestSpellingMakesNoOtherQuestion(t *testing.T) {
	e := ensembleOf(t, 3, 100, 1)
	want := modeOf(t, e, Settings{Mode: GNMax, Sigma: "40"}).Settings()
	for _, s := range []Settings{{Mode: GNMax, Sigma: "40.0"}, {Mode: GNMax, Sigma: "4e1"}, {Mode: GNMax, Sigma: "40", Return: ReturnLabel}} {
		if got := modeOf(t, e, s).Settings(); got != want {
			t.Errorf("%+v became %+v, want %+v", s, got, want)
		}
	}
	text, err := json.Marshal(modeOf(t, e, Settings{Mode: GNMax, Sigma: "2.5"}).Describe())
	if err != nil {
		t.Fatal(err)
	}
	const description = `{"mechanism":"gnmax","sigma":"5/2","return":"label","teachers":100,"classes":3,"max_teachers_per_person":1,` +
		`"answer":{"mechanism":"discrete_gaussian","sensitivity":"sqrt(2)","variance":"25/4"}}`
	if string(text) != description {
		t.Errorf("described as %s", text)
	}
}

// TestStudentsRoundHalvesUp: 8.5 is 9 and 9.5 is 10, so that a vote moves the rounded difference by one; half to even would give 8 and 10.
func TestStudentsRoundHalvesUp(t *testing.T) {
	e := ensembleOf(t, 2, 25, 1)
	half := big.NewRat(1, 2)
	s, err := NewStudent(e, []*big.Rat{half, half}) // M·p = 12.5
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]int64{21: 9, 22: 10, 4: -8, 3: -9} {
		if got := n + s.offsets[0]; got != want {
			t.Errorf("%d - 12.5 is rounded to %d, want %d", n, got, want)
		}
	}
}

func TestStudentsThatAreRefused(t *testing.T) {
	e := ensembleOf(t, 2, 25, 1)
	for name, p := range map[string][]*big.Rat{
		"too few":       {big.NewRat(1, 1)},
		"too much":      {big.NewRat(1, 1), big.NewRat(1, 100)},
		"negative":      {big.NewRat(3, 2), big.NewRat(-1, 2)},
		"missing":       {big.NewRat(1, 1), nil},
		"nothing added": {new(big.Rat), new(big.Rat)},
	} {
		if _, err := NewStudent(e, p); fault.CodeOf(err) != fault.CodePateStudent {
			t.Errorf("%s: %v", name, err)
		}
	}
	one, two := big.NewRat(1, 1), big.NewRat(2, 2)
	a, err := NewStudent(e, []*big.Rat{one, new(big.Rat)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewStudent(e, []*big.Rat{two, new(big.Rat)})
	if err != nil || a.Key() != b.Key() || a.Key() == (Student{}).Key() {
		t.Errorf("keys %s and %s, %v", a.Key(), b.Key(), err)
	}
}

// TestRowsThatDoNotAddUp: a row in which somebody votes twice, or not at all, is named; its counts are not.
//
// covers: A82
func TestRowsThatDoNotAddUp(t *testing.T) {
	e := ensembleOf(t, 3, 777, 1)
	for name, counts := range map[string][]uint32{
		"one votes twice": {777, 0, 0, 700, 78, 0},
		"one is missing":  {777, 0, 0, 700, 76, 0},
		"overflow":        {777, 0, 0, math.MaxUint32, 778, 0},
	} {
		_, err := NewTable(e, counts)
		if fault.CodeOf(err) != fault.CodePateVotes || !strings.Contains(err.Error(), "row 2") || strings.ContainsAny(err.Error(), "678") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := e.Seal(counts[3:]); fault.CodeOf(err) != fault.CodePateVotes {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewTable(e, []uint32{777, 0}); fault.CodeOf(err) != fault.CodePateVotes {
		t.Errorf("half a row: %v", err)
	}
}

// TestOneTeacherMovesTheHistogramByTwo: what one person can change, over random votes and students: 2k in sum, k in each count,
// 2k² in squares, and k in what the check looks at.
//
// covers: A82
func TestOneTeacherMovesTheHistogramByTwo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		classes, k := rapid.IntRange(2, 8).Draw(rt, "classes"), rapid.IntRange(1, 4).Draw(rt, "k")
		votes := rapid.SliceOfN(rapid.IntRange(0, classes-1), k, 40).Draw(rt, "votes")
		shares := rapid.SliceOfN(rapid.Int64Range(0, 1000), classes, classes).Draw(rt, "shares")
		shares[0]++
		total := int64(0)
		for _, x := range shares {
			total += x
		}
		var p []*big.Rat
		for _, x := range shares {
			p = append(p, big.NewRat(x, total))
		}
		student, err := NewStudent(ensembleOf(t, classes, int64(len(votes)), int64(k)), p)
		if err != nil {
			rt.Fatal(err)
		}
		tally := func(votes []int) []uint32 {
			counts := make([]uint32, classes)
			for _, c := range votes {
				counts[c]++
			}
			return counts
		}
		neighbour := slices.Clone(votes)
		for i := range k { // k teachers hold this person's data
			neighbour[i] = rapid.IntRange(0, classes-1).Draw(rt, "vote")
		}
		a, b := tally(votes), tally(neighbour)
		var l1, l2, linf float64
		for i := range a {
			d := math.Abs(float64(a[i]) - float64(b[i]))
			l1, l2, linf = l1+d, l2+d*d, max(linf, d)
		}
		check := math.Abs(float64(largestSum(a, student.offsets) - largestSum(b, student.offsets)))
		plain := math.Abs(float64(largestSum(a, nil) - largestSum(b, nil)))
		if kf := float64(k); l1 > 2*kf || l2 > 2*kf*kf || linf > kf || check > kf || plain > kf {
			rt.Errorf("L1 %g, L2² %g, L∞ %g, check %g and %g for k = %d", l1, l2, linf, check, plain, k)
		}
	})
}

// FuzzSettings: whatever is asked for is refused as parameters, or has a price that is positive, more for an answer than for a check, and
// a canonical form.
func FuzzSettings(f *testing.F) {
	f.Add("gnmax", "", "40", "", "", "", "", "", "")
	f.Add("lnmax", "0.000001", "", "", "", "", "", "", "histogram")
	f.Add("confident", "", "", "1e-6", "1e9", "0", "", "", "label")
	f.Add("interactive", "", "", "150", "40", "99.5", "", "0.9", "")
	f.Add("gumbel", "", "", "", "", "", "1e9", "", "")
	f.Fuzz(func(t *testing.T, mode, scale, sigma, sigma1, sigma2, threshold, gamma, confidence, returns string) {
		m, err := NewMode(ensembleOf(t, 3, 100, 2), Settings{
			Mode: ModeName(mode), NoiseScale: scale, Sigma: sigma, Sigma1: sigma1, Sigma2: sigma2, Threshold: threshold, Gamma: gamma,
			StudentConfidence: confidence, Return: Return(returns),
		})
		if err != nil {
			if fault.CodeOf(err) != fault.CodePateParameters {
				t.Fatal(err)
			}
			return
		}
		check, query := m.Released(1, 0), m.WorstCase(1)
		dearer := query.Rho > check.Rho || check.Rho == math.MaxInt64 // which no budget admits
		if check.Rho < 0 || !dearer || query.Epsilon < check.Epsilon || !query.Unbounded && query.Epsilon <= 0 {
			t.Errorf("a check costs %+v, a query %+v", check, query)
		}
		if m.Settings().Mode != ModeName(mode) || m.Settings().Return == "" {
			t.Errorf("canonical settings %+v", m.Settings())
		}
	})
}
