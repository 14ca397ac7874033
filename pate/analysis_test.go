package pate

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// sharedTable reads one of the vote tables that are not the project's own.
func sharedTable(t testing.TB, name string) [][]uint32 {
	t.Helper()
	f, err := os.Open(testfiles.Fetched(t, "data/pate/"+name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var table [][]uint32
	for _, row := range rows {
		counts := make([]uint32, len(row))
		for i, cell := range row {
			n, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			counts[i] = uint32(n)
		}
		table = append(table, counts)
	}
	return table
}

// mnist are the first queries of the MNIST table of both papers.
func mnist(t testing.TB, queries int) *Table {
	t.Helper()
	return tableOf(t, sharedTable(t, "mnist_250_teachers")[:queries])
}

// student100 are the rows that the student of the 2017 paper asked for.
func student100(t testing.TB) *Table {
	t.Helper()
	var rows []int
	for _, row := range sharedTable(t, "mnist_250_teachers_100_indices_used_by_student") {
		rows = append(rows, int(row[0]))
	}
	table, err := mnist(t, 9000).Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// tableOf makes a table of rows with equal totals.
func tableOf(t testing.TB, rows [][]uint32) *Table {
	t.Helper()
	var flat []uint32
	teachers := int64(0)
	for i, row := range rows {
		for _, n := range row {
			if i == 0 {
				teachers += int64(n)
			}
		}
		flat = append(flat, row...)
	}
	table, err := NewTable(ensembleOf(t, len(rows[0]), teachers, 1), flat)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func ensembleOf(t testing.TB, classes int, teachers, perPerson int64) Ensemble {
	t.Helper()
	names := make([]string, classes)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	e, err := NewEnsemble(EnsembleParameters{Classes: names, Teachers: teachers, MaxTeachersPerPerson: perPerson})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func modeOf(t testing.TB, e Ensemble, s Settings) *Mode {
	t.Helper()
	m, err := NewMode(e, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// analyse analyses continuous noise at the orders of the reference.
func analyse(t testing.TB, table *Table, s Settings, p AnalysisParameters) *Analysis {
	t.Helper()
	p.Noise, p.Orders, p.Points = Continuous, ReferenceOrders(), 1
	a, err := modeOf(t, table.Ensemble(), s).Analyse(table, p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func total(t testing.TB, a *Analysis, m Method) Line {
	t.Helper()
	l, ok := a.Line(m)
	if !ok {
		t.Fatalf("no line %s", m)
	}
	return l
}

// decimal is a number as requests write it.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// inverse is 1/x as a decimal; the records have γ where requests have a scale.
func inverse(gamma float64) string { return decimal(math.Round(1e9/gamma) / 1e9) }

func TestLNMaxTablesMeetGoldenVectors(t *testing.T) {
	golden(t, "a", "lnmax/mnist_250_teachers/", 7, func(t *testing.T, r record) {
		table := student100(t)
		if !strings.Contains(in[string](t, r, "rows"), "student") {
			var rows int
			if _, after, ok := strings.Cut(r.ID, "teachers/"); ok {
				rows, _ = strconv.Atoi(strings.Split(after, "/")[0])
			}
			table = mnist(t, rows)
		}
		gamma, delta, moments := in[float64](t, r, "gamma"), in[float64](t, r, "delta"), in[int](t, r, "moments")
		a := analyse(t, table, Settings{Mode: LNMax, NoiseScale: inverse(gamma)}, AnalysisParameters{Delta: delta, Moments: moments})
		l := total(t, a, MomentsDependent)
		near(t, "epsilon", l.Total(), out[float64](t, r, "eps_data_dependent_with_theorem3_guard"))
		near(t, "epsilon, as the reference has it", l.Total(), out[float64](t, r, "eps_data_dependent"))
		near(t, "moment", l.Order-1, out[float64](t, r, "l_opt"))
		l = total(t, a, MomentsIndependent)
		near(t, "data-independent", l.Total(), out[float64](t, r, "eps_data_independent_moments"))
		near(t, "moment", l.Order-1, out[float64](t, r, "l_opt_data_independent"))
		near(t, "strong composition", total(t, a, StrongComposition).Total(), out[float64](t, r, "eps_data_independent_strong_composition"))
		near(t, "pure composition", total(t, a, PureComposition).Total(), out[float64](t, r, "eps_pure_composition"))

		want := out[[]float64](t, r, "log_mgf")
		if want == nil {
			return // records with 64 moments leave the lists out
		}
		for l := 1; l <= moments; l++ {
			sum := 0.0
			for q := range table.Queries() {
				sum += theorem3(logqLaplace(table.row(q), gamma, Continuous), gamma).moment(float64(l))
			}
			near(t, "log mgf", sum, want[l-1])
			near(t, "epsilon of a moment", (sum-math.Log(delta))/float64(l), out[[]float64](t, r, "eps_per_moment")[l-1])
		}
	})
}

func TestClosedFormsMeetGoldenVectors(t *testing.T) {
	golden(t, "a", "lnmax/paper_", 2, func(t *testing.T, r record) {
		got := strongComposition(in[float64](t, r, "T"), in[float64](t, r, "gamma"), in[float64](t, r, "delta"))
		near(t, "epsilon", got, out[float64](t, r, "eps"))
	})
	golden(t, "a", "lnmax/seed_51.5", 1, func(t *testing.T, r record) {
		// What the reference's script prints: 1,000 queries, whatever the number analysed.
		n, gamma, delta := in[float64](t, r, "num_examples"), in[float64](t, r, "gamma"), in[float64](t, r, "delta")
		smallest := math.Inf(1)
		for l := 1; l <= in[int](t, r, "moments"); l++ {
			smallest = min(smallest, (n*theorem3(0, gamma).moment(float64(l))-math.Log(delta))/float64(l))
		}
		near(t, "epsilon", smallest, out[float64](t, r, "eps"))
	})
	golden(t, "c", "gdp/", 1, func(t *testing.T, r record) {
		for i, sigma := range in[[]float64](t, r, "sigma") {
			got := gaussianEpsilon(math.Sqrt(in[float64](t, r, "m"))/sigma, in[float64](t, r, "delta"))
			near(t, "epsilon", got, out[[]float64](t, r, "eps")[i])
		}
	})
}

// at is a result of the reference: ε and the order that gave it.
type at struct{ Eps, Order float64 }

func (want at) check(t *testing.T, what string, epsilon, order float64) {
	t.Helper()
	near(t, what, epsilon, want.Eps)
	near(t, what+", order", order, want.Order)
}

func TestGNMaxTablesMeetGoldenVectors(t *testing.T) {
	golden(t, "c", "gnmax_table/", 4, func(t *testing.T, r record) {
		table := mnist(t, in[int](t, r, "rows"))
		sigma := in[float64](t, r, "sigma")
		for order, want := range out[map[string]float64](t, r, "rdp_at") {
			o, _ := strconv.ParseFloat(order, 64)
			sum := 0.0
			for q := range table.Queries() {
				sum += theorem6(logqGaussian(table.row(q), sigma, Continuous), sigma).rdp(o)
			}
			near(t, "rdp at "+order, sum, want)
		}
		for name := range r.Output {
			delta, ok := strings.CutPrefix(name, "delta_")
			if !ok {
				continue
			}
			d, _ := strconv.ParseFloat(delta, 64)
			want := out[map[string]json.RawMessage](t, r, name)
			a := analyse(t, table, Settings{Mode: GNMax, Sigma: decimal(sigma)}, AnalysisParameters{Delta: d})
			for field, method := range map[string]Method{
				"classic": ClassicDependent, "tight": TightDependent,
				"data_independent_classic": ClassicIndependent, "data_independent_tight": TightIndependent,
			} {
				l := total(t, a, method)
				value[at](t, want, field).check(t, field, l.Total(), l.Order)
			}
			near(t, "exact", total(t, a, ExactGaussian).Total(), value[float64](t, want, "data_independent_exact_gaussian"))
		}
	})
}

// baseline is the student of section f: sure of one label of the 2017 student, and indifferent between the others.
func baseline(t testing.TB, e Ensemble, label int, confidence float64) Student {
	t.Helper()
	p := make([]*big.Rat, e.ClassCount())
	for i := range p {
		p[i] = new(big.Rat).SetFloat64((1 - confidence) / float64(e.ClassCount()-1))
	}
	p[label].SetFloat64(confidence)
	s, err := NewStudent(e, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInteractiveTablesMeetGoldenVectors(t *testing.T) {
	golden(t, "f", "interactive_table/", 2, func(t *testing.T, r record) {
		table := mnist(t, in[int](t, r, "rows"))
		threshold := in[float64](t, r, "T")
		settings := Settings{
			Mode: Interactive, Threshold: decimal(threshold), Sigma1: decimal(in[float64](t, r, "sigma1")),
			Sigma2: decimal(in[float64](t, r, "sigma2")), StudentConfidence: "0.89",
		}
		var students []Student
		var outcomes []Status
		answered, reinforced := 0, 0
		for q, label := range sharedTable(t, "mnist_250_student_labels_lap_20")[:table.Queries()] {
			s := baseline(t, table.Ensemble(), int(label[0]), 0.9)
			students = append(students, s)
			if float64(largestSum(table.row(q), s.offsets)) >= threshold {
				outcomes = append(outcomes, Answered)
				answered++
			} else {
				outcomes = append(outcomes, Reinforced)
				reinforced++
			}
		}
		near(t, "answered", float64(answered), out[float64](t, r, "noiseless_answered"))
		near(t, "reinforced", float64(reinforced), out[float64](t, r, "noiseless_reinforced_if_gamma_below_0.9"))
		for name := range r.Output {
			delta, ok := strings.CutPrefix(name, "delta_")
			if !ok {
				continue
			}
			d, _ := strconv.ParseFloat(delta, 64)
			want := out[map[string]json.RawMessage](t, r, name)
			expected := analyse(t, table, settings, AnalysisParameters{Delta: d, Students: students})
			near(t, "expected answers", expected.Answered, out[float64](t, r, "expected_answered"))
			run := analyse(t, table, settings, AnalysisParameters{Delta: d, Students: students, Outcomes: outcomes})
			for field, l := range map[string]Line{
				"expected_cost_classic":              total(t, expected, ClassicDependent),
				"expected_cost_tight":                total(t, expected, TightDependent),
				"data_independent_expected_classic":  total(t, expected, ClassicIndependent),
				"noiseless_run_classic":              total(t, run, ClassicDependent),
				"noiseless_run_tight":                total(t, run, TightDependent),
				"data_independent_noiseless_classic": total(t, run, ClassicIndependent),
				"data_independent_noiseless_tight":   total(t, run, TightIndependent),
			} {
				value[at](t, want, field).check(t, field, l.Total(), l.Order)
			}
			near(t, "exact", total(t, run, ExactGaussian).Total(), value[float64](t, want, "data_independent_noiseless_exact_gaussian"))
			c := check{threshold: threshold, sigma: in[float64](t, r, "sigma1"), noise: Continuous}
			step := 0.0
			for q, s := range students {
				step += c.bound(float64(largestSum(table.row(q), s.offsets)), 1).rdp(total(t, expected, ClassicDependent).Order)
			}
			near(t, "checks", step, value[float64](t, want, "step1_rdp_at_classic_order"))
		}
	})
}

func TestInteractiveOfOneQueryMeetsGoldenVectors(t *testing.T) {
	golden(t, "f", "interactive1/", 5, func(t *testing.T, r record) {
		counts := countsOf(t, r)
		e := ensembleOf(t, len(counts), in[int64](t, r, "M"), 1)
		s := baseline(t, e, in[int](t, r, "student_label"), in[float64](t, r, "student_confidence"))
		v := float64(largestSum(counts, s.offsets))
		near(t, "largest difference, rounded", v, out[float64](t, r, "rounded"))
		c := check{threshold: in[float64](t, r, "T"), sigma: in[float64](t, r, "sigma1"), noise: Continuous}
		near(t, "logpr_answered", c.logAnswered(v), out[float64](t, r, "logpr_answered"))
		for i, order := range in[[]float64](t, r, "orders") {
			near(t, "threshold", c.bound(v, 1).rdp(order), out[[]float64](t, r, "rdp_threshold")[i])
		}
	})
}

// TestPublishedRuns are figures that papers, tutorials and our own designs quote, to the digits in which they are quoted.
func TestPublishedRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	quoted := func(t *testing.T, what string, got, want, half float64) {
		t.Helper()
		if math.Abs(got-want) > half {
			t.Errorf("%s = %.6g, want %g", what, got, want)
		}
	}
	t.Run("Glyph, 12,000 checks and 10,762 answers", func(t *testing.T) { // the tutorial quotes 10.14
		rho := 12_000/(2*square(500)) + 10_762/square(100)
		values := ReferenceOrders()
		for i := range values {
			values[i] *= rho
		}
		loose, _ := best(classic, values, ReferenceOrders(), 1e-8)
		strict, _ := best(tight, values, ReferenceOrders(), 1e-8)
		quoted(t, "classic", loose, 10.106, 5e-4)
		quoted(t, "tight", strict, 9.481, 5e-4)
		quoted(t, "exact", gaussianEpsilon(math.Sqrt(2*rho), 1e-8), 9.012, 5e-4)
	})
	t.Run("MNIST, 640 queries, exactly", func(t *testing.T) {
		table := mnist(t, 640)
		m := modeOf(t, table.Ensemble(), Settings{Mode: Confident, Threshold: "200", Sigma1: "150", Sigma2: "40"})
		a, err := m.Analyse(table, AnalysisParameters{Delta: 1e-5, Noise: Continuous, Points: 1, Exact: true,
			Orders: []float64{9, 12.5, 14, 17, 20}})
		if err != nil {
			t.Fatal(err)
		}
		quoted(t, "exact", total(t, a, ExactLocal).Total(), 0.946, 5e-4)
		quoted(t, "classic", total(t, a, ClassicDependent).Total(), 1.9988, 5e-5)
		quoted(t, "tight", total(t, a, TightDependent).Total(), 1.7119, 5e-5)
		quoted(t, "exact, without the votes", total(t, a, ExactGaussian).Total(), 2.527, 5e-4)
	})
	t.Run("MNIST, the 100 queries of 2017", func(t *testing.T) {
		for _, c := range []struct {
			scale   string
			moments int
			want    float64
		}{{"10", 8, 2.048561096236246}, {"10", 64, 1.407853}, {"20", 8, 1.958683}, {"20", 64, 1.437085}} {
			a := analyse(t, student100(t), Settings{Mode: LNMax, NoiseScale: c.scale}, AnalysisParameters{Delta: 1e-5, Moments: c.moments})
			quoted(t, "scale "+c.scale, total(t, a, MomentsDependent).Total(), c.want, 5e-7)
		}
	})
}

// Line finds a method's line.
func (a *Analysis) Line(m Method) (Line, bool) {
	for _, l := range a.Lines {
		if l.Method == m {
			return l, true
		}
	}
	return Line{}, false
}
