package sqlrewrite

import (
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/syntax"
)

// affine are the weights of the releases in an expression that is their weighted sum and a constant of the row; ok is false for other
// expressions. Its error is then known before there is data, and is smaller than that of interval arithmetic.
func (p *Plan) affine(e expr) (weights map[int]*big.Rat, ok bool) {
	switch e := e.(type) {
	case valueRef:
		v := p.query.values[e.index]
		if v.computed() || p.releases[v.of[0]].mechanism == nil {
			return nil, false
		}
		return map[int]*big.Rat{v.of[0]: p.releases[v.of[0]].unit}, true
	case keyRef, constant:
		return nil, e.typ().IsNumber()
	case negate:
		weights, ok = p.affine(e.x)
		return scaled(weights, big.NewRat(-1, 1)), ok
	case cast:
		if e.t != catalog.Numeric && !isFloat(e.t) || len(e.mods) > 0 {
			return nil, false
		}
		return p.affine(e.x)
	case binary:
		return p.affineBinary(e)
	default:
		return nil, false
	}
}

func (p *Plan) affineBinary(e binary) (map[int]*big.Rat, bool) {
	l, okL := p.affine(e.l)
	r, okR := p.affine(e.r)
	if !okL || !okR {
		return nil, false
	}
	switch e.op {
	case syntax.Add:
		return added(l, r), true
	case syntax.Subtract:
		return added(l, scaled(r, big.NewRat(-1, 1))), true
	case syntax.Multiply:
		if factor, ok := numberOf(e.l); ok {
			return scaled(r, factor), true
		}
		factor, ok := numberOf(e.r)
		return scaled(l, factor), ok
	case syntax.Divide:
		divisor, ok := numberOf(e.r)
		if !ok || divisor.Sign() == 0 || e.t.IsInteger() {
			return nil, false
		}
		return scaled(l, new(big.Rat).Inv(divisor)), true
	default:
		return nil, false
	}
}

// numberOf is the value of a constant.
func numberOf(e expr) (*big.Rat, bool) {
	c, ok := e.(constant)
	if !ok || c.null || !c.t.IsNumber() {
		return nil, false
	}
	return parseNumber(c.text)
}

func scaled(weights map[int]*big.Rat, factor *big.Rat) map[int]*big.Rat {
	out := make(map[int]*big.Rat, len(weights))
	if factor != nil {
		for i, w := range weights {
			out[i] = new(big.Rat).Mul(w, factor)
		}
	}
	return out
}

func added(a, b map[int]*big.Rat) map[int]*big.Rat {
	out := scaled(a, one())
	for i, w := range b {
		if out[i] == nil {
			out[i] = new(big.Rat)
		}
		out[i].Add(out[i], w)
	}
	return out
}

// sumWidth is the half-width of a weighted sum of releases at the requested confidence.
func (p *Plan) sumWidth(weights map[int]*big.Rat) *big.Rat {
	var terms []mechanisms.Term
	var order []int
	for i, w := range weights {
		if w.Sign() != 0 {
			order = append(order, i)
		}
	}
	slices.Sort(order) // the sum of floats depends on their order
	for _, i := range order {
		terms = append(terms, mechanisms.Term{Noise: p.releases[i].mechanism, Weight: weights[i]})
	}
	if len(terms) == 1 {
		w := inUnits(terms[0].Noise.HalfWidth(p.options.Confidence), terms[0].Weight)
		return w.Abs(w)
	}
	width := new(big.Rat).SetFloat64(mechanisms.SumHalfWidth(terms, p.options.Confidence))
	if width == nil { // infinite
		return nil
	}
	return width
}
