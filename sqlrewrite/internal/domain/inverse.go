package domain

import (
	"math/big"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// What limits of a value say of its operand. Each rule moves limits outward by what the operation rounds.

// floatSlack and quotientSlack are more than double precision and quotients of numerics round, in parts of the value; realSlack of real.
var (
	floatSlack    = big.NewRat(1, 1<<48)
	quotientSlack = big.NewRat(1, 100_000_000_000_000)
	realSlack     = big.NewRat(1, 1<<22)
)

// invert learns of the operand of an operation that lies within limits.
func (k *Implied) invert(e algebra.Computed, in limits) {
	switch w := e.Written.(type) {
	case algebra.Negate:
		k.operand(w.X, in.times(big.NewRat(-1, 1)))
	case algebra.Binary:
		if e.Typ().IsNumber() && w.L.Typ().IsNumber() && w.R.Typ().IsNumber() {
			k.invertBinary(w, in)
		}
	case algebra.Cast:
		k.invertCast(w, in)
	case algebra.Call:
		k.invertCall(w, in)
	}
}

// operand learns of an operand. A column counts there by as many digits as computations keep, and as zero where it is nearly that.
func (k *Implied) operand(x algebra.Expr, in limits) {
	if f := algebra.PlainField(x); f != nil && f.Type == catalog.Numeric {
		if _, fixed := algebra.Scale(x); !fixed {
			in = in.apart(scalar.StepOf(FreeScale), scalar.StepOf(FreeScale))
		}
	} else if f != nil && scalar.IsFloat(f.Type) {
		least := smallest(tinyBits)
		near := func(v *big.Rat) *big.Rat {
			if v == nil || new(big.Rat).Abs(v).Cmp(least) > 0 {
				return new(big.Rat)
			}
			return new(big.Rat).Add(least, least)
		}
		in = in.apart(near(in.lo), near(in.hi))
	}
	k.add(x, in)
}

// invertBinary is for arithmetic with one constant.
func (k *Implied) invertBinary(e algebra.Binary, in limits) {
	x, at, left := e.L, e.R, false
	if algebra.IsConstant(x) {
		x, at, left = e.R, e.L, true
	}
	v, ok := constantLimits(at, x)
	if !ok || v.lo.Cmp(v.hi) != 0 {
		return
	}
	c, minus := v.lo, big.NewRat(-1, 1)
	if scalar.IsFloat(e.T) {
		in = in.rounded(floatSlack, c)
	}
	switch {
	case e.Op == syntax.Add:
		k.operand(x, in.plus(new(big.Rat).Neg(c)))
	case e.Op == syntax.Subtract && left:
		k.operand(x, in.times(minus).plus(c))
	case e.Op == syntax.Subtract:
		k.operand(x, in.plus(c))
	case c.Sign() == 0:
	case e.Op == syntax.Multiply:
		k.operand(x, in.times(new(big.Rat).Inv(c)))
	case e.Op == syntax.Divide && !left:
		switch {
		case e.T.IsInteger(): // rounded toward zero
			in = in.apart(scalar.One(), scalar.One())
		case e.T == catalog.Numeric:
			in = in.rounded(quotientSlack, new(big.Rat))
		}
		k.operand(x, in.times(c))
	}
}

// invertCast is for casts between numbers, which round, and between times.
func (k *Implied) invertCast(e algebra.Cast, in limits) {
	from := e.X.Typ()
	switch {
	case from.IsNumber() && e.T.IsNumber():
		switch {
		case e.T.IsInteger():
			in = in.apart(big.NewRat(1, 2), big.NewRat(1, 2))
		case len(e.Mods) > 0:
			digits := 0
			if len(e.Mods) > 1 {
				digits = int(e.Mods[1])
			}
			in = in.apart(scalar.StepOf(digits), scalar.StepOf(digits))
		case e.T == catalog.Float4:
			in = in.rounded(realSlack, new(big.Rat))
		}
		if scalar.IsFloat(from) || scalar.IsFloat(e.T) {
			in = in.rounded(quotientSlack, new(big.Rat)) // fifteen digits
		}
		k.operand(e.X, in)
	case from.IsTime() && e.T.IsTime():
		if e.T == catalog.Date && from != catalog.Date { // rounded down
			in = in.apart(new(big.Rat), scalar.One())
		}
		k.operand(e.X, in.inUnit(e.T, from))
	}
}

// microsOfDay are the units of a time in one of a date.
const microsOfDay = int64(24 * time.Hour / time.Microsecond)

// longest is how long a unit of date_trunc is at most, in microseconds; 0: it is not known.
func longest(unit string) int64 {
	switch unit {
	case "second":
		return time.Second.Microseconds()
	case "minute":
		return time.Minute.Microseconds()
	case "hour":
		return time.Hour.Microseconds()
	case "day":
		return microsOfDay
	case "week":
		return 7 * microsOfDay
	case "month":
		return 31 * microsOfDay
	case "quarter":
		return 92 * microsOfDay
	case "year":
		return 366 * microsOfDay
	case "decade":
		return 10 * 366 * microsOfDay
	case "century":
		return 100 * 366 * microsOfDay
	case "millennium":
		return 1000 * 366 * microsOfDay
	default:
		return 0
	}
}

// invertCall is for functions that rise with their argument.
func (k *Implied) invertCall(e algebra.Call, in limits) {
	if len(e.Args) == 0 {
		return
	}
	none, one := new(big.Rat), scalar.One()
	last := e.Args[len(e.Args)-1]
	switch e.Name {
	case "coalesce": // where its first argument is not NULL
		k.operand(e.Args[0], in)
	case "floor":
		k.operand(e.Args[0], in.apart(none, one))
	case "ceil", "ceiling":
		k.operand(e.Args[0], in.apart(one, none))
	case "round", "trunc":
		step := one
		if len(e.Args) > 1 {
			places, ok := WholeConstant(e.Args[1])
			if !ok {
				return
			}
			step = scalar.StepOf(places)
		}
		k.operand(e.Args[0], in.apart(step, step))
	case "abs":
		if in.hi != nil {
			k.operand(e.Args[0], limits{new(big.Rat).Neg(in.hi), in.hi})
		}
	case "date_trunc":
		unit, ok := e.Args[0].(algebra.Constant)
		if most := longest(unit.Text); ok && most > 0 && len(e.Args) == 2 && last.Typ().IsTime() && e.T.IsTime() && e.T != catalog.Date {
			k.operand(last, in.apart(none, scalar.Number(most)).inUnit(e.T, last.Typ()))
		}
	case "date_bin":
		if x := e.Args[1]; x.Typ().IsTime() && x.Typ() != catalog.Date {
			k.operand(x, in.apart(none, binOf(e.Args[0].(algebra.Constant))))
		}
	case "timezone":
		k.operand(last, in.apart(scalar.Number(farthest), scalar.Number(farthest)))
	case "extract":
		if part, ok := e.Args[0].(algebra.Constant); ok && len(e.Args) == 2 && last.Typ().IsTime() {
			k.invertExtract(part.Text, last, in)
		}
	}
}

// invertExtract is for the parts of a time that rise with it.
func (k *Implied) invertExtract(part string, x algebra.Expr, in limits) {
	switch part {
	case "epoch":
		micros := in.rounded(floatSlack, new(big.Rat)).times(scalar.Number(1_000_000))
		k.operand(x, micros.inUnit(catalog.Timestamp, x.Typ()))
	case "year":
		begins := func(year *big.Int) *big.Rat {
			if !year.IsInt64() || year.Int64() < 1 || year.Int64() > 9999 { // of before there was one
				return nil
			}
			return scalar.InUnit(time.Date(int(year.Int64()), 1, 1, 0, 0, 0, 0, time.UTC), x.Typ())
		}
		var at limits
		if in.lo != nil {
			at.lo = begins(scalar.Ceil(in.lo))
		}
		if in.hi != nil {
			at.hi = begins(new(big.Int).Add(scalar.Floor(in.hi), big.NewInt(1)))
		}
		k.operand(x, at)
	}
}

// plus moves limits.
func (l limits) plus(v *big.Rat) limits {
	if l.lo != nil {
		l.lo = new(big.Rat).Add(l.lo, v)
	}
	if l.hi != nil {
		l.hi = new(big.Rat).Add(l.hi, v)
	}
	return l
}

// apart moves limits outward.
func (l limits) apart(below, above *big.Rat) limits {
	if l.lo != nil {
		l.lo = new(big.Rat).Sub(l.lo, below)
	}
	if l.hi != nil {
		l.hi = new(big.Rat).Add(l.hi, above)
	}
	return l
}

// rounded moves limits outward by a part of themselves and of another number.
func (l limits) rounded(part, with *big.Rat) limits {
	outward := func(v *big.Rat) *big.Rat {
		if v == nil {
			return nil
		}
		size := new(big.Rat).Add(new(big.Rat).Abs(v), new(big.Rat).Abs(with))
		return size.Mul(size, part)
	}
	return l.apart(outward(l.lo), outward(l.hi))
}

// times multiplies limits by a number that is not zero.
func (l limits) times(v *big.Rat) limits {
	by := func(end *big.Rat) *big.Rat {
		if end == nil {
			return nil
		}
		return new(big.Rat).Mul(end, v)
	}
	if v.Sign() < 0 {
		return limits{by(l.hi), by(l.lo)}
	}
	return limits{by(l.lo), by(l.hi)}
}

// inUnit gives limits of a time of one type those of another type.
func (l limits) inUnit(from, to catalog.Type) limits {
	switch {
	case from == catalog.Date && to != catalog.Date:
		return l.times(scalar.Number(microsOfDay))
	case from != catalog.Date && to == catalog.Date:
		return l.times(big.NewRat(1, microsOfDay))
	default:
		return l
	}
}
