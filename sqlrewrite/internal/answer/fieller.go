package answer

import (
	"math"
	"math/big"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Fieller computes intervals of one fraction S/C from its released values, at one level of confidence.
//
// For the true value θ, the difference S - θC of the released values is noise alone, with the law of a weighted sum of the releases'
// noises. It is at most the half-width h(θ) of that law with the probability of the level. So the set {θ : |S - θC| <= h(θ)} holds the true
// value with that probability, whatever it is (Fieller 1954, for normal noise). The interval is the smallest one around the set, or up to a
// few percent wider. It is never wider than interval arithmetic over the box in which all releases lie at once (Bonferroni), since h(θ) is
// never more than Boole's bound.
//
// h depends on the plan alone. It is computed for cells of θ, from the largest weights in each cell: h rises with each weight, since the
// noise is symmetric and unimodal (Anderson 1955).
type Fieller struct {
	over, under []float64 // weights by term
	sums        *mechanisms.Sums
	weights     []float64 // of the current sum
	boxOver     float64   // half-widths of S and C that hold at once, by Boole's inequality
	boxUnder    float64
	Ratio       float64 // half-width of S over that of C: the θ at which both have equal noise in S - θC
	blocks      map[blockKey]float64
	tails       map[tailKey]float64
}

type tailKey struct{ octave, side int }

type blockKey struct{ first, size, side int }

// cellsPerOctave divides θ. Cells begin cellOctaves below [Fieller.Ratio]; start searches up to tailOctaves above.
const (
	cellsPerOctave = 32
	cellOctaves    = 10
	tailOctaves    = 12
)

// NewFieller prepares a fraction whose two sums both have noise.
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

// FloatOf returns the nearest float64; 0 for nil.
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

// rounding is the relative margin for errors of floating point.
const rounding = 1e-9

// Resolves reports whether the half-widths of both sums are above 0 and finite; else the box gives the interval.
func (m *Fieller) Resolves() bool { return m.Ratio > 0 && !math.IsInf(m.Ratio, 0) }

// interval returns the interval for released values of the two sums; nil: it is unbounded, since the divisor may be 0.
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

// upper returns the upper end for a fraction with the released value centre; if side is -1, of the negated fraction. A point θ of the set
// is at most centre + h(θ)/divisor. Blocks are searched from above, and the first one that may hold a point cell by cell.
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

// mostCells caps the cells of one block.
const mostCells = 8 * cellsPerOctave

// floorQuotient is n/d rounded down, d positive.
func floorQuotient(n, d int) int {
	q := n / d
	if q*d > n {
		q--
	}
	return q
}

// start returns a place that no point of the set is above; false: none is found.
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

// tail bounds h(θ)/θ for all θ from Ratio·2^octave on; if side is -1, for their negatives.
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

// block bounds h in size cells from the first one on; if side is -1, in their negatives.
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

// Edges returns the ends of a cell. Cell 0 lies around zero, the others on both sides of it, each 2^(1/cellsPerOctave) times as far out as
// the last.
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

// CellOf returns the cell that holds a point, or has it as its upper end.
func (m *Fieller) CellOf(x float64) int {
	size := math.Abs(x) / m.Ratio
	cell := int(math.Max(0, math.Floor((math.Log2(size)+cellOctaves)*cellsPerOctave)+1))
	if x < 0 {
		cell = -cell
	}
	for lo, _ := m.Edges(cell); x < lo; lo, _ = m.Edges(cell) { // the logarithm is rounded
		cell--
	}
	for _, hi := m.Edges(cell); x > hi; _, hi = m.Edges(cell) {
		cell++
	}
	return cell
}
