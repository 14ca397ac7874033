package answer

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// ratioRef stands for the ratio in its context.
type ratioRef struct{ t catalog.Type }

func (e ratioRef) Typ() catalog.Type { return e.t }

// ratioOf finds the ratio of an output; nil: it has none. The ratio of an output over several rows has no width: that depends on which rows
// they are.
func ratioOf(p *plan.Plan, e algebra.Expr, rows int) *plan.Ratio {
	c := &plan.Ratio{}
	var ok bool
	if c.Context, ok = (follower{p: p}).contextOf(e, c); !ok {
		return nil
	}
	level, known := Level(p, rows)
	if sum, ok := c.Of.Affine(); ok && known && !algebra.HasAggregate(e) {
		c.Width = sumWidth(p, sum, level)
	}
	return c
}

// contextOf replaces the ratio within an expression by a [ratioRef], and stores it in c; ok is false where there is none.
func (w follower) contextOf(e algebra.Expr, c *plan.Ratio) (context algebra.Expr, ok bool) {
	p := w.p
	if len(bind.ReleasesOf(p.Query, e)) == 0 || !e.Typ().IsNumber() {
		return nil, false
	}
	if c.Of, ok = w.fraction(e); ok {
		return ratioRef{e.Typ()}, true
	}
	// one replaces the only operand with releases by its context.
	one := func(operands ...*algebra.Expr) bool {
		var with *algebra.Expr
		for _, x := range operands {
			if len(bind.ReleasesOf(p.Query, *x)) == 0 {
				continue
			}
			if with != nil {
				return false
			}
			with = x
		}
		context, ok := w.contextOf(*with, c)
		*with = context
		return ok
	}
	switch e := e.(type) {
	case algebra.Choice: // the output is not NULL
		if x := only(e); x != nil {
			return w.contextOf(x, c)
		}
		return nil, false
	case algebra.Negate:
		return e, one(&e.X)
	case algebra.Cast:
		return e, one(&e.X)
	case algebra.Binary:
		if l, r := e.L, e.R; e.Op == syntax.Divide && e.T.IsInteger() {
			if c.Of, ok = w.binaryFraction(e); ok { // truncated after dividing
				return algebra.Binary{Op: e.Op, L: ratioRef{catalog.Numeric}, R: algebra.Constant{T: catalog.Int8, Text: "1"}, T: e.T}, true
			}
			e.L, e.R = l, r
		}
		return e, one(&e.L, &e.R)
	case algebra.Call:
		args := append([]algebra.Expr(nil), e.Args...)
		e.Args = args
		operands := make([]*algebra.Expr, len(args))
		for i := range args {
			operands[i] = &args[i]
		}
		return e, one(operands...)
	default:
		return nil, false
	}
}

// spread returns the half-width of an output, known before there is data; nil: not known. Whatever the released values are, the output
// changes by at most this much where the ratio changes by its half-width.
func spread(c *plan.Ratio) *big.Rat {
	if c.Width == nil {
		return nil
	}
	return SpreadOf(c.Context, c.Width)
}

// SpreadOf returns how far an expression moves at most where the ratio in it moves by width, in the unit of the expression; nil: not known.
func SpreadOf(e algebra.Expr, width *big.Rat) *big.Rat {
	switch e := e.(type) {
	case ratioRef:
		return width
	case algebra.Negate:
		return SpreadOf(e.X, width)
	case algebra.Cast:
		digits, ok := digitsOf(e)
		if !ok {
			return nil
		}
		return inSteps(SpreadOf(e.X, width), digits)
	case algebra.Binary:
		return spreadOfBinary(e, width)
	case algebra.Call:
		return spreadOfCall(e, width)
	default:
		return nil
	}
}

func spreadOfBinary(e algebra.Binary, width *big.Rat) *big.Rat {
	inner, other := e.L, e.R
	if !hasRatio(inner) {
		inner, other = e.R, e.L
	}
	w, factor := SpreadOf(inner, width), scalar.One()
	switch e.Op {
	case syntax.Add, syntax.Subtract:
		if !other.Typ().IsNumber() {
			return nil
		}
	case syntax.Multiply, syntax.Divide:
		v, ok := numberOf(other)
		if !ok || e.Op == syntax.Divide && (v.Sign() == 0 || !hasRatio(e.L)) {
			return nil
		}
		if factor = new(big.Rat).Abs(v); e.Op == syntax.Divide {
			factor.Inv(factor)
		}
	default:
		return nil
	}
	if w == nil {
		return nil
	}
	w = new(big.Rat).Mul(w, factor)
	if e.Op == syntax.Divide && e.T.IsInteger() {
		return inSteps(w, wholeDigits)
	}
	return w
}

func spreadOfCall(e algebra.Call, width *big.Rat) *big.Rat {
	f := domain.BuiltinOf(e.Name)
	if f.First != domain.Computed && !hasRatio(e.Args[0]) {
		return nil
	}
	var w *big.Rat
	for _, arg := range e.Args {
		if hasRatio(arg) {
			w = SpreadOf(arg, width)
		} else if !arg.Typ().IsNumber() {
			return nil
		}
	}
	switch f.Moves {
	case domain.NoMore:
		return w
	case domain.InSteps:
		return inSteps(w, roundedDigits(e))
	default:
		return nil
	}
}

func hasRatio(e algebra.Expr) bool {
	return algebra.Has(e, func(x algebra.Expr) bool { _, is := x.(ratioRef); return is })
}

// unrounded and wholeDigits are numbers of decimal places.
const (
	unrounded   = 1 << 20
	wholeDigits = 0
)

// inSteps bounds how far apart two numbers are once they are rounded to so many decimal places, in one direction or to the nearest, if they
// were at most w apart before. It is a whole number of steps, less than w and a step.
func inSteps(w *big.Rat, digits int) *big.Rat {
	if w == nil || digits == unrounded {
		return w
	}
	step := scalar.StepOf(digits)
	steps := scalar.Ceil(new(big.Rat).Quo(w, step))
	return step.Mul(step, new(big.Rat).SetInt(steps))
}

// digitsOf returns the decimal places that a cast to a number rounds to; ok is false for other casts.
func digitsOf(e algebra.Cast) (digits int, ok bool) {
	switch {
	case e.T.IsInteger():
		return wholeDigits, len(e.Mods) == 0
	case e.T == catalog.Numeric && len(e.Mods) == 2:
		return int(e.Mods[1]), true
	case e.T == catalog.Numeric && len(e.Mods) == 1:
		return wholeDigits, true
	default:
		return unrounded, e.T.IsNumber() && len(e.Mods) == 0
	}
}

// roundedDigits returns the decimal places of round, floor and ceil. Those of round are a constant.
func roundedDigits(e algebra.Call) int {
	if len(e.Args) < 2 {
		return wholeDigits
	}
	v, _ := scalar.ParseNumber(e.Args[1].(algebra.Constant).Text)
	return int(v.Num().Int64())
}
