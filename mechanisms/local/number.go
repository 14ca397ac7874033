package local

import (
	"math"
	"math/big"

	"noisegate.example/mechanisms"
)

// A number is a step i of [Grid]; its estimates and their variances are parts of the range, i/Grid.

// sign rounds the number to an end of its range, at random and without bias, and reports which by randomised response: 1 with
// probability ½ + (2i/Grid-1)·(e^ε-1)/(2(e^ε+1)).
type sign struct {
	window
	support
}

func newSign(epsilon mechanisms.PicoEpsilon) sign {
	w := newWindow(epsilon.Rat(), 2, 1)
	return sign{w, support{float(w.hit()), float(w.miss())}}
}

func (m sign) report(s source, truth []int64) Report {
	end := int64(0)
	if int64(s.uniform(Grid)) < truth[0] {
		end = 1
	}
	return Report{m.window.report(s, end)}
}

func (m sign) valid(r Report) bool         { return r.within(1, 2) }
func (m sign) cells() int                  { return 1 }
func (m sign) add(cells []int64, r Report) { cells[0] += r[0] }

// estimate: the reports are coins with chances π; the mean of π(1-π) is at most that of their mean.
func (m sign) estimate(cells []int64, n int64) []moment {
	share := float64(cells[0]) / float64(n)
	gap := m.p - m.q
	return []moment{{value: (share - m.q) / gap, variance: share * (1 - share) / (gap * gap * float64(n))}}
}

func (m sign) worst() float64 { return 0.25 / ((m.p - m.q) * (m.p - m.q)) }

func (m sign) constants() []Constant {
	return []Constant{{"grid", big.NewRat(Grid, 1)}, {"uniform", m.uniform()}, {"p", m.hit()}, {"q", m.miss()}}
}

// piecewise reports one of Grid+W cells: with probability u any, else one of the W that begin at the number's step. W is the whole number
// next to Grid·e^(-ε/2), which makes it the mechanism of Wang et al. 2019 on a grid: variance t²/(s-1) + (s+3)/(3(s-1)²) for t
// in [-1, 1], s = e^(ε/2). Any W is ε-DP.
type piecewise struct {
	window
	u float64
}

func newPiecewise(epsilon mechanisms.PicoEpsilon) piecewise {
	width := uint64(max(1, math.Round(Grid*math.Exp(-float(epsilon.Rat())/2))))
	w := newWindow(epsilon.Rat(), Grid+width, width)
	return piecewise{w, float(w.uniform())}
}

func (m piecewise) report(s source, truth []int64) Report {
	return Report{m.window.report(s, truth[0])}
}
func (m piecewise) valid(r Report) bool { return r.within(1, m.classes) }
func (m piecewise) cells() int          { return 2 }

// add counts cells from the middle one, doubled to stay whole, and their squares: below 2³⁸ each.
func (m piecewise) add(cells []int64, r Report) {
	off := 2*r[0] - int64(m.classes-1)
	cells[0] += off
	cells[1] += off * off >> squareBits
}

// squareBits are dropped from squares, so that sums of [MaxReports] fit 64 bits; they are small compared with the variance.
const squareBits = 4

// spread is the variance of uniform integers, so many of them.
func spread(n uint64) float64 { return (float64(n)*float64(n) - 1) / 12 }

// noise is the variance of a report, in squared cells, of a number that is off the middle by so much, squared.
func (m piecewise) noise(off float64) float64 {
	return m.u*spread(m.classes) + (1-m.u)*spread(m.width) + m.u*(1-m.u)*off
}

// estimate: reports off the middle have mean (1-u)·d and mean square u·spread(N) + (1-u)(spread(W) + d²) for a number that is
// off the middle by d.
func (m piecewise) estimate(cells []int64, n int64) []moment {
	count, keep := float64(n), 1-m.u
	mean := float64(cells[0]) / 2 / count / keep
	square := float64(cells[1]) * (1 << squareBits) / 4 / count
	off := (square-m.u*spread(m.classes))/keep - spread(m.width)
	off = min(max(off, mean*mean), Grid*Grid/4)
	return []moment{{value: 0.5 + mean/Grid, variance: m.noise(off) / (keep * keep * Grid * Grid * count)}}
}

func (m piecewise) worst() float64 {
	keep := 1 - m.u
	return m.noise(Grid*Grid/4) / (keep * keep * Grid * Grid)
}

func (m piecewise) constants() []Constant {
	return []Constant{{"grid", big.NewRat(Grid, 1)}, {"width", big.NewRat(int64(m.width), 1)},
		{"cells", big.NewRat(int64(m.classes), 1)}, {"uniform", m.uniform()}, {"p", m.hit()}, {"q", m.miss()}}
}

// additive adds discrete Laplace noise of scale 2¹⁷/ε to each number of steps. A number moves by at most [Grid] = 2¹⁷, probabilities that
// add up to [Whole] = 2¹⁶ by at most twice that together. Reports are clamped 64 scales outside the range, which reveals nothing more and
// keeps one device from moving an estimate without bounds.
type additive struct {
	law     *mechanisms.Laplace
	scale   *big.Rat
	numbers int
	whole   int64 // steps of the range
	reach   int64
}

func newAdditive(epsilon mechanisms.PicoEpsilon, numbers int) (additive, error) {
	law, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(Grid), Epsilon: epsilon})
	scale := new(big.Rat).Quo(big.NewRat(Grid, 1), epsilon.Rat())
	m := additive{law: law, scale: scale, numbers: numbers, whole: Whole, reach: int64(math.Ceil(farthest * float(scale)))}
	if numbers == 1 {
		m.whole = Grid
	}
	return m, err
}

func (m additive) report(s source, truth []int64) Report {
	r := make(Report, len(truth))
	low, high := big.NewInt(-m.reach), big.NewInt(m.whole+m.reach)
	for i, steps := range truth {
		switch noisy := s.laplace(m.law, steps); {
		case noisy.Cmp(low) < 0:
			r[i] = -m.reach
		case noisy.Cmp(high) > 0:
			r[i] = m.whole + m.reach
		default:
			r[i] = noisy.Int64()
		}
	}
	return r
}

func (m additive) valid(r Report) bool {
	for _, steps := range r {
		if steps < -m.reach || steps > m.whole+m.reach {
			return false
		}
	}
	return len(r) == m.numbers
}

func (m additive) cells() int { return m.numbers }

func (m additive) add(cells []int64, r Report) {
	for i, steps := range r {
		cells[i] += steps
	}
}

// estimate: the variance of the discrete law is below 2b², by less than one squared step.
func (m additive) estimate(cells []int64, n int64) []moment {
	list := make([]moment, len(cells))
	for i, sum := range cells {
		list[i] = moment{value: float64(sum) / float64(n) / float64(m.whole), variance: m.worst() / float64(n)}
	}
	return list
}

func (m additive) worst() float64 {
	b := float(m.scale) / float64(m.whole)
	return 2 * b * b
}

func (m additive) constants() []Constant {
	return []Constant{{"grid", big.NewRat(m.whole, 1)}, {"scale", m.scale}, {"reach", big.NewRat(m.reach, 1)}}
}
