package sqlrewrite

import (
	"math/big"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// An operation that can raise an error is partial. Its operands are printed through their proven ranges: were a proof wrong, or a function of
// PostgreSQL's, then the value would be wrong, and there would be no error. Ranges that an operand's type guarantees, and those of what is clamped
// already, are not clamped again. docs/sql.md, section 5, lists the form of each operation.

// guard is an operand of a partial operation. A question's identity does not have the clamp: it changes no value of a right computation.
type guard struct{ x, clamped expr }

func (g guard) typ() catalog.Type { return g.clamped.typ() }

// guarded is the operand within its extent by what is printed.
func (o operand) guarded() operand {
	if o.kept || o.extent == nil || o.x.typ() == intervalType {
		return o
	}
	if _, isConstant := o.x.(constant); isConstant {
		return o
	}
	t, lo, hi := o.x.typ(), o.lo, o.hi
	switch {
	case t == catalog.Numeric:
		lo, hi = shortEnd(lo, -1), shortEnd(hi, 1)
	case t.IsInteger() || t.IsTime():
		lo, hi = new(big.Rat).SetInt(floor(lo)), new(big.Rat).SetInt(ceil(hi))
	}
	within := clamped(o, lo, hi)
	return operand{x: guard{x: o.x, clamped: within.x}, extent: o.extent, printed: printed{kept: true, stepped: o.stepped}}
}

// endDigits are digits after the point that a printed end of numerics may have.
const endDigits = 20

// shortEnd is v or, where v has many digits after the point, the next number beyond it that has few; side is -1 for a lower end.
func shortEnd(v *big.Rat, side int) *big.Rat {
	if digits, exact := v.FloatPrec(); exact && digits <= endDigits {
		return v
	}
	factor := new(big.Rat).SetInt(power10(endDigits))
	whole := floor(new(big.Rat).Mul(v, factor))
	if side > 0 {
		whole = ceil(new(big.Rat).Mul(v, factor))
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), factor)
}

// snapBits: a float times 2^grain stays below 2^1022.
const snapBits = 1022

// factor is a float as an operand of a multiplication, a division or a power: guarded, and by what is printed a multiple of 2^-grain, so that none but
// zero is so small that a result could underflow. The form that makes it one names its operand once, and changes no multiple; only numbers of a range
// that is nearly all of double precision are rounded by it, to a multiple of 2^-84 at worst.
func (o operand) factor() operand {
	if o = o.guarded(); o.stepped || !isFloat(o.x.typ()) {
		return o
	}
	if _, isConstant := o.x.(constant); isConstant {
		return o
	}
	if least := smallest(o.grain); o.lo.Cmp(least) >= 0 || o.hi.Cmp(new(big.Rat).Neg(least)) <= 0 {
		o.stepped = true // the clamp keeps it away from zero
		return o
	}
	top := o.reach()
	grain := min(o.grain, snapBits-1-max(0, top.Num().BitLen()-top.Denom().BitLen()+1))
	power := func(bits int) expr {
		v := smallest(max(bits, -bits))
		if bits > 0 {
			v = new(big.Rat).Inv(v)
		}
		return valueOf(v, catalog.Float8)
	}
	times := func(x, y expr) expr { return binary{op: syntax.Multiply, l: x, r: y, t: catalog.Float8} }
	whole := call{name: "trunc", args: []expr{times(bare(o.x), power(grain))}, t: catalog.Float8}
	return operand{x: guard{x: unguarded(o.x), clamped: times(whole, power(-grain))}, extent: o.extent, printed: exact()}
}

// bare is what a guard prints, unguarded what it stands for.
func bare(x expr) expr {
	if g, ok := x.(guard); ok {
		return g.clamped
	}
	return x
}

func unguarded(x expr) expr {
	if g, ok := x.(guard); ok {
		return g.x
	}
	return x
}

// toFloat is a numeric in double precision: PostgreSQL raises an error where it would overflow, or vanish.
func (o operand) toFloat() expr {
	o = o.guarded()
	if _, isConstant := o.x.(constant); o.stepped || isConstant {
		return o.as(catalog.Float8)
	}
	x := call{name: "round", args: []expr{bare(o.x), constant{t: catalog.Int4, text: strconv.Itoa(o.scale)}}, t: catalog.Numeric}
	return cast{x: guard{x: unguarded(o.x), clamped: x}, t: catalog.Float8}
}
