package sqlrewrite

import (
	"math/big"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// core is the one part of an output that all its releases are in, and that is a fraction of them: the mean in round(avg(x), 1). The
// fraction's interval has the level asked for by itself, and the rest of the output carries it on.
type core struct {
	shell expr // the output, with a [coreRef] in the fraction's place
	of    fraction
	width *big.Rat // of the fraction, known before there is data; nil: not known
}

// coreRef stands for the core in its shell.
type coreRef struct{ t catalog.Type }

func (e coreRef) typ() catalog.Type { return e.t }

// coreOf finds the core of an output; nil where there is none.
func (p *pricedPlan) coreOf(e expr) *core {
	c := &core{}
	var ok bool
	if c.shell, ok = p.shellOf(e, c); !ok {
		return nil
	}
	if weights, ok := c.of.affine(); ok {
		c.width = p.sumWidth(weights)
	}
	return c
}

// shellOf replaces the core of an expression, and notes it.
func (p *pricedPlan) shellOf(e expr, c *core) (shell expr, ok bool) {
	if len(p.query.releasesOf(e)) == 0 || !e.typ().IsNumber() {
		return nil, false
	}
	if c.of, ok = p.fraction(e); ok {
		return coreRef{e.typ()}, true
	}
	// one puts the shell of the only operand with releases in its place.
	one := func(operands ...*expr) bool {
		var with *expr
		for _, x := range operands {
			if len(p.query.releasesOf(*x)) == 0 {
				continue
			}
			if with != nil {
				return false
			}
			with = x
		}
		shell, ok := p.shellOf(*with, c)
		*with = shell
		return ok
	}
	switch e := e.(type) {
	case negate:
		return e, one(&e.x)
	case cast:
		return e, one(&e.x)
	case binary:
		if l, r := e.l, e.r; e.op == syntax.Divide && e.t.IsInteger() {
			if c.of, ok = p.binaryFraction(e); ok { // truncated after dividing
				return binary{op: e.op, l: coreRef{catalog.Numeric}, r: constant{t: catalog.Int8, text: "1"}, t: e.t}, true
			}
			e.l, e.r = l, r
		}
		return e, one(&e.l, &e.r)
	case call:
		args := append([]expr(nil), e.args...)
		e.args = args
		operands := make([]*expr, len(args))
		for i := range args {
			operands[i] = &args[i]
		}
		return e, one(operands...)
	default:
		return nil, false
	}
}

// spread is the half-width of an output, known before there is data; nil: not known. Whatever the released values are, the output
// changes by at most so much where the core changes by its half-width.
func (p *pricedPlan) spread(c *core) *big.Rat {
	if c.width == nil {
		return nil
	}
	return spreadOf(c.shell, c.width)
}

func spreadOf(e expr, width *big.Rat) *big.Rat {
	switch e := e.(type) {
	case coreRef:
		return width
	case negate:
		return spreadOf(e.x, width)
	case cast:
		digits, ok := digitsOf(e)
		if !ok {
			return nil
		}
		return inSteps(spreadOf(e.x, width), digits)
	case binary:
		return spreadOfBinary(e, width)
	case call:
		return spreadOfCall(e, width)
	default:
		return nil
	}
}

func spreadOfBinary(e binary, width *big.Rat) *big.Rat {
	inner, other := e.l, e.r
	if !hasCore(inner) {
		inner, other = e.r, e.l
	}
	w, factor := spreadOf(inner, width), one()
	switch e.op {
	case syntax.Add, syntax.Subtract:
		if !other.typ().IsNumber() {
			return nil
		}
	case syntax.Multiply, syntax.Divide:
		v, ok := numberOf(other)
		if !ok || e.op == syntax.Divide && (v.Sign() == 0 || !hasCore(e.l)) {
			return nil
		}
		if factor = new(big.Rat).Abs(v); e.op == syntax.Divide {
			factor.Inv(factor)
		}
	default:
		return nil
	}
	if w == nil {
		return nil
	}
	w = new(big.Rat).Mul(w, factor)
	if e.op == syntax.Divide && e.t.IsInteger() {
		return inSteps(w, wholeDigits)
	}
	return w
}

func spreadOfCall(e call, width *big.Rat) *big.Rat {
	if !hasCore(e.args[0]) && e.name != "greatest" && e.name != "least" {
		return nil
	}
	var w *big.Rat
	for _, arg := range e.args {
		if hasCore(arg) {
			w = spreadOf(arg, width)
		} else if !arg.typ().IsNumber() {
			return nil
		}
	}
	switch e.name {
	case "abs", "nullif", "greatest", "least":
		return w // none of them moves more than its arguments do
	case "floor", "ceil", "ceiling", "round":
		return inSteps(w, roundedDigits(e))
	default:
		return nil
	}
}

func hasCore(e expr) bool {
	if _, is := e.(coreRef); is {
		return true
	}
	for _, child := range children(e) {
		if hasCore(child) {
			return true
		}
	}
	return false
}

// unrounded and wholeDigits are numbers of decimal places.
const (
	unrounded   = 1 << 20
	wholeDigits = 0
)

// inSteps is how far apart two numbers with so many decimal places can be, that were at most w apart before they were rounded in one
// direction or to the nearest: a whole number of steps, and less than w and a step.
func inSteps(w *big.Rat, digits int) *big.Rat {
	if w == nil || digits == unrounded {
		return w
	}
	step := stepOf(digits)
	steps := ceil(new(big.Rat).Quo(w, step))
	return step.Mul(step, new(big.Rat).SetInt(steps))
}

// stepOf is the smallest number with so many decimal places, which may be negative.
func stepOf(digits int) *big.Rat {
	step := new(big.Rat).SetInt(power10(max(digits, -digits)))
	if digits > 0 {
		step.Inv(step)
	}
	return step
}

// digitsOf are the decimal places that a cast to a number rounds to; ok is false for other casts.
func digitsOf(e cast) (digits int, ok bool) {
	switch {
	case e.t.IsInteger():
		return wholeDigits, len(e.mods) == 0
	case e.t == catalog.Numeric && len(e.mods) == 2:
		return int(e.mods[1]), true
	case e.t == catalog.Numeric && len(e.mods) == 1:
		return wholeDigits, true
	default:
		return unrounded, e.t.IsNumber() && len(e.mods) == 0
	}
}

// roundedDigits are the decimal places of round, floor and ceil; those of round are a constant.
func roundedDigits(e call) int {
	if len(e.args) < 2 {
		return wholeDigits
	}
	v, _ := parseNumber(e.args[1].(constant).text)
	return int(v.Num().Int64())
}
