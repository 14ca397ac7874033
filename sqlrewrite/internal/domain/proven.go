package domain

import (
	"math/big"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// guarded is the operand within its value range by what is printed.
func (o Operand) guarded() Operand {
	if o.Kept || o.Range == nil || o.X.Typ() == scalar.IntervalType {
		return o
	}
	if _, isConstant := o.X.(algebra.Constant); isConstant {
		return o
	}
	t, lo, hi := o.X.Typ(), o.Lo, o.Hi
	switch {
	case t == catalog.Numeric:
		lo, hi = shortEnd(lo, -1), shortEnd(hi, 1)
	case t.IsInteger() || t.IsTime():
		lo, hi = new(big.Rat).SetInt(scalar.Floor(lo)), new(big.Rat).SetInt(scalar.Ceil(hi))
	}
	within := Clamped(o, lo, hi)
	return Operand{X: algebra.Guard{X: o.X, Clamped: within.X}, Range: o.Range, Printed: algebra.Printed{Kept: true, Stepped: o.Stepped}}
}

// endDigits are digits after the point that a printed end of numerics may have.
const endDigits = 20

// shortEnd is v or, where v has many digits after the point, the next number beyond it that has few; side is -1 for a lower end.
func shortEnd(v *big.Rat, side int) *big.Rat {
	if digits, exact := v.FloatPrec(); exact && digits <= endDigits {
		return v
	}
	factor := new(big.Rat).SetInt(scalar.Power10(endDigits))
	whole := scalar.Floor(new(big.Rat).Mul(v, factor))
	if side > 0 {
		whole = scalar.Ceil(new(big.Rat).Mul(v, factor))
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), factor)
}

// snapBits: a float times 2^grain stays below 2^1022.
const snapBits = 1022

// factor is a float as an operand of a multiplication, a division or a power: guarded, and by what is printed a multiple of 2^-grain, so
// that none but zero is so small that a result could underflow. The form that makes it one names its operand once, and changes no multiple;
// only numbers of a range that is nearly all of double precision are rounded by it, to a multiple of 2^-84 at worst.
func (o Operand) factor() Operand {
	if o = o.guarded(); o.Stepped || !scalar.IsFloat(o.X.Typ()) {
		return o
	}
	if _, isConstant := o.X.(algebra.Constant); isConstant {
		return o
	}
	if least := smallest(o.Grain); o.Lo.Cmp(least) >= 0 || o.Hi.Cmp(new(big.Rat).Neg(least)) <= 0 {
		o.Stepped = true // the clamp keeps it away from zero
		return o
	}
	top := o.Reach()
	grain := min(o.Grain, snapBits-1-max(0, top.Num().BitLen()-top.Denom().BitLen()+1))
	power := func(bits int) algebra.Expr {
		v := smallest(max(bits, -bits))
		if bits > 0 {
			v = new(big.Rat).Inv(v)
		}
		return ValueOf(v, catalog.Float8)
	}
	times := func(x, y algebra.Expr) algebra.Expr {
		return algebra.Binary{Op: syntax.Multiply, L: x, R: y, T: catalog.Float8}
	}
	whole := algebra.Call{Name: "trunc", Args: []algebra.Expr{times(bare(o.X), power(grain))}, T: catalog.Float8}
	return Operand{X: algebra.Guard{X: algebra.Unguarded(o.X), Clamped: times(whole, power(-grain))}, Range: o.Range, Printed: exact()}
}

// bare is what a guard prints, unguarded what it stands for.
func bare(x algebra.Expr) algebra.Expr {
	if g, ok := x.(algebra.Guard); ok {
		return g.Clamped
	}
	return x
}

// toFloat is a numeric in double precision: PostgreSQL raises an error where it would overflow, or vanish.
func (o Operand) toFloat() algebra.Expr {
	o = o.guarded()
	if _, isConstant := o.X.(algebra.Constant); o.Stepped || isConstant {
		return o.as(catalog.Float8)
	}
	x := algebra.Call{Name: "round", Args: []algebra.Expr{bare(o.X), algebra.Constant{T: catalog.Int4, Text: strconv.Itoa(o.Scale)}},
		T: catalog.Numeric}
	return algebra.Cast{X: algebra.Guard{X: algebra.Unguarded(o.X), Clamped: x}, T: catalog.Float8}
}
