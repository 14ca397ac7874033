package answer

import (
	"math"
	"math/big"

	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/plan"
	"noisegate/sqlrewrite/internal/scalar"
)

// Fieller makes intervals of one fraction S/C from its released values, for one level of confidence.
//
// For the true value θ the difference S - θC of the released values is noise alone, with the law of a weighted sum of the releases'
// noises. It is at most the half-width h(θ) of that law with the probability asked for, so that the set {θ : |S - θC| <= h(θ)} holds the
// true value with that probability, whatever it is (Fieller 1954, there for normal noise). What is returned is the smallest interval around
// the set, to a few percent of its width on the safe side. It is never wider than what interval arithmetic makes of the box in which all
// releases lie at once by Bonferroni's inequality, as h(θ) is never more than Boole's bound.
//
// h depends on the plan alone. It is computed for cells of θ, each a fiftieth of its size wide, from the largest weights in the cell: h
// rises with each weight, as the noise is symmetric and unimodal (Anderson 1955).
type Fieller struct {
	over, under []float64 // weights by term
	noise       []mechanisms.Additive
	level       mechanisms.Confidence
	boxOver     float64 // half-widths of S and C that hold at once, by Boole's inequality
	boxUnder    float64
	Ratio       float64 // of the half-widths of S and C alone: where both matter as much
	cells       map[int]float64
	tails       map[tailKey]float64
}

type tailKey struct{ octave, side int }

// cellsPerOctave and cellOctaves say how finely θ is divided, and how far below the ratio cells begin.
const (
	cellsPerOctave = 32
	cellOctaves    = 10
	tailOctaves    = 12
)

// NewFieller prepares a fraction whose two sums have noise.
func NewFieller(p *plan.Plan, f plan.Fraction) *Fieller {
	union := make(map[int]*big.Rat)
	for _, weights := range []map[int]*big.Rat{f.Over.Weights, f.Under.Weights} {
		for i := range weights {
			union[i] = scalar.One()
		}
	}
	m := &Fieller{level: p.Options.Confidence, cells: make(map[int]float64), tails: make(map[tailKey]float64)}
	together := mechanisms.Confidence(1 - (1-float64(m.level))/float64(len(union)))
	for _, i := range sortedReleases(union) {
		noise := p.Releases[i].Mechanism
		m.noise = append(m.noise, noise)
		m.over, m.under = append(m.over, FloatOf(f.Over.Weights[i])), append(m.under, FloatOf(f.Under.Weights[i]))
		width := FloatOf(new(big.Rat).SetInt(noise.HalfWidth(together)))
		m.boxOver += math.Abs(m.over[len(m.over)-1]) * width
		m.boxUnder += math.Abs(m.under[len(m.under)-1]) * width
	}
	m.Ratio = m.width(m.over) / m.width(m.under)
	return m
}

func FloatOf(v *big.Rat) float64 {
	if v == nil {
		return 0
	}
	f, _ := v.Float64()
	return f
}

// width is h for a sum with these weights.
func (m *Fieller) width(weights []float64) float64 {
	terms := make([]mechanisms.Term, len(weights))
	for i, w := range weights {
		terms[i] = mechanisms.Term{Noise: m.noise[i], Weight: new(big.Rat).SetFloat64(w)}
	}
	return mechanisms.SumHalfWidth(terms, m.level)
}

func around(v *big.Rat, width float64) *scalar.Span {
	w := new(big.Rat).SetFloat64(width)
	return &scalar.Span{Lo: new(big.Rat).Sub(v, w), Hi: new(big.Rat).Add(v, w)}
}

// rounding covers what floating point loses.
const rounding = 1e-9

// Resolves reports whether both sums have noise that is more than zero as often as the level leaves; else the box does.
func (m *Fieller) Resolves() bool { return m.Ratio > 0 && !math.IsInf(m.Ratio, 0) }

// interval is the interval for released values of the two sums; nil where it is unbounded, as the divisor may be next to nothing.
func (m *Fieller) interval(over, under *big.Rat) *scalar.Span {
	switch {
	case math.IsInf(m.boxOver+m.boxUnder, 0):
		return nil
	case !m.Resolves():
		return plan.Quotient(around(over, m.boxOver), around(under, m.boxUnder))
	case under.Sign() == 0:
		return nil
	}
	centre, divisor := FloatOf(new(big.Rat).Quo(over, under)), math.Abs(FloatOf(under))
	hi, okHi := m.upper(centre, divisor, 1)
	lo, okLo := m.upper(-centre, divisor, -1)
	if !okHi || !okLo {
		return nil
	}
	s := &scalar.Span{Lo: new(big.Rat).SetFloat64(-lo), Hi: new(big.Rat).SetFloat64(hi)}
	if s.Lo == nil || s.Hi == nil {
		return nil
	}
	return s
}

// upper is the upper end for a fraction whose released value is centre; of the negated fraction where side is -1. Cell by cell from above,
// what is in the set lies below centre + h/divisor.
func (m *Fieller) upper(centre, divisor float64, side int) (end float64, bounded bool) {
	from, ok := m.start(centre, divisor, side)
	if !ok {
		return 0, false
	}
	for cell := m.CellOf(from); ; cell-- {
		lowest, highest := m.Edges(cell)
		reach := centre + m.cell(cell*side)/divisor
		if reach >= lowest {
			end = min(from, highest, reach)
			return end + rounding*math.Abs(end-centre) + rounding*rounding*math.Abs(end), true
		}
	}
}

// start is a place that no point of the set is above.
func (m *Fieller) start(centre, divisor float64, side int) (float64, bool) {
	switch top := centre*divisor + m.boxOver; {
	case divisor > m.boxUnder && top >= 0:
		return top / (divisor - m.boxUnder) * (1 + rounding), true
	case divisor > m.boxUnder:
		return top / (divisor + m.boxUnder) * (1 - rounding), true
	}
	first := int(math.Ceil(math.Log2(math.Max(math.Abs(centre)/m.Ratio, 1)))) + 1
	for octave := first; octave <= first+tailOctaves; octave++ {
		if at := math.Ldexp(m.Ratio, octave); divisor*(1-math.Max(centre, 0)/at) > m.tail(octave, side) {
			return at, true
		}
	}
	return 0, false
}

// tail bounds h(θ)/θ for all θ from ratio·2^octave on.
func (m *Fieller) tail(octave, side int) float64 {
	key := tailKey{octave, side}
	h, known := m.tails[key]
	if !known {
		at, weights := math.Ldexp(m.Ratio, octave)*float64(side), make([]float64, len(m.over))
		for i := range weights {
			weights[i] = math.Max(math.Abs(m.over[i]/at-m.under[i]), math.Abs(m.under[i]))
		}
		h = m.width(weights) * (1 + rounding)
		m.tails[key] = h
	}
	return h
}

// cell bounds h in a cell.
func (m *Fieller) cell(cell int) float64 {
	h, known := m.cells[cell]
	if !known {
		lo, hi := m.Edges(cell)
		h = m.Most(lo, hi)
		m.cells[cell] = h
	}
	return h
}

// Edges are the ends of a cell: cell 0 lies around zero, the others on both sides of it, each 2^(1/cellsPerOctave) times as far out as the
// last.
func (m *Fieller) Edges(cell int) (lo, hi float64) {
	edge := func(n int) float64 {
		return m.Ratio * math.Exp2(float64(n-1)/cellsPerOctave-cellOctaves)
	}
	switch {
	case cell > 0:
		return edge(cell), edge(cell + 1)
	case cell < 0:
		return -edge(1 - cell), -edge(-cell)
	default:
		return -edge(1), edge(1)
	}
}

// Most bounds h for all θ from lo to hi.
func (m *Fieller) Most(lo, hi float64) float64 {
	weights := make([]float64, len(m.over))
	for i := range weights {
		weights[i] = math.Max(math.Abs(m.over[i]-lo*m.under[i]), math.Abs(m.over[i]-hi*m.under[i]))
	}
	return m.width(weights) * (1 + rounding)
}

// CellOf is the cell that holds a point, or has it for its upper end.
func (m *Fieller) CellOf(x float64) int {
	size := math.Abs(x) / m.Ratio
	cell := int(math.Max(0, math.Floor((math.Log2(size)+cellOctaves)*cellsPerOctave)+1))
	if x < 0 {
		cell = -cell
	}
	for lo, _ := m.Edges(cell); x < lo; lo, _ = m.Edges(cell) { // what the logarithm was off by
		cell--
	}
	for _, hi := m.Edges(cell); x > hi; _, hi = m.Edges(cell) {
		cell++
	}
	return cell
}
