package algebra

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Grid maps the values of a bounded expression to whole numbers of steps: clamp to [lo, hi], divide by the step, round. Every value
// that a row can hold, NaN and the infinities included, maps to a whole number in [lo, hi]; NULL stays NULL.
//
// The bounds are those of the policy, moved inward to the nearest multiple of the step, so that rounding cannot leave them; or narrower
// ones that conditions of the question imply, moved outward, so that no row that meets the conditions is moved.
type Grid struct {
	X       Expr     `node:"1,encoded"`
	Step    *big.Rat `node:"2,encoded"`   // in the unit of x; a whole number or one over a whole number
	Lo, Hi  *big.Int `node:"3 4,encoded"` // in steps
	Form    gridForm `node:"5"`
	Derived bool     `node:"6,-"` // the step is ours: the policy gives none
	Clamped bool     `node:"7,-"` // x is within [lo, hi] as it is printed
	Coarse  bool     `node:"8"`   // it is coarser than the expression's own grid
	// Narrowed: the conditions of the question make it narrower than the bounds of the policy do.
	Narrowed bool `node:"9,-"`
}

// gridForm is how a value in [lo, hi] becomes steps in SQL.
type gridForm int

const (
	WholeSteps   gridForm = iota // an integer column with step 1: the value itself
	DividedSteps                 // a step of several units: whole-number division after rounding to whole numbers
	ExactDecimal                 // numeric(p,s) whose values lie on the grid: summed as they are, scaled after the sum
	RoundDecimal                 // numeric: multiplied or divided and rounded, row by row
	TimeSteps                    // dates and times, for selections only: see timegrid.go
	ScaledFloat                  // floats: multiplied by a whole number and rounded by the cast, row by row
)

// The limits that make every step of the arithmetic exact and free of overflow; docs/sql/relations.md has the proof.
const (
	smallSteps = 1 << 23 // sum(integer) has 40 bits left for the number of rows
	FloatSteps = 1 << 52 // whole numbers up to here are exact in float8
	WholeRange = 1 << 61 // bigint: differences and half steps stay inside
	FineSteps  = 1 << 20 // a derived step cuts the bounds into at least so many parts: rounding is far below the noise
)

// Points is how many values a grid has.
func (g *Grid) Points() *big.Int {
	n := new(big.Int).Sub(g.Hi, g.Lo)
	return n.Add(n, big.NewInt(1))
}

// Scale is s of a numeric(p,s) column with s >= 0.
func Scale(e Expr) (int, bool) {
	if c, ok := e.(Computed); ok && c.ErrorFree.Typ() == catalog.Numeric {
		return c.Within.Scale, true
	}
	c := PlainField(e)
	if c == nil || c.Type != catalog.Numeric || c.TypMod < 4 {
		return 0, false
	}
	s := int((c.TypMod-4)&0x7ff^1024) - 1024 // 11 bits, two's complement
	return s, s >= 0
}

// RoundTrips reports whether PostgreSQL's float8 arithmetic takes the bound at k steps back to k steps. Multiplication and
// rounding are monotone, so that it then keeps every value between the bounds between them.
func (g *Grid) RoundTrips(k *big.Int) bool {
	bound := g.Float(k)
	scale, _ := new(big.Rat).SetInt(g.Step.Denom()).Float64()
	product := float64(bound * scale) // the conversion forbids a fused multiply-add
	want, _ := new(big.Rat).SetInt(k).Float64()
	return math.RoundToEven(product) == want
}

// Float is the value at k steps as a float8.
func (g *Grid) Float(k *big.Int) float64 {
	f, _ := g.Value(k).Float64()
	return f
}

// Value is k steps in the column's unit.
func (g *Grid) Value(k *big.Int) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt(k), g.Step)
}

// Centre is the middle of the bounds in steps, rounded down.
func (g *Grid) Centre() *big.Int {
	sum := new(big.Int).Add(g.Lo, g.Hi)
	return sum.Rsh(sum, 1) // arithmetic shift: floor
}

// magnitude is the largest |steps| of one row: what one row can add to a sum. At least 1, so that no release is free of noise.
func (g *Grid) magnitude() *big.Int {
	return scalar.MaxInt(big.NewInt(1), scalar.MaxInt(new(big.Int).Abs(g.Lo), new(big.Int).Abs(g.Hi)))
}

// Deviation is the largest |steps - centre| of one row: what one row can add to a centred sum. At least 1.
func (g *Grid) Deviation() *big.Int {
	return scalar.MaxInt(big.NewInt(1), new(big.Int).Sub(g.Hi, g.Centre())) // centre is rounded down: hi is the farther end
}

// Narrow reports whether the sum of the steps of any rows is a bigint.
func (g *Grid) Narrow() bool { return g.magnitude().Cmp(big.NewInt(smallSteps)) < 0 }

// Small reports whether steps are summed as integer, the fastest exact sum.
func (g *Grid) Small() bool { return g.Form != ExactDecimal && g.Form != RoundDecimal && g.Narrow() }

// ClockText writes a number of days or microseconds as PostgreSQL writes type t in UTC.
func ClockText(units *big.Rat, t catalog.Type) string {
	n := scalar.Floor(units).Int64()
	if t == catalog.Date {
		return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly)
	}
	text := time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999")
	if t == catalog.Timestamptz {
		text += "+00"
	}
	return text
}

// Label is the point at k steps for people.
func (g *Grid) Label(k *big.Int) string {
	if g.Form == TimeSteps {
		return ClockText(g.Value(k), g.X.Typ())
	}
	return scalar.DecimalOrFraction(g.Value(k))
}

// StepLabel is the step for people.
func (g *Grid) StepLabel() string {
	if g.Form != TimeSteps {
		return scalar.DecimalOrFraction(g.Step)
	}
	const day = int64(24 * time.Hour / time.Microsecond)
	n := g.Step.Num().Int64()
	switch {
	case g.X.Typ() == catalog.Date:
		return fmt.Sprintf("%d days", n)
	case n%day == 0:
		return fmt.Sprintf("%d days", n/day)
	default:
		return (time.Duration(n) * time.Microsecond).String()
	}
}
