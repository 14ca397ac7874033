package sqlrewrite

import (
	"math"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
)

// grid maps the values of a bounded expression to whole numbers of steps: clamp to [lo, hi], divide by the step, round. Every value
// that a row can hold, NaN and the infinities included, maps to a whole number in [lo, hi]; NULL stays NULL.
//
// The bounds are those of the policy, moved inward to the nearest multiple of the step, so that rounding cannot leave them.
type grid struct {
	x       expr
	step    *big.Rat // in the unit of x; a whole number or one over a whole number
	lo, hi  *big.Int // in steps
	form    gridForm
	derived bool // the step is ours: the policy gives none
	clamped bool // x is within [lo, hi] as it is printed
	coarse  bool // it is coarser than the expression's own grid
}

// gridForm is how a value in [lo, hi] becomes steps in SQL.
type gridForm int

const (
	wholeSteps   gridForm = iota // an integer column with step 1: the value itself
	dividedSteps                 // a step of several units: whole-number division after rounding to whole numbers
	exactDecimal                 // numeric(p,s) whose values lie on the grid: summed as they are, scaled after the sum
	roundDecimal                 // numeric: multiplied or divided and rounded, row by row
	timeSteps                    // dates and times, for selections only: see timegrid.go
	scaledFloat                  // floats: multiplied by a whole number and rounded by the cast, row by row
)

// The limits that make every step of the arithmetic exact and free of overflow; docs/sql.md has the proof.
const (
	smallSteps = 1 << 23 // sum(integer) has 40 bits left for the number of rows
	floatSteps = 1 << 52 // whole numbers up to here are exact in float8
	wholeRange = 1 << 61 // bigint: differences and half steps stay inside
	fineSteps  = 1 << 20 // a derived step cuts the bounds into at least so many parts: rounding is far below the noise
)

// newGrid makes the grid of an expression that has bounds.
func newGrid(x expr, at fault.Position) (*grid, error) { return gridWith(x, boundsOf(x), at) }

// gridWith makes the grid of an expression within bounds.
func gridWith(x expr, within *bounds, at fault.Position) (*grid, error) {
	t, name := carrierOf(x), describe(x)
	g := &grid{x: x, step: within.step}
	switch {
	case g.step == nil && t.IsInteger(), g.step != nil && t.IsInteger() && g.step.Cmp(one()) < 0:
		g.step = one() // whole numbers lie on every finer grid
	case g.step == nil:
		g.step, g.derived = derivedStep(x, within), true
	}
	if g.step.Sign() <= 0 || !g.step.IsInt() && g.step.Num().Cmp(big.NewInt(1)) != 0 {
		return nil, fault.BadStep(at, name, "the step is neither a whole number nor one over a whole number")
	}
	g.lo, g.hi = ceil(new(big.Rat).Quo(within.lo, g.step)), floor(new(big.Rat).Quo(within.hi, g.step))
	if g.lo.Cmp(g.hi) > 0 {
		return nil, fault.BadStep(at, name, "no multiple of the step lies between the bounds")
	}
	limit := int64(wholeRange)
	switch {
	case t.IsInteger() && g.step.Cmp(one()) == 0:
		g.form = wholeSteps
	case t.IsInteger():
		g.form = dividedSteps
	case t == catalog.Numeric && onGrid(x, g.step):
		g.form = exactDecimal
	case t == catalog.Numeric:
		g.form = roundDecimal
	case g.step.IsInt() && g.step.Cmp(one()) > 0:
		g.form, limit = dividedSteps, floatSteps
	default:
		g.form, limit = scaledFloat, floatSteps
	}
	for _, bound := range []*big.Int{g.lo, g.hi} {
		units := new(big.Rat).SetInt(bound)
		if g.form == dividedSteps {
			units.Mul(units, g.step)
		}
		if new(big.Int).Abs(units.Num()).Cmp(big.NewInt(limit)) >= 0 {
			return nil, fault.BadStep(at, name, "the bounds hold too many steps")
		}
	}
	if g.form == dividedSteps && g.step.Cmp(new(big.Rat).SetInt64(limit)) >= 0 {
		return nil, fault.BadStep(at, name, "the step is too large")
	}
	if g.form == scaledFloat && !(g.roundTrips(g.lo) && g.roundTrips(g.hi)) {
		return nil, fault.BadStep(at, name, "the bounds hold too many steps")
	}
	if c, ok := x.(computed); ok { // by functions: a CASE would repeat the expression
		o := operand{x: c.total, extent: c.within, printed: c.printed}
		if o.x.typ() == catalog.Float4 { // NULL, which no operation has widened
			o = o.in(catalog.Float8)
		}
		o = clamped(o, g.value(g.lo), g.value(g.hi))
		g.x, g.clamped = computedOf(c.written, o), true
	}
	return g, nil
}

// coarser is g, or where g has more than so many points the finest grid of the same bounds on 1, 2 or 5 times a power of ten that has not.
func coarser(g *grid, points int64, at fault.Position) (*grid, error) {
	if g.points().Cmp(big.NewInt(points)) <= 0 {
		return g, nil
	}
	span := new(big.Rat).Sub(g.value(g.hi), g.value(g.lo))
	least := span.Quo(span, new(big.Rat).SetInt64(points-1))
	step := one()
	for ten := big.NewRat(10, 1); step.Cmp(least) >= 0; {
		step = new(big.Rat).Quo(step, ten)
	}
	for i := 0; step.Cmp(least) < 0; i++ {
		step = new(big.Rat).Mul(step, []*big.Rat{big.NewRat(2, 1), big.NewRat(5, 2), big.NewRat(2, 1)}[i%3])
	}
	coarse, err := gridWith(g.x, &bounds{lo: g.value(g.lo), hi: g.value(g.hi), step: step, declared: true}, at)
	if err != nil {
		return nil, err
	}
	coarse.derived, coarse.coarse = true, true
	return coarse, nil
}

// points is how many values a grid has.
func (g *grid) points() *big.Int {
	n := new(big.Int).Sub(g.hi, g.lo)
	return n.Add(n, big.NewInt(1))
}

// derivedStep is a step from the bounds alone: the digits of a numeric(p,s) column, else the largest power of ten that cuts
// the bounds into fineSteps parts.
func derivedStep(x expr, within *bounds) *big.Rat {
	span := new(big.Rat).Sub(within.hi, within.lo)
	if span.Sign() <= 0 {
		span.Abs(within.hi)
	}
	if span.Sign() == 0 {
		return one()
	}
	parts := new(big.Rat).SetInt64(fineSteps)
	if s, ok := scale(x); ok {
		step := new(big.Rat).SetFrac(big.NewInt(1), power10(s))
		if new(big.Rat).Quo(span, step).Cmp(new(big.Rat).SetInt64(floatSteps)) < 0 {
			return step
		}
	}
	step, ten := one(), big.NewRat(10, 1)
	for new(big.Rat).Quo(span, step).Cmp(parts) < 0 {
		step.Quo(step, ten)
	}
	for new(big.Rat).Quo(span, new(big.Rat).Mul(step, ten)).Cmp(parts) >= 0 {
		step.Mul(step, ten)
	}
	return step
}

// scale is s of a numeric(p,s) column with s >= 0.
func scale(e expr) (int, bool) {
	if c, ok := e.(computed); ok && c.total.typ() == catalog.Numeric {
		return c.within.scale, true
	}
	c := plainField(e)
	if c == nil || c.Type != catalog.Numeric || c.TypMod < 4 {
		return 0, false
	}
	s := int((c.TypMod-4)&0x7ff^1024) - 1024 // 11 bits, two's complement
	return s, s >= 0
}

// onGrid reports whether every value of a numeric(p,s) column is a multiple of step.
func onGrid(x expr, step *big.Rat) bool {
	s, ok := scale(x)
	if !ok || step.Num().Cmp(big.NewInt(1)) != 0 {
		return false
	}
	return new(big.Int).Mod(step.Denom(), power10(s)).Sign() == 0
}

// roundTrips reports whether PostgreSQL's float8 arithmetic takes the bound at k steps back to k steps. Multiplication and
// rounding are monotone, so that it then keeps every value between the bounds between them.
func (g *grid) roundTrips(k *big.Int) bool {
	bound := g.float(k)
	scale, _ := new(big.Rat).SetInt(g.step.Denom()).Float64()
	product := float64(bound * scale) // the conversion forbids a fused multiply-add
	want, _ := new(big.Rat).SetInt(k).Float64()
	return math.RoundToEven(product) == want
}

// float is the value at k steps as a float8.
func (g *grid) float(k *big.Int) float64 {
	f, _ := g.value(k).Float64()
	return f
}

// value is k steps in the column's unit.
func (g *grid) value(k *big.Int) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt(k), g.step)
}

// centre is the middle of the bounds in steps, rounded down.
func (g *grid) centre() *big.Int {
	sum := new(big.Int).Add(g.lo, g.hi)
	return sum.Rsh(sum, 1) // arithmetic shift: floor
}

// magnitude is the largest |steps| of one row: what one row can add to a sum. At least 1, so that no release is free of noise.
func (g *grid) magnitude() *big.Int {
	return maxInt(big.NewInt(1), maxInt(new(big.Int).Abs(g.lo), new(big.Int).Abs(g.hi)))
}

// deviation is the largest |steps - centre| of one row: what one row can add to a centred sum. At least 1.
func (g *grid) deviation() *big.Int {
	return maxInt(big.NewInt(1), new(big.Int).Sub(g.hi, g.centre())) // centre is rounded down: hi is the farther end
}

// narrow reports whether the sum of the steps of any rows is a bigint.
func (g *grid) narrow() bool { return g.magnitude().Cmp(big.NewInt(smallSteps)) < 0 }

// small reports whether steps are summed as integer, the fastest exact sum.
func (g *grid) small() bool { return g.form != exactDecimal && g.form != roundDecimal && g.narrow() }

func one() *big.Rat { return big.NewRat(1, 1) }

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func maxInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// floor is the largest whole number <= v.
func floor(v *big.Rat) *big.Int {
	return new(big.Int).Div(v.Num(), v.Denom()) // Euclidean division by a positive number is floor
}

// ceil is the smallest whole number >= v.
func ceil(v *big.Rat) *big.Int {
	return new(big.Int).Neg(floor(new(big.Rat).Neg(v)))
}

// decimalOrFraction writes a number for people: exactly as a decimal where that is short, else as a fraction.
func decimalOrFraction(v *big.Rat) string {
	if digits, exact := v.FloatPrec(); exact && digits <= 20 {
		return v.FloatString(digits)
	}
	return v.RatString()
}
