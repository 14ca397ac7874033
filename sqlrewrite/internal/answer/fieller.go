package answer

import (
	"math"
	"math/big"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
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
	sums        *mechanisms.Sums
	weights     []float64 // of the sum at hand
	boxOver     float64   // half-widths of S and C that hold at once, by Boole's inequality
	boxUnder    float64
	Ratio       float64 // of the half-widths of S and C alone: where both matter as much
	blocks      map[blockKey]float64
	tails       map[tailKey]float64
}

type tailKey struct{ octave, side int }

type blockKey struct{ first, size, side int }

// cellsPerOctave and cellOctaves say how finely θ is divided, and how far below the ratio cells begin.
const (
	cellsPerOctave = 32
	cellOctaves    = 10
	tailOctaves    = 12
)

// NewFieller prepares a fraction whose two sums have noise, for intervals of a level.
func NewFieller(p *plan.Plan, f plan.Fraction, level mechanisms.Confidence) *Fieller {
	m := &Fieller{blocks: make(map[blockKey]float64), tails: make(map[tailKey]float64)}
	var noises []mechanisms.Additive
	var times []int
	for _, n := range plan.NoisesOf(f) {
		noises, times = append(noises, p.Releases[n.Release].Mechanism), append(times, n.Times)
		m.over, m.under = append(m.over, FloatOf(n.Over)), append(m.under, FloatOf(n.Under))
	}
	m.sums, m.weights = mechanisms.NewSums(noises, times, level), make([]float64, len(noises))
	m.boxOver, m.boxUnder = m.sums.Boole(m.over), m.sums.Boole(m.under)
	m.Ratio = m.sums.HalfWidth(m.over) / m.sums.HalfWidth(m.under)
	return m
}

func FloatOf(v *big.Rat) float64 {
	if v == nil {
		return 0
	}
	f, _ := v.Float64()
	return f
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

// upper is the upper end for a fraction whose released value is centre; of the negated fraction where side is -1. Block by block from
// above, and in the first one that may hold a point of the set cell by cell, what is in the set lies below centre + h/divisor.
func (m *Fieller) upper(centre, divisor float64, side int) (end float64, bounded bool) {
	from, ok := m.start(centre, divisor, side)
	if !ok {
		return 0, false
	}
	for cell, size := m.CellOf(from), 1; ; {
		first := size * floorQuotient(cell, size) // of the block of so many cells that this one is in
		lowest, _ := m.Edges(first)
		reach := centre + m.block(first, size, side)/divisor
		switch {
		case reach < lowest: // the set has no point in the block, nor above
			cell, size = first-1, min(2*size, mostCells)
		case size > 1:
			size /= 2
		default:
			_, highest := m.Edges(cell)
			end = min(from, highest, reach)
			return end + rounding*math.Abs(end-centre) + rounding*rounding*math.Abs(end), true
		}
	}
}

// mostCells is how many cells, of one block, are looked at together.
const mostCells = 8 * cellsPerOctave

// floorQuotient is n/d rounded down, d positive.
func floorQuotient(n, d int) int {
	q := n / d
	if q*d > n {
		q--
	}
	return q
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
		at := math.Ldexp(m.Ratio, octave) * float64(side)
		for i := range m.weights {
			m.weights[i] = math.Max(math.Abs(m.over[i]/at-m.under[i]), math.Abs(m.under[i]))
		}
		h = m.sums.HalfWidth(m.weights) * (1 + rounding)
		m.tails[key] = h
	}
	return h
}

// block bounds h in so many cells from a first one on; in their negatives where side is -1.
func (m *Fieller) block(first, size, side int) float64 {
	key := blockKey{first, size, side}
	h, known := m.blocks[key]
	if !known {
		lo, _ := m.Edges(first)
		_, hi := m.Edges(first + size - 1)
		if side < 0 {
			lo, hi = -hi, -lo
		}
		h = m.Most(lo, hi)
		m.blocks[key] = h
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
	for i := range m.weights {
		m.weights[i] = math.Max(math.Abs(m.over[i]-lo*m.under[i]), math.Abs(m.over[i]-hi*m.under[i]))
	}
	return m.sums.HalfWidth(m.weights) * (1 + rounding)
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
